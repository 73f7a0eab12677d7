"""Matrix descriptors of wgmma and tcgen05: which bits say where a tile lies in shared memory.

The one home of these layouts, which are CUTLASS's. A tile is made of rows of 16 bytes, or of as many as its swizzle
has, eight of them one after the other: the rows are lines of the tile, of A its rows and of B its columns, where it is
``k``-major, and else one k each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "ABSOLUTE", "ADDRESS", "BASE_OFFSET", "CONSTANT", "LEADING", "RESERVED", "SEGMENT", "SPANS", "STRIDE", "SWIZZLE",
    "SWIZZLES", "TENSOR_SWIZZLE", "Bits", "Swizzle", "descriptor", "problem", "tensor_descriptor",
]


class Bits(NamedTuple):
    """``width`` bits from ``low`` on, which hold a number in units of ``1 << unit``."""

    low: int
    width: int
    unit: int = 0

    def of(self, word: Any) -> Any:
        """The number in a word, be it one of Python or of compiled code."""
        return ((word >> self.low) & (1 << self.width) - 1) << self.unit


ADDRESS, LEADING, STRIDE = Bits(0, 14, 4), Bits(16, 14, 4), Bits(32, 14, 4)
"""The address in shared memory, and the distances between groups of rows along both dimensions, in bytes."""
BASE_OFFSET, SWIZZLE = Bits(49, 3), Bits(62, 2)
SPANS = (16, 128, 64, 32)
"""Bytes of a row, by the number of the swizzle; without one 16."""


def descriptor(address: int, leading: int, stride: int, span: int) -> int:
    """The 64 bits; ``span`` is 128, 64 or 32, or 16 without a swizzle.

    >>> hex(descriptor(0x400, 16, 1024, 128))
    '0x4000004000010040'
    """
    parts = ((ADDRESS, address), (LEADING, leading), (STRIDE, stride), (SWIZZLE, SPANS.index(span)))
    return sum((value >> field.unit & (1 << field.width) - 1) << field.low for field, value in parts)


# Those of tcgen05: other bits for the swizzle, one more swizzle, three bits that are always 001.


class Swizzle(NamedTuple):
    """Rows of ``span`` bytes; bits from 7 on, as many as ``mask`` has, flip those of an address from ``low`` on."""

    span: int
    mask: int
    low: int = 4

    @property
    def period(self) -> int:
        """Bytes after which the pattern repeats: a tile begins at a multiple, or in the first row behind one."""
        return max(16, (self.mask + 1) * 128 if self.mask else 16)


TENSOR_SWIZZLE = Bits(61, 3)
SWIZZLES: dict[int, Swizzle] = {
    0: Swizzle(16, 0), 1: Swizzle(128, 3, 5), 2: Swizzle(128, 7), 4: Swizzle(64, 3), 6: Swizzle(32, 1),
}
"""By their numbers; 1 has atoms of 32 bytes."""
ABSOLUTE = Bits(52, 1)
"""Whether LEADING is the address of where rows of 48 bytes go on, and not a distance."""
CONSTANT = Bits(46, 3)
RESERVED = 1 << 14 | 1 << 15 | 1 << 30 | 1 << 31 | 0xFF << 53


def tensor_descriptor(address: int, leading: int, stride: int, swizzle: int) -> int:
    """The 64 bits of one for tcgen05; ``swizzle`` is its number.

    >>> hex(tensor_descriptor(0x400, 16, 1024, 2))
    '0x4000404000010040'
    """
    parts = ((ADDRESS, address), (LEADING, leading), (STRIDE, stride))
    word = sum((value >> field.unit & (1 << field.width) - 1) << field.low for field, value in parts)
    return word | 1 << CONSTANT.low | swizzle << TENSOR_SWIZZLE.low


SEGMENT = Bits(53, 1)
"""Which half of a line of 48 bytes an instruction takes that decompresses them by a table; reserved elsewhere."""


def problem(word: int, swizzles: int, line: int, long: bool = False, table: bool = False) -> str:
    """Why a descriptor of tcgen05 is none of a tile, "" where it is one.

    ``swizzles`` has a bit for each that the tile can have; ``line`` are the bytes of one where the tile is K-major, 0
    elsewhere; ``long`` says that rows are 48 bytes, ``table`` that they are indices.
    """
    if table:
        word &= ~(1 << SEGMENT.low)

    if CONSTANT.of(word) != 1:
        return f"bits 46-48 are {CONSTANT.of(word)}, and must be 1"
    reserved = [bit for bit in range(64) if (word & RESERVED) >> bit & 1]
    if reserved:
        return f"bit {reserved[0]} is set, which is reserved and must be 0"
    if BASE_OFFSET.of(word):
        return f"its base offset is {BASE_OFFSET.of(word)}; the emulator takes 0 only"
    if ABSOLUTE.of(word) and not long:
        return "bit 52 is set: its leading dimension would be an address, which only rows of 48 bytes have"
    found = SWIZZLES.get(TENSOR_SWIZZLE.of(word))
    if found is None:
        return f"bits 61-63, the swizzle, are {TENSOR_SWIZZLE.of(word)}; there are 0, 1, 2, 4 and 6"
    if not swizzles >> TENSOR_SWIZZLE.of(word) & 1:
        known = ", ".join(str(number) for number in SWIZZLES if swizzles >> number & 1)
        return f"bits 61-63, the swizzle, are {TENSOR_SWIZZLE.of(word)}; a tile of this type and major has {known}"
    within = ADDRESS.of(word) % found.period
    if found.mask and within >= found.span:
        where = f"begins {within} bytes behind a multiple of {found.period}"
        return f"the tile at {ADDRESS.of(word):#x} {where}, and its swizzle has rows of {found.span}"
    if found.mask and line and not ABSOLUTE.of(word) and within + line > found.span:
        return f"a line of {line} bytes begins at byte {within} of a row of {found.span} bytes"
    return ""
