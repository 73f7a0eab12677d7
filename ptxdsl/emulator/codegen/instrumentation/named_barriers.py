"""Handlers that follow barriers of some warps of a block, with the vectors by which mbarriers are followed.

A warp that arrives puts what it knows into the barrier. The last one gives all of that to each warp that waits, which
does nothing until then: so what comes to the next use of the barrier in the meantime is not among it. Which warp is
the last one says the barrier itself, which counts them behind this.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import BarrierFollowing, SyncBarrier, SyncBarrierEnd
from ...machine.layout import LANES, Barrier, Block, Warp
from ...machine.shadow import BARRIERS, MBARRIERS, BarrierOrder, MbarrierOrder, Reason, Shadow, WarpOrder
from ..barriers import first
from ..data import guard_mask
from ..handler import Handler, i1, i32, i64, pointer
from ..registry import builds, emits
from .epochs import ShadowState, leave
from .mbarriers import Row, Rows

__all__ = ["sync_barrier", "sync_barrier_end"]

_FOLLOW_BARRIER = ir.FunctionType(i1, [pointer, pointer, pointer, i32, i32, i32, i1])


@emits(SyncBarrier)
def sync_barrier(h: Handler, op: SyncBarrier) -> None:
    mask = guard_mask(h, op.guard, True)
    number, threads = first(h, op.number), first(h, op.threads)
    h.skip_unless_any(mask)
    h.branch_unless(h.ir.icmp_unsigned("==", mask, h.load(h.warp, Warp.ALIVE, i32)), h.next)
    shadow = ShadowState(h)
    function = h.ir.bitcast(shadow.get(Shadow.FOLLOW_BARRIER, pointer), _FOLLOW_BARRIER.as_pointer())
    arguments = [mask, number, threads, ir.Constant(i1, op.waits)]
    h.branch_unless(h.ir.call(function, [h.rec, h.warp, h.block, *arguments]), lambda: _report(h, shadow, mask))
    h.next()


@emits(SyncBarrierEnd)
def sync_barrier_end(h: Handler, op: SyncBarrierEnd) -> None:
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)
    shadow = ShadowState(h)
    rows = Rows(h, shadow)
    h.branch_unless(rows.alone(), lambda: _report(h, shadow, mask))
    h.store(h.i32(0), rows.mine, WarpOrder.WAITS)
    shadow.begin_epoch()
    h.next()


def _report(h: Handler, shadow: ShadowState, mask: Any) -> None:
    leave(h, shadow, Reason.SYNC_INSTRUCTION, h.following(), mask)


@builds(BarrierFollowing)
def follow_barrier(module: ir.Module, name: str, _: BarrierFollowing) -> None:
    """Follow the arrival of a warp at a barrier for so many threads; False to leave it to Python."""
    _Follow(module, name)


class _Follow(Rows):
    def __init__(self, module: ir.Module, name: str) -> None:
        h = Handler(module, name, result=_FOLLOW_BARRIER)
        super().__init__(h, ShadowState(h))
        active, number, threads, waits = h.function.args[3:]
        h.branch_unless(self.alone(), lambda: self.end(False))
        number = h.ir.zext(h.ir.and_(number, h.i32(BARRIERS - 1)), i64)
        table = h.add(self.orders, LANES * WarpOrder.nbytes + MBARRIERS * MbarrierOrder.nbytes)
        self.order = h.add(table, h.ir.mul(number, h.i64(BarrierOrder.nbytes)))
        barrier = h.add(h.add(h.block, Block.BARRIERS), h.ir.mul(number, h.i64(Barrier.nbytes)))
        arrived = h.load(barrier, Barrier.ARRIVED, i32)
        self.settle_part()
        known, one = self.released(active, ir.Constant(i1, 1))
        fresh, nothing = h.splat(h.zero(arrived)), ir.Constant(Row, None)
        before, before_one = (
            h.ir.select(fresh, nothing, self.row(self.order, place))
            for place in (BarrierOrder.PENDING, BarrierOrder.PENDING_ONE)
        )
        known = self.most(known, before)
        one = self.most_ones(one, before_one, known)
        needed = h.ir.lshr(threads, h.i32(5))
        complete = h.ir.icmp_unsigned(">=", h.ir.add(arrived, h.i32(1)), needed)
        with h.ir.if_else(complete) as (now, later):
            with now:
                self.complete(h.load(barrier, Barrier.WAITING, i32), waits, known, one)
            with later:
                h.store(known, self.order, BarrierOrder.PENDING, 64)
                h.store(one, self.order, BarrierOrder.PENDING_ONE, 64)
                h.store(self.shadow.get(Shadow.BASE), self.order, BarrierOrder.OPEN)
        h.store(h.ir.zext(waits, i32), self.mine, WarpOrder.WAITS)
        self.shadow.begin_epoch()
        self.end(True)

    def complete(self, waiting: Any, waits: Any, known: Any, one: Any) -> None:
        """All that have arrived release what they know to those that wait, this warp among them or not."""
        h = self.h

        def acquire(number: Any) -> None:
            rows = h.add(self.orders, h.ir.mul(h.ir.zext(number, i64), h.i64(WarpOrder.nbytes)))
            both = self.most(self.row(rows, WarpOrder.KNOWN), known)
            both_ones = self.most_ones(self.row(rows, WarpOrder.ONE), one, both)
            h.store(both, rows, WarpOrder.KNOWN, 64)
            h.store(both_ones, rows, WarpOrder.ONE, 64)

        own = h.ir.shl(h.ir.zext(waits, i32), h.ir.trunc(self.shadow.number, i32))
        h.for_each_lane(h.ir.or_(waiting, own), acquire)
        h.store(h.i64(0), self.order, BarrierOrder.OPEN)
