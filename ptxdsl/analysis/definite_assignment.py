"""Which registers may be read before anything was written to them: a forward data-flow analysis over basic blocks.

To the verifier a guarded write is a write: whether its guard held wherever the register is read cannot be decided here,
and compilers, ours too, write and read under guards that belong together. The sanitizer checks the rest at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from .. import ir

if TYPE_CHECKING:
    from .control_flow import ControlFlowGraph

__all__ = ["Block", "Early", "assigned", "early_reads", "maybe_unwritten"]

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
    successors = [[places[name] for name in block.targets if name in places] for block in blocks]
    for n, block in enumerate(blocks[:-1]):
        if block.falls:
            successors[n].append(n + 1)
    known = definitely(successors, made, sum(bits.get(register, 0) for register in given))
    for block, have in zip(blocks, known):
        if have is not None:
            for register, statement in block.exposed.items():
                if not bits[register] & have:
                    yield Early(register, statement)


def maybe_unwritten(graph: ControlFlowGraph) -> set[ir.Register]:
    """The registers that are read on a path on which nothing wrote them for certain: a guarded write does not count."""
    numbers: dict[ir.Register, int] = {}
    for op in graph.def_use:
        for register in (*op.uses, *op.writes):
            numbers.setdefault(register, len(numbers))
    writes = [
        sum({1 << numbers[register] for register in op.writes}) if op.statement.guard is None else 0
        for op in graph.def_use
    ]
    made = [reduce(or_, writes[block.start : block.stop], 0) for block in graph.blocks]
    found: set[ir.Register] = set()
    for block, have in zip(graph.blocks, definitely([block.successors for block in graph.blocks], made)):
        for place in range(block.start, block.stop):
            found.update(r for r in graph.def_use[place].uses if have is not None and not have >> numbers[r] & 1)
            have = (have or 0) | writes[place]
    return found


def definitely(successors: Sequence[Sequence[int]], made: Sequence[int], given: int = 0) -> list[int | None]:
    """What holds at the start of each block on every path from the first one, None where there is none.

    Facts are bits: a block adds those in ``made``, and where paths join what all of them have is left.
    """
    known: list[int | None] = [None] * len(made)
    if made:
        known[0] = given
    work = [0] if made else []
    while work:
        n = work.pop()
        out = (known[n] or 0) | made[n]
        for successor in successors[n]:
            before = known[successor]
            now = out if before is None else before & out
            if now != before:
                known[successor] = now
                work.append(successor)
    return known


def assigned(function: ir.Function) -> set[ir.Register]:
    """The registers that some statement gives a value that does not come from themselves."""
    found: set[ir.Register] = set()
    for statement in function.body or ():
        if isinstance(statement, ir.Instruction):
            found |= set(statement.writes()) - set(statement.reads())
        elif isinstance(statement, ir.Call):
            found.update(register for operand in statement.results for register in ir.registers(operand))
    return found
