"""Registers that hold the same in all threads of a block, whenever these are at the same place.

What a statement computes of such registers, of immediates and of the sizes of block and grid is the same in all
threads, unless it stands between a branch that threads may take differently and the place where they meet again: some
threads pass there more often than others.
"""

from __future__ import annotations

from ...analysis.control_flow import ControlFlowGraph, control_of
from ...analysis.def_use import DefUse
from ...ir import Address, Immediate, Instruction, Not, Operand, Register, SpecialRegister, Symbol
from .form_plans import plan_of

__all__ = ["BlockUniform"]

SPECIALS = ("%ntid", "%nctaid", "%ctaid")


class BlockUniform:
    """The registers of a function that may differ among the threads of a block: all others do not."""

    def __init__(self, graph: ControlFlowGraph) -> None:
        self.graph = graph
        self.varying: set[str] = set()
        self.apart: set[int] = set()
        """Basic blocks that some threads may pass more often than others."""
        before = -1
        while before != len(self.varying) + len(self.apart):
            before = len(self.varying) + len(self.apart)
            for number in range(len(graph.blocks)):
                self._block(number)

    def holds(self, operand: Operand) -> bool:
        """Whether an operand is the same in all threads of a block."""
        if isinstance(operand, Not):
            operand = operand.predicate
        if isinstance(operand, Register):
            return operand.name not in self.varying
        if isinstance(operand, SpecialRegister):
            return operand.special.startswith(SPECIALS)
        return isinstance(operand, (Immediate, Symbol)) or (
            isinstance(operand, Address) and isinstance(operand.base, Symbol)
        )

    def branches(self, number: int) -> bool:
        """Whether all threads of a block go the same way at the end of a basic block."""
        node = self.graph.blocks[number]
        op = self.graph.def_use[node.stop - 1]
        guard = op.statement.guard
        if control_of(op.statement) == "indexed_branch" and not all(map(self.holds, op.reads)):
            return False
        return guard is None or self.holds(guard)

    def _block(self, number: int) -> None:
        node = self.graph.blocks[number]
        for op in self.graph.def_use[node.start : node.stop]:
            if number in self.apart or not self._same(op):
                self.varying.update(register.name for register in op.writes)
        if len(node.successors) > 1 and not self.branches(number):
            self.apart |= self.graph.divergent_region(number, {})

    def _same(self, op: DefUse) -> bool:
        """Whether a statement that all threads execute writes the same in all of them."""
        statement = op.statement
        if not isinstance(statement, Instruction) or not plan_of(statement.form).pure:
            return False
        guard = statement.guard
        return all(map(self.holds, op.reads)) and (guard is None or self.holds(guard))
