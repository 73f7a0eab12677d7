"""Arrays and structs as arguments: what parameters take, and a message for what they do not."""

from __future__ import annotations

import ctypes
import types
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launch_harness import binder, error_of, readonly

from ptxdsl.ir.signature import Array, Ptr, TensorMap
from ptxdsl.launch import Buffer, Scalar
from ptxdsl.launch.scalars import elements
from ptxdsl.types import TYPES, bf16, e4m3, f16x2, f32, u8, u32, u64


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


X = np.zeros(10, np.float32)
M = np.zeros((3, 4), np.float32)
BACK = "`a_copy = {}`, pass it, and afterwards `a[...] = a_copy`: the kernel stores to it"
INTO = "`a_copy = {}`: pass it, and the result is in it"
ODD = np.frombuffer(bytearray(48), np.uint8)
ODD = ODD[1 + -ODD.ctypes.data % 4 :][:40].view(np.float32)
BAD_MEMORY: list[tuple[Any, Any, str, str | None]] = [
    (Ptr[f32], X.astype(float), "is a numpy array of float64, shape (10,); Ptr[f32] wants float32",
     "declare `a: Ptr[f64]`; or, rounded, " + BACK.format("a.astype(np.float32)")),
    (Ptr[bf16], X, "is a numpy array of float32, shape (10,); Ptr[bf16] wants bfloat16",
     "declare `a: Ptr[f32]`; or, rounded, " + BACK.format("a.astype(ml_dtypes.bfloat16)")),
    (Ptr[e4m3], X, "is a numpy array of float32, shape (10,); Ptr[e4m3] wants float8_e4m3fn",
     "declare `a: Ptr[f32]`; or, rounded, " + BACK.format("a.astype(ml_dtypes.float8_e4m3fn)")),
    (Ptr[u32], np.zeros(3, np.int32), "is a numpy array of int32, shape (3,); Ptr[u32] wants uint32",
     "`a = a.view(np.uint32)`"),
    (Ptr[u8], np.zeros(3, bool), "is a numpy array of bool, shape (3,); Ptr[u8] wants uint8", "`a = a.view(np.uint8)`"),
    (Ptr[f32], X.astype(">f4"), "is a numpy array of >f4, shape (10,); Ptr[f32] wants float32",
     BACK.format("a.astype(np.float32)")),
    (Ptr[f32], [1.0], "is a list; Ptr[f32] wants an array of float32", INTO.format("np.array(a, np.float32)")),
    (Ptr[u8], b"abc", "is a bytes; Ptr[u8] wants an array of uint8", INTO.format("np.frombuffer(a, np.uint8).copy()")),
    (Ptr[f32], None, "is None; Ptr[f32] wants an array of float32", None),
    (Ptr[f32], 5, "is the int 5; Ptr[f32] wants an array of float32", None),
    (Ptr[f32], np.float32(5), "is the numpy float32 5.0; Ptr[f32] wants an array of float32", None),
    (Ptr[f32], np.ma.masked_array(X), "is a MaskedArray; Ptr[f32] wants an array of float32", None),
    (Ptr[f32], np.ndarray, "is a type; Ptr[f32] wants an array of float32", None),
    (Ptr[f32], X[::2], "is a numpy array of float32, shape (5,), strides (8,); Ptr[f32] wants contiguous memory",
     BACK.format("np.ascontiguousarray(a)")),
    (Ptr[f32], M.T, "is a numpy array of float32, shape (4, 3), strides (4, 16); Ptr[f32] wants contiguous memory",
     BACK.format("np.ascontiguousarray(a)")),
    (Ptr[f32], X[::-1], "is a numpy array of float32, shape (10,), strides (-4,); Ptr[f32] wants contiguous memory",
     BACK.format("np.ascontiguousarray(a)")),
    (Ptr[f32], ODD, (f"is a numpy array of float32, shape (10,), at {ODD.ctypes.data:#x}; Ptr[f32] wants it "
      "aligned to 4 bytes"), BACK.format("a.copy()")),
    (Ptr[f32], readonly(), "is a numpy array of float32, shape (10,), read-only; the kernel writes to it",
     INTO.format("a.copy()")),
    (Ptr[f16x2], np.zeros(3, np.float16), ("is a numpy array of float16, shape (3,); Ptr[f16x2] wants a multiple of 4 "
      "bytes"), None),
    (Array[f32, 2], X, "is a numpy array of float32, shape (10,); Array[f32, 2] wants 2 dimensions", None),
    (Array[f32, 1], M, "is a numpy array of float32, shape (3, 4); Array[f32, 1] wants 1 dimension", None),
    (Array[f32, None, 5], M, ("is a numpy array of float32, shape (3, 4); Array[f32, None, 5] wants extent 5 in "
      "dimension 1"), None),
    (Array[f32, 2], M.T, ("is a numpy array of float32, shape (4, 3), strides (4, 16); Array[f32, 2] wants the last "
      "dimension contiguous"), BACK.format("np.ascontiguousarray(a)")),
    (Array[f32, 3, 3], M[:, :3], ("is a numpy array of float32, shape (3, 3), strides (16, 4); Array[f32, 3, 3] wants "
      "contiguous memory"), BACK.format("np.ascontiguousarray(a)")),
    (Array[f32, 2], M[::-1], ("is a numpy array of float32, shape (3, 4), strides (-16, 4); Array[f32, 2] wants "
      "strides of 0 to 2**32 - 1 whole elements"), BACK.format("np.ascontiguousarray(a)")),
    (Array[f32, 2], [[1.0]], "is a list; Array[f32, 2] wants an array of float32",
     INTO.format("np.array(a, np.float32)")),
    (Array[f32, 2], M.astype(np.float16), "is a numpy array of float16, shape (3, 4); Array[f32, 2] wants float32",
     "declare `a: Array[f16, 2]`; or " + BACK.format("a.astype(np.float32)")),
    (Array[f32, 1], readonly(), "is a numpy array of float32, shape (10,), read-only; the kernel writes to it",
     INTO.format("a.copy()")),
    (TensorMap, b"x" * 100, "is a bytes of 100 bytes; TensorMap wants an object of 128 bytes", None),
    (TensorMap, None, "is None; TensorMap wants an object of 128 bytes", None),
]


@pytest.mark.parametrize(("kind", "value", "message", "hint"), BAD_MEMORY, ids=lambda value: str(value)[:40])
def test_bad_memory(kind: Any, value: Any, message: str, hint: str | None) -> None:
    error = error_of(lambda: binder(kind, written=("a",))((value,)))
    assert (error.message, error.hint) == (f"argument `a` of kernel `k` {message}", hint)


def test_read_only_memory_may_be_read() -> None:
    (buffer,) = binder(Ptr[f32])((readonly(),))
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
    assert "read-only; the kernel writes to it" in error_of(lambda: bind((readonly(),))).message


def test_every_parameter_of_a_signature_is_bound_in_order() -> None:
    bind = binder(u32, Array[f32, 2], f32, Ptr[u8])
    names = [argument.name for argument in bind((1, M, 2.0, np.zeros(3, np.uint8)))]
    assert names == ["a", "b", "b_shape0", "b_shape1", "b_stride0", "c", "d"]


@pytest.mark.parametrize("annotation", [Ptr[f32], Array[f32, 2], Ptr[Ptr[f32]]])
def test_arrays_that_are_not_aligned_are_copied_where_they_are_only_read(
    annotation: Any, rng: np.random.Generator
) -> None:
    memory = np.zeros(4 * 12 + 8, np.uint8)
    start = -memory.ctypes.data % 4 + 1
    array = memory[start : start + 48].view(np.float32).reshape(3, 4)
    array[...] = rng.standard_normal((3, 4))
    assert not array.flags.aligned
    if annotation == Ptr[Ptr[f32]]:
        assert "aligned to 4 bytes" in error_of(lambda: binder(annotation)([[array]])).message
        return
    buffer = binder(annotation)([array])[0]
    assert isinstance(buffer, Buffer) and buffer.address % 4 == 0
    np.testing.assert_array_equal(buffer.owner, array)
    assert "aligned to 4 bytes" in error_of(lambda: binder(annotation, written=("a",))([array])).message
