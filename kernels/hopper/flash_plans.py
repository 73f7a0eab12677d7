"""What attention on Hopper is made of: the tiles of a block by the head dimension, and what a kernel is made for."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import ScalarType

__all__ = ["DIMS", "GROUP", "ROWS", "SLAB", "STAGES", "Kind", "Plan", "box_of", "place_at", "plan_of"]

DIMS = (64, 128, 192, 256)
"""Head dimensions that tiles are made for; others are taken as the next one, and filled with 0 by the copies."""
GROUP, ROWS, SLAB = 128, 64, 64
"""Threads of a warpgroup, its queries, and the columns of 128 bytes of a tile."""
STAGES = 2


class Plan(NamedTuple):
    """``groups`` of 64 queries a block, tiles of ``keys``, and the registers of the threads that copy and multiply."""

    dim: int
    groups: int
    keys: int
    registers: tuple[int, int]

    @property
    def threads(self) -> int:
        return (self.groups + 1) * GROUP

    @property
    def queries(self) -> int:
        return self.groups * ROWS

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return (self.queries + 2 * STAGES * self.keys) * self.dim * 2


def plan_of(dim: int, causal: bool) -> Plan:
    """The plan for a head dimension: what fills 240 or 160 registers with scores, weights and sums.

    >>> plan_of(80, causal=True)
    Plan(dim=128, groups=2, keys=128, registers=(24, 240))
    """
    wide = next(each for each in DIMS if each >= dim)
    if wide == 64:
        return Plan(64, 3, 128, (32, 160))
    return Plan(wide, 2, {128: 128 if causal else 176, 192: 112, 256: 80}[wide], (24, 240))


class Kind(NamedTuple):
    """What a kernel is made for."""

    dtype: ScalarType
    dim: int
    causal: bool
    negative: bool = False
    """Whether the scores change their sign: the factor of a kernel is positive."""
    state: bool = False
    """Whether it also stores the logarithm of each query's sum of weights, for the backward pass."""
    packed: bool = False
    """Whether sequences lie one behind the other, (rows, heads, D): what follows a sequence is another one."""

    def at(self, head: Any, row: Any) -> tuple[Any, Any, int]:
        return place_at(self.packed, head, row)

    def box(self, rows: int) -> tuple[int, int, int]:
        return box_of(self.packed, rows)


def place_at(packed: bool, head: Any, row: Any) -> tuple[Any, Any, int]:
    """The coordinates of a row of a head in a tensor map."""
    return (row, head, 0) if packed else (head, row, 0)


def box_of(packed: bool, rows: int) -> tuple[int, int, int]:
    """The box of a tensor map for so many rows of a head."""
    return (rows, 1, SLAB) if packed else (1, rows, SLAB)
