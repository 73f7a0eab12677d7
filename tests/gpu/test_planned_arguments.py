"""Arguments packed by machine code: byte for byte as the long way packs them, and refused where that refuses them."""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from driver_standin import Standin
from short_ways import CudaArray, compared, made_ready, refuses, taken

import ptxdsl
from ptxdsl import Array, Ptr, TensorMap, dynamic_shared, f16, f16x2, f32, mbarrier, ptx, ptx_kernel, tiles, tma, u32
from ptxdsl.gpu import tools
from ptxdsl.gpu.device import driver
from ptxdsl.gpu.launch_code import Argument, Frame, address
from ptxdsl.types import TYPES, ScalarType, dtype_of

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")

INTEGERS = [kind for kind in TYPES.values() if kind.kind in "us" and kind.lanes == 1 and kind.bits in (8, 16, 32, 64)]
BITS = [kind for kind in TYPES.values() if kind.kind == "b" and kind.lanes == 1 and kind.bits in (8, 16, 32, 64)]
FLOATS = [TYPES[name] for name in ("f16", "bf16", "f32", "f64")]
NUMPY_INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
LETTERS = {8: "B", 16: "H", 32: "I", 64: "Q"}


def of(annotation: Any) -> Any:
    """A launch of a kernel that takes one argument."""
    @ptx_kernel
    def k(x: annotation) -> None:
        ptx.membar.gl()

    return k[1, 32, 0x20]


def ready(cu: Standin, kind: ScalarType, value: Any) -> Any:
    cu.layout = LETTERS[kind.bits]
    launch = of(kind)
    made_ready(launch, value)
    return launch


def integers(rng: np.random.Generator, low: int, high: int) -> list[int]:
    """Numbers of all sizes, the first and the last that there are, and those beside them."""
    inside = [int(rng.integers(0, 1 << bits, dtype=np.uint64)) * sign for bits in range(1, 64) for sign in (1, -1)]
    edges = [bound + step for bound in (low, high, 0, 1 << 63, -(1 << 63), 1 << 64) for step in (-1, 0, 1)]
    return inside + edges + [1 << 100, -(1 << 100)]


@pytest.mark.parametrize("kind", INTEGERS + BITS, ids=str)
def test_ints(cu: Standin, rng: np.random.Generator, kind: ScalarType) -> None:
    launch = ready(cu, kind, 1)
    low, high = kind.bounds
    for value in integers(rng, low, high):
        assert compared(cu, launch, value) == (low <= value <= high)
    for value in (True, 1.0, "1", None, np.float32(1)):
        assert not compared(cu, launch, value)


@pytest.mark.parametrize("name", NUMPY_INTEGERS)
@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_numpy_ints(cu: Standin, rng: np.random.Generator, kind: ScalarType, name: str) -> None:
    launch, source = ready(cu, kind, np.dtype(name).type(1)), np.dtype(name).type
    low, high = max(kind.bounds[0], np.iinfo(name).min), min(kind.bounds[1], np.iinfo(name).max)
    for value in integers(rng, low, high):
        if np.iinfo(name).min <= value <= np.iinfo(name).max:
            assert compared(cu, launch, source(value)) == (low <= value <= high)


FINITE = [0.0, -0.0, 1.0, 1e-40, 1e-320, 65504.0, 65519.9, 65520.0, 3.4e38, 3.4028235677973366e38, 3.5e38, 1e308]


def floats(rng: np.random.Generator) -> list[float]:
    """Numbers of all sizes, some in the middle of two that a smaller type has."""
    some = [float(rng.normal() * 2.0 ** rng.integers(-150, 150)) for _ in range(50)]
    halves = [(1 + (2 * int(rng.integers(1 << 20)) + 1) * 2.0**-bits) for bits in (8, 11, 24) for _ in range(5)]
    return [*some, *halves, *FINITE, *(-value for value in FINITE), math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("source", [float, np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_floats(cu: Standin, rng: np.random.Generator, kind: ScalarType, source: Any) -> None:
    launch, made = ready(cu, kind, source(1.5)), 0
    for value in floats(rng):
        made += compared(cu, launch, source(value))
    assert made > 30


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_ints_for_floats(cu: Standin, rng: np.random.Generator, kind: ScalarType) -> None:
    launch = ready(cu, kind, 1)
    exact = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}[str(kind)]
    for value in integers(rng, -(1 << exact), 1 << exact):
        by_code = compared(cu, launch, value)
        assert by_code or abs(value) > 1 << exact
    other = ready(cu, kind, np.int16(1))
    for value in rng.integers(-(1 << 15), 1 << 15, 20).astype(np.int16):
        compared(cu, other, value)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_every_midpoint_of_narrow_floats(kind: str) -> None:
    """Where rounding is decided: the float of a plan's handler beside that of struct and of ml_dtypes."""
    infinity, dtype = {"f16": (0x7C00, np.float16), "bf16": (0x7F80, ml_dtypes.bfloat16)}[kind]
    known = np.arange(infinity, dtype=np.uint16).view(dtype).astype(np.float64)
    middle = (known[:-1] + known[1:]) / 2
    handler = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    convert, memory = handler(address(f"real_{kind}")), ctypes.create_string_buffer(16)
    entry, frame = Argument(reader=address("read:float")), Frame(memory=ctypes.addressof(memory))
    values = np.concatenate([middle, -middle, np.nextafter(middle, np.inf), np.nextafter(middle, 0)])
    made = []
    for value in values.tolist():
        assert convert(ctypes.addressof(entry), value, ctypes.addressof(frame)) == 1
        made.append(memory[:2])
    rounded = struct.pack(f"<{len(values)}e", *values) if kind == "f16" else values.astype(dtype).tobytes()
    assert b"".join(made) == rounded


def test_packed_numbers(cu: Standin, rng: np.random.Generator) -> None:
    cu.layout = "I"
    launch = of(f16x2)
    made_ready(launch, (1.0, 2.0))
    for _ in range(10):
        assert compared(cu, launch, tuple(map(float, rng.normal(size=2))))
    for wrong in ((1.0,), (1.0, 1e9), (1.0, "2"), (1.0, 2.0, 3.0)):
        assert not compared(cu, launch, wrong)
    for other in ((1, 2), (1, 2.0), (np.float16(1), 2.0), [1.0, 2.0]):
        compared(cu, launch, other)
    made_ready(launch, [1.0, 2.0])


# Arrays


@pytest.mark.parametrize("kind", [kind for kind in TYPES.values() if kind.numpy_name and kind.lanes == 1], ids=str)
def test_device_arrays(cu: Standin, kind: ScalarType) -> None:
    cu.layout, launch = "Q", of(Ptr[kind])
    x = ptxdsl.empty(5, dtype_of(kind))
    made_ready(launch, x)
    for shape in (1, (0, 3), (2, 3, 4), ()):
        assert compared(cu, launch, ptxdsl.empty(shape, dtype_of(kind)))
    refuses(cu, launch, ptxdsl.empty(5, np.complex128), match="wants")
    before = taken(launch)
    with pytest.warns(ptxdsl.PerformanceWarning, match="copied to the GPU"):
        launch(ptxdsl.zeros(5, dtype_of(kind), backend="emulator"))
    assert taken(launch) == before


def test_device_arrays_of_packed_types(cu: Standin) -> None:
    cu.layout, launch = "Q", of(Ptr[f16x2])
    made_ready(launch, ptxdsl.empty(6, np.float16))
    assert compared(cu, launch, ptxdsl.empty((2, 5), np.float16))
    refuses(cu, launch, ptxdsl.empty(5, np.float16), match="wants a multiple of 4 bytes")


@pytest.mark.parametrize("shape", [(None,), (None, None), (None, 4), (3, None), (2, 4), (None, 3, None)])
def test_arrays_with_shapes(cu: Standin, rng: np.random.Generator, shape: tuple[int | None, ...]) -> None:
    open_axes = shape.count(None)
    strided = None in shape[1:]
    cu.layout = "Q" + "I" * (open_axes + (len(shape) - 1) * strided)
    array = Array[(f32, *shape)] if any(shape) else Array[f32, len(shape)]
    launch = of(array)

    def fresh() -> tuple[int, ...]:
        return tuple(int(rng.integers(0, 5)) if extent is None else extent for extent in shape)

    made_ready(launch, ptxdsl.empty(fresh(), np.float32))
    for _ in range(20):
        assert compared(cu, launch, ptxdsl.empty(fresh(), np.float32))
    for other in ((1,) * (len(shape) + 1), tuple(extent + 1 for extent in fresh())):
        compared(cu, launch, ptxdsl.empty(other, np.float32))


@pytest.mark.parametrize("annotation", [Ptr[f32], Array[f32, 2], Array[f32, None, 4], Array[f32, 2, 4], Array[f32, 1]])
@pytest.mark.parametrize("stores", [False, True])
def test_cuda_arrays_of_all_shapes(cu: Standin, rng: np.random.Generator, annotation: Any, stores: bool) -> None:
    """Shapes, strides and addresses that fit, or nearly: what one way takes the other takes, and as the same."""
    @ptx_kernel
    def k(x: annotation) -> None:
        if stores:
            x[(0,) * len(annotation.shape) if hasattr(annotation, "shape") else 0] = 1.0
        else:
            ptx.membar.gl()

    rank = len(getattr(annotation, "shape", (0,)))
    static = [extent for extent in getattr(annotation, "shape", ()) if extent is None]
    cu.layout = "Q" + "I" * (len(static) + (rank - 1) * (None in getattr(annotation, "shape", ())[1:]))
    launch, x = k[1, 32], ptxdsl.empty(4096, np.float32)
    usual = tuple(extent or 3 for extent in getattr(annotation, "shape", (None,)))
    made_ready(launch, CudaArray(x.address, usual))
    made = 0
    for _ in range(400):
        shape = tuple(int(n) for n in rng.choice([0, 1, 2, 3, 4, 4], rng.choice([rank, rank, rank, 1, 2, 3])))
        if rng.random() < 0.5:
            shape = usual
        dense = [4 * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        strides = [int(rng.choice([s, s, s, s, 0, 4, 16, 32, -4, 6, 4 << 32])) for s in dense]
        address = x.address + int(rng.choice([0, 0, 4, 1, 2]))
        interface = {"strides": tuple(strides)} if rng.random() < 0.6 else {"strides": None}
        made += compared(cu, launch, CudaArray(address, shape, **interface, readonly=bool(rng.random() < 0.1)))
    assert made > 30


def test_cuda_arrays_that_are_odd(cu: Standin) -> None:
    cu.layout, launch, x = "Q", of(Ptr[f32]), ptxdsl.empty(64, np.float32)
    made_ready(launch, CudaArray(x.address, (4,)))
    assert compared(cu, launch, CudaArray(x.address, (8,), typestr=str(b"<f4", "ascii")))
    assert compared(cu, launch, CudaArray(x.address, (8,), mask=None, stream=None, descr=[("", "<f4")]))
    assert compared(cu, launch, CudaArray(0, (0,)))
    before = taken(launch)
    launch(CudaArray(0, (4,)))  # elements at address 0 are for the long way to explain
    assert taken(launch) == before
    for odd in (
        CudaArray(x.address, (4,), typestr="<i4"), CudaArray(x.address, (4,), typestr=">f4"),
        CudaArray(x.address, (4,), mask=CudaArray(0, (0,))), CudaArray(x.address, [4]),  # type: ignore[arg-type]
        CudaArray(x.address, (1,) * 9), CudaArray(x.address, (4,), strides=[4]),
    ):
        compared(cu, launch, odd)
    broken = CudaArray(x.address, (4,))
    del broken.__cuda_array_interface__
    with pytest.raises((ptxdsl.LaunchError, AttributeError)):
        launch(broken)
    later = CudaArray(x.address, (4,))
    later.__cuda_array_interface__["data"] = (None, False)
    compared(cu, launch, later)


def test_an_array_that_is_there_once(cu: Standin) -> None:
    """What an object raises when it is looked at again is no error of a launch that was made."""
    x = ptxdsl.empty(64, np.float32)

    class Once:
        address, times = x.address, 0

        @property
        def __cuda_array_interface__(self) -> Any:
            self.times += 1
            if self.times % 3 == 0:
                raise ValueError("no more")
            return CudaArray(self.address, (4,)).__cuda_array_interface__

    cu.layout, launch = "Q", of(Ptr[f32])
    for _ in range(5):
        launch(Once())
    assert len(cu.launches) == 5


def test_the_stream_on_which_a_cuda_array_is_valid(cu: Standin) -> None:
    @ptx_kernel
    def k(x: Ptr[f32], y: Ptr[f32]) -> None:
        ptx.membar.gl()

    cu.layout, x = "QQ", ptxdsl.empty(64, np.float32)
    with driver().current():
        one, other = (int(driver().call("cuStreamCreate", 1)) for _ in range(2))

    def array(stream: int | None) -> CudaArray:
        return CudaArray(x.address, (4,), stream=stream)

    launch = k[1, 32, one]
    made_ready(launch, array(None), array(one))
    assert compared(cu, launch, array(one), array(one))
    waits = len(cu.waits)
    assert not compared(cu, launch, array(None), array(other))
    assert not compared(cu, launch, array(one), array(1))
    assert len(cu.waits) == waits + 4
    default = k[1, 32]
    made_ready(default, array(1), array(None))
    assert compared(cu, default, array(1), array(0))
    assert not compared(cu, default, array(1), array(one))


def test_several_gpus(cu: Standin) -> None:
    cu.count, cu.layout = 2, "Q"
    x, launch = ptxdsl.empty(64, np.float32), of(Ptr[f32])

    class Placed(CudaArray):
        device: Any = 0

    made_ready(launch, Placed(x.address, (4,)))
    other = Placed(x.address, (4,))
    other.device = SimpleNamespace(id=0)
    assert compared(cu, launch, Placed(x.address, (8,)))
    compared(cu, launch, other)
    before = taken(launch)
    other.device = 1
    launch(other)
    assert taken(launch) == before


def test_arrays_of_bf16_by_their_dtype(cu: Standin) -> None:
    cu.layout, x = "Q", ptxdsl.empty(64, np.float32)
    launch = of(Ptr[TYPES["bf16"]])

    class Named(CudaArray):
        dtype = np.dtype(ml_dtypes.bfloat16)

    class Other(CudaArray):
        dtype = np.dtype(ml_dtypes.float8_e5m2)

    made_ready(launch, Named(x.address, (4,), "<V2"))
    odd = Named(x.address, (4,), "<V2")
    odd.dtype = np.dtype(np.float16)  # type: ignore[misc]
    assert not compared(cu, launch, odd)
    assert not compared(cu, launch, Other(x.address, (4,), "<V2"))


# Structs, descriptors, handles


def parameters_of(cu: Standin, *sizes: int) -> list[bytes]:
    """The bytes of all parameters of each launch to come."""
    seen: list[bytes] = []

    def bound(_: object, pointers: int) -> Any:
        addresses = (ctypes.c_uint64 * len(sizes)).from_address(pointers)
        seen.append(b"".join(ctypes.string_at(at, size) for at, size in zip(addresses, sizes)))
        return lambda: None

    cu.layout = None
    cu.bound = bound  # type: ignore[method-assign]
    return seen


def test_structs_by_value(cu: Standin, rng: np.random.Generator) -> None:
    text = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .align 4 .b8 s[12], .param .u64 p, .param .b32 bits) { ret; }
"""

    class Three(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int32), ("b", ctypes.c_float), ("c", ctypes.c_uint32)]

    seen = parameters_of(cu, 12, 8, 4)
    kernel, x = ptxdsl.load(text)["k"], ptxdsl.empty(64, np.float32)

    def checked(launch: Any, *args: Any) -> bool:
        before = taken(launch)
        launch(*args)
        launch.long_way(*args)
        assert seen[-1] == seen[-2]
        return taken(launch) > before

    def fresh() -> Any:
        a, c = (int(n) for n in rng.integers(0, 1 << 31, 2))
        return Three(a, float(rng.normal()), c)

    record = np.zeros((), "i4,f4,u4")[()]
    for s in (fresh(), bytes(12), record, bytearray(12)):
        for p in (x, 12345, CudaArray(x.address, (4,), "<i8")):
            launch = kernel[1, 32]
            launch.prepared.plans = b""
            for bits in (1, 1.5, np.float32(2.5), np.int32(-7), np.uint32(9)):
                made_ready(launch, s, p, bits)
                assert checked(launch, s, p, bits)
            assert checked(launch, s, p, -1)
    launch = kernel[1, 64]
    made_ready(launch, fresh(), 1, 1.0)
    for _ in range(20):
        assert checked(launch, fresh(), int(rng.integers(1 << 62)) << 2, float(np.float32(rng.normal())))
    for wrong in ((bytes(11), x, 1), (Three(), -1 << 64, 1), (Three(), x, 1 << 32), (Three(), x, "1")):
        with pytest.raises(ptxdsl.LaunchError):
            launch(*wrong)


def test_tensor_maps(cu: Standin) -> None:
    launch, seen = of(TensorMap), parameters_of(cu, 128)
    x, y = (ptxdsl.empty((64, 64), np.float16) for _ in range(2))
    made_ready(launch, ptxdsl.tensor_map(x, (8, 8)))
    for array in (x, y):
        made = ptxdsl.tensor_map(array, (16, 8))
        assert compared(cu, launch, made)
        assert seen[-2:] == [bytes(made)] * 2
    assert compared(cu, launch, ptxdsl.tensor_map(x, (16, 8), swizzle=32))
    there = ptxdsl.tensor_map(np.zeros((64, 64), np.float16), (8, 8))
    refuses(cu, launch, there, match="is a tensor map of an array in host memory")
    made_ready(launch, bytes(128))
    refuses(cu, launch, bytes(127), match="wants an object of 128 bytes")


def test_tensor_maps_of_tiles(cu: Standin) -> None:
    """What a tile asks of a map is asked at each launch."""
    @ptx_kernel
    def k(source: TensorMap) -> None:
        tile = tiles.Tile(dynamic_shared(f16, align=1024), 64, 64, 128)
        tma.load(tile, source, (0, 0), mbarrier.declare())

    parameters_of(cu, 128)
    x = ptxdsl.empty((128, 128), np.float16)
    launch = k[1, 32, None, 8192]
    made_ready(launch, ptxdsl.tensor_map(x, (64, 64), swizzle=128))
    assert compared(cu, launch, ptxdsl.tensor_map(ptxdsl.empty((64, 256), np.float16), (64, 64), swizzle=128))
    for box, swizzle in (((64, 32), 64), ((32, 64), 128), ((64, 64), None)):
        refuses(cu, launch, ptxdsl.tensor_map(x, box, swizzle=swizzle), match="wants elements of 16 bits")


# Tensors


class Tensor:
    """As much of a tensor as a launch asks for."""

    requires_grad = negated = False
    layout, dtype = "torch.strided", "torch.float32"
    device = SimpleNamespace(type="cuda", index=0)

    def __init__(self, address: int, shape: tuple[int, ...] = (4,), strides: tuple[int, ...] = (1,)) -> None:
        self.address, self.shape, self.strides, self.version = address, shape, strides, 0

    def data_ptr(self) -> int:
        return self.address

    def stride(self) -> tuple[int, ...]:
        return self.strides

    def element_size(self) -> int:
        return 4

    def is_neg(self) -> bool:
        return self.negated

    def is_inference(self) -> bool:
        return False

    def get_device(self) -> int:
        return int(self.device.index)


Tensor.__module__ = "torch"


def torch_standin(monkeypatch: pytest.MonkeyPatch) -> Any:
    def increment(tensor: Tensor) -> None:
        tensor.version += 1

    graph = SimpleNamespace(increment_version=increment)
    current = SimpleNamespace(number=0x44)
    torch: Any = SimpleNamespace(grad=True, autograd=SimpleNamespace(graph=graph), current=current)
    torch.is_grad_enabled = lambda: torch.grad
    torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda _: current.number)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


def test_tensors_without_the_exchange_api(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = torch_standin(monkeypatch)

    @ptx_kernel
    def k(x: Ptr[f32], y: Array[f32, 2]) -> None:
        y[0, 0] = x[0]

    cu.layout, memory = "QQIII", ptxdsl.empty(64, np.float32)
    x, y = Tensor(memory.address), Tensor(memory.address, (2, 3), (8, 1))
    launch = k[1, 32]
    made_ready(launch, x, y)
    assert (x.version, y.version) == (0, 3)
    assert cu.launches[-1].stream == 0x44
    torch.current.number = 0x45
    before = taken(launch)
    launch(x, y)  # the first launch on a stream takes the long way
    y.version -= 1
    assert taken(launch) == before
    assert compared(cu, launch, x, y)
    assert cu.launches[-2].stream == 0x45
    assert (x.version, y.version) == (0, 5)
    for name, value in (
        ("dtype", "torch.int32"), ("layout", "torch.sparse"), ("negated", True), ("address", memory.address + 2),
        ("strides", (2,)),
    ):
        odd = Tensor(memory.address)
        setattr(odd, name, value)
        assert not compared(cu, launch, odd, y)
    assert y.version == 5
    y.requires_grad = True
    refuses(cu, launch, x, y, match="requires a gradient")
    torch.grad = False
    assert compared(cu, launch, x, y)


def test_real_tensors_through_the_exchange_api(cu: Standin, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    exchanged_tensors = pytest.importorskip("exchanged_tensors")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("torch before 2.10")

    @ptx_kernel
    def k(x: Ptr[f32], y: Array[f32, 2]) -> None:
        y[0, 0] = x[0]

    cu.layout, memory = "QQIII", torch.zeros(4096)
    stream = ptxdsl.Stream()
    with exchanged_tensors.on_gpu(stream.handle):
        launch, x, y = k[1, 32], torch.zeros(8), torch.zeros(3, 4)
        made_ready(launch, x, y)
        assert cu.launches[-1].stream == stream.handle
        assert (x._version, y._version) == (0, 3)
        made = 0
        for _ in range(300):
            shape = [int(n) for n in rng.choice([0, 1, 2, 3], int(rng.choice([1, 2, 2, 2, 3])))]
            strides = [int(rng.choice([1, 4, 12, 0])) for _ in shape[1:]] + [1] * bool(shape)
            tensor = memory.as_strided(shape, strides, int(rng.integers(8)))
            made += compared(cu, launch, tensor.contiguous() if rng.random() < 0.7 else tensor, tensor)
        assert made > 30
        negated = torch.zeros(4, dtype=torch.complex64).conj().imag.as_strided((4,), (1,))
        weight = torch.zeros(3, 4, requires_grad=True)
        for odd in ((x.int(), y), (negated, y), (x, weight), (x.double(), y), (x.to_sparse(), y)):
            assert not compared(cu, launch, *odd)
        with torch.no_grad():
            version = weight._version
            assert compared(cu, launch, x, weight)
            assert weight._version == version + 2
        with torch.inference_mode():
            assert compared(cu, launch, x, torch.zeros(3, 4))
        parameter = torch.nn.Parameter(torch.zeros(8))
        made_ready(launch, parameter, y)


def test_real_tensors_in_host_memory_are_read_right(rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    from ptxdsl.gpu.argument_plans import exchange_functions
    from ptxdsl.gpu.launch_code.layout import Tensor as Read

    functions = exchange_functions(torch.Tensor)
    if functions is None:
        pytest.skip("torch before 2.10")
    read = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(functions[0])
    for dtype, (code, bits) in {
        torch.float32: (2, 32), torch.float64: (2, 64), torch.float16: (2, 16), torch.bfloat16: (4, 16),
        torch.int8: (0, 8), torch.int64: (0, 64), torch.uint8: (1, 8), torch.bool: (6, 8),
    }.items():
        for _ in range(10):
            shape = tuple(int(n) for n in rng.integers(1, 5, int(rng.integers(0, 4))))
            whole = torch.zeros((*shape, 3), dtype=dtype)
            tensor = whole[..., int(rng.integers(3))]
            found = Read()
            assert read(tensor, ctypes.addressof(found)) == 0
            numbers = ctypes.c_int64 * len(shape)
            extents, steps = (numbers.from_address(at)[:] if shape else [] for at in (found.shape, found.strides))
            assert (found.data + found.byte_offset, found.device, found.ndim) == (tensor.data_ptr(), 1, len(shape))
            assert found.dtype == struct.unpack("<I", struct.pack("<BBH", code, bits, 1))[0]
            assert (tuple(extents), tuple(steps)) == (shape, tensor.stride())


def test_what_has_no_short_way_is_looked_at_ever_less_often(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that is refused a plan is not asked for one each time: host arrays are copied anew anyway."""
    from ptxdsl.gpu.launch import GpuRun

    asked = [0]
    plan = GpuRun.plan

    def counted(self: GpuRun, *args: Any) -> Any:
        asked[0] += 1
        return plan(self, *args)

    monkeypatch.setattr(GpuRun, "plan", counted)

    @ptx_kernel
    def k(x: Ptr[u32]) -> None:
        ptx.membar.gl()

    cu.layout, x = "Q", np.zeros(4, np.uint32)
    with pytest.warns(ptxdsl.PerformanceWarning):
        k[1, 32](x)
    for _ in range(99):
        k[1, 32](x)
    assert asked == [6]  # at the 2nd, 4th, 8th, 16th, 32nd and 64th
