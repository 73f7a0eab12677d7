"""Row-affine values: a number for each row of the block that a warp has, plus offsets known in advance.

Blocks that are 4, 8 or 16 wide have several rows in a warp, and so have those of any width that have one warp only. In
``row * n + column`` of a 16 x 16 tile a warp has two rows: two numbers, each with 16 neighbours. A product with a
number that only the launch knows is varying to the analysis of divergence; here it is computed once a row, in the row's
first lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import Instruction
from .divergence import LINEAR, UNIFORM, VARYING, DivergenceAnalysis, Diverges, LaneOffsets, Shape3, combined
from ...analysis.control_flow import ControlFlowGraph
from ...analysis.def_use import DefUse
from ..machine.layout import LANES
from ..machine.warp_rows import lanes_of_warps
from .form_plans import plan_of

__all__ = ["RowAffine", "RowAffineAnalysis", "relative"]

WIDTHS = (4, 8, 16)


class RowAffine(tuple[int, ...]):  # noqa: SLOT001
    """The offsets of a row-affine register: the number of each lane, less that of the first lane of its row."""

    lanes: int

    @classmethod
    def of(cls, offsets: Any, lanes: int, bits: int) -> RowAffine:
        """The offsets, relative to the first lanes of rows of ``lanes``, as signed numbers of ``bits`` bits."""
        half = 1 << (bits - 1)
        made = cls((offsets[n] - offsets[n - n % lanes] + half) % (2 * half) - half for n in range(LANES))
        made.lanes = lanes
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowAffine) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)


class RowAffineAnalysis(DivergenceAnalysis):
    """The analysis of a kernel whose warps have more than one row of the block."""

    def __init__(
        self, graph: ControlFlowGraph, block: Shape3, roots: dict[str, str], diverges: Diverges | None,
        wraps: frozenset[int],
    ) -> None:
        super().__init__(graph, block, roots, diverges, wraps)
        lanes = min(lanes_of_warps(block), block[0] * block[1] * block[2])
        whole = lanes < LANES and lanes % block[0] == 0 and 2 < block[0] < lanes
        self.lanes = block[0] if block[0] in WIDTHS or whole else 0

    def _transfer(self, op: DefUse, rule: str) -> LaneOffsets:
        inputs = [self.offsets_of(operand) for operand in op.reads]
        if not any(isinstance(offsets, RowAffine) for offsets in inputs):
            known = super()._transfer(op, rule)
            if known is not VARYING:
                return known
        if not self.lanes or VARYING in inputs or rule not in LINEAR or len(op.writes) != 1:
            return VARYING
        statement = op.statement
        if not isinstance(statement, Instruction) or statement.guard is not None:
            return VARYING
        plan = plan_of(statement.form)
        if not plan.pure or not plan.covered:
            return VARYING
        if op.writes[0].type.kind == "p" or op.writes[0].type.bits > 64:
            return VARYING
        return self._by_row(op, rule, [relative_to(offsets or UNIFORM, self.lanes) for offsets in inputs])

    def _by_row(self, op: DefUse, rule: str, inputs: list[tuple[int, ...]]) -> LaneOffsets:
        offsets: Sequence[int] | None = UNIFORM
        if any(any(each) for each in inputs):
            offsets = None if rule == "pure" else combined(rule, op.reads, inputs)
        return VARYING if offsets is None else RowAffine.of(offsets, self.lanes, op.writes[0].type.bits)


def relative_to(offsets: tuple[int, ...], lanes: int) -> tuple[int, ...]:
    """Offsets, less those of the first lane of each row."""
    return tuple(offsets[n] - offsets[n - n % lanes] for n in range(LANES))


def relative(offsets: tuple[int, ...], lanes: int) -> tuple[int, ...]:
    """The offsets within rows of a register of either kind."""
    return tuple(offsets) if isinstance(offsets, RowAffine) else relative_to(offsets, lanes)
