"""What the threads of a block access, and which memory is certainly written, by executing a kernel for all at once.

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
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Address, Call, Immediate, Instruction, Not, Register
from ..machine.layout import LANES, LOCAL_ORIGIN
from .divergence import Shape3
from .linear_values import NO_BLOCK
from .pending_copies import PendingCopies
from .static_values import Known
from .thread_numbers import Number, cut, same
from .thread_registers import ThreadRegisters
from .warp_barriers import Ordered, Trace

__all__ = ["Accessed", "Asked", "Execution", "Stored", "execute"]

EFFORT = 48000
"""Statements that are, four for each that has not been executed with the same numbers before."""
MOST_BYTES = 1 << 24
"""Of an array, in the memory of all threads of a block together."""


class Asked(NamedTuple):
    """An access that is asked for: its address, its bytes, the array that it is in, or "" where that is not known."""

    address: Address
    nbytes: int
    array: str
    reads: bool
    writes: bool


class Accessed(NamedTuple):
    """An access of a statement: the address that a number in each thread is, or None; multiples of the block's
    coordinates in it; the array; the threads that may make it, None for all.
    """

    place: int
    numbers: Any = None
    block: Shape3 = NO_BLOCK
    array: str = ""
    threads: Any = None


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


class _Stop(Exception):
    """Nothing more is known."""


def execute(
    graph: ControlFlowGraph, known: Known, barriers: set[int], accesses: dict[int, Asked], sizes: Callable[[str], int],
    starts: Callable[[str], int], effort: int = EFFORT, part: Sequence[tuple[int, int]] = (),
) -> Execution:
    """Execute a kernel for the threads of any block, of the whole grid or of a ``part`` of it.

    ``barriers`` are those that all threads of a block pass; ``accesses`` by their places. ``sizes`` are those of arrays
    in shared and local memory, ``starts`` the addresses of those in shared memory; 0 where it is not known.
    """
    run = _Run(graph, known, barriers, accesses, sizes, starts)
    run.most, run.trace.left = effort, run.trace.left * effort // EFFORT
    run.arithmetic.limit(part)
    done = False
    with contextlib.suppress(_Stop):
        run.run()
        done = True
    inside = run.intervals() if done else None
    cuts = frozenset(run.arithmetic.cuts)
    aligned, phases, warps = done and run.aligned, run.phases(), run.trace.ordered() if done else None
    return Execution(run.found, inside, aligned, run.early, phases, not done, cuts, run.effort, warps)


class _Run(ThreadRegisters):
    def __init__(
        self, graph: ControlFlowGraph, known: Known, barriers: set[int], accesses: dict[int, Asked],
        sizes: Callable[[str], int], starts: Callable[[str], int],
    ) -> None:
        super().__init__(graph, known, starts)
        self.barriers, self.accesses, self.sizes = barriers, accesses, cache(sizes)
        self.alive = self.every
        self.written: dict[str, Any] = {}
        """The bytes of arrays that are written; of local memory those of each thread."""
        self.settled: dict[str, Any] = {}
        """Those of shared memory before the last barrier."""
        self.full: set[str] = set()
        """The arrays that are written as a whole, whatever follows."""
        self.early: set[int] = set()
        self.found: list[Stored] = []
        self.passed: set[int] = set()
        self.waiting: dict[int, Any] = {}
        self.inside: dict[object, Accessed] = {}
        """The accesses since the last barrier, and those to global memory since the beginning."""
        self.outside: dict[object, Accessed] = {}
        self.phase: dict[object, Accessed] = {}
        """Those since the last barrier of all warps, each of its lanes."""
        self.phases_before: dict[object, list[Accessed]] = {}
        self.before: dict[object, list[Accessed]] = {}
        self.aligned = self.certain = True
        """Whether all threads have passed the same barriers; whether it is known which threads have not ended."""
        self.apart = 0
        """Ways of branches that nothing is known of, which are being followed."""
        self.most = EFFORT
        self.offsets: dict[object, tuple[Number, Number]] = {}
        self.places: dict[object, Any] = {}
        """The bytes of accesses of all threads; None beyond the array."""
        self.copies = PendingCopies(len(self.every))
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

    def intervals(self) -> list[list[Accessed]]:
        """The accesses from one barrier to the next, equal ones once; behind them all those to global memory."""
        self._close()
        return [*self.before.values(), list(self.outside.values())]

    def phases(self) -> list[list[Accessed]]:
        """The accesses from one barrier of all warps to the next."""
        self._close_phase()
        return list(self.phases_before.values())

    def _close_phase(self) -> None:
        if self.phase:
            self.phases_before.setdefault(frozenset(self.phase), list(self.phase.values()))
            self.phase = {}

    def _close(self) -> None:
        self._close_phase()
        if self.inside:
            self.before.setdefault(frozenset(self.inside), list(self.inside.values()))
            self.inside = {}

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
                raise _Stop
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
        number, expected = (statement.operand(name) for name in ("a", "b"))
        whole = Number(self.trace.warps * LANES)
        found = [whole if operand is None else self._operand(operand, where) for operand in (number, expected)]
        if any(each is None or each.origin or each.block != NO_BLOCK for each in found):
            self.trace.lose()
        elif where.any():
            numbers, threads = (each.numbers for each in found if each is not None)
            self.trace.arrive(numbers, threads, bool(statement.form.effects.waits), where)

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
        self._close()
        self.copies.barrier()
        for name, written in self.written.items():
            if not name.startswith(LOCAL_ORIGIN) and name not in self.full:
                self.settled[name] = written.copy()
                if written.all():
                    self.full.add(name)
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
                    if effects.barrier == "block" or place in self.barriers:
                        self.aligned = self.certain = False
                        self.trace.lose()
                    elif effects.ends:
                        self.certain = False
                    elif "async_group" in (effects.completes, effects.commits, effects.waits):
                        self.copies.lose()
                self._forget(place)

    # What they access

    def _copy(self, statement: Instruction, mask: Any) -> None:
        """``cp.async``, behind the store that stands for it, the end of a group, or a wait."""
        effects = statement.form.effects
        where = self._known(statement.guard, mask)
        if effects.completes:
            threads, size = mask if where is None else where, statement.operand("size")
            address: Any = statement.operands[next(a.operand for a in effects.accesses if a.writes)]
            value = self._operand(address.base, threads)
            if value is None or not value.origin or value.block != NO_BLOCK or not isinstance(size, Immediate):
                self.copies.lose()
            elif threads.any():
                numbers = value.numbers + address.offset
                self.copies.begin(value.origin, numbers, size.bits, self.sizes(value.origin), threads)
        elif where is None or self.apart:
            self.copies.lose()
        elif effects.commits:
            self.copies.commit(where)
        else:
            left = statement.operands[0] if statement.operands else None
            self.copies.wait(where, left.bits if isinstance(left, Immediate) else -1)

    def _access(self, place: int, statement: Instruction, mask: Any) -> None:
        asked = self.accesses[place]
        address = asked.address
        where = self._known(statement.guard, mask)
        threads = mask if where is None else where
        if threads is not self.every and not threads.any():
            return
        value = self._operand(address.base, threads)
        if value is None or not value.origin:
            self._access_somewhere(place, threads)
            return
        value = self._offset(place, address, value)
        if not asked.array.startswith(LOCAL_ORIGIN):
            self._note(place, value, threads)
        size = self.sizes(value.origin)
        if size and not self.trace.lost and not value.origin.startswith(LOCAL_ORIGIN):
            self._trace(place, value, threads, where is not None)
        if value.origin in self.full and not self.copies.touch(value.origin):
            return
        if size and size * (len(self.every) if value.origin.startswith(LOCAL_ORIGIN) else 1) <= MOST_BYTES:
            self._mark(place, asked, value, size, threads, where is not None)
        elif asked.reads:
            self.early.add(place)

    def _trace(self, place: int, value: Number, threads: Any, certain: bool) -> None:
        """Note an access to shared memory beside barriers of some warps."""
        asked, certain = self.accesses[place], certain and self.certain and not self.apart
        if value.block == NO_BLOCK:
            self.trace.access(place, value.origin, value.numbers, asked.nbytes, threads, asked.writes, certain)
        else:
            self.trace.lose_array(value.origin)

    def _offset(self, place: int, address: Address, value: Number) -> Number:
        """The number that the address of an access is, by that of its register; the same one for the same."""
        found = self.offsets.get((place, id(value)))
        if found is None:
            numbers = value.numbers + address.offset
            if isinstance(address.base, Register):
                numbers = cut(numbers, address.base.type.bits)
            found = self.offsets[place, id(value)] = self._one(value._replace(numbers=numbers)), value
        return found[0]

    def _note(self, place: int, value: Number, threads: Any) -> None:
        """Note an access that is known."""
        everyone = threads is self.every or bool(threads.all())
        key = place, id(value), None if everyone else threads.tobytes()
        table = self.inside if self.sizes(value.origin) else self.outside
        if key not in table:
            which = None if everyone else threads
            table[key] = Accessed(place, value.numbers, value.block, value.origin, which)
        if table is self.inside:
            self.phase[key] = table[key]

    def _access_somewhere(self, place: int, threads: Any) -> None:
        """An access at an address that is not known."""
        asked = self.accesses[place]
        self.inside[place] = self.phase[place] = Accessed(place)
        if not asked.array or self.sizes(asked.array):
            self.trace.lose_array(asked.array)
        local = asked.array.startswith(LOCAL_ORIGIN)
        table = (self.written if local else self.settled).get(asked.array)
        whole = table is not None and (table[threads] if local else table).all()
        if asked.reads and (not whole or self.copies.touch(asked.array)):
            self.early.add(place)

    def _mark(self, place: int, asked: Asked, value: Number, size: int, threads: Any, certain: bool) -> None:
        """Note what is read early, and what is written."""
        name, local = value.origin, value.origin.startswith(LOCAL_ORIGIN)
        where = self._bytes(place, asked.nbytes, value, size, threads)
        if where is None:
            if asked.reads:
                self.early.add(place)
            return
        if asked.reads:
            table = (self.written if local else self.settled).get(name)
            if table is None or not table[where].all() or (not local and self.copies.touch(name, where)):
                self.early.add(place)
        elif certain and (local or self.certain):
            if name not in self.written:
                self.written[name] = np.zeros((len(threads), size) if local else size, bool)
            self.written[name][where] = True
            if local and not self.apart and self.written[name].all():
                self.full.add(name)

    def _bytes(self, place: int, nbytes: int, value: Number, size: int, threads: Any) -> Any:
        """The bytes of an access as an index of a table; None where they are not all in the array."""
        key = place, id(value)
        if threads is self.every and key in self.places:
            return self.places[key]
        starts = np.broadcast_to(value.numbers, threads.shape)[threads]
        where: Any = None
        if value.block == NO_BLOCK and int(starts.min()) >= 0 and int(starts.max()) + nbytes <= size:
            where = (starts[:, None] + np.arange(nbytes),)
            if value.origin.startswith(LOCAL_ORIGIN):
                where = (np.flatnonzero(threads)[:, None], *where)
        if threads is self.every:
            self.places[key] = where
        return where
