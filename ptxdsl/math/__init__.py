"""Elementary functions of floating point Values: C's ``math.h`` as plain Python functions on the public language.

A name by itself (`exp`) is the accurate one: a few dozen instructions, correct to about one unit in the last place
over the whole range of its argument, with infinities, NaNs, zeros and subnormal numbers as IEEE 754 and C have them.
A name that ends in ``_approx`` is what the special function unit gives in one or two instructions (``ex2.approx``);
its error bound stands in its docstring. The accurate ones use polynomials and no approximate instruction, so they
give the same bits on a GPU and in the emulator.

All but the approximate ones take f32 and f64, ``ulp`` in their docstrings is a unit in the last place of the type. An
f16 or bf16 argument is computed in f32 and rounded once more. The bounds are checked by the tests, against mpmath.

The coefficients are minimax fits, made for this package; the reductions are those of Cody and Waite, *Software Manual
for the Elementary Functions* (1980), and of Payne and Hanek, *Radian reduction for trigonometric functions* (1983).
"""

from .activations import gelu, gelu_tanh, sigmoid, sigmoid_approx, silu, silu_approx
from .exponential import (
    exp,
    exp2,
    exp2_approx,
    exp10,
    exp_approx,
    expm1,
    log,
    log1p,
    log2,
    log2_approx,
    log10,
    log_approx,
)
from .hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh, tanh_approx
from .inverse_trigonometric import acos, asin, atan, atan2
from .manipulation import (
    clamp,
    copysign,
    fabs,
    fdim,
    fma,
    fmax,
    fmin,
    frexp,
    ilogb,
    isfinite,
    isinf,
    isnan,
    ldexp,
    logb,
    modf,
    nextafter,
    scalbn,
    signbit,
)
from .powers import cbrt, hypot, pow, pow_approx, rsqrt, rsqrt_approx, sqrt, sqrt_approx  # noqa: A004
from .rounding import ceil, floor, fmod, lrint, lround, nearbyint, remainder, remquo, rint, round, trunc  # noqa: A004
from .special import erf, erfc, lgamma, tgamma
from .trigonometric import cos, cos_approx, cospi, sin, sin_approx, sincos, sinpi, tan

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clamp",
    "copysign",
    "cos",
    "cos_approx",
    "cosh",
    "cospi",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "exp2_approx",
    "exp10",
    "exp_approx",
    "expm1",
    "fabs",
    "fdim",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "gelu",
    "gelu_tanh",
    "hypot",
    "ilogb",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log2_approx",
    "log10",
    "log_approx",
    "logb",
    "lrint",
    "lround",
    "modf",
    "nearbyint",
    "nextafter",
    "pow",
    "pow_approx",
    "remainder",
    "remquo",
    "rint",
    "round",
    "rsqrt",
    "rsqrt_approx",
    "scalbn",
    "sigmoid",
    "sigmoid_approx",
    "signbit",
    "silu",
    "silu_approx",
    "sin",
    "sin_approx",
    "sincos",
    "sinh",
    "sinpi",
    "sqrt",
    "sqrt_approx",
    "tan",
    "tanh",
    "tanh_approx",
    "tgamma",
    "trunc",
]
