"""Block functions in clusters: one that waits for other blocks returns, and is called again.

All warps of the block have arrived when they come to ``barrier.cluster.wait``. If another block has not, the warps are
left waiting there in memory, as the first tier would leave them, and REGION names the basic block: whoever runs the
block next, once it can run, calls the function, which goes on there.
"""

from __future__ import annotations

from typing import Any

from ..codegen.handler import Handler, i32, pointer
from ..codegen.scheduler import PAIR, starting
from ..machine.layout import LANES, NEVER, Block, Cluster, ClusterBlock, Warp
from .function_builder import BlockFunction
from .plan import PlannedBlock

__all__ = ["emit_gate", "emit_resumption", "has_arrived"]


def has_arrived(h: BlockFunction) -> Any:
    """Whether all lanes of the current warp have arrived: if not, the first tier says so."""
    part = Handler.load(h, h.block, Block.CLUSTER, pointer, fixed=True)
    place = h.ir.add(h.ir.shl(h.number, h.i32(3)), h.i32(ClusterBlock.MASKS))
    return h.zero(h.ir.and_(h.alive, h.ir.not_(Handler.load(h, part, place, i32))))


def emit_gate(h: BlockFunction, block: PlannedBlock, on: Any) -> None:
    """All warps have come to a wait: go on if the phase is over, else leave them there."""
    barrier = block.barrier
    assert barrier is not None
    part = Handler.load(h, h.block, Block.CLUSTER, pointer, fixed=True)
    head = Handler.load(h, part, ClusterBlock.HEAD, pointer)
    current = h.ir.sub(h.i32(0), h.ir.and_(Handler.load(h, head, Cluster.PHASE, i32), h.i32(1)))
    masks = h.add(part, ClusterBlock.MASKS)
    pending: Any = h.i32(0)
    for number in range(h.plan.warps):
        arrived, parity = (Handler.load(h, masks, 8 * number + half, i32) for half in (0, 4))
        pending = h.ir.or_(pending, h.ir.and_(arrived, h.ir.not_(h.ir.xor(parity, current))))
    over, waits = h.block_named("phase_over"), h.block_named("others_missing")
    h.ir.cbranch(h.zero(pending), over, waits)
    h.ir.position_at_end(over)
    h.count(h.i64(8 * h.plan.warps), 8, lambda at: h.store(h.i32(0), masks, at))
    h.ir.branch(on)
    h.ir.position_at_end(waits)
    warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
    place = h.ir.add(h.base, h.i64(barrier.wait))

    live: Any = h.i32(0)
    for number in range(h.plan.warps):
        warp = h.add(warps, number * h.plan.warp_bytes)
        alive = h.lanes_left(warp, h.i32(number))
        h.store(Handler.load(h, warp, Warp.FRESH, PAIR), warp, Warp.ACTIVE)
        h.store(starting(h, place), warp, Warp.PC)
        for field in (Warp.ACTIVE, Warp.ALIVE):
            h.store(alive, warp, field)
        h.store(h.i32(NEVER), warp, Warp.PARKED)
        h.store(place, warp, Warp.WAITS)
        h.store(h.i32(Cluster.NUMBER), warp, Warp.BARRIER)
        live = h.ir.or_(live, h.ir.shl(h.ir.zext(h.nonzero(alive), i32), h.i32(number)))
    h.store(live, h.block, Block.LIVE)
    h.store(h.i32(0), h.block, Block.RUNNABLE)
    h.store(h.i32(LANES - 1), h.block, Block.CURRENT)
    h.store(live, part, ClusterBlock.WAITING)
    h.store(h.i32(block.number + 1), h.block, Block.REGION)
    h.ir.ret_void()


def emit_resumption(h: BlockFunction, fresh: Any, gates: dict[int, Any]) -> None:
    """Begin the block, or go on at the gate where its warps have been left."""
    region = Handler.load(h, h.block, Block.REGION, i32)
    for field in (Block.REGION, Block.LIVE, Block.RUNNABLE):
        h.store(h.i32(0), h.block, field)
    switch = h.ir.switch(region, fresh)
    for number, gate in gates.items():
        switch.add_case(h.i32(number + 1), gate)
