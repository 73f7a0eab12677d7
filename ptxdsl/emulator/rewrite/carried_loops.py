"""Loops that a carry ends: ``loop(start, stop, step)`` of the language, whose step is a register.

For ptxas the shortest test is the carry of ``left = counter - stop``, to which the step is added as well. The
emulator's analyses want a comparison of the counter with what the loop does not change. Both say ``counter + step <
stop``, as long as an iteration begins with a counter below its stop. So the comparison takes the place of the carry,
with ``limit = max(stop, lowest + step) - step``, computed once, where lowest is the least number of the type. The same
is left in every register, by as many instructions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, cast

from ...analysis.control_flow import ControlFlowGraph, control_flow_graph
from ...ir import Call, Function, Immediate, Instruction, Operand, Register, Statement
from ...types import ScalarType
from ..analysis.dominance import Definition, Definitions
from .builder import instruction, integer

__all__ = ["compare_counters"]

_LENGTH = 4


class _Tail(NamedTuple):
    """The registers of the instructions that end an iteration, before the branch back."""

    kind: ScalarType
    left: Register
    carry: Register
    test: Register
    counter: Register
    step: Register

    def by_carry(self) -> tuple[Instruction, ...]:
        """The instructions that the language has."""
        kind, left, carry, test, counter, step = self
        return (
            instruction(f"add.cc.{kind}", left, left, step), instruction(f"addc.{kind}", carry, 0, 0),
            instruction(f"setp.eq.{kind}", test, carry, 0), instruction(f"add.{kind}", counter, counter, step),
        )

    def by_comparison(self, limit: Register) -> tuple[Instruction, ...]:
        """Those that take their place."""
        kind, left, carry, test, counter, step = self
        return (
            instruction(f"add.{kind}", left, left, step), instruction(f"setp.lt.{kind}", test, counter, limit),
            instruction(f"selp.{kind}", carry, 0, 1, test), instruction(f"add.{kind}", counter, counter, step),
        )

    def limit(self, limit: Register, stop: Operand) -> Iterator[Instruction]:
        """``max(stop, lowest + step) - step``."""
        kind, nearest = self.kind, self.step
        if kind.is_signed:
            yield instruction(f"add.{kind}", limit, self.step, integer(kind.bounds[0], kind))
            nearest = limit
        yield instruction(f"max.{kind}", limit, nearest, stop)
        yield instruction(f"sub.{kind}", limit, limit, self.step)


class _Loop(NamedTuple):
    """Such a loop: ``sub left, counter, stop`` in front of it, and where its tail stands."""

    front: Instruction
    tail: _Tail
    end: list[Instruction]


def compare_counters(function: Function) -> Function:
    """The function with its loops ended by a comparison of their counter, where a carry ended them."""
    loops = _loops(function)
    if not loops:
        return function
    made: dict[int, list[Instruction]] = {}
    registers = list(function.registers)
    for number, (front, tail, end) in enumerate(loops):
        registers.append(limit := Register(f"%limit${number}", tail.kind))
        made[id(front)] = [front, *(_at(front, each) for each in tail.limit(limit, front.operands[2]))]
        made.update((id(old), [_at(old, new)]) for old, new in zip(end, tail.by_comparison(limit)))
    body: list[Statement] = []
    for statement in function.body or ():
        body += made.get(id(statement), (statement,))
    return replace(function, body=body, registers=registers)


def _at(place: Instruction, made: Instruction) -> Instruction:
    return replace(made, loc=place.loc, line=place.line)


# ---------------------------------------------------------------------------------------------------------------------
# Finding them


def _loops(function: Function) -> list[_Loop]:
    statements = [s for s in function.body or () if isinstance(s, Instruction)]
    readers = [at for at, s in enumerate(statements) if s.form.effects.reads_carry]
    if not readers or not all(statements[at - 1].form.effects.writes_carry for at in readers):
        return []  # a carry that is read later is not to be lost
    known = Definitions(control_flow_graph(function))
    found = (_loop(known, number) for number in range(len(known.graph.blocks)))
    return [loop for loop in found if loop is not None]


def _loop(known: Definitions, last: int) -> _Loop | None:
    """The loop that ends with a block, if it is one of those that this module is about."""
    blocks, statements = known.graph.blocks, known.graph.statements
    branch = blocks[last].stop - 1
    tail = _tail(known.graph, last)
    if tail is None or len(blocks[last].targets) != 1 or not known.dominates(blocks[last].targets[0], last):
        return None
    (head,) = blocks[last].targets
    ways = [number for number in known.before[head] if number != last]
    place = known.last[ways[0]].get(tail.left.name, -1) if len(ways) == 1 else -1
    front = statements[place]
    if place < 0 or isinstance(front, Call) or front.guard or front.form.mnemonic != f"sub.{tail.kind}":
        return None
    later = {*range(place + 1, blocks[ways[0]].stop), *_places_inside(known, head, last)}
    writes = [later.intersection(known.written.get(r.name, ())) for r in (tail.left, tail.counter, tail.step)]
    if writes != [{branch - _LENGTH}, {branch - 1}, set()] or not _begins_below(known, place, tail.counter):
        return None
    return _Loop(front, tail, cast("list[Instruction]", statements[branch - _LENGTH:branch]))


def _tail(graph: ControlFlowGraph, last: int) -> _Tail | None:
    """What stands before the branch at the end of a block, if that is what ends a loop of these."""
    block, branch = graph.blocks[last], graph.blocks[last].stop - 1
    end = [s for s in graph.statements[max(block.start, branch - _LENGTH):branch] if isinstance(s, Instruction)]
    if len(end) < _LENGTH or not (end[0].form.effects.writes_carry and end[1].form.effects.reads_carry):
        return None
    found = [s.operands[0] for s in end] + [end[-1].operands[-1]]
    kind = end[0].form.type
    if kind is None or not all(isinstance(each, Register) for each in found):
        return None
    tail = _Tail(kind, *cast("list[Register]", found))
    same = [_spelled(s) for s in end] == [_spelled(s) for s in tail.by_carry()]
    return tail if same and graph.statements[branch].guard == tail.test else None


def _spelled(statement: Instruction) -> tuple[object, ...]:
    return statement.form, statement.operands, statement.guard


def _places_inside(known: Definitions, head: int, last: int) -> Iterator[int]:
    """The places of the natural loop of a branch from one block back to another, which dominates it."""
    inside, todo = {head}, [last]
    while todo:
        at = todo.pop()
        if at not in inside:
            inside.add(at)
            todo += known.before[at]
    for number in inside:
        yield from range(known.graph.blocks[number].start, known.graph.blocks[number].stop)


def _begins_below(known: Definitions, place: int, counter: Register) -> bool:
    """Whether the counter is below its stop where both are subtracted, as a branch past it or two numbers show."""
    front = known.graph.statements[place]
    assert isinstance(front, Instruction)
    stop = front.operands[2]
    if front.operands[1] != counter:
        return False
    bounds = [register.name for register in (counter, stop) if isinstance(register, Register)]
    reached = [known.reaching(place, name) for name in bounds]
    for fact in known.facts_at(place):
        test = known.reaching(fact.place, fact.predicate.name)
        by = known.graph.statements[test.place] if isinstance(test, Definition) and not fact.holds else None
        if isinstance(by, Instruction) and isinstance(test, Definition) and not by.guard:
            same = by.form.mnemonic == f"setp.ge.{front.form.type}" and by.operands[1:] == (counter, stop)
            if same and [known.reaching(test.place, name) for name in bounds] == reached:
                return True
    start = known.graph.statements[reached[0].place] if isinstance(reached[0], Definition) else None
    if not isinstance(start, Instruction) or start.guard or start.form.opcode != "mov":
        return False
    first = start.operands[1]
    return isinstance(first, Immediate) and isinstance(stop, Immediate) and first.value < stop.value
