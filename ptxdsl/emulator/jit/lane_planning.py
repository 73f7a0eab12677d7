"""Which basic blocks run one lane after the other where lanes diverge: those of recursive functions.

There each lane is at a depth of its own, and a mask would have few lanes. Alone, a lane runs at the speed of native
code, and no worse than that however far the lanes are apart. It runs to where the lanes of its warp reconverge, before
the next lane begins. That is an order which the lanes of a warp may take as well as any other, unless they see each
other on the way. So a region is left as it is which has an instruction of the whole warp or a barrier, a strong access,
or an atomic operation whose result is used or depends on the order.

What this cannot see is a race: lanes of a warp that access one place, one of them to write, without an instruction in
between that orders them. What such a program computes may differ from what the first tier does.
"""

from __future__ import annotations

from collections.abc import Callable

from ...analysis.liveness import Liveness
from ...ir import Instruction
from ...isa.effects import COMMUTATIVE
from ..analysis.call_stack import uses_stack
from ..analysis.divergence import UNIFORM
from ..analysis.row_affine import RowAffine
from ..codegen.code import Code
from ..instructions.control import Exit, IndexedBranch
from ..instructions.memory import Load
from ..instructions.micro_op import MicroOp, PlacedMicroOp
from ..rewrite.recursion import returns
from .convergent_lowering import ConvergentLowering
from .lane_lowering import LaneLowering
from .merged_checks import merged_bounds_checks
from .plan import LanePlan, PlannedBlock, PlannedOp

__all__ = ["plan_lanes"]

Places = Callable[[PlacedMicroOp, "tuple[int, int] | None", None], PlannedOp]
"""What knows where the first tier has a micro-op."""


def plan_lanes(low: ConvergentLowering, blocks: list[PlannedBlock], code: Code, planned: Places) -> LanePlan | None:
    """What runs one lane after the other; None where nothing does."""
    statements, nodes = low.graph.statements, low.graph.blocks
    ends = [block.number for block in blocks if block.divergent and isinstance(_last(block), IndexedBranch)]
    found = frozenset(number for number in ends if returns(statements[nodes[number].stop - 1]))
    if not found:
        return None
    lane = LaneLowering(low, low.function, low.spaces, low.block, False, low.instrument, False, low.wraps)
    micro_ops = lane.basic_blocks()
    liveness = code.registers.liveness
    stacked = frozenset(place for place, op in enumerate(low.graph.def_use) if uses_stack(op))
    made = {
        block.number: _basic_block(block, lane, micro_ops[block.number], planned, stacked)
        for block in blocks if _runs(block, micro_ops[block.number], low, liveness)
    }
    parks = frozenset(block.number for block in blocks if block.divergent and isinstance(_last(block), Exit))
    offsets = {
        name: known for name, known in low.facts.offsets.items()
        if known is not UNIFORM and known is not None and not isinstance(known, RowAffine)
    }
    return LanePlan(made, found, parks, stacked, tuple(lane.lane_registers), offsets)


def _last(block: PlannedBlock) -> MicroOp | None:
    return block.terminator.op if block.terminator is not None else None


def _runs(
    block: PlannedBlock, micro_ops: list[PlacedMicroOp], low: ConvergentLowering, liveness: Liveness
) -> bool:
    """Whether a basic block may run for one lane."""
    node = low.graph.blocks[block.number]
    waits = not block.divergent or isinstance(_last(block), Exit) or block.barrier is not None or block.converges
    return not waits and all(placed.op.by_lane for placed in micro_ops) and all(
        _any_order(low, place, liveness) for place in range(node.start, node.stop)
    )


def _any_order(low: ConvergentLowering, place: int, liveness: Liveness) -> bool:
    """Whether lanes may execute a statement in any order: only weak accesses, and sums whose terms nobody sees."""
    statement = low.graph.statements[place]
    if not isinstance(statement, Instruction):
        return True
    effects, kind = statement.form.effects, statement.form.type
    if effects.atomic in COMMUTATIVE and kind is not None and kind.kind != "f":
        seen = liveness.after(place)
        return all(register.name not in seen for register in low.graph.def_use[place].writes)
    return not effects.strong


def _basic_block(
    block: PlannedBlock, lane: LaneLowering, micro_ops: list[PlacedMicroOp], planned: Places, stacked: frozenset[int]
) -> PlannedBlock:
    bounds = merged_bounds_checks(lane, micro_ops, stacked)
    bounds.update({
        place: (place, -1) for place, placed in enumerate(micro_ops)
        if placed.statement in stacked and isinstance(placed.op, Load)
    })
    ops = [planned(placed, bounds.get(place), None) for place, placed in enumerate(micro_ops)]
    terminator = ops.pop() if ops and ops[-1].op.ends else None
    return block._replace(ops=tuple(ops), terminator=terminator)
