"""The error function and the gamma function."""

from __future__ import annotations

import math
from typing import Any

from ..language import break_if, loop, maximum, minimum, ptx, reg, select
from ..types import KernelOperand, f32, f64
from .exponential import exp_of_sum, log, log1p, log_as_sum
from .functions import fma_rn, function_of, is_nan, polynomial, quotient, two_product, two_sum
from .trigonometric import sinpi

_ERF = {
    f32: (
        7.920309872133657e-05, -0.0008030750905163586, 0.005190733354538679, -0.02685512602329254, 0.11283618211746216,
        -0.3761262893676758, 0.12837916612625122,
    ),
    f64: (
        -7.801168956958104e-10, 1.3722963043836663e-08, -1.620917219067151e-07, 1.6447517094524797e-06,
        -1.4924744607231057e-05, 0.00012055295317066916, -0.0008548325989563953, 0.005223977607420313,
        -0.026866170643275792, 0.11283791670945251, -0.3761263890318355, 0.12837916709551256,
    ),
}
"""erf(x) / x - 1 in x^2 for |x| < 1."""
_ERFC = {
    f32: (
        0.00017785781528800726, 0.005592396482825279, -0.01647212728857994, 0.036891426891088486, -0.06631787866353989,
        0.09377641975879669, -0.10103707760572433, 0.06809443980455399, 0.015379522927105427, -0.1396210789680481,
        1.2329951524734497,
    ),
    f64: (
        1.4340427843282072e-09, -9.79516583411061e-09, -1.6744110632278685e-08, 1.0365359955510435e-07,
        7.318411912471649e-08, -8.199785192805326e-07, 2.948081695591304e-07, 5.706804464745438e-06,
        -1.122245465758964e-05, -2.4398181694866556e-05, 0.00015062179239675716, -0.00019925693423773912,
        -0.0007577733091811024, 0.005031970013666347, -0.016197734055563497, 0.03716751553425114,
        -0.06633036581235303, 0.0937328349985112, -0.10103906603630049, 0.06809705425468898, 0.015379652102619708,
        -0.1396211168405625, 1.2329951186255526,
    ),
}
"""e^(x^2) erfc(x) (1 + 2 x) in (x - 4) / (x + 4) for x > 0.45."""
_LGAMMA = (
    1.7535842115851008e-09, -1.310662240944153e-08, 4.614352146958165e-08, -1.0927958556584599e-07,
    2.2084187214924384e-07, -4.49057573520545e-07, 9.50450626573813e-07, -2.037432831998084e-06, 4.3758853874678006e-06,
    -9.440227757056886e-06, 2.05071374495121e-05, -4.492609536307868e-05, 9.945750585244932e-05,
    -0.00022315477326956018, 0.0005096695263956872, -0.0011927539108433107, 0.002890510330631906, -0.007385551028699468,
    0.0205808084277873, -0.0673523010531978, 0.3224670334241132, 0.42278433509846713,
)
"""lgamma(2 + t) / t for -0.5 < t < 1."""
_STIRLING = (
    -0.029550653594771242, 0.00641025641025641, -0.0019175269175269176, 0.0008417508417508417, -0.0005952380952380953,
    0.0007936507936507937, -0.002777777777777778, 0.08333333333333333,
)
"""(lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2) * x in 1 / x^2: Bernoulli's numbers."""


def _erf_near(x: Any) -> Any:
    return fma_rn(x, polynomial(x * x, *_ERF[x.type]), x)


def _erfc_far(size: Any) -> Any:
    """erfc of a ``size`` from 0.45 on."""
    size = minimum(size, 12.0 if size.type is f32 else 30.0)
    square, error = two_product(size, size)
    factor = polynomial(quotient(size - 4.0, size + 4.0), *_ERFC[size.type])
    return exp_of_sum(-square, -error, quotient(factor, fma_rn(size, 2.0, 1.0)))


@function_of(f32, f64)
def erf(x: Any) -> KernelOperand:
    """The error function, to 2 ulp.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, f64, math, ptx_kernel, use
    >>> @ptx_kernel
    ... def probability(x: Ptr[f64]):
    ...     x[0] = math.erf(x[0] * 0.5**0.5)
    >>> x = np.array([1.0])
    >>> with use("emulator"):
    ...     probability[1, 1](x)
    >>> print(round(x[0], 6))
    0.682689
    """
    size = abs(x)
    result = select(size < 0.9, _erf_near(size), 1.0 - _erfc_far(size))
    return select(is_nan(x), x, ptx[f"copysign.{x.type}"](x, result))


@function_of(f32, f64)
def erfc(x: Any) -> KernelOperand:
    """``1 - erf(x)``, to 4 ulp (6 in f64), also where it is small."""
    far = _erfc_far(abs(x))
    return select(is_nan(x), x, select(x < 0.5, select(x > -0.5, 1.0 - _erf_near(x), 2.0 - far), far))


# ---------------------------------------------------------------------------------------------------------------------
# The gamma function, in f64


def _narrowed(function: Any, x: Any) -> Any:
    return function(x.to(f64)).to(f32)


def _log_gamma(x: Any) -> tuple[Any, Any]:
    """The logarithm of gamma, for ``x`` from 12 on, as a sum of two: Stirling's series."""
    x = minimum(x, 1e300)
    high, low = log_as_sum(x)
    power, error = two_product(x - 0.5, high)
    power, rest = two_sum(power, -x)
    inverse = quotient(1.0, x)
    series = inverse * polynomial(inverse * inverse, *_STIRLING) + math.log(2 * math.pi) / 2
    total, last = two_sum(power, series)
    return total, fma_rn(x - 0.5, low, error) + rest + last


@function_of(f32, f64)
def tgamma(x: Any) -> KernelOperand:
    """The gamma function, to 1 ulp in f32, computed in f64, and to 12 ulp in f64.

    Of 0 it is infinite with its sign, of negative whole numbers NaN.
    """
    if x.type is f32:
        return _narrowed(tgamma, x)
    # Up to 12 by z gamma(z) = gamma(z + 1); of x < 0 by gamma(x) gamma(-x) = -pi / (x sin(pi x)).
    size, reflected = abs(x), x < 0.0
    steps, product = reg(f64, 0.0), reg(f64, 1.0)
    with loop():
        at = size + steps
        break_if(~(at < 12.0))
        product *= at
        steps += 1.0
    at, error = two_sum(minimum(size, 200.0), steps)
    exponent, rest = _log_gamma(at)
    rest = fma_rn(error, log(at), rest)
    factor = select(reflected, product * quotient(math.pi, x * sinpi(size)), quotient(1.0, product))
    exponent, rest = (select(reflected, -part, part) for part in (exponent, rest))
    result = exp_of_sum(exponent, rest, factor)
    pole = (x < 0.0) & (x == x.to(f64, "rzi"))
    result = select(x == 0.0, quotient(1.0, x), result)
    return select(is_nan(x), x, select(pole, math.nan, result))


@function_of(f32, f64)
def lgamma(x: Any) -> KernelOperand:
    """The logarithm of the absolute value of the gamma function.

    To 1 ulp in f32, computed in f64; in f64 to 6 ulp, for negative ``x`` to an absolute error of 2^-48 times the larger
    of 1 and the result.
    """
    if x.type is f32:
        return _narrowed(lgamma, x)
    size = abs(x)
    at, product = reg(f64, select(size < 12.0, size, 0.0)), reg(f64, 1.0)
    with loop():
        break_if(~(at >= 2.5))
        at -= 1.0
        product *= at
    wide = log(size)
    near = select(size < 0.5, size, select(size < 1.5, size - 1.0, at - 2.0))
    result = near * polynomial(near, *_LGAMMA)
    result = result + select(size < 1.5, -log1p(near), log(product)) - select(size < 0.5, wide, 0.0)
    high, low = _log_gamma(maximum(size, 12.0))
    result = select(size < 12.0, result, high + low)
    reflection = select(size < 2.0**-60, -wide, math.log(math.pi) - wide - log(abs(sinpi(x))) - result)
    result = select(x < 0.0, reflection, select(size > 2.0**60, size * (wide - 1.0), result))
    return select(is_nan(x), x, select(size < math.inf, result, math.inf))
