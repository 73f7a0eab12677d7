"""Several blocks one after the other in one call, where all of a block is a pass without checks.

To begin a block of a copy takes as long as to run it: it is claimed, found in the grid, its function is called, and
that loads what is the same in all blocks. So where a pass (:mod:`.block_passes`) leads from a kernel's entry to its
end, the function claims the next block itself and goes on with it. From the first block of which a check fails it goes
on as if it had been called for that one.

Nothing of a block is kept, and nothing has to be prepared for it: only global memory is accessed.
"""

from __future__ import annotations

from llvmlite import ir

from ..codegen.handler import Handler, i32, i64, pointer
from ..codegen.scheduler import claimed_block, place_in_grid
from ..machine.layout import Block, Launch
from .block_numbers import Unsuited
from .block_passes import BlockPass, suits_passes
from .entry_region import EntryRegion
from .function_builder import BlockFunction
from .grid_steps import global_only
from .plan import RETIRED

__all__ = ["emit_grid_blocks"]


def emit_grid_blocks(h: BlockFunction) -> ir.Block | None:
    """Emit the loop over the blocks, where that can be done, and where it begins; go on with a block to be checked."""
    plan = h.plan
    only = all(global_only(planned) for block in plan.blocks for planned in block.ops)
    if not only or not suits_passes(plan) or plan.clustered > 1:
        return None
    made = _GridBlocks(EntryRegion(h))
    try:
        made.plan_ways()
    except Unsuited:
        return None
    return made.emit_blocks() if made.end == RETIRED else None


class _GridBlocks(BlockPass):
    """The pass that all of a block is."""

    def leave(self) -> None:
        """Nothing is kept of a block."""

    def emit_blocks(self) -> ir.Block | None:
        """Emit the loop; None where something cannot be known of a block beforehand."""
        h = self.h
        begin, head = h.block_named("blocks"), h.block_named("next_block")
        h.ir.position_at_end(begin)
        launch = Handler.load(h, h.block, Block.GRID, pointer, fixed=True)
        called_for = Handler.load(h, h.block, Block.CTA64, i64)
        h.ir.branch(head)
        h.ir.position_at_end(head)
        number = h.ir.phi(i64)
        number.add_incoming(called_for, begin)
        place = {Block.CTAID + 4 * axis: index for axis, index in enumerate(place_in_grid(h, launch, number))}
        h.replaced = {Block.CTA64: number, **{offset: h.ir.zext(index, i64) for offset, index in place.items()}}
        try:
            self.check()
        except Unsuited:
            h.replaced = {}
            h.ir.unreachable()
            return None
        run, claim, over, rest = (h.block_named(n) for n in ("unchecked_block", "claim", "no_block", "checked"))
        h.ir.cbranch(h.likely(self.reduced(self.good)), run, rest)
        h.ir.position_at_end(run)
        self.look_ahead()
        self.run_warps()
        left = h.ir.sub(Handler.load(h, h.block, Block.BUDGET, i32), h.i32(1))
        h.ir.cbranch(h.likely(h.ir.icmp_signed(">=", left, h.i32(0))), claim, over)
        h.ir.position_at_end(claim)
        Handler.store(h, left, h.block, Block.BUDGET)
        following = claimed_block(h, launch)
        number.add_incoming(following, h.ir.block)
        blocks = Handler.load(h, launch, Launch.BLOCKS, i64, fixed=True)
        h.ir.cbranch(h.likely(h.ir.icmp_signed("<", following, blocks)), head, over)
        h.ir.position_at_end(over)
        h.ir.ret_void()
        h.ir.position_at_end(rest)
        fields, h.replaced = h.replaced, {}
        for offset, index in place.items():
            Handler.store(h, index, h.block, offset)
        Handler.store(h, number, h.block, Block.CTA64)
        h.replaced = fields
        return begin
