"""Executes a kernel for all threads of a block at once: what they access, and which memory is certainly written.

It is executed as far as it follows from parameters and indices; what is loaded has no number, and the coordinates of
the block are kept as multiples. Where a branch goes has no number either, then: each of its ways is taken by all of its
threads, up to where they meet, so that what is touched is at least what threads touch. A loop that nothing is known of
is passed over: its accesses are those that :mod:`.static_values` knows. What is stored there does not count as certain.
So loops count as they are, whatever their shape: trips, strides that shrink, buffers that alternate. A few thousand
statements end it; then only what was certainly stored until then is known.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Call, Immediate, Instruction, Not, Register
from ..machine.layout import LANES
from .linear_values import NO_BLOCK
from .static_values import Known
from .thread_numbers import Number, same
from .thread_accesses import Accessed, Asked, ThreadAccesses
from .warp_barriers import Ordered, Trace

__all__ = ["BlockRun", "Execution", "Stopped", "Stored", "execute"]

EFFORT = 48000
"""Statements that are, four for each that has not been executed with the same numbers before."""


class Stored(NamedTuple):
    """A barrier, and which bytes of each array have been written when it is first passed."""

    barrier: int
    bytes: dict[str, Any]


class Execution(NamedTuple):
    """What is stored at barriers, and the accesses from one barrier to the next.

    ``intervals`` is None where not all is known; ``aligned``: all threads pass the same barriers. ``early`` are the
    reads that may find memory unwritten, of what all threads of a block share where it was not before the last barrier.
    """

    stored: list[Stored]
    intervals: list[list[Accessed]] | None
    aligned: bool
    early: set[int]
    phases: list[list[Accessed]]
    """The accesses from one barrier of all warps, or of the block, to the next."""
    stopped: bool = False
    """Whether it ended since it took too much effort."""
    cuts: frozenset[tuple[int, int]] = frozenset()
    """Where along which axis of the grid comparisons change that are not known of all blocks."""
    effort: int = 0
    """What it took, as in EFFORT."""
    warps: Ordered | None = None
    """What barriers of some warps order, where there are such."""


class Stopped(Exception):
    """Nothing more is known."""


def execute(
    graph: ControlFlowGraph, known: Known, barriers: set[int], accesses: dict[int, Asked], sizes: Callable[[str], int],
    starts: Callable[[str], int], effort: int = EFFORT, part: Sequence[tuple[int, int]] = (),
) -> Execution:
    """Execute a kernel for the threads of any block, of the whole grid or of a ``part`` of it.

    ``barriers`` are those that all threads of a block pass; ``accesses`` by their places. ``sizes`` are those of arrays
    in shared and local memory, ``starts`` the addresses of those in shared memory; 0 where it is not known.
    """
    run = BlockRun(graph, known, barriers, accesses, sizes, starts)
    run.most, run.trace.left = effort, run.trace.left * effort // EFFORT
    run.arithmetic.limit(part)
    done = False
    with contextlib.suppress(Stopped):
        run.run()
        done = True
    inside = run.intervals() if done else None
    cuts = frozenset(run.arithmetic.cuts)
    aligned, phases, warps = done and run.aligned, run.phases(), run.trace.ordered() if done else None
    return Execution(run.found, inside, aligned, run.early, phases, not done, cuts, run.effort, warps)


class BlockRun(ThreadAccesses):
    """The execution of a kernel for all threads of a block."""

    def __init__(
        self, graph: ControlFlowGraph, known: Known, barriers: set[int], accesses: dict[int, Asked],
        sizes: Callable[[str], int], starts: Callable[[str], int],
    ) -> None:
        super().__init__(graph, known, starts, accesses, sizes)
        self.barriers = barriers
        self.found: list[Stored] = []
        self.passed: set[int] = set()
        self.waiting: dict[int, Any] = {}
        self.aligned = True
        """Whether all threads have passed the same barriers."""
        self.most = EFFORT
        self.of_some = set() if barriers else {
            place for place, s in enumerate(graph.statements)
            if isinstance(s, Instruction) and s.form.effects.barrier == "block"
        }
        """Barriers of some warps, or of all."""
        self.trace = Trace(len(self.every), self.sizes, bool(self.of_some))
        self.needed = self._needed()

    def _needed(self) -> set[int]:
        """The statements that say where threads go and what they access, or what that is computed from."""
        ops = self.graph.def_use
        writers: dict[str, list[int]] = {}
        for place, op in enumerate(ops):
            for register in op.writes:
                writers.setdefault(register.name, []).append(place)
        bases = [asked.address.base for asked in self.accesses.values()]
        names = [base.name for base in bases if isinstance(base, Register)]
        for place in (*self.accesses, *self.of_some):
            names += self._guard_name(place)
        for place in self.of_some:
            statement: Any = self.graph.statements[place]
            operands = [statement.operand(name) for name in ("a", "b")]
            names += [each.name for each in operands if isinstance(each, Register)]
        for block in self.graph.blocks:
            names += [name for place in range(block.start, block.stop) if self._leads(place)
                      for name in self._guard_name(place)]
        seen, found = set(), set()
        while names:
            name = names.pop()
            if name not in seen:
                seen.add(name)
                for place in writers.get(name, ()):
                    found.add(place)
                    names += [register.name for register in ops[place].uses]
        return found

    def _leads(self, place: int) -> bool:
        statement = self.graph.statements[place]
        return isinstance(statement, Instruction) and (statement.form.effects.branches or statement.form.effects.ends)

    def _guard_name(self, place: int) -> list[str]:
        guard = self.graph.statements[place].guard
        predicate = guard.predicate if isinstance(guard, Not) else guard
        return [predicate.name] if predicate is not None else []

    # Where threads go

    def run(self) -> None:
        """Execute all of it."""
        if self.graph.blocks:
            self._follow(0, self.every, -1)

    def _follow(self, number: int, mask: Any, end: int) -> None:
        """Execute from a block on, up to another one."""
        before, self.waiting = self.waiting, {number: mask}
        while self.waiting:
            number = min(self.waiting, key=lambda n: self.graph.blocks[n].priority)
            mask = self.waiting.pop(number)
            if number == end:
                continue
            self.effort += 1
            if self.effort > self.most:
                raise Stopped
            self._block(number, mask)
        self.waiting = before

    def _block(self, number: int, mask: Any) -> None:
        block = self.graph.blocks[number]
        for place in range(block.start, block.stop):
            statement = self.graph.statements[place]
            if isinstance(statement, Call):
                self._forget(place)
                continue
            effects = statement.form.effects
            if effects.branches:
                self._branch(number, statement, mask)
                return
            if effects.ends:
                mask = self._ended(statement.guard, mask)
                if not mask.any():
                    return
            elif place in self.barriers or effects.barrier:
                self._barrier(place, statement, mask)
            elif "async_group" in (effects.completes, effects.commits, effects.waits):
                self._copy(statement, mask)
            if place in self.accesses:
                self._access(place, statement, mask)
            if place in self.needed:
                self._compute(place, statement, mask)
        if block.fallthrough >= 0:
            self._go(block.fallthrough, mask)
        else:
            self._end(mask)

    def _ended(self, guard: Register | Not | None, mask: Any) -> Any:
        """The threads that go on where those end in which a guard holds."""
        taken = self._known(guard, mask)
        if taken is None:
            self.certain = False
            return mask
        self._end(taken)
        return mask & ~taken

    def _end(self, threads: Any) -> None:
        if not self.apart:
            self.alive = self.alive & ~threads
        elif threads.any():
            self.trace.lose()

    def _warp_barrier(self, statement: Instruction, mask: Any) -> None:
        """A barrier of the lanes of each warp; it counts where all warps come to it that have not ended."""
        members = statement.operand("membermask")
        whole = isinstance(members, Immediate) and members.bits == 0xFFFFFFFF and statement.guard is None
        if whole and not self.apart and not self.waiting and (mask is self.alive or (mask == self.alive).all()):
            self._close_phase()
        if whole and not self.apart and self.certain:
            self.trace.meet(mask)

    def _arrive(self, statement: Instruction, mask: Any) -> None:
        """A barrier of some warps, or of all of them where it has no count."""
        self.aligned = False
        where = self._known(statement.guard, mask)
        if self.apart or not self.certain or where is None:
            self.trace.lose()
            return
        found = self._barrier_operands(statement, where)
        if any(each is None or each.origin or each.block != NO_BLOCK for each in found):
            self.trace.lose()
        elif where.any():
            numbers, threads = (each.numbers for each in found if each is not None)
            self.trace.arrive(numbers, threads, bool(statement.form.effects.waits), where)

    def _barrier_operands(self, statement: Instruction, where: Any) -> list[Number | None]:
        """The number of a barrier, and for how many threads it is."""
        whole = Number(self.trace.warps * LANES)
        operands = (statement.operand(name) for name in ("a", "b"))
        return [whole if operand is None else self._operand(operand, where) for operand in operands]

    def _barrier(self, place: int, statement: Instruction, mask: Any) -> None:
        if place in self.of_some:
            self._arrive(statement, mask)
            return
        if place not in self.barriers and statement.form.effects.barrier != "block":
            if statement.form.effects.barrier == "warp":
                self._warp_barrier(statement, mask)
            return
        if place not in self.barriers or self.apart or self.waiting or (mask != self.alive).any():
            self.aligned = self.certain = False
        if not self.aligned:
            return
        self._settle()
        if place not in self.passed:
            self.passed.add(place)
            self.found.append(Stored(place, dict(self.settled)))

    def _go(self, number: int, mask: Any) -> None:
        if mask is not self.every:
            before = self.waiting.get(number)
            mask = mask if before is None else before | mask
            if not mask.any():
                return
        self.waiting[number] = self.every if mask.all() else mask

    def _branch(self, number: int, statement: Instruction, mask: Any) -> None:
        block = self.graph.blocks[number]
        if block.exits:
            mask = self._ended(statement.guard, mask)
        elif len(block.targets) != 1:
            self._either(number, mask)
            return
        else:
            taken = self._known(statement.guard, mask)
            if taken is None:
                self._either(number, mask)
                return
            self._go(block.targets[0], taken)
            mask = mask & ~taken
        if block.fallthrough >= 0:
            self._go(block.fallthrough, mask)

    def _either(self, number: int, mask: Any) -> None:
        """Take all ways of a branch, and go on where they meet."""
        end, ways = self.graph.reconvergence[number], self.graph.blocks[number].successors
        region = self.graph.divergent_region(number, {})
        self.apart += 1
        if number in region:
            self._pass_over(region, mask)
        else:
            before, written, after = self.registers, self.written, []
            for way in ways:
                self.registers, self.written = dict(before), {name: each.copy() for name, each in written.items()}
                if way != end:
                    self._follow(way, mask, end)
                after.append((self.registers, self.written))
            (first, stored), *rest = after
            self.registers = {
                name: value for name, value in first.items()
                if all(name in other and same(value, other[name]) for other, _ in rest)
            }
            self.written = {
                name: np.logical_and.reduce([value, *(other[name] for _, other in rest)])
                for name, value in stored.items() if all(name in other for _, other in rest)
            }
        self.apart -= 1
        if end >= 0:
            self._go(end, mask)

    def _pass_over(self, region: set[int], mask: Any) -> None:
        """A loop of which it is not known how often it is executed."""
        for inside in region:
            block = self.graph.blocks[inside]
            if block.exits or not block.successors:
                self.certain = False
            for place in range(block.start, block.stop):
                statement = self.graph.statements[place]
                if place in self.accesses:
                    self._access_somewhere(place, mask)
                if isinstance(statement, Instruction):
                    effects = statement.form.effects
                    if effects.barrier in ("block", "cluster") or place in self.barriers:
                        self.aligned = self.certain = False
                        self.trace.lose()
                    elif effects.ends:
                        self.certain = False
                    elif "async_group" in (effects.completes, effects.commits, effects.waits):
                        self.copies.lose()
                self._forget(place)
