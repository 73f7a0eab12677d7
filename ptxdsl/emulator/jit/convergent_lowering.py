"""A kernel lowered for warps whose lanes are converged.

Micro-ops of the first tier must be right wherever lanes are, so what is written between a branch and the point where
lanes reconverge is varying there. A block function runs with all lanes converged and exits where they diverge, so here
a bound on an index (``if (i < n)``) makes nothing vary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from ...analysis.control_flow import ControlFlowGraph
from ...analysis.def_use import DefUse
from ...analysis.liveness import Liveness
from ...ir import Call, Immediate, Instruction, Not, Operand, Register, SpecialRegister
from ...isa import lookup
from ..analysis.branch_arms import BranchArmAnalysis
from ..analysis.divergence import UNIFORM, VARYING, Facts, LaneOffsets
from ..analysis.row_affine import RowAffine, RowAffineAnalysis, relative
from ..analysis.form_plans import plan_of
from ..instructions.control import Reconvergence
from ..instructions.barriers import Fence
from ..instructions.function import FunctionLowering
from ..instructions.addresses import Pattern
from ..instructions.micro_op import PlacedMicroOp
from ..instructions.operand_classes import OperandClass, by_row, per_lane
from ..instructions.operands import ConstantPool, Field, Operands, raw
from ..machine.layout import LANES, Warp
from .row_micro_ops import ComputeRows, RowWrapCheck

__all__ = ["ConvergentLowering", "ConvergentOperands"]

SHORT = 12
"""Statements that are worth a mask, where a bound on the thread's index skips them."""

Known = Callable[[Operand], LaneOffsets]
"""The lane offsets of an operand."""


class _Variables:
    """A slot for each register, above those of the warp's state: LLVM allocates registers and memory to them."""

    def __init__(self, graph: ControlFlowGraph) -> None:
        self.offsets: dict[str, int] = {}
        self._graph = graph

    @cached_property
    def liveness(self) -> Liveness:
        return Liveness(self._graph)

    def reserve(self, _: int) -> int:
        return Warp.REGISTERS + len(self.offsets)


class _Pool(ConstantPool):
    """Lane offsets by number: they become constants of the function, which must not depend on addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors: list[tuple[int, ...]] = []

    def address(self, vector: tuple[int, ...], bits: int) -> int:  # noqa: ARG002
        if vector not in self.vectors:
            self.vectors.append(vector)
        return self.vectors.index(vector)

    def table(self, numbers: list[int]) -> int:  # noqa: ARG002
        """Of a branch's targets: block functions have the basic blocks themselves."""
        return 0


class ConvergentOperands(Operands):
    """Row-affine registers are described like varying ones, but for `rows`."""

    def lane_offsets(self, operand: Operand) -> LaneOffsets:
        known = super().lane_offsets(operand)
        return VARYING if isinstance(known, RowAffine) else known

    def rows(self, operand: Operand) -> RowAffine | None:
        """The offsets of a row-affine operand; None for all others."""
        known = super().lane_offsets(operand)
        return known if isinstance(known, RowAffine) else None

    def _describe(self, operand: Register, scalar: bool) -> Field:
        if self.rows(operand) is not None:
            return Field(per_lane(operand.type.bits), "i", (self.registers.offsets[operand.name],))
        return super()._describe(operand, scalar)


class ConvergentLowering(FunctionLowering):
    """Makes the micro-ops of one function."""

    operands: ConvergentOperands
    pool: _Pool

    def __init__(self, *given: Any, arms: bool = False) -> None:
        self.arms = arms
        super().__init__(*given)
        self.pool = _Pool()
        self.operands = ConvergentOperands(self.facts, self.registers, self.block, self.pool, self.spaces.symbols)
        self.operands.cluster, self.operands.explicit = self.spaces.cluster, self.spaces.explicit

    def _analysed(self) -> Facts:
        arms = self.arms and not self.instrument
        branches = _Branches(self.graph, arms)
        given = (self.graph, self.block, self.spaces.provenance, branches.diverge, self.wraps)
        analysis = BranchArmAnalysis(*given, Liveness(self.graph)) if arms else RowAffineAnalysis(*given)
        branches.launch_invariant = analysis.facts.launch_invariant
        self._bounds, self._offsets_of = branches, analysis.offsets_of
        return analysis.run()

    def _register_file(self, keep_registers: bool) -> Any:  # noqa: ARG002
        variables = _Variables(self.graph)
        for op in self.graph.def_use:
            for register in (*op.uses, *op.writes):
                variables.offsets.setdefault(register.name, variables.reserve(8))
        return variables

    def ends_some(self, place: int) -> bool:
        """Whether an exit under a guard ends some lanes of a warp, more often than a bound on an index does."""
        guard = self.graph.statements[place].guard
        return guard is not None and not self._bounds.is_bound(guard, self._offsets_of)

    def basic_blocks(self) -> list[list[PlacedMicroOp]]:
        """The micro-ops of each basic block."""
        found = []
        for number, block in enumerate(self.graph.blocks):
            before = len(self.micro_ops)
            self._basic_block(number, block)
            found.append([placed for placed in self.micro_ops[before:] if not isinstance(placed.op, Reconvergence)])
        return found

    def statement(self, statement: Instruction | Call) -> None:
        """The micro-ops of a statement; a row-affine result is computed once for each row."""
        op = self.graph.def_use[self.place]
        rows = self.operands.rows(op.writes[0]) if len(op.writes) == 1 else None
        if rows is None or isinstance(statement, Call):
            super().statement(statement)
            effects = statement.form.effects if isinstance(statement, Instruction) else None
            if effects is not None and effects.strong and not effects.atomic:
                self.emit(Fence("block"))  # LLVM must do each strong access, in its place
            return
        form = statement.form
        if plan_of(form).widens:
            self._guard_rows(statement)
        fields, kinds = [], []
        for spec, operand in zip(form.operands, statement.operands):
            if spec.written:
                part = Field(by_row(op.writes[0].type.bits), "i", (self.registers.offsets[op.writes[0].name],))
            else:
                part = self.operand(statement, spec, operand, LANES)
            fields.append(part)
            kinds.append(part.kind)
        number = lookup(form.mnemonic).index(form)
        self.emit(ComputeRows(form.mnemonic, number, tuple(kinds)), *fields)

    def _guard_rows(self, statement: Instruction) -> None:
        """As `_guard_wrap`, for each row."""
        form = statement.form
        result = form.operands[0].type
        for spec, operand in zip(form.operands, statement.operands):
            if spec.written or spec.type is None or result is None or result.bits <= spec.type.bits:
                continue
            known = Operands.lane_offsets(self.operands, operand)
            if known is None or operand.type.bits >= 64:  # type: ignore[union-attr]
                continue
            offsets = relative(known, self.block[0])
            if any(offsets):
                base = self.operands.source(operand, 32, False)
                bounds = raw("qq", min(offsets), max(offsets))
                self.emit(RowWrapCheck(base.kind, spec.type.is_signed), base, bounds)

    def address(
        self, statement: Instruction, operand: Any, nbytes: int, write: bool, space: str = ""
    ) -> tuple[OperandClass, Pattern | None, Field]:
        kind, pattern, place = super().address(statement, operand, nbytes, write, space)
        rows = self.operands.rows(operand.base)
        effects = statement.form.effects
        if rows is None or self.divergent or statement.guard is not None or effects.access is None or effects.atomic:
            return kind, pattern, place
        lanes = rows.lanes
        for letter, step in (("c", nbytes), ("b", 0)):
            if tuple(rows) == tuple(lane % lanes * step for lane in range(LANES)) and (letter == "c" or not write):
                extent = (lanes - 1) * step + nbytes - 1
                wide = by_row(kind.bits)
                return wide, (letter, lanes), Field(wide, place.codes + "i", (*place.values, extent))
        return kind, pattern, place


class _Branches:
    """Which branches make lanes diverge for longer: those on data.

    A bound on an index in the grid splits the last warps at most. One on the thread's index in its block may split a
    warp of each block; where what it skips is short, masks cost less than the side exits. So they do where both ways
    have work, and their arms run like converged code.
    """

    def __init__(self, graph: ControlFlowGraph, arms: bool) -> None:
        self.graph, self.arms = graph, arms
        self.writers: dict[str, list[int]] = {}
        for place, op in enumerate(graph.def_use):
            for register in op.writes:
                self.writers.setdefault(register.name, []).append(place)
        self.launch_invariant: set[int] = set()

    def is_bound(self, guard: Operand, known: Known) -> bool:
        """Whether a guard is uniform, or compares an index with a bound."""
        return self._is_bound(guard, known, 0)

    def diverge(self, block: int, guard: Operand, known: Known) -> bool:
        """Whether lanes diverge at the end of a basic block, under this guard."""
        if not self.is_bound(guard, known):
            return True
        if not self._within_block(guard, known):
            return False
        return self._skipped(block) <= SHORT or (self.arms and self._works_both_ways(block, guard))

    def _works_both_ways(self, block: int, guard: Operand) -> bool:
        """Whether a branch skips neither way, in code of single lanes, and not by whole warps."""
        nodes, statements = self.graph.blocks, self.graph.statements
        ways, join = set(nodes[block].successors), self.graph.reconvergence[block]
        if len(ways) < 2 or join < 0 or join in ways or self._counts_warps(guard):
            return False
        for n in self.graph.divergent_region(block, {}):
            for statement in statements[nodes[n].start:nodes[n].stop]:
                if not isinstance(statement, Instruction) or statement.form.effects.collective:
                    return False
        return True

    def _counts_warps(self, guard: Operand) -> bool:
        """Whether a guard compares with a number of whole warps."""
        register = guard.predicate if isinstance(guard, Not) else guard
        reads = [each for n in self.writers.get(register.name, []) for each in self.graph.def_use[n].reads]  # type: ignore[union-attr]
        return any(isinstance(each, Immediate) and int(each.bits) % LANES in (0, LANES - 1) for each in reads)

    def _skipped(self, block: int) -> int:
        """Statements between a branch and where lanes reconverge."""
        nodes = self.graph.blocks
        return sum(nodes[n].stop - nodes[n].start for n in self.graph.divergent_region(block, {}))

    def _within_block(self, guard: Operand, known: Known) -> bool:
        """Whether a guard compares the thread's index in its block, and may be true in some lanes of a warp only."""
        register = guard.predicate if isinstance(guard, Not) else guard
        if not isinstance(register, Register) or known(register) is UNIFORM:
            return False
        for place in self.writers.get(register.name, []):
            for operand in self.graph.def_use[place].reads:
                if _is_predicate(operand):
                    if self._within_block(operand, known):
                        return True
                elif known(operand) is not UNIFORM and self._of_thread(operand):
                    return True
        return False

    def _of_thread(self, operand: Operand) -> bool:
        if isinstance(operand, SpecialRegister):
            return True
        places = self.writers.get(operand.name, []) if isinstance(operand, Register) else []
        return bool(places) and all(place in self.launch_invariant for place in places)

    def _is_bound(self, operand: Operand, known: Known, depth: int) -> bool:
        if isinstance(operand, Not):
            operand = operand.predicate
        if not isinstance(operand, Register):
            return True
        if known(operand) is UNIFORM:
            return True
        writers = self.writers.get(operand.name, [])
        return depth < 4 and bool(writers) and all(
            self._compares_index(self.graph.def_use[place], known, depth) for place in writers
        )

    def _compares_index(self, op: DefUse, known: Known, depth: int) -> bool:
        statement = op.statement
        if not isinstance(statement, Instruction) or statement.guard is not None:
            return False
        if plan_of(statement.form).pure and all(_is_predicate(operand) for operand in op.reads):
            return all(self._is_bound(operand, known, depth + 1) for operand in op.reads)
        if statement.form.modifiers.get("cmp") in (None, "eq", "ne"):
            return False
        return all(known(operand) is not VARYING for operand in op.reads)


def _is_predicate(operand: Operand) -> bool:
    if isinstance(operand, Not):
        operand = operand.predicate
    return isinstance(operand, Register) and operand.type.kind == "p"
