"""Barriers and fences.

A warp that waits is taken out of the mask of warps that can run; the last one to arrive puts all of them back. A
barrier counts warps, as the hardware does: its thread count is a multiple of 32, and a barrier without a count is for
the warps of the block that have not ended.
"""

from __future__ import annotations

from typing import Any


from ..machine.layout import Barrier, Block, Warp
from ..machine.status import Fault
from ..instructions.barriers import Barrier as BarrierOp
from ..instructions.barriers import BarrierResult, Fence, RegisterCount
from ..instructions.operand_classes import SINK, OperandClass
from .handler import Handler, i32, i64
from .control import await_lanes, wait_again
from .data import guard_mask, put, source
from .registry import emits
from .scheduler import release

__all__ = ["first"]


@emits(BarrierOp)
def barrier(h: Handler, op: BarrierOp) -> None:
    mask = guard_mask(h, op.guard, True)
    priority = h.field() if op.masked else None
    which = first(h, op.number)
    wanted = first(h, op.threads) if op.threads else h.i32(0)
    holds = guard_mask(h, op.predicate, True) if op.predicate else None
    if op.guard:
        h.skip_unless_any(mask)
    alive = h.load(h.warp, Warp.ALIVE, i32)
    await_lanes(h, h.ir.and_(alive, h.ir.not_(h.active)), priority)
    _demand(h, h.ir.icmp_unsigned("==", mask, alive), Fault.BARRIER_DIVERGED, mask)
    _demand(h, h.ir.icmp_unsigned("<", which, h.i32(16)), Fault.BARRIER_NUMBER, mask)
    place = h.add(h.add(h.block, Block.BARRIERS), h.ir.mul(h.ir.zext(which, i64), h.i64(Barrier.nbytes)))
    arrived = h.load(place, Barrier.ARRIVED, i32)
    if op.threads:
        whole = h.zero(h.ir.and_(wanted, h.i32(31)))
        some = h.nonzero(wanted)
        _demand(h, h.ir.and_(whole, some), Fault.BARRIER_COUNT, mask)
    fresh = h.zero(arrived)
    same = h.ir.icmp_unsigned("==", h.load(place, Barrier.EXPECTED, i32), wanted)
    _demand(h, h.ir.or_(fresh, same), Fault.BARRIER_MISMATCH, mask)
    h.store(wanted, place, Barrier.EXPECTED)
    if holds is not None:
        _vote(h, op.action, place, holds, mask, fresh)
    arrived = h.ir.add(arrived, h.i32(1))
    h.store(arrived, place, Barrier.ARRIVED)
    live = h.load(h.block, Block.LIVE, i32)
    needed = h.ir.lshr(wanted, h.i32(5)) if op.threads else h.call("llvm.ctpop.i32", i32, live)
    complete, wait = h.block_named("complete"), h.block_named("wait")
    bit = h.ir.shl(h.i32(1), h.load(h.warp, Warp.INDEX, i32))
    h.ir.cbranch(h.ir.icmp_unsigned(">=", arrived, needed), complete, wait)
    h.ir.position_at_end(complete)
    if holds is not None:
        h.store(h.load(place, Barrier.RESULT, i32), h.warp, Warp.RESULT)
    release(h, place)
    h.next()
    h.ir.position_at_end(wait)
    barred = h.ir.or_(h.load(h.block, Block.BARRED, i32), h.ir.shl(h.i32(1), which))
    h.store(barred, h.block, Block.BARRED)
    if op.action == "arrive":
        h.next()
        return
    h.store(h.ir.or_(h.load(place, Barrier.WAITING, i32), bit), place, Barrier.WAITING)
    runnable = h.ir.and_(h.load(h.block, Block.RUNNABLE, i32), h.ir.not_(bit))
    h.store(runnable, h.block, Block.RUNNABLE)
    h.store(which, h.warp, Warp.BARRIER)
    h.store(h.rec, h.warp, Warp.WAITS)
    h.schedule(h.following())


def first(h: Handler, kind: OperandClass) -> Any:
    """An operand that is the same for all threads: its value in the first active lane."""
    if not kind.per_lane:
        return source(h, kind, 1)
    return h.ir.extract_element(source(h, kind, 32), h.first_lane(h.active))


def _demand(h: Handler, condition: Any, kind: int, mask: Any) -> None:
    h.branch_unless(condition, lambda: h.fault(kind, mask))


def _vote(h: Handler, action: str, place: Any, holds: Any, mask: Any, fresh: Any) -> None:
    """Add this warp's predicates to the barrier's result: a count, or all ones or zero."""
    old = h.load(place, Barrier.RESULT, i32)
    if action == "popc":
        mine = h.call("llvm.ctpop.i32", i32, holds)
        new = h.ir.add(mine, h.ir.select(fresh, h.i32(0), old))
    elif action == "and":
        mine = h.ir.sext(h.ir.icmp_unsigned("==", holds, mask), i32)
        new = h.ir.and_(mine, h.ir.select(fresh, h.i32(-1), old))
    else:
        mine = h.ir.sext(h.nonzero(holds), i32)
        new = h.ir.or_(mine, h.ir.select(fresh, h.i32(0), old))
    h.store(new, place, Barrier.RESULT)


@emits(BarrierResult)
def barrier_result(h: Handler, op: BarrierResult) -> None:
    dest, mask = op.dest, guard_mask(h, op.guard, op.masked)
    value = h.load(h.warp, Warp.RESULT, i32)
    if dest.predicate:
        whole = h.nonzero(value)
        value = whole if dest.uniform else h.bools(value)
    elif dest.per_lane:
        value = h.splat(value)
    if dest != SINK:
        put(h, h.slot(), value, mask if dest.per_lane else None)
    h.next()


@emits(Fence)
def fence(h: Handler, op: Fence) -> None:
    h.ir.fence(*(("seq_cst", "singlethread") if op.order == "block" else (op.order,)))
    h.next()


@emits(RegisterCount)
def register_count(h: Handler, op: RegisterCount) -> None:
    mask = guard_mask(h, op.guard, True)
    before = h.load(h.warp, Warp.MAXNREG, i32)
    new = h.zero(before)
    had = h.ir.select(new, h.i32(op.initial), before)
    fits = h.ir.icmp_signed("<=" if op.takes else ">=", had, h.i32(op.registers))
    fits = fits if op.known else h.ir.or_(fits, new)
    h.branch_unless(fits, lambda: h.fault(Fault.MAXNREG, mask))
    more, freed = h.ir.sub(h.i32(op.registers), had), h.load(h.block, Block.FREED, i32)
    if op.takes:
        h.branch_unless(h.ir.icmp_signed("<=", more, freed), lambda: wait_again(h))
    h.store(h.ir.sub(freed, more), h.block, Block.FREED)
    h.store(h.i32(op.registers), h.warp, Warp.MAXNREG)
    h.next()
