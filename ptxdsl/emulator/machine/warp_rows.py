"""Which threads of a block make its warps: 32 each, or where nothing can tell, fewer that are whole rows.

A block 24 or 33 threads wide has warps that begin anywhere in a row, and end in another one: what follows from the
thread's row is no number of the warp there, and lanes side by side are not in memory. In warps of 24 or 11 lanes it is.
A shape of a block whose warps have other lanes than 32 is a :class:`WarpRows`; it is not equal to the plain shape, so
that code for the two is kept apart. Which kernels cannot tell is found by :mod:`..analysis.warp_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from .layout import LANES

__all__ = ["LEAST", "ODD", "WarpRows", "has_odd_rows", "lanes_of_warps", "warps_of"]

Shape3 = tuple[int, int, int]
LEAST = 11
"""Lanes of a warp of rows, at least."""
ODD = tuple(lanes for lanes in range(LANES - 1, LEAST - 1, -1) if lanes & (lanes - 1))
"""The numbers of lanes of warps that are rows of one index."""


class WarpRows(tuple[int, int, int]):  # noqa: SLOT001
    """The shape of a block whose warp ``n`` has the threads from ``n * lanes`` on, ``lanes`` of them."""

    lanes: int
    offsets: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    """The lane offsets of registers, the same in all warps, that a kernel computes from the thread's one index."""

    @classmethod
    def of(cls, block: Shape3, lanes: int, offsets: Mapping[str, tuple[int, ...]] | None = None) -> Shape3:
        """The shape in warps of so many lanes."""
        if lanes == LANES:
            return (*block,)
        made = cls(block)
        made.lanes = lanes
        if offsets:
            made.offsets = offsets
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WarpRows) and self.lanes == other.lanes and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.lanes, *self))

    def __reduce__(self) -> tuple[object, ...]:
        return WarpRows.of, (tuple(self), self.lanes)


def has_odd_rows(block: Shape3) -> bool:
    """Whether warps of 32 lanes begin at different places of their rows, or may do of rows that a kernel computes."""
    x, y, z = block
    if y * z > 1:
        return prod(block) > LANES and x % LANES > 0 and LANES % x > 0
    return x > LANES and any(x % lanes == 0 for lanes in ODD)


def lanes_of_warps(block: Shape3) -> int:
    """Threads of each warp of a block but its last."""
    return block.lanes if isinstance(block, WarpRows) else LANES


def warps_of(block: Shape3) -> int:
    """Warps of a block."""
    return -(-prod(block) // lanes_of_warps(block))
