"""Which registers of a grid-stride loop only grow by a step: of such loops blocks make turns together.

That is :mod:`.grid_turns`; here is no LLVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import Immediate, Instruction, Register
from ..instructions.addresses import AccessFlags
from ..instructions.control import Branch, Exit, Jump
from ..instructions.data import Compute, WrapCheck
from ..instructions.memory import Load, LoadParameter, Store
from ..machine.layout import SPACE_BITS
from .plan import Layout, PlannedBlock, PlannedOp, PlannedRegister, Step
from .row_micro_ops import ComputeRows, RowWrapCheck

__all__ = ["global_only", "steps_of"]

BEFORE = (Compute, ComputeRows, LoadParameter, WrapCheck, RowWrapCheck, Exit, Branch, Jump)
"""What may come before the loop: it is done for a block's turns, and again when the block goes on by itself."""


def steps_of(
    blocks: Sequence[PlannedBlock], low: Any, head: int, registers: dict[str, PlannedRegister]
) -> tuple[Step, ...]:
    """What a turn adds to the registers that it hands on; none where turns of several blocks cannot be made at once."""
    inside = _loop(blocks, head)
    if not all(map(global_only, (each for block in blocks for each in block.ops))):
        return ()
    before = _until(blocks, head)
    if not all(isinstance(each.op, BEFORE) for n in before for each in blocks[n].ops):
        return ()
    nodes, ops = low.graph.blocks, low.graph.def_use
    places = [place for n in inside for place in range(nodes[n].start, nodes[n].stop)]
    writers: dict[str, list[int]] = {}
    for place in places:
        for register in ops[place].writes:
            writers.setdefault(register.name, []).append(place)
    carried = sorted(low.registers.liveness.before(nodes[head].start) & writers.keys())
    steps = [_step(low, name, writers[name], registers) for name in carried]
    return tuple(step for step in steps if step is not None) if all(steps) else ()


def global_only(planned: PlannedOp) -> bool:
    """Whether a micro-op accesses global memory, if any, through a pointer of which the array is known."""
    op = planned.op
    if not isinstance(op, (Load, Store)):
        return True
    flags = planned.value("flags")
    spaces = flags >> AccessFlags.SPACES_SHIFT & 255
    return not op.private and bool(flags & AccessFlags.ONE_ENTRY) and spaces == SPACE_BITS["global"]


def _until(blocks: Sequence[PlannedBlock], head: int) -> set[int]:
    """The basic blocks that are reached without the loop."""
    found, todo = set[int](), [0]
    while todo:
        at = todo.pop()
        if at not in found and at != head:
            found.add(at)
            todo += blocks[at].successors
    return found


def _loop(blocks: Sequence[PlannedBlock], head: int) -> set[int]:
    """The basic blocks from which the head is reached again."""
    found, more = set[int](), True
    after = set[int]()
    todo = [head]
    while todo:
        at = todo.pop()
        if at not in after:
            after.add(at)
            todo += blocks[at].successors
    found.add(head)
    while more:
        more = False
        for n in after - found:
            if found & set(blocks[n].successors):
                found.add(n)
                more = True
    return found


def _step(low: Any, name: str, places: list[int], registers: dict[str, PlannedRegister]) -> Step | None:
    """What the one statement adds that writes a register in the loop; None where there is more to it."""
    register, op = registers[name], low.graph.def_use[places[0]]
    statement = op.statement
    if register.layout not in (Layout.UNIFORM, Layout.ROW_AFFINE) or len(places) > 1 or len(op.reads) != 2:
        return None
    if not isinstance(statement, Instruction) or statement.guard is not None:
        return None
    form = statement.form
    if form.mnemonic not in {f"add.{kind}{register.bits}" for kind in "us"}:
        return None
    others = [each for each in op.reads if not (isinstance(each, Register) and each.name == name)]
    if len(others) != 1:
        return None
    other = others[0]
    if isinstance(other, Immediate):
        return Step(name, places[0], "", other.bits)
    if not isinstance(other, Register):
        return None
    by = registers[other.name]
    fixed = any(other.name in {r.name for r in low.graph.def_use[n].writes} for n in low.facts.launch_invariant)
    plain = by.layout is Layout.UNIFORM and by.lane_offsets is None and by.bits == register.bits
    return Step(name, places[0], other.name, 0) if fixed and plain else None
