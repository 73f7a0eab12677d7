"""Happens-before among threads beyond barriers of the whole block: a sparse vector clock for each thread.

A clock holds the last epoch that happens before a thread's next access: of a block as a whole (key ``b``), of one of
its warps (``(b, w)``), or of one thread (``(b, w, lane)``). Clocks are dicts that are never changed once made, so
threads with equal clocks share one. The rules are those of the PTX memory model (ISA manual, "Memory Consistency
Model"): a release, or a fence before a strong write, publishes the thread's clock; an acquire, or a fence after a
strong read, joins it; read-modify-write operations pass on what was published before.

Two rules are more permissive than the axioms, since NVIDIA's own guides and libraries rely on them: a barrier of the
block or warp counts as the fence after a strong read of any of its threads, and passes on the fences before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BlockOrder", "Clock", "HappensBefore", "Rendezvous", "Thread", "covers", "join"]

Clock = dict[Any, int]
Thread = tuple[int, int]
Scoped = dict[bool, Clock]
"""A clock at the scope of the whole GPU (True) and one at that of the block (False)."""


def join(*clocks: Clock) -> Clock:
    """The least clock that covers all of these."""
    best = max(clocks, key=len, default={})
    result = best
    for clock in clocks:
        if clock is best:
            continue
        for key, epoch in clock.items():
            if result.get(key, 0) < epoch:
                if result is best:
                    result = dict(best)
                result[key] = epoch
    return result


def covers(clock: Clock, thread: tuple[int, int, int], epoch: int, several: bool) -> bool:
    """Whether an epoch of a thread is in a clock; ``several``: of all lanes of its warp."""
    block, warp, _ = thread
    if clock.get(block, 0) >= epoch or clock.get((block, warp), 0) >= epoch:
        return True
    lanes = range(32) if several else (thread[2],)
    return all(clock.get((block, warp, lane), 0) >= epoch for lane in lanes)


@dataclass
class Rendezvous:
    """One use of a named barrier: the joined clocks of the warps that have arrived."""

    clock: Clock = field(default_factory=dict)
    warps: int = 0


class BlockOrder:
    """The clocks of the threads of one block.

    ``read`` holds what strong reads of a thread have seen, which its next fence acquires; ``fenced`` what its next
    strong write releases.
    """

    def __init__(self, block: int) -> None:
        self.block = block
        self.common: Clock = {}
        self.own: dict[Thread, Clock] = {}
        self.read: dict[Thread, Scoped] = {}
        self.fenced: dict[Thread, Scoped] = {}
        self.fences: Scoped = {}
        """As ``fenced``, of all threads."""
        self.barriers = 0
        self.warp_floors: dict[int, int] = {}
        self.open: dict[int, Rendezvous] = {}
        self.waits: dict[int, Rendezvous] = {}
        """Named barriers: those where warps still arrive, by number, and those where a warp waits, by warp."""

    def clock(self, thread: Thread) -> Clock:
        """What a thread has acquired of others."""
        return self.own.get(thread, self.common)

    def barrier(self, count: int, floor: int) -> None:
        """The whole block has passed so many barriers."""
        if count == self.barriers:
            return
        self.barriers = count
        read = [clock for scoped in self.read.values() for clock in scoped.values()]
        self.common = join(self.common, *self.own.values(), *read, {self.block: floor - 1})
        for scoped in self.fenced.values():
            self._join_into(self.fences, scoped)
        for table in (self.own, self.read, self.fenced):
            table.clear()

    @staticmethod
    def _join_into(into: Scoped, more: Scoped) -> None:
        for wide, clock in more.items():
            into[wide] = join(into.get(wide, {}), clock)

    def warp_barrier(self, warp: int, floor: int) -> None:
        """All lanes of a warp have passed a barrier of the warp, in the epoch before ``floor``."""
        if self.warp_floors.get(warp) == floor:
            return
        self.warp_floors[warp] = floor
        mine = [self.own[thread] for thread in list(self.own) if thread[0] == warp]
        if mine or any(thread[0] == warp for thread in (*self.read, *self.fenced)):
            self.synchronise([(warp, lane) for lane in range(32)], mine or [self.common])

    def synchronise(self, threads: list[Thread], clocks: list[Clock]) -> None:
        """Threads pass a barrier among them; as with a barrier of the block, fences and strong reads are shared."""
        read = [clock for thread in threads for clock in self.read.pop(thread, {}).values()]
        joined = join(*clocks, *read)
        fenced: Scoped = {}
        for thread in threads:
            self._join_into(fenced, self.fenced.get(thread, {}))
        for thread in threads:
            self.own[thread] = joined
            if fenced:
                self.fenced[thread] = dict(fenced)

    def fence(self, thread: Thread, clock: Clock, wide: bool) -> None:
        """A fence: acquires what strong reads before it saw, and marks what a strong write after it releases."""
        read = self.read.pop(thread, {})
        self.own[thread] = clock = join(clock, *read.values())
        self._join_into(self.fenced.setdefault(thread, {}), {wide: clock})

    def released(self, thread: Thread) -> Iterable[tuple[bool, Clock]]:
        """What a strong write without release semantics publishes, thanks to a fence before it."""
        for wide in (True, False):
            found = [table[wide] for table in (self.fences, self.fenced.get(thread, {})) if wide in table]
            if found:
                yield wide, join(*found)


class HappensBefore:
    """The order of all threads of a launch: the clocks of each block, and those published at addresses."""

    def __init__(self) -> None:
        self.blocks: dict[int, BlockOrder] = {}
        self.published: dict[int, dict[int | None, Clock]] = {}

    def block(self, number: int) -> BlockOrder:
        found = self.blocks.get(number)
        if found is None:
            found = self.blocks[number] = BlockOrder(number)
        return found

    def write(self, block: BlockOrder, address: int, clocks: Iterable[tuple[bool, Clock]], keeps: bool) -> None:
        """A strong write publishes clocks; unless it is a read-modify-write, it replaces those published before."""
        entry = dict(self.published.get(address, {})) if keeps else {}
        for wide, clock in clocks:
            key = None if wide else block.block
            entry[key] = join(entry.get(key, {}), clock)
        if entry or address in self.published:
            self.published[address] = entry

    def read(self, block: BlockOrder, thread: Thread, address: int, acquires: bool, clock: Clock) -> None:
        """A strong read acquires what was published; at once with acquire semantics, else by the next fence."""
        entry = self.published.get(address)
        if not entry:
            return
        seen = join(*[c for c in (entry.get(None), entry.get(block.block)) if c is not None])
        if acquires:
            block.own[thread] = join(clock, seen)
        else:
            table = block.read.setdefault(thread, {})
            table[True] = join(table.get(True, {}), seen)
