"""What the threads of a launch are known to access, at which places: it is learned as the search goes.

By this the search knows which reads nobody can disturb any more, and which may be of writes that come later: those
with a circle of later writes and of reads of these, through other threads, back to them.
"""

from __future__ import annotations

from typing import NamedTuple

from .events import Threads
from .executions import Path, State
from .machine import Element, Step

__all__ = ["Accesses"]


class _Access(NamedTuple):
    """An access of a thread. ``wide``: strong, and its scope includes all threads; ``orders``: acquires or releases."""

    thread: int
    place: int
    address: int
    nbytes: int
    wide: bool
    orders: bool

    def meets(self, other: _Access) -> bool:
        """Whether they have a byte in common."""
        return self.address < other.address + other.nbytes and other.address < self.address + self.nbytes

    def like(self, other: _Access) -> bool:
        """Whether they are morally strong, whichever threads make them."""
        return self.wide and other.wide and (self.address, self.nbytes) == (other.address, other.nbytes)


class Accesses:
    """All accesses of any execution. ``learned``: one has come that was not known."""

    def __init__(self, threads: Threads) -> None:
        self.threads, self.learned = threads, False
        self._reads: set[_Access] = set()
        self._writes: set[_Access] = set()
        self._last: dict[int, dict[int, int]] = {}
        """Of each byte, the threads that write it, with the last place at which each does."""
        self._circles: dict[tuple[int, int], bool] = {}

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
        return _Access(step.thread, step.depth, element.address, element.nbytes, wide, orders)

    def _add(self, known: set[_Access], access: _Access) -> None:
        if access not in known:
            known.add(access)
            self.learned = True
            self._circles.clear()

    def disturbed(self, state: State, thread: int) -> bool:
        """Whether another thread may still write what a thread is about to read."""
        for element in state.paths[thread].step.elements:
            for at in range(element.address, element.address + element.nbytes):
                for other, place in self._last.get(at, {}).items():
                    path = state.paths[other]
                    ahead = path.others or (place >= path.step.depth and not path.ended)
                    if other != thread and ahead:
                        return True
        return False

    def may_wait(self, path: Path) -> bool:
        """Whether a read may be of a write that takes a later write of its thread: whether there is such a circle.

        One of strong accesses to a single location contradicts SC-per-location, and one of two threads whose last write
        releases what the read acquires contradicts Causality.
        """
        step = path.step
        found = self._circles.get((step.thread, step.depth))
        if found is None:
            mine = [self._access(step, element, False) for element in step.elements]
            found = self._circles[step.thread, step.depth] = any(self._is_in_circle(read) for read in mine)
        return found

    def _is_in_circle(self, read: _Access) -> bool:
        seen: set[tuple[int, int, bool, bool]] = set()
        left = [(read.thread, read.place, True, True)]
        while left:
            thread, place, single, direct = left.pop()
            for write in self._writes:
                if write.thread != thread or write.place <= place:
                    continue
                alike = single and write.like(read)
                ordered = direct and write.orders and read.orders
                if thread != read.thread and write.meets(read) and not alike and not ordered:
                    return True
                for other in self._reads:
                    if other.thread not in (thread, read.thread) and other.meets(write):
                        key = other.thread, other.place, alike and other.like(read), thread == read.thread
                        if key not in seen:
                            seen.add(key)
                            left.append(key)
        return False
