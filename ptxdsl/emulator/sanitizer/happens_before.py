"""What is ordered before what, where it takes more than a barrier of the whole block: a sparse vector clock a thread.

A clock says up to which segment a thread knows what others did: of a block as a whole (key ``b``), of one of its warps
(``(b, w)``), or of one thread (``(b, w, lane)``). Clocks are dicts that nobody changes once they are made, so threads
that know the same share one. The rules are those of the PTX memory model (ISA manual, "Memory Consistency Model"): a
release or a fence before a strong write publishes what the thread knows, an acquire or a fence behind a strong read
takes it over, and read-modify-write operations hand on what was published before.

Two things are taken more kindly than the axioms would have it, since NVIDIA's own guides and libraries rely on them: a
barrier of the block or warp counts as the fence behind a strong read of any of its threads, and hands on the fences
before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BlockOrder", "Clock", "Meeting", "Order", "Phase", "Thread", "join", "knows"]

Clock = dict[Any, int]
Thread = tuple[int, int]
Wide = dict[bool, Clock]
"""A clock for what reaches the whole GPU (True) and one for what reaches the block only (False)."""


def join(*clocks: Clock) -> Clock:
    """The clock that knows whatever one of them knows."""
    best = max(clocks, key=len, default={})
    result = best
    for clock in clocks:
        if clock is best:
            continue
        for key, segment in clock.items():
            if result.get(key, 0) < segment:
                if result is best:
                    result = dict(best)
                result[key] = segment
    return result


def knows(clock: Clock, thread: tuple[int, int, int], segment: int, several: bool) -> bool:
    """Whether what a thread did in a segment is known; ``several`` lanes of its warp did it, the thread is one."""
    block, warp, _ = thread
    if clock.get(block, 0) >= segment or clock.get((block, warp), 0) >= segment:
        return True
    lanes = range(32) if several else (thread[2],)
    return all(clock.get((block, warp, lane), 0) >= segment for lane in lanes)


@dataclass
class Meeting:
    """One use of a named barrier: what those who have come know together."""

    clock: Clock = field(default_factory=dict)
    warps: int = 0


class BlockOrder:
    """What the threads of one block know."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.common: Clock = {}
        self.own: dict[Thread, Clock] = {}
        self.read: dict[Thread, Wide] = {}
        self.fenced: dict[Thread, Wide] = {}
        self.fences: Wide = {}
        self.barriers = 0
        self.meetings: dict[int, int] = {}
        self.open: dict[int, Meeting] = {}
        self.waits: dict[int, Meeting] = {}

    def clock(self, thread: Thread) -> Clock:
        """What a thread has learned of others."""
        return self.own.get(thread, self.common)

    def barrier(self, count: int, floor: int) -> None:
        """The whole block has met since we last looked."""
        if count == self.barriers:
            return
        self.barriers = count
        read = [clock for wide in self.read.values() for clock in wide.values()]
        self.common = join(self.common, *self.own.values(), *read, {self.block: floor - 1})
        for wide in self.fenced.values():
            self._keep(self.fences, wide)
        for table in (self.own, self.read, self.fenced):
            table.clear()

    @staticmethod
    def _keep(into: Wide, more: Wide) -> None:
        for wide, clock in more.items():
            into[wide] = join(into.get(wide, {}), clock)

    def warp_met(self, warp: int, before: int) -> None:
        """All lanes of a warp have met: each knows what one of them knew, and what all did before that segment."""
        if self.meetings.get(warp) == before:
            return
        self.meetings[warp] = before
        mine = [self.own[thread] for thread in list(self.own) if thread[0] == warp]
        if mine or any(thread[0] == warp for thread in (*self.read, *self.fenced)):
            self.meet([(warp, lane) for lane in range(32)], mine or [self.common])

    def meet(self, threads: list[Thread], clocks: list[Clock]) -> None:
        """Threads meet that know the clocks; as with a barrier of the block, fences and strong reads are shared."""
        read = [clock for thread in threads for clock in self.read.pop(thread, {}).values()]
        whole = join(*clocks, *read)
        fenced: Wide = {}
        for thread in threads:
            self._keep(fenced, self.fenced.get(thread, {}))
        for thread in threads:
            self.own[thread] = whole
            if fenced:
                self.fenced[thread] = dict(fenced)

    def fence(self, thread: Thread, view: Clock, wide: bool) -> None:
        """A fence: takes over what strong reads before it saw, and marks what a strong write behind it publishes."""
        read = self.read.pop(thread, {})
        taken = list(read.values())
        self.own[thread] = view = join(view, *taken)
        self._keep(self.fenced.setdefault(thread, {}), {wide: view})


@dataclass
class Phase:
    """What those know who have arrived at an mbarrier: in the phase that goes on, and in those before it.

    ``made`` is the tag of who has initialised it.
    """

    parity: int
    made: int = 0
    pending: Clock = field(default_factory=dict)
    done: Clock = field(default_factory=dict)

    def turn(self, parity: int) -> None:
        """Its phase has this parity now."""
        if parity != self.parity:
            self.parity, self.done, self.pending = parity, join(self.done, self.pending), {}


class Order:
    """What threads know of each other in one launch, and what they have published at which addresses."""

    def __init__(self) -> None:
        self.blocks: dict[int, BlockOrder] = {}
        self.published: dict[int, dict[int | None, Clock]] = {}
        self.mbarriers: dict[int, Phase] = {}
        self.clusters: dict[Any, Clock] = {}
        """What those know who have arrived at the barrier of a cluster, by its index and the phase."""

    def block(self, number: int) -> BlockOrder:
        """The order of a block."""
        found = self.blocks.get(number)
        if found is None:
            found = self.blocks[number] = BlockOrder(number)
        return found

    def write(
        self, block: BlockOrder, address: int, clocks: Iterable[tuple[bool, Clock]], keeps: bool
    ) -> None:
        """A strong write publishes clocks; unless it is part of a read-modify-write, it ends what stood there."""
        entry = dict(self.published.get(address, {})) if keeps else {}
        for wide, clock in clocks:
            key = None if wide else block.block
            entry[key] = join(entry.get(key, {}), clock)
        if entry or address in self.published:
            self.published[address] = entry

    def fenced(self, block: BlockOrder, thread: Thread) -> Iterable[tuple[bool, Clock]]:
        """What a strong write without an order of its own publishes, thanks to a fence before it."""
        for wide in (True, False):
            found = [table[wide] for table in (block.fences, block.fenced.get(thread, {})) if wide in table]
            if found:
                yield wide, join(*found)

    def read(self, block: BlockOrder, thread: Thread, address: int, acquires: bool, view: Clock) -> None:
        """A strong read sees what was published; at once if it acquires, else with the next fence."""
        entry = self.published.get(address)
        if not entry:
            return
        clock = join(*[c for c in (entry.get(None), entry.get(block.block)) if c is not None])
        if acquires:
            block.own[thread] = join(view, clock)
        else:
            seen = block.read.setdefault(thread, {})
            seen[True] = join(seen.get(True, {}), clock)
