"""Which registers may be read before anything was written to them: a data-flow analysis over basic blocks.

A guarded write counts as a write: whether its guard held wherever the register is read cannot be decided here, and
compilers, ours too, write and read under guards that belong together. The emulator watches for the rest at run time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from . import ir
from .isa import Form

__all__ = ["Unassigned", "assigned", "unassigned"]

_READ, _WRITE, _BOTH = 0, 1, 2
_ENDS = ("ret", "exit", "trap")


class Unassigned(NamedTuple):
    """A register that is read where it may have no value, and the statement that reads it."""

    register: ir.Register
    statement: ir.Instruction | ir.Call


class _Plan(NamedTuple):
    """What a form does to its operands, the last first, and to the flow of control."""

    roles: tuple[int, ...]
    branches: bool
    ends: bool


@cache
def _plan(form: Form) -> _Plan:
    roles = [(_BOTH if s.role == "rw" else _WRITE) if s.written else _READ for s in reversed(form.operands)]
    return _Plan(tuple(roles), form.opcode in ("bra", "brx"), form.opcode in _ENDS)


class _Block:
    """Statements without a label inside and a branch but at the end."""

    __slots__ = ("after", "defined", "exposed", "falls", "known", "targets")

    def __init__(self) -> None:
        self.defined: set[ir.Register] = set()
        self.exposed: dict[ir.Register, ir.Instruction | ir.Call] = {}
        self.targets: list[str] = []
        self.falls = True
        self.known = 0
        self.after: list[int] = []


def unassigned(function: ir.Function) -> Iterator[Unassigned]:
    """The registers, in the order of the text, that are read on a path on which nothing wrote them."""
    blocks, places = _blocks(function)
    live = {register for block in blocks for register in block.exposed}
    bits = {register: 1 << n for n, register in enumerate(live)}
    made = [sum(bits[r] for r in block.defined & live) for block in blocks]
    for n, block in enumerate(blocks):
        block.after = [places[name] for name in block.targets if name in places]
        if block.falls and n + 1 < len(blocks):
            block.after.append(n + 1)
    passed = {p.name for p in (*function.parameters, *function.results) if p.space == "reg"}
    known: list[int | None] = [None] * len(blocks)
    known[0] = sum(bit for register, bit in bits.items() if register.name in passed)
    work = [0]
    while work:
        n = work.pop()
        out = (known[n] or 0) | made[n]
        for successor in blocks[n].after:
            before = known[successor]
            now = out if before is None else before & out
            if now != before:
                known[successor] = now
                work.append(successor)
    for n, block in enumerate(blocks):
        given = known[n]
        if given is not None:
            for register, statement in block.exposed.items():
                if not bits[register] & given:
                    yield Unassigned(register, statement)


def assigned(function: ir.Function) -> set[ir.Register]:
    """The registers that some statement gives a value that does not come from themselves."""
    found: set[ir.Register] = set()
    for statement in function.body or ():
        if isinstance(statement, ir.Instruction):
            found |= set(statement.writes()) - set(statement.reads())
        elif isinstance(statement, ir.Call):
            found.update(register for operand in statement.results for register in ir.registers(operand))
    return found


def _blocks(function: ir.Function) -> tuple[list[_Block], dict[str, int]]:
    """The basic blocks, and the number of the one that each label begins."""
    block = _Block()
    blocks, places = [block], {}
    register, vector = ir.Register, ir.Vector
    defined, exposed = block.defined, block.exposed
    for s in function.body or ():
        if s.__class__ is ir.Instruction:
            roles, branches, ends = _plan(s.form)  # type: ignore[union-attr]
            guard = s.guard  # type: ignore[union-attr]
            if guard is not None:
                predicate = guard[0] if guard.__class__ is ir.Not else guard
                if predicate not in defined:
                    exposed.setdefault(predicate, s)  # type: ignore[arg-type]
            for role, o in zip(roles, reversed(s.operands)):  # type: ignore[union-attr]
                kind = o.__class__
                if kind is register:
                    if role == _READ:
                        if o not in defined:
                            exposed.setdefault(o, s)  # type: ignore[arg-type]
                        continue
                    if role == _BOTH and o not in defined:
                        exposed.setdefault(o, s)  # type: ignore[arg-type]
                    defined.add(o)  # type: ignore[arg-type]
                elif kind is not ir.Immediate:
                    for r in ir.registers(o):
                        if role != _WRITE and r not in defined:
                            exposed.setdefault(r, s)  # type: ignore[arg-type]
                    if role != _READ and kind is vector:
                        defined.update(ir.registers(o))
            if not branches and not ends:
                continue
            block.targets = _targets(function, s) if branches else []  # type: ignore[arg-type]
            block.falls = guard is not None
        elif s.__class__ is ir.Label:
            places[s.name] = len(blocks)  # type: ignore[union-attr]
        elif s.__class__ is ir.Call:
            _visit_call(s, defined, exposed)  # type: ignore[arg-type]
            continue
        else:
            continue
        block = _Block()
        blocks.append(block)
        defined, exposed = block.defined, block.exposed
    return blocks, places


def _targets(function: ir.Function, branch: ir.Instruction) -> list[str]:
    found: list[str] = []
    for operand in branch.operands:
        if isinstance(operand, ir.LabelRef):
            found += function.branch_tables.get(operand.label, (operand.label,))
        elif isinstance(operand, ir.Symbol):
            found += function.branch_tables.get(operand.symbol, ())
    return found


def _visit_call(
    call: ir.Call, defined: set[ir.Register], exposed: dict[ir.Register, ir.Instruction | ir.Call]
) -> None:
    operands = (call.callee, *call.arguments, *(() if call.guard is None else (call.guard,)))
    for register in (r for operand in operands for r in ir.registers(operand)):
        if register not in defined:
            exposed.setdefault(register, call)
    for operand in call.results:
        defined.update(ir.registers(operand))
