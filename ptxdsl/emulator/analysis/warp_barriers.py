"""Barriers of some warps of a block: which accesses they order, where that does not depend on who comes first.

Warps hand tiles over by ``bar.arrive`` and ``bar.sync``. What each of them does, one thing after the other, is the
*trace* of a kernel's execution (:mod:`.block_execution`). The n-th time that a warp comes to a barrier is in the n-th
phase of the barrier, if as many warps use it as it waits for, and none comes again before it knows that all others have
come: by a wait there, or by other barriers in between. Any order of the warps has the same phases then, for the first
arrival in another phase would come before one that is known to come before it. So the warps are run in one order, with
a vector clock each, and each access is compared with those before it of the same bytes, as FastTrack does.

Where it is not plain which warps arrive, or whether with all of their lanes, nothing is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..machine.layout import LANES
from .thread_numbers import Vector

__all__ = ["Ordered", "Trace"]

MOST_STEPS = 6000
"""Steps of all warps together, which take some 20 µs each; more where execution may take longer."""


class _Access(NamedTuple):
    """An access of some threads to an array; ``certain``: all of them make it."""

    place: int
    array: str
    starts: Vector
    nbytes: int
    writes: bool
    certain: bool


class _Arrival(NamedTuple):
    """An arrival at the barriers of these numbers, for so many threads, to wait there or not."""

    numbers: Vector
    expected: Vector
    waits: bool


_Step = _Access | _Arrival | None
"""None is a barrier of the lanes of each warp."""


class Ordered(NamedTuple):
    """The arrays in which accesses may race, and the places of reads that may find memory unwritten."""

    racing: set[str]
    early: set[int]


class _Unclear(Exception):
    """Which arrivals make up a phase may depend on the order of the warps."""


class Trace:
    """What the threads of a block do, in the order of each; nothing is known where it is not ``asked`` for."""

    def __init__(self, threads: int, sizes: Callable[[str], int], asked: bool = True) -> None:
        self.threads, self.sizes = threads, sizes
        self.warps = -(-threads // LANES)
        self.steps: list[tuple[_Step, list[int], Any]] = []
        self.left = MOST_STEPS
        self.racing: set[str] = set()
        self.lost = not asked
        """Whether nothing is known any more."""

    def lose(self) -> None:
        """Take all arrays to be accessed in any order."""
        self.lost = True

    def lose_array(self, name: str) -> None:
        """Threads access an array anywhere, or any array."""
        if name:
            self.racing.add(name)
        else:
            self.lose()

    def access(
        self, place: int, array: str, starts: Vector, nbytes: int, threads: Any, writes: bool, certain: bool
    ) -> None:
        """Threads access an array, from byte ``starts`` on."""
        self._note(_Access(place, array, starts, nbytes, writes, certain), threads)

    def arrive(self, numbers: Vector, expected: Vector, waits: bool, threads: Any) -> None:
        """Threads come to a barrier, with all of their warp."""
        if self._are_whole(threads):
            self._note(_Arrival(numbers, expected, waits), threads)
        else:
            self.lose()

    def meet(self, threads: Any) -> None:
        """Threads come to a barrier of the lanes of their warp; where some of it do not, that counts for nothing."""
        if self._are_whole(threads):
            self._note(None, threads)

    def _are_whole(self, threads: Any) -> bool:
        counts = np.add.reduceat(threads, range(0, self.threads, LANES), dtype=np.int64)
        sizes = np.add.reduceat(np.ones(self.threads), range(0, self.threads, LANES), dtype=np.int64)
        return bool(((counts == 0) | (counts == sizes)).all())

    def _note(self, step: _Step, threads: Any) -> None:
        if self.lost:
            return
        warps = np.flatnonzero(np.logical_or.reduceat(threads, range(0, self.threads, LANES))).tolist()
        self.left -= len(warps)
        if self.left < 0:
            self.lose()
        else:
            self.steps.append((step, warps, threads))

    def ordered(self) -> Ordered | None:
        """What the barriers order; None where that is not known."""
        if self.lost:
            return None
        try:
            return _Warps(self).run()
        except _Unclear:
            return None


class _Bytes:
    """The last accesses to each byte of an array: the thread, and its warp's epoch."""

    def __init__(self, size: int, warps: int) -> None:
        self.writer, self.written_in = np.full(size, -1), np.zeros(size, np.int64)
        self.reader, self.read_in = np.full((warps, size), -1), np.zeros((warps, size), np.int64)
        self.certain = np.zeros(size, bool)
        """Whether it has certainly been written."""


_SEVERAL = -2
"""Stands for more than one thread of a warp."""


class _Warps:
    """The warps of a block, run from barrier to barrier.

    The epoch of a warp counts the barriers that it has come to. A clock has for each warp the epoch up to which all of
    its accesses come before what this warp does now; ``alike`` is that of the lanes of the warp among each other.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace, count = trace, trace.warps
        self.queues: list[list[tuple[_Step, Any]]] = [[] for _ in range(count)]
        self.users: dict[int, set[int]] = defaultdict(set)
        self.expected: dict[int, set[int]] = defaultdict(set)
        for step, warps, threads in trace.steps:
            for warp in warps:
                self.queues[warp].append((step, threads))
                if isinstance(step, _Arrival):
                    number, expected = self._of_warp(step.numbers, warp), self._of_warp(step.expected, warp)
                    self.users[number].add(warp)
                    self.expected[number].add(expected)
        self.clocks = np.zeros((count, count), np.int64)
        self.alike = np.zeros(count, np.int64)
        np.fill_diagonal(self.clocks, 1)
        self.uses: dict[tuple[int, int], int] = defaultdict(int)
        self.phases: dict[tuple[int, int], dict[int, Any]] = defaultdict(dict)
        """What each warp knew that has arrived, by the barrier and the number of its phase."""
        self.bytes: dict[str, _Bytes] = {}
        self.found = Ordered(set(trace.racing), set())

    def _of_warp(self, numbers: Vector, warp: int) -> int:
        """The one number that the lanes of a warp have."""
        if isinstance(numbers, int):
            return numbers
        lanes = numbers[warp * LANES : warp * LANES + LANES]
        if (lanes != lanes[0]).any():
            raise _Unclear
        return int(lanes[0])

    def run(self) -> Ordered:
        """Run all warps to their ends."""
        for number, users in self.users.items():
            if self.expected[number] != {len(users) * LANES}:
                raise _Unclear
        at = [0] * len(self.queues)
        waits: list[tuple[int, int] | None] = [None] * len(self.queues)
        moved = True
        while moved:
            moved = False
            for warp, queue in enumerate(self.queues):
                while at[warp] < len(queue) and self._goes_on(warp, waits[warp]):
                    waits[warp] = self._step(warp, *queue[at[warp]])
                    at[warp] += 1
                    moved = True
                if at[warp] == len(queue) and self._goes_on(warp, waits[warp]):
                    waits[warp] = None
        if any(phase is not None for phase in waits):
            raise _Unclear
        return self.found

    def _goes_on(self, warp: int, phase: tuple[int, int] | None) -> bool:
        """Whether a warp does not wait, or the phase is complete that it waits for: then it knows what all know."""
        if phase is None:
            return True
        arrived = self.phases[phase]
        if len(arrived) < len(self.users[phase[0]]):
            return False
        self.alike[warp] = arrived[warp][warp]
        np.maximum.reduce([self.clocks[warp], *arrived.values()], out=self.clocks[warp])
        return True

    def _step(self, warp: int, step: _Step, threads: Any) -> tuple[int, int] | None:
        """Do the next thing that a warp does; the phase that it waits for."""
        if isinstance(step, _Access):
            self._access(warp, step, threads)
            return None
        if step is None:
            self.alike[warp] = self.clocks[warp, warp]
            self.clocks[warp, warp] += 1
            return None
        number = self._of_warp(step.numbers, warp)
        phase = number, self.uses[number, warp]
        self.uses[number, warp] += 1
        if phase[1]:
            before = self.phases[number, phase[1] - 1]
            if any(each not in before or before[each][each] > self.clocks[warp, each] for each in self.users[number]):
                raise _Unclear
        self.phases[phase][warp] = self.clocks[warp].copy()
        self.clocks[warp, warp] += 1
        return phase if step.waits else None

    def _access(self, warp: int, step: _Access, threads: Any) -> None:
        """Compare an access with those before it of the same bytes."""
        lanes = np.flatnonzero(threads[warp * LANES : warp * LANES + LANES]) + warp * LANES
        starts = np.broadcast_to(step.starts, threads.shape)[lanes]
        size = self.trace.sizes(step.array)
        if int(starts.min()) < 0 or int(starts.max()) + step.nbytes > size:
            self.found.racing.add(step.array)
            return
        if step.array not in self.bytes:
            self.bytes[step.array] = _Bytes(size, self.trace.warps)
        memory = self.bytes[step.array]
        where = starts[:, None] + np.arange(step.nbytes)
        mine = np.broadcast_to(lanes[:, None], where.shape)
        known = np.append(self.clocks[warp], 0)  # 0 for bytes that nobody has written
        known[warp] = self.alike[warp]
        writer = memory.writer[where]
        good = (memory.written_in[where] <= known[np.where(writer < 0, -1, writer // LANES)]) | (writer == mine)
        if step.writes:
            readers = (memory.read_in[:, where] <= known[:-1, None, None]) | (memory.reader[:, where] == mine)
            good &= readers.all(axis=0)
            self._write(memory, where, mine, int(self.clocks[warp, warp]), step)
        else:
            if not memory.certain[where].all():
                self.found.early.add(step.place)
            self._read(memory, where, mine, warp)
        if not good.all():
            self.found.racing.add(step.array)

    def _write(self, memory: _Bytes, where: Any, mine: Any, epoch: int, step: _Access) -> None:
        memory.writer[where], memory.written_in[where] = mine, epoch
        if step.certain:
            memory.certain[where] = True
        if (memory.writer[where] != mine).any():
            self.found.racing.add(step.array)

    def _read(self, memory: _Bytes, where: Any, mine: Any, warp: int) -> None:
        reader, epoch = memory.reader[warp], memory.read_in[warp]
        others = (epoch[where] > self.alike[warp]) & (reader[where] != mine)
        reader[where], epoch[where] = np.where(others, _SEVERAL, mine), self.clocks[warp, warp]
        again = where[(reader[where] != mine)]
        reader[again] = _SEVERAL
