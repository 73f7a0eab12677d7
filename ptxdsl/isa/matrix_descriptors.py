"""Matrix descriptors of wgmma: which bits say where a tile lies in shared memory.

The one home of this layout, which is CUTLASS's. A tile is made of rows of 16 bytes, or of as many as its swizzle has,
eight of them one after the other: the rows are lines of the tile, of A its rows and of B its columns, where it is
``k``-major, and else one k each.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ADDRESS", "BASE_OFFSET", "LEADING", "SPANS", "STRIDE", "SWIZZLE", "Bits", "descriptor"]


class Bits(NamedTuple):
    """``width`` bits from ``low`` on, which hold a number in units of ``1 << unit``."""

    low: int
    width: int
    unit: int = 0


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
