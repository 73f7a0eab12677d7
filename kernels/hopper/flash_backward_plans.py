"""What the gradients of attention on Hopper are made of: tiles by the head dimension, and what a block works on."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import ScalarType, cdiv, maximum, minimum, ptx, reg, s32, select, u32

from ..sequences import Rows
from .flash_plans import GROUP, ROWS, SLAB, STAGES
from .flash_states import first_tile

__all__ = ["DIMS", "GROUPS", "KEYS", "Kind", "Plan", "Work", "plan_of", "work_of"]

DIMS = (64, 128)
"""Head dimensions that tiles are made for; others are taken as the next one, and filled with 0 by the copies."""
KEYS, GROUPS = 2 * ROWS, 2
"""Of a block, and the warpgroups that share them."""


class Plan(NamedTuple):
    """Tiles of ``queries`` rows and ``dim`` columns, whose product with the slopes is as large for either."""

    dim: int
    queries: int

    @property
    def threads(self) -> int:
        return (GROUPS + 1) * GROUP

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        states, slopes, sums = 2 * self.queries * 4, KEYS * self.queries * 2, GROUPS * ROWS * SLAB * 4
        return (2 * KEYS + 2 * STAGES * self.queries) * self.dim * 2 + STAGES * (states + slopes) + sums


def plan_of(dim: int) -> Plan:
    """The plan for a head dimension: 64 scores a thread, or half as many where sums of 128 columns take the place.

    >>> plan_of(80)
    Plan(dim=128, queries=64)
    """
    return Plan(64, 128) if dim <= 64 else Plan(128, 64)


class Kind(NamedTuple):
    """What a kernel is made for."""

    dtype: ScalarType
    dim: int
    causal: bool
    packed: bool = False


class Work(NamedTuple):
    """What a block works on: a head of the keys, its first key, and tiles of queries from ``begin`` to ``end``.

    Those before ``split`` need a mask. ``group`` heads share the keys; each has ``tiles`` in the arrays of states and
    sums, of which ``tile`` is the first of this sequence.
    """

    rows: Rows
    key_head: Any
    group: Any
    first: Any
    begin: Any
    split: Any
    end: Any
    tiles: Any
    tile: Any

    def state(self, member: Any, tile: Any) -> Any:
        """The head that has the number ``member`` in its group, and the place of a tile among those of all heads."""
        head = self.key_head * self.group + member
        return head, head * self.tiles + (tile.bits(u32) + self.tile)


def work_of(kind: Kind, plan: Plan, rows: Rows, group: Any, tiles_: Any) -> Work:
    """The tiles of queries that see the keys of the block; of the last keys all need a mask."""
    # With a mask the first keys are seen by the most queries: they begin first.
    first, (queries, keys) = (ptx.ctaid.x * KEYS).bits(s32), rows[:2]
    shift, end = keys - queries, cdiv(queries.bits(u32), plan.queries).bits(s32)
    begin, split = reg(s32, 0).copy(), reg(s32, 0).copy()
    if kind.causal:
        begin = minimum(end, (maximum(0, first - shift).bits(u32) // plan.queries).bits(s32))
        last = maximum(0, first + KEYS - 1 - shift).bits(u32)
        split = minimum(end, cdiv(last, plan.queries).bits(s32))
    split = select(first + KEYS > keys, end, split)
    key_head = ptx.ctaid.y if kind.packed else ptx.ctaid.z * ptx.nctaid.y + ptx.ctaid.y
    tile = first_tile(plan.queries, rows.begin, kind.packed)
    return Work(rows, key_head, group, first, begin, split, end, tiles_, tile)
