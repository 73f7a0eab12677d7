"""Geometry, and what a kernel's parameters take: arguments that are right, and a message for each that is not."""

from __future__ import annotations

import ctypes
import math
import types
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl.launch.arguments import Binder
from ptxdsl.launch.scalars import elements
from ptxdsl.config import SANITIZERS
from ptxdsl.launch.arrays import View, contiguous, describe, view
from ptxdsl.kernel.device_arrays import empty, to_device, zeros
from ptxdsl.errors import LaunchError
from ptxdsl.launch import Buffer, LaunchConfig, Scalar
from ptxdsl.ir.signature import Array, Ptr, Signature, TensorMap
from ptxdsl.types import TYPES, b32, bf16, e4m3, f16, f16x2, f32, s32, u8, u32, u64


def error_of(call: Callable[[], object]) -> LaunchError:
    """The LaunchError that a call raises; it is at a line of this file and is a ValueError."""
    with pytest.raises(LaunchError) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    return caught.value


def binder(*annotations: Any, written: tuple[str, ...] = (), foreign: bool = False) -> Binder:
    """The binder of a kernel `k(a, b, ...)` with these annotations."""

    def k() -> None: ...

    names = "abcdefgh"[: len(annotations)]
    code = f"def k({', '.join(names)}): pass"
    scope: dict[str, Any] = {}
    exec(code, scope)
    scope["k"].__annotations__ = dict(zip(names, annotations))
    return Binder("k", Signature.of(scope["k"]).parameters, frozenset(written), foreign=foreign)


# ---------------------------------------------------------------------------------------------------------------------
# Geometry


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(4, (4, 1, 1)), ((4,), (4, 1, 1)), ((4, 2), (4, 2, 1)), ([4, 2, 3], (4, 2, 3)), (np.int64(7), (7, 1, 1)),
     ((np.uint8(2), 3), (2, 3, 1)), (2**31 - 1, (2**31 - 1, 1, 1)), ((1, 65535, 65535), (1, 65535, 65535))],
)
def test_grids(given: Any, wanted: tuple[int, int, int]) -> None:
    config = LaunchConfig(given, 1)
    assert config.grid == wanted
    assert config.blocks == math.prod(wanted)


@pytest.mark.parametrize("given", [1, 1024, (1, 1024), (1, 1, 64), (32, 32), (8, 8, 16)])
def test_blocks(given: Any) -> None:
    config = LaunchConfig(1, given)
    assert config.threads == math.prod(config.block)


BAD_GEOMETRY: list[tuple[dict[str, Any], str, str | None]] = [
    ({"grid": 0}, "grid.x is 0; it can be 1 to 2147483647", None),
    ({"grid": -1}, "grid.x is -1; it can be 1 to 2147483647", None),
    ({"grid": 2**31}, "grid.x is 2147483648; it can be 1 to 2147483647", None),
    ({"grid": (1, 65536)}, "grid.y is 65536; it can be 1 to 65535", None),
    ({"grid": (1, 1, 0)}, "grid.z is 0; it can be 1 to 65535", None),
    ({"grid": ()}, "grid is an int or a tuple of 1 to 3 ints, not ()", "write `grid=4` or `grid=(4, 2)`"),
    ({"grid": (1, 2, 3, 4)}, "grid is an int or a tuple of 1 to 3 ints, not (1, 2, 3, 4)",
     "write `grid=4` or `grid=(4, 2)`"),
    ({"grid": 3.0}, "grid.x is an int, not 3.0", "write `3`"),
    ({"grid": 3.9}, "grid.x is an int, not 3.9", "round up: `cdiv(n, 256)` blocks of 256 threads"),
    ({"grid": math.inf}, "grid.x is an int, not inf", "round up: `cdiv(n, 256)` blocks of 256 threads"),
    ({"grid": "4"}, "grid.x is an int, not '4'", None),
    ({"grid": None}, "grid.x is an int, not None", None),
    ({"grid": True}, "grid.x is an int, not True", None),
    ({"block": 1025}, "block.x is 1025; it can be 1 to 1024", None),
    ({"block": (1, 1, 65)}, "block.z is 65; it can be 1 to 64", None),
    ({"block": (64, 32)}, "block (64, 32, 1) has 2048 threads; the limit is 1024",
     "make the block smaller and the grid larger"),
    ({"shared": -1}, "shared is -1 bytes; it can be 0 to 232448 bytes", None),
    ({"shared": 232449}, "shared is 232449 bytes; it can be 0 to 232448 bytes", None),
    ({"shared": 1.5}, "shared is an int, not 1.5", None),
    ({"grid": 3, "cluster": 2}, "cluster.x is 2, which does not divide grid.x = 3 (grid counts blocks)",
     "round grid.x up to 4"),
    ({"grid": (4, 5), "cluster": (2, 2)}, "cluster.y is 2, which does not divide grid.y = 5 (grid counts blocks)",
     "round grid.y up to 6"),
    ({"grid": 16, "cluster": 16}, "cluster.x is 16; it can be 1 to 8", None),
    ({"grid": (8, 8), "cluster": (4, 4)}, "cluster (4, 4, 1) has 16 blocks; the limit is 8", None),
    ({"cooperative": 1}, "cooperative is True or False, not 1", None),
    ({"stream": "main"}, "stream is a CUDA stream or its handle, not 'main'",
     "pass an int, or an object with `__cuda_stream__` (cuda.core, torch, CuPy)"),
    ({"stream": -3}, "stream is a CUDA stream or its handle, not -3",
     "pass an int, or an object with `__cuda_stream__` (cuda.core, torch, CuPy)"),
    ({"sanitize": "rase"}, "'rase' is no check of the sanitizer", "one or more of memory, race, init, barrier"),
    ({"sanitize": 3}, "3 is no check of the sanitizer", "one or more of memory, race, init, barrier"),
]


@pytest.mark.parametrize(("given", "message", "hint"), BAD_GEOMETRY, ids=lambda value: str(value)[:40])
def test_bad_geometry(given: dict[str, Any], message: str, hint: str | None) -> None:
    error = error_of(lambda: LaunchConfig(**{"grid": 1, "block": 1, **given}))
    assert (error.message, error.hint) == (message, hint)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(None, None), (False, set()), (True, set(SANITIZERS)), ("race", {"race"}), ("race,init", {"race", "init"}),
     (["memory"], {"memory"}), ((), set()), ("all", set(SANITIZERS)), ("off", set()), ("race, init", {"race", "init"})],
)
def test_sanitize(given: Any, wanted: set[str] | None) -> None:
    assert LaunchConfig(1, 1, sanitize=given).sanitize == wanted


@pytest.mark.parametrize(
    ("stream", "handle"),
    [(None, None), (0, 0), (77, 77), (types.SimpleNamespace(__cuda_stream__=lambda: (0, 78)), 78),
     (types.SimpleNamespace(cuda_stream=79), 79), (types.SimpleNamespace(ptr=80), 80),
     (types.SimpleNamespace(handle=types.SimpleNamespace(value=81)), 81)],
)
def test_streams(stream: Any, handle: int | None) -> None:
    assert LaunchConfig(1, 1, stream=stream).stream == handle


# ---------------------------------------------------------------------------------------------------------------------
# Numbers

INTEGERS = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"]


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str, rng: np.random.Generator) -> None:
    kind, info = TYPES[name], np.iinfo(TYPES[name].numpy_name)
    bind = binder(kind)
    values = [0, 1, int(info.min), int(info.max), *(int(v) for v in rng.integers(info.min, info.max, 20, info.dtype))]
    for value in values:
        expected = np.array(value, info.dtype).tobytes()
        assert bind((value,)) == [Scalar("a", expected)]
        assert bind((info.dtype.type(value),)) == [Scalar("a", expected)]
    for value in (int(info.min) - 1, int(info.max) + 1, 10**30):
        error = error_of(lambda value=value: bind((value,)))
        wanted = f"{name} wants an int from {info.min} to {info.max}"
        assert error.message == f"argument `a` of kernel `k` is the int {value}; {wanted}"


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64", "e4m3", "e5m2"])
def test_floats(name: str, rng: np.random.Generator) -> None:
    kind = TYPES[name]
    dtype = np.dtype(getattr(ml_dtypes, kind.numpy_name, None) or kind.numpy_name)
    bind = binder(kind)
    for value in [0.0, -0.0, 1.5, 3, -2, *rng.normal(0, 5, 20).tolist()]:
        expected = np.array(value, np.float64).astype(dtype).tobytes()
        assert bind((value,)) == [Scalar("a", expected)]
        assert bind((np.array(value, np.float64).astype(dtype)[()],)) == [Scalar("a", expected)]
    (scalar,) = bind((math.nan,))
    assert isinstance(scalar, Scalar)
    assert np.isnan(np.frombuffer(scalar.data, dtype)[0])


def test_infinity_is_a_float() -> None:
    assert binder(f32)((-math.inf,)) == [Scalar("a", np.float32(-np.inf).tobytes())]


def test_untyped_bits_take_the_bits_of_anything_of_their_size() -> None:
    bind = binder(b32)
    for value in (np.float32(1.5), np.int32(-1), np.uint32(7)):
        assert bind((value,)) == [Scalar("a", value.tobytes())]
    assert bind((-1,)) == bind((2**32 - 1,))


def test_packed_types_take_a_tuple() -> None:
    assert binder(f16x2)(((1.0, -2.0),)) == [Scalar("a", np.array([1, -2], np.float16).tobytes())]


BAD_NUMBERS: list[tuple[Any, Any, str, str | None]] = [
    (u32, 1.0, "is the float 1.0; u32 wants an int from 0 to 4294967295", "pass `1`"),
    (u32, 1.5, "is the float 1.5; u32 wants an int from 0 to 4294967295", "round it: `int(a)`"),
    (u32, True, "is the bool True; u32 wants an int from 0 to 4294967295", "pass `1`"),
    (f32, False, "is the bool False; f32 wants a float or a float32 scalar", "pass `0`"),
    (u32, np.int64(3), "is the numpy int64 3; u32 wants an int from 0 to 4294967295", "pass `np.uint32(a)`"),
    (u32, np.bool_(True), "is the numpy bool True; u32 wants an int from 0 to 4294967295", "pass `np.uint32(a)`"),
    (u32, None, "is None; u32 wants an int from 0 to 4294967295", None),
    (u32, "3", "is the str '3'; u32 wants an int from 0 to 4294967295", None),
    (u32, np.array(3), "is a numpy array of int64, shape (); u32 wants an int from 0 to 4294967295", "pass `a.item()`"),
    (u32, np.zeros((2, 2)), "is a numpy array of float64, shape (2, 2); u32 wants an int from 0 to 4294967295", None),
    (s32, 2**31, "is the int 2147483648; s32 wants an int from -2147483648 to 2147483647", None),
    (f32, np.float64(3), "is the numpy float64 3.0; f32 wants a float or a float32 scalar", "pass `np.float32(a)`"),
    (bf16, np.float32(3), "is the numpy float32 3.0; bf16 wants a float or a bfloat16 scalar", "pass `float(a)`"),
    (f32, 1e39, "is the float 1e+39; that is too large for f32", None),
    (f16, 65520.0, "is the float 65520.0; that is too large for f16", None),
    (f32, 2**24 + 1, "is the int 16777217; f32 cannot hold it exactly", "pass `float(a)` to have it rounded"),
    (f32, 10**400, "is an int; that is too large for f32", None),
    (f32, 1j, "is the complex 1j; f32 wants a float or a float32 scalar", None),
    (f16x2, 1.0, "is the float 1.0; f16x2 wants a tuple of 2 numbers", None),
    (f16x2, (1.0, 2.0, 3.0), "is a tuple; f16x2 wants a tuple of 2 numbers", None),
    (TYPES["e2m1"], 1.0, "is the float 1.0; e2m1 has no Python number", "declare `a: b8` and pass the bits"),
]


@pytest.mark.parametrize(("kind", "value", "message", "hint"), BAD_NUMBERS, ids=lambda value: str(value)[:40])
def test_bad_numbers(kind: Any, value: Any, message: str, hint: str | None) -> None:
    error = error_of(lambda: binder(kind)((value,)))
    assert (error.message, error.hint) == (f"argument `a` of kernel `k` {message}", hint)


def test_counts() -> None:
    bind = binder(u32, f32, Ptr[f32])
    cases = {
        (): "kernel `k` takes 3 arguments (a, b, c), 0 came: `a` and `b` and `c` missing",
        (1, 2.0): "kernel `k` takes 3 arguments (a, b, c), 2 came: `c` missing",
        (1, 2.0, 3, 4, 5): "kernel `k` takes 3 arguments (a, b, c), 5 came: 2 too many",
    }
    for args, message in cases.items():
        assert error_of(lambda args=args: bind(args)).message == message
    assert error_of(lambda: binder()((1,))).message == "kernel `k` takes 0 arguments, 1 came: 1 too many"
    assert error_of(lambda: binder(u32)(())).message == "kernel `k` takes 1 argument (a), 0 came: `a` missing"


def test_arguments_by_name() -> None:
    bind = binder(u32, f32, u32)
    assert bind.positional((1,), {"c": 3, "b": 2.0}) == (1, 2.0, 3)
    assert error_of(lambda: bind.positional((1,), {"a": 1, "b": 2.0})).message == "kernel `k` got argument `a` twice"
    message = "kernel `k` takes 3 arguments (a, b, c), 2 came: `b` missing"
    assert error_of(lambda: bind.positional((1,), {"c": 2})).message == message


# ---------------------------------------------------------------------------------------------------------------------
# Memory


@pytest.mark.parametrize("name", [name for name, kind in TYPES.items() if kind.numpy_name and kind.kind != "p"])
def test_pointers_take_their_dtype_in_place(name: str, rng: np.random.Generator) -> None:
    kind = TYPES[name]
    dtype = np.dtype(getattr(ml_dtypes, kind.numpy_name or "", None) or kind.numpy_name)
    array = np.frombuffer(rng.bytes(24 * dtype.itemsize), dtype).reshape(2, 3, 4).copy()
    (buffer,) = binder(Ptr[kind])((array,))
    assert isinstance(buffer, Buffer)
    assert buffer.owner is array
    assert (buffer.shape, buffer.strides, buffer.nbytes) == (array.shape, array.strides, array.nbytes)
    assert ctypes.string_at(buffer.address, buffer.nbytes) == array.tobytes()
    assert (buffer.name, buffer.writable, buffer.device) == ("a", True, None)


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [("b8", "uint8, int8, float8_e4m3fn or float8_e5m2"), ("b16", "uint16, int16, float16 or bfloat16"),
     ("b32", "uint32, int32 or float32"), ("b64", "uint64, int64 or float64"), ("b128", "uint64, int64 or float64"),
     ("f16x2", "float16"), ("bf16x2", "bfloat16"), ("u8x4", "uint8"), ("tf32", "float32"), ("e2m1", "uint8")],
)
def test_dtypes_of_memory(name: str, dtypes: str) -> None:
    assert str(elements(TYPES[name])) == dtypes


@pytest.mark.parametrize("array", [np.zeros(0, np.float32), np.zeros((0, 3), np.float32)[:, ::2], np.float32([[1]]).T])
def test_small_arrays(array: np.ndarray) -> None:
    (buffer,) = binder(Ptr[f32], written=("a",))((array,))
    assert buffer.nbytes == array.nbytes


def _readonly() -> np.ndarray:
    array = np.zeros(10, np.float32)
    array.flags.writeable = False
    return array


X = np.zeros(10, np.float32)
M = np.zeros((3, 4), np.float32)
ODD = np.frombuffer(bytearray(48), np.uint8)
ODD = ODD[1 + -ODD.ctypes.data % 4 :][:40].view(np.float32)
BAD_MEMORY: list[tuple[Any, Any, str, str | None]] = [
    (Ptr[f32], X.astype(float), "is a numpy array of float64, shape (10,); Ptr[f32] wants float32",
     "`a = a.astype(np.float32)`"),
    (Ptr[bf16], X, "is a numpy array of float32, shape (10,); Ptr[bf16] wants bfloat16",
     "`a = a.astype(ml_dtypes.bfloat16)`"),
    (Ptr[e4m3], X, "is a numpy array of float32, shape (10,); Ptr[e4m3] wants float8_e4m3fn",
     "`a = a.astype(ml_dtypes.float8_e4m3fn)`"),
    (Ptr[u32], np.zeros(3, np.int32), "is a numpy array of int32, shape (3,); Ptr[u32] wants uint32",
     "`a = a.view(np.uint32)`"),
    (Ptr[u8], np.zeros(3, bool), "is a numpy array of bool, shape (3,); Ptr[u8] wants uint8", "`a = a.view(np.uint8)`"),
    (Ptr[f32], X.astype(">f4"), "is a numpy array of >f4, shape (10,); Ptr[f32] wants float32",
     "`a = a.astype(np.float32)`"),
    (Ptr[f32], [1.0], "is a list; Ptr[f32] wants an array of float32", "pass `np.array(a, np.float32)`"),
    (Ptr[u8], b"abc", "is a bytes; Ptr[u8] wants an array of uint8", "pass `np.frombuffer(a, np.uint8)`"),
    (Ptr[f32], None, "is None; Ptr[f32] wants an array of float32", None),
    (Ptr[f32], 5, "is the int 5; Ptr[f32] wants an array of float32", None),
    (Ptr[f32], np.float32(5), "is the numpy float32 5.0; Ptr[f32] wants an array of float32", None),
    (Ptr[f32], np.ma.masked_array(X), "is a MaskedArray; Ptr[f32] wants an array of float32", None),
    (Ptr[f32], np.ndarray, "is a type; Ptr[f32] wants an array of float32", None),
    (Ptr[f32], X[::2], "is a numpy array of float32, shape (5,), strides (8,); Ptr[f32] wants contiguous memory",
     "`a = np.ascontiguousarray(a)`, or declare `a: Array[f32, 1]`"),
    (Ptr[f32], M.T, "is a numpy array of float32, shape (4, 3), strides (4, 16); Ptr[f32] wants contiguous memory",
     "`a = np.ascontiguousarray(a)`, or declare `a: Array[f32, 2]`"),
    (Ptr[f32], X[::-1], "is a numpy array of float32, shape (10,), strides (-4,); Ptr[f32] wants contiguous memory",
     "`a = np.ascontiguousarray(a)`, or declare `a: Array[f32, 1]`"),
    (Ptr[f32], ODD, (f"is a numpy array of float32, shape (10,), at {ODD.ctypes.data:#x}; Ptr[f32] wants it "
      "aligned to 4 bytes"), "`a = a.copy()`"),
    (Ptr[f32], _readonly(), "is a numpy array of float32, shape (10,), read-only; the kernel writes to it",
     "`a = a.copy()`"),
    (Ptr[f16x2], np.zeros(3, np.float16), ("is a numpy array of float16, shape (3,); Ptr[f16x2] wants a multiple of 4 "
      "bytes"), None),
    (Array[f32, 2], X, "is a numpy array of float32, shape (10,); Array[f32, 2] wants 2 dimensions", None),
    (Array[f32, 1], M, "is a numpy array of float32, shape (3, 4); Array[f32, 1] wants 1 dimension", None),
    (Array[f32, None, 5], M, ("is a numpy array of float32, shape (3, 4); Array[f32, None, 5] wants extent 5 in "
      "dimension 1"), None),
    (Array[f32, 2], M.T, ("is a numpy array of float32, shape (4, 3), strides (4, 16); Array[f32, 2] wants the last "
      "dimension contiguous"), "`a = np.ascontiguousarray(a)`"),
    (Array[f32, 3, 3], M[:, :3], ("is a numpy array of float32, shape (3, 3), strides (16, 4); Array[f32, 3, 3] wants "
      "contiguous memory"), "`a = np.ascontiguousarray(a)`"),
    (Array[f32, 2], M[::-1], ("is a numpy array of float32, shape (3, 4), strides (-16, 4); Array[f32, 2] wants "
      "strides of 0 to 2**32 - 1 whole elements"), "`a = np.ascontiguousarray(a)`"),
    (Array[f32, 2], [[1.0]], "is a list; Array[f32, 2] wants an array of float32", "pass `np.array(a, np.float32)`"),
    (Array[f32, 2], M.astype(np.float16), "is a numpy array of float16, shape (3, 4); Array[f32, 2] wants float32",
     "`a = a.astype(np.float32)`"),
    (Array[f32, 1], _readonly(), "is a numpy array of float32, shape (10,), read-only; the kernel writes to it",
     "`a = a.copy()`"),
    (TensorMap, b"x" * 100, "is a bytes of 100 bytes; TensorMap wants an object of 128 bytes", None),
    (TensorMap, None, "is None; TensorMap wants an object of 128 bytes", None),
]


@pytest.mark.parametrize(("kind", "value", "message", "hint"), BAD_MEMORY, ids=lambda value: str(value)[:40])
def test_bad_memory(kind: Any, value: Any, message: str, hint: str | None) -> None:
    error = error_of(lambda: binder(kind, written=("a",))((value,)))
    assert (error.message, error.hint) == (f"argument `a` of kernel `k` {message}", hint)


def test_read_only_memory_may_be_read() -> None:
    (buffer,) = binder(Ptr[f32])((_readonly(),))
    assert isinstance(buffer, Buffer)
    assert not buffer.writable


def numbers(arguments: list[Any]) -> dict[str, int]:
    return {a.name: int.from_bytes(a.data, "little") for a in arguments if isinstance(a, Scalar)}


def test_arrays_bring_shape_and_strides(rng: np.random.Generator) -> None:
    rows, columns = (int(n) for n in rng.integers(2, 50, 2))
    whole = rng.random((rows, 3, columns + 5), np.float32)
    part = whole[:, 1, :columns]
    buffer, *rest = binder(Array[f32, 2])((part,))
    assert numbers(rest) == {"a_shape0": rows, "a_shape1": columns, "a_stride0": 3 * (columns + 5)}
    assert isinstance(buffer, Buffer)
    assert buffer.address == part.ctypes.data
    assert buffer.nbytes == (part[-1, -1:].ctypes.data + 4) - part.ctypes.data
    assert numbers(binder(Array[f32, None, columns])((part.copy(),))) == {"a_shape0": rows}
    inner = whole[:2, :2, :columns]
    assert numbers(binder(Array[f32, 2, None, columns])((inner,))) == {
        "a_shape1": 2, "a_stride0": 3 * (columns + 5), "a_stride1": columns + 5,
    }
    assert numbers(binder(Array[f32, 1])((X,))) == {"a_shape0": 10}
    assert numbers(binder(Array[f32, 3, 4])((M,))) == {}


def test_the_stride_of_one_row_says_nothing() -> None:
    odd = np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (1, 4), (12345, 4))
    assert numbers(binder(Array[f32, 2])((odd,))) == {"a_shape0": 1, "a_shape1": 4, "a_stride0": 4}


def test_overlapping_elements_may_be_read_but_not_written() -> None:
    repeated = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (3, 4), (0, 4))
    assert numbers(binder(Array[f32, 2])((repeated,)))["a_stride0"] == 0
    error = error_of(lambda: binder(Array[f32, 2], written=("a",))((repeated,)))
    assert error.message == (
        "argument `a` of kernel `k` is a numpy array of float32, shape (3, 4), strides (0, 4); the kernel writes "
        "to it, and its elements overlap"
    )


@pytest.mark.parametrize(
    "value",
    [b"\1" * 128, bytearray(b"\1" * 128), np.ones(128, np.uint8), (ctypes.c_uint8 * 128)(*[1] * 128),
     types.SimpleNamespace(getPtr=lambda: ctypes.addressof(_DESCRIPTOR))],
)
def test_descriptors(value: Any) -> None:
    assert binder(TensorMap)((value,)) == [Scalar("a", b"\1" * 128)]


_DESCRIPTOR = (ctypes.c_uint8 * 128)(*[1] * 128)


def test_foreign_64_bit_parameters_take_arrays_and_ints() -> None:
    bind = binder(u64, written=("a",), foreign=64)
    assert bind((2**64 - 1,)) == [Scalar("a", b"\xff" * 8)]
    (buffer,) = bind((M,))
    assert isinstance(buffer, Buffer)
    assert (buffer.address, buffer.nbytes) == (M.ctypes.data, M.nbytes)
    for value, message in {
        (): "is a tuple; .u64 wants an array or an int", 1.5: "is the float 1.5; .u64 wants an array or an int",
    }.items():
        assert error_of(lambda value=value: bind((value,))).message == f"argument `a` of kernel `k` {message}"
    error = error_of(lambda: bind((M.T,)))
    assert error.message == (
        "argument `a` of kernel `k` is a numpy array of float32, shape (4, 3), strides (4, 16); foreign PTX is given "
        "contiguous memory only"
    )
    assert "read-only; the kernel writes to it" in error_of(lambda: bind((_readonly(),))).message


# ---------------------------------------------------------------------------------------------------------------------
# Arrays of others


class Dlpack:
    """An array that speaks DLPack alone, of the old or the new protocol."""

    def __init__(self, array: np.ndarray, versioned: bool) -> None:
        self.array, self.versioned = array, versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        if not self.versioned:
            if options:
                raise TypeError("unexpected keyword argument")
            return self.array.__dlpack__()
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64, bool])
def test_dlpack(versioned: bool, dtype: Any) -> None:
    array = np.ones((3, 5), dtype)[:, 1:4]
    seen = view(Dlpack(array, versioned))
    assert seen is not None
    assert seen[:7] == (array.ctypes.data, np.dtype(dtype).name, array.itemsize, (3, 3), array.strides, False, None)


def test_dlpack_keeps_read_only() -> None:
    seen = view(Dlpack(_readonly(), True))
    assert seen is not None
    assert seen.readonly


def test_dlpack_outlives_its_owner() -> None:
    (buffer,) = binder(Ptr[f32])((Dlpack(np.arange(1000, dtype=np.float32), True),))
    assert isinstance(buffer, Buffer)
    assert np.frombuffer(ctypes.string_at(buffer.address, buffer.nbytes), np.float32).tolist() == list(range(1000))


class OnGpu:
    """Something that says that it is on a GPU."""

    def __init__(self, stream: int | None = None, **interface: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (4, 2), "typestr": "<f4", "data": (0x7F0000000000, False), "version": 3, "stream": stream,
            **interface,
        }


def test_cuda_array_interface() -> None:
    value = OnGpu(stream=7)
    assert view(value) == View(0x7F0000000000, "float32", 4, (4, 2), (8, 4), False, 0, value, 7)
    assert view(OnGpu(mask=np.ones(4))) is None
    seen = view(OnGpu(strides=(4, 16), typestr="<i8", data=(8, True)))
    assert seen is not None
    assert (seen.strides, seen.dtype, seen.readonly) == ((4, 16), "int64", True)


def test_cuda_array_interface_without_a_code_for_bf16() -> None:
    value = OnGpu(typestr="<V2")
    value.dtype = np.dtype(ml_dtypes.bfloat16)  # type: ignore[attr-defined]
    (buffer,) = binder(Ptr[bf16])((value,))
    assert isinstance(buffer, Buffer)
    assert buffer.device == 0


def test_an_array_that_raises() -> None:
    class Broken:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise RuntimeError("the tensor requires grad")

    error = error_of(lambda: binder(u32, Ptr[f32])((1, Broken())))
    assert error.message == "argument `b` of kernel `k` is a Broken, which says RuntimeError: the tensor requires grad"


def torch_tensor(device: str = "cpu", **changes: Any) -> Any:
    """An object with the attributes of a torch tensor; torch itself is not needed."""
    kind = type("Tensor", (), {"__module__": "torch"})
    tensor = kind()
    facts = {
        "layout": "torch.strided", "device": types.SimpleNamespace(type=device, index=1 if device == "cuda" else None),
        "dtype": "torch.bfloat16", "shape": (3, 4), "element_size": lambda: 2, "stride": lambda: (4, 1),
        "data_ptr": lambda: 0x1000, **changes,
    }
    tensor.__dict__.update(facts)
    kind.data_ptr = None
    return tensor


def test_torch() -> None:
    seen = view(torch_tensor())
    assert seen is not None
    assert seen[:7] == (0x1000, "bfloat16", 2, (3, 4), (8, 2), False, None)
    seen = view(torch_tensor("cuda"))
    assert seen is not None
    assert seen.device == 1
    assert view(torch_tensor(layout="torch.sparse_coo")) is None
    error = error_of(lambda: binder(Ptr[f32])((torch_tensor("cuda"),)))
    assert error.message == (
        "argument `a` of kernel `k` is a torch tensor of bfloat16, shape (3, 4) on GPU 1; Ptr[f32] wants float32"
    )
    assert error.hint == "`a = a.to(torch.float32)`"
    error = error_of(lambda: binder(Ptr[bf16])((torch_tensor(stride=lambda: (1, 3)),)))
    assert error.hint == "`a = a.contiguous()`, or declare `a: Array[bf16, 2]`"


def test_contiguous(rng: np.random.Generator) -> None:
    for _ in range(200):
        shape = tuple(int(n) for n in rng.integers(0, 4, rng.integers(0, 4)))
        array = np.zeros(tuple(n + int(rng.integers(0, 2)) for n in shape), np.int16)[tuple(slice(n) for n in shape)]
        array = array.transpose(rng.permutation(array.ndim)) if rng.random() < 0.5 else array
        assert contiguous(array.shape, array.strides, 2) == array.flags.c_contiguous, (array.shape, array.strides)


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "the int 3"), (None, "None"), ("x" * 100, "a str"), ([1], "a list"), (np.int8(3), "the numpy int8 3"),
     (object(), "an object"), (np.zeros(2), "a numpy array of float64, shape (2,)")],
)
def test_descriptions(value: Any, text: str) -> None:
    assert describe(value) == text


def test_device_arrays_on_the_emulator(rng: np.random.Generator) -> None:
    source = rng.random((5, 7), np.float32)
    array = to_device(source, backend="emulator")
    assert array.address % 256 == 0
    assert (array.shape, array.dtype, array.ndim, array.size, array.nbytes) == ((5, 7), source.dtype, 2, 35, 140)
    assert len(array) == 5
    assert array.numpy().tobytes() == source.tobytes() == array.copy_to_host().tobytes()
    (buffer,) = binder(Ptr[f32])((array,))
    assert isinstance(buffer, Buffer)
    assert (buffer.address, buffer.device, buffer.writable) == (array.address, None, True)
    assert np.asarray(array).ctypes.data == array.address
    assert np.from_dlpack(array).ctypes.data == array.address
    assert not hasattr(array, "__cuda_array_interface__")
    array.copy_from(source + 1)
    assert np.array_equal(array.numpy(), source + 1)
    assert zeros((2, 0), f32, backend="emulator").numpy().shape == (2, 0)
    assert empty(3, bf16, backend="emulator").dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: empty(-1, f32), "shape -1 is no int or tuple of ints from 0 on"),
        (lambda: empty((2, 1.5), f32), "shape (2, 1.5) is no int or tuple of ints from 0 on"),
        (lambda: empty(2, object), "a device array cannot hold object"),
        (
            lambda: to_device(np.zeros(3)).copy_from(np.zeros(4)),
            "an array of float64, shape (4,) cannot fill one of float64, shape (3,)",
        ),
    ],
)
def test_bad_device_arrays(call: Callable[[], object], message: str) -> None:
    assert error_of(call).message == message


def test_every_parameter_of_a_signature_is_bound_in_order() -> None:
    bind = binder(u32, Array[f32, 2], f32, Ptr[u8])
    names = [argument.name for argument in bind((1, M, 2.0, np.zeros(3, np.uint8)))]
    assert names == ["a", "b", "b_shape0", "b_shape1", "b_stride0", "c", "d"]
