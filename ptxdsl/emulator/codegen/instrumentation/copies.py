"""Handlers that follow ``cp.async``: which copies of a block are incomplete (:class:`..machine.shadow.CopyClock`)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import CopyBegin, CopyCommit, CopyWait
from ...machine.layout import LANES
from ...machine.shadow import NO_TICKET, TICKET_SHIFT, WARP_SHIFT, CopyClock, Plane, Shadow
from ..data import guard_mask
from ..handler import Handler, const, i1, i32, i64, lanes_of, pointer
from ..access import access_of
from ..registry import emits
from .epochs import ShadowState
from .shadow_groups import Groups
from .shadow_inspection import INSPECT

__all__: list[str] = []

_ROW = 4 * LANES
_Row = lanes_of(i32)
_NONE = ir.Constant(_Row, [NO_TICKET] * LANES)


class _Rows:
    """The rows of the current warp, of which only the lanes of a mask are changed."""

    def __init__(self, h: Handler, shadow: ShadowState, mask: Any) -> None:
        self.h, self.shadow, self.chosen = h, shadow, h.bools(mask)
        size = shadow.get(Shadow.COPY_BYTES)
        self.base = h.add(shadow.get(Shadow.COPY_CLOCKS, pointer), h.ir.mul(shadow.number, size))

    def get(self, row: int) -> Any:
        return self.h.load(self.base, row * _ROW, _Row, 4)

    def put(self, row: int, value: Any) -> None:
        h = self.h
        h.store(h.ir.select(self.chosen, value, self.get(row)), self.base, row * _ROW, 4)

    def least(self, a: Any, b: Any) -> Any:
        return self.h.call("llvm.umin.v32i32", _Row, a, b)


@emits(CopyBegin, slow_path=True)
def copy_begin(h: Handler, op: CopyBegin) -> None:
    access = access_of(h, op.address, op.pattern, op.nbytes, True)
    mask = guard_mask(h, op.guard, True)
    if op.guard:
        h.skip_unless_any(mask)
    shadow = ShadowState(h)
    counter = shadow.get(Shadow.TICKET_COUNTER, pointer)
    ticket = h.ir.add(h.load(counter, 0, i64), h.i64(1))
    h.store(ticket, counter, 0)
    word = h.ir.or_(h.ir.shl(ticket, h.i64(TICKET_SHIFT)), h.ir.shl(shadow.number, h.i64(WARP_SHIFT)))
    rows, mine = _Rows(h, shadow, mask), h.splat(h.ir.trunc(ticket, i32))
    for row in (CopyClock.OLDEST, CopyClock.OPEN):
        rows.put(row, rows.least(rows.get(row), mine))
    oldest = shadow.get(Shadow.OLDEST_COPY)
    before = h.ir.icmp_unsigned("<", oldest, word)
    h.store(h.ir.select(before, oldest, h.ir.shl(ticket, h.i64(TICKET_SHIFT))), shadow.block, Shadow.OLDEST_COPY)
    if h.slow_path is None:
        access.resolve(mask)
        h.store(word, shadow.block, Shadow.COPY_WORD)
        function = h.ir.bitcast(shadow.get(Shadow.INSPECT, pointer), INSPECT.as_pointer())
        h.ir.call(function, [h.rec, h.warp, h.block, mask, h.i64(0), h.i32(op.flags)])
    elif op.block_private is None:
        access.demand(const(i1, 0))
    else:
        groups = Groups(h, op, access, mask)
        for group in groups.groups(not h.partial):
            group.put(Plane.COPY, h.ir.or_(groups.splat(word, group.size), group.lanes), None)
    h.next()


@emits(CopyCommit)
def copy_commit(h: Handler, op: CopyCommit) -> None:
    mask = guard_mask(h, op.guard, True)
    rows = _Rows(h, ShadowState(h), mask)
    for row in range(CopyClock.GROUPS + op.groups - 1, CopyClock.OPEN, -1):
        rows.put(row, rows.get(row - 1))
    rows.put(CopyClock.OPEN, _NONE)
    h.next()


@emits(CopyWait)
def copy_wait(h: Handler, op: CopyWait) -> None:
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)
    shadow = ShadowState(h)
    rows = _Rows(h, shadow, mask)
    kept = CopyClock.GROUPS + op.left if op.left >= 0 else CopyClock.OPEN
    for row in range(kept, CopyClock.GROUPS + op.groups):
        rows.put(row, _NONE)
    oldest: Any = _NONE
    for row in range(CopyClock.OPEN, kept):
        oldest = rows.least(oldest, rows.get(row))
    rows.put(CopyClock.OLDEST, oldest)
    clocks, size = shadow.get(Shadow.COPY_CLOCKS, pointer), shadow.get(Shadow.COPY_BYTES)
    h.store(h.i64(NO_TICKET << TICKET_SHIFT), shadow.block, Shadow.OLDEST_COPY)

    def one(warp: Any) -> None:
        row = h.load(h.add(clocks, h.ir.mul(warp, size)), CopyClock.OLDEST * _ROW, _Row, 4)
        least = h.ir.zext(h.call("llvm.vector.reduce.umin.v32i32", i32, row), i64)
        least, before = h.ir.shl(least, h.i64(TICKET_SHIFT)), shadow.get(Shadow.OLDEST_COPY)
        least = h.ir.select(h.ir.icmp_unsigned("<", least, before), least, before)
        h.store(least, shadow.block, Shadow.OLDEST_COPY)

    h.count(shadow.get(Shadow.COPY_WARPS), 1, one)
    h.next()
