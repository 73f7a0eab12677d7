"""What the threads of a launch are known to access, at which places: it is learned as the search goes.

By this the search knows which reads nobody can disturb any more, and which may be of writes that come later: those
with a circle of later writes and of reads of these, through other threads, back to them.
"""

from __future__ import annotations

from typing import NamedTuple

from .events import Event, Threads
from .executions import Path, State
from .thread_steps import Element, Step

__all__ = ["Accesses"]


class _Access(NamedTuple):
    """An access of a thread. ``wide``: strong, and its scope includes all threads; ``orders``: acquires or releases.

    ``acquired`` and ``released`` are the places of the last fences before it that do, in such a scope, -1 for none.
    """

    thread: int
    place: int
    address: int
    nbytes: int
    strong: bool
    wide: bool
    orders: bool
    acquired: int
    released: int

    def overlaps(self, other: _Access) -> bool:
        """Whether they have a byte in common."""
        return self.address < other.address + other.nbytes and other.address < self.address + self.nbytes

    def like(self, other: _Access) -> bool:
        """Whether they are morally strong, whichever threads make them."""
        return self.wide and other.wide and (self.address, self.nbytes) == (other.address, other.nbytes)

    def tail(self, read: int, acquires: bool) -> int | None:
        """Where the acquire pattern of a read at a place ends before this write."""
        return read if acquires else self.acquired if self.acquired > read else None

    def head(self, read: int) -> int | None:
        """Where the release pattern of this write begins behind a read at a place."""
        return self.place if self.orders else self.released if self.released > read else None


class _Hop(NamedTuple):
    """A read in a circle that begins with a write behind the read in question.

    ``released``: the write that it reads is in a release pattern. ``loose`` counts the reads before it of writes that
    do not synchronize with them. ``single``: all are strong accesses of one location. ``begins``: the read in question
    is in an acquire pattern.
    """

    thread: int
    place: int
    acquires: bool
    released: bool
    loose: int
    single: bool
    begins: bool


class Accesses:
    """All accesses of any execution. ``learned``: one has come that was not known."""

    def __init__(self, threads: Threads) -> None:
        self.threads, self.learned = threads, False
        self._reads: set[_Access] = set()
        self._writes: set[_Access] = set()
        self._last: dict[int, dict[int, int]] = {}
        """Of each byte, the threads that write it, with the last place at which each does."""
        self._circles: dict[tuple[int, int], bool] = {}
        self._raced: set[int] = set()
        """Bytes on which threads race."""

    def begin(self) -> None:
        """The search begins, with what is known."""
        self.learned = False
        self._circles.clear()

    def learn(self, path: Path) -> None:
        """Note what a thread is about to access."""
        step = path.step
        for element in step.elements if step.kind == "access" else ():
            if step.reads:
                self._add(self._reads, self._access(step, element, False))
            if step.writes:
                self._add(self._writes, self._access(step, element, True))
                for at in range(element.address, element.address + element.nbytes):
                    writers = self._last.setdefault(at, {})
                    writers[step.thread] = max(step.depth, writers.get(step.thread, -1))

    def _access(self, step: Step, element: Element, writes: bool) -> _Access:
        effects = step.effects
        wide = effects.strong and self.threads.all_in(effects.scope)
        orders = wide and (effects.releases if writes else effects.acquires)
        acquired = released = -1
        at = step.parent
        while at is not None:
            if at.kind == "fence" and self.threads.all_in(at.effects.scope):
                acquired = max(acquired, at.depth if at.effects.acquires else -1)
                released = max(released, at.depth if at.effects.releases else -1)
            at = at.parent
        place = step.thread, step.depth, element.address, element.nbytes
        return _Access(*place, effects.strong, wide, orders, acquired, released)

    def _add(self, known: set[_Access], access: _Access) -> None:
        if access not in known:
            known.add(access)
            self.learned = True

    def note_race(self, event: Event) -> None:
        """An event races."""
        new = set(range(event.address, event.end)) - self._raced
        if new:
            self._raced |= new
            self.learned = True

    def _races(self, address: int, nbytes: int) -> bool:
        return not self._raced.isdisjoint(range(address, address + nbytes))

    def disturbed(self, state: State, step: Step) -> bool:
        """Whether another thread may still write what a thread is about to read."""
        return any(
            other != step.thread and self._is_ahead(state, other, place)
            for element in step.elements for at in range(element.address, element.address + element.nbytes)
            for other, place in self._last.get(at, {}).items()
        )

    def _is_ahead(self, state: State, number: int, place: int) -> bool:
        """Whether a thread has not come to a place yet."""
        path = state.find(number)
        if path is None:  # a copy that has not begun
            path, place = state.paths[self.threads.begun_by(number)[0]], 1 << 30
        return bool(path.others) or (place >= path.step.depth and not path.ended)

    def private(self, step: Step) -> bool:
        """Whether no other thread writes what a thread is about to read."""
        return all(
            self._last.get(at, {}).keys() <= {step.thread}
            for element in step.elements for at in range(element.address, element.address + element.nbytes)
        )

    def may_wait(self, path: Path) -> bool:
        """Whether a read may be of a write that takes a later write of its thread: whether there is such a circle.

        One of strong accesses to a single location contradicts SC-per-location. In one where at most one read is of a
        write that is not before it in causality order, that write is after it. What never races while no read waits
        is in causality order also where some do: in one of the latter, the first read that races with its write does
        so in another execution too, in which it reads something else.
        """
        step = path.step
        if not step.effects.strong and not any(self._races(e.address, e.nbytes) for e in step.elements):
            return False
        found = self._circles.get((step.thread, step.depth))
        if found is None:
            mine = [self._access(step, element, False) for element in step.elements]
            found = self._circles[step.thread, step.depth] = any(self._is_in_circle(read) for read in mine)
        return found

    def _is_in_circle(self, read: _Access) -> bool:
        start = _Hop(read.thread, read.place, read.orders, True, -1, True, False)
        seen, left = {start}, [start]
        while left:
            hop = left.pop()
            for write in self._writes:
                if write.thread != hop.thread or write.place < hop.place + (hop is start):
                    continue
                tail, head = write.tail(hop.place, hop.acquires), write.head(hop.place)
                if tail is not None and head is not None and tail > head:
                    head = None
                begins = tail is not None if hop is start else hop.begins
                loose = min(2, hop.loose + (hop is start or not (hop.released and tail is not None)))
                single = hop.single and write.like(read)
                closes = hop.thread != read.thread and write.overlaps(read) and not single
                if closes and loose + (not (head is not None and begins and write.like(read))) >= 2:
                    return True
                for other in self._reads:
                    if other.thread not in (hop.thread, read.thread) and other.overlaps(write):
                        weak = not (other.strong and write.strong)
                        ordered = weak and not self._races(write.address, write.nbytes)
                        released = ordered or (head is not None and other.like(write))
                        acquires = ordered or other.orders
                        one = single and other.like(read)
                        reached = _Hop(other.thread, other.place, acquires, released, loose, one, begins)
                        if reached not in seen:
                            seen.add(reached)
                            left.append(reached)
        return False
