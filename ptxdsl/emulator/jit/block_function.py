"""One function that runs all warps of a block: the emitters of micro-ops, over the kernel's control-flow graph.

Between two barriers the warps run one after the other, in the order of the scheduler, as a loop around the basic blocks
in between. A basic block is compiled for all 32 lanes converged; where they may diverge for longer, once more under a
mask, and then the lanes at the basic block of the lowest priority run first, as everywhere else.

Whatever is unusual (a check that fails, lanes that diverge where that was not expected, a partial exit) deoptimises:
the registers and program counters of all warps are stored as the scheduler wants them, and the function returns; the
first tier resumes. So nothing is decided twice, and a fault is found and reported exactly as by the first tier.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..codegen.handler import Handler, i32, i64, pointer
from ..codegen.scheduler import PAIR, starting
from ..machine.layout import LANES, NEVER, Barrier, Block, Warp
from .barrier_regions import BUDGET, BarrierRegion
from .function_builder import BlockFunction
from .plan import RETIRED, PlannedBlock, Plan, Refused

__all__ = ["emit_block_function"]

MAX_INSTRUCTIONS = 80_000
"""LLVM instructions of a function."""


def emit_block_function(module: ir.Module, name: str, plan: Plan) -> None:
    """Add the block function of a kernel: void (record, warp, block), which runs the block whose index is set."""
    h = BlockFunction(module, name, plan)
    hand_over = h.block_named("hand_over")
    regions: dict[int, BarrierRegion] = {}
    todo = [RETIRED]
    while todo:
        start = todo.pop()
        if start not in regions:
            regions[start] = region = BarrierRegion(h, start, hand_over)
            region.emit()
            if sum(len(block.instructions) for block in h.function.blocks) > MAX_INSTRUCTIONS:
                raise Refused(f"a function of more than {MAX_INSTRUCTIONS} LLVM instructions")
            todo += [end for end in region.ends if end >= 0]
    for region in regions.values():
        for end in region.ends:
            if end >= 0:
                region.switch.add_case(i32(end), regions[end].head)
    h.ir.position_at_end(h.body)
    h.set("position", 0)
    h.set("first_warp", 0)
    h.set("budget", BUDGET)
    h.set("barrier", RETIRED)
    h.ir.branch(regions[RETIRED].head)
    h.ir.position_at_end(hand_over)
    _HandOver(h, [plan.blocks[n] for n in regions if n >= 0]).emit()
    h.allocas.branch(h.preheader.block)
    h.preheader.branch(h.body)


class _HandOver:
    """Gives all warps to the scheduler: those before the current one wait at the barrier or have ended."""

    def __init__(self, h: BlockFunction, barriers: list[PlannedBlock]) -> None:
        self.h = h
        self.current, at = h.get("position"), h.get("barrier")
        self.retired = h.ir.icmp_signed("<", at, h.i32(0))
        self.after: Any = h.i64(0)
        self.wait, self.number, self.expected = h.i64(0), h.i32(0), h.i32(0)
        for block in barriers:
            barrier = block.barrier
            assert barrier is not None
            here = h.ir.icmp_signed("==", at, h.i32(block.number))
            self.after = h.ir.select(here, h.i64(barrier.after), self.after)
            self.wait = h.ir.select(here, h.i64(barrier.wait), self.wait)
            self.number = h.ir.select(here, h.i32(barrier.number), self.number)
            self.expected = h.ir.select(here, h.i32(barrier.expected), self.expected)

    def emit(self) -> None:
        h = self.h
        done = self._warps()
        everyone = h.load(h.block, Block.ALL, i32)
        rest = h.ir.and_(everyone, h.ir.not_(done))
        h.store(h.ir.select(self.retired, rest, everyone), h.block, Block.LIVE)
        h.store(rest, h.block, Block.RUNNABLE)
        current = h.warp_at("position")
        h.store(h.ir.and_(h.ir.sub(current, h.i32(1)), h.i32(LANES - 1)), h.block, Block.CURRENT)
        with h.ir.if_then(h.ir.and_(h.ir.icmp_signed(">", self.current, h.i32(0)), h.ir.not_(self.retired))):
            offset = h.ir.mul(h.ir.zext(self.number, i64), h.i64(Barrier.nbytes))
            barrier = h.add(h.block, h.ir.add(offset, h.i64(Block.BARRIERS)))
            h.store(self.current, barrier, Barrier.ARRIVED)
            h.store(self.expected, barrier, Barrier.EXPECTED)
            h.store(done, barrier, Barrier.WAITING)
            h.store(h.ir.shl(h.i32(1), self.number), h.block, Block.BARRED)
        exits = h.ir.add(Handler.load(h, h.block, Block.EXITS, i32), h.i32(1))
        h.store(exits, h.block, Block.EXITS)
        h.store(h.ir.add(h.base, h.get("resume")), h.block, Block.EXIT_PC)
        h.ir.ret_void()

    def _warps(self) -> Any:
        """A loop over the warps; the mask of those that have arrived at the barrier or ended."""
        h = self.h
        head, body, over = (h.block_named(n) for n in ("warps", "warp", "all_handed_over"))
        before = h.ir.block
        h.ir.branch(head)
        h.ir.position_at_end(head)
        position, done = h.ir.phi(i32), h.ir.phi(i32)
        position.add_incoming(h.i32(0), before)
        done.add_incoming(h.i32(0), before)
        h.ir.cbranch(h.ir.icmp_signed("<", position, h.i32(h.plan.warps)), body, over)
        h.ir.position_at_end(body)
        index = h.warp_at(position)
        past = h.ir.icmp_signed("<", position, self.current)
        self._warp(index, past, h.ir.icmp_signed("==", position, self.current))
        bit = h.ir.shl(h.i32(1), index)
        done.add_incoming(h.ir.select(past, h.ir.or_(done, bit), done), body)
        position.add_incoming(h.ir.add(position, h.i32(1)), body)
        h.ir.branch(head)
        h.ir.position_at_end(over)
        return done

    def _alive(self, index: Any, warp: Any, past: Any, this: Any) -> Any:
        """The lanes of a warp that have not ended; at a barrier the warp's memory has them."""
        h = self.h
        if not h.plan.ending:
            return h.lanes_at(index)
        fresh = h.ir.icmp_signed("==", h.get("start"), h.i64(h.plan.entry))
        stored = Handler.load(h, warp, Warp.ALIVE, i32)
        waiting = h.ir.select(h.ir.and_(fresh, h.ir.not_(past)), h.lanes_at(index), stored)
        return h.ir.select(this, h.get("alive"), waiting)

    def _warp(self, index: Any, past: Any, this: Any) -> None:
        h = self.h
        warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
        warp = h.add(warps, h.ir.mul(h.ir.zext(index, i64), h.i64(h.plan.warp_bytes)))
        alive = self._alive(index, warp, past, this)
        h.store(Handler.load(h, warp, Warp.FRESH, PAIR), warp, Warp.ACTIVE)
        offset = h.ir.select(past, self.after, h.ir.select(this, h.get("resume"), h.get("start")))
        h.store(starting(h, h.ir.add(h.base, offset)), warp, Warp.PC)
        ended = h.ir.and_(past, self.retired)
        active = h.ir.select(this, h.get("active"), alive)
        h.store(h.ir.select(ended, h.i32(0), active), warp, Warp.ACTIVE)
        h.store(h.ir.select(ended, h.i32(0), alive), warp, Warp.ALIVE)
        h.store(h.ir.select(this, h.get("parked"), h.i32(NEVER)), warp, Warp.PARKED)
        h.store(h.ir.select(past, h.ir.add(h.base, self.wait), h.i64(0)), warp, Warp.WAITS)
        h.store(self.number, warp, Warp.BARRIER)
