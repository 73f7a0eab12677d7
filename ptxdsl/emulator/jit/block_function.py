"""One function for all warps of a block: the same emitters as the handlers', over the kernel's control flow.

Between two barriers the warps run one after the other, in the order in which the scheduler would take them, as a loop
around the steps (basic blocks) that lie between. A step is compiled for all 32 lanes together; where lanes may part for
longer, a second time under a mask, and then the lanes at the step of the lowest rank go first, as everywhere else.

Whatever is unusual (a check that fails, lanes that part where that was not expected, an end in the middle of a warp)
is left to the records: registers and the places of all warps are put where the scheduler wants them, and the function
returns. So nothing is decided twice, and a fault is found and told exactly as by the handlers alone.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.layout import FULL, LANES, NEVER, Barrier, Block, Warp
from ..codegen.handler import Handler, i32, i64, pointer
from ..codegen.scheduler import PAIR, starting
from .function_builder import Whole
from .plan import END, Plan, Step, TooLong
from .barrier_regions import BUDGET, Stretch

__all__ = ["whole"]

MOST = 80_000
"""LLVM instructions of a function."""


def whole(module: ir.Module, name: str, plan: Plan) -> None:
    """Add the function of a kernel: void (record, warp, block), which runs the block whose place is set."""
    h = Whole(module, name, plan)
    common = h.block_named("common")
    stretches: dict[int, Stretch] = {}
    todo = [END]
    while todo:
        start = todo.pop()
        if start not in stretches:
            stretches[start] = stretch = Stretch(h, start, common)
            stretch.emit()
            if sum(len(block.instructions) for block in h.function.blocks) > MOST:
                raise TooLong
            todo += [end for end in stretch.ends if end >= 0]
    for stretch in stretches.values():
        for end in stretch.ends:
            if end >= 0:
                stretch.ways.add_case(i32(end), stretches[end].turn)
    h.ir.position_at_end(h.begin_block)
    for name_ in ("turn", "first"):
        h.set(name_, 0)
    h.set("budget", BUDGET)
    h.set("sync", END)
    h.ir.branch(stretches[END].turn)
    h.ir.position_at_end(common)
    _settle(h, [plan.steps[n] for n in stretches if n >= 0])
    h.rooms.branch(h.ahead.block)
    h.ahead.branch(h.begin_block)


def _settle(h: Whole, barriers: list[Step]) -> None:
    """Put all warps where the scheduler looks for them: those before this one at the barrier or at their end."""
    current, first, at = h.get("turn"), h.get("first"), h.get("sync")
    after: Any = h.i64(0)
    wait, number, expected = h.i64(0), h.i32(0), h.i32(0)
    for step in barriers:
        sync_ = step.sync
        assert sync_ is not None
        here = h.ir.icmp_signed("==", at, h.i32(step.number))
        after = h.ir.select(here, h.i64(sync_.after), after)
        wait = h.ir.select(here, h.i64(sync_.wait), wait)
        number = h.ir.select(here, h.i32(sync_.barrier), number)
        expected = h.ir.select(here, h.i32(sync_.expected), expected)
    ended = h.ir.icmp_signed("<", at, h.i32(0))
    head, body, over = (h.block_named(n) for n in ("settle", "settle_one", "settled"))
    before = h.ir.block
    h.ir.branch(head)
    h.ir.position_at_end(head)
    turn, done = h.ir.phi(i32), h.ir.phi(i32)
    turn.add_incoming(h.i32(0), before)
    done.add_incoming(h.i32(0), before)
    h.ir.cbranch(h.ir.icmp_signed("<", turn, h.i32(h.plan.warps)), body, over)
    h.ir.position_at_end(body)
    turned = h.ir.add(first, turn)
    index = h.ir.select(
        h.ir.icmp_signed("<", turned, h.i32(h.plan.warps)), turned, h.ir.sub(turned, h.i32(h.plan.warps))
    )
    warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
    place = h.add(warps, h.ir.mul(h.ir.zext(index, i64), h.i64(h.plan.stride)))
    past, this = h.ir.icmp_signed("<", turn, current), h.ir.icmp_signed("==", turn, current)
    h.store(Handler.load(h, place, Warp.FRESH, PAIR), place, Warp.ACTIVE)
    offset = h.ir.select(past, after, h.ir.select(this, h.get("record"), h.get("begin")))
    h.store(starting(h, h.ir.add(h.base, offset)), place, Warp.PC)
    dead = h.ir.and_(past, ended)
    active = h.ir.select(this, h.get("active"), h.i32(FULL))
    h.store(h.ir.select(dead, h.i32(0), active), place, Warp.ACTIVE)
    h.store(h.ir.select(dead, h.i32(0), h.i32(FULL)), place, Warp.ALIVE)
    h.store(h.ir.select(this, h.get("parked"), h.i32(NEVER)), place, Warp.PARKED)
    h.store(h.ir.select(past, h.ir.add(h.base, wait), h.i64(0)), place, Warp.WAITS)
    h.store(number, place, Warp.BARRIER)
    bit = h.ir.shl(h.i32(1), index)
    done.add_incoming(h.ir.select(past, h.ir.or_(done, bit), done), body)
    turn.add_incoming(h.ir.add(turn, h.i32(1)), body)
    h.ir.branch(head)
    h.ir.position_at_end(over)
    all_ = h.load(h.block, Block.ALL, i32)
    rest = h.ir.and_(all_, h.ir.not_(done))
    h.store(h.ir.select(ended, rest, all_), h.block, Block.LIVE)
    h.store(rest, h.block, Block.RUNNABLE)
    here = h.ir.add(first, current)
    here = h.ir.select(h.ir.icmp_signed("<", here, h.i32(h.plan.warps)), here, h.ir.sub(here, h.i32(h.plan.warps)))
    h.store(h.ir.and_(h.ir.sub(here, h.i32(1)), h.i32(LANES - 1)), h.block, Block.CURRENT)
    arrived, quiet = h.block_named("some_wait"), h.block_named("none_waits")
    waits = h.ir.and_(h.ir.icmp_signed(">", current, h.i32(0)), h.ir.not_(ended))
    h.ir.cbranch(waits, arrived, quiet)
    h.ir.position_at_end(arrived)
    barrier = h.add(h.block, h.ir.add(h.ir.mul(h.ir.zext(number, i64), h.i64(Barrier.SIZE)), h.i64(Block.BARRIERS)))
    h.store(current, barrier, Barrier.ARRIVED)
    h.store(expected, barrier, Barrier.EXPECTED)
    h.store(done, barrier, Barrier.WAITING)
    h.store(h.ir.shl(h.i32(1), number), h.block, Block.BARRED)
    h.ir.branch(quiet)
    h.ir.position_at_end(quiet)
    h.ir.ret_void()
