"""Which loads may give a value that is then discarded, so that only its use tells whether it was an error.

Compilers load before they know that they need it: both sides of a condition and a ``selp``, a loop's first value
before the loop, a whole struct with its padding, a vector for some of its elements. What such a load finds unwritten is
followed to where it decides something. All other loads are there because the program computes with them, and are judged
where they stand: following them would cost each multiplication of a matrix product its share.

It cannot see: a value that goes through a loop's accumulator and is discarded behind the loop counts as used.

Loads of tensor memory are all followed: an instruction has whole columns, of which a tile may leave lanes out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator

from ...analysis.control_flow import ControlFlowGraph, control_of
from ...analysis.liveness import Liveness
from ...ir import Instruction
from ...isa import Form
from ..analysis.call_stack import uses_stack

__all__ = ["copies_to_memory", "deferred_loads", "is_pure", "reads_cells"]

MOST = 64
"""Uses that are looked at: what goes into so many counts as used."""


def is_pure(form: Form) -> bool:
    """Whether an instruction only computes its results from its operands, each lane for itself."""
    e = form.effects
    others = (e.accesses, e.control, e.fence, e.converges, e.arrives, e.waits, e.completes, e.commits, e.polls, e.hint)
    return not any(others) and any(spec.written for spec in form.operands)


def copies_to_memory(form: Form) -> bool:
    """Whether it is a store to memory of the block, which may be as undefined as the value."""
    access = form.effects.access
    return access is not None and access.writes and not access.reads and access.space in ("shared", "local")


def reads_cells(form: Form) -> bool:
    """Whether it loads from tensor memory to registers: all lanes of a column, and whole columns, used or not."""
    reads = any(access.space == "tmem" and access.reads and not access.writes for access in form.effects.accesses)
    return reads and form.effects.converges == "warp"


def _selects(statement: Instruction) -> bool:
    """Whether the result may not depend on an operand."""
    form = statement.form
    return form.effects.selects or form.effects.absorbs or (len(form.operands) > 3 and form.opcode == "setp")


def deferred_loads(flow: ControlFlowGraph, unwritten: bool, written: frozenset[int]) -> set[int]:
    """The numbers of these statements; ``unwritten``: global memory may be so too; ``written`` are loads of none."""
    spaces = ("shared", "local", "generic", "global") if unwritten else ("shared", "local", "generic")
    return _Uses(flow, spaces).run(written)


def _reads(form: Form, spaces: tuple[str, ...]) -> bool:
    access = form.effects.access
    return (
        access is not None and access.reads and not access.writes and access.space in spaces
        and not form.effects.completes
    )


class _Uses:
    """Where the value of each register goes."""

    def __init__(self, flow: ControlFlowGraph, spaces: tuple[str, ...]) -> None:
        self.flow, self.liveness, self.spaces = flow, Liveness(flow), spaces
        self.places: dict[str, list[int]] = {}
        self.writes: dict[str, list[int]] = {}
        self.block_of: dict[int, int] = {}
        self.entries = Counter(successor for block in flow.blocks for successor in block.successors)
        for number, block in enumerate(flow.blocks):
            for place in range(block.start, block.stop):
                self.block_of[place] = number
                for register in flow.def_use[place].uses:
                    self.places.setdefault(register.name, []).append(place)
                for register in flow.def_use[place].writes:
                    self.writes.setdefault(register.name, []).append(place)

    def run(self, written: frozenset[int]) -> set[int]:
        found: set[int] = set()
        for number, block in enumerate(self.flow.blocks):
            always, stop = set[int](), block.stop
            leaving: set[str] = set()
            for place in range(block.start, block.stop):
                statement = self.flow.statements[place]
                if place in written:
                    continue
                if isinstance(statement, Instruction) and reads_cells(statement.form):
                    found.add(place)
                    continue
                if isinstance(statement, Instruction) and _reads(statement.form, self.spaces):
                    if uses_stack(self.flow.def_use[place]):
                        found.add(place)
                        continue
                    if not always:
                        stop = self.straight(number)
                        always, leaving = self.post_dominating(number), self.liveness.after(stop - 1)
                    if self.may_be_discarded(place, stop, always, leaving):
                        found.add(place)
        return found

    def straight(self, number: int) -> int:
        """Where the statements end that follow one another from a block on, without a branch between them."""
        blocks = self.flow.blocks
        while blocks[number].successors == (number + 1,) and self.entries[number + 1] == 1:
            number += 1
        return blocks[number].stop

    def post_dominating(self, number: int) -> set[int]:
        """The blocks that every way from a block goes through."""
        found = set()
        while number >= 0 and number not in found:
            found.add(number)
            block = self.flow.blocks[number]
            last = self.flow.statements[block.stop - 1]
            if block.exits or (last.guard is not None and control_of(last) in ("exit", "return")):
                break
            number = self.flow.reconvergence[number]
        return found

    def users(self, name: str, write: int, stop: int, leaving: set[str]) -> Iterator[int]:
        """The statements that may use what a statement has written, of whose basic block these registers are left."""
        uses = self.places.get(name, [])
        following = self.next_write(name, write, stop)
        end = stop if following is None else following + 1
        first = bisect_right(uses, write)
        yield from uses[first : bisect_left(uses, end)]
        if end == stop and name in leaving:
            yield from (place for place in uses if not write < place < stop)

    def next_write(self, name: str, write: int, stop: int) -> int | None:
        """The next statement of the basic block that writes the register."""
        writes = self.writes[name]
        following = bisect_right(writes, write)
        return writes[following] if following < len(writes) and writes[following] < stop else None

    def may_be_discarded(self, load: int, stop: int, always: set[int], leaving: set[str]) -> bool:
        """Follow a load's value through its basic block, accumulators left out, and look at who uses it."""
        flow, guard = self.flow, self.flow.statements[load].guard
        copies = flow.statements[load].form.space != "global"  # type: ignore[union-attr]
        todo = [(register.name, load) for register in flow.def_use[load].writes]
        if len(todo) > 1 and not all(any(True for _ in self.users(name, load, stop, leaving)) for name, _ in todo):
            return True  # an element that nobody asks for
        seen = set(todo)
        steps, used = 0, False
        accumulators = self.liveness.before(self.flow.blocks[self.block_of[load]].start) & leaving
        while todo:
            name, write = todo.pop()
            again = self.next_write(name, write, stop)
            if again is not None and flow.statements[again].guard != guard:
                return True
            for place in self.users(name, write, stop, leaving):
                steps += 1
                if steps > MOST:
                    return False
                if self.block_of[place] not in always:
                    return True
                op = flow.def_use[place]
                statement = op.statement
                if not load < place < stop or not isinstance(statement, Instruction):
                    continue
                copied = copies and copies_to_memory(statement.form)
                if copied or _selects(statement) or (statement.guard is not None and statement.guard != guard):
                    return True
                if not is_pure(statement.form):
                    used = True
                    continue
                written = {(register.name, place) for register in op.writes if register.name not in accumulators}
                used |= len(written) < len(op.writes)
                todo += written - seen
                seen |= written
        return not used and len(seen) > len(flow.def_use[load].writes)
