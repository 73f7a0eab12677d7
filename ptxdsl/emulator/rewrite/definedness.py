"""The sanitizer's look at registers: what a thread reads before it has written it.

``verify`` refuses a register that some path leaves unwritten where the PTX is ours, but a guarded write counts as one
there, and compilers' PTX may carry values that nobody looks at. So each register that could be read too early gets a
predicate that says whether it has a value, kept by instructions among those of the kernel, and each read asks it. A
``mov`` only hands on what it got.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir import Address, Call, Function, Immediate, Instruction, Not, Operand, Register, Statement, Symbol
from ...isa import lookup
from ...types import TYPES
from ...analysis.control_flow import Graph, graph
from ..analysis.statements import Op
from .recursion import STACK_POINTER

__all__ = ["UNWRITTEN", "asks", "questioned"]

UNWRITTEN = "%unwritten"
"""What is called, with the register, by the lanes in which it has no value."""

_PREDICATE, _WRITTEN = TYPES["pred"], ".written"
_ASKED, _GUARD = Register("%unwritten", _PREDICATE), Register("%unguarded", _PREDICATE)


def asks(statement: Instruction | Call) -> bool:
    """Whether a statement is one of those that are added here."""
    if isinstance(statement, Call):
        return statement.callee == Symbol(UNWRITTEN)
    first = statement.operands[0] if statement.operands else None
    return isinstance(first, Register) and (first in (_ASKED, _GUARD) or first.name.endswith(_WRITTEN))


def questioned(function: Function) -> Function:
    """The function with questions before its doubtful reads; itself where there are none."""
    flow = graph(function)
    doubtful = _doubtful(flow)
    if not doubtful:
        return function
    copies = [op for op in flow.ops if _copies(op)]
    while True:
        more = {w for op in copies if not doubtful.isdisjoint(op.uses) for w in op.writes} - doubtful
        if not more:
            return _Questions(doubtful).added(function)
        doubtful |= more


def _copies(op: Op) -> bool:
    return isinstance(op.statement, Instruction) and op.statement.form.opcode == "mov"


def _saves(op: Op) -> bool:
    """Whether it is the push of a register around a call that may come back: nobody computes with it."""
    addresses = [operand for operand in op.reads if isinstance(operand, Address)]
    return any(isinstance(a.base, Register) and a.base.name == STACK_POINTER for a in addresses)


def _doubtful(flow: Graph) -> set[Register]:
    """The registers that are read on a path on which nothing wrote them for certain."""
    numbers: dict[Register, int] = {}
    for op in flow.ops:
        for register in (*op.uses, *op.writes):
            numbers.setdefault(register, len(numbers))

    def bits(registers: tuple[Register, ...]) -> int:
        return sum({1 << numbers[register] for register in registers})

    writes = [bits(op.writes) if op.statement.guard is None else 0 for op in flow.ops]
    known: dict[int, int] = {0: 0} if flow.nodes else {}
    work = list(known)
    while work:
        node = flow.nodes[number := work.pop()]
        have = known[number]
        for place in range(node.start, node.stop):
            have |= writes[place]
        for successor in node.successors:
            now = have & known.get(successor, -1)
            if now != known.get(successor):
                known[successor] = now
                work.append(successor)
    found: set[Register] = set()
    for number, have in known.items():
        node = flow.nodes[number]
        for place in range(node.start, node.stop):
            found.update(register for register in flow.ops[place].uses if not have >> numbers[register] & 1)
            have |= writes[place]
    return found


class _Questions:
    """Adds the instructions that keep and ask the predicates of some registers."""

    def __init__(self, doubtful: set[Register]) -> None:
        ordered = sorted(doubtful)
        self.flags = {register: Register(register.name + _WRITTEN, _PREDICATE) for register in ordered}
        self.body: list[Statement] = []

    def added(self, function: Function) -> Function:
        """The function with them."""
        never = Immediate(1, TYPES["u32"])
        for flag in self.flags.values():
            self._emit(None, "setp.eq.u32", flag, Immediate(0, TYPES["u32"]), never)
        for statement in function.body or ():
            if isinstance(statement, (Instruction, Call)):
                self._before(statement)
            self.body.append(statement)
        registers = [*function.registers, *self.flags.values(), _ASKED, _GUARD]
        return replace(function, registers=registers, body=self.body)

    def _emit(
        self, like: Instruction | Call | None, mnemonic: str, *operands: Operand, guard: Register | Not | None = None
    ) -> None:
        form = next(form for form in lookup(mnemonic) if len(form.operands) == len(operands))
        loc, line = (like.loc, like.line) if like is not None else (None, 0)
        self.body.append(Instruction(form, operands, guard, loc, line))

    def _before(self, statement: Instruction | Call) -> None:
        op = Op.of(statement)
        used = [self.flags[register] for register in op.uses if register in self.flags]
        if not _copies(op) and not _saves(op):
            for register in dict.fromkeys(register for register in op.uses if register in self.flags):
                self._ask(statement, register)
            used = []
        for register in op.writes:
            if register in self.flags:
                self._note(statement, self.flags[register], used)

    def _note(self, statement: Instruction | Call, flag: Register, sources: list[Register]) -> None:
        """The register has a value from here on, if its sources have theirs."""
        if not sources:
            zero = Immediate(0, TYPES["u32"])
            self._emit(statement, "setp.eq.u32", flag, zero, zero, guard=statement.guard)
            return
        first, *rest = sources
        self._emit(statement, "and.pred", flag, first, rest[0] if rest else first, guard=statement.guard)
        for source in rest[1:]:
            self._emit(statement, "and.pred", flag, flag, source, guard=statement.guard)

    def _ask(self, statement: Instruction | Call, register: Register) -> None:
        flag, guard = self.flags[register], statement.guard
        self._emit(statement, "not.pred", _ASKED, flag)
        if isinstance(guard, Not) and guard.predicate != register:
            self._emit(statement, "not.pred", _GUARD, guard.predicate)
            self._emit(statement, "and.pred", _ASKED, _ASKED, _GUARD)
        elif isinstance(guard, Register) and guard != register:
            self._emit(statement, "and.pred", _ASKED, _ASKED, guard)
        self.body.append(
            Call(Symbol(UNWRITTEN), (), (register,), guard=_ASKED, loc=statement.loc, line=statement.line)
        )
        self._emit(statement, "or.pred", flag, flag, _ASKED)
