"""The begin of a block, for passes of which several blocks have their turn in one call: nothing is kept for a warp."""

from __future__ import annotations

from ..codegen.registry import emit_inline
from ..instructions.micro_op import MicroOp
from .function_builder import BlockFunction
from .plan import RETIRED, BlockBarrier

__all__ = ["EntryRegion"]


class EntryRegion:
    """The code from the kernel's entry on."""

    def __init__(self, h: BlockFunction) -> None:
        self.h, self.plan, self.start, self.first = h, h.plan, RETIRED, h.plan.blocks[0]
        self.at_barrier: BlockBarrier | None = None
        self.ends: dict[int, None] = {}
        self.all_warps = h.body
        self.common: tuple[str, ...] = ()

    def emit_op(self, op: MicroOp) -> None:
        """Emit a micro-op that has begun."""
        emit_inline(self.h, op)

    def load_registers(self) -> None:
        """Load what is computed once a launch."""
        h, plan = self.h, self.plan
        read = frozenset().union(*plan.reads) | {step.by for step in plan.grid_steps if step.by}
        once = {name for name in plan.launch_invariant & read if plan.is_scalar(name)}
        h.load_registers((plan.launch_invariant & read) - once)
        h.load_warp_invariant(once)

    def turn(self, number: int) -> None:
        """What follows begins at the head of the loop."""
        self.start, self.first = number, self.plan.blocks[number]
        self.at_barrier = self.first.turn
