"""Functions of the parts of a floating point number: its sign, its exponent, its neighbours; exact, all of them."""

from __future__ import annotations

import math
from typing import Any

from ..errors import PtxTypeError
from ..language import Value, maximum, minimum, ptx, reg, select
from ..language.errors import described, located
from ..types import KernelOperand, bf16, f16, f32, f64, s32
from .functions import FORMATS, fma_rn, function_of, has_sign, is_nan, power_of_two, values


def fma(a: Any, b: Any, c: Any) -> KernelOperand:
    """``a * b + c``, rounded once: one ``fma.rn``. Exact to half a unit in the last place."""
    given = [v for v in (a, b, c) if isinstance(v, Value)]
    if not given or not given[0].type.is_float:
        got = given[0].type if given else described(a)
        raise located(PtxTypeError, f"`fma` of {got}", "of integers it is `ptx.mad.lo.u32(a, b, c)`")
    return fma_rn(a, b, c)


def clamp(x: Any, low: Any, high: Any) -> KernelOperand:
    """``x``, but not below ``low`` nor above ``high``: a ``max`` and a ``min``. A NaN becomes ``low``. Integers too."""
    return minimum(maximum(x, low), high)


@function_of(f32, f64)
def fabs(x: Any) -> KernelOperand:
    """The absolute value: ``abs(x)``."""
    return abs(x)


@function_of(f32, f64)
def fmax(x: Any, y: Any) -> KernelOperand:
    """The larger one; of a NaN and a number the number: one ``max``."""
    return maximum(*values(x, y))


@function_of(f32, f64)
def fmin(x: Any, y: Any) -> KernelOperand:
    """The smaller one; of a NaN and a number the number: one ``min``."""
    return minimum(*values(x, y))


@function_of(f32, f64)
def fdim(x: Any, y: Any) -> KernelOperand:
    """``x - y`` where that is positive, else 0."""
    x, y = values(x, y)
    return select(x <= y, 0.0, x - y)


@function_of(f32, f64)
def copysign(x: Any, y: Any) -> KernelOperand:
    """The size of ``x`` with the sign of ``y``: one ``copysign``."""
    x, y = values(x, y)
    return ptx[f"copysign.{x.type}"](y, x)


@function_of(f32, f64)
def isnan(x: Any) -> KernelOperand:
    """A predicate: one ``testp.notanumber``."""
    return is_nan(x)


@function_of(f32, f64)
def isinf(x: Any) -> KernelOperand:
    """A predicate: one ``testp.infinite``."""
    return ptx[f"testp.infinite.{x.type}"](x)


@function_of(f32, f64)
def isfinite(x: Any) -> KernelOperand:
    """A predicate: one ``testp.finite``."""
    return ptx[f"testp.finite.{x.type}"](x)


@function_of(f32, f64, f16, bf16)
def signbit(x: Any) -> KernelOperand:
    """A predicate: whether the sign bit is set, of -0 and of NaNs too."""
    return has_sign(x)


@function_of(f32, f64, f16, bf16)
def nextafter(x: Any, y: Any) -> KernelOperand:
    """The number of the format next to ``x`` towards ``y``."""
    x, y = values(x, y)
    form = FORMATS[x.type]
    start, end = (v if v.type.bits > 16 else v.to(f32) for v in (x, y))
    bits, goal = x.bits(form.integer), y.bits(form.integer)
    moved = select((start < end) ^ (bits < 0), bits + 1, bits - 1)
    moved = select(start == 0.0, goal & form.sign | 1, moved)
    moved = select(start == end, goal, moved)
    return select(is_nan(start) | is_nan(end), form.infinity | 1 << form.fraction - 1, moved).bits(x.type)


# ---------------------------------------------------------------------------------------------------------------------
# The exponent


def normalized(x: Any) -> tuple[Any, Any]:
    """The size of a finite ``x`` that is not 0, as bits of a number in [1, 2), and its exponent as an s32."""
    form = FORMATS[x.type]
    size = abs(x)
    small = size < form.least
    bits = select(small, size * 2.0**54, size).bits(form.integer)
    exponent = (bits >> form.fraction).to(s32) if form.integer is not s32 else bits >> form.fraction
    fraction = bits & (1 << form.fraction) - 1 | form.bias << form.fraction
    return fraction, select(small, exponent - (form.bias + 54), exponent - form.bias)


@function_of(f32, f64)
def ilogb(x: Any) -> KernelOperand:
    """The exponent of ``x`` as an s32: 1 for 2 and 3. Of 0 and NaN it is -2^31, of infinities 2^31 - 1."""
    _, exponent = normalized(x)
    exponent = select(isfinite(x), exponent, 2**31 - 1)
    return select((x == 0.0) | is_nan(x), -(2**31), exponent)


@function_of(f32, f64)
def logb(x: Any) -> KernelOperand:
    """The exponent of ``x`` as a float. Of 0 it is -inf, of infinities inf."""
    _, exponent = normalized(x)
    result = select(isfinite(x), exponent.to(x.type), x * x)
    return select(x == 0.0, -math.inf, result)


@function_of(f32, f64)
def frexp(x: Any) -> tuple[Any, Any]:
    """``m`` in [0.5, 1) and an s32 ``e`` with ``x == m * 2**e``. 0, infinities and NaNs have an ``e`` of 0."""
    fraction, exponent = normalized(x)
    plain = ~isfinite(x) | (x == 0.0)
    part = ptx[f"copysign.{x.type}"](x, fraction.bits(x.type) * 0.5)
    return select(plain, x, part), select(plain, 0, exponent + 1)


@function_of(f32, f64)
def ldexp(x: Any, n: Any) -> KernelOperand:
    """``x * 2**n`` for an s32 ``n``, rounded once where the result is subnormal."""
    if not isinstance(n, Value):
        n = reg(s32, n).copy()
    elif n.type is not s32:
        raise located(PtxTypeError, f"`ldexp` by an exponent of {n.type}", "`n.to(s32)`")
    form = FORMATS[x.type]
    least = 2 * form.bias + form.fraction + 2
    n = clamp(n, -least, least)
    # No product but the last rounds: one that is subnormal is the last, or all behind it are by powers up to 1.
    fraction, exponent = normalized(x)
    part = ptx[f"copysign.{x.type}"](x, fraction.bits(x.type))
    total = clamp(exponent + n, -form.bias - form.fraction - 2, form.bias + 1)
    half = total >> 1
    result = part * power_of_two(half, x.type) * power_of_two(total - half, x.type)
    return select(isfinite(x) & (x != 0.0), result, x + x)


scalbn = ldexp
"""C's other name of `ldexp`."""


@function_of(f32, f64)
def modf(x: Any) -> tuple[Any, Any]:
    """The part behind the point and the whole part, both as floats with the sign of ``x``."""
    whole = x.to(x.type, "rzi")
    rest = select(isinf(x), 0.0, x - whole)
    return ptx[f"copysign.{x.type}"](x, rest), whole
