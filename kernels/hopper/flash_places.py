"""What a block of attention on Hopper works on: a head, some queries of a sequence, and the tiles of keys they see."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import cdiv, maximum, minimum, ptx, s32, u32, wgmma

from ..sequences import Rows
from .flash_groups import thread_row
from .flash_plans import ROWS, Kind, Plan

__all__ = ["Place", "place_of"]


class Place(NamedTuple):
    """What a block works on: a head, that of its keys, its first query, and how many tiles of keys it goes over.

    The first ``whole`` of these need no mask.
    """

    head: Any
    key_head: Any
    first: Any
    count: Any
    whole: Any

    @property
    def row(self) -> Any:
        """The first query of the warpgroup."""
        return self.first + (wgmma.number() * ROWS).bits(s32)

    def limits(self, kind: Kind, rows: Rows) -> list[Any]:
        """How many keys each of the two queries of a thread sees."""
        if not kind.causal:
            return [rows.keys] * 2
        shift, row = rows.keys - rows.queries, self.row
        return [minimum(rows.keys, row + thread_row(half) + shift + 1) for half in range(2)]


def place_of(kind: Kind, plan: Plan, rows: Rows, group: Any) -> Place:
    # With a mask the last queries see the most keys: they begin first.
    number = ptx.nctaid.x - 1 - ptx.ctaid.x if kind.causal else ptx.ctaid.x
    first, shift, keys = (number * plan.queries).bits(s32), rows.keys - rows.queries, rows.keys
    end = minimum(keys, first + plan.queries + shift) if kind.causal else keys
    seen = minimum(keys, first + shift + 1) if kind.causal else keys
    count, whole = (maximum(0, each).bits(u32) for each in (end, seen))
    count, whole = cdiv(count, plan.keys).bits(s32), (whole // plan.keys).bits(s32)
    head = ptx.ctaid.y if kind.packed else ptx.ctaid.z * ptx.nctaid.y + ptx.ctaid.y
    return Place(head, head // group, first, count, whole)
