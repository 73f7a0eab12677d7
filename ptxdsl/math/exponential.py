"""Exponentials and logarithms."""

from __future__ import annotations

import math
from typing import Any

from ..language import ptx, select
from ..types import KernelOperand, f32, f64, s32
from .functions import (
    FORMATS,
    fast_two_sum,
    fma_rn,
    function_of,
    is_nan,
    polynomial,
    power_of_two,
    two_product,
    two_sum,
)
from .manipulation import clamp

_LOG2E = math.log2(math.e)
_LN2 = {f32: (0.693145751953125, 1.428606820309417e-06), f64: (6.93147180369123816490e-01, 1.90821492927058770002e-10)}
"""ln 2 in two parts, the first with so few bits that its product with an exponent is exact."""

_EXP = {
    f32: (
        0.0013827431248500943, 0.00837008934468031, 0.04166822135448456, 0.16666509211063385, 0.4999999403953552, 1.0,
        1.0,
    ),
    f64: (
        2.0838096745086435e-09, 2.5112428413374585e-08, 2.7557533087931e-07, 2.755723414822725e-06,
        2.480158701064936e-05, 0.0001984126989654097, 0.0013888888889043989, 0.008333333333317296, 0.04166666666666639,
        0.16666666666666682, 0.5, 1.0, 1.0,
    ),
}
"""e^r for |r| < ln(2)/2."""
_EXP2 = (
    0.0001533242320874706, 0.0013392053078860044, 0.009618495590984821, 0.05550357699394226, 0.24022647738456726,
    0.6931471824645996, 1.0,
)
"""2^r for |r| < 1/2, in f32."""
_EXPM1 = {
    f32: (
        0.00019906219677068293, 0.0013931110734120011, 0.008333289064466953, 0.041666507720947266, 0.1666666716337204,
    ),
    f64: (
        2.0921387267741872e-09, 2.5105910132561805e-08, 2.7557253888210595e-07, 2.7557253911706103e-06,
        2.4801587345728933e-05, 0.00019841269875772144, 0.0013888888888875552, 0.008333333333325976,
        0.04166666666666668, 0.1666666666666667,
    ),
}
"""(e^r - 1 - r - r^2/2) / r^3 for |r| < ln(2)/2."""
_LOG10_2 = {f32: (0.301025390625, 4.605039066518657e-06), f64: (0.3010299955494702, 1.1451100898021838e-10)}
_LN10 = {f32: (2.3025851249694824, -3.1975435632602967e-08), f64: (2.302585092994046, -2.1707562233822494e-16)}
_LIMITS = {f32: (-170.0, 170.0), f64: (-1400.0, 1400.0)}
"""Below and above, e^x is zero and infinity, also times a factor that is large or small."""


def scaled(x: Any, exponent: Any) -> KernelOperand:
    """``x * 2**exponent`` for an s32 exponent, in two steps, so that each power exists and only the last one rounds."""
    half = exponent >> 1
    return x * power_of_two(half, x.type) * power_of_two(exponent - half, x.type)


def _reduced(x: Any) -> tuple[Any, Any]:
    """``r`` and ``n`` with x = r + n * ln(2) and |r| <= ln(2) / 2."""
    exponent = (x * _LOG2E).to(s32, "rni")
    steps = exponent.to(x.type)
    first, second = _LN2[x.type]
    return fma_rn(steps, -second, fma_rn(steps, -first, x)), exponent


def exp_of_sum(x: Any, low: Any = None, factor: Any = None, shift: int = 0) -> KernelOperand:
    """``e**(x + low) * factor * 2**shift``, for a ``low`` that is small beside ``x``; only the last product rounds."""
    within = clamp(x, *_LIMITS[x.type])
    rest, exponent = _reduced(within)
    if low is not None:
        rest = rest + select(within == x, low, 0.0)
    power = polynomial(rest, *_EXP[x.type])
    power = power if factor is None else power * factor
    return select(is_nan(x), x, scaled(power, exponent + shift if shift else exponent))


@function_of(f32, f64)
def exp(x: Any) -> KernelOperand:
    """e to the power of ``x``, to 1 unit in the last place.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, f32, math, ptx_kernel, use
    >>> @ptx_kernel
    ... def power(x: Ptr[f32]):
    ...     x[0] = math.exp(x[0])
    >>> x = np.array([1], np.float32)
    >>> with use("emulator"):
    ...     power[1, 1](x)
    >>> print(x[0])
    2.7182817
    """
    return exp_of_sum(x)


@function_of(f32)
def exp_approx(x: Any) -> KernelOperand:
    """e to the power of ``x`` by ``ex2.approx``: relative error at most ``2^-22 + |x| * 2^-23``."""
    return ptx.ex2.approx.f32(x * _LOG2E)


@function_of(f32, f64)
def exp2(x: Any) -> KernelOperand:
    """2 to the power of ``x``, to 1 unit in the last place."""
    low, high = (-151.0, 129.0) if x.type is f32 else (-1076.0, 1025.0)
    within = clamp(x, low, high)
    exponent = within.to(s32, "rni")
    rest = within - exponent.to(x.type)
    power = polynomial(rest, *_EXP2) if x.type is f32 else polynomial(rest * math.log(2), *_EXP[f64])
    return select(is_nan(x), x, scaled(power, exponent))


@function_of(f32)
def exp2_approx(x: Any) -> KernelOperand:
    """2 to the power of ``x``: one ``ex2.approx``, relative error at most 2^-22."""
    return ptx.ex2.approx.f32(x)


@function_of(f32, f64)
def exp10(x: Any) -> KernelOperand:
    """10 to the power of ``x``, to 2 ulp."""
    low, high = (-46.0, 39.0) if x.type is f32 else (-325.0, 309.0)
    within = clamp(x, low, high)
    exponent = (within * math.log2(10)).to(s32, "rni")
    steps = exponent.to(x.type)
    first, second = _LOG10_2[x.type]
    rest = fma_rn(steps, -second, fma_rn(steps, -first, within))
    high, low = _LN10[x.type]
    power = polynomial(fma_rn(rest, high, rest * low), *_EXP[x.type])
    return select(is_nan(x), x, scaled(power, exponent))


@function_of(f32, f64)
def expm1(x: Any) -> KernelOperand:
    """``exp(x) - 1``, to 2 ulp, near 0 too."""
    low, high = (-20.0, 88.8) if x.type is f32 else (-40.0, 709.9)
    rest, exponent = _reduced(clamp(x, low, high))
    power = fma_rn(rest * rest, fma_rn(rest, polynomial(rest, *_EXPM1[x.type]), 0.5), rest)
    # Half of the power, since 2**exponent may be beyond the largest number.
    half = power_of_two(exponent - 1, x.type)
    result = select(exponent == 0, power, fma_rn(half, power, half - 0.5) * 2.0)
    result = select(x > high, math.inf, result)
    return select(is_nan(x) | (x == 0.0), x, result)


# ---------------------------------------------------------------------------------------------------------------------
# Logarithms

_LOG1P = (
    -0.12808220088481903, 0.13994455337524414, -0.12204015254974365, 0.14003531634807587, -0.16679012775421143,
    0.20010577142238617, -0.2499983161687851, 0.3333321213722229,
)
"""(log(1 + m) - m + m^2/2) / m^3 for |m| < 1/3, in f32."""
_ATANH = (
    0.14334596735033295, 0.13138106733592844, 0.15391617516588083, 0.18181685813598808, 0.22222223544358724,
    0.2857142856502475, 0.4000000000001188, 0.6666666666666666,
)
"""(2 atanh(s) - 2 s) / s^3 in s^2 for |s| < 0.1725, in f64."""


_LOG10E = {f32: (0.4342944920063019, -1.0103049952192578e-08), f64: (0.4342944819032518, 1.098319650216765e-17)}


_ATANH_TAIL = (
    0.10777744322429235, 0.10454619317904744, 0.11766890180078166, 0.1333329473193326, 0.15384615784410877,
    0.1818181817949514, 0.2222222222222898, 0.28571428571428564, 0.4,
)
"""(2 atanh(s) - 2 s - 2/3 s^3) / s^5 in s^2 for |s| < 0.1725, in f64."""
_LN2_WIDE = (0.6931471803691238, 1.9082149292705877e-10)


def _split(x: Any) -> tuple[Any, Any]:
    """``m`` and ``e`` with ``x = (1 + m) * 2**e`` and 1 + m about 1, for a positive ``x``; e as a float."""
    form = FORMATS[x.type]
    shift, lowest, power = form.fraction, *((0x3F2AAAAB, 23) if x.type is f32 else (0x3FE6A09E667F3BCD, 54))
    small = x < form.least
    bits = select(small, x * 2.0**power, x).bits(form.integer)
    whole = ((bits - lowest) >> shift) << shift
    exponent = (whole >> shift).to(x.type)
    # A shift of the exponent makes a normal number of a subnormal one.
    return (bits - whole).bits(x.type) - 1.0, exponent - select(small, x * 0.0 + float(power), 0.0)


def _log1p(m: Any) -> tuple[Any, Any]:
    """log(1 + m) as a sum of two, the first of which is ``m`` or so, for an ``m`` from `_split`."""
    if m.type is f32:
        square = m * m
        return m, fma_rn(square, -0.5, square * m * polynomial(m, *_LOG1P))
    s = m / (m + 2.0)
    square = s * s
    half = m * m * 0.5
    # log(1 + m) = 2 s + s^3 R = m - (m^2/2 - s (m^2/2 + s^2 R)).
    return m, -(half - s * (half + square * polynomial(square, *_ATANH)))


def log_as_sum(x: Any) -> tuple[Any, Any]:
    """The natural logarithm of a positive f64 as the sum of two, to 2^-64 of its size."""
    m, exponent = _split(x)
    bottom, error = two_sum(m, 2.0)
    s = ptx.div.rn.f64(m, bottom)
    s_low = ptx.div.rn.f64(fma_rn(-s, error, fma_rn(-s, bottom, m)), bottom)
    square, error = two_product(s, s)
    square_low = fma_rn(s + s, s_low, error)
    cube, error = two_product(square, s)
    cube_low = fma_rn(square, s_low, fma_rn(square_low, s, error))
    # 2 s + s^3 (2/3 + s^2 (2/5 + ...)); the first coefficient has two parts.
    third, error = two_product(cube, 2 / 3)
    third_low = fma_rn(cube_low, 2 / 3, fma_rn(cube, 3.700743415417188e-17, error))
    third_low = fma_rn(cube * square, polynomial(square, *_ATANH_TAIL), third_low)
    high, low = _LN2_WIDE
    total, error = two_sum(exponent * high, s + s)
    total_low = error + s_low * 2.0
    total, error = two_sum(total, third)
    total_low = total_low + error + fma_rn(exponent, low, third_low)
    return fast_two_sum(total, total_low)


def _finished(x: Any, result: Any) -> Any:
    """What a logarithm is at the ends: of 0, of infinity, of NaN and of negative numbers."""
    result = select(x == 0.0, -math.inf, result)
    result = select(x < math.inf, result, x)
    return select(x < 0.0, math.nan, result)


@function_of(f32, f64)
def log(x: Any) -> KernelOperand:
    """The natural logarithm, to 1 unit in the last place. Of 0 it is -inf, of negative numbers NaN."""
    m, exponent = _split(x)
    first, second = _log1p(m)
    high, low = _LN2[x.type]
    return _finished(x, fma_rn(exponent, high, first + fma_rn(exponent, low, second)))


@function_of(f32)
def log_approx(x: Any) -> KernelOperand:
    """The natural logarithm by ``lg2.approx``: absolute error at most 2^-22 near 1, relative 2^-21 elsewhere."""
    return ptx.lg2.approx.f32(x) * math.log(2)


@function_of(f32, f64)
def log2(x: Any) -> KernelOperand:
    """The logarithm to base 2, to 2 units in the last place. Of 0 it is -inf, of negative numbers NaN."""
    m, exponent = _split(x)
    first, second = _log1p(m)
    high = 1.44140625 if x.type is f32 else 1.4426950216293335
    low = _LOG2E - high if x.type is f32 else 1.9259629911266174681e-08
    return _finished(x, exponent + fma_rn(first, high, fma_rn(first, low, second * _LOG2E)))


@function_of(f32)
def log2_approx(x: Any) -> KernelOperand:
    """The logarithm to base 2: one ``lg2.approx``, absolute error at most 2^-22 near 1, relative elsewhere."""
    return ptx.lg2.approx.f32(x)


@function_of(f32, f64)
def log10(x: Any) -> KernelOperand:
    """The logarithm to base 10, to 2 ulp. Of 0 it is -inf, of negative numbers NaN."""
    m, exponent = _split(x)
    first, second = _log1p(m)
    steps_high, steps_low = _LOG10_2[x.type]
    high, low = _LOG10E[x.type]
    rest = fma_rn(first, low, fma_rn(exponent, steps_low, second * math.log10(math.e)))
    return _finished(x, fma_rn(exponent, steps_high, fma_rn(first, high, rest)))


@function_of(f32, f64)
def log1p(x: Any) -> KernelOperand:
    """``log(1 + x)``, to 2 ulp, near 0 too. Of -1 it is -inf, below it NaN."""
    total, error = two_sum(x, 1.0)
    m, exponent = _split(total)
    first, second = _log1p(m)
    high, low = _LN2[x.type]
    # The first term of the series in the rounding error of 1 + x.
    rest = fma_rn(exponent, low, second + select(total < math.inf, error, 0.0) / total)
    return select(x == 0.0, x, _finished(total, fma_rn(exponent, high, first + rest)))
