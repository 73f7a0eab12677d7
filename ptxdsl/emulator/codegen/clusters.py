"""The barrier of a cluster, whose blocks are block states that one host thread runs in turn.

Threads arrive, and wait later. A warp that waits is taken out of the mask of its block's warps that can run; the last
thread to arrive, in whichever block, puts all of them back. A thread that ends counts no longer.
"""

from __future__ import annotations

from typing import Any

from ..instructions.clusters import ClusterBarrier
from ..machine.layout import Block, Cluster, ClusterBlock, Warp
from ..machine.status import Fault
from .handler import Handler, i32, i64, pointer
from .control import await_lanes
from .data import guard_mask
from .registry import emits

__all__ = ["leave"]


@emits(ClusterBarrier)
def cluster_barrier(h: Handler, op: ClusterBarrier) -> None:
    mask = guard_mask(h, op.guard, True)
    priority = h.field() if op.masked and op.action != "leave" else None
    if op.guard:
        h.skip_unless_any(mask)
    alive = h.load(h.warp, Warp.ALIVE, i32)
    if op.action != "leave":
        await_lanes(h, h.ir.and_(alive, h.ir.not_(h.active)), priority)
    if op.aligned:
        together = h.ir.icmp_unsigned("==", mask, alive)
        h.branch_unless(together, lambda: h.fault(Fault.BARRIER_DIVERGED, mask))
    if op.action == "leave":
        leave(h, mask)
        h.next()
    else:
        {"arrive": _arrive, "wait": _wait}[op.action](_Barrier(h), mask)


class _Barrier:
    """The barrier, and this warp's masks."""

    def __init__(self, h: Handler) -> None:
        self.h = h
        self.part = h.load(h.block, Block.CLUSTER, pointer)
        self.head = h.load(self.part, ClusterBlock.HEAD, pointer)
        number = h.ir.zext(h.load(h.warp, Warp.INDEX, i32), i64)
        self.masks = h.add(self.part, h.ir.add(h.ir.shl(number, h.i64(3)), h.i64(ClusterBlock.MASKS)))
        self.phase = h.load(self.head, Cluster.PHASE, i32)
        self.arrived, parity = h.load(self.masks, 0, i32), h.load(self.masks, 4, i32)
        current = h.ir.sub(h.i32(0), h.ir.and_(self.phase, h.i32(1)))
        self.pending = h.ir.and_(self.arrived, h.ir.not_(h.ir.xor(parity, current)))
        self.parity, self.current = parity, current

    def complete(self, count: Any, live: Any) -> None:
        """Note how many threads have arrived; if these are all, the phase is over, and those who wait go on."""
        h = self.h
        complete = h.ir.and_(h.ir.icmp_unsigned(">=", count, live), h.nonzero(count))
        h.store(h.ir.select(complete, h.i32(0), count), self.head, Cluster.ARRIVED)

        def wake(number: Any) -> None:
            offset = h.ir.mul(h.ir.zext(number, i64), h.i64(ClusterBlock.nbytes))
            part = h.add(self.head, h.ir.add(offset, h.i64(Cluster.nbytes)))
            block = h.load(part, ClusterBlock.BLOCK, pointer)
            waiting = h.load(part, ClusterBlock.WAITING, i32)
            h.store(h.ir.or_(h.load(block, Block.RUNNABLE, i32), waiting), block, Block.RUNNABLE)
            h.store(h.i32(0), part, ClusterBlock.WAITING)

        with h.ir.if_then(complete):
            h.store(h.ir.add(self.phase, h.i32(1)), self.head, Cluster.PHASE)
            h.for_each_lane(h.load(self.head, Cluster.BLOCKS, i32), wake)

    def count(self, mask: Any) -> Any:
        return self.h.call("llvm.ctpop.i32", i32, mask)


def _refuse(h: Handler, wrong: Any, kind: int) -> None:
    h.branch_unless(h.zero(wrong), lambda: h.fault(kind, wrong))


def _arrive(b: _Barrier, mask: Any) -> None:
    h = b.h
    _refuse(h, h.ir.and_(mask, b.arrived), Fault.CLUSTER_ARRIVE)
    h.store(h.ir.or_(b.arrived, mask), b.masks, 0)
    kept = h.ir.and_(b.parity, h.ir.not_(mask))
    h.store(h.ir.or_(kept, h.ir.and_(b.current, mask)), b.masks, 4)
    count = h.ir.add(h.load(b.head, Cluster.ARRIVED, i32), b.count(mask))
    b.complete(count, h.load(b.head, Cluster.LIVE, i32))
    h.next()


def _wait(b: _Barrier, mask: Any) -> None:
    h = b.h
    _refuse(h, h.ir.and_(mask, h.ir.not_(b.arrived)), Fault.CLUSTER_WAIT)

    def wait() -> None:
        bit = h.ir.shl(h.i32(1), h.load(h.warp, Warp.INDEX, i32))
        h.store(h.ir.or_(h.load(b.part, ClusterBlock.WAITING, i32), bit), b.part, ClusterBlock.WAITING)
        h.store(h.ir.and_(h.load(h.block, Block.RUNNABLE, i32), h.ir.not_(bit)), h.block, Block.RUNNABLE)
        h.store(h.i32(Cluster.NUMBER), h.warp, Warp.BARRIER)
        h.store(h.rec, h.warp, Warp.WAITS)
        h.schedule(h.rec)

    h.branch_unless(h.zero(h.ir.and_(mask, b.pending)), wait)
    h.store(h.ir.and_(b.arrived, h.ir.not_(mask)), b.masks, 0)
    h.next()


def leave(h: Handler, mask: Any) -> None:
    """The lanes of a mask end: the barrier waits for them no longer."""
    b = _Barrier(h)
    h.store(h.i32(1), b.head, Cluster.ENDED)
    live = h.ir.sub(h.load(b.head, Cluster.LIVE, i32), b.count(mask))
    h.store(live, b.head, Cluster.LIVE)
    count = h.ir.sub(h.load(b.head, Cluster.ARRIVED, i32), b.count(h.ir.and_(mask, b.pending)))
    h.store(h.ir.and_(b.arrived, h.ir.not_(mask)), b.masks, 0)
    b.complete(count, live)
