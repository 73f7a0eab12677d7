"""Control flow: branches, and where the lanes of a warp diverge and reconverge.

The lanes of a warp that are at one place are its active lanes; every other one is parked, with the priority of its
basic block in PRIORITIES. These follow the post-dominator tree, and the lowest number runs first, so lanes that
diverged at a branch reconverge at its post-dominator. `parked` is the lowest number at which lanes wait: an edge to a
block below it needs no check.
"""

from __future__ import annotations

from typing import Any

from ..machine.layout import NEVER, Block, Warp
from ..machine.budgets import LONE_POLL_COST, OWN_POLL, OWN_POLL_COST, PATIENCE, POLL_COST, SLICE, SLICE_COST
from ..machine.status import Fault, Status
from ..instructions.control import Branch, Exit, IndexedBranch, Jump, Reconvergence, SystemCall, Trap
from .handler import Handler, i32, i64, lanes_of, pointer
from .data import guard_mask, source
from .registry import emits
from .scheduler import retire

__all__ = ["await_lanes", "park", "return_status", "wait_again", "yield_warp"]


def park(h: Handler, lanes: Any, priority: Any) -> None:
    """Note that the lanes of a mask wait at a block."""
    priorities = h.add(h.warp, Warp.PRIORITIES)
    waiting = h.held(priorities, lanes_of(i32))
    h.store(h.ir.select(h.bools(lanes), h.splat(priority), waiting), priorities, 0)


def _reschedule(h: Handler) -> None:
    h.tail_to(Block.RESCHEDULE, h.rec)


def _advance(h: Handler, priority: Any) -> None:
    """The active lanes wait at a block for those before it."""
    park(h, h.active, priority)
    h.tail_to(Block.ADVANCE, h.rec)


def await_lanes(h: Handler, missing: Any, priority: Any) -> None:
    """Where lanes are missing that may still come, since they are before this block, let them run first."""
    if priority is None:
        return
    before = h.ir.icmp_signed("<", h.load(h.warp, Warp.PARKED, i32), priority)
    wait = h.ir.and_(before, h.nonzero(missing))
    h.branch_unless(h.ir.not_(wait), lambda: _advance(h, priority))


def _charge_slice(h: Handler, cost: Any, target: Any, conservative: bool, priority: Any = None) -> None:
    """Charge the warp's time slice for a backward branch to ``target``; at its end another warp is scheduled."""
    budget = h.ir.sub(h.load(h.warp, Warp.BUDGET, i32), cost)
    h.store(budget, h.warp, Warp.BUDGET)
    over = h.ir.icmp_signed(">=", budget, h.i32(0))
    h.branch_unless(over, lambda: yield_warp(h, cost, target, conservative, priority))


def yield_warp(h: Handler, cost: Any, target: Any, conservative: bool = False, priority: Any = None) -> None:
    """Go on with another warp; this one goes on at ``target``, behind a branch of that cost.

    ``priority`` is that of the branch's target where lanes of the warp may be waiting elsewhere.
    """
    h.store(h.i32(SLICE), h.warp, Warp.BUDGET)
    h.store(target, h.warp, Warp.PC)
    polls = h.ir.icmp_signed(">", cost, h.i32(SLICE))
    yields = h.ir.add(h.load(h.warp, Warp.YIELDS, i32), h.ir.select(polls, h.i32(1), h.i32(SLICE_COST)))
    h.store(yields, h.warp, Warp.YIELDS)
    runnable = h.load(h.block, Block.RUNNABLE, i32)
    alone = h.zero(h.ir.and_(runnable, h.ir.sub(runnable, h.i32(1))))
    own = h.ir.icmp_signed("==", cost, h.i32(OWN_POLL))
    poll = h.ir.select(own, h.i32(OWN_POLL_COST), h.i32(POLL_COST))
    poll = h.ir.select(alone, h.i32(LONE_POLL_COST), poll)
    left = h.ir.sub(h.load(h.block, Block.BUDGET, i32), h.ir.select(polls, poll, h.i32(SLICE_COST)))
    h.store(left, h.block, Block.BUDGET)
    if priority is not None and conservative:
        _run_later_lanes(h, priority)
    elif priority is not None:
        _deoptimise_if_stuck(h, yields, priority)
    h.branch_unless(h.ir.icmp_signed(">=", left, h.i32(0)), lambda: return_status(h, Status.YIELD))
    h.tail_to(Block.SCHEDULE, h.rec)


def return_status(h: Handler, status: int) -> None:
    h.store(h.i32(status), h.block, Block.STATUS)
    h.ir.ret_void()


def wait_again(h: Handler) -> None:
    """Let other warps run, and come again; return once the budget is spent, to find deadlocks."""
    h.store(h.rec, h.warp, Warp.WAITS)
    h.store(h.rec, h.warp, Warp.PC)
    budget = h.ir.sub(h.load(h.block, Block.BUDGET, i32), h.i32(1))
    h.store(budget, h.block, Block.BUDGET)
    h.branch_unless(h.ir.icmp_signed(">=", budget, h.i32(0)), lambda: return_status(h, Status.YIELD))
    h.tail_to(Block.SCHEDULE, h.rec)


def _diverged(h: Handler) -> Any:
    return h.ir.icmp_signed("!=", h.load(h.warp, Warp.PARKED, i32), h.i32(NEVER))


def _run_later_lanes(h: Handler, priority: Any) -> None:
    """In conservative code, the lanes that come after these in the program are to run next, then these again."""
    with h.ir.if_then(_diverged(h)):
        park(h, h.active, priority)
        h.store(priority, h.warp, Warp.AFTER)
        h.store(h.load(h.block, Block.RECONVERGE, i64), h.warp, Warp.PC)


def _deoptimise_if_stuck(h: Handler, yields: Any, priority: Any) -> None:
    """Lanes that wait for parked lanes of their own warp would wait for ever: conservative code is fair."""
    with h.ir.if_then(h.ir.and_(_diverged(h), h.ir.icmp_signed(">", yields, h.i32(PATIENCE))), likely=False):
        park(h, h.active, priority)
        h.store(h.i64(0), h.warp, Warp.PC)
        h.store(h.i32(0), h.block, Block.FAULT_KIND)
        h.store(h.load(h.warp, Warp.INDEX, i32), h.block, Block.FAULT_WARP)
        return_status(h, Status.DEOPT)


@emits(Jump)
def jump(h: Handler, op: Jump) -> None:
    target = h.add(h.rec, h.field())
    priority = h.field() if op.divergent else None
    if op.divergent:
        _arrive(h, priority)
    if op.backward:
        _charge_slice(h, h.field(), target, op.conservative, priority)
    h.goto(target)


def _arrive(h: Handler, priority: Any) -> None:
    """Stop the active lanes at the block of this priority if others wait there or before it."""
    first = h.ir.icmp_signed("<", priority, h.load(h.warp, Warp.PARKED, i32))
    h.branch_unless(first, lambda: _advance(h, priority))


@emits(Reconvergence)
def reconvergence(h: Handler, _: Reconvergence) -> None:
    _arrive(h, h.field())
    h.next()


@emits(Branch)
def branch(h: Handler, op: Branch) -> None:
    mask = guard_mask(h, op.guard, False)
    target = h.add(h.rec, h.field())
    if not op.divergent:
        if op.backward:
            cost = h.field()
            h.skip_unless_any(mask)
            _charge_slice(h, cost, target, op.conservative)
            h.goto(target)
        else:
            h.goto(h.ir.select(h.nonzero(mask), target, h.following()))
        return
    to, on = h.field(), h.field()
    cost = h.field() if op.backward else None
    active = h.active
    taken, left = h.ir.and_(active, mask), h.ir.and_(active, h.ir.not_(mask))
    all_go, some, none_go, diverge = (h.block_named(n) for n in ("all_go", "some", "none_go", "diverge"))
    h.ir.cbranch(h.zero(left), all_go, some)
    h.ir.position_at_end(all_go)
    _arrive(h, to)
    if cost is not None:
        _charge_slice(h, cost, target, op.conservative, to)
    h.goto(target)
    h.ir.position_at_end(some)
    h.ir.cbranch(h.zero(taken), none_go, diverge)
    h.ir.position_at_end(none_go)
    _arrive(h, on)
    h.goto(h.following())
    h.ir.position_at_end(diverge)
    _diverge(h, (taken, to, target), (left, on, h.following()))


def _diverge(h: Handler, some: tuple[Any, Any, Any], others: tuple[Any, Any, Any]) -> None:
    """Lanes diverge, each way given with its priority and micro-op: those of the lower number run, unless others do."""
    parked = h.load(h.warp, Warp.PARKED, i32)
    before = h.ir.icmp_signed("<", some[1], others[1])
    now, first, record = (h.ir.select(before, a, b) for a, b in zip(some, others))
    later, last = (h.ir.select(before, b, a) for a, b in zip(some[:2], others[:2]))

    def all_wait() -> None:
        park(h, now, first)
        park(h, later, last)
        _reschedule(h)

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
    h.branch_unless(h.nonzero(alive), lambda: h.tail_to(Block.RETIRE, h.rec))
    if op.masked:
        h.branch_unless(h.nonzero(active), lambda: _reschedule(h))
    h.next()


@emits(Trap)
def trap(h: Handler, op: Trap) -> None:
    lanes = guard_mask(h, op.guard, True)
    if op.guard:
        h.skip_unless_any(lanes)
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
    h.branch_unless(h.zero(bad), lambda: h.fault(Fault.BRANCH_INDEX, bad))
    if on is not None:
        park(h, h.active, on)
    addresses = h.ir.add(h.splat(table), h.ir.shl(h.ir.zext(number, lanes_of(i64)), h.splat(h.i64(2))))
    pointers, kind = h.ir.inttoptr(addresses, lanes_of(pointer)), lanes_of(i32)
    waiting = h.load(h.warp, Warp.PRIORITIES, kind)
    name = "llvm.masked.gather.v32i32.v32p0"
    h.store(h.call(name, kind, pointers, h.i32(4), h.bools(mask), waiting), h.warp, Warp.PRIORITIES)
    _reschedule(h)


@emits(SystemCall)
def system_call(h: Handler, op: SystemCall) -> None:
    """Return to Python, which answers the call; the warp resumes behind it."""
    mask = guard_mask(h, op.guard, True)
    if op.guard:
        h.skip_unless_any(mask)
    h.stop(Status.SYSTEM_CALL)
    h.store(h.following(), h.warp, Warp.PC)
    h.store(h.ir.zext(mask, i64), h.block, Block.FAULT_ADDRESS)
    h.ir.ret_void()
