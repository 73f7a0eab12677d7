"""Hyperbolic functions and their inverses."""

from __future__ import annotations

import math
from typing import Any

from ..language import ptx, select
from ..types import KernelOperand, f32, f64
from .exponential import exp, exp_of_sum, expm1, log, log1p
from .functions import fma_rn, function_of, polynomial, quotient

_SINH = {
    f32: (2.783942136375117e-06, 0.0001984263362828642, 0.008333311416208744, 0.1666666716337204),
    f64: (
        2.8483690015782823e-15, 7.646477577642725e-13, 1.6059050685204993e-10, 2.5052108345825784e-08,
        2.755731922411932e-06, 0.00019841269841269592, 0.008333333333333333, 0.16666666666666666,
    ),
}
"""(sinh(x) - x) / x^3 in x^2 for |x| < 1."""
_TANH = (
    0.0029845640528947115, -0.00899269338697195, 0.0219831932336092, -0.05398846045136452, 0.1333344578742981,
    -0.3333333432674408,
)
"""(tanh(x) - x) / x^3 in x^2 for |x| < 0.6, in f32."""


def _signed(size: Any, x: Any) -> Any:
    """The result for the absolute value of ``x``, with the sign of ``x``."""
    return ptx[f"copysign.{x.type}"](x, size)


@function_of(f32, f64)
def sinh(x: Any) -> KernelOperand:
    """The hyperbolic sine, to 2 ulp."""
    square, size = x * x, abs(x)
    small = fma_rn(size * square, polynomial(square, *_SINH[x.type]), size)
    half = exp_of_sum(size, shift=-1)
    return _signed(select(size < 1.0, small, half - quotient(0.25, half)), x)


@function_of(f32, f64)
def cosh(x: Any) -> KernelOperand:
    """The hyperbolic cosine, to 2 ulp."""
    half = exp_of_sum(abs(x), shift=-1)
    return half + quotient(0.25, half)


@function_of(f32, f64)
def tanh(x: Any) -> KernelOperand:
    """The hyperbolic tangent, to 2 ulp in f32, to 3 in f64."""
    size = abs(x)
    if x.type is f64:
        power = expm1(size * -2.0)
        return _signed(quotient(-power, power + 2.0), x)
    square = x * x
    small = fma_rn(size * square, polynomial(square, *_TANH), size)
    large = 1.0 - quotient(2.0, exp(size * 2.0) + 1.0)
    return _signed(select(size < 0.6, small, large), x)


@function_of(f32)
def tanh_approx(x: Any) -> KernelOperand:
    """The hyperbolic tangent: one ``tanh.approx``, relative error at most 2^-10.9."""
    return ptx.tanh.approx.f32(x)


@function_of(f32, f64)
def asinh(x: Any) -> KernelOperand:
    """The inverse of `sinh`, to 4 ulp."""
    size = abs(x)
    large = 2.0**13 if x.type is f32 else 2.0**28
    within = ptx[f"min.{x.type}"](size, large)
    square = within * within
    small = log1p(within + quotient(square, ptx[f"sqrt.rn.{x.type}"](square + 1.0) + 1.0))
    result = select(size < large, small, log(size) + math.log(2))
    return select(size <= math.inf, _signed(result, x), x)


@function_of(f32, f64)
def acosh(x: Any) -> KernelOperand:
    """The inverse of `cosh`, for ``x >= 1``, to 4 ulp; below it is NaN."""
    large = 2.0**13 if x.type is f32 else 2.0**28
    above = ptx[f"min.{x.type}"](x, large) - 1.0
    small = log1p(above + ptx[f"sqrt.rn.{x.type}"](above * (above + 2.0)))
    result = select(x < large, small, log(x) + math.log(2))
    return select(x >= 1.0, result, math.nan)


@function_of(f32, f64)
def atanh(x: Any) -> KernelOperand:
    """The inverse of `tanh`, to 4 ulp. Of 1 and -1 it is infinite, beyond them NaN."""
    size = abs(x)
    return _signed(log1p(quotient(size + size, 1.0 - size)) * 0.5, x)
