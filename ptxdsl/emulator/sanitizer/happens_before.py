"""Happens-before among threads beyond barriers of the whole block: a sparse vector clock for each thread.

A clock holds the last epoch that happens before a thread's next access: of a block as a whole (key ``b``), of one of
its warps (``(b, w)``), or of one thread (``(b, w, lane)``). Clocks are dicts that are never changed once made, so
threads with equal clocks share one. The rules are those of the PTX memory model (ISA manual, "Memory Consistency
Model"): a release, or a fence before a strong write, publishes the thread's clock; an acquire, or a fence after a
strong read, joins it; read-modify-write operations pass on what was published before. Both sides must reach each other
(be morally strong): the scopes of the write and of the read that observes it, of each link of a chain of
read-modify-writes, and of the first operation of the release and the last one of the acquire. Scopes are levels: 1 for
the block, 2 for its cluster, 3 for the GPU and beyond. That two ``fence.sc`` come in some order is no order here, since
another run may have the other one.

Two rules are more permissive than the axioms, since NVIDIA's own guides and libraries rely on them: a barrier of the
block or warp counts as the fence after a strong read of any of its threads, unless a fence stands there already whose
scope is too small, and passes on the fences before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from ..machine.layout import LANES

__all__ = [
    "BlockOrder", "Clock", "HappensBefore", "Places", "Published", "Rendezvous", "Thread", "acquirable", "covers",
    "join", "publish", "reaches",
]

T = TypeVar("T")
Clock = dict[Any, int]
Thread = tuple[int, int]
Scoped = dict[int, Clock]
"""Clocks by level."""
Published = dict[Any, Clock]
"""What was released, by who may acquire it: all (None), the threads of a cluster, those of a block (its number)."""


def _distinct(clocks: Iterable[Clock]) -> Iterable[Clock]:
    return {id(clock): clock for clock in clocks}.values()


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


def united(block: int, clocks: Iterable[Clock]) -> Clock:
    """What threads of a block have beyond what they have acquired, with one number for a whole warp."""
    found: Clock = {}
    for clock in clocks:
        for key, epoch in clock.items():
            if found.get(key, -1) < epoch:
                found[key] = epoch
    lanes: dict[int, list[int]] = {}
    for key, epoch in found.items():
        if type(key) is tuple and len(key) == 3:
            lanes.setdefault(key[1], []).append(epoch)
    for warp, epochs in lanes.items():
        if len(epochs) == LANES:
            least = found[block, warp] = max(found.get((block, warp), 0), min(epochs))
            for lane in range(LANES):
                if found[block, warp, lane] <= least:
                    del found[block, warp, lane]
    return found


def covers(clock: Clock, thread: tuple[int, int, int], epoch: int, several: bool) -> bool:
    """Whether an epoch of a thread is in a clock; ``several``: of all lanes of its warp."""
    block, warp, _ = thread
    if clock.get(block, 0) >= epoch or clock.get((block, warp), 0) >= epoch:
        return True
    lanes = range(32) if several else (thread[2],)
    return all(clock.get((block, warp, lane), 0) >= epoch for lane in lanes)


def reaches(one: BlockOrder, level: int, other: BlockOrder, other_level: int) -> bool:
    """Whether operations of threads of two blocks, at these levels, are morally strong."""
    least = min(level, other_level)
    if one is other:
        return least > 0
    return least == 3 or (least == 2 and one.cluster == other.cluster)


def publish(into: Published, block: BlockOrder, level: int, clock: Clock, narrow: bool = True) -> None:
    """Release a clock at a level; ``narrow``: some acquire at less than the scope of the GPU."""
    for key in [None, ("cluster", block.cluster), block.block][3 - level : 3 if narrow or level < 3 else 1]:
        into[key] = join(into.get(key, {}), clock)


def acquirable(published: Published, block: BlockOrder, level: int) -> list[Clock]:
    """What a thread of a block acquires at a level."""
    keys = [None, ("cluster", block.cluster), block.block][3 - level :]
    return [published[key] for key in keys if key in published]


class _Fenced(NamedTuple):
    """What a fence lets a strong write release: what its thread had acquired, which threads share, and the rest."""

    acquired: Clock
    own: Clock


@dataclass
class Rendezvous:
    """One use of a named barrier: the joined clocks of the warps that have arrived."""

    clock: Clock = field(default_factory=dict)
    warps: int = 0


class BlockOrder:
    """The clocks of the threads of one block.

    ``read`` holds what strong reads of a thread have seen, which its next fence acquires; ``beyond`` what is left of
    that after a fence whose scope is too small; ``fenced`` what its next strong write releases.
    """

    def __init__(self, block: int, cluster: Any = None) -> None:
        self.block, self.cluster = block, cluster
        self.common: Clock = {}
        self.own: dict[Thread, Clock] = {}
        self.read: dict[Thread, Published] = {}
        self.beyond: dict[Thread, Published] = {}
        self.fenced: dict[Thread, dict[int, _Fenced]] = {}
        self.fenced_warps: dict[int, dict[int, tuple[Clock, list[Clock]]]] = {}
        """As ``fenced``, of fences that all lanes of a warp have executed together."""
        self.fences: Scoped = {}
        """As ``fenced``, of all threads."""
        self.seen: dict[Thread, Clock] = {}
        self.seen_by_all: Clock = {}
        """What threads have seen of others, ordered or not (:mod:`.hand_over`)."""
        self.barriers = 0
        self.warp_floors: dict[int, int] = {}
        self.open: dict[int, Rendezvous] = {}
        self.waits: dict[int, Rendezvous] = {}
        """Named barriers: those where warps still arrive, by number, and those where a warp waits, by warp."""

    def clock(self, thread: Thread) -> Clock:
        """What a thread has acquired of others."""
        return self.own.get(thread, self.common)

    def seen_by(self, thread: Thread) -> Clock:
        """What a thread has seen."""
        return self.seen.get(thread, self.seen_by_all)

    def barrier(self, count: int, floor: int) -> None:
        """The whole block has passed so many barriers."""
        if count == self.barriers:
            return
        self.barriers = count
        if self.seen:
            self.seen_by_all = join(self.seen_by_all, *self.seen.values())
            self.seen.clear()
        read = [clock for scoped in self.read.values() for clock in scoped.values()]
        self.common = join(self.common, *_distinct(self.own.values()), *_distinct(read), {self.block: floor - 1})
        for warp in list(self.fenced_warps):
            self._spread(warp)
        self.join_into(self.fences, self._joined(self.fenced))
        for table in (self.own, self.read, self.fenced):
            table.clear()

    def _spread(self, warp: int) -> None:
        """Note a fence of all lanes of a warp for each of them."""
        for level, (acquired, owns) in self.fenced_warps.pop(warp, {}).items():
            for lane, own in enumerate(owns):
                self._note(warp, lane, level, _Fenced(acquired, own))

    def _note(self, warp: int, lane: int, level: int, fenced: _Fenced) -> None:
        scoped = self.fenced.setdefault((warp, lane), {})
        before = scoped.get(level)
        if before is not None and before.acquired is not fenced.acquired:
            fenced = _Fenced(join(before.acquired, fenced.acquired), fenced.own)
        if before is not None:
            fenced = _Fenced(fenced.acquired, join(before.own, fenced.own))
        scoped[level] = fenced

    def _joined(self, threads: Iterable[Thread]) -> Scoped:
        """What any of these threads may release."""
        entries: dict[int, list[_Fenced]] = {}
        for thread in threads:
            for level, fenced in self.fenced.get(thread, {}).items():
                entries.setdefault(level, []).append(fenced)
        return {
            level: join(united(self.block, (each.own for each in found)), *_distinct(each.acquired for each in found))
            for level, found in entries.items()
        }

    @staticmethod
    def join_into(into: dict[Any, Clock], more: dict[Any, Clock]) -> None:
        for key, clock in more.items():
            into[key] = join(into.get(key, {}), clock)

    def warp_barrier(self, warp: int, floor: int) -> None:
        """All lanes of a warp have passed a barrier of the warp, in the epoch before ``floor``."""
        if self.warp_floors.get(warp) == floor:
            return
        self.warp_floors[warp] = floor
        mine = [self.own[thread] for thread in list(self.own) if thread[0] == warp]
        tables = (*self.read, *self.fenced, *self.seen)
        if mine or warp in self.fenced_warps or any(thread[0] == warp for thread in tables):
            self.synchronise([(warp, lane) for lane in range(32)], mine or [self.common])

    def synchronise(self, threads: list[Thread], clocks: list[Clock]) -> None:
        """Threads pass a barrier among them; as with a barrier of the block, fences and strong reads are shared."""
        read = [clock for thread in threads for clock in self.read.pop(thread, {}).values()]
        joined = join(*_distinct(clocks), *_distinct(read))
        if self.seen:
            self.seen.update(dict.fromkeys(threads, join(*(self.seen_by(thread) for thread in threads))))
        for warp in {warp for warp, _ in threads} & self.fenced_warps.keys():
            self._spread(warp)
        fenced = {level: _Fenced(clock, {}) for level, clock in self._joined(threads).items()}
        for thread in threads:
            self.own[thread] = joined
            if fenced:
                self.fenced[thread] = dict(fenced)

    def fence(
        self, threads: list[Thread], owns: list[Clock], level: int, acquires: bool = True, releases: bool = True
    ) -> None:
        """A fence: acquires what strong reads before it saw, and marks what a strong write after it releases.

        ``owns`` has what each thread knows beyond what it has acquired.
        """
        for thread in threads if acquires and (self.read or self.beyond) else ():
            if thread in self.read or thread in self.beyond:
                seen = self.beyond.pop(thread, {})
                self.join_into(seen, self.read.pop(thread, {}))
                self.own[thread] = join(self.clock(thread), *acquirable(seen, self, level))
                if level < 3 and None in seen:
                    self.beyond[thread] = seen
        if not releases:
            return
        clocks = [self.clock(thread) for thread in threads]
        warp = threads[0][0]
        if len(threads) == LANES and all(clock is clocks[0] for clock in clocks):
            before = self.fenced_warps.get(warp, {}).get(level)
            if before is not None and before[0] is not clocks[0]:
                self._spread(warp)
            self.fenced_warps.setdefault(warp, {})[level] = clocks[0], owns
            return
        for (warp, lane), clock, own in zip(threads, clocks, owns):
            self._note(warp, lane, level, _Fenced(clock, own))

    def released(self, thread: Thread) -> Iterable[tuple[int, Clock]]:
        """What a strong write without release semantics publishes, thanks to a fence before it."""
        for level in (3, 2, 1):
            found = [self.fences[level]] if level in self.fences else []
            found += self.fenced.get(thread, {}).get(level, ())
            together = self.fenced_warps.get(thread[0], {}).get(level)
            if together is not None:
                found += together[0], together[1][thread[1]]
            if found:
                yield level, join(*found)


@dataclass
class _Place:
    """What was published at an address; ``block`` and ``level`` are those of the last strong write there."""

    block: BlockOrder
    level: int
    published: Published


class Places(Generic[T]):
    """What is known of host addresses: of global memory for the launch, of a block's own while that block runs.

    One block after the other has the same host memory for its shared and local memory, which is another one's then.
    That of the blocks of a cluster is one: it ends with the cluster.
    """

    def __init__(self) -> None:
        self._of_all: dict[int, T] = {}
        self._own: dict[int, tuple[Any, dict[int, T]]] = {}

    def of(self, block: BlockOrder, home: int) -> dict[int, T]:
        """What is known, by address, of memory with this ``home`` (:meth:`.shadow_memory.ShadowMemory.home`)."""
        if not home:
            return self._of_all
        found = self._own.get(home)
        if found is None or found[0] != block.cluster:
            found = self._own[home] = block.cluster, {}
        return found[1]


class HappensBefore:
    """The order of all threads of a launch: the clocks of each block, and those published at addresses.

    ``narrow``: the kernel has strong accesses or fences whose scope is smaller than the GPU.
    """

    def __init__(self) -> None:
        self.blocks: dict[int, BlockOrder] = {}
        self.places: Places[_Place] = Places()
        self.narrow = True

    def write(
        self, block: BlockOrder, home: int, address: int, level: int, clocks: Iterable[tuple[int, Clock]], keeps: bool
    ) -> None:
        """A strong write publishes clocks; unless it is a read-modify-write, it replaces those published before."""
        places = self.places.of(block, home)
        before = places.get(address)
        kept = keeps and before is not None and reaches(block, level, before.block, before.level)
        published: Published = before.published if kept and before is not None else {}
        for scope, clock in clocks:
            publish(published, block, scope, clock, self.narrow)
        if published or before is not None:
            places[address] = _Place(block, level, published)

    def read(
        self, block: BlockOrder, thread: Thread, home: int, address: int, level: int, acquires: bool, clock: Clock
    ) -> None:
        """A strong read acquires what was published; at once with acquire semantics, else by the next fence."""
        place = self.places.of(block, home).get(address)
        if place is None or not place.published or not reaches(block, level, place.block, place.level):
            return
        if acquires:
            block.own[thread] = join(clock, *acquirable(place.published, block, level))
        if not acquires or level < 3:
            block.join_into(block.read.setdefault(thread, {}), {
                key: value for key in (None, ("cluster", block.cluster), block.block)
                if (value := place.published.get(key)) is not None
            })
