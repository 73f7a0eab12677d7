"""The sanitizer's check of registers: instructions that find where a thread reads one that it has not written.

``verify`` refuses a register that some path leaves unwritten where the PTX is ours, but a guarded write counts as one
there, and compilers' PTX may carry values that are never used. So each register that may be read too early gets a
predicate, set where the register is written and tested where it is read. A ``mov`` only copies that predicate.
"""

from __future__ import annotations

from ...analysis.control_flow import control_flow_graph
from ...analysis.definite_assignment import maybe_unwritten
from ...ir import Address, Call, Function, Instruction, Not, Register, Symbol
from ...analysis.def_use import DefUse
from .builder import PtxBuilder
from .recursion import STACK_POINTER

__all__ = ["UNWRITTEN", "check_definedness", "checks_definedness"]

UNWRITTEN = "%unwritten"
"""The function that is called with a register by the lanes that have not written it."""
_FLAG, _TEST = ".written", "%unwritten"


def checks_definedness(statement: Instruction | Call) -> bool:
    """Whether a statement is one of those that are added here."""
    if isinstance(statement, Call):
        return statement.callee == Symbol(UNWRITTEN)
    first = statement.operands[0] if statement.operands else None
    return isinstance(first, Register) and (first.name.startswith(_TEST) or first.name.endswith(_FLAG))


def check_definedness(function: Function) -> Function:
    """The function with such checks; itself where none is needed."""
    flow = control_flow_graph(function)
    exposed = maybe_unwritten(flow)
    if not exposed:
        return function
    copies = [op for op in flow.def_use if _copies(op)]
    while more := {w for op in copies if not exposed.isdisjoint(op.uses) for w in op.writes} - exposed:
        exposed |= more
    return _Checks(function, exposed).run()


def _copies(op: DefUse) -> bool:
    return isinstance(op.statement, Instruction) and op.statement.form.opcode == "mov"


def _saves(op: DefUse) -> bool:
    """Whether it is the push of a register around a recursive call, which computes nothing with it."""
    addresses = [operand for operand in op.reads if isinstance(operand, Address)]
    return any(isinstance(a.base, Register) and a.base.name == STACK_POINTER for a in addresses)


class _Checks(PtxBuilder):
    """Adds the instructions that set and test the predicates of some registers."""

    def __init__(self, function: Function, exposed: set[Register]) -> None:
        super().__init__(function)
        self.flags = {register: self.register(register.name + _FLAG, "pred") for register in sorted(exposed)}
        self.unwritten = self.register(_TEST, "pred")

    def run(self) -> Function:
        for flag in self.flags.values():
            self.emit("mov.pred", flag, 0)
        for statement in self.function.body or ():
            if isinstance(statement, (Instruction, Call)):
                self.statement = statement
                self._before(statement)
            self.body.append(statement)
        return self.result()

    def _before(self, statement: Instruction | Call) -> None:
        op = DefUse.of(statement)
        used = [register for register in op.uses if register in self.flags]
        if not _copies(op) and not _saves(op):
            for register in dict.fromkeys(used):
                self._test(statement.guard, register)
            used = []
        for register in op.writes:
            if register in self.flags:
                self._set(statement.guard, self.flags[register], [self.flags[source] for source in used])

    def _set(self, guard: Register | Not | None, flag: Register, sources: list[Register]) -> None:
        """The register has a value from here on, if its sources have theirs."""
        if not sources:
            self.emit("mov.pred", flag, 1, guard=guard)
            return
        first, *rest = sources
        self.emit("and.pred", flag, first, rest[0] if rest else first, guard=guard)
        for source in rest[1:]:
            self.emit("and.pred", flag, flag, source, guard=guard)

    def _test(self, guard: Register | Not | None, register: Register) -> None:
        flag = self.flags[register]
        self.emit("not.pred", self.unwritten, flag)
        if register not in (guard, getattr(guard, "predicate", None)):
            self.both(self.unwritten, guard)
        self.call(UNWRITTEN, register, guard=self.unwritten)
        self.emit("or.pred", flag, flag, self.unwritten)
