"""The floating-point formats, and how a number gets from one to another.

One integer algorithm rounds to every format in every direction (:func:`narrow`): the codes of a format, read as
integers, grow with its numbers, so a carry out of the mantissa is the right next exponent by itself. Where the host
rounds to nearest in one instruction, that is taken instead. All NaN results are the one that NVIDIA hardware makes,
positive with every bit of the mantissa set; PTX calls them unspecified.
"""

from __future__ import annotations

from typing import NamedTuple

from ...types import ScalarType
from .lanes import Bits, Real

__all__ = [
    "FORMATS", "Format", "Random", "canonical", "element_name", "flush", "format_of", "narrow", "positive_part",
    "saturate", "widen",
]


class Format(NamedTuple):
    """A binary float: its bits, those of exponent and mantissa, the exponent's bias.

    ``special`` is ``ieee`` where the highest exponent means infinity and NaN, ``nan`` where only the highest code is
    a NaN, ``none`` where there is neither.
    """

    name: str
    bits: int
    exponent: int
    mantissa: int
    bias: int
    special: str = "ieee"
    signed: bool = True

    @property
    def sign(self) -> int:
        """The bit of the sign; 0 for a format without one."""
        return 1 << (self.bits - 1) if self.signed else 0

    @property
    def infinity(self) -> int:
        """The code of infinity in an ``ieee`` format."""
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def largest(self) -> int:
        """The code of the largest finite number."""
        if self.special == "ieee":
            return self.infinity - 1
        return (1 << (self.exponent + self.mantissa)) - (2 if self.special == "nan" else 1)

    @property
    def beyond(self) -> int:
        """The code after the largest: infinity, or NaN where there is no infinity."""
        return self.largest + 1

    @property
    def nan(self) -> int:
        """The canonical NaN; the largest number where there is none."""
        return (1 << (self.exponent + self.mantissa)) - 1


FORMATS = {
    form.name: form
    for form in (
        Format("f64", 64, 11, 52, 1023), Format("f32", 32, 8, 23, 127), Format("f16", 16, 5, 10, 15),
        Format("bf16", 16, 8, 7, 127), Format("tf32", 19, 8, 10, 127),
        Format("e5m2", 8, 5, 2, 15), Format("e4m3", 8, 4, 3, 7, "nan"),
        Format("e3m2", 6, 3, 2, 3, "none"), Format("e2m3", 6, 2, 3, 1, "none"), Format("e2m1", 4, 2, 1, 1, "none"),
        Format("e2m1p4", 4, 2, 1, 1, "none"), Format("ue5m3", 8, 5, 3, 15, "nan", signed=False),
        Format("ue8m0", 8, 8, 0, 127, "nan", signed=False),
    )
}


def element_name(kind: ScalarType) -> str:
    """The name of a type's elements: ``f16`` for ``f16x2``."""
    name = str(kind)
    return name if kind.lanes == 1 else name[: name.rindex("x")]


def format_of(kind: ScalarType) -> Format:
    """The format of a type's elements."""
    return FORMATS[element_name(kind)]


def flush(value: Bits, form: Format) -> Bits:
    """Subnormal numbers as zeros of the same sign."""
    return (value & (form.sign - 1)).lt(1 << form.mantissa).pick(value & form.sign, value)


def saturate(value: Real) -> Real:
    """Clamped to [+0, 1]; NaN gives +0."""
    low = value.compare(">", 0.0).pick(value, 0.0)
    return low.compare("<", 1.0).pick(low, 1.0)


def positive_part(value: Real) -> Real:
    """+0 where it is negative or a zero (``.relu``); NaN stays."""
    return value.compare("<=", 0.0).pick(0.0, value)


def canonical(value: Real) -> Bits:
    """The bits, with every NaN as the canonical one; a NaN of f64 keeps its payload."""
    if value.bits == 64:
        return value.to_bits()
    nan, bits = value.isnan(), value.to_bits()
    if value.bits != 32:
        return nan.pick(FORMATS[f"f{value.bits}"].nan, bits)
    return Bits(value.b, value.b.seldom(nan, lambda: nan.pick(FORMATS["f32"].nan, bits).value, bits.value), 32)


def widen(value: Bits, form: Format, bits: int = 32) -> Real:
    """A number of ``form`` in f32 or f64, exactly; bits above those of the format do not count."""
    if form.name in ("f16", "f32", "f64"):
        return value.reals().to(bits)
    if form.name == "bf16":
        return (value.zext(32) << 16).reals().to(bits)
    if form.name == "ue8m0":
        return _power(value).to(bits)
    if form.name == "e5m2":
        return (value.zext(16) << 8).reals().to(bits)
    return _widen_small(value.zext(32), form).to(bits)


def _power(code: Bits) -> Real:
    """2**(code - 127), or NaN; the least power is a subnormal f32, so it is made in f64."""
    power = ((code.zext(64) + (1023 - 127)) << 52).reals().to(32)
    return code.eq(0xFF).pick(float("nan"), power)


def _widen_small(code: Bits, form: Format) -> Real:
    """The code placed in f32's fields is the number but for the bias, which a product with a power of two mends.

    The product makes subnormal numbers right too.
    """
    magnitude = code & form.nan
    placed = (magnitude << (23 - form.mantissa)).reals() * 2.0 ** (127 - form.bias)
    bits = placed.to_bits()
    if form.special == "nan":
        bits = magnitude.eq(form.nan).pick(FORMATS["f32"].nan, bits)
    if form.signed:
        bits = bits | ((code & form.sign) << (32 - form.bits))
    return bits.reals()


class Random(NamedTuple):
    """Random bits for stochastic rounding: the lowest ``size`` of ``value`` (in the source's width)."""

    value: Bits
    size: int


def narrow(
    value: Real, form: Format, mode: str = "rn", *, finite: bool = False, random: Random | None = None
) -> Bits:
    """``value`` rounded to ``form``: its code in ``form.bits`` bits.

    ``mode`` is ``rn``, ``rna``, ``rz``, ``rm``, ``rp``, or ``rs`` with ``random``. What is too large becomes infinity
    (NaN where there is none) or the largest number as the mode says, with ``finite`` always the largest number.
    """
    if mode == "rn" and not finite and value.bits == 64 and form.name == "f32":
        return canonical(value.to(32))
    if mode == "rn" and not finite and value.bits == 32 and form.name == "f16":
        return value.isnan().pick(form.nan, value.to(16).to_bits())
    if mode == "rn" and not finite and value.bits == 32 and form.name == "bf16":
        bits = value.to_bits()
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)).field(16, 16)
        return value.isnan().pick(form.nan, rounded)
    return _narrow(value, form, mode, finite, random)


def _narrow(value: Real, form: Format, mode: str, finite: bool, random: Random | None) -> Bits:
    source = FORMATS[f"f{value.bits}"]
    bits = value.to_bits()
    magnitude = bits & (source.sign - 1)
    negative = bits.negative()
    exponent = (magnitude >> source.mantissa).max(1)
    hidden = magnitude.ge(1 << source.mantissa).pick(1 << source.mantissa, bits.b.bits(bits.bits, 0))
    number = (magnitude & ((1 << source.mantissa) - 1)) | hidden
    lowest = source.bias + 1 - form.bias
    scale = exponent.max(lowest)
    shift, farthest = scale - exponent + (source.mantissa - form.mantissa), source.mantissa + 2
    if random is not None:
        number = number >> (shift.max(farthest) - farthest).min(value.bits - 1)
    shift = shift.min(farthest)
    code = ((scale - lowest) << form.mantissa) + ((number + _increment(number, shift, mode, negative, random)) >> shift)
    code = code.min(_limit(form, mode, finite, negative, code))
    if form.special != "none" and not finite:
        code = magnitude.eq(source.infinity).pick(form.beyond, code)
    if form.signed:
        code = code | (negative.zext(bits.bits) << (form.bits - 1))
    return value.isnan().pick(form.nan, code).trunc(form.bits)


def _increment(number: Bits, shift: Bits, mode: str, negative: Bits, random: Random | None) -> Bits:
    """What added to ``number`` makes the truncation after it round as the mode says."""
    one = number.b.bits(number.bits, 1)
    if mode == "rn":
        return (one << (shift - 1)) - 1 + ((number >> shift) & 1)
    if mode == "rna":
        return one << (shift - 1)
    if mode == "rs":
        assert random is not None
        aligned = random.value << (shift - random.size).max(0, signed=True)
        return aligned >> (random.size - shift).max(0, signed=True)
    nothing = number.b.bits(number.bits, 0)
    up = (one << shift) - 1
    return {"rz": nothing, "rm": negative.pick(up, nothing), "rp": negative.pick(nothing, up)}[mode]


def _limit(form: Format, mode: str, finite: bool, negative: Bits, code: Bits) -> Bits | int:
    """The largest code that rounding may give."""
    if finite or form.special == "none" or mode == "rz":
        return form.largest
    if mode == "rm":
        return negative.pick(form.beyond, code.b.bits(code.bits, form.largest))
    if mode == "rp":
        return negative.pick(form.largest, code.b.bits(code.bits, form.beyond))
    return form.beyond
