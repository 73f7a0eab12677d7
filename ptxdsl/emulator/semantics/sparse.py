"""Sparse compression of a thread's registers: which two of four elements are kept, and where kept elements go.

What the manual leaves open: of equal elements those before the others are kept, -0 is less than +0, and a NaN is kept
before any number. Of a descriptor's reserved types the last defined one is taken; an index beyond its group puts its
element nowhere.
"""

from __future__ import annotations

from typing import NamedTuple

from ...isa import Form
from . import semantics
from .lanes import Bits

_MAGNITUDE = {16: (0x7FFF, 0x7FFF), 8: (0xFF, 0xFF, 0x7F, 0x7F, 0x1F, 0x1F)}
_SIGN = {16: (0x8000, 0x8000), 8: (0, 0, 0x80, 0x80, 0x20, 0x20)}
_LAST_NUMBER = {16: (0x7C00, 0x7F80), 8: (0xFF, 0xFF, 0x7C, 0x7E, 0x1F, 0x1F)}
"""By the type in a descriptor (f16 and bf16; u8, s8, e5m2, e4m3, e3m2, e2m3) the bits of the magnitude, that of the
sign, and the greatest magnitude that is no NaN."""
_S8 = 1


class _Order(NamedTuple):
    """What a descriptor says of each lane's elements: the numbers above, and how they compare."""

    magnitude: Bits
    sign: Bits
    last_number: Bits
    integer: Bits | None
    absolute: Bits
    least: Bits

    @classmethod
    def of(cls, descriptor: Bits, bits: int) -> _Order:
        kind = (descriptor >> 2) & 7

        def chosen(table: tuple[int, ...]) -> Bits:
            found = kind.b.bits(32, table[-1])
            for number, value in enumerate(table[:-1]):
                found = kind.eq(number).pick(value, found)
            return found

        return cls(
            chosen(_MAGNITUDE[bits]), chosen(_SIGN[bits]), chosen(_LAST_NUMBER[bits]),
            kind.eq(_S8) if bits == 8 else None, (descriptor & 1).ne(0), (descriptor & 2).ne(0),
        )

    def rank(self, code: Bits) -> Bits:
        """A signed number: the greater, the sooner an element is kept."""
        magnitude = code & self.magnitude
        negative = (code & self.sign).ne(0)
        value = (negative & ~self.absolute).pick(~magnitude, magnitude)
        if self.integer is not None:
            whole = (code << 24).sar(24)
            value = self.integer.pick(self.absolute.pick(whole.lt(0, signed=True).pick(-whole, whole), whole), value)
        return magnitude.gt(self.last_number).pick(0x7FFFFFFF, self.least.pick(~value, value))


@semantics("spcompress")
def _spcompress(form: Form, a: tuple[Bits, ...], e: Bits) -> tuple[tuple[Bits, ...], tuple[Bits, ...]]:
    """Of each four elements two, in their order, and the indices of these."""
    bits, index_bits = (int(token[1:]) for token in form.tokens[:2])
    order = _Order.of(e, bits)
    codes = [part.zext(32) for word in a for part in word.parts(bits)]
    kept: list[Bits] = []
    indices: list[Bits] = []
    for first in range(0, len(codes), 4):
        four = codes[first : first + 4]
        found, places = two_of_four(four, [order.rank(code) for code in four])
        indices += places
        kept += found
    return _words(indices, index_bits), _words(kept, bits)


def two_of_four(four: list[Bits], ranks: list[Bits]) -> tuple[list[Bits], list[Bits]]:
    """Those of four elements whose ranks are the greatest, in their order, and their indices."""
    here = _kept(ranks)
    low = here[0].pick(0, here[1].pick(1, four[0].b.bits(32, 2)))
    high = here[3].pick(3, here[2].pick(2, four[0].b.bits(32, 1)))
    first, last = (here[at].pick(four[at], here[near].pick(four[near], four[far])) for at, near, far in _ENDS)
    return [first, last], [low, high]


_ENDS = (0, 1, 2), (3, 2, 1)


def rank_of_f32(code: Bits, absolute: bool, least: bool) -> Bits:
    """A signed number: the greater, the sooner an f32 is kept."""
    magnitude = code & 0x7FFFFFFF
    value = magnitude if absolute else code.lt(0, signed=True).pick(~magnitude, magnitude)
    return magnitude.gt(0x7F800000).pick(0x7FFFFFFF, ~value if least else value)


def _kept(ranks: list[Bits]) -> list[Bits]:
    """Which two of four are kept: those that at most one other comes before."""
    before: list[list[Bits]] = [[], [], [], []]
    for j in range(4):
        for i in range(j):
            later = ranks[j].gt(ranks[i], signed=True)
            before[i].append(later)
            before[j].append(~later)
    return [~((x & y) | (z & (x | y))) for x, y, z in before]


def _words(fields: list[Bits], bits: int) -> tuple[Bits, ...]:
    """Fields side by side in registers of 32 bits, the first the lowest."""
    size = 32 // bits
    found = []
    for first in range(0, len(fields), size):
        word = fields[first]
        for number, field in enumerate(fields[first + 1 : first + size], 1):
            word = word | (field << number * bits)
        found.append(word)
    return tuple(found)


@semantics("spdecompress")
def _spdecompress(form: Form, m: tuple[Bits, ...], a: tuple[Bits, ...]) -> tuple[Bits, ...]:
    """The elements of a, each in its group where m says; zeros for the rest. The last of two for one place wins."""
    bits, index_bits = (int(token[1:]) for token in form.tokens[:2])
    kept, group = (int(number) for number in form.tokens[2].split("::")[1].split(":"))
    elements = [part.zext(32) for word in a for part in word.parts(bits)]
    indices = [part.zext(32) for word in m for part in word.parts(index_bits)]
    total = int(form.tokens[3][1:]) * group * bits // 32
    words = [m[0].b.bits(32, 0)] * total
    mask = m[0].b.bits(32, (1 << bits) - 1)
    for number, (index, element) in enumerate(zip(indices, elements)):
        first = number // kept * group * bits
        if first >= 32 * total:
            break
        place = index * bits + first % 32
        for word in range(first // 32, (first + group * bits - 1) // 32 + 1):
            here = (place >> 5).eq(word - first // 32)
            if group < 1 << index_bits:
                here = here & index.lt(group)
            shift = place & 31
            words[word] = here.pick((words[word] & ~(mask << shift)) | (element << shift), words[word])
    return tuple(words)
