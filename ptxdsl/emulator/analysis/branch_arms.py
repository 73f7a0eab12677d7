"""Registers that are one number for the lanes of one arm of a divergent branch, and of no use to the others.

An arm of a branch is what can be reached by one of its ways only, before the lanes reconverge. Where all lanes that run
the branch are together, those that take a way enter its arm together, once, and as long as no branch in the arm splits
them they stay together. So the arm is like converged code for its lanes: a loop counter in it may be a scalar, if no
lane outside the arm sees that scalar. That is so for a register which is written nowhere else in the divergent region
and is live in no other part of it, nor where it ends. Arms nest: the lanes of an arm run the branches in it together,
until the next one that splits them.

No arm is entered but by its branch, or has an instruction of the whole warp or a barrier. A register that is live at
one, anywhere, stays varying, since lanes of both tiers meet there. In a block where lanes may have diverged every guard
that is not uniform splits lanes: the bounds that converged code does not count are none there.

What this cannot see: registers that hold the same in several arms, or that one arm gives to what follows; loops whose
back edge leads through the branch itself.
"""

from __future__ import annotations

from ...analysis.control_flow import ControlFlowGraph
from ...analysis.def_use import DefUse
from ...analysis.liveness import Liveness
from ...ir import Instruction, Register
from .divergence import LINEAR, UNIFORM, VARYING, Diverges, LaneOffsets, Shape3
from .form_plans import Plan
from .row_affine import RowAffine, RowAffineAnalysis

__all__ = ["BranchArmAnalysis"]


class BranchArmAnalysis(RowAffineAnalysis):
    """The analysis of a kernel whose divergent regions run arm by arm, under masks."""

    def __init__(
        self, graph: ControlFlowGraph, block: Shape3, roots: dict[str, str], diverges: Diverges | None,
        wraps: frozenset[int], liveness: Liveness,
    ) -> None:
        super().__init__(graph, block, roots, diverges, wraps)
        self.liveness = liveness
        self.torn: set[int] = set()
        """Divergent blocks which any of the lanes may run, at any time."""
        self.shared: dict[int, set[str]] = {}
        """Registers that other lanes may see, by the block of an arm."""
        self.predecessors: list[set[int]] = [set() for _ in graph.blocks]
        for number, node in enumerate(graph.blocks):
            for other in node.successors:
                self.predecessors[other].add(number)
        self.written = [{r.name for op in graph.def_use[n.start:n.stop] for r in op.writes} for n in graph.blocks]
        self.collective = {n for n in range(len(graph.blocks)) if self._is_collective(n)}
        self.met = {name for n in self.collective for name in self._live(n)}

    def _is_collective(self, number: int) -> bool:
        node = self.graph.blocks[number]
        return any(
            not isinstance(statement, Instruction) or statement.form.effects.collective
            for statement in self.graph.statements[node.start:node.stop]
        )

    def _live(self, number: int) -> set[str]:
        return self.liveness.named(self.liveness.entries[number])

    def _split(self, number: int) -> None:
        super()._split(number)
        nodes = self.graph.blocks
        region = self.graph.divergent_region(number, {})
        arms = [] if number in region else self._arms(number, region)
        self.torn |= region.difference(*arms)
        ends = {other for n in region for other in nodes[n].successors} - region
        for arm in arms:
            others = (region | ends) - arm
            seen = set(self.met).union(*(self._live(n) for n in others), *(self.written[n] for n in region - arm))
            for n in arm:
                self.shared.setdefault(n, set()).update(seen)
        self.whole |= region

    def _arms(self, number: int, region: set[int]) -> list[set[int]]:
        """The arms of a branch: blocks of its region that one of its ways leads to."""
        ways = {way: self._reached(way, region) for way in self.graph.blocks[number].successors if way in region}
        arms = []
        for way, found in ways.items():
            arm = found.difference(*(others for other, others in ways.items() if other != way))
            inside = arm | {number}
            if arm and not arm & self.collective and all(self.predecessors[n] <= inside for n in arm):
                arms.append(arm)
        return arms

    def _reached(self, way: int, region: set[int]) -> set[int]:
        found, todo = {way}, [way]
        while todo:
            fresh = region.intersection(self.graph.blocks[todo.pop()].successors) - found
            found |= fresh
            todo += fresh
        return found

    def _is_apart(self, number: int, op: DefUse) -> bool:
        if number in self.torn:
            return True
        shared = self.shared[number]
        return any(register.name in shared for register in op.writes)

    def _diverges(self, number: int, last: DefUse) -> bool:
        guard = last.statement.guard
        if number in self.facts.divergent and guard is not None and self.offsets_of(guard) is not UNIFORM:
            return True
        return super()._diverges(number, last)

    def _in_arm(self, op: DefUse, plan: Plan) -> LaneOffsets:
        """The lane offsets of what an arm computes: no rows, whose first lanes may be elsewhere, and no wrapping."""
        if plan.rule != "load" and plan.rule not in LINEAR:
            return VARYING
        if plan.widens and not self._widens_surely(op):
            return VARYING
        offsets = self._transfer(op, plan.rule)
        return VARYING if isinstance(offsets, RowAffine) else offsets

    def _widens_surely(self, op: DefUse) -> bool:
        """Whether what is widened is uniform or signed: an index less that of the arm's first lane wraps elsewhere."""
        form = op.statement.form  # type: ignore[union-attr]
        signed = all(spec.written or spec.type is None or spec.type.is_signed for spec in form.operands)
        return signed or all(self.offsets_of(r) is UNIFORM for r in op.reads if isinstance(r, Register))
