"""``cvt``: every pair of types, element by element.

Where a form has several sources (two f32 that become an f16x2) the first goes to the upper part of the result.
"""

from __future__ import annotations

from ...isa import Form
from ...types import ScalarType
from ..lanes import Bits, Real, join
from . import semantics
from .floating import mode_of
from .formats import FORMATS, Format, Random, canonical, flush, format_of, narrow, positive_part, saturate, widen
from .rounding import directed_f64, odd

_INTEGRAL = ("rni", "rzi", "rmi", "rpi")


@semantics("cvt")
def _cvt(form: Form, *sources: Bits | tuple[Bits, ...]) -> Bits:
    target, source = form.operands[0].type, form.operands[1].type
    assert target is not None and source is not None
    values = _spread(sources)
    if target.lanes == 1 or source.lanes == target.lanes:
        value = values[0].unpack(target.lanes)
        return _element(form, value, source, target).pack(target.lanes)
    elements = values[: target.lanes]
    random = values[target.lanes] if mode_of(form) == "rs" else None
    slot = target.bits // target.lanes
    parts = [
        _element(form, value, source, target, _random(target, random, place)).zext(slot)
        for place, value in enumerate(elements)
    ]
    return join(parts[::-1])


def _spread(sources: tuple[Bits | tuple[Bits, ...], ...]) -> list[Bits]:
    """The sources with those in braces taken out of them."""
    return [value for source in sources for value in (source if isinstance(source, tuple) else (source,))]


def _random(target: ScalarType, random: Bits | None, place: int) -> Random | None:
    """The random bits that the manual's figures give to the element at ``place``, the first element being 0."""
    if random is None:
        return None
    if target.lanes == 2:
        half = random.field(16, 16) if place == 0 else random.field(0, 16)
        count = 13 if str(target) == "f16x2" else 16
        return Random(half.zext(32) & ((1 << count) - 1), count)
    half = random.field(16, 16) if place < 2 else random.field(0, 16)
    return Random(half.zext(32), 16)


def _element(form: Form, value: Bits, source: ScalarType, target: ScalarType, random: Random | None = None) -> Bits:
    if source.is_float:
        layout = format_of(source)
        if "ftz" in form.tokens and layout.name == "f32":
            value = flush(value, layout)
        if not target.is_float:
            return _to_integer(form, value, layout, target)
        return _to_float(form, _integral(form, widen(value, layout, 64 if layout.bits == 64 else 32)), target, random)
    if target.is_float:
        return _from_integer(form, value, source, target)
    if "sat" in form.tokens:
        value = _clamp(value, source, target)
    return value.resize(target.bits, source.is_signed)


def _clamp(value: Bits, source: ScalarType, target: ScalarType) -> Bits:
    """Clamped to the part of the target's range that the source's type holds."""
    low, high = _range(target)
    least, most = _range(source)
    if low > least:
        value = value.max(low, source.is_signed)
    return value.min(high, source.is_signed) if high < most else value


def _range(kind: ScalarType) -> tuple[int, int]:
    if kind.is_signed:
        return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1
    return 0, (1 << kind.bits) - 1


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


def _to_float(form: Form, value: Real, target: ScalarType, random: Random | None = None) -> Bits:
    layout = format_of(target)
    if "sat" in form.tokens:
        value = saturate(value)
    if "relu" in form.tokens:
        value = positive_part(value)
    if layout.bits >= value.bits:
        code = canonical(value.to(layout.bits))
    else:
        code = narrow(value, layout, mode_of(form), finite="satfinite" in form.tokens, random=random)
    if layout.name == "tf32":
        return value.isnan().pick(FORMATS["f32"].nan, code.zext(32) << 13)
    if "pzo" in form.tokens:
        code = code.eq(layout.sign).pick(0, code)
    return flush(code, layout) if "ftz" in form.tokens and layout.name == "f32" else code


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
