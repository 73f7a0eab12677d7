"""The hint of a launch's error is followed as it is written: then the launch runs, and no number is lost.

An array that the kernel stores to holds the result where the caller looks for it; one that it reads is read whole.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ptxdsl import Array, LaunchError, Ptr, f32, f64, ptx, ptx_kernel, s64, u8, u16, u32, use

repeated = np.lib.stride_tricks.as_strided
rng = np.random.default_rng()


def doubled(annotation: Any, rank: int = 1) -> Any:
    """A kernel that stores to its array ``x``: each element once more added to itself."""
    if rank == 2:
        @ptx_kernel
        def k(x: annotation):
            x[ptx.tid.y, ptx.tid.x] = x[ptx.tid.y, ptx.tid.x] + x[ptx.tid.y, ptx.tid.x]
    else:
        @ptx_kernel
        def k(x: annotation):
            x[ptx.tid.x] = x[ptx.tid.x] + x[ptx.tid.x]
    return k


def copied(annotation: Any) -> Any:
    """A kernel that reads its array ``x`` and copies it to ``out``."""
    @ptx_kernel
    def k(x: annotation, out: annotation):
        out[ptx.tid.x] = x[ptx.tid.x]

    return k


def hint_of(launch: Any, *arguments: Any) -> str:
    with use("emulator"), pytest.raises(LaunchError) as caught:
        launch(*arguments)
    assert caught.value.hint is not None
    return caught.value.hint


def follow(hint: str, x: Any, kernel: Any, block: Any) -> Any:
    """Do what a hint says, with the array ``x``; where the result is then."""
    names: dict[str, Any] = {"x": x, "np": np}
    snippets = [s for s in re.findall(r"`([^`]*)`", hint) if not s.startswith("x: ")]
    exec(snippets[0], names)
    given = names.get("x_copy", names["x"])
    with use("emulator"):
        kernel[1, block](given)
    for snippet in snippets[1:]:
        exec(snippet, names)
    if "the result is in it" in hint:
        return given
    return x  # the caller's own


def floats(*shape: int) -> Any:
    return rng.integers(-1000, 1000, shape).astype(np.float32)


def unaligned() -> Any:
    memory = np.zeros(41, np.uint8)[1:]
    return memory.view(np.float32)


def frozen() -> Any:
    x = floats(10)
    x.flags.writeable = False
    return x


OUTPUTS = [
    ("every second", Ptr[f32], lambda: floats(20)[::2], 10), ("reversed", Ptr[f32], lambda: floats(10)[::-1], 10),
    ("unaligned", Ptr[f32], unaligned, 10), ("read-only", Ptr[f32], frozen, 10),
    ("foreign order", Ptr[f32], lambda: floats(10).astype(">f4"), 10),
    ("float16 to float32", Ptr[f32], lambda: floats(10).astype(np.float16), 10),
    ("float64 to float32", Ptr[f32], lambda: floats(10).astype(np.float64), 10),
    ("int32 as uint32", Ptr[u32], lambda: rng.integers(-99, 99, 10).astype(np.int32), 10),
    ("bool as uint8", Ptr[u16], lambda: np.ones(10, np.int16), 10),
    ("transposed", Array[f32, 2], lambda: floats(8, 4).T, (8, 4)),
    ("negative strides", Array[f32, 2], lambda: floats(4, 8)[::-1], (8, 4)),
    ("one row again and again", Array[f32, 2], lambda: repeated(floats(8), (4, 8), (0, 4)), (8, 4)),
    ("fixed extents", Array[f32, 4, 8], lambda: floats(4, 16)[:, ::2], (8, 4)),
    ("strided rows", Array[f32, 1], lambda: floats(30)[::3], 10),
]


@pytest.mark.parametrize(("annotation", "make", "block"), [o[1:] for o in OUTPUTS], ids=[o[0] for o in OUTPUTS])
def test_what_a_kernel_stores_arrives(annotation: Any, make: Any, block: Any) -> None:
    x = make()
    kernel, before = doubled(annotation, x.ndim), np.array(x).astype(np.float64)
    hint = hint_of(kernel[1, block], x)
    if hint.startswith("declare"):
        hint = hint.partition("; or")[2]
    result = follow(hint, x, kernel, block)
    assert (np.asarray(result).astype(np.float64) == 2 * before).all()


def test_lists_and_bytes() -> None:
    hint = hint_of(doubled(Ptr[f32])[1, 3], [1.0, 2.0, 3.0])
    assert hint == "`x_copy = np.array(x, np.float32)`: pass it, and the result is in it"
    assert follow(hint, [1.0, 2.0, 3.0], doubled(Ptr[f32]), 3).tolist() == [2, 4, 6]
    out = np.zeros(3, np.uint8)
    assert hint_of(copied(Ptr[u8])[1, 3], b"abc", out) == "pass `np.frombuffer(x, np.uint8)`"
    with use("emulator"):
        copied(Ptr[u8])[1, 3](np.frombuffer(b"abc", np.uint8), out)
    assert out.tobytes() == b"abc"


@pytest.mark.parametrize(("kind", "x", "wanted"), [
    (f32, np.array([1 + 2j, 3 - 4j], np.complex64), [1, 2, 3, -4]),
    (f64, np.array([1 + 2j, 3 - 4j]), [1, 2, 3, -4]),
    (u8, np.array([True, False]), [1, 0]), (u32, np.array([-1, 5], np.int32), [2**32 - 1, 5]),
    (f64, np.array([0.5, 3], np.float32), [0.5, 3]), (s64, np.array([2**31, 5], np.uint32), [2**31, 5]),
])
def test_what_a_kernel_reads_is_whole(kind: Any, x: Any, wanted: Any) -> None:
    kernel, out = copied(Ptr[kind]), np.zeros(len(wanted), np.dtype(kind.numpy_name))
    hint = hint_of(kernel[1, 1], x, out)
    found = re.findall(r"`([^`]*)`", hint)
    names = {"x": x, "np": np}
    made = eval(found[0].rpartition(" = ")[2], names)
    with use("emulator"):
        kernel[1, len(wanted)](made, out)
    assert out.tolist() == wanted


@pytest.mark.parametrize(("kind", "x", "declared"), [
    (f32, np.array([1e300]), "f64"), (u32, np.array([2**40]), "s64"), (u32, np.array([0.5], np.float32), "f32"),
    (f32, np.array([2**53 + 1]), "s64"), (f32, np.array([1e300 + 1j]), "f64"),
    (u16, np.array([70000], np.uint32), "u32"),
])
def test_where_numbers_would_change_the_declaration_comes_first(kind: Any, x: Any, declared: str) -> None:
    import ptxdsl

    hint = hint_of(copied(Ptr[kind])[1, 1], x, np.zeros(1, np.dtype(kind.numpy_name)))
    assert hint.startswith(f"declare `x: Ptr[{declared}]`")
    right = getattr(ptxdsl, declared)
    given = x.view(np.float64) if x.dtype.kind == "c" else x
    out = np.zeros(given.shape, np.dtype(right.numpy_name))
    with use("emulator"):
        copied(Ptr[right])[1, given.size](given, out)
    assert (out == given).all()


@pytest.mark.parametrize(("make", "offered"), [
    (lambda: floats(4, 16)[:, :8], True), (lambda: floats(8, 4).T, False), (lambda: floats(20)[::2], False),
    (lambda: floats(4, 8)[::-1], False), (lambda: floats(4, 4, 4)[:, :2], True), (lambda: floats(4, 9)[::2, 1:], True),
    (lambda: floats(4, 8)[:, ::2], False),
])
def test_an_array_type_is_offered_where_it_takes_the_array(make: Any, offered: bool) -> None:
    x = make()
    hint = hint_of(doubled(Ptr[f32])[1, 1], x)
    assert (f"declare `x: Array[f32, {x.ndim}]`" in hint) is offered
    if x.ndim == 2:
        kernel, before = doubled(Array[f32, 2], 2), x.copy()
        with use("emulator"):
            if offered:
                kernel[1, x.shape[::-1]](x)
                assert (x == 2 * before).all()
            else:
                with pytest.raises(LaunchError):
                    kernel[1, x.shape[::-1]](x)


@pytest.mark.parametrize(("kind", "value", "stored"), [
    (u32, np.int64(7), 7), (u32, np.uint8(7), 7), (s64, np.int8(-7), -7), (f32, np.float64(0.1), np.float32(0.1)),
    (f64, np.float32(0.1), float(np.float32(0.1))), (f32, np.int16(-3), -3), (f32, np.float16(0.5), 0.5),
])
def test_numbers_of_numpy(kind: Any, value: Any, stored: Any) -> None:
    @ptx_kernel
    def k(n: kind, out: Ptr[kind]):
        out[0] = n

    out = np.zeros(1, np.dtype(kind.numpy_name))
    with use("emulator"):
        k[np.int64(1), np.uint8(1)](value, out)
    assert out[0] == stored


@pytest.mark.parametrize(("kind", "value"), [
    (u32, np.int64(-1)), (u32, np.int64(2**32)), (u32, np.float64(0.5)), (u8, np.uint16(256)), (f32, np.bool_(True)),
    (f32, np.int64(2**24 + 1)), (u32, np.float32("inf")), (f32, np.complex64(1)), (u32, np.bool_(True)),
])
def test_numbers_that_would_change(kind: Any, value: Any) -> None:
    @ptx_kernel
    def k(n: kind):
        pass

    with use("emulator"), pytest.raises(LaunchError):
        k[1, 1](value)
