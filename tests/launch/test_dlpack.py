"""DLPack, in and out: of every dtype for which it has a code, and each capsule released once."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxdsl
from ptxdsl import LaunchError, Ptr, bf16, f32, from_dlpack, ptx, ptx_kernel, use
from ptxdsl.launch import dlpack
from ptxdsl.launch.arrays import Unreadable, view, view_by_dlpack

pytestmark = pytest.mark.usefixtures("young_heap")

NATIVE = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
          "float64", "complex64", "complex128"]
FOREIGN = [
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int2", "int4", "uint2",
    "uint4",
]
NARROW = [name for name in FOREIGN if name.startswith(("float4", "float6", "int", "uint"))]
VERSIONED, OLD = b"dltensor_versioned", b"dltensor"


def dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name) if name in FOREIGN else name)


def bits(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Random elements: bits of the width of the type."""
    kind = dtype(name)
    widths = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4, "bool": 1}
    width = widths.get(name, 6 if name.startswith("float6") else 8)
    return rng.integers(0, 1 << width, int(np.prod(shape)) * kind.itemsize, np.uint8).view(kind).reshape(shape)


def opened(capsule: object) -> tuple[Any, Any]:
    """What a capsule says, which may be gone afterwards."""
    tensor, managed = dlpack._opened(capsule)
    fields = [name for name, *_ in tensor._fields_ if name not in ("shape", "strides")]
    said = SimpleNamespace(
        **{name: getattr(tensor, name) for name in fields}, shape=tuple(tensor.shape[n] for n in range(tensor.ndim))
    )
    head = managed and SimpleNamespace(major=managed.major, minor=managed.minor, flags=managed.flags)
    return said, head


@pytest.fixture(autouse=True)
def on_the_emulator() -> Any:
    with use("emulator"):
        yield


@pytest.mark.parametrize("name", NATIVE + FOREIGN)
def test_every_dtype_goes_out_and_comes_in(name: str, rng: np.random.Generator) -> None:
    source = bits(rng, (5, 7), name)
    x = ptxdsl.to_device(source)
    assert x.__dlpack_device__() == (1, 0)
    for version in [(1, 0), (1, 1), (2, 5)]:
        _, managed = opened(x.__dlpack__(max_version=version))
        assert (managed.major, managed.flags & 1) == (1, 0)
    y = from_dlpack(x[1:, ::2])
    assert (y.dtype, y.shape, y.strides, y.address) == (x.dtype, (4, 4), x[1:, ::2].strides, x[1:].address)
    assert y.numpy().tobytes() == source[1:, ::2].tobytes()
    if name not in FOREIGN:
        z = np.from_dlpack(x)
        assert z.ctypes.data == x.address
        assert z.dtype == source.dtype


@pytest.mark.parametrize("name", NATIVE + FOREIGN)
def test_capsules_before_version_1(name: str, rng: np.random.Generator) -> None:
    x = ptxdsl.to_device(bits(rng, (3,), name))
    for version in (None, (0, 8)):
        if name in NARROW:
            with pytest.raises(BufferError, match=f"^DLPack before version 1.1 cannot say that each {name} has a byte"):
                x.__dlpack__(max_version=version)
        else:
            tensor, managed = opened(x.__dlpack__(max_version=version))
            assert managed is None
            assert (tensor.data, tensor.shape, tensor.lanes) == (x.address, (3,), 1)


def test_the_codes_are_those_of_the_header() -> None:
    """Written down again from dlpack.h 1.1, by the names of its enumeration."""
    codes = {"int32": (0, 32), "uint8": (1, 8), "float16": (2, 16), "bfloat16": (4, 16), "complex64": (5, 64),
             "bool": (6, 8), "float8_e3m4": (7, 8), "float8_e4m3": (8, 8), "float8_e4m3b11fnuz": (9, 8),
             "float8_e4m3fn": (10, 8), "float8_e4m3fnuz": (11, 8), "float8_e5m2": (12, 8), "float8_e5m2fnuz": (13, 8),
             "float8_e8m0fnu": (14, 8), "float6_e2m3fn": (15, 6), "float6_e3m2fn": (16, 6), "float4_e2m1fn": (17, 4),
             "int4": (0, 4), "uint2": (1, 2)}
    for name, (code, width) in codes.items():
        tensor, managed = opened(ptxdsl.empty(2, dtype(name)).__dlpack__(max_version=(1, 1)))
        assert (tensor.code, tensor.bits, tensor.lanes, tensor.device_type) == (code, width, 1, 1)
        assert managed.flags == (4 if width < 8 else 0)


def test_dtypes_without_a_code() -> None:
    with pytest.raises(BufferError, match=r"^DLPack has no code for \[\('a', '<f4'\)\]"):
        ptxdsl.empty(3, np.dtype([("a", np.float32)])).__dlpack__()


# Who owns the memory


@pytest.mark.parametrize("version", [None, (1, 1)])
def test_a_capsule_that_nobody_takes_releases_the_array(version: Any) -> None:
    x = ptxdsl.zeros(3, bf16)
    where, capsules = weakref.ref(x), [x.__dlpack__(max_version=version) for _ in range(3)]
    del x
    gc.collect()
    assert where() is not None
    capsules.pop()
    capsules.pop()
    assert where() is not None
    capsules.pop()
    assert where() is None


@pytest.mark.parametrize("version", [None, (1, 1)])
def test_a_capsule_that_is_taken_is_released_by_its_deleter_alone(version: Any) -> None:
    """As a consumer in C does it: it renames the capsule, and calls the deleter some time later, once."""
    x = ptxdsl.zeros(3, bf16)
    where, capsule = weakref.ref(x), x.__dlpack__(max_version=version)
    name = VERSIONED if version else OLD
    address = dlpack._pointer(capsule, name)
    rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_SetName", ctypes.pythonapi)
    )
    used = b"used_" + name
    rename(capsule, used)
    del x, capsule
    gc.collect()
    assert where() is not None
    # the deleter is the last field but flags and tensor, or the last one
    at = address + (16 if version else ctypes.sizeof(dlpack._DLTensor) + 8)
    deleter = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(ctypes.c_void_p.from_address(at).value)
    deleter(address)
    assert where() is None


def test_numpy_takes_capsules(rng: np.random.Generator) -> None:
    x = ptxdsl.to_device(rng.random((4, 5), np.float32))
    where, address = weakref.ref(x), x.address
    y, z = np.from_dlpack(x[1:]), np.from_dlpack(x.T)
    assert (y.ctypes.data, z.shape, z.strides) == (address + 20, (5, 4), (4, 20))
    expected = x.numpy()
    del x
    gc.collect()
    assert np.array_equal(y, expected[1:]) and np.array_equal(z, expected.T)
    del y
    assert where() is not None
    del z
    assert where() is None


def test_what_comes_in_is_kept_and_released(rng: np.random.Generator) -> None:
    class Source(np.ndarray):
        pass

    source = rng.random((6, 4)).view(Source)
    where = weakref.ref(source)
    x = from_dlpack(source)
    part = x[2:, 1]
    expected = np.array(source)
    del x, source
    gc.collect()
    assert where() is not None
    assert np.array_equal(part.numpy(), expected[2:, 1])
    del part
    assert where() is None


def test_capsules_that_outlive_the_interpreter() -> None:
    code = """
import ctypes, numpy as np, ptxdsl
x = ptxdsl.to_device(np.zeros(3, np.float32), backend="emulator")
keep = x.__dlpack__(max_version=(1, 1))
ctypes.pythonapi.Py_IncRef(ctypes.py_object(keep))
y = np.from_dlpack(x)
print("done")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")


# The arguments


def test_copies_and_devices() -> None:
    x = ptxdsl.to_device(np.arange(6, dtype=np.int32))
    for copy in (None, False):
        tensor, managed = opened(x.__dlpack__(max_version=(1, 1), copy=copy, dl_device=(1, 0)))
        assert (tensor.data, managed.flags & 2) == (x.address, 0)
    tensor, managed = opened(x.__dlpack__(max_version=(1, 1), copy=True))
    assert (tensor.data == x.address, managed.flags & 2) == (False, 2)
    with pytest.raises(BufferError, match=r"^an array on device \(1, 0\) cannot be given on \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match=r"^an array on device \(1, 0\) is on \(2, 1\) as a copy only"):
        x.__dlpack__(dl_device=(2, 1), copy=False)
    for stream in (0, 1, -1, 77):
        with pytest.raises(BufferError, match=f"^memory of the host is on no stream, and stream={stream} was asked"):
            x.__dlpack__(stream=stream)


def test_from_dlpack() -> None:
    source = np.arange(6, dtype=np.int32)
    x = from_dlpack(source)
    assert (x.address, x.backend, type(x)) == (source.ctypes.data, "emulator", ptxdsl.DeviceArray)
    y = from_dlpack(source, copy=True)
    y[0] = 9
    assert source[0] == 0
    x[0] = 9
    assert source[0] == 9
    assert from_dlpack(source, copy=False, device=0).address == x.address
    source.flags.writeable = False
    z = from_dlpack(source)
    with pytest.raises(LaunchError, match="^the array may not be written: it shows memory of another library"):
        z[0] = 1
    with pytest.raises(LaunchError, match="^the array may not be written"):
        z[1:3][0] = 1
    assert not np.asarray(z).flags.writeable
    w = z.copy()
    w[0] = 1
    assert w.numpy()[0] == 1
    for wrong, message in [
        (3, "the int 3 has no DLPack that ptxdsl reads"), ([1, 2], "a list has no DLPack that ptxdsl reads"),
    ]:
        with pytest.raises(LaunchError) as caught:
            from_dlpack(wrong)
        assert (caught.value.message, caught.value.hint) == (message, "`ptxdsl.to_device(array)` copies")
    with pytest.raises(LaunchError, match="^an ndarray, which says BufferError: .*, is no source of DLPack"):
        from_dlpack(np.zeros(3, "M8[s]"))


def test_read_only_memory_is_not_stored_to() -> None:
    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        x[ptx.tid.x] = 1.0

    source = np.zeros(4, np.float32)
    k[1, 4](from_dlpack(source))
    assert source.tolist() == [1.0] * 4
    source.flags.writeable = False
    with pytest.raises(LaunchError, match=", read-only; the kernel writes to it") as caught:
        k[1, 4](from_dlpack(source))
    assert caught.value.hint == "`x_copy = x.copy()`: pass it, and the result is in it"


class Foreign:
    """A capsule of another library, of whatever is said to be in it."""

    def __init__(self, array: np.ndarray, version: tuple[int, int] | None = (1, 1), **changes: int) -> None:
        self.array, self.version, self.changes = array, version, changes

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.changes.get("device_type", 1), 0

    def __dlpack__(self, **_: Any) -> Any:
        capsule = self.array.__dlpack__(max_version=self.version) if self.version else self.array.__dlpack__()
        tensor, managed = dlpack._opened(capsule)
        for name, value in self.changes.items():
            setattr(managed if name in ("flags", "major") else tensor, name, value)
        return capsule


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"code": 17, "bits": 4}, "says ValueError: its elements are float4_e2m1fn, several in a byte"),
        ({"code": 0, "bits": 4, "lanes": 1}, "says ValueError: its elements are int4, several in a byte"),
        ({"code": 0, "bits": 2, "lanes": 2}, "says ValueError: its elements are int2, several in a byte"),
        ({"major": 2}, "says BufferError: its DLPack is of version 2.1"),
    ],
)
def test_what_cannot_be_read(changes: dict[str, int], problem: str) -> None:
    with pytest.raises(Unreadable) as caught:
        view(Foreign(np.zeros(4, np.uint8), **changes))
    assert str(caught.value).startswith(problem.replace("2.1", "2."))


def test_vectors_and_other_devices() -> None:
    seen = view(Foreign(np.zeros(4, np.uint8), code=17, bits=4, lanes=2))
    assert seen is not None
    assert (seen.dtype, seen.itemsize, seen.shape) == ("float4_e2m1fn_x2", 1, (4,))
    seen = view(Foreign(np.zeros(4, np.uint64), code=2, bits=32, lanes=2))
    assert seen is not None
    assert (seen.dtype, seen.itemsize) == ("float32_x2", 8)
    assert view_by_dlpack(Foreign(np.zeros(4), device_type=14)) is None
    with pytest.raises(LaunchError, match="^numpy has no dtype float4_e2m1fn_x2"):
        from_dlpack(Foreign(np.zeros(4, np.uint8), code=17, bits=4, lanes=2))


def test_with_torch(rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float32", "int64", "bool", "complex64"):
        x = ptxdsl.to_device(bits(rng, (4, 6), name))
        tensor = torch.from_dlpack(x)
        assert (tensor.dtype, tuple(tensor.shape), tensor.data_ptr()) == (getattr(torch, name), (4, 6), x.address)
        back = from_dlpack(tensor[1:, ::2])
        assert back.numpy().tobytes() == x.numpy()[1:, ::2].tobytes()
        where = weakref.ref(x)
        del x, back
        gc.collect()
        assert where() is not None
        del tensor
        assert where() is None
        x = ptxdsl.to_device(tensor := torch.zeros(3, dtype=getattr(torch, name)))
        assert x.dtype == dtype(name)
        x.copy_from(tensor)
