"""Rounding to whole numbers, and remainders; exact, all of them."""

from __future__ import annotations

import math
from typing import Any

from ..language import break_if, loop, ptx, reg, select, when
from ..types import KernelOperand, f32, f64, s32, s64, u32, u64
from .functions import FORMATS, function_of, has_sign, values
from .manipulation import ldexp, normalized


def _whole(x: Any, rounding: str) -> Any:
    return x.to(x.type, rounding)


@function_of(f32, f64)
def floor(x: Any) -> KernelOperand:
    """The largest whole number up to ``x``, as a float: one ``cvt.rmi``."""
    return _whole(x, "rmi")


@function_of(f32, f64)
def ceil(x: Any) -> KernelOperand:
    """The least whole number from ``x`` on, as a float: one ``cvt.rpi``."""
    return _whole(x, "rpi")


@function_of(f32, f64)
def trunc(x: Any) -> KernelOperand:
    """The whole part, as a float: one ``cvt.rzi``."""
    return _whole(x, "rzi")


@function_of(f32, f64)
def rint(x: Any) -> KernelOperand:
    """The nearest whole number, of two the even one, as a float: one ``cvt.rni``."""
    return _whole(x, "rni")


nearbyint = rint
"""C's other name of `rint`."""


@function_of(f32, f64)
def round(x: Any) -> KernelOperand:  # noqa: A001
    """The nearest whole number, of two the one farther from 0, as a float."""
    whole = _whole(x, "rzi")
    away = ptx[f"copysign.{x.type}"](x, whole + ptx[f"copysign.{x.type}"](x, 1.0))
    return select(abs(x - whole) >= 0.5, away, whole)


@function_of(f32, f64)
def lrint(x: Any) -> KernelOperand:
    """The nearest whole number, of two the even one, as an s64; what is beyond its range becomes its end."""
    return x.to(s64, "rni")


@function_of(f32, f64)
def lround(x: Any) -> KernelOperand:
    """The nearest whole number, of two the one farther from 0, as an s64; what is beyond its range becomes its end."""
    return round(x).to(s64, "rzi")


def _divided(x: Any, y: Any) -> tuple[Any, Any]:
    """The remainder of |x| by |y|, where |x| >= |y| > 0, and the last 32 bits of the whole quotient."""
    form = FORMATS[x.type]
    (top, above), (bottom, below) = normalized(x), normalized(y)
    hidden = 1 << form.fraction
    numerator = reg(u64, _significand(top, hidden))
    denominator = _significand(bottom, hidden)
    left, quotient = reg(s32, above - below), reg(u32, ptx.div.u64(numerator, denominator).to(u32))
    ptx.rem.u64(numerator, denominator, out=numerator)
    # Long division, with as many bits of the quotient at once as 64 bits have room for.
    with loop():
        break_if(left <= 0)
        bits = ptx.min.s32(left, 63 - form.fraction)
        shifted = numerator << bits.bits(u32)
        whole = ptx.div.u64(shifted, denominator)
        quotient.set((quotient << bits.bits(u32)) + whole.to(u32))
        numerator.set(shifted - whole * denominator)
        left -= bits
    return ldexp(numerator.to(x.type, "rn"), below - form.fraction), quotient.copy()


def _significand(bits: Any, hidden: int) -> Any:
    whole = (bits & hidden - 1) | hidden
    return (whole.to(s64) if whole.type is s32 else whole).bits(u64)


@function_of(f32, f64)
def remquo(x: Any, y: Any) -> tuple[Any, Any]:
    """``x - n * y`` for the ``n`` nearest to ``x / y`` (of two the even one), and the last 31 bits of ``n``, as an s32.

    Exact. NaN, with 0, where ``x`` is infinite or ``y`` is 0.
    """
    x, y = values(x, y)
    rest, quotient, fits = _remainder(x, y)
    size = abs(y)
    # Half of y may be subnormal, twice the rest infinite; what is left of y is exact where the rest is more than half.
    other = size - rest
    up = (rest > other) | ((rest == other) & ((quotient & 1) == 1))
    rest = select(up, -other, rest)
    count = select(up, quotient + 1, quotient) & 0x7FFFFFFF
    count = count.bits(s32)
    count = select(has_sign(x) ^ has_sign(y), -count, count)
    rest = select(has_sign(x), -rest, rest)
    return select(fits, rest, math.nan), select(fits, count, 0)


@function_of(f32, f64)
def remainder(x: Any, y: Any) -> KernelOperand:
    """``x - n * y`` for the ``n`` nearest to ``x / y``, of two the even one. Exact. NaN: see `remquo`."""
    return remquo(x, y)[0]


@function_of(f32, f64)
def fmod(x: Any, y: Any) -> KernelOperand:
    """``x - n * y`` for the whole part ``n`` of ``x / y``, with the sign of ``x``. Exact. NaN: see `remquo`."""
    x, y = values(x, y)
    rest, _, fits = _remainder(x, y)
    return select(fits, select(has_sign(x), -rest, rest), math.nan)


def _remainder(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """The remainder of |x| by |y|, the last bits of the quotient, and whether there is one."""
    fits = (abs(x) < math.inf) & (abs(y) > 0.0)
    rest, quotient = reg(x.type, abs(x)), reg(u32, 0)
    with when(fits & (abs(x) >= abs(y))):
        found, bits = _divided(x, y)
        rest.set(found)
        quotient.set(bits)
    return rest.copy(), quotient.copy(), fits
