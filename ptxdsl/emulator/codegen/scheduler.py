"""The compiled scheduler: which block, which warp, and which of its lanes run next.

These are functions like the handlers, found through the block state. They choose in a fixed order, so that a launch is
reproducible: blocks by number, warps in turn, lanes by the priority of their basic block.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.layout import LANES, NEVER, Barrier, Block, Launch, Warp
from ..machine.budgets import INTERRUPTS, SLICE
from ..machine.status import Status
from ..instructions.scheduler import Interruption, SchedulerFunction
from .cluster_schedule import run_clusters
from .handler import HANDLER, Handler, byte, i1, i32, i64, lanes_of, pointer
from .pending import faulty, make_all, make_counted, make_some, some_pending
from .registry import builds, emits

__all__ = ["PAIR", "claimed_block", "place_in_grid", "release", "retire", "starting"]

MOST_LINES = 1 << 14
"""Bytes of shared memory that are filled in lines."""
VOID = ir.VoidType()
PAIR = ir.VectorType(i64, 2)


@builds(SchedulerFunction)
def scheduler_function(module: ir.Module, name: str, key: SchedulerFunction) -> None:
    _FUNCTIONS[key.name](module, name)


def _schedule(module: ir.Module, name: str) -> None:
    """Go on with the next warp that can run; return where none can."""
    h = Handler(module, name)
    switch(h, h.load(h.block, Block.RUNNABLE, i32))


def _resumed(module: ir.Module, name: str) -> None:
    """Go on with the warp that ran last."""
    h = Handler(module, name)
    h.warp = warp_at(h, h.load(h.block, Block.CURRENT, i32))
    h.goto(h.load(h.warp, Warp.PC, pointer))


def _draw(h: Handler) -> Any:
    """The next random number of a seed (xorshift32)."""
    seed = h.load(h.block, Block.SEED, i32)
    for move, amount in ((h.ir.shl, 13), (h.ir.lshr, 17), (h.ir.shl, 5)):
        seed = h.ir.xor(seed, move(seed, h.i32(amount)))
    h.store(seed, h.block, Block.SEED)
    return seed


def _shuffled(module: ir.Module, name: str) -> None:
    """As schedule, but the next warp is drawn at random, each as likely as the others."""
    h = Handler(module, name)
    with h.ir.if_then(h.likely(some_pending(h), False)):
        h.ir.call(h.load(h.block, Block.MAKE_SOME, h.function.type, 8), [h.rec, h.warp, h.block])
        h.branch_unless(h.ir.not_(faulty(h)), h.ir.ret_void)
    stay = h.load(h.block, Block.STAY, i32)
    h.store(h.i32(0), h.block, Block.STAY)
    seed = _draw(h)
    runnable = h.load(h.block, Block.RUNNABLE, i32)
    count = h.ir.zext(h.call("llvm.ctpop.i32", i32, runnable), i64)
    skipped = h.ir.trunc(h.ir.lshr(h.ir.mul(h.ir.zext(seed, i64), count), h.i64(32)), i32)
    left = h.alloca(i32)
    h.ir.store(runnable, left)

    def skip(number: Any) -> Any:
        mask = h.ir.load(left)
        h.ir.store(h.ir.and_(mask, h.ir.sub(mask, h.i32(1))), left)
        return h.ir.add(number, h.i32(1))

    h.loop(h.i32(0), lambda number: h.ir.icmp_unsigned("<", number, skipped), skip)
    drawn = h.ir.sub(h.first_lane(h.ir.load(left)), h.i32(1))
    current = h.ir.select(h.nonzero(stay), h.load(h.block, Block.CURRENT, i32), drawn)
    h.store(h.ir.and_(current, h.i32(LANES - 1)), h.block, Block.CURRENT)
    switch(h, runnable)


@emits(Interruption)
def interruption(h: Handler, _: Interruption) -> None:
    """Go on behind it later, with a warp that is drawn now, or once it is the block's turn again.

    Not while states are compared: warps that wait stop at one place then, where their loop turns.
    """
    parameters = h.load(h.block, Block.LAUNCH, pointer)
    compared = h.load(parameters, Launch.STOPPED - Launch.nbytes, i32)
    h.branch_unless(h.zero(compared), h.next)
    h.store(h.following(), h.warp, Warp.PC)

    def leave() -> None:
        h.store(h.i32(-1), h.block, Block.BUDGET)
        h.store(h.i32(Status.YIELD), h.block, Block.STATUS)
        h.ir.ret_void()

    h.branch_unless(h.ir.icmp_unsigned(">=", _draw(h), ir.Constant(i32, INTERRUPTS)), leave)
    h.tail_to(Block.SCHEDULE, h.rec)


def switch(h: Handler, runnable: Any) -> None:
    """Go on with the first warp of the mask that follows the current one; return where it is empty."""
    h.branch_unless(h.nonzero(runnable), h.ir.ret_void)
    after = h.ir.add(h.load(h.block, Block.CURRENT, i32), h.i32(1))
    turned = h.call("llvm.fshr.i32", i32, runnable, runnable, after)
    ahead = h.call("llvm.cttz.i32", i32, turned, ir.Constant(i1, 1))
    chosen = h.ir.and_(h.ir.add(after, ahead), h.i32(LANES - 1))
    h.store(chosen, h.block, Block.CURRENT)
    h.warp = warp_at(h, chosen)
    h.goto(h.load(h.warp, Warp.PC, pointer))


def warp_at(h: Handler, number: Any) -> Any:
    stride = h.load(h.block, Block.STRIDE, i64)
    return h.add(h.load(h.block, Block.WARPS, pointer), h.ir.mul(h.ir.zext(number, i64), stride))


def _reschedule(module: ir.Module, name: str) -> None:
    """All live lanes are parked: activate the first of them; once after AFTER was set, the first behind it."""
    h = Handler(module, name)
    kind = lanes_of(i32)
    alive = h.bools(h.load(h.warp, Warp.ALIVE, i32))
    never = h.splat(h.i32(NEVER))
    waiting = h.ir.select(alive, h.load(h.warp, Warp.PRIORITIES, kind, 64), never)
    least = "llvm.vector.reduce.smin.v32i32"
    after = h.load(h.warp, Warp.AFTER, i32)
    h.store(h.i32(-1), h.warp, Warp.AFTER)
    later = h.ir.select(h.ir.icmp_signed(">", waiting, h.splat(after)), waiting, never)
    priority = h.call(least, i32, later)
    priority = h.ir.select(h.ir.icmp_signed("==", priority, h.i32(NEVER)), h.call(least, i32, waiting), priority)
    _activate(h, waiting, priority, h.ir.icmp_unsigned("==", waiting, h.splat(priority)))


def _advance(module: ir.Module, name: str) -> None:
    """As reschedule, where PARKED is the priority of those that come first: one reduction over all lanes less."""
    h = Handler(module, name)
    alive = h.bools(h.load(h.warp, Warp.ALIVE, i32))
    waiting = h.ir.select(alive, h.load(h.warp, Warp.PRIORITIES, lanes_of(i32), 64), h.splat(h.i32(NEVER)))
    priority = h.load(h.warp, Warp.PARKED, i32)
    here = h.ir.icmp_unsigned("==", waiting, h.splat(priority))
    h.branch_unless(h.nonzero(h.mask(here)), lambda: h.tail_to(Block.RESCHEDULE, h.rec))
    _activate(h, waiting, priority, here)


def _activate(h: Handler, waiting: Any, priority: Any, here: Any) -> None:
    """Go on with the lanes at the block of a priority; the others stay where they are."""
    h.store(h.mask(here), h.warp, Warp.ACTIVE)
    parked = h.call("llvm.vector.reduce.smin.v32i32", i32, h.ir.select(here, h.splat(h.i32(NEVER)), waiting))
    h.store(parked, h.warp, Warp.PARKED)
    diverged = h.ir.icmp_signed("!=", parked, h.i32(NEVER))  # if not, what lanes waited for has happened
    h.store(h.ir.select(diverged, h.load(h.warp, Warp.YIELDS, i32), h.i32(0)), h.warp, Warp.YIELDS)
    records = h.load(h.block, Block.BLOCKS, pointer)
    h.goto(h.load(records, h.ir.shl(h.ir.zext(priority, i64), h.i64(3)), pointer))


def release(h: Handler, barrier: Any) -> None:
    """All have arrived at a barrier: wake those that wait there, and make it ready for use again."""
    waiting = h.load(barrier, Barrier.WAITING, i32)
    runnable = h.ir.or_(h.load(h.block, Block.RUNNABLE, i32), waiting)
    h.store(runnable, h.block, Block.RUNNABLE)
    result = h.load(barrier, Barrier.RESULT, i32)
    h.for_each_lane(waiting, lambda number: h.store(result, warp_at(h, number), Warp.RESULT))
    h.store(h.i64(0), barrier, Barrier.ARRIVED)
    h.store(h.i64(0), barrier, Barrier.WAITING)


def remove_warp(h: Handler) -> tuple[Any, Any]:
    """Take this warp out of the masks of those that live and those that can run; both masks."""
    rest = h.ir.not_(h.ir.shl(h.i32(1), h.load(h.warp, Warp.INDEX, i32)))
    live = h.ir.and_(h.load(h.block, Block.LIVE, i32), rest)
    h.store(live, h.block, Block.LIVE)
    runnable = h.ir.and_(h.load(h.block, Block.RUNNABLE, i32), rest)
    h.store(runnable, h.block, Block.RUNNABLE)
    return live, runnable


def retire(h: Handler) -> None:
    """End this warp; only where barriers are in use that takes more than going on with the next one."""
    h.branch_unless(h.zero(h.load(h.block, Block.BARRED, i32)), lambda: h.tail_to(Block.RETIRE, h.rec))
    _, runnable = remove_warp(h)
    switch(h, runnable)


def _retire(module: ir.Module, name: str) -> None:
    """The warp has ended. Barriers for all threads wait for it no longer."""
    h = Handler(module, name)
    live, _ = remove_warp(h)
    left = h.call("llvm.ctpop.i32", i32, live)

    def complete(which: Any) -> None:
        barrier = h.add(h.add(h.block, Block.BARRIERS), h.ir.mul(h.ir.zext(which, i64), h.i64(Barrier.nbytes)))
        arrived = h.load(barrier, Barrier.ARRIVED, i32)
        for_all = h.zero(h.load(barrier, Barrier.EXPECTED, i32))
        done = h.ir.and_(for_all, h.ir.icmp_unsigned(">=", arrived, left))
        with h.ir.if_then(h.ir.and_(done, h.nonzero(arrived))):
            release(h, barrier)

    h.for_each_lane(h.load(h.block, Block.BARRED, i32), complete)
    h.tail_to(Block.SCHEDULE, h.rec)


def _run(module: ir.Module, name: str) -> None:
    """``run(_, _, block)``: run this block state's block, then one after the other, until STATUS says why it stops."""
    h = Handler(module, name)
    head, work, idle, stuck, fresh, leave = (
        h.block_named(n) for n in ("head", "work", "idle", "stuck", "fresh", "leave")
    )
    h.ir.branch(head)
    h.ir.position_at_end(head)
    runnable = h.load(h.block, Block.RUNNABLE, i32)
    h.ir.cbranch(h.likely(h.nonzero(runnable)), work, idle)
    h.ir.position_at_end(work)
    schedule = h.load(h.block, Block.SCHEDULE, h.function.type, 8)
    left = h.nonzero(h.load(h.block, Block.REGION, i32))
    called = h.ir.select(left, h.load(h.block, Block.FUNCTION, h.function.type, 8), schedule)
    resumed = h.load(h.block, Block.RESUMED, h.function.type, 8)
    h.store(h.i64(0), h.block, Block.RESUMED)
    called = h.ir.select(h.nonzero(h.ir.ptrtoint(resumed, i64)), resumed, called)
    h.ir.call(called, [h.rec, h.warp, h.block])
    status = h.load(h.block, Block.STATUS, i32)
    h.ir.cbranch(h.ir.icmp_unsigned("==", status, h.i32(Status.RUNNING)), head, leave)
    h.ir.position_at_end(idle)
    live = h.load(h.block, Block.LIVE, i32)
    h.ir.cbranch(h.nonzero(live), stuck, fresh)
    h.ir.position_at_end(stuck)
    h.store(h.i32(Status.BLOCKED), h.block, Block.STATUS)
    h.ir.branch(leave)
    h.ir.position_at_end(fresh)
    with h.ir.if_then(h.likely(some_pending(h), False)):  # the block has ended
        h.ir.call(h.load(h.block, Block.MAKE_ALL, h.function.type, 8), [h.rec, h.warp, h.block])
        h.branch_unless(h.ir.not_(faulty(h)), lambda: h.ir.branch(leave))
    budget = h.ir.sub(h.load(h.block, Block.BUDGET, i32), h.i32(1))
    h.store(budget, h.block, Block.BUDGET)
    pause, take = h.block_named("pause"), h.block_named("take")
    h.ir.cbranch(h.likely(h.ir.icmp_signed(">=", budget, h.i32(0))), take, pause)
    h.ir.position_at_end(pause)
    h.store(h.i32(Status.YIELD), h.block, Block.STATUS)
    h.ir.branch(leave)
    h.ir.position_at_end(take)
    launch = h.load(h.block, Block.GRID, pointer)
    number = _next_block(h, launch)
    some, done = h.block_named("some"), h.block_named("finished")
    h.ir.cbranch(h.ir.icmp_unsigned("<", number, h.load(launch, Launch.BLOCKS, i64)), some, done)
    h.ir.position_at_end(done)
    h.store(h.i32(Status.DONE), h.block, Block.STATUS)
    h.ir.branch(leave)
    h.ir.position_at_end(some)
    _begin(h, launch, number)
    h.ir.branch(head)
    h.ir.position_at_end(leave)
    h.leave()


def _next_block(h: Handler, launch: Any) -> Any:
    """The number of the next block: one whose turns were begun with those of another, or one that is claimed now."""
    begun = h.load(h.block, Block.BEGUN, i32)
    again, new, chosen = (h.block_named(n) for n in ("begun", "new", "chosen"))
    h.ir.cbranch(h.nonzero(begun), again, new)
    h.ir.position_at_end(again)
    first, further = h.load(h.block, Block.BEGUN_FIRST, i64), h.load(h.block, Block.BEGUN_FURTHER, i32)
    one = h.ir.zext(h.nonzero(further), i32)
    h.store(h.ir.sub(begun, h.i32(1)), h.block, Block.BEGUN)
    h.store(h.ir.add(first, h.i64(1)), h.block, Block.BEGUN_FIRST)
    h.store(h.ir.sub(further, one), h.block, Block.BEGUN_FURTHER)
    h.store(h.ir.add(h.load(h.block, Block.BEGUN_TURNS, i32), one), h.block, Block.TURNS)
    h.ir.branch(chosen)
    h.ir.position_at_end(new)
    claimed = claimed_block(h, launch)
    new = h.ir.block
    h.store(h.i32(0), h.block, Block.TURNS)
    h.ir.branch(chosen)
    h.ir.position_at_end(chosen)
    return h.merged(again, [first], new, [claimed])[0]


def claimed_block(h: Handler, launch: Any) -> Any:
    """The next block of the launch; a host thread alone need not wait until what it has stored is seen by others."""
    alone, several, claimed = (h.block_named(n) for n in ("alone", "several", "claimed"))
    h.ir.cbranch(h.likely(h.zero(h.load(launch, Launch.SEVERAL, i32))), alone, several)
    h.ir.position_at_end(alone)
    following = h.load(launch, Launch.NEXT, i64)
    h.store(h.ir.add(following, h.i64(1)), launch, Launch.NEXT)
    h.ir.branch(claimed)
    h.ir.position_at_end(several)
    counter = h.ir.bitcast(h.add(launch, Launch.NEXT), i64.as_pointer())
    mine = h.ir.atomic_rmw("add", counter, h.i64(1), "monotonic")
    h.ir.branch(claimed)
    h.ir.position_at_end(claimed)
    return h.merged(alone, [following], several, [mine])[0]


def _begin(h: Handler, launch: Any, number: Any) -> None:
    """Make the block state and its warps those of a fresh block."""
    _place(h, launch, number)
    h.store(number, h.block, Block.CTA64)
    shared = h.load(h.block, Block.SHARED, pointer)
    size = h.load(h.block, Block.SHARED_BYTES, i64)
    _fill_shared(h, shared, size)
    with h.ir.if_then(h.nonzero(h.load(h.block, Block.BARRED, i32))):
        _fill(h, h.add(h.block, Block.BARRIERS), 0, h.i64(16 * Barrier.nbytes))
        h.store(h.i32(0), h.block, Block.BARRED)
    function = h.load(h.block, Block.FUNCTION, HANDLER.as_pointer(), 8)
    with h.ir.if_else(h.nonzero(h.ir.ptrtoint(function, i64))) as (then, otherwise):
        with then:
            h.ir.call(function, [h.rec, h.warp, h.block])
        with otherwise:
            _start_warps(h)


def _start_warps(h: Handler) -> None:
    live = h.load(h.block, Block.ALL, i32)
    h.store(live, h.block, Block.LIVE)
    h.store(live, h.block, Block.RUNNABLE)
    h.store(h.i32(LANES - 1), h.block, Block.CURRENT)
    h.store(h.i32(0), h.block, Block.FREED)
    entry = starting(h, h.load(h.block, Block.ENTRY, i64))

    def start(number: Any) -> None:
        warp = warp_at(h, number)
        h.store(h.load(warp, Warp.FRESH, PAIR), warp, Warp.ACTIVE)
        for field in (Warp.PRODUCTS, Warp.WAITS_AT, Warp.MAXNREG):
            h.store(h.i64(0), warp, field)
        h.store(entry, warp, Warp.PC)

    h.for_each_lane(live, start)


def starting(h: Handler, record: Any) -> Any:
    """What a warp has from PC on when it is to start at a micro-op: the budget of a slice, and no yields."""
    return h.ir.insert_element(ir.Constant(PAIR, [0, SLICE]), record, h.i32(0))


def _place(h: Handler, launch: Any, number: Any) -> None:
    """Note the index of the block in the grid."""
    for axis, index in enumerate(place_in_grid(h, launch, number)):
        h.store(index, h.block, Block.CTAID + 4 * axis)


def place_in_grid(h: Handler, launch: Any, number: Any) -> list[Any]:
    """The index of a block in the grid, three i32; divisions are slow, and most grids are one row."""
    row, rows = (h.ir.zext(Handler.load(h, launch, Launch.GRID + at, i32, fixed=True), i64) for at in (0, 4))
    with h.ir.if_else(h.likely(h.ir.icmp_unsigned("<", number, row))) as (then, otherwise):
        with then:
            first, one = [number, h.i64(0), h.i64(0)], h.ir.block
        with otherwise:
            above = h.ir.udiv(number, row)
            index, other = [h.ir.urem(number, row), h.ir.urem(above, rows), h.ir.udiv(above, rows)], h.ir.block
    return [h.ir.trunc(value, i32) for value in h.merged(one, first, other, index)]


def _fill_shared(h: Handler, place: Any, size: Any) -> None:
    """Fill shared memory with ones: in lines, if it is not so large that the C library takes less."""
    few = h.ir.icmp_unsigned("<=", size, h.i64(MOST_LINES))
    lines = h.ir.select(few, h.ir.and_(size, h.i64(~63)), h.i64(0))
    h.fill(place, h.i64(-1), lines)
    _fill(h, h.add(place, lines), 0xFF, h.ir.sub(size, lines))


def _fill(h: Handler, place: Any, value: int, size: Any) -> None:
    h.call("llvm.memset.p0.i64", VOID, place, ir.Constant(byte, value), size, ir.Constant(i1, 0))


def _resolve(module: ir.Module, name: str) -> None:
    from .address_search import AddressSearch  # few launches need it

    AddressSearch(module, name)


_FUNCTIONS = {
    "schedule": _schedule, "shuffled": _shuffled, "resumed": _resumed, "reschedule": _reschedule,
    "advance": _advance, "retire": _retire, "run": _run, "clusters": run_clusters, "resolve": _resolve,
    "make_all": make_all, "make_counted": make_counted, "make_some": make_some,
}
