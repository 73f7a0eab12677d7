"""Floating-point arithmetic in every format: f64, f32, f16, bf16, their packed forms and mixtures of them.

Each operation goes the shortest way that is exact. To nearest, f32 and f64 are the host's own operations; f16 sums
and products are f32 operations rounded again, which is innocuous because 24 >= 2 * 11 + 2; a bf16 product may fall
below f32's range and an f16 or bf16 fma is not innocuous, so these, as every other direction, take the way of
:mod:`rounding`.
"""

from __future__ import annotations

from collections.abc import Callable

from ...isa import Form
from .lanes import Bits, Real
from . import semantics
from .formats import FORMATS, Format, canonical, flush, format_of, narrow, positive_part, saturate, widen
from .integer import elements
from .rounding import directed_f64, odd

__all__ = ["OOB_NAN", "each", "mode_of", "rough"]

OOB_NAN = 0xFFFF
"""The NaN with which tensor copies fill what lies out of bounds, and that ``fma.oob`` takes for zero. The manual does
not say which NaN it is; this one is no result of any instruction."""

_F32, _F64 = FORMATS["f32"], FORMATS["f64"]


def mode_of(form: Form) -> str:
    """The rounding mode; to nearest even where the form has none."""
    return next((token for token in form.tokens if token in ("rn", "rna", "rz", "rm", "rp", "rs")), "rn")


def each(form: Form, sources: tuple[Bits, ...]) -> tuple[list[Bits], list[Format]]:
    """The elements of the sources as lanes, subnormals flushed where the form says so, and their formats."""
    values, formats = [], []
    for source, spec in zip(sources, [spec for spec in form.operands if not spec.written]):
        assert spec.type is not None
        layout = format_of(spec.type)
        value = source.unpack(spec.type.lanes)
        values.append(flush(value, layout) if "ftz" in form.tokens and layout.name in ("f16", "f32") else value)
        formats.append(layout)
    return values, formats


def _arithmetic(form: Form, operation: str, sources: tuple[Bits, ...], negate: int | None = None) -> Bits:
    values, formats = each(form, sources)
    if negate is not None:
        values[negate] = values[negate] ^ formats[negate].sign
    return result(form, operation, values, formats)


def result(form: Form, operation: str, values: list[Bits], formats: list[Format]) -> Bits:
    """The rounded result of ``add``, ``mul``, ``fma``, ``div`` or ``sqrt`` on elements."""
    kind = form.operands[0].type
    assert kind is not None
    target = format_of(kind)
    result = _round(form, operation, values, formats, target)
    if "ftz" in form.tokens and target.name in ("f16", "f32"):
        result = flush(result, target)
    return result.pack(kind.lanes)


def _round(form: Form, operation: str, values: list[Bits], formats: list[Format], target: Format) -> Bits:
    mode = _mode(form, formats, target)
    if target is _F64:
        wide = [widen(value, layout, 64) for value, layout in zip(values, formats)]
        return (_nearest(operation, wide) if mode == "rn" else directed_f64(operation, wide, mode)).to_bits()
    same = all(layout is target for layout in formats)
    if mode == "rn" and target is _F32:
        return _finish(form, _nearest(operation, _widened(values, formats, 32)), target, mode)
    if mode == "rn" and same and (operation == "add" or (target.name == "f16" and operation == "mul")):
        return _finish(form, _nearest(operation, _widened(values, formats, 32)), target, mode)
    if all(layout.exponent <= 5 for layout in formats):  # sums and products of these stay far inside f32's range
        return _finish(form, odd(operation, _widened(values, formats, 32), mode), target, mode)
    return _finish(form, odd(operation, _widened(values, formats, 64), mode), target, mode)


def _mode(form: Form, formats: list[Format], target: Format) -> str:
    """The rounding; f32 sources with a narrower target know only that towards zero, whether it is spelled or not."""
    return "rz" if formats[0] is _F32 and target.bits == 16 else mode_of(form)


def _widened(values: list[Bits], formats: list[Format], bits: int) -> list[Real]:
    return [widen(value, layout, bits) for value, layout in zip(values, formats)]


def _nearest(operation: str, values: list[Real]) -> Real:
    first, *others = values
    if operation == "add":
        return first + others[0]
    if operation == "mul":
        return first * others[0]
    if operation == "div":
        return first / others[0]
    return first.fma(*others) if operation == "fma" else first.sqrt()


def _finish(form: Form, value: Real, target: Format, mode: str) -> Bits:
    """Clamped as the form says, then rounded to the target."""
    if "sat" in form.tokens:
        value = saturate(value)
        if value.bits == target.bits:
            return value.to_bits()
    if "relu" in form.tokens:
        value = positive_part(value)
    if value.bits == target.bits:
        return canonical(value)
    return narrow(value, target, mode, finite="satfinite" in form.tokens)


@semantics("add.float")
def _add(form: Form, a: Bits, b: Bits) -> Bits:
    return _arithmetic(form, "add", (a, b))


@semantics("sub.float")
def _sub(form: Form, a: Bits, b: Bits) -> Bits:
    return _arithmetic(form, "add", (a, b), negate=1)


@semantics("mul.float")
def _mul(form: Form, a: Bits, b: Bits) -> Bits:
    return _arithmetic(form, "mul", (a, b))


@semantics("fma")
def _fma(form: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    result = _arithmetic(form, "fma", (a, b, c))
    if "oob" not in form.tokens:
        return result
    count = elements(form).lanes
    outside = a.unpack(count).eq(OOB_NAN) | b.unpack(count).eq(OOB_NAN)
    return outside.pick(0, result.unpack(count)).pack(count)


@semantics("div.float")
def _div(form: Form, a: Bits, b: Bits) -> Bits:
    """``.full`` within 2 ulp is met by the exact quotient. ``.approx`` too, but it is 0 for the largest divisors."""
    quotient = _arithmetic(form, "div", (a, b))
    if "approx" not in form.tokens:
        return quotient
    size = b & 0x7FFFFFFF
    huge = size.gt(_power_of_two(126)) & size.lt(_F32.infinity)
    infinite = (a & 0x7FFFFFFF).eq(_F32.infinity)
    zero = infinite.pick(_F32.nan, quotient & _F32.sign)
    return (huge & quotient.ne(_F32.nan)).pick(zero, quotient)


def _power_of_two(exponent: int) -> int:
    """The f32 code of 2**exponent."""
    return (exponent + _F32.bias) << _F32.mantissa


@semantics("rcp")
def _rcp(form: Form, a: Bits) -> Bits:
    """``.approx`` within 1 ulp is met by the exact reciprocal."""
    if form.type is not None and form.type.bits == 64 and "approx" in form.tokens:
        return rough(a, lambda value: 1.0 / value)
    values, formats = each(form, (a,))
    layout = formats[0]
    one = a.b.bits(a.bits, layout.bias << layout.mantissa)
    return result(form, "div", [one, *values], formats * 2)


def rough(a: Bits, function: Callable[[Real], Real]) -> Bits:
    """``rcp`` and ``rsqrt.approx.ftz.f64``: a function of the upper 32 bits, of which the upper 32 are kept."""
    upper = flush(a & (0xFFFFFFFF << 32), _F64)
    value = function(upper.reals())
    kept = flush(value.to_bits(), _F64) & (0xFFFFFFFF << 32)
    return value.isnan().pick(0x7FFFFFFF00000000, kept)


@semantics("sqrt")
def _sqrt(form: Form, a: Bits) -> Bits:
    """``.approx`` within 2**-23 is met by the exact root, which the host has as an instruction."""
    return _arithmetic(form, "sqrt", (a,))


# ---------------------------------------------------------------------------------------------------------------------
# Signs and properties


def _elementwise(operation: Callable[..., Bits]) -> Callable[..., Bits]:
    def build(form: Form, *sources: Bits) -> Bits:
        values, formats = each(form, sources)
        return operation(form, formats[0], *values).pack(elements(form).lanes)

    return build


@semantics("neg.float")
@_elementwise
def _neg(_: Form, layout: Format, a: Bits) -> Bits:
    return a ^ layout.sign


@semantics("abs.float")
@_elementwise
def _abs(_: Form, layout: Format, a: Bits) -> Bits:
    size = a & (layout.sign - 1)
    return size.gt(layout.infinity).pick(a, size) if layout is _F64 else size


@semantics("copysign")
def _copysign(_: Form, a: Bits, b: Bits) -> Bits:
    sign = 1 << (a.bits - 1)
    return (a & sign) | (b & (sign - 1))


@semantics("testp")
def _testp(form: Form, a: Bits) -> Bits:
    layout = format_of(elements(form))
    size = a & (layout.sign - 1)
    least = 1 << layout.mantissa
    subnormal = size.ne(0) & size.lt(least)
    return {
        "finite": size.lt(layout.infinity), "infinite": size.eq(layout.infinity),
        "number": size.le(layout.infinity), "notanumber": size.gt(layout.infinity),
        "normal": size.lt(layout.infinity) & ~subnormal, "subnormal": subnormal,
    }[form.tokens[0]]


# ---------------------------------------------------------------------------------------------------------------------
# Minimum and maximum


@semantics("min.float")
def _min(form: Form, *sources: Bits) -> Bits:
    return _extreme(form, "minimum", sources)


@semantics("max.float")
def _max(form: Form, *sources: Bits) -> Bits:
    return _extreme(form, "maximum", sources)


def _extreme(form: Form, name: str, sources: tuple[Bits, ...]) -> Bits:
    """-0 is less than +0. A result is one of the sources, so that going to f32 and back is exact."""
    values, formats = each(form, sources)
    layout = formats[0]
    signs = values[0] ^ values[1]
    if "abs" in form.tokens:
        values = [value & (layout.sign - 1) for value in values]
    wide = _widened(values, formats, 64 if layout is _F64 else 32)
    best = wide[0]
    for other in wide[1:]:
        best = best.call(name if "NaN" in form.tokens else f"{name}num", other)
    result = canonical(best) if best.bits == layout.bits else narrow(best, layout)
    if "xorsign" in form.tokens:
        result = best.isnan().pick(result, result | (signs & layout.sign))
    return result.pack(elements(form).lanes)
