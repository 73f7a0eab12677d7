"""Which blocks every way to a block goes through, and which definition of a register reaches a place.

A definition that is not unique is a :class:`Join` at the block where ways meet (static single assignment, made on
demand: Braun et al., Simple and Efficient Construction of Static Single Assignment Form, 2013).
"""

from __future__ import annotations

from typing import NamedTuple, Union

from ...analysis.control_flow import ControlFlowGraph, reverse_postorder
from ...ir import Call, Register

__all__ = ["Definition", "Definitions", "Fact", "Join", "Unwritten", "Values"]


class Definition(NamedTuple):
    """What a statement writes to a register."""

    place: int
    name: str


class Join(NamedTuple):
    """What a register holds where a block begins, by whichever way."""

    block: int
    name: str


class Unwritten(NamedTuple):
    """A register that nothing has written."""

    name: str


Values = Union[Definition, Join, Unwritten]


class Fact(NamedTuple):
    """That a predicate, as it is read at a place, holds or does not."""

    place: int
    predicate: Register
    holds: bool


class Definitions:
    """The definitions of one function, and what is known where a block begins."""

    def __init__(self, graph: ControlFlowGraph) -> None:
        self.graph = graph
        blocks = graph.blocks
        self.block_of: dict[int, int] = {}
        self.before: list[list[int]] = [[] for _ in blocks]
        self.written: dict[str, list[int]] = {}
        """The places where each register is written, in order."""
        self.last: list[dict[str, int]] = []
        ops = graph.def_use
        for number, block in enumerate(blocks):
            for successor in block.successors:
                self.before[successor].append(number)
            last: dict[str, int] = {}
            for place in range(block.start, block.stop):
                self.block_of[place] = number
                for register in ops[place].writes:
                    self.written.setdefault(register.name, []).append(place)
                    last[register.name] = place
            self.last.append(last)
        self.above = self._dominators()
        self._entries: dict[tuple[int, str], Values] = {}
        self._facts: dict[int, tuple[Fact, ...]] = {}

    def _dominators(self) -> list[int]:
        """The immediate dominator of each block, -1 for the first (Cooper, Harvey and Kennedy's iteration)."""
        blocks = self.graph.blocks
        order = reverse_postorder([block.successors for block in blocks], 0) if blocks else []
        rank = {number: place for place, number in enumerate(order)}
        found = [-2] * len(blocks)
        if blocks:
            found[0] = -1
        changed = True
        while changed:
            changed = False
            for number in order[1:]:
                best = -2
                for way in self.before[number]:
                    if found[way] != -2:
                        best = way if best == -2 else self._common(found, rank, best, way)
                if best != found[number]:
                    found[number], changed = best, True
        return found

    @staticmethod
    def _common(found: list[int], rank: dict[int, int], a: int, b: int) -> int:
        while a != b:
            while rank[a] > rank[b]:
                a = found[a]
            while rank[b] > rank[a]:
                b = found[b]
        return a

    def dominates(self, a: int, b: int) -> bool:
        """Whether every way to a block goes through another."""
        while b != a and b >= 0:
            b = self.above[b]
        return b == a

    def comes_before(self, a: int, b: int) -> bool:
        """Whether every way to a statement goes through another."""
        one, other = self.block_of.get(a, -1), self.block_of.get(b, -1)
        return a < b if one == other else one >= 0 and self.dominates(one, other)

    def reaching(self, place: int, name: str) -> Values:
        """What a register holds before a statement."""
        places = self.written.get(name, ())
        block = self.block_of[place]
        start = self.graph.blocks[block].start
        found = -1
        for each in places:
            if start <= each < place:
                found = each
        if found >= 0:
            return Definition(found, name)
        return self.at_entry(block, name)

    def at_end(self, block: int, name: str) -> Values:
        """What a register holds where a block ends."""
        place = self.last[block].get(name)
        return self.at_entry(block, name) if place is None else Definition(place, name)

    def at_entry(self, block: int, name: str) -> Values:
        """What a register holds where a block begins."""
        found = self._entries.get((block, name))
        if found is None:
            found = self._entries[block, name] = self._at_entry(block, name)
        return found

    def _at_entry(self, block: int, name: str) -> Values:
        places = self.written.get(name, ())
        if not places:
            return Unwritten(name)
        if len(places) == 1:
            home = self.block_of[places[0]]
            if home != block and self.dominates(home, block):
                return Definition(places[0], name)
        while block and len(self.before[block]) == 1:
            block = self.before[block][0]
            place = self.last[block].get(name)
            if place is not None:
                return Definition(place, name)
        return Join(block, name) if block or self.before[block] else Unwritten(name)

    def facts(self, block: int) -> tuple[Fact, ...]:
        """What the branches on every way to a block say of predicates."""
        found = self._facts.get(block)
        if found is None:
            above = self.above[block]
            found = () if above < 0 else self.facts(above) + self._exits(above, self.graph.blocks[above].stop)
            if above >= 0 and self.before[block] == [above]:
                found += self.on_edge(above, block)
            self._facts[block] = found
        return found

    def facts_at(self, place: int) -> tuple[Fact, ...]:
        """The same before a statement."""
        block = self.block_of[place]
        return self.facts(block) + self._exits(block, place)

    def on_edge(self, block: int, successor: int) -> tuple[Fact, ...]:
        """What the branch at a block's end says on the way to one of its successors."""
        node = self.graph.blocks[block]
        last = self.graph.statements[node.stop - 1]
        guard = last.guard
        if guard is None or isinstance(last, Call) or not last.form.effects.branches or len(node.targets) > 1:
            return ()
        if (node.fallthrough == successor) == (successor in node.targets):
            return ()
        return (_fact(node.stop - 1, guard, successor != node.fallthrough),)

    def _exits(self, block: int, stop: int) -> tuple[Fact, ...]:
        """The guards of the ends of threads in a block, which do not hold for those that go on."""
        node, statements = self.graph.blocks[block], self.graph.statements
        found = []
        for place in range(node.start, stop):
            statement = statements[place]
            guard = statement.guard
            if guard is None:
                continue
            if isinstance(statement, Call):
                continue
            if statement.form.effects.ends or (node.exits and place == node.stop - 1):
                found.append(_fact(place, guard, False))
        return tuple(found)


def _fact(place: int, guard: object, holds: bool) -> Fact:
    predicate = getattr(guard, "predicate", None)
    if isinstance(predicate, Register):
        return Fact(place, predicate, not holds)
    assert isinstance(guard, Register)
    return Fact(place, guard, holds)
