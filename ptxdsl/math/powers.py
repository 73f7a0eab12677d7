"""Roots and powers."""

from __future__ import annotations

import math
from typing import Any

from ..language import maximum, minimum, ptx, reg, select
from ..types import KernelOperand, f32, f64
from .exponential import exp2, exp_of_sum, log2, log_as_sum
from .functions import FORMATS, fma_rn, function_of, has_sign, is_nan, quotient, two_product, values


@function_of(f32, f64)
def sqrt(x: Any) -> KernelOperand:
    """The square root: one ``sqrt.rn``, exact to half a unit in the last place.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, f32, math, ptx_kernel, use
    >>> @ptx_kernel
    ... def root(x: Ptr[f32]):
    ...     x[0] = math.sqrt(x[0])
    >>> x = np.array([2], np.float32)
    >>> with use("emulator"):
    ...     root[1, 1](x)
    >>> print(x[0])
    1.4142135
    """
    return ptx[f"sqrt.rn.{x.type}"](x)


@function_of(f32)
def sqrt_approx(x: Any) -> KernelOperand:
    """The square root by ``sqrt.approx``: relative error at most 2^-23."""
    return ptx.sqrt.approx.f32(x)


@function_of(f32, f64)
def rsqrt(x: Any) -> KernelOperand:
    """``1 / sqrt(x)``, to 2 units in the last place: a square root and a division."""
    return ptx[f"rcp.rn.{x.type}"](sqrt(x))


@function_of(f32)
def rsqrt_approx(x: Any) -> KernelOperand:
    """``1 / sqrt(x)`` by ``rsqrt.approx``: relative error at most 2^-22.9."""
    return ptx.rsqrt.approx.f32(x)


@function_of(f32, f64)
def cbrt(x: Any) -> KernelOperand:
    """The cube root, also of negative numbers, to 1 ulp."""
    form = FORMATS[x.type]
    size = abs(x)
    small = size < form.least * 2.0**24
    size = select(small, size * 2.0**54, size)
    # A third of the exponent is a first guess, to 1 in 20; an iteration of Halley's cubes the error.
    third = (2 * form.bias << form.fraction) // 3 - (1 << form.fraction - 5)
    root = (ptx[f"div.{form.integer}"](size.bits(form.integer), 3) + third).bits(x.type)
    for _ in range(1 if x.type is f32 else 2):
        quarter = root * 0.25 * root * root  # so that no sum is beyond the largest number
        root = root * quotient(fma_rn(size, 0.5, quarter), fma_rn(size, 0.25, quarter + quarter))
    square, error = two_product(root, root)
    rest = fma_rn(square, root, -size) + error * root
    root = root - quotient(rest, square * 3.0)
    root = ptx[f"copysign.{x.type}"](x, select(small, root * 2.0**-18, root))
    return select((abs(x) < math.inf) & (x != 0.0), root, x + x)


@function_of(f32, f64)
def hypot(x: Any, y: Any) -> KernelOperand:
    """``sqrt(x*x + y*y)``, to 1.1 ulp, without overflow on the way; of an infinity and anything it is infinity."""
    x, y = (abs(v) for v in values(x, y))
    form = FORMATS[x.type]
    large, small = maximum(x, y), minimum(x, y)
    # The power of two of the larger one, kept where its inverse is a number too.
    exponent = maximum(minimum(large.bits(form.integer) >> form.fraction, 2 * form.bias - 1), 1)
    power, inverse = ((e << form.fraction).bits(x.type) for e in (exponent, 2 * form.bias - exponent))
    large, small = large * inverse, small * inverse
    square, error = two_product(large, large)
    length = ptx[f"sqrt.rn.{x.type}"](fma_rn(small, small, square) + error) * power
    length = select(is_nan(x) | is_nan(y), math.nan, length)
    return select((x == math.inf) | (y == math.inf), math.inf, length)


@function_of(f32, f64)
def pow(x: Any, y: Any) -> KernelOperand:  # noqa: A001
    """``x`` to the power of ``y``, to 1 ulp, with the special cases of C's ``pow``.

    That of f32 is computed in f64, which costs about 70 instructions that a consumer GPU runs slowly; that of f64 has
    the logarithm as the sum of two numbers, in about 150.
    """
    x, y = values(x, y)
    size = abs(x)
    if x.type is f32:
        power = exp2(y.to(f64) * log2(size.to(f64))).to(f32)
    else:
        high, low = log_as_sum(size)
        product, error = two_product(y, high)
        power = exp_of_sum(product, select(abs(product) < math.inf, fma_rn(y, low, error), 0.0))
        none = reg(f64, 0.0).copy()
        power = select(size < math.inf, power, select(y > 0.0, math.inf, none))
        power = select(size == 0.0, select(y < 0.0, math.inf, none), power)
        power = select(is_nan(x) | is_nan(y), math.nan, power)
    power = select((size == 1.0) & ~is_nan(y), 1.0, power)
    whole, half = y.to(y.type, "rni") == y, y * 0.5
    odd = whole & (half.to(y.type, "rni") != half)
    power = select(odd & has_sign(x), -power, power)
    power = select((x < 0.0) & (x > -math.inf) & ~whole, math.nan, power)
    return select((y == 0.0) | (x == 1.0), 1.0, power)


@function_of(f32)
def pow_approx(x: Any, y: Any) -> KernelOperand:
    """``x`` to the power of ``y`` for a positive ``x``, by ``lg2.approx`` and ``ex2.approx``.

    The relative error grows with the size of the result's exponent: about ``2^-22 * (1 + |y * log2(x)|)``.
    """
    return ptx.ex2.approx.f32(y * ptx.lg2.approx.f32(x))
