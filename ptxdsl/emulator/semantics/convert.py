"""``cvt``: every pair of types, element by element.

Where a form has several sources (two f32 that become an f16x2) the first goes to the upper part of the result. What
the manual leaves open of the narrow formats follows the hardware as others measured it: which random bits an element
of ``.rs`` gets, that ``.relu`` makes -0 +0, that a scale divides on the way to a narrow format and multiplies back.
"""

from __future__ import annotations

from typing import NamedTuple

from ...isa import Form
from ...types import ScalarType
from .lanes import Bits, Real, integer_range, join
from . import semantics
from .floating import mode_of
from .formats import (
    FORMATS, Format, Random, canonical, element_name, flush, format_of, narrow, positive_part, saturate, widen,
)
from .rounding import directed_f64, odd

_INTEGRAL = ("rni", "rzi", "rmi", "rpi")


class _Element(NamedTuple):
    """One element to convert (of as many lanes as ``value`` has), its random bits and its scale, where there are."""

    value: Bits
    random: Random | None = None
    scale: Bits | None = None


@semantics("cvt")
def _cvt(form: Form, *sources: Bits | tuple[Bits, ...]) -> Bits:
    target, source = form.operands[0].type, form.operands[1].type
    assert target is not None and source is not None
    lanes, slot = target.lanes, target.bits // target.lanes
    values = [value for item in sources for value in (item if isinstance(item, tuple) else (item,))]
    scales = values.pop() if _scaled(form) else None
    if lanes == 1 or source.lanes == lanes:
        scale = None if scales is None else join([scales] * (lanes * 8 // scales.bits)).unpack(lanes)
        return _element(form, _Element(values[0].unpack(lanes), scale=scale), source, target).zext(slot).pack(lanes)
    random = _random(target, values[lanes]) if mode_of(form) == "rs" else [None] * lanes
    scale_of = [None] * lanes if scales is None else (scales.parts(8) * lanes)[: lanes][::-1]
    parts = [_element(form, _Element(*given), source, target).zext(slot) for given in zip(values, random, scale_of)]
    return join(parts[::-1])


def _scaled(form: Form) -> bool:
    return any(token.startswith("scaled") for token in form.tokens)


def _random(target: ScalarType, bits: Bits) -> list[Random | None]:
    """The random bits of each element, the first element first.

    Of two elements each has a halfword. Of four, two share 16 bits, which the first of them reads backwards; e2m1x4
    takes them from a byte of either halfword.
    """
    upper, lower = bits.field(16, 16), bits.field(0, 16)
    if target.lanes == 2:
        count = 13 if element_name(target) == "f16" else 16
        return [Random(half.zext(32) & ((1 << count) - 1), count) for half in (upper, lower)]
    if element_name(target) == "e2m1":
        upper, lower = join([bits.field(8, 8), bits.field(24, 8)]), join([bits.field(0, 8), bits.field(16, 8)])
    halves = (upper.call("bitreverse"), upper, lower.call("bitreverse"), lower)
    return [Random(half.zext(32), 16) for half in halves]


def _element(form: Form, given: _Element, source: ScalarType, target: ScalarType) -> Bits:
    value = given.value
    if not source.is_float:
        if target.is_float:
            return _from_integer(form, value, source, target)
        if "sat" in form.tokens:
            value = _clamp(value, source, target)
        return value.resize(target.bits, source.is_signed)
    if "ftz" in form.tokens and element_name(source) == "f32":
        value = flush(value, FORMATS["f32"])
    if not target.is_float:
        return _to_integer(form, value, format_of(source), target)
    number = _integral(form, _number(form, given._replace(value=value), source, target))
    return _to_float(form, number, target, given.random)


# ---------------------------------------------------------------------------------------------------------------------
# Integers


def _clamp(value: Bits, source: ScalarType, target: ScalarType) -> Bits:
    """Clamped to the part of the target's range that the source's type holds."""
    low, high = integer_range(target.bits, target.is_signed)
    least, most = integer_range(source.bits, source.is_signed)
    if low > least:
        value = value.max(low, source.is_signed)
    return value.min(high, source.is_signed) if high < most else value


def _integral(form: Form, value: Real) -> Real:
    mode = next((token for token in form.tokens if token in _INTEGRAL), None)
    return value if mode is None else value.integral(mode)


def _to_integer(form: Form, value: Bits, layout: Format, target: ScalarType) -> Bits:
    """NaN gives 0, or the highest bit from f64 and to 64 bits."""
    wide = widen(value, layout, 64 if layout.bits == 64 else 32)
    result = _integral(form, wide).to_int(target.bits, target.is_signed)
    if 64 in (layout.bits, target.bits):
        return wide.isnan().pick(1 << (target.bits - 1), result)
    return result


def _from_integer(form: Form, value: Bits, source: ScalarType, target: ScalarType) -> Bits:
    """Through f64 where that is exact; 64 bits as the sum of two halves, rounded to odd for a narrower target."""
    mode, bits, signed = mode_of(form), format_of(target).bits, source.is_signed
    if mode == "rn" and bits >= 32:
        real = value.to_real(bits, signed)
    elif source.bits < 64:
        real = value.to_real(64, signed)
    else:
        halves = [value.shr(32, signed).to_real(64, signed) * 2.0**32, (value & 0xFFFFFFFF).to_real(64, False)]
        real = odd("add", halves) if bits < 64 else directed_f64("add", halves, mode)
    return _to_float(form, real, target)


@semantics("cvt_pack")
def _cvt_pack(form: Form, a: Bits, b: Bits, c: Bits | None = None) -> Bits:
    """a and b clamped to a narrow type, side by side with b the lower; c, shifted up, above them."""
    kind = next(token for token in form.tokens if token[0] in "us" and token[1:].isdigit())
    size, signed = int(kind[1:]), kind[0] == "s"
    pair = [value.clamp(size, signed) & ((1 << size) - 1) for value in (b, a)]
    both = pair[0] | (pair[1] << size)
    return both if c is None else (c << 2 * size) | both


# ---------------------------------------------------------------------------------------------------------------------
# Floats


def _number(form: Form, given: _Element, source: ScalarType, target: ScalarType) -> Real:
    """The exact value of a source element: f64 for f64 and where a scale takes part, else f32."""
    value, scale, name = given.value, given.scale, element_name(source)
    if name == "s2f6":
        number = value.to_real(32, signed=True) * 2.0**-6
    else:
        layout = FORMATS[name]
        if any(token.startswith("scaled::n1") for token in form.tokens):
            value = ((value & (layout.sign - 1)) - 1).lt((1 << layout.mantissa) - 1).pick(0, value)
        number = widen(value, layout, 64 if name == "f64" else 32)
    if scale is None:
        return number
    factor = widen(scale, FORMATS["ue8m0"], 64)
    return number.to(64) / factor if target.bits < source.bits or source.bits == 32 else number.to(64) * factor


def _to_float(form: Form, value: Real, target: ScalarType, random: Random | None = None) -> Bits:
    name = element_name(target)
    if "sat" in form.tokens:
        value = saturate(value)
    if "relu" in form.tokens:
        value = positive_part(value)
    if name == "ue8m0":
        return _to_power(form, value)
    if name == "s2f6":
        return value.isnan().pick(127, (value * 2.0**6).integral(f"{mode_of(form)}i").to_int(8, signed=True))
    layout = FORMATS[name]
    if not layout.signed:
        value = abs(value)
    if layout.bits >= value.bits:
        code = canonical(value.to(layout.bits))
    else:
        code = narrow(value, layout, mode_of(form), finite="satfinite" in form.tokens, random=random)
    if name == "tf32":
        return value.isnan().pick(FORMATS["f32"].nan, code.zext(32) << 13)
    if "pzo" in form.tokens:
        code = code.eq(layout.sign).pick(0, code)
    return flush(code, layout) if "ftz" in form.tokens and name == "f32" else code


def _to_power(form: Form, value: Real) -> Bits:
    """The ue8m0 of a magnitude: the exponent, one more where rounded up; what is too large is NaN, or the largest."""
    bits = value.to_bits() & 0x7FFFFFFF
    code = bits >> 23
    if mode_of(form) == "rp":
        up = code.eq(0).pick(bits.gt(1 << 22), (bits & 0x7FFFFF).ne(0))
        code = code + up.zext(32)
    code = code.min(0xFE if "satfinite" in form.tokens else 0xFF)
    return value.isnan().pick(0xFF, code).trunc(8)
