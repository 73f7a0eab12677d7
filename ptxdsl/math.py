"""Elementary functions of floating point Values: plain Python functions on the public language, traced in place.

A name by itself (`exp`) is the accurate one: a few dozen instructions, correct to about one unit in the last place
over the whole range of its argument, with infinities, NaNs, zeros and subnormal numbers as IEEE 754 and C have them.
A name that ends in ``_approx`` is what the special function unit gives in one or two instructions (``ex2.approx``);
its error bound stands in its docstring. The accurate ones use polynomials and no approximate instruction, so they
give the same bits on a GPU and in the emulator.

f32 everywhere; `exp`, `exp2`, `log`, `log2`, `sqrt`, `rsqrt`, `sigmoid`, `silu`, `clamp` and `fma` in f64 too. An f16
or bf16 argument is computed in f32 and rounded once more. The bounds are checked by the tests.

The coefficients are minimax fits, made for this module; the reductions are those of Cody and Waite, *Software Manual
for the Elementary Functions* (1980).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

from .errors import PtxTypeError
from .language import Value, maximum, minimum, ptx, reg, select, when
from .language.errors import described, located
from .types import bf16, f16, f32, f64, s32, s64

__all__ = [
    "clamp", "cos", "cos_approx", "erf", "exp", "exp2", "exp2_approx", "exp_approx", "fma", "gelu", "gelu_tanh", "log",
    "log2", "log2_approx", "log_approx", "pow", "pow_approx", "rsqrt", "rsqrt_approx", "sigmoid", "sigmoid_approx",
    "silu", "silu_approx", "sin", "sin_approx", "sqrt", "sqrt_approx", "tanh", "tanh_approx",
]

F = TypeVar("F", bound=Callable[..., Any])


def _of(*kinds: Any) -> Callable[[F], F]:
    """A function of floats of these types; f16 and bf16 by way of f32."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def checked(*arguments: Any) -> Any:
            kind = next((a.type for a in arguments if isinstance(a, Value)), None)
            if kind is None:
                message = f"`{function.__name__}` of {described(arguments[0])}"
                raise located(PtxTypeError, message, "of Python numbers Python's `math` has it")
            if kind in (f16, bf16):
                wide = [a.to(f32) if isinstance(a, Value) else a for a in arguments]
                return function(*wide).to(kind)
            if kind not in kinds:
                known = " and ".join(map(str, kinds))
                raise located(PtxTypeError, f"`{function.__name__}` of {kind}, and it is of {known}", "`v.to(f32)`")
            return function(*arguments)

        return checked  # type: ignore[return-value]

    return decorate


def _fma(a: Any, b: Any, c: Any) -> Any:
    kind = next(v.type for v in (a, b, c) if isinstance(v, Value))
    return ptx[f"fma.rn.{kind}"](a, b, c)


def _polynomial(x: Any, *coefficients: float) -> Any:
    """The polynomial with these coefficients, the highest power first, by Horner's rule."""
    result: Any = coefficients[0]
    for coefficient in coefficients[1:]:
        result = _fma(result, x, coefficient)
    return result


def _is_nan(x: Any) -> Any:
    return ptx[f"testp.notanumber.{x.type}"](x)


# ---------------------------------------------------------------------------------------------------------------------
# Simple ones


def fma(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once: one ``fma.rn``. Exact to half a unit in the last place."""
    values = [v for v in (a, b, c) if isinstance(v, Value)]
    if not values or not values[0].type.is_float:
        got = values[0].type if values else described(a)
        raise located(PtxTypeError, f"`fma` of {got}", "of integers it is `ptx.mad.lo.u32(a, b, c)`")
    return _fma(a, b, c)


def clamp(x: Any, low: Any, high: Any) -> Any:
    """``x``, but not below ``low`` nor above ``high``: a ``max`` and a ``min``. A NaN becomes ``low``. Integers too."""
    return minimum(maximum(x, low), high)


@_of(f32, f64)
def sqrt(x: Any) -> Any:
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


@_of(f32)
def sqrt_approx(x: Any) -> Any:
    """The square root by ``sqrt.approx``: relative error at most 2^-23."""
    return ptx.sqrt.approx.f32(x)


@_of(f32, f64)
def rsqrt(x: Any) -> Any:
    """``1 / sqrt(x)``, to 2 units in the last place: a square root and a division."""
    return ptx[f"rcp.rn.{x.type}"](sqrt(x))


@_of(f32)
def rsqrt_approx(x: Any) -> Any:
    """``1 / sqrt(x)`` by ``rsqrt.approx``: relative error at most 2^-22.9."""
    return ptx.rsqrt.approx.f32(x)


# ---------------------------------------------------------------------------------------------------------------------
# Exponentials

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
_LIMITS = {f32: (-104.0, 89.0), f64: (-746.0, 710.0)}
"""Below and above, e^x is zero and infinity."""


def _scaled(x: Any, exponent: Any) -> Any:
    """``x * 2**exponent`` for an s32 exponent, in two steps, so that each power exists and only the last one rounds."""
    integer, shift, bias = (s32, 23, 127) if x.type is f32 else (s64, 52, 1023)
    half = exponent >> 1
    for part in (half, exponent - half):
        biased = part + bias if integer is s32 else part.to(s64) + bias
        x = x * (biased << shift).bits(x.type)
    return x


@_of(f32, f64)
def exp(x: Any) -> Any:
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
    low, high = _LIMITS[x.type]
    within = clamp(x, low, high)
    exponent = (within * _LOG2E).to(s32, "rni")
    steps = exponent.to(x.type)
    first, second = _LN2[x.type]
    rest = _fma(steps, -second, _fma(steps, -first, within))
    return select(_is_nan(x), x, _scaled(_polynomial(rest, *_EXP[x.type]), exponent))


@_of(f32)
def exp_approx(x: Any) -> Any:
    """e to the power of ``x`` by ``ex2.approx``: relative error at most 2^-22 + |x| * 2^-23."""
    return ptx.ex2.approx.f32(x * _LOG2E)


@_of(f32, f64)
def exp2(x: Any) -> Any:
    """2 to the power of ``x``, to 1 unit in the last place."""
    low, high = (-151.0, 129.0) if x.type is f32 else (-1076.0, 1025.0)
    within = clamp(x, low, high)
    exponent = within.to(s32, "rni")
    rest = within - exponent.to(x.type)
    power = _polynomial(rest, *_EXP2) if x.type is f32 else _polynomial(rest * math.log(2), *_EXP[f64])
    return select(_is_nan(x), x, _scaled(power, exponent))


@_of(f32)
def exp2_approx(x: Any) -> Any:
    """2 to the power of ``x``: one ``ex2.approx``, relative error at most 2^-22."""
    return ptx.ex2.approx.f32(x)


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


def _split(x: Any) -> tuple[Any, Any]:
    """``m`` and ``e`` with ``x = (1 + m) * 2**e`` and 1 + m about 1, for a positive ``x``; e as a float."""
    integer: Any
    integer, shift, least, lowest, power = (
        (s32, 23, 2.0**-126, 0x3F2AAAAB, 23) if x.type is f32 else (s64, 52, 2.0**-1022, 0x3FE6A09E667F3BCD, 54)
    )
    small = x < least
    bits = select(small, x * 2.0**power, x).bits(integer)
    whole = ((bits - lowest) >> shift) << shift
    exponent = (whole >> shift).to(x.type)
    # A shift of the exponent makes a normal number of a subnormal one.
    return (bits - whole).bits(x.type) - 1.0, exponent - select(small, x * 0.0 + float(power), 0.0)


def _log1p(m: Any) -> tuple[Any, Any]:
    """log(1 + m) as a sum of two, the first of which is ``m`` or so, for an ``m`` from `_split`."""
    if m.type is f32:
        square = m * m
        return m, _fma(square, -0.5, square * m * _polynomial(m, *_LOG1P))
    s = m / (m + 2.0)
    square = s * s
    half = m * m * 0.5
    # log(1 + m) = 2 s + s^3 R = m - (m^2/2 - s (m^2/2 + s^2 R)).
    return m, -(half - s * (half + square * _polynomial(square, *_ATANH)))


def _finished(x: Any, result: Any) -> Any:
    """What a logarithm is at the ends: of 0, of infinity, of NaN and of negative numbers."""
    result = select(x == 0.0, -math.inf, result)
    result = select(x < math.inf, result, x)
    return select(x < 0.0, math.nan, result)


@_of(f32, f64)
def log(x: Any) -> Any:
    """The natural logarithm, to 1 unit in the last place. Of 0 it is -inf, of negative numbers NaN."""
    m, exponent = _split(x)
    first, second = _log1p(m)
    high, low = _LN2[x.type]
    return _finished(x, _fma(exponent, high, first + _fma(exponent, low, second)))


@_of(f32)
def log_approx(x: Any) -> Any:
    """The natural logarithm by ``lg2.approx``: absolute error at most 2^-22 near 1, relative 2^-21 elsewhere."""
    return ptx.lg2.approx.f32(x) * math.log(2)


@_of(f32, f64)
def log2(x: Any) -> Any:
    """The logarithm to base 2, to 2 units in the last place. Of 0 it is -inf, of negative numbers NaN."""
    m, exponent = _split(x)
    first, second = _log1p(m)
    high = 1.44140625 if x.type is f32 else 1.4426950216293335
    low = _LOG2E - high if x.type is f32 else 1.9259629911266174681e-08
    return _finished(x, exponent + _fma(first, high, _fma(first, low, second * _LOG2E)))


@_of(f32)
def log2_approx(x: Any) -> Any:
    """The logarithm to base 2: one ``lg2.approx``, absolute error at most 2^-22 near 1, relative elsewhere."""
    return ptx.lg2.approx.f32(x)


# ---------------------------------------------------------------------------------------------------------------------
# Powers


@_of(f32)
def pow(x: Any, y: Any) -> Any:  # noqa: A001
    """``x`` to the power of ``y``, to 1 unit in the last place, with the special cases of C's ``powf``.

    Computed in f64, which costs about 70 instructions that a consumer GPU runs slowly.
    """
    x, y = (v if isinstance(v, Value) else reg(f32, v).copy() for v in (x, y))
    size = abs(x)
    power = exp2(y.to(f64) * log2(size.to(f64))).to(f32)
    power = select((size == 1.0) & ~_is_nan(y), 1.0, power)
    whole, half = y.to(f32, "rni") == y, y * 0.5
    odd = whole & (half.to(f32, "rni") != half)
    power = select(odd & (x.bits(s32) < 0), -power, power)
    power = select((x < 0.0) & (x > -math.inf) & ~whole, math.nan, power)
    return select((y == 0.0) | (x == 1.0), 1.0, power)


@_of(f32)
def pow_approx(x: Any, y: Any) -> Any:
    """``x`` to the power of ``y`` for a positive ``x``, by ``lg2.approx`` and ``ex2.approx``.

    The relative error grows with the size of the result's exponent: about 2^-22 * (1 + |y * log2(x)|).
    """
    return ptx.ex2.approx.f32(y * ptx.lg2.approx.f32(x))


# ---------------------------------------------------------------------------------------------------------------------
# Activations


@_of(f32, f64)
def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``, to 3 units in the last place; in f32 0 below -88.7, where it is less than 2^-127."""
    return ptx[f"rcp.rn.{x.type}"](exp(-x) + 1.0)


@_of(f32)
def sigmoid_approx(x: Any) -> Any:
    """``1 / (1 + exp(-x))`` by ``ex2.approx`` and ``rcp.approx``: relative error at most 2^-21 + |x| * 2^-23."""
    return ptx.rcp.approx.f32(exp_approx(-x) + 1.0)


@_of(f32, f64)
def silu(x: Any) -> Any:
    """``x * sigmoid(x)``, to 4 units in the last place."""
    return x * sigmoid(x)


@_of(f32)
def silu_approx(x: Any) -> Any:
    """``x * sigmoid_approx(x)``."""
    return x * sigmoid_approx(x)


_TANH = (
    0.0029845640528947115, -0.00899269338697195, 0.0219831932336092, -0.05398846045136452, 0.1333344578742981,
    -0.3333333432674408,
)
"""(tanh(x) - x) / x^3 in x^2 for |x| < 0.6."""


@_of(f32)
def tanh(x: Any) -> Any:
    """The hyperbolic tangent, to 2 units in the last place."""
    square, size = x * x, abs(x)
    small = _fma(size * square, _polynomial(square, *_TANH), size)
    large = 1.0 - ptx.div.rn.f32(2.0, exp(size * 2.0) + 1.0)
    return ptx.copysign.f32(x, select(size < 0.6, small, large))


@_of(f32)
def tanh_approx(x: Any) -> Any:
    """The hyperbolic tangent: one ``tanh.approx``, relative error at most 2^-10.9."""
    return ptx.tanh.approx.f32(x)


_ERF = (
    7.920309872133657e-05, -0.0008030750905163586, 0.005190733354538679, -0.02685512602329254, 0.11283618211746216,
    -0.3761262893676758, 0.12837916612625122,
)
"""erf(x) / x - 1 in x^2 for |x| < 1."""
_ERFC = (
    3.843216589416443e-08, -2.4716748612263473e-06, 5.389615398598835e-05, -0.0006385049200616777, 0.004897750914096832,
    -0.026716044172644615, 0.11048475652933121, 0.6314825415611267, 1.130396842956543, -0.0003532894479576498,
)
"""-log(1 - erf(x)) for 0.95 < x < 4."""


@_of(f32)
def erf(x: Any) -> Any:
    """The error function, to 2 units in the last place."""
    size = minimum(abs(x), 4.0)
    small = _fma(x, _polynomial(x * x, *_ERF), x)
    large = 1.0 - exp(-_polynomial(size, *_ERFC))
    return select(_is_nan(x), x, select(size < 0.975, small, ptx.copysign.f32(x, large)))


@_of(f32)
def gelu(x: Any) -> Any:
    """``x/2 * (1 + erf(x / sqrt(2)))``: absolute error at most 2^-23 * max(1, |x|)."""
    return x * 0.5 * (erf(x * math.sqrt(0.5)) + 1.0)


@_of(f32)
def gelu_tanh(x: Any) -> Any:
    """The usual approximation of `gelu` by a tanh: ``x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))``."""
    inner = x * _fma(x * x, 0.044715 * 2 * math.sqrt(2 / math.pi), 2 * math.sqrt(2 / math.pi))
    return x * sigmoid(inner)


# ---------------------------------------------------------------------------------------------------------------------
# Sine and cosine

_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100059082e-15)
"""pi/2 as the sum of three f32."""
_HALF_PI_WIDE = (1.5707963267948966, 6.123233995736766e-17)
_SIN = (3.2883583571674535e-06, -0.00019894627621397376, 0.00833346601575613, -0.1666666716337204)
"""(sin(r) - r) / r^3 in r^2 for |r| < pi/4."""
_COS = (2.4540056983823888e-05, -0.0013888257090002298, 0.0416666641831398)
"""(cos(r) - 1 + r^2/2) / r^4 in r^2 for |r| < pi/4."""


def _reduced(x: Any) -> tuple[Any, Any]:
    """``r`` and ``q`` with x = r + q * pi/2 and |r| <= pi/4; NaN for r where |x| is 2^40 or more."""
    turns = (x * (2 / math.pi)).to(s32, "rni")
    steps = turns.to(f32)
    near = x
    for part in _HALF_PI:
        near = _fma(steps, -part, near)
    rest, quadrant = reg(f32), reg(s32)
    rest.set(near)
    quadrant.set(turns)
    with when(~(abs(x) < 100000.0)):
        wide = x.to(f64)
        many = (wide * (2 / math.pi)).to(f64, "rni")
        far = _fma(many, -_HALF_PI_WIDE[1], _fma(many, -_HALF_PI_WIDE[0], wide))
        rest.set(select(abs(x) < 2.0**40, far.to(f32), math.nan))
        quadrant.set(many.to(s64).to(s32))
    return rest.copy(), quadrant.copy()


def _sine(r: Any, quadrant: Any) -> Any:
    """sin(r + quadrant * pi/2)."""
    square = r * r
    sine = _fma(r * square, _polynomial(square, *_SIN), r)
    cosine = _fma(square * square, _polynomial(square, *_COS), _fma(square, -0.5, 1.0))
    value = select((quadrant & 1) == 0, sine, cosine)
    return select((quadrant & 2) == 0, value, -value)


@_of(f32)
def sin(x: Any) -> Any:
    """The sine of ``x`` radians, to 2 units in the last place; NaN where |x| is 2^40 or more.

    Beyond |x| = 100,000 a branch reduces the argument in f64.
    """
    return select(x == 0.0, x, _sine(*_reduced(x)))


@_of(f32)
def cos(x: Any) -> Any:
    """The cosine of ``x`` radians, to 2 units in the last place; NaN where |x| is 2^40 or more."""
    rest, quadrant = _reduced(x)
    return _sine(rest, quadrant + 1)


@_of(f32)
def sin_approx(x: Any) -> Any:
    """The sine: one ``sin.approx``, absolute error at most 2^-20.5 for |x| <= 2 pi, and worse beyond."""
    return ptx.sin.approx.f32(x)


@_of(f32)
def cos_approx(x: Any) -> Any:
    """The cosine: one ``cos.approx``, absolute error at most 2^-20.5 for |x| <= 2 pi, and worse beyond."""
    return ptx.cos.approx.f32(x)
