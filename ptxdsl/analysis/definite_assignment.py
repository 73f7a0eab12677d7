"""Which registers may be read before anything was written to them: a data-flow analysis over basic blocks.

A guarded write counts as a write: whether its guard held wherever the register is read cannot be decided here, and
compilers, ours too, write and read under guards that belong together. The emulator watches for the rest at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from .. import ir
from ..isa import Form

__all__ = ["BOTH", "READ", "WRITE", "Block", "Early", "Plan", "assigned", "early_reads", "plan"]

READ, WRITE, BOTH = 0, 1, 2


class Plan(NamedTuple):
    """What is known of a form: what it does to each operand and to control, and the shapes of operands that fit it.

    ``roles`` has the last of the ``arity`` operands first, so that what an instruction reads is seen before what it
    writes. ``bounded`` says that the values of numbers matter, ``ends`` that the basic block ends there.
    """

    roles: tuple[int, ...]
    arity: int
    bounded: bool
    ends: bool
    branches: bool
    shapes: set[tuple[object, ...]]


@cache
def plan(form: Form, address_size: int) -> Plan:  # noqa: ARG001 - what fits depends on it
    """The plan of a form, the same object at every call."""
    roles = tuple((BOTH if s.role == "rw" else WRITE) if s.written else READ for s in reversed(form.operands))
    bounded = any(s.bounds or s.choices for s in form.operands)
    effects = form.effects
    return Plan(roles, len(roles), bounded, effects.branches or effects.ends, effects.branches, set())


class Early(NamedTuple):
    """A register that is read where it may have no value, and the statement that reads it."""

    register: ir.Register
    statement: ir.Instruction | ir.Call


class Block:
    """Statements without a label but at their head and without a branch but at their end.

    ``defined`` are the registers written, ``exposed`` those read before that, each with the statement. ``targets`` are
    the labels that it may go to, ``falls`` whether it may go on with the next block.
    """

    __slots__ = ("defined", "exposed", "falls", "targets")

    def __init__(self) -> None:
        self.defined: set[ir.Register] = set()
        self.exposed: dict[ir.Register, ir.Instruction | ir.Call] = {}
        self.targets: list[str] = []
        self.falls = True


def early_reads(blocks: list[Block], places: dict[str, int], given: Iterable[ir.Register]) -> Iterator[Early]:
    """The registers, in the order of the text, that are read on a path on which nothing wrote them.

    ``places`` has the number of the block that each label begins, ``given`` the registers that come with a value.
    """
    live = {register for block in blocks for register in block.exposed}
    bits = {register: 1 << n for n, register in enumerate(live)}
    made = [sum(bits[register] for register in block.defined & live) for block in blocks]
    known: list[int | None] = [None] * len(blocks)
    known[0] = sum(bits.get(register, 0) for register in given)
    work = [0]
    while work:
        n = work.pop()
        out = (known[n] or 0) | made[n]
        block = blocks[n]
        after = [places[name] for name in block.targets if name in places]
        if block.falls and n + 1 < len(blocks):
            after.append(n + 1)
        for successor in after:
            before = known[successor]
            now = out if before is None else before & out
            if now != before:
                known[successor] = now
                work.append(successor)
    for block, have in zip(blocks, known):
        if have is not None:
            for register, statement in block.exposed.items():
                if not bits[register] & have:
                    yield Early(register, statement)


def assigned(function: ir.Function) -> set[ir.Register]:
    """The registers that some statement gives a value that does not come from themselves."""
    found: set[ir.Register] = set()
    for statement in function.body or ():
        if isinstance(statement, ir.Instruction):
            found |= set(statement.writes()) - set(statement.reads())
        elif isinstance(statement, ir.Call):
            found.update(register for operand in statement.results for register in ir.registers(operand))
    return found
