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

from ..codegen.handler import Handler, i1, i32, i64, pointer
from ..codegen.scheduler import PAIR, starting
from ..machine.layout import LANES, NEVER, Barrier, Block, Warp
from .barrier_regions import BarrierRegion
from .cluster_barriers import emit_gate, emit_resumption
from .function_builder import BlockFunction
from .grid_blocks import emit_grid_blocks
from .grid_turns import emit_grid_turns
from .plan import BUDGET, RETIRED, PlannedBlock, Plan, Refused

__all__ = ["emit_block_function"]

MAX_INSTRUCTIONS = 80_000
"""LLVM instructions of a function; half as many again where lanes run one after the other, in code of their own."""


def emit_block_function(module: ir.Module, name: str, plan: Plan) -> None:
    """Add the block function of a kernel: void (record, warp, block), which runs the block whose index is set."""
    h = BlockFunction(module, name, plan)
    most = MAX_INSTRUCTIONS * 3 // 2 if plan.lanes is not None else MAX_INSTRUCTIONS
    blocks = emit_grid_blocks(h)
    h.runs_blocks, checked = blocks is not None, h.ir.block
    hand_over = h.block_named("hand_over")
    regions: dict[int, BarrierRegion] = {}
    todo = [RETIRED]
    while todo:
        start = todo.pop()
        if start not in regions:
            regions[start] = region = BarrierRegion(h, start, hand_over)
            region.emit()
            if sum(len(block.instructions) for block in h.function.blocks) - h.straight > most:
                raise Refused(f"a function of more than {most} LLVM instructions")
            todo += [end for end in region.ends if end >= 0]
    heads = {start: region.head for start, region in regions.items()}
    waits = [plan.blocks[n] for n in regions if n >= 0 and plan.blocks[n].waits_for_cluster]
    for block in waits:
        heads[block.number] = h.block_named("gate")
        h.ir.position_at_end(heads[block.number])
        emit_gate(h, block, regions[block.number].head)
    for region in regions.values():
        for end in region.ends:
            if end >= 0:
                region.switch.add_case(i32(end), heads[end])
    h.ir.position_at_end(h.body)
    h.set("position", 0)
    h.set("first_warp", 0)
    h.set("budget", BUDGET)
    h.set("barrier", RETIRED)
    h.set("vote", 0)
    h.set("result", 0)
    emit_grid_turns(h)
    h.set("budget", BUDGET)
    if waits:
        fresh = h.block_named("fresh")
        emit_resumption(h, fresh, {block.number: heads[block.number] for block in waits})
        h.ir.position_at_end(fresh)
    if blocks is not None:
        h.ir.branch(blocks)
        h.ir.position_at_end(checked)
    h.begin_block()
    h.ir.branch(heads[RETIRED])
    h.ir.position_at_end(hand_over)
    _HandOver(h, [plan.blocks[n] for n in regions if n >= 0]).emit()
    h.prefetching.emit()
    h.end_entered()
    h.allocas.branch(h.preheader.block)
    h.preheader.branch(h.body)


class _HandOver:
    """Gives all warps to the scheduler: those before the current one wait at the barrier or have ended."""

    def __init__(self, h: BlockFunction, barriers: list[PlannedBlock]) -> None:
        self.h = h
        self.current, at = h.get("position"), h.get("barrier")
        self.barred = h.ir.icmp_signed(">=", at, h.i32(0))
        self.after: Any = h.i64(h.plan.entry)
        self.open: Any = i1(0)
        """Whether the warps before do not wait, but can run."""
        self.wait, self.number, self.expected = h.i64(0), h.i32(0), h.i32(0)
        for block in barriers:
            barrier = block.rendezvous
            assert barrier is not None
            here = h.ir.icmp_signed("==", at, h.i32(block.number))
            if block.waits_for_cluster or block.turn is not None:  # warps come there again by themselves
                self.after = h.ir.select(here, h.i64(barrier.wait), self.after)
                self.open = h.ir.or_(self.open, here)
                continue
            self.after = h.ir.select(here, h.i64(barrier.after), self.after)
            self.wait = h.ir.select(here, h.i64(barrier.wait), self.wait)
            self.number = h.ir.select(here, h.i32(barrier.number), self.number)
            self.expected = h.ir.select(here, h.i32(barrier.expected), self.expected)

    def emit(self) -> None:
        h = self.h
        live, waiting = self._warps()
        h.store(live, h.block, Block.LIVE)
        h.store(h.ir.xor(live, waiting), h.block, Block.RUNNABLE)
        current = h.ir.select(self._in_turns(), h.warp_at(h.i32(0)), h.warp_at("position"))
        h.store(h.ir.and_(h.ir.sub(current, h.i32(1)), h.i32(LANES - 1)), h.block, Block.CURRENT)
        with h.ir.if_then(h.nonzero(waiting)):
            offset = h.ir.mul(h.ir.zext(self.number, i64), h.i64(Barrier.nbytes))
            barrier = h.add(h.block, h.ir.add(offset, h.i64(Block.BARRIERS)))
            h.store(h.call("llvm.ctpop.i32", i32, waiting), barrier, Barrier.ARRIVED)
            h.store(self.expected, barrier, Barrier.EXPECTED)
            h.store(h.get("vote"), barrier, Barrier.RESULT)
            h.store(waiting, barrier, Barrier.WAITING)
            h.store(h.ir.shl(h.i32(1), self.number), h.block, Block.BARRED)
        exits = h.ir.add(Handler.load(h, h.block, Block.EXITS, i32), h.i32(1))
        h.store(exits, h.block, Block.EXITS)
        h.store(h.ir.add(h.base, h.get("resume")), h.block, Block.EXIT_PC)
        h.ir.ret_void()

    def _in_turns(self) -> Any:
        """Whether warps make turns of a loop together: from here each makes its own, in the order of the scheduler."""
        h, found = self.h, ir.Constant(i1, 0)
        for block in h.plan.blocks:
            if block.turn is not None:
                begun = h.ir.icmp_signed("==", h.get("start"), h.i64(block.turn.after))
                found = h.ir.or_(begun, h.ir.icmp_signed("==", h.get("barrier"), h.i32(block.number)))
        return found

    def _warps(self) -> tuple[Any, Any]:
        """A loop over the warps; the masks of those that have not ended, and of those that wait at the barrier."""
        h = self.h
        head, body, over = (h.block_named(n) for n in ("warps", "warp", "all_handed_over"))
        before = h.ir.block
        h.ir.branch(head)
        h.ir.position_at_end(head)
        position, live, waiting = (h.ir.phi(i32) for _ in range(3))
        for start in (position, live, waiting):
            start.add_incoming(h.i32(0), before)
        h.ir.cbranch(h.ir.icmp_signed("<", position, h.i32(h.plan.warps)), body, over)
        h.ir.position_at_end(body)
        index = h.warp_at(position)
        past = h.ir.icmp_signed("<", position, self.current)
        alive = self._warp(index, past, h.ir.icmp_signed("==", position, self.current))
        bit = h.ir.select(h.nonzero(alive), h.ir.shl(h.i32(1), index), h.i32(0))
        live.add_incoming(h.ir.or_(live, bit), body)
        waits = h.ir.and_(past, h.ir.not_(self.open))
        waiting.add_incoming(h.ir.or_(waiting, h.ir.select(waits, bit, h.i32(0))), body)
        position.add_incoming(h.ir.add(position, h.i32(1)), body)
        h.ir.branch(head)
        h.ir.position_at_end(over)
        return live, waiting

    def _warp(self, index: Any, past: Any, this: Any) -> Any:
        """Hand over a warp; the lanes of it that have not ended."""
        h = self.h
        warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
        warp = h.add(warps, h.ir.mul(h.ir.zext(index, i64), h.i64(h.plan.warp_bytes)))
        alive = h.ir.select(this, h.alive, h.lanes_left(warp, index))
        alive = h.ir.select(h.ir.and_(past, h.ir.not_(self.barred)), h.i32(0), alive)
        h.store(Handler.load(h, warp, Warp.FRESH, PAIR), warp, Warp.ACTIVE)
        offset = h.ir.select(past, self.after, h.ir.select(this, h.get("resume"), h.get("start")))
        h.store(starting(h, h.ir.add(h.base, offset)), warp, Warp.PC)
        h.store(h.ir.select(this, h.get("active"), alive), warp, Warp.ACTIVE)
        h.store(alive, warp, Warp.ALIVE)
        h.store(h.ir.select(this, h.get("parked"), h.i32(NEVER)), warp, Warp.PARKED)
        waits = h.ir.and_(h.ir.and_(past, self.barred), h.ir.not_(self.open))
        h.store(h.ir.select(waits, h.ir.add(h.base, self.wait), h.i64(0)), warp, Warp.WAITS)
        h.store(self.number, warp, Warp.BARRIER)
        h.store(h.get("result"), warp, Warp.RESULT)
        return alive
