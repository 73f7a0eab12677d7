"""Control flow: branches, and where the lanes of a warp diverge and reconverge.

The lanes of a warp that are at one place are its active lanes; every other one is parked, with the priority of its
basic block in PLACES. Priorities follow the post-dominator tree, and the lowest number runs first, so lanes that
diverged at a branch reconverge at its post-dominator. `parked` is the lowest number at which lanes wait: an edge to a
block below it needs no check.
"""

from __future__ import annotations

from typing import Any

from ..machine.layout import NEVER, PATIENCE, POLL_COST, SLICE, SLICE_COST, Block, Fault, Status, Warp
from ..instructions.control import Branch, Exit, IndexedBranch, Jump, Reconvergence, SystemCall, Trap
from .handler import Handler, i32, i64, lanes_of, pointer
from .data import guard_mask, source
from .registry import emits
from .scheduler import retire

__all__ = ["await_lanes", "park"]


def park(h: Handler, lanes: Any, rank: Any) -> None:
    """Note that the lanes of a mask wait at a block."""
    places = h.add(h.warp, Warp.PRIORITIES)
    kind = lanes_of(i32)
    h.store(h.ir.select(h.bools(lanes), h.splat(rank), h.load(places, 0, kind)), places, 0)


def reschedule(h: Handler) -> None:
    h.tail_to(Block.RESCHEDULE, h.rec)


def await_lanes(h: Handler, missing: Any, rank: Any) -> None:
    """Where lanes are missing that may still come, since they are before this block, let them run first."""
    if rank is None:
        return
    before = h.ir.icmp_signed("<", h.load(h.warp, Warp.PARKED, i32), rank)
    wait = h.ir.and_(before, h.ir.icmp_unsigned("!=", missing, h.i32(0)))

    def leave() -> None:
        park(h, h.active, rank)
        h.tail_to(Block.ADVANCE, h.rec)

    h.branch_unless(h.ir.not_(wait), leave)


def charge_slice(h: Handler, cost: Any, target: Any, conservative: bool, rank: Any = None) -> None:
    """Charge the warp's time slice for a backward branch to ``target``; at its end another warp is scheduled."""
    budget = h.ir.sub(h.load(h.warp, Warp.BUDGET, i32), cost)
    h.store(budget, h.warp, Warp.BUDGET)

    def yield_warp() -> None:
        h.store(h.i32(SLICE), h.warp, Warp.BUDGET)
        h.store(target, h.warp, Warp.PC)
        polls = h.ir.icmp_signed(">", cost, h.i32(SLICE))
        spent = h.ir.select(polls, h.i32(1), h.i32(SLICE_COST))
        yields = h.ir.add(h.load(h.warp, Warp.YIELDS, i32), spent)
        h.store(yields, h.warp, Warp.YIELDS)
        spent = h.ir.select(polls, h.i32(POLL_COST), h.i32(SLICE_COST))
        turns = h.ir.sub(h.load(h.block, Block.BUDGET, i32), spent)
        h.store(turns, h.block, Block.BUDGET)
        if rank is not None and conservative:
            _run_later_lanes(h, rank)
        elif rank is not None:
            _deoptimise_if_stuck(h, yields, rank)
        h.branch_unless(h.ir.icmp_signed(">=", turns, h.i32(0)), lambda: _return(h, Status.YIELD))
        h.tail_to(Block.SCHEDULE, h.rec)

    h.branch_unless(h.ir.icmp_signed(">=", budget, h.i32(0)), yield_warp)


def _return(h: Handler, status: int) -> None:
    h.store(h.i32(status), h.block, Block.STATUS)
    h.ir.ret_void()


def _run_later_lanes(h: Handler, rank: Any) -> None:
    """In conservative code, the lanes that come after these in the program are to run next, then these again."""
    diverged, on = h.block_named("diverged"), h.block_named("together")
    h.ir.cbranch(h.ir.icmp_signed("!=", h.load(h.warp, Warp.PARKED, i32), h.i32(NEVER)), diverged, on)
    h.ir.position_at_end(diverged)
    park(h, h.active, rank)
    h.store(rank, h.warp, Warp.AFTER)
    h.store(h.load(h.block, Block.RECONVERGE, i64), h.warp, Warp.PC)
    h.ir.branch(on)
    h.ir.position_at_end(on)


def _deoptimise_if_stuck(h: Handler, yields: Any, rank: Any) -> None:
    """Lanes that wait for parked lanes of their own warp would wait for ever: conservative code is fair."""
    diverged = h.ir.icmp_signed("!=", h.load(h.warp, Warp.PARKED, i32), h.i32(NEVER))
    stuck = h.ir.and_(diverged, h.ir.icmp_signed(">", yields, h.i32(PATIENCE)))

    def leave() -> None:
        park(h, h.active, rank)
        h.store(h.i64(0), h.warp, Warp.PC)
        h.store(h.i32(0), h.block, Block.FAULT_KIND)
        h.store(h.load(h.warp, Warp.INDEX, i32), h.block, Block.FAULT_WARP)
        _return(h, Status.DEOPT)

    h.branch_unless(h.ir.not_(stuck), leave)


@emits(Jump)
def jump(h: Handler, op: Jump) -> None:
    target = h.add(h.rec, h.field())
    rank = h.field() if op.divergent else None
    if op.divergent:
        _arrive(h, rank)
    if op.backward:
        charge_slice(h, h.field(), target, op.conservative, rank)
    h.goto(target)


def _arrive(h: Handler, rank: Any) -> None:
    """Stop the active lanes at the block of this rank if others wait there or before it."""

    def meet() -> None:
        park(h, h.active, rank)
        h.tail_to(Block.ADVANCE, h.rec)

    h.branch_unless(h.ir.icmp_signed("<", rank, h.load(h.warp, Warp.PARKED, i32)), meet)


@emits(Reconvergence)
def reconvergence(h: Handler, _: Reconvergence) -> None:
    _arrive(h, h.field())
    h.next()


@emits(Branch)
def branch(h: Handler, op: Branch) -> None:
    mask = guard_mask(h, op.guard, False)
    target = h.add(h.rec, h.field())
    if not op.divergent:
        taken = h.ir.icmp_unsigned("!=", mask, h.i32(0))
        if op.backward:
            cost = h.field()
            go, fall = h.block_named("go"), h.block_named("fall")
            h.ir.cbranch(taken, go, fall)
            h.ir.position_at_end(fall)
            h.goto(h.following())
            h.ir.position_at_end(go)
            charge_slice(h, cost, target, op.conservative)
            h.goto(target)
        else:
            h.goto(h.ir.select(taken, target, h.following()))
        return
    to, on = h.field(), h.field()
    cost = h.field() if op.backward else None
    active = h.active
    taken, left = h.ir.and_(active, mask), h.ir.and_(active, h.ir.not_(mask))
    all_go, some, some_go, part = (h.block_named(n) for n in ("all_go", "some", "some_go", "part"))
    h.ir.cbranch(h.ir.icmp_unsigned("==", left, h.i32(0)), all_go, some)
    h.ir.position_at_end(all_go)
    _arrive(h, to)
    if cost is not None:
        charge_slice(h, cost, target, op.conservative, to)
    h.goto(target)
    h.ir.position_at_end(some)
    h.ir.cbranch(h.ir.icmp_unsigned("==", taken, h.i32(0)), some_go, part)
    h.ir.position_at_end(some_go)
    _arrive(h, on)
    h.goto(h.following())
    h.ir.position_at_end(part)
    _part(h, (taken, to, target), (left, on, h.following()))


def _part(h: Handler, some: tuple[Any, Any, Any], others: tuple[Any, Any, Any]) -> None:
    """Lanes diverge, each way given with its priority and micro-op: those of the lower number run, unless others do."""
    parked = h.load(h.warp, Warp.PARKED, i32)
    before = h.ir.icmp_signed("<", some[1], others[1])
    now, first, record = (h.ir.select(before, a, b) for a, b in zip(some, others))
    later, last = (h.ir.select(before, b, a) for a, b in zip(some[:2], others[:2]))

    def all_wait() -> None:
        park(h, now, first)
        park(h, later, last)
        reschedule(h)

    ahead = h.ir.and_(h.ir.icmp_signed("<", first, parked), h.ir.icmp_signed("<", first, last))
    h.branch_unless(ahead, all_wait)
    park(h, later, last)
    h.store(h.ir.select(h.ir.icmp_signed("<", last, parked), last, parked), h.warp, Warp.PARKED)
    h.store(now, h.warp, Warp.ACTIVE)
    h.goto(record)


@emits(Exit)
def exit_(h: Handler, op: Exit) -> None:
    gone = guard_mask(h, op.guard, False)
    gone = h.active if gone is None else h.ir.and_(h.active, gone)
    alive = h.ir.and_(h.load(h.warp, Warp.ALIVE, i32), h.ir.not_(gone))
    h.store(alive, h.warp, Warp.ALIVE)
    active = h.ir.and_(h.active, h.ir.not_(gone))
    h.store(active, h.warp, Warp.ACTIVE)
    if not op.guard and not op.masked:
        retire(h)
        return
    h.branch_unless(h.ir.icmp_unsigned("!=", alive, h.i32(0)), lambda: h.tail_to(Block.RETIRE, h.rec))
    if op.masked:
        h.branch_unless(h.ir.icmp_unsigned("!=", active, h.i32(0)), lambda: reschedule(h))
    h.next()


@emits(Trap)
def trap(h: Handler, op: Trap) -> None:
    lanes = guard_mask(h, op.guard, True)
    if op.guard:
        h.branch_unless(h.ir.icmp_unsigned("!=", lanes, h.i32(0)), h.next)
    h.fault(op.fault, lanes)


@emits(IndexedBranch)
def indexed_branch(h: Handler, op: IndexedBranch) -> None:
    """Its fields say how many targets there are, and where their priorities lie."""
    mask = guard_mask(h, op.guard, True)
    number = source(h, op.selector, 32)
    on = h.field() if op.guard else None
    count, table = h.field(), h.field("q")
    wrong = h.ir.icmp_unsigned(">=", number, h.splat(count))
    bad = h.ir.and_(mask, h.mask(wrong))
    h.branch_unless(h.ir.icmp_unsigned("==", bad, h.i32(0)), lambda: h.fault(Fault.BRANCH_INDEX, bad))
    if on is not None:
        park(h, h.active, on)
    wide = lanes_of(i64)
    ranks = h.ir.add(h.splat(table), h.ir.shl(h.ir.zext(number, wide), h.splat(h.i64(2))))
    places, kind = h.ir.inttoptr(ranks, lanes_of(pointer)), lanes_of(i32)
    waiting = h.load(h.add(h.warp, Warp.PRIORITIES), 0, kind)
    name = "llvm.masked.gather.v32i32.v32p0"
    h.store(h.call(name, kind, places, h.i32(4), h.bools(mask), waiting), h.add(h.warp, Warp.PRIORITIES), 0)
    reschedule(h)


@emits(SystemCall)
def system_call(h: Handler, op: SystemCall) -> None:
    """Return to Python, which answers the call; the warp resumes behind it."""
    mask = guard_mask(h, op.guard, True)
    if op.guard:
        h.branch_unless(h.ir.icmp_unsigned("!=", mask, h.i32(0)), h.next)
    h.stop(Status.SYSTEM_CALL)
    h.store(h.following(), h.warp, Warp.PC)
    h.store(h.ir.zext(mask, i64), h.block, Block.FAULT_ADDRESS)
    h.ir.ret_void()
