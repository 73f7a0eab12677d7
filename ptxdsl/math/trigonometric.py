"""Sine, cosine and tangent."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ..language import const, ptx, reg, select, when
from ..types import KernelOperand, f32, f64, s32, s64, u32, u64
from .functions import fast_two_sum, fma_rn, function_of, polynomial, power_of_two, quotient, two_product, two_sum

_HALF_PI = {
    f32: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100059082e-15),
    f64: (1.5707963267341256, 6.077100506506192e-11, 3.5215598651832e-27),
}
"""pi/2 as the sum of three; in f64 the first has so few bits that its product with a number of turns is exact."""
_NEAR = {f32: 100000.0, f64: 500000.0}
"""Up to here the product of the number of turns and those three is precise enough."""
_TWO_OVER_PI = (
    0, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41,
    0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08,
)
"""The bits of 2/pi, from 64 before the point."""
_PI = (math.pi, 1.2246467991473532e-16)
_SIN = {
    f32: (3.2883583571674535e-06, -0.00019894627621397376, 0.00833346601575613, -0.1666666716337204),
    f64: (
        -7.57816444121752e-13, 1.6058356246591825e-10, -2.5052104833665442e-08, 2.755731921390824e-06,
        -0.00019841269841254568, 0.008333333333333323, -0.16666666666666666,
    ),
}
"""(sin(r) - r) / r^3 in r^2 for |r| < pi/4."""
_COS = {
    f32: (2.4540056983823888e-05, -0.0013888257090002298, 0.0416666641831398),
    f64: (
        4.738784505487312e-14, -1.1470310827780853e-11, 2.0876754549039193e-09, -2.755731921634605e-07,
        2.4801587301574237e-05, -0.0013888888888888879, 0.041666666666666664,
    ),
}
"""(cos(r) - 1 + r^2/2) / r^4 in r^2 for |r| < pi/4."""
_TAN = {
    f32: (
        0.004460875876247883, -8.222278120229021e-05, 0.01097143441438675, 0.02122989483177662, 0.05406999960541725,
        0.1333257555961609, 0.3333335220813751,
    ),
    f64: (
        4.669433879434284e-06, -1.3224604005574296e-05, 2.7144452762471516e-05, -2.014617963870306e-05,
        3.5778348538209174e-05, 2.862027942820444e-05, 0.00010111554901832558, 0.00023790388066122738,
        0.0005902914287518617, 0.0014557928639659227, 0.0035921326996346628, 0.00886323516926188, 0.02186948855430463,
        0.05396825396771214, 0.13333333333334146, 0.3333333333333333,
    ),
}
"""(tan(r) - r) / r^3 in r^2 for |r| < pi/4."""


def _reduced(x: Any) -> tuple[Any, Any, Any]:
    """``r``, the rest that it leaves, and ``q``, with x = r + rest + q * pi/2 and |r| <= pi/4; no rest in f32."""
    kind = x.type
    turns = (x * (2 / math.pi)).to(s32, "rni")
    steps = turns.to(kind)
    first, second, third = _HALF_PI[kind]
    start = fma_rn(steps, -first, x)
    quadrant, rest = reg(s32, turns), None
    if kind is f32:
        angle = reg(f32, fma_rn(steps, -third, fma_rn(steps, -second, start)))
    else:
        product, error = two_product(steps, second)
        near, last = two_sum(start, -product)
        near, last = fast_two_sum(near, fma_rn(steps, -third, last - error))
        angle, rest = reg(f64, near), reg(f64, last)
    with when(~(abs(x) < _NEAR[kind])):
        far, far_rest, far_quadrant = _reduced_far(x.to(f64))
        angle.set(far.to(kind))
        quadrant.set(far_quadrant)
        if rest is not None:
            rest.set(far_rest)
    return angle.copy(), None if rest is None else rest.copy(), quadrant.copy()


def _reduced_far(x: Any) -> tuple[Any, Any, Any]:
    """`_reduced` of an f64 from 2 on: its significand times those 192 bits of 2/pi that matter.

    What is to the left of them gives whole turns; what is to the right is less than 2^-126 of a quarter, and no double
    is closer to a multiple of pi/2 than about 2^-62.
    """
    bits = x.bits(u64)
    # |x| = significand * 2**(exponent - 63). The window begins two bits above the quarters.
    significand = (bits << 11) | (1 << 63)
    place = ((bits >> 52) & 0x7FF).to(u32) - 1024
    word, shift = place >> 6, place & 63
    table = const(np.array(_TWO_OVER_PI, np.uint64))
    words = [table[word + k] for k in range(4)]
    first, second, third = (_shifted(a, b, shift) for a, b in itertools.pairwise(words))
    carry = ptx.mul.hi.u64(significand, third)
    low = ptx.mul.lo.u64(significand, second) + carry
    high = ptx.mul.lo.u64(significand, first) + ptx.mul.hi.u64(significand, second)
    high = select(low < carry, high + 1, high)
    quarters = (high >> 62).to(s32)
    high, low = _shifted(high, low, 2), low << 2
    # To the nearest multiple: from 1/2 on the part of a quarter is that of the next one, less 1.
    over = high.bits(s64) < 0
    quarters = select(over, quarters + 1, quarters)
    high, low = select(over, select(low == 0, ~high + 1, ~high), high), select(over, ~low + 1, low)
    zeros = ptx.clz.b64(high).bits(u32)
    part = _shifted(high, low, zeros)
    scale = power_of_two(-64 - zeros.bits(s32), f64)
    top = ((part >> 11) << 11).to(f64, "rn") * scale
    bottom = (part & 0x7FF).to(f64, "rn") * scale
    angle, rest = two_product(top, _PI[0] * 0.5)
    angle, rest = fast_two_sum(angle, fma_rn(top, _PI[1] * 0.5, fma_rn(bottom, _PI[0] * 0.5, rest)))
    negative = over ^ (x < 0.0)
    return (
        select(negative, -angle, angle), select(negative, -rest, rest), select(x < 0.0, -quarters, quarters)
    )


def _shifted(high: Any, low: Any, count: Any) -> Any:
    """The upper 64 of 128 bits, shifted to the left by up to 63."""
    return (high << count) | ((low >> 1) >> (63 - count))


def _sine(r: Any, rest: Any, quadrant: Any) -> Any:
    """sin(r + rest + quadrant * pi/2)."""
    square, kind = r * r, r.type
    sine, cosine = polynomial(square, *_SIN[kind]), polynomial(square, *_COS[kind])
    above = fma_rn(square, -0.5, 1.0)
    if rest is None:
        sine = fma_rn(r * square, sine, r)
        cosine = fma_rn(square * square, cosine, above)
    else:
        sine = r + fma_rn(r * square, sine, rest * above)
        error = fma_rn(square, -0.5, 1.0 - above)
        cosine = above + fma_rn(square * square, cosine, fma_rn(-r, rest, error))
    value = select((quadrant & 1) == 0, sine, cosine)
    return select((quadrant & 2) == 0, value, -value)


def _finite(x: Any, result: Any) -> Any:
    return select(abs(x) < math.inf, result, math.nan)


@function_of(f32, f64)
def sin(x: Any) -> KernelOperand:
    """The sine of ``x`` radians, to 2 ulp. Far from 0 (100,000 in f32, 500,000 in f64) a branch reduces ``x``."""
    return select(x == 0.0, x, _finite(x, _sine(*_reduced(x))))


@function_of(f32, f64)
def cos(x: Any) -> KernelOperand:
    """The cosine of ``x`` radians, to 2 ulp."""
    r, rest, quadrant = _reduced(x)
    return _finite(x, _sine(r, rest, quadrant + 1))


@function_of(f32, f64)
def sincos(x: Any) -> tuple[Any, Any]:
    """The sine and the cosine of ``x`` radians, with one reduction of ``x``: `sin` and `cos`."""
    r, rest, quadrant = _reduced(x)
    sine, cosine = _sine(r, rest, quadrant), _sine(r, rest, quadrant + 1)
    return select(x == 0.0, x, _finite(x, sine)), _finite(x, cosine)


@function_of(f32, f64)
def tan(x: Any) -> KernelOperand:
    """The tangent of ``x`` radians, to 3 ulp."""
    r, rest, quadrant = _reduced(x)
    square = r * r
    slope = r * square
    factor = polynomial(square, *_TAN[x.type])
    tangent = fma_rn(slope, factor, r) if rest is None else r + fma_rn(slope, factor, fma_rn(rest, square, rest))
    tangent = select((quadrant & 1) == 0, tangent, quotient(-1.0, tangent))
    return select(x == 0.0, x, _finite(x, tangent))


def _quarters(x: Any) -> tuple[Any, Any, Any]:
    """`_reduced` of ``x * pi``."""
    within = fma_rn((x * 0.5).to(x.type, "rzi"), -2.0, x)
    quadrant = (within * 2.0).to(s32, "rni")
    part = fma_rn(quadrant.to(x.type), -0.5, within)
    if x.type is f32:
        return fma_rn(part, -8.742277657347586e-08, part * 3.1415927410125732), None, quadrant
    angle, rest = two_product(part, _PI[0])
    return angle, fma_rn(part, _PI[1], rest), quadrant


@function_of(f32, f64)
def sinpi(x: Any) -> KernelOperand:
    """The sine of ``x * pi`` without the error of that product, to 2 ulp; exact zeros at whole numbers."""
    result = _sine(*_quarters(x))
    return select(result == 0.0, x * 0.0, _finite(x, result))


@function_of(f32, f64)
def cospi(x: Any) -> KernelOperand:
    """The cosine of ``x * pi`` without the error of that product, to 2 ulp."""
    r, rest, quadrant = _quarters(x)
    return _finite(x, _sine(r, rest, quadrant + 1) + 0.0)


@function_of(f32)
def sin_approx(x: Any) -> KernelOperand:
    """The sine: one ``sin.approx``, absolute error at most 2^-20.5 for ``|x| <= 2 pi``, and worse beyond."""
    return ptx.sin.approx.f32(x)


@function_of(f32)
def cos_approx(x: Any) -> KernelOperand:
    """The cosine: one ``cos.approx``, absolute error at most 2^-20.5 for ``|x| <= 2 pi``, and worse beyond."""
    return ptx.cos.approx.f32(x)
