"""``brx.idx`` in block functions: the lanes that go to each basic block, by the numbers in a register."""

from __future__ import annotations

from typing import Any

from ..codegen import data
from ..instructions.control import IndexedBranch
from ..machine.layout import LANES
from .function_builder import BlockFunction
from .plan import PlannedBlock, PlannedOp

__all__ = ["COST", "Selection"]

COST = 8
"""What going back by such a branch takes of the block's budget, in statements."""


class Selection:
    """The numbers by which the lanes of a mask branch; a side exit where one is beyond the table."""

    def __init__(self, h: BlockFunction, block: PlannedBlock, terminator: PlannedOp, lanes: Any) -> None:
        self.h, self.block, self.lanes = h, block, lanes
        op = terminator.op
        assert isinstance(op, IndexedBranch)
        h.begin(terminator)
        guard = data.guard_mask(h, op.guard, False)
        self.taken = lanes if guard is None else h.ir.and_(lanes, guard)
        self.guarded = guard is not None
        self.numbers = data.source(h, op.selector, LANES)
        if self.guarded:
            h.field()
        count = h.field()
        h.field("q")
        beyond = h.mask(h.ir.icmp_unsigned(">=", self.numbers, h.splat(count)))
        h.branch_unless(h.zero(h.ir.and_(beyond, self.taken)), h.side_exit)

    def masks(self) -> dict[int, Any]:
        """The lanes that go on at each basic block, by its number."""
        h, found = self.h, dict[int, Any]()
        for number, target in enumerate(self.block.targets):
            here = h.ir.icmp_unsigned("==", self.numbers, h.splat(h.i32(number)))
            mask = h.ir.and_(h.mask(here), self.taken)
            found[target] = h.ir.or_(found[target], mask) if target in found else mask
        if self.guarded:
            left = h.ir.and_(self.lanes, h.ir.not_(self.taken))
            other = self.block.fallthrough
            found[other] = h.ir.or_(found[other], left) if other in found else left
        return found

    def first(self) -> Any:
        """The number of the first lane that branches."""
        h = self.h
        lane = h.ir.and_(h.first_lane(self.taken), h.i32(LANES - 1))
        return h.ir.extract_element(self.numbers, lane)

    def alike(self, first: Any) -> Any:
        """Whether all lanes branch, and by this number."""
        h = self.h
        other = h.mask(h.ir.icmp_unsigned("!=", self.numbers, h.splat(first)))
        apart = h.ir.and_(self.taken, other)
        missing = h.ir.xor(self.lanes, self.taken)
        return h.zero(h.ir.or_(apart, missing))
