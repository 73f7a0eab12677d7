"""Textures and surfaces on a GPU: which arrays and objects the driver is asked for, and what is copied when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driver_standin import Launched, Result
from image_standin import CudaArray, ImageStandin
from texture_harness import program

import ptxdsl
from ptxdsl import Ptr, Sampler, Surface, Texture, f32, ptx, ptx_kernel
from ptxdsl.gpu import tools
from ptxdsl.errors import DriverError, LaunchError

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
driver = pytest.importorskip("cuda.bindings.driver")
Memory, Format = driver.CUmemorytype, driver.CUarray_format
Address, Filter = driver.CUaddress_mode, driver.CUfilter_mode
IMAGE = np.arange(24, dtype=np.float32).reshape(4, 6)


def make_draw() -> Any:
    @ptx_kernel
    def draw(image: Texture, canvas: Surface):
        x = ptx.mov.s32(0)
        color = ptx["tex.2d.v4.f32.s32"]((image, [x, x]))[0]
        ptx["sust.b.2d.b32.trap"]((canvas, [x, x]), color)

    return draw


def array_of(cu: ImageStandin, handle: int) -> CudaArray:
    return cu.textures[handle][0] if handle in cu.textures else cu.surfaces[handle]


def doubling(cu: ImageStandin) -> Any:
    """A kernel that stores twice what it reads."""
    cu.layout = "QQ"

    def run(launched: Launched) -> None:
        image, canvas = cu.numbers(launched)
        assert image in cu.textures
        assert canvas in cu.surfaces
        texels = np.frombuffer(array_of(cu, image).data, np.float32)
        np.frombuffer(array_of(cu, canvas).data, np.float32)[:] = texels * 2

    return run


def test_numpy_arrays_are_copied_in_and_surfaces_back(cu: ImageStandin) -> None:
    draw, cu.kernel = make_draw(), doubling(cu)
    image, out = IMAGE.copy(), np.zeros_like(IMAGE)
    texture, canvas = Texture(image), Surface(out)
    for _ in range(2):  # what the array holds at each launch
        draw[1, 1](texture, canvas)
        np.testing.assert_array_equal(out, image * 2)
        image += 1
    assert cu.calls.count("cuArray3DCreate") == 2
    assert cu.calls.count("cuTexObjectCreate") == 1
    assert len(cu.copies) == 6
    assert "cuStreamSynchronize" in cu.calls


def test_what_cannot_be_written_is_copied_once(cu: ImageStandin) -> None:
    draw, cu.kernel = make_draw(), doubling(cu)
    fixed, out = IMAGE.copy(), np.zeros_like(IMAGE)
    fixed.flags.writeable = False
    texture, canvas = Texture(fixed), Surface(out)
    for _ in range(3):
        draw[1, 1](texture, canvas)
    assert sum(copy.dstMemoryType == Memory.CU_MEMORYTYPE_ARRAY for copy in cu.copies) == 1 + 3


def test_arrays_on_the_device_stay_there(cu: ImageStandin) -> None:
    draw, cu.kernel = make_draw(), doubling(cu)
    image, out = ptxdsl.to_device(IMAGE), ptxdsl.to_device(np.zeros_like(IMAGE))
    before = len(cu.calls)
    draw[1, 1](Texture(image), Surface(out))
    assert {copy.srcMemoryType for copy in cu.copies} == {Memory.CU_MEMORYTYPE_DEVICE, Memory.CU_MEMORYTYPE_ARRAY}
    assert "cuStreamSynchronize" not in cu.calls[before:]
    np.testing.assert_array_equal(out.numpy(), IMAGE * 2)


GEOMETRIES: list[tuple[str, tuple[int, ...], int, tuple[int, int, int], int]] = [
    ("1d", (5,), 4, (1, 1, 20), 0), ("2d", (4, 5), 2, (1, 4, 10), 8), ("3d", (3, 4, 5), 1, (3, 4, 5), 0),
    ("a1d", (3, 5), 4, (3, 1, 20), 1), ("a2d", (3, 4, 5), 2, (3, 4, 10), 1), ("cube", (6, 4, 4), 1, (6, 4, 4), 4),
    ("acube", (2, 6, 4, 4), 1, (12, 4, 4), 5),
]


@pytest.mark.parametrize(("geometry", "shape", "size", "wanted", "flags"), GEOMETRIES)
def test_arrays(
    cu: ImageStandin, geometry: str, shape: tuple[int, ...], size: int, wanted: tuple[int, ...], flags: int
) -> None:
    image = np.arange(np.prod(shape)).reshape(shape).astype(f"u{size}")
    texture = Texture(image, geometry)
    array, desc = cu.textures[texture.handle]
    cu.finish_all()
    assert (array.shape, array.flags, array.channels) == (wanted, flags, 1)
    assert array.format == getattr(Format, f"CU_AD_FORMAT_UNSIGNED_INT{8 * size}")
    assert bytes(array.data) == image.tobytes()
    assert desc.flags == (3 if "cube" in geometry else 1)
    if "cube" not in geometry:
        surface = Surface(image, geometry)
        assert cu.surfaces[surface.handle].flags == flags & 1 | 2


def test_how_a_texture_is_read(cu: ImageStandin) -> None:
    image = np.zeros((4, 6, 4), np.uint8)
    texture = Texture(
        image, "2d", address=("wrap", "border"), filter="linear", read="normalized", normalized=True, srgb=True,
        border=(0.5, 1, 2, 3),
    )
    array, desc = cu.textures[texture.handle]
    assert (array.shape, array.channels) == ((1, 4, 24), 4)
    modes = [getattr(Address, f"CU_TR_ADDRESS_MODE_{mode}") for mode in ("WRAP", "BORDER", "CLAMP")]
    assert list(desc.addressMode) == modes
    assert list(desc.borderColor) == [0.5, 1, 2, 3]
    assert (desc.filterMode, desc.flags) == (Filter.CU_TR_FILTER_MODE_LINEAR, 2 | 16)
    plain = Texture(IMAGE)
    assert cu.textures[plain.handle][1].flags == 0


def test_mipmap_levels(cu: ImageStandin) -> None:
    levels = [np.full((8 >> n, max(1, 4 >> n)), n, np.float16) for n in range(4)]
    texture = Texture(
        levels, "2d", normalized=True, mipmap_filter="linear", mipmap_bias=0.5, mipmap_clamp=(1, 2), filter="linear"
    )
    arrays, desc = cu.textures[texture.handle]
    cu.finish_all()
    assert [bytes(array.data) for array in arrays] == [level.tobytes() for level in levels]
    assert (desc.mipmapFilterMode, desc.mipmapLevelBias) == (Filter.CU_TR_FILTER_MODE_LINEAR, 0.5)
    assert (desc.minMipmapLevelClamp, desc.maxMipmapLevelClamp) == (1.0, 2.0)


def test_linear_memory(cu: ImageStandin) -> None:
    image = np.arange(40, dtype=np.int16).reshape(10, 4)
    texture = Texture(image, "linear")
    linear, desc = cu.textures[texture.handle]
    cu.finish_all()
    assert (linear.format, linear.numChannels, linear.sizeInBytes) == (Format.CU_AD_FORMAT_SIGNED_INT16, 4, 80)
    assert cu.array(linear.devPtr, 40, np.int16).tolist() == image.ravel().tolist()
    assert desc.flags == 1


def test_references_of_a_module(cu: ImageStandin) -> None:
    text = "tex.2d.v4.f32.s32 {%d0, %d1, %d2, %d3}, [image, {%c0, %c1}];\nsust.b.2d.b32.trap [canvas, {%c0, %c1}], %d0;"
    module = ptxdsl.load(program(text, 2, 4, handles=0, variables=".global .texref image;\n.global .surfref canvas;\n"))
    out = np.zeros_like(IMAGE)
    module["image"] = Texture(IMAGE, filter="linear", normalized=True, address="mirror")
    module["canvas"] = Surface(out)
    cu.layout = "IQQ"
    seen = []

    def run(_: Launched) -> None:
        image, canvas = (cu.references[name] for name in (b"image", b"canvas"))
        seen.append(dict(image))
        canvas["array"].data[:] = image["array"].data

    cu.kernel = run
    with pytest.warns(ptxdsl.PerformanceWarning):
        module["k"][1, 1](0, np.zeros(8, np.uint32), np.zeros(8, np.uint32))
    np.testing.assert_array_equal(out, IMAGE)
    (image,) = seen
    assert image["format"] == (Format.CU_AD_FORMAT_FLOAT, 1)
    assert image["address"] == dict.fromkeys(range(3), Address.CU_TR_ADDRESS_MODE_MIRROR)
    assert (image["filter"], image["flags"]) == (Filter.CU_TR_FILTER_MODE_LINEAR, 2)
    module["image"] = Texture(IMAGE, address="border", border=(1, 0, 0, 0))
    with pytest.raises(LaunchError) as caught:
        module["k"][1, 1](0, np.zeros(8, np.uint32), np.zeros(8, np.uint32))
    assert caught.value.message == "the texture reference `image` can have a border of zeros only on a GPU"
    assert caught.value.hint == "pass the texture as a parameter"


def test_references_are_filled_at_each_launch_of_device_arrays(cu: ImageStandin) -> None:
    """Also at those that take the fast path."""
    text = "tex.2d.v4.f32.s32 {%d0, %d1, %d2, %d3}, [image, {%c0, %c1}];"
    module = ptxdsl.load(program(text, 2, 4, handles=0, variables=".global .texref image;\n"))
    image, data = IMAGE.copy(), ptxdsl.to_device(np.zeros(8, np.uint32))
    module["image"], cu.layout = Texture(image), "IQQ"
    launch, seen = module["k"][1, 1], []
    cu.kernel, cu.lazy = lambda _: seen.append(bytes(cu.references[b"image"]["array"].data)), False
    for _ in range(3):
        launch(0, data, data)
        assert seen[-1] == image.tobytes()
        image += 1


def test_what_a_gpu_does_not_have(cu: ImageStandin) -> None:
    samples = Texture(np.zeros((2, 2, 4), np.float32), "2dms")
    with pytest.raises(LaunchError) as caught:
        _ = samples.handle
    assert caught.value.message == "CUDA makes no textures with samples: a 2dms texture of float32[2, 2, 4]"
    assert caught.value.hint == 'run it on the emulator: `with ptxdsl.use("emulator"):`'
    text = "tex.2d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%h0, %h1, {%c0, %c1}];"
    module = ptxdsl.load(program(text, 2, 4, handles=2, options=", texmode_independent"))
    with pytest.raises(LaunchError) as caught:
        module["k"][1, 1](Texture(IMAGE), Sampler(), 0, np.zeros(8, np.uint32), np.zeros(8, np.uint32))
    assert caught.value.message == "argument `h1` is a sampler of its own, which CUDA's driver has no way to make"


def test_the_emulator_takes_host_memory_only(cu: ImageStandin) -> None:
    @ptx_kernel
    def look(image: Texture, out: Ptr[f32]):
        x = ptx.mov.s32(0)
        out[0] = ptx["tex.2d.v4.f32.s32"]((image, [x, x]))[0]

    with pytest.raises(LaunchError) as caught:
        look.configure(1, 1, backend="emulator")(Texture(ptxdsl.to_device(IMAGE)), np.zeros(1, np.float32))
    assert caught.value.message == "a texture of an array on GPU 0; the emulator works in host memory"


def test_graphs_take_no_host_memory(cu: ImageStandin) -> None:
    draw, canvas = make_draw(), Surface(ptxdsl.to_device(IMAGE))
    with cu.capture(7), pytest.raises(LaunchError) as caught:
        draw[1, 1, 7](Texture(IMAGE), canvas)
    assert caught.value.message == (
        "a launch with a texture of a host array while its stream is captured into a graph"
    )
    assert caught.value.hint == "make it of `ptxdsl.to_device(array)`"
    assert not cu.launches


def test_a_launch_waits_for_the_stream_of_a_texture(cu: ImageStandin) -> None:
    """An array that becomes valid on another stream."""

    class Elsewhere:
        def __init__(self, array: Any) -> None:
            self.array = array

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            address, shape = self.array._ptxdsl_view().address, self.array.shape
            return {"shape": shape, "typestr": "<f4", "data": (address, False), "version": 3, "stream": 0x77}

    draw, cu.kernel = make_draw(), doubling(cu)
    draw[1, 1](Texture(Elsewhere(ptxdsl.to_device(IMAGE))), Surface(ptxdsl.to_device(IMAGE)))
    assert cu.waits == [(0x77, 0)]


@pytest.mark.parametrize("call", ["cuTexObjectCreate", "cuArray3DCreate"])
def test_failures_leave_nothing_behind(cu: ImageStandin, call: str) -> None:
    cu.fail[call] = Result.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(DriverError):
        _ = Texture(IMAGE).handle
    del cu.fail[call]
    assert Texture(IMAGE).handle


def test_references_of_linear_memory_and_of_mipmaps(cu: ImageStandin) -> None:
    """Each way to bind one, through the real bindings."""
    lines = (
        "tex.1d.v4.f32.s32 {%d0, %d1, %d2, %d3}, [line, {%c0}];\n"
        "tex.2d.v4.f32.s32 {%d0, %d1, %d2, %d3}, [levels, {%c0, %c1}];"
    )
    names = ".global .texref line;\n.global .texref levels;\n"
    module = ptxdsl.load(program(lines, 2, 4, handles=0, variables=names))
    line = np.arange(40, dtype=np.float32).reshape(10, 4)
    images = [np.full((8 >> n, 4 >> n), n, np.float16) for n in range(3)]
    module["line"] = Texture(line, "linear")
    module["levels"] = Texture(
        images, "2d", normalized=True, mipmap_filter="linear", mipmap_bias=0.5, mipmap_clamp=(0, 2)
    )
    data = ptxdsl.to_device(np.zeros(8, np.uint32))
    cu.layout = "IQQ"
    module["k"][1, 1](0, data, data)
    cu.finish_all()
    bound = cu.references[b"line"]
    assert cu.array(bound["array"], 40).tolist() == line.ravel().tolist()
    assert bound["format"] == (Format.CU_AD_FORMAT_FLOAT, 4)
    levels = cu.references[b"levels"]
    assert [bytes(array.data) for array in levels["array"]] == [image.tobytes() for image in images]
    assert levels["format"] == (Format.CU_AD_FORMAT_HALF, 1)
    assert (levels["blend"], levels["bias"], levels["levels"]) == (Filter.CU_TR_FILTER_MODE_LINEAR, 0.5, (0.0, 2.0))


def test_a_texture_outlives_the_launches_that_read_it(cu: ImageStandin) -> None:
    """Its object is destroyed when the GPU is done with it, though Python has forgotten it before."""
    draw, cu.kernel = make_draw(), doubling(cu)
    out = ptxdsl.to_device(np.zeros_like(IMAGE))
    for _ in range(3):
        draw[1, 1](Texture(ptxdsl.to_device(IMAGE)), Surface(out))
    assert len(cu.textures) == 3
    np.testing.assert_array_equal(out.numpy(), IMAGE * 2)
    assert not cu.textures
