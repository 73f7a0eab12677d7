"""Which parameters a function needs after each of its calls: its own, its results, and those of calls in preparation.

A parameter is memory that is written and read in pieces, so bytes are followed. One whose address is taken counts as
needed everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Address, Call, Function, Instruction, Parameter, Symbol, Variable, Vector

__all__ = ["live_parameters"]

Byte = tuple[str, int]
Statement = Union[Instruction, Call]


class _Parameters:
    """The parameters of a function and of its calls, and which of their bytes a statement reads and writes."""

    def __init__(self, function: Function, code: ControlFlowGraph) -> None:
        every: list[Union[Parameter, Variable]] = [*function.parameters, *function.results, *function.variables]
        self.sizes = {each.name: each.nbytes for each in every if each.space == "param"}
        self.results = set(self._bytes(each.name for each in function.results))
        self.escaped: set[str] = set()
        self.effects = [self._effects(statement) for statement in code.statements]

    def _bytes(self, names: Iterable[str]) -> list[Byte]:
        return [(name, at) for name in names if name in self.sizes for at in range(self.sizes[name])]

    def _effects(self, statement: Statement) -> tuple[set[Byte], set[Byte]]:
        """The bytes that a statement reads, and those that it surely writes."""
        if isinstance(statement, Call):
            reads = {o.symbol for o in statement.arguments if isinstance(o, Symbol)}
            writes = {o.symbol for o in statement.results if isinstance(o, Symbol)}
            return set(self._bytes(reads)), set() if statement.guard is not None else set(self._bytes(writes))
        effects, form = statement.form.effects, statement.form
        if form.opcode == "ret":  # which may be under a guard
            return self.results, set()
        read: set[Byte] = set()
        written: set[Byte] = set()
        for operand in statement.operands:
            base = operand.base if isinstance(operand, Address) else operand
            if not isinstance(base, Symbol) or base.symbol not in self.sizes:
                continue
            plain = isinstance(operand, Address) and effects.access is not None and form.type is not None
            if not plain or not isinstance(operand, Address) or effects.atomic:
                self.escaped.add(base.symbol)
                continue
            start, nbytes = operand.offset + base.offset, self._nbytes(statement)
            touched = {(base.symbol, at) for at in range(start, start + nbytes)}
            (read if effects.reads else written).update(touched)
        return read, set() if statement.guard is not None else written

    def _nbytes(self, statement: Instruction) -> int:
        form = statement.form
        assert form.type is not None
        counts = [len(operand.items) for operand in statement.operands if isinstance(operand, Vector)]
        return form.type.bytes * max(counts, default=1)


def live_parameters(function: Function, code: ControlFlowGraph) -> dict[int, set[str]]:
    """By the id of each call of a function, the names of the parameters that are needed after it."""
    parameters = _Parameters(function, code)
    entries: list[set[Byte]] = [set() for _ in code.blocks]
    found: dict[int, set[str]] = {}
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(code.blocks))):
            block = code.blocks[number]
            ends = set() if block.successors else parameters.results
            live = ends.union(*(entries[after] for after in block.successors))
            for place in reversed(range(block.start, block.stop)):
                read, written = parameters.effects[place]
                statement = code.statements[place]
                if isinstance(statement, Call):
                    found[id(statement)] = {name for name, _ in live - written} | parameters.escaped
                live = live - written | read
            if live != entries[number]:
                entries[number], changed = live, True
    return found
