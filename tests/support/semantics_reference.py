"""Exact reference arithmetic for the tests of the semantics: Python integers and fractions, one number at a time.

A number is a Fraction, or one of the floats inf, -inf and nan; the sign of a zero goes beside it. Slow and obvious.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple, Union

Number = Union[Fraction, float]
INF, NAN = math.inf, math.nan


class Layout(NamedTuple):
    """A float format: exponent and mantissa bits, bias, whether it has infinities, its NaN (None: it has none)."""

    exponent: int
    mantissa: int
    bias: int
    infinite: bool
    nan: int | None
    signed: bool = True

    @property
    def bits(self) -> int:
        return self.exponent + self.mantissa + self.signed


LAYOUTS = {
    "f64": Layout(11, 52, 1023, True, 0x7FFFFFFFFFFFFFFF),
    "f32": Layout(8, 23, 127, True, 0x7FFFFFFF),
    "f16": Layout(5, 10, 15, True, 0x7FFF),
    "bf16": Layout(8, 7, 127, True, 0x7FFF),
    "tf32": Layout(8, 10, 127, True, 0x3FFFF),
    "e5m2": Layout(5, 2, 15, True, 0x7F),
    "e4m3": Layout(4, 3, 7, False, 0x7F),
    "e3m2": Layout(3, 2, 3, False, None),
    "e2m3": Layout(2, 3, 1, False, None),
    "e2m1": Layout(2, 1, 1, False, None),
    "ue5m3": Layout(5, 3, 15, False, 0xFF, signed=False),
}


def largest(layout: Layout) -> int:
    """The code of the greatest finite number."""
    top = (1 << (layout.exponent + layout.mantissa)) - 1
    if layout.infinite:
        return top - (1 << layout.mantissa)
    return top if layout.nan is None else top - 1


def decode(code: int, layout: Layout) -> tuple[Number, int]:
    """The number of a code, and its sign bit."""
    sign = code >> (layout.bits - 1) if layout.signed else 0
    field = code & ((1 << (layout.exponent + layout.mantissa)) - 1)
    exponent, mantissa = divmod(field, 1 << layout.mantissa)
    if layout.infinite and exponent == (1 << layout.exponent) - 1:
        return (NAN if mantissa else -INF if sign else INF), sign
    if not layout.infinite and field == layout.nan:
        return NAN, sign
    scale = Fraction(2) ** (max(exponent, 1) - layout.bias - layout.mantissa)
    size = (mantissa + (1 << layout.mantissa if exponent else 0)) * scale
    return (-size if sign else size), sign


def encode(
    value: Number, layout: Layout, mode: str = "rn", *, sign: int = 0, finite: bool = False,
    random: tuple[int, int] | None = None,
) -> int:
    """The code of ``value``, rounded. ``sign`` is that of a zero; ``random`` is (bits, how many)."""
    if isinstance(value, float) and math.isnan(value):
        return largest(layout) if layout.nan is None else layout.nan
    negative = value < 0 or (value == 0 and sign == 1)
    top = 1 << (layout.bits - 1) if negative and layout.signed else 0
    if value in (INF, -INF):
        return top | (largest(layout) + 1 if layout.infinite and not finite else largest(layout))
    assert isinstance(value, Fraction)
    if value == 0:
        return top
    code = _round(abs(value), layout, mode, negative, random)
    if code > largest(layout):
        outwards = mode in ("rn", "rna", "rs") or mode == ("rm" if negative else "rp")
        code = largest(layout) + (1 if outwards and layout.infinite and not finite else 0)
    return top | code


def _round(size: Fraction, layout: Layout, mode: str, negative: bool, random: tuple[int, int] | None) -> int:
    power = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** power > size:
        power -= 1
    power = max(power, 1 - layout.bias)
    steps = size / Fraction(2) ** (power - layout.mantissa)
    whole = math.floor(steps)
    rest = steps - whole
    if mode == "rn":
        whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    elif mode == "rna":
        whole += rest >= Fraction(1, 2)
    elif mode == "rs":
        assert random is not None
        bits, count = random
        whole += math.floor(rest * 2**count) + bits >= 2**count
    elif mode == ("rm" if negative else "rp"):
        whole += rest > 0
    if whole == 2 << layout.mantissa:
        power, whole = power + 1, whole // 2
    if whole < 1 << layout.mantissa:
        return whole
    return ((power + layout.bias) << layout.mantissa) + whole - (1 << layout.mantissa)


def flush(code: int, layout: Layout) -> int:
    """A subnormal as the zero of its sign."""
    field = code & ((1 << (layout.bits - 1)) - 1)
    return code - field if field < 1 << layout.mantissa else code


def _zero_sum(mode: str, signs: tuple[int, int]) -> int:
    """The sign of an exact zero sum."""
    return int(any(signs)) if mode == "rm" else int(all(signs))


def add(a: tuple[Number, int], b: tuple[Number, int], mode: str) -> tuple[Number, int]:
    """The exact sum and the sign it has as a zero."""
    (x, s), (y, t) = a, b
    if INF in (abs(x), abs(y)) or x != x or y != y:
        return float(x if isinstance(x, float) else 0.0) + float(y if isinstance(y, float) else 0.0), 0
    return x + y, _zero_sum(mode, (s, t))


def multiply(a: tuple[Number, int], b: tuple[Number, int]) -> tuple[Number, int]:
    (x, s), (y, t) = a, b
    if isinstance(x, float) or isinstance(y, float):
        if x != x or y != y or x == 0 or y == 0:
            return NAN, 0
        return (-INF if s != t else INF), 0
    return x * y, s ^ t


def divide(a: tuple[Number, int], b: tuple[Number, int]) -> tuple[Number, int]:
    (x, s), (y, t) = a, b
    if x != x or y != y or (x == 0 and y == 0) or (abs(x) == INF and abs(y) == INF):
        return NAN, 0
    if abs(x) == INF or y == 0:
        return (-INF if s != t else INF), 0
    if abs(y) == INF:
        return Fraction(0), s ^ t
    return Fraction(x) / Fraction(y), s ^ t


def root(a: tuple[Number, int]) -> tuple[Number, int]:
    """The square root to 1200 bits and one more that says it goes on."""
    x, s = a
    if x != x or x < 0:
        return NAN, 0
    if x == INF or x == 0:
        return x, s
    scaled = Fraction(x) * Fraction(2) ** 2400
    whole = math.isqrt(math.floor(scaled))
    exact = Fraction(whole * whole) == scaled
    return Fraction(2 * whole + (0 if exact else 1), 2 ** 1201), 0


def clamp01(value: tuple[Number, int]) -> tuple[Number, int]:
    """``.sat``: NaN and negative give +0."""
    x, _ = value
    if x != x or x <= 0:
        return Fraction(0), 0
    return min(Fraction(1) if x == INF else x, Fraction(1)), 0


def relu(value: tuple[Number, int]) -> tuple[Number, int]:
    x, _ = value
    return (Fraction(0), 0) if x == x and x <= 0 else (x, 0)


def signed(value: int, bits: int) -> int:
    """Two's complement."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
