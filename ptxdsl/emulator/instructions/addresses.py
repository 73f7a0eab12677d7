"""Addresses of memory accesses: their classes, their values, and how their lanes lie."""

from __future__ import annotations

from typing import Any

from ..machine.layout import LANES
from .operand_classes import OperandClass
from .operands import Field

__all__ = [
    "AccessFlags", "Pattern", "WithAddress", "lane_by_lane", "lane_pattern", "segment_starts", "segments_overlap",
]

Pattern = tuple[str, int]
"""How the lanes of an affine address lie: contiguous (c) or equal (b) within segments of so many lanes."""


class AccessFlags:
    """The first value of an access's record."""

    NBYTES = 255
    """The bytes of a lane's access; 0 where EXTENTS has those of each lane."""
    SPACES_SHIFT = 8
    """Where the spaces begin that it may access."""
    WRITES = 1 << 16
    ONE_ENTRY = 1 << 17
    """Its buffer entry is that of the array which the pointer comes from; without, it learns one while it runs."""
    BYTEWISE = 1 << 19
    """Of those of EXTENTS: no alignment is wanted."""
    PASSES = 1 << 18
    """Set while a launch runs: what goes beyond its array goes to the block's sink, since it has been reported."""

    @classmethod
    def of(cls, nbytes: int, spaces: int, writes: bool, one_entry: bool) -> int:
        return nbytes | spaces << cls.SPACES_SHIFT | writes * cls.WRITES | one_entry * cls.ONE_ENTRY


class WithAddress:
    """A micro-op whose record begins with the values of ``address``.

    ``flags`` are AccessFlags, ``entry`` that of the buffer table, ``slot`` where the base lies, ``offset`` what is
    added, of an affine address that of its lowest lane; ``extent`` is its last byte from there, ``vector`` the lane
    offsets. Where all segments but the first start comes behind these.
    """

    __slots__ = ()

    @property
    def values(self: Any) -> tuple[str, ...]:
        address = self.address
        if not address.bits:
            return "flags", "entry", "offset"
        return ("flags", "entry", "slot", "offset", "low", "extent", "vector")[: 7 if address.affine else 4]


def segment_starts(kind: OperandClass, place: Field) -> tuple[int, ...]:
    """Where the segments of an affine address begin behind the first."""
    return place.values[7:] if kind.affine else ()


def segments_overlap(pattern: Pattern | None, place: Field, nbytes: int, present: int) -> bool:
    """Whether several of so many lanes access one place by an affine address."""
    if pattern is None or not place.kind.affine:
        return False
    if pattern[0] == "b":
        return True
    starts = sorted((0, *place.values[7:])[: -(-present // pattern[1])])
    return any(starts[n + 1] - start < pattern[1] * nbytes for n, start in enumerate(starts[:-1]))


def lane_by_lane(kind: OperandClass, place: Field) -> Field:
    """An address without the segments of its pattern, for code that goes lane by lane anyway."""
    return Field(kind, "iiiqiiq", place.values[:7]) if kind.affine else place


def lane_pattern(vector: tuple[int, ...], nbytes: int) -> tuple[Pattern | None, tuple[int, ...]]:
    """The longest segments of lanes that are contiguous or equal, if any, and where all but the first start.

    A vector of fewer lanes than a warp has is that of a block which has no more; the segments of the others start at 0.
    """
    present = len(vector)
    for lanes in dict.fromkeys((present, 32, 16, 8, 4)):
        starts = vector[::lanes]
        for letter, step in (("c", nbytes), ("b", 0)):
            if step and present % lanes:
                continue
            line = [start + lane * step for start in starts for lane in range(lanes)][:present]
            if list(vector) == line and starts[0] == 0 and all(start % nbytes == 0 for start in starts):
                return (letter, lanes), starts[1:] + (0,) * (LANES // lanes - len(starts))
    return None, ()
