"""What a kernel does with the numbers that it loads: what decides its way, what it polls, what a ``cas`` confirms.

The flow of numbers is followed from register to register, without regard to the order of statements: a register that
serves twice makes a load look as if it served for both.
"""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import NamedTuple

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Address, Instruction, Register
from ...isa import Form
from ...isa.effects import Access

__all__ = ["Uses", "Values", "copies_value", "trusting"]


def copies_value(form: Form) -> bool:
    """Whether the result is the source, perhaps in another type."""
    return form.opcode == "mov" or form.opcode == "cvt"


class Uses(NamedTuple):
    """What the result of a load is used for: to choose a way, as an address, as a number that is stored."""

    chooses: bool
    addresses: bool
    stored: bool


class Values:
    """The uses of what the statements of a kernel load."""

    def __init__(self, graph: ControlFlowGraph) -> None:
        self.graph = graph
        self._readers: dict[str, list[int]] = {}
        for place, each in enumerate(graph.def_use):
            for register in each.uses:
                self._readers.setdefault(register.name, []).append(place)

    def _flow(self, place: int, copies: bool) -> tuple[set[str], set[int]]:
        """Registers that hold what a statement gives, or is computed from it, and the statements that read these.

        ``copies``: only what is the same.
        """
        statements, def_use = self.graph.statements, self.graph.def_use
        names = {register.name for register in def_use[place].writes}
        todo, found = list(names), set()
        while todo:
            for reader in self._readers.get(todo.pop(), ()):
                found.add(reader)
                statement = statements[reader]
                if not isinstance(statement, Instruction) or statement.form.effects.accesses:
                    continue
                if copies and not copies_value(statement.form):
                    continue
                fresh = {register.name for register in def_use[reader].writes} - names
                names |= fresh
                todo.extend(fresh)
        return names, found

    def copies_of(self, place: int) -> set[str]:
        """The registers that hold what a statement gives."""
        return self._flow(place, True)[0]

    def uses(self, place: int) -> Uses:
        """What becomes of the result of a load."""
        names, readers = self._flow(place, False)
        chooses = addresses = stored = False
        for reader in readers:
            statement = self.graph.statements[reader]
            if not isinstance(statement, Instruction):
                stored = True
                continue
            guard = statement.guard
            guard = getattr(guard, "predicate", guard)
            chooses |= getattr(guard, "name", None) in names or statement.form.effects.branches
            for operand in statement.operands:
                if isinstance(operand, Address):
                    addresses |= getattr(operand.base, "name", None) in names
                elif statement.form.effects.writes:
                    items = getattr(operand, "items", (operand,))
                    stored |= any(isinstance(item, Register) and item.name in names for item in items)
        return Uses(chooses, addresses, stored)

    def polls(self, place: int) -> bool:
        """Whether a load decides how long its loop goes on: an old value costs another turn, and no more."""
        cycle = self._cycle(place)
        if not cycle:
            return False
        names, _ = self._flow(place, False)
        for number in cycle:
            block = self.graph.blocks[number]
            guard = self.graph.statements[block.stop - 1].guard
            guard = getattr(guard, "predicate", guard)
            leaves = block.exits or any(successor not in cycle for successor in block.successors)
            if leaves and getattr(guard, "name", None) in names:
                return True
        return False

    def _cycle(self, place: int) -> frozenset[int]:
        """The blocks of the shortest cycle through a statement."""
        blocks = self.graph.blocks
        start = next((n for n, block in enumerate(blocks) if block.start <= place < block.stop), None)
        if start is None:
            return frozenset()
        before: dict[int, int] = {}
        todo = deque([start])
        while todo:
            at = todo.popleft()
            for successor in blocks[at].successors:
                if successor == start:
                    found = {at}
                    while at != start:
                        at = before[at]
                        found.add(at)
                    return frozenset(found)
                if successor not in before:
                    before[successor] = at
                    todo.append(successor)
        return frozenset()

    @cached_property
    def _swaps(self) -> list[tuple[int, str]]:
        """Each compare-and-swap, and the register that it compares with."""
        return [
            (place, getattr(compared, "name", "")) for place, statement in enumerate(self.graph.statements)
            if isinstance(statement, Instruction) and statement.form.effects.atomic == "cas"
            and (compared := statement.operand("b")) is not None
        ]

    def confirms(self, place: int) -> list[int]:
        """The compare-and-swaps that succeed only where memory still holds what a load has read."""
        if not self._swaps:
            return []
        names, _ = self._flow(place, True)
        return [swap for swap, compared in self._swaps if compared in names]


def trusting(values: Values, place: int, access: Access | None) -> bool:
    """Whether a load may read an old value unnoticed."""
    return access is not None and not access.writes and not values.polls(place) and not values.confirms(place)
