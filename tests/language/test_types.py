"""Scalar types: their sizes against numpy's, and what Python numbers become in them."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from ptxdsl.errors import PtxTypeError
from ptxdsl.types import (
    TYPES, ScalarType, b16, b32, b64, bf16, compatible, dtype_of, e4m3, encode, f16, f16x2, f32, f64, pred, s8, s16,
    s32, s64, type_named, u8, u16, u32, u64,
)

INTEGERS = [u8, u16, u32, u64, s8, s16, s32, s64]


@pytest.mark.parametrize("kind", [t for t in TYPES.values() if t.numpy_name], ids=str)
def test_size_is_numpys(kind: ScalarType) -> None:
    assert dtype_of(kind).itemsize == kind.bytes


def test_type_named() -> None:
    assert type_named("f32") is f32 and type_named("float") is None


def test_type_is_no_conversion() -> None:
    with pytest.raises(PtxTypeError) as caught:
        f32(1)  # type: ignore[call-arg]
    assert str(caught.value) == (
        "f32 is a type, not a conversion\n  hint: write `v.to(f32)` to convert a value, `reg(f32, 0)` for a register"
    )


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integer_literals_to_the_limits(kind: ScalarType) -> None:
    info = np.iinfo(dtype_of(kind))
    for value in (int(info.min), int(info.max), 0, 1):
        assert encode(value, kind) == int(np.array(value, dtype_of(kind)).view(f"u{kind.bytes}"))
    unsigned = info.min == 0
    for value, same in ((int(info.min) - 1, hex(info.max) if unsigned else ""), (int(info.max) + 1, str(info.min))):
        with pytest.raises(PtxTypeError) as caught:
            encode(value, kind)
        hint = f"\n  hint: `{same}` has its bits" if same and (value < 0) == unsigned else ""
        assert str(caught.value) == f"{value} does not fit in {kind}, which holds {info.min} to {info.max}{hint}"


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -1.5, math.pi, 1e-45, 1e-40, 65504.0, math.inf, -math.inf])
def test_float_literals_round_to_nearest(value: float) -> None:
    assert encode(value, f32) == int(np.float32(value).view(np.uint32))
    assert encode(value, f16) == int(np.float16(value).view(np.uint16))
    assert encode(value, f64) == struct.unpack("<Q", struct.pack("<d", value))[0]


OVERFLOWS = [(65520.0, f16), (1e39, f32), (-3.5e38, f32), (3.4e38, bf16), (10**400, f64)]


@pytest.mark.parametrize(("value", "kind"), OVERFLOWS)
def test_a_finite_literal_never_becomes_infinite(value: float, kind: ScalarType) -> None:
    with pytest.raises(PtxTypeError) as caught:
        encode(value, kind)
    assert str(caught.value) == f"{value!r} does not fit in {kind}\n  hint: `float('inf')` is the infinity"


def test_bf16_and_fp8_literals() -> None:
    assert encode(1.0, bf16) == 0x3F80 and encode(1.0, e4m3) == 0x38
    assert encode(1 + 2**-8, bf16) == 0x3F80 and encode(1 + 3 * 2**-8, bf16) == 0x3F82


def test_integer_for_a_float_type() -> None:
    assert encode(3, f32) == encode(3.0, f32)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (1.5, u32, "the float 1.5 is no u32\n  hint: write `1`"),
        (math.nan, s32, "the float nan is no s32\n  hint: write `0`"),
        (True, u32, "True is no number of type u32"),
        ("3", u32, "'3' is no number of type u32"),
        (1, pred, "1 is no predicate\n  hint: write True or False"),
        (1.0, f16x2, "a packed f16x2 takes no Python number\n  hint: pack the parts: `pack(f16x2, lo, hi)`"),
    ],
)
def test_literals_refused(value: object, kind: ScalarType, message: str) -> None:
    with pytest.raises(PtxTypeError) as caught:
        encode(value, kind)
    assert str(caught.value) == message


def test_compatible_is_the_manuals_table() -> None:
    assert compatible(u32, s32) and compatible(b32, f32) and compatible(f32, b32) and compatible(f16, b16)
    assert not compatible(u32, f32) and not compatible(u32, u64)
    assert not compatible(pred, b16) and not compatible(b32, pred)
    assert compatible(pred, pred) and compatible(f16x2, b32) and compatible(bf16, b16) and compatible(f64, b64)
    assert not compatible(f16x2, u32) and not compatible(bf16, u16)
    assert not compatible(f64, s64) and compatible(b16, s16)
