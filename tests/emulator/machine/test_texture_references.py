"""Textures that PTX names itself (references, samplers apart, handles), and what is said where something is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from texture_harness import columns, program, run
from texture_reference import Mode, close, sample

import ptxdsl
from ptxdsl import EmulationError, LaunchError, Sampler, Surface, Texture
from ptxdsl.gpu import tools
from ptxdsl.text import to_text

IMAGE = np.arange(12, dtype=np.float32).reshape(3, 4)
INDEPENDENT = ", texmode_independent"


def test_references_of_a_module() -> None:
    variables = ".global .texref image;\n.global .surfref canvas;\n.tex .u64 old;\n".replace(".tex .u64 old;\n", "")
    text = "tex.2d.v4.f32.s32 {%d0, %d1, %d2, %d3}, [image, {%c0, %c1}];\nshl.b32 %c0, %c0, 2;\n"
    text += "sust.b.2d.b32.trap [canvas, {%c0, %c1}], %d0;\n"
    x, y = np.meshgrid(np.arange(4, dtype=np.int32), np.arange(3, dtype=np.int32))
    canvas = np.zeros((3, 4), np.float32)
    text = program(text, 2, 4, handles=0, variables=variables)
    bound = {"image": Texture(IMAGE), "canvas": Surface(canvas)}
    run(text, [], columns(x.ravel(), y.ravel()), 4, bind=bound)
    np.testing.assert_array_equal(canvas, IMAGE)
    bound["image"] = Texture(IMAGE * 2)
    run(text, [], columns(x.ravel(), y.ravel()), 4, bind=bound)
    np.testing.assert_array_equal(canvas, IMAGE * 2)


def test_the_address_of_a_reference_is_a_handle() -> None:
    text = "mov.u64 %h0, image;\ntex.1d.v4.f32.s32 {%d0, %d1, %d2, %d3}, [%h0, {%c0}];\ntxq.width.b32 %d1, [image];"
    text = program(text, 1, 4, handles=0, variables=".global .texref image;\n")
    got = run(text, [], columns(np.int32([2])), 4, np.uint32, {"image": Texture(IMAGE[0])})
    assert got[0, :2].view(np.float32)[0] == 2
    assert got[0, 1] == 4


@pytest.mark.parametrize("how", ["handle", "named", "initial"])
def test_samplers_apart(rng: np.random.Generator, how: str) -> None:
    """In independent mode the sampler decides, for whole coordinates too."""
    image = rng.uniform(-1, 1, (3, 5, 4)).astype(np.float32)
    sampler = Sampler(address="wrap", filter="linear")
    x, y = (rng.uniform(-2, 2, 40).astype(np.float32) for _ in range(2))
    name = {"handle": "%h1"}.get(how, "s")
    text = f"tex.2d.v4.f32.f32 {{%d0, %d1, %d2, %d3}}, [%h0, {name}, {{%c0, %c1}}];"
    fields = " = { addr_mode_0 = wrap, addr_mode_1 = wrap, filter_mode = linear }"
    variables = "" if how == "handle" else f".global .samplerref s{fields if how == 'initial' else ''};\n"
    texture = Texture(image, "2d", normalized=True)
    handles = [texture, sampler] if how == "handle" else [texture]
    bind = {"s": sampler} if how == "named" else {}
    text = program(text, 2, 4, handles=len(handles), variables=variables, options=INDEPENDENT)
    got = run(text, handles, columns(x, y), 4, bind=bind)
    close(got, [sample(image, at, Mode("wrap", True, True)) for at in zip(x, y)])


def test_a_kernel_takes_a_sampler(emulated: None) -> None:
    @ptxdsl.ptx_kernel
    def kernel(image: Texture, how: Sampler, out: ptxdsl.Ptr[ptxdsl.f32]) -> None:
        i = ptxdsl.ptx.tid.x
        out[i] = ptxdsl.ptx["tex.1d.v4.f32.f32"]((image, how, [i.to(ptxdsl.f32) * 0.5]))[0]

    out = np.zeros(4, np.float32)
    kernel[1, 4](Texture(IMAGE[0]), Sampler(filter="linear"), out)
    assert out.tolist() == [0, 0, 0.5, 1]
    assert ".target sm_75, texmode_independent\n" in kernel.ptx()
    if tools.find_tool("ptxas"):
        assert kernel.cubin()


def test_whole_coordinates_with_a_sampler() -> None:
    """As ptxas has it: they are converted to f32 and sampled."""
    text = "tex.2d.v4.f32.s32 {%d0, %d1, %d2, %d3}, [%h0, %h1, {%c0, %c1}];\n"
    text += "tex.2d.v4.f32.s32 {%d1, _, _, %d2}, [%h0, %h2, {%c0, %c1}];"
    text = program(text, 2, 4, handles=3, options=INDEPENDENT)
    handles = [Texture(IMAGE), Sampler(), Sampler(address="border", border=(9, 8, 7, 6), filter="linear")]
    got = run(text, handles, columns(np.int32([2, -5, 9]), np.int32([1, 0, 2])), 4)
    assert got[:, 0].tolist() == [6, 0, 11]
    assert got[0, 1] == (1 + 2 + 5 + 6) / 4  # a whole coordinate is the corner of four texels
    assert got[1:, 1].tolist() == [9, 9]


@pytest.mark.parametrize("how", ["bound", "initial"])
def test_a_sampler_may_override_that_coordinates_are_normalized(how: str) -> None:
    fields = " = { force_unnormalized_coords = 1 }" if how == "initial" else ""
    text = "tex.1d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%h0, s, {%c0}];\ntxq.force_unnormalized_coords.b32 %d1, [s];"
    text = program(text, 1, 4, options=INDEPENDENT, variables=f".global .samplerref s{fields};\n")
    bind = {"s": Sampler(force_unnormalized=True)} if how == "bound" else {}
    got = run(text, Texture(IMAGE[0], normalized=True), columns(np.float32([2.5])), 4, bind=bind)
    assert got[0, 0] == 2
    assert got.view(np.uint32)[0, 1] == 1


def test_clamping_as_in_opengl() -> None:
    """clamp_ogl keeps the coordinate within the texture; half of what is filtered at an edge is the border."""
    fields = "{ addr_mode_0 = clamp_ogl, filter_mode = linear }"
    text = "tex.1d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%h0, s, {%c0}];"
    text = program(text, 1, 4, options=INDEPENDENT, variables=f".global .samplerref s = {fields};\n")
    got = run(text, Texture(np.float32([4, 8]), normalized=True), columns(np.float32([-3, 0, 0.5, 1, 7])), 4)
    assert got[:, 0].tolist() == [2, 2, 6, 4, 4]


def test_handles_in_parameters_of_their_own_type() -> None:
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .texref image, .param .u64 out)
{
.reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>;
ld.param.u64 %rd0, [out];
mov.u32 %r0, %tid.x;
tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [image, {%r0}];
mul.wide.u32 %rd1, %r0, 4;
add.u64 %rd0, %rd0, %rd1;
st.global.f32 [%rd0], %f0;
ret;
}"""
    out = np.zeros(4, np.float32)
    kernel = ptxdsl.load(text)["k"].configure(1, 4, backend="emulator")
    kernel(Texture(IMAGE[1]), out)
    assert out.tolist() == [4, 5, 6, 7]
    with pytest.raises(LaunchError) as caught:
        kernel(IMAGE, out)
    assert caught.value.message == (
        "argument `image` of kernel `k` is a numpy array of float32, shape (3, 4); "
        "texref wants a ptxdsl.Texture or its handle"
    )


def test_handles_as_compilers_of_opencl_pass_them() -> None:
    text = """.version 8.0
.target sm_90, texmode_independent
.address_size 64
.visible .entry k(.param .u64 .ptr .texref image, .param .u64 .ptr .samplerref how, .param .u64 .ptr .surfref canvas)
{
.reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>;
ld.param.u64 %rd0, [image];
ld.param.u64 %rd1, [how];
ld.param.u64 %rd2, [canvas];
mov.u32 %r0, %tid.x;
tex.1d.v4.f32.s32 {%f0, _, _, _}, [%rd0, %rd1, {%r0}];
sust.p.1d.b32.trap [%rd2, {%r0}], %f0;
ret;
}"""
    module = ptxdsl.load(text)
    assert ".param .u64 .ptr .samplerref how," in ptxdsl.load(to_text(module.module)).text
    canvas = np.zeros(6, np.float16)
    module["k"].configure(1, 6, backend="emulator")(Texture(IMAGE[2]), Sampler(), Surface(canvas))
    assert canvas.tolist() == [8, 9, 10, 11, 11, 11]


# ---------------------------------------------------------------------------------------------------------------------
# Mistakes of a kernel


def failure(instruction: str, handles: Any, variables: str = "", bind: Any = None, options: str = "") -> EmulationError:
    count = len(handles)
    text = program(instruction, 2, 4, handles=count, variables=variables, options=options)
    with pytest.raises(EmulationError) as caught:
        run(text, handles, columns(np.int32([0]), np.int32([0])), 4, bind=bind)
    return caught.value


FETCH = "tex.2d.v4.f32.s32 {{%d0, %d1, %d2, %d3}}, [{}, {{%c0, %c1}}];"


def test_what_is_no_texture() -> None:
    error = failure(FETCH.format("%h0"), [12345])
    assert error.message == "`h0` is no texture"
    assert error.hint == "pass a `ptxdsl.Texture` or `ptxdsl.Surface`, and keep it alive as long as its handle is used"
    gone = Texture(IMAGE).emulated
    assert failure(FETCH.format("%h0"), [gone]).message == "`h0` is no texture"
    inside = Texture(np.zeros((2, 2, 2), np.uint8), "2d")  # whose format reads like a geometry
    assert failure(FETCH.format("%h0"), [inside.emulated + 4]).message == "`h0` is no texture"
    text = "mov.u64 %h0, 4096;\n" + FETCH.format("%h0")
    assert failure(text, [0]).message == "handle 0x1000 is no texture"
    error = failure(FETCH.format("%h0"), [Surface(IMAGE.copy())])
    assert error.message == "`tex` takes a 2d texture; `h0` is a 2d surface of float32[3, 4]"
    error = failure(FETCH.format("%h0").replace("2d", "a1d"), [Texture(IMAGE)])
    assert error.message == "`tex` takes an a1d texture; `h0` is a 2d texture of float32[3, 4]"
    text = FETCH.format("%h0").replace("[%h0", "[%h0, %h1")
    error = failure(text, [Texture(IMAGE), Texture(IMAGE)], options=INDEPENDENT)
    assert error.message == "`tex` takes a sampler; `h1` is a 2d texture of float32[3, 4]"


def test_modes_of_a_module() -> None:
    fetch = FETCH.format("%h0")
    for instruction, options, message, hint in [
        (fetch.replace("[%h0", "[%h0, %h1"), "",
         "a sampler of its own, and textures have theirs in `texmode_unified`",
         "write `.target sm_90, texmode_independent`, or leave the sampler out"),
        (fetch, INDEPENDENT,
         "no sampler, and each texture instruction names one in `texmode_independent`",
         "name it: `[a, sampler, {..}]`, or write `.target sm_90`"),
    ]:
        with pytest.raises(ptxdsl.VerifyError) as caught:
            ptxdsl.load(program(instruction, 2, 4, handles=2, options=options))
        assert (caught.value.message, caught.value.hint) == (f"{message}\n    {instruction}", hint)


def test_what_is_bound_to_nothing() -> None:
    error = failure(FETCH.format("image"), [], ".global .texref image;\n")
    assert error.message == "the texture reference `image` is bound to nothing"
    assert error.hint == '`module["image"] = ptxdsl.Texture(array)`, or declare a parameter: `image: Texture`'
    error = failure("suq.width.b32 %d0, [image];", [], ".global .surfref image;\n")
    assert error.message == "the surface reference `image` is bound to nothing"
    assert error.hint == '`module["image"] = ptxdsl.Surface(array)`, or declare a parameter: `image: Surface`'
    error = failure(FETCH.format("image"), [], ".global .texref image;\n", {"image": Texture(IMAGE[:, None], "3d")})
    assert error.message == "`tex` takes a 2d texture; `image` is a 3d texture of float32[3, 1, 4]"


def test_bindings_that_cannot_be() -> None:
    variables = ".global .texref image;\n.global .surfref canvas;\n"
    module = ptxdsl.load(program("mov.b32 %d0, 0;", 1, 1, variables=variables))
    cases = [
        ("imge", Texture(IMAGE), "<ptx> declares no texture, sampler or surface `imge`; it declares image, canvas",
         "did you mean `image`?"),
        ("image", IMAGE, "`image` is a .texref, which takes a ptxdsl.Texture, not an ndarray",
         '`m["image"] = ptxdsl.Texture(array)`'),
        ("canvas", Texture(IMAGE), "`canvas` is a .surfref, which takes a ptxdsl.Surface, not a Texture",
         '`m["canvas"] = ptxdsl.Surface(array)`'),
    ]
    for name, value, message, hint in cases:
        with pytest.raises(LaunchError) as caught:
            module[name] = value
        assert (caught.value.message, caught.value.hint) == (message, hint)
        assert caught.value.loc is not None
        assert caught.value.loc.file == __file__


# ---------------------------------------------------------------------------------------------------------------------
# Mistakes of a host program

FORMATS = "uint8, int8, uint16, int16, uint32, int32, float16 or float32"
F32, U8 = np.zeros((4, 6), np.float32), np.zeros((4, 6), np.uint8)
REFUSED: list[tuple[Any, str, str | None]] = [
    (lambda: Texture(F32.astype(float)),
     f"a texture has {FORMATS}, not a numpy array of float64, shape (4, 6)",
     "pass `array.astype(np.float32)`"),
    (lambda: Texture([1.0, 2.0]), "a texture is made of an array, not a list", "pass `np.array(...)`"),
    (lambda: Texture(F32[:, ::2]),
     ("a texture wants contiguous rows, one a pitch behind the other, not a numpy array of float32, shape (4, 3), "
      "strides (24, 8)"),
     "pass `np.ascontiguousarray(array)`"),
    (lambda: Texture(np.zeros((4, 4, 4), np.float32)), "an array of shape (4, 4, 4) does not say what its axes are",
     '`geometry="2d"`'),
    (lambda: Texture(np.zeros((9, 8, 7), np.float32)), "an array of shape (9, 8, 7) does not say what its axes are",
     '`geometry="3d"`'),
    (lambda: Texture(np.zeros((6, 8, 8), np.float32)), "an array of shape (6, 8, 8) does not say what its axes are",
     '`geometry="cube"`'),
    (lambda: Texture(np.zeros((4, 4, 3), np.float32)), "an array of shape (4, 4, 3) does not say what its axes are",
     '`geometry="2d"`'),
    (lambda: Texture(np.zeros((4, 4, 3), np.float32), "2d"),
     "a texture has 1, 2 or 4 channels; as the last of (height, width, channels) the array has 3",
     "add a channel: `np.concatenate([array, np.ones_like(array[..., :1])], axis=-1)`"),
    (lambda: Texture(F32, "3d"),
     "a 3d texture has the axes (depth, height, width), or these and the channels; the array has shape (4, 6)",
     None),
    (lambda: Texture(F32, "4d"),
     "geometry is one of 1d, linear, 2d, 3d, a1d, a2d, cube, acube, 2dms, a2dms, not '4d'", '`geometry="1d"`'),
    (lambda: Texture(np.zeros((5, 4, 4), np.float32), "cube"),
     "a cube texture has 6 square faces, not 5 of 4 by 4", None),
    (lambda: Texture(np.zeros((0, 4), np.float32)), "the height of a 2d texture can be 1 to 65536, not 0", None),
    (lambda: Texture(F32, address="repeat"), "address is one of wrap, mirror, clamp, border, not 'repeat'",
     '`address="wrap"`'),
    (lambda: Texture(F32, address=("clamp", "mirror")), 'address="mirror" is for coordinates from 0 to 1',
     "`normalized=True`, and divide by the size"),
    (lambda: Texture(F32, filter="bilinear"), "filter is one of point, linear, not 'bilinear'", '`filter="point"`'),
    (lambda: Texture(U8, filter="linear"), 'filter="linear" makes floats, and the texels are read as uint8',
     '`read="normalized"`'),
    (lambda: Texture(U8.astype(np.int32), filter="linear"),
     'filter="linear" makes floats, and the texels are read as int32', "pass `array.astype(np.float32)`"),
    (lambda: Texture(F32, read="normalized"),
     'read="normalized" is for integers of 8 and 16 bits; the array is float32', '`read="element"`'),
    (lambda: Texture(U8, srgb=True), "srgb is for uint8 that is read as numbers from 0 to 1", '`read="normalized"`'),
    (lambda: Texture(F32, border=(1, 2, 3)), "border has four channels, not 3", "`border=(0, 0, 0, 0)`"),
    (lambda: Texture(F32[0], "linear", filter="linear"),
     "a linear texture is read at whole coordinates, without a filter or mipmap levels", '`geometry="1d"`'),
    (lambda: Texture([F32, F32[:2, :3].copy()], "2d"), "mipmap levels are for coordinates from 0 to 1",
     "`normalized=True`, and divide by the size"),
    (lambda: Texture([F32, F32], "2d", normalized=True),
     "mipmap level 1 is float32[4, 6]; it halves to float32[2, 3]", None),
    (lambda: Surface(np.zeros((6, 4, 4), np.float32), "cube"),
     "geometry is one of 1d, 2d, 3d, a1d, a2d, not 'cube'", '`geometry="1d"`'),
    (lambda: Surface(np.frombuffer(bytes(16), np.float32)),
     "a surface can be written, and a numpy array of float32, shape (4,) is read-only", "`array = array.copy()`"),
    (lambda: Sampler(address="wrapped"), "address is one of wrap, mirror, clamp, border, not 'wrapped'",
     '`address="wrap"`'),
]


@pytest.mark.parametrize(("make", "message", "hint"), REFUSED, ids=range(len(REFUSED)))
def test_refused(make: Any, message: str, hint: str | None) -> None:
    with pytest.raises(LaunchError) as caught:
        make()
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__


def test_arguments_that_are_no_textures(emulated: None) -> None:
    @ptxdsl.ptx_kernel
    def kernel(image: Texture, canvas: Surface) -> None:
        ptxdsl.ptx["suq.width.b32"](canvas)
        ptxdsl.ptx["txq.width.b32"](image)

    texture, surface = Texture(F32), Surface(F32.copy())
    kernel[1, 1](texture, surface)
    kernel[1, 1](texture.handle, surface.handle)
    wrong = "argument `{0}` of kernel `kernel` is {1}; {2} wants a ptxdsl.{2} or its handle"
    for given, message, hint in [
        ((F32, surface), wrong.format("image", "a numpy array of float32, shape (4, 6)", "Texture"),
         "pass `ptxdsl.Texture(image)`"),
        ((texture, texture),
         wrong.format("canvas", "a Texture", "Surface"), None),
        ((texture, "x"), wrong.format("canvas", "the str 'x'", "Surface"), None),
    ]:
        with pytest.raises(LaunchError) as caught:
            kernel[1, 1](*given)
        assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_texture_for_a_number(emulated: None) -> None:
    @ptxdsl.ptx_kernel
    def kernel(image: ptxdsl.u64) -> None:
        ptxdsl.ptx["txq.width.b32"](image)

    with pytest.raises(LaunchError) as caught:
        kernel[1, 1](Texture(F32))
    assert caught.value.message == (
        "argument `image` of kernel `kernel` is a Texture; u64 wants an int from 0 to 18446744073709551615"
    )
    assert caught.value.hint == "declare `image: Texture`, or pass `image.handle`"


def test_a_table_of_textures(emulated: None) -> None:
    @ptxdsl.ptx_kernel
    def pick(table: ptxdsl.Ptr[ptxdsl.u64], out: ptxdsl.Ptr[ptxdsl.f32]) -> None:
        i = ptxdsl.ptx.tid.x
        zero = ptxdsl.ptx.mov.s32(0)
        out[i] = ptxdsl.ptx["tex.2d.v4.f32.s32"]((table[i], [zero, zero]))[0]

    textures = [Texture(np.full((2, 2), n, np.float32)) for n in range(5)]
    table, out = np.array([texture.handle for texture in textures], np.uint64), np.zeros(5, np.float32)
    pick[1, 5](table, out)
    assert out.tolist() == [0, 1, 2, 3, 4]
