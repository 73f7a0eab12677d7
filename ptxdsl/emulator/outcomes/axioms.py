"""Decides whether PTX's memory model allows an execution: its axioms over bit masks of events.

An execution is a list of events, each read with what it reads from. What is left to choose is the order of fence.sc
(total on those that are morally strong) and the coherence order (of overlapping writes that are morally strong, or
related in causality order; others are unrelated). Neither causality nor observation order depends on coherence, so each
location has its coherence orders to itself.

The axioms are those of the manual's chapter, in its words:

- Coherence: causality order between overlapping writes is coherence order.
- Fence-SC: causality order between fence.sc is their order.
- Atomicity: no write that is morally strong with a read-modify-write comes between what that reads and what it writes,
  and no read takes some bytes from a write and others from before it.
- SC-per-location: of overlapping operations that are pairwise morally strong, communication order does not contradict
  program order.
- Causality: a read reads no write that it precedes in causality order, nor one that is overwritten before it in
  causality order.

No-Thin-Air is the search's (:mod:`.search`): it makes an execution in an order in which each value has been written
before it is read, and each write after what it depends on.

What it cannot see: of a mixed-size data race the model says nothing; such a race is reported, and the values are those
that its axioms would allow byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from .events import SHARED_PLACE, Event, Threads, morally_strong, overlaps

__all__ = ["Execution", "Order", "Race"]

Order = list[int]
"""A relation: of each event the mask of those that follow it."""
Race = tuple[int, int]


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits of a mask."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def close(order: Order) -> Order:
    """The transitive closure, in place."""
    for via, after in enumerate(order):
        if after:
            bit = 1 << via
            for at, reached in enumerate(order):
                if reached & bit:
                    order[at] = reached | order[via]
    return order


class Execution:
    """Events with what they read from, and all relations that follow from these."""

    def __init__(self, threads: Threads, events: Sequence[Event]) -> None:
        self.threads, self.events = threads, events
        self.number = {event.who: n for n, event in enumerate(events)}
        count = len(events)
        self.writes = [n for n in range(count) if events[n].writes]
        self.reads = [n for n in range(count) if events[n].reads]
        self.fences = [n for n in range(count) if events[n].sc]
        self._strong: dict[tuple[int, int], bool] = {}
        self.sources: dict[int, list[tuple[int, int]]] = {n: self._sources(n) for n in self.reads}
        """Of each read, the masks of bytes (of the read's) and the events they are from, -1 for the memory before."""
        self.program = self._program_order()
        self.observed = self._observation()
        self.synchronizes = self._synchronizes()

    def _sources(self, n: int) -> list[tuple[int, int]]:
        found = []
        for first, size, who in self.events[n].sources:
            found.append((((1 << size) - 1) << first, -1 if who is None else self.number.get(who, -2)))
        return found

    def strong(self, a: int, b: int) -> bool:
        """Whether two events are morally strong relative to each other."""
        key = (a, b) if a < b else (b, a)
        found = self._strong.get(key)
        if found is None:
            found = self._strong[key] = morally_strong(self.threads, self.events[a], self.events[b])
        return found

    def _program_order(self) -> Order:
        by_thread: dict[int, list[int]] = {}
        for n, event in enumerate(self.events):
            by_thread.setdefault(event.who.thread, []).append(n)
        order = [0] * len(self.events)
        for numbers in by_thread.values():
            numbers.sort(key=lambda n: -self.events[n].who.place)
            after, same, place = 0, 0, -1
            for n in numbers:
                if self.events[n].who.place != place:
                    after, same, place = after | same, 0, self.events[n].who.place
                order[n] = after
                same |= 1 << n
        return order

    def _observation(self) -> Order:
        order = [0] * len(self.events)
        for read, sources in self.sources.items():
            for _, write in sources:
                if write >= 0 and self.strong(write, read):
                    order[write] |= 1 << read
        updates = [n for n in self.reads if self.events[n].writes]
        changed = bool(updates)
        while changed:
            changed = False
            for write in self.writes:
                for middle in updates:
                    if order[write] >> middle & 1 and order[middle] & ~order[write]:
                        order[write] |= order[middle]
                        changed = True
        return order

    def _release_heads(self, write: int) -> int:
        """The first operations of the release patterns that end in a write."""
        events, heads = self.events, 0
        event = events[write]
        if not event.strong:
            return 0
        for n, other in enumerate(events):
            if n == write:
                heads |= other.release << n
            elif other.release and self.program[n] >> write & 1 and (other.fence or (
                    other.writes and other.address == event.address and other.nbytes == event.nbytes)):
                heads |= 1 << n
        return heads

    def _acquire_tails(self, read: int) -> int:
        """The last operations of the acquire patterns that begin with a read."""
        events, tails = self.events, 0
        event = events[read]
        if not event.strong:
            return 0
        if event.acquire:
            tails |= 1 << read
        for n in bits(self.program[read]):
            other = events[n]
            if other.acquire and (other.fence or (
                    other.reads and other.address == event.address and other.nbytes == event.nbytes)):
                tails |= 1 << n
        return tails

    def _synchronizes(self) -> Order:
        order = [0] * len(self.events)
        tails = {read: self._acquire_tails(read) for read in self.reads}
        for write in self.writes:
            ends = 0
            for read in bits(self.observed[write]):
                ends |= tails[read]
            for head in bits(self._release_heads(write) if ends else 0):
                for tail in bits(ends):
                    if head != tail and self.strong(head, tail):
                        order[head] |= 1 << tail
        self._barriers(order)
        for n, event in enumerate(self.events):
            for other in self._awaited(event):
                order[other] |= 1 << n
        return order

    def _awaited(self, event: Event) -> Iterator[int]:
        """What a wait for copies finds complete: all of their events, or those before they write."""
        writes = sum(1 << n for n in self.writes if not self.events[n].reads)
        for n, other in enumerate(self.events):
            if other.who.thread in event.awaits and (not event.awaits_reads or self.program[n] & writes):
                yield n

    def with_copies(self, base: Order) -> Order:
        """Base causality order: what precedes the begin of a copy precedes all that it does, and no more by that."""
        begun = {event.begins: n for n, event in enumerate(self.events) if event.begins >= 0}
        order = list(base) if begun else base
        for n, event in enumerate(self.events):
            begin = begun.get(event.who.thread, -1)
            if begin >= 0:
                for before, after in enumerate(base):
                    if after >> begin & 1:
                        order[before] |= 1 << n
        return order

    def _barriers(self, order: Order) -> None:
        """Who arrives at a barrier synchronizes with those who wait there."""
        arrived: dict[object, int] = {}
        for n, event in enumerate(self.events):
            if event.arrives and event.release:
                arrived[event.barrier] = arrived.get(event.barrier, 0) | 1 << n
        for n, event in enumerate(self.events):
            if event.waits and event.acquire:
                for other in bits(arrived.get(event.barrier, 0)):
                    order[other] |= 1 << n

    def orders(self) -> Iterator[Causality]:
        """The orders of fence.sc that the axioms may allow, each with the causality order that it makes."""
        base = close([a | b for a, b in zip(self.program, self.synchronizes)])
        seen = set()
        for order in permutations(self.fences):
            fences = [0] * len(base)
            for place, first in enumerate(order):
                for then in order[place + 1 :]:
                    if self.strong(first, then):
                        fences[first] |= 1 << then
            key = tuple(fences)
            if key in seen:
                continue
            seen.add(key)
            if any(base[then] >> first & 1 for first in self.fences for then in bits(fences[first])):
                continue
            whole = close([a | b for a, b in zip(base, fences)]) if any(fences) else base
            found = Causality(self, self.with_copies(whole))
            if found.holds():
                yield found

    def consistent(self) -> bool:
        """Whether the model allows it."""
        return any(
            all(next(orders, None) is not None for orders in causality.coherence()) for causality in self.orders()
        )


class Causality:
    """An execution with its causality order."""

    def __init__(self, execution: Execution, base: Order) -> None:
        self.execution, self.base = execution, base
        kept = self._kept_by_proxies()
        self.order = list(kept)
        for n, observed in enumerate(execution.observed):
            for middle in bits(observed):
                self.order[n] |= kept[middle]

    def _kept_by_proxies(self) -> Order:
        """Base causality order without that between accesses of different proxies, or by one in different blocks.

        It is kept where a fence between the two proxies is on the way.
        """
        events, threads = self.execution.events, self.execution.threads
        special = [n for n, event in enumerate(events) if event.proxy]
        if not special:
            return self.base
        kept = list(self.base)
        for n in special:
            for other, event in enumerate(events):
                near = threads.covers("cta", events[n].who.thread, event.who.thread)
                if event.nbytes and not (near and event.proxy == events[n].proxy):
                    for first, then in ((n, other), (other, n)):
                        if not self._fenced(first, then):
                            kept[first] &= ~(1 << then)
        return kept

    def _fenced(self, first: int, then: int) -> bool:
        """Whether a fence between the generic proxy and the async one is between two events."""
        events = self.execution.events
        if "nc" in (events[first].proxy, events[then].proxy):
            return False
        memory = "async.shared" if events[then].address >= SHARED_PLACE else "async.global"
        return any(
            event.fences in ("async", memory) and self.base[first] >> n & 1 and self.base[n] >> then & 1
            for n, event in enumerate(events)
        )

    def holds(self) -> bool:
        """Whether it is irreflexive, and no read reads what follows it."""
        for n, after in enumerate(self.order):
            if after >> n & 1:
                return False
        return not any(
            write >= 0 and self.order[read] >> write & 1
            for read, sources in self.execution.sources.items() for _, write in sources
        )

    def locations(self) -> list[list[int]]:
        """The writes, each list those that overlap, directly or by others."""
        events = self.execution.events
        writes = sorted(self.execution.writes, key=lambda n: events[n].address)
        found: list[list[int]] = []
        end = -1
        for n in writes:
            if events[n].address >= end:
                found.append([])
            found[-1].append(n)
            end = max(end, events[n].end)
        return found

    def coherence(self) -> list[Iterator[Order]]:
        """Of each location, its coherence orders."""
        events, found = self.execution.events, []
        for writes in self.locations():
            low, high = min(events[n].address for n in writes), max(events[n].end for n in writes)
            reads = [n for n in self.execution.reads if events[n].address < high and low < events[n].end]
            found.append(_Location(self, writes, reads).orders())
        return found

    def races(self) -> list[Race]:
        """Conflicting operations that are neither morally strong nor related in causality order."""
        events, found = self.execution.events, []
        memory = [n for n, event in enumerate(events) if event.nbytes]
        for place, a in enumerate(memory):
            for b in memory[place + 1 :]:
                one, other = events[a], events[b]
                if one.who.thread == other.who.thread or not (one.writes or other.writes):
                    continue
                related = self.order[a] >> b & 1 or self.order[b] >> a & 1
                if overlaps(one, other) and not related and not self.execution.strong(a, b):
                    found.append((a, b))
        return found


class _Location:
    """The writes to bytes that hang together, and the reads of these."""

    def __init__(self, causality: Causality, writes: list[int], reads: list[int]) -> None:
        self.causality, self.execution = causality, causality.execution
        self.writes, self.reads = writes, reads
        self.mask = sum(1 << n for n in writes)
        events = self.execution.events
        self.related = {
            (a, b) for a in writes for b in writes
            if a != b and overlaps(events[a], events[b]) and self.execution.strong(a, b)
        }

    def orders(self) -> Iterator[Order]:
        """The coherence orders; events of other locations have none."""
        events, order = self.execution.events, [0] * len(self.execution.events)
        for a in self.writes:
            for b in bits(self.causality.order[a] & self.mask):
                if overlaps(events[a], events[b]):
                    order[a] |= 1 << b
        yield from self._choose(order)

    def _choose(self, order: Order) -> Iterator[Order]:
        if not self._derive(order):
            return
        for a, b in self.related:
            if a < b and not (order[a] >> b & 1 or order[b] >> a & 1):
                for first, then in ((a, b), (b, a)):
                    tried = list(order)
                    tried[first] |= 1 << then
                    yield from self._choose(tried)
                return
        if self._sequential(order) and self._single_copies(order):
            yield order

    def _derive(self, order: Order) -> bool:
        """Add what follows from the axioms; False where they contradict each other."""
        while True:
            before = list(order)
            self._close(order)
            if any(order[n] >> n & 1 for n in self.writes):
                return False
            for read in self.reads:
                for mask, source in self.execution.sources[read]:
                    if not self._derive_read(order, read, mask, source):
                        return False
            if order == before:
                return True

    def _close(self, order: Order) -> None:
        for via in self.writes:
            for at in self.writes:
                if order[at] >> via & 1:
                    order[at] |= order[via]

    def _covers(self, read: int, mask: int, write: int) -> bool:
        """Whether a write changes one of these bytes of a read."""
        one, other = self.execution.events[read], self.execution.events[write]
        low = max(one.address, other.address) - one.address
        high = min(one.end, other.end) - one.address
        return high > low and bool(mask >> low & (1 << (high - low)) - 1)

    def _derive_read(self, order: Order, read: int, mask: int, source: int) -> bool:
        """What follows from bytes of a read that are from a source; False where that cannot be."""
        execution = self.execution
        updates = execution.events[read].writes
        for write in self.writes:
            if write in (source, read) or not self._covers(read, mask, write):
                continue
            if self.causality.order[write] >> read & 1:
                if not self._precedes(order, write, source):  # Causality
                    return False
            elif execution.program[read] >> write & 1 and (source, write) in self.related and (
                    execution.strong(source, read)) and not self._precedes(order, source, write):  # SC-per-location
                return False
            if updates and execution.strong(write, read) and not self._apart(order, read, source, write):
                return False
        if updates and source >= 0 and execution.strong(source, read):
            return self._precedes(order, source, read)
        return True

    def _precedes(self, order: Order, first: int, then: int) -> bool:
        """Put a write before another one where they are related; False where it is after it, or that was first."""
        if then < 0 or order[then] >> first & 1:
            return False
        if (first, then) in self.related:
            order[first] |= 1 << then
        return True

    def _apart(self, order: Order, update: int, source: int, write: int) -> bool:
        """Atomicity: a write does not come between what a read-modify-write reads, and what that writes."""
        if source < 0 or order[source] >> write & 1:
            return self._precedes(order, update, write)
        if order[write] >> update & 1:
            return (source, write) not in self.related or self._precedes(order, write, source)
        return True

    def _sequential(self, order: Order) -> bool:
        """SC-per-location, of each set of operations that are pairwise morally strong."""
        members = sorted({*self.writes, *self.reads})
        beside = {
            n: sum(1 << m for m in members if m != n and self._meet(n, m) and self.execution.strong(n, m))
            for n in members
        }
        return all(self._acyclic(order, clique) for clique in _cliques(0, sum(1 << n for n in members), 0, beside))

    def _meet(self, a: int, b: int) -> bool:
        return overlaps(self.execution.events[a], self.execution.events[b])

    def _acyclic(self, order: Order, clique: int) -> bool:
        follows = {}
        for n in bits(clique):
            after = (order[n] | self.execution.program[n]) & clique
            if self.execution.events[n].writes:
                after |= sum(1 << r for r in self.reads if any(w == n for _, w in self.execution.sources[r])) & clique
            if self.execution.events[n].reads:
                for _, source in self.execution.sources[n]:
                    later = order[source] if source >= 0 else self.mask
                    after |= later & clique & ~(1 << n)
            follows[n] = after
        left = clique
        while left:
            free = next((n for n in bits(left) if not follows[n] & left), None)
            if free is None:
                return False
            left ^= 1 << free
        return True

    def _single_copies(self, order: Order) -> bool:
        """A read takes no byte of before a write that is morally strong with it and that it takes another byte from."""
        for read in self.reads:
            taken = [source for _, source in self.execution.sources[read]]
            strong = [w for w in taken if w >= 0 and self.execution.strong(w, read)]
            if any(other < 0 or order[other] >> w & 1 for w in strong for other in taken if other != w):
                return False
        return True


def _cliques(chosen: int, left: int, past: int, beside: dict[int, int]) -> Iterator[int]:
    """The largest sets of events that are pairwise related (Bron and Kerbosch)."""
    if not left:
        if not past:
            yield chosen
        return
    pivot = max(bits(left | past), key=lambda n: (beside[n] & left).bit_count())
    for n in bits(left & ~beside[pivot]):
        yield from _cliques(chosen | 1 << n, left & beside[n], past & beside[n], beside)
        left ^= 1 << n
        past |= 1 << n
