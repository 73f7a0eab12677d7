"""What the threads of a block access, and which memory is certainly written, as a kernel is executed for all at once.

Which statements are executed, and by which threads, :mod:`.block_execution` says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Address, Immediate, Instruction, Register
from ..machine.layout import LOCAL_ORIGIN
from .divergence import Shape3
from .linear_values import NO_BLOCK
from .pending_copies import PendingCopies
from .static_values import Known
from .thread_numbers import Number, cut
from .thread_registers import ThreadRegisters
from .warp_barriers import Trace

__all__ = ["Accessed", "Asked", "ThreadAccesses"]

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


class ThreadAccesses(ThreadRegisters):
    """The accesses since barriers of each kind, and the bytes that are written."""

    trace: Trace

    def __init__(
        self, graph: ControlFlowGraph, known: Known, starts: Callable[[str], int], accesses: dict[int, Asked],
        sizes: Callable[[str], int],
    ) -> None:
        super().__init__(graph, known, starts)
        self.accesses, self.sizes = accesses, cache(sizes)
        self.alive = self.every
        self.written: dict[str, Any] = {}
        """The bytes of arrays that are written; of local memory those of each thread."""
        self.settled: dict[str, Any] = {}
        """Those of shared memory before the last barrier."""
        self.full: set[str] = set()
        """The arrays that are written as a whole, whatever follows."""
        self.early: set[int] = set()
        self.inside: dict[object, Accessed] = {}
        """The accesses since the last barrier, and those to global memory since the beginning."""
        self.outside: dict[object, Accessed] = {}
        self.phase: dict[object, Accessed] = {}
        """Those since the last barrier of all warps, each of its lanes."""
        self.phases_before: dict[object, list[Accessed]] = {}
        self.before: dict[object, list[Accessed]] = {}
        self.certain = True
        """Whether it is known which threads have not ended."""
        self.apart = 0
        """Ways of branches that nothing is known of, which are being followed."""
        self.offsets: dict[object, tuple[Number, Number]] = {}
        self.places: dict[object, Any] = {}
        """The bytes of accesses of all threads; None beyond the array."""
        self.copies = PendingCopies(len(self.every))

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

    def _settle(self) -> None:
        """All threads of the block have met at a barrier."""
        self._close()
        self.copies.barrier()
        for name, written in self.written.items():
            if not name.startswith(LOCAL_ORIGIN) and name not in self.full:
                self.settled[name] = written.copy()
                if written.all():
                    self.full.add(name)

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
