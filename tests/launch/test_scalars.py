"""Numbers as arguments: their bytes, and a message for each that does not fit."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launch_harness import binder, error_of

from ptxdsl.launch import Scalar
from ptxdsl.types import TYPES, b32, f16, f16x2, f32, s32, u8, u32


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


def test_a_long_double_is_rounded() -> None:
    assert binder(f32)((np.longdouble(0.1),)) == binder(f32)((0.1,))


def test_packed_types_take_a_tuple() -> None:
    assert binder(f16x2)(((1.0, -2.0),)) == [Scalar("a", np.array([1, -2], np.float16).tobytes())]


BAD_NUMBERS: list[tuple[Any, Any, str, str | None]] = [
    (u32, 1.0, "is the float 1.0; u32 wants an int from 0 to 4294967295", "pass `1`"),
    (u32, 1.5, "is the float 1.5; u32 wants an int from 0 to 4294967295", "round it: `int(a)`"),
    (u32, True, "is the bool True; u32 wants an int from 0 to 4294967295", "pass `1`"),
    (f32, False, "is the bool False; f32 wants a float or a float32 scalar", "pass `0`"),
    (u32, np.int64(-3), "is the int -3; u32 wants an int from 0 to 4294967295", "declare `a: s32`"),
    (u32, 2**63, f"is the int {2**63}; u32 wants an int from 0 to 4294967295", "declare `a: u64`"),
    (u32, 2**64, f"is the int {2**64}; u32 wants an int from 0 to 4294967295", None),
    (u8, 256, "is the int 256; u8 wants an int from 0 to 255", "declare `a: u16`"),
    (u32, np.float32(3), "is the numpy float32 3.0; u32 wants an int from 0 to 4294967295", "pass `int(a)`"),
    (u32, np.bool_(True), "is the numpy bool True; u32 wants an int from 0 to 4294967295", "pass `int(a)`"),
    (u32, None, "is None; u32 wants an int from 0 to 4294967295", None),
    (u32, "3", "is the str '3'; u32 wants an int from 0 to 4294967295", None),
    (u32, np.array(3), "is a numpy array of int64, shape (); u32 wants an int from 0 to 4294967295", "pass `a.item()`"),
    (u32, np.zeros((2, 2)), "is a numpy array of float64, shape (2, 2); u32 wants an int from 0 to 4294967295", None),
    (s32, 2**31, "is the int 2147483648; s32 wants an int from -2147483648 to 2147483647", "declare `a: u32`"),
    (f32, np.float64(1e300), "is the float 1e+300; that is too large for f32", "declare `a: f64`"),
    (f32, np.int64(2**24 + 1), "is the int 16777217; f32 cannot hold it exactly", "pass `float(a)` to have it rounded"),
    (f32, 1e39, "is the float 1e+39; that is too large for f32", "declare `a: f64`"),
    (f16, 65520.0, "is the float 65520.0; that is too large for f16", "declare `a: f32`"),
    (f32, 2**24 + 1, "is the int 16777217; f32 cannot hold it exactly", "pass `float(a)` to have it rounded"),
    (f32, 10**400, "is an int; that is too large for f32", None),
    (f32, Fraction(1, 2), "is a Fraction; f32 wants a float or a float32 scalar", "pass `float(a)`, which rounds"),
    (u32, Decimal(2), "is a Decimal; u32 wants an int from 0 to 4294967295", "pass `int(a)`, which rounds"),
    (f32, np.complex64(2), "is the numpy complex64 (2+0j); f32 wants a float or a float32 scalar", None),
    (f32, 1j, "is the complex 1j; f32 wants a float or a float32 scalar", None),
    (f16x2, 1.0, "is the float 1.0; f16x2 wants a tuple of 2 numbers", None),
    (f16x2, (1.0, 2.0, 3.0), "is a tuple; f16x2 wants a tuple of 2 numbers", None),
    (TYPES["e2m1"], 1.0, "is the float 1.0; e2m1 has no Python number", "declare `a: b8` and pass the bits"),
]


@pytest.mark.parametrize(("kind", "value", "message", "hint"), BAD_NUMBERS, ids=lambda value: str(value)[:40])
def test_bad_numbers(kind: Any, value: Any, message: str, hint: str | None) -> None:
    error = error_of(lambda: binder(kind)((value,)))
    assert (error.message, error.hint) == (f"argument `a` of kernel `k` {message}", hint)
