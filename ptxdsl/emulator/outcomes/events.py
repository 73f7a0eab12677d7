"""What the memory model speaks of: memory operations, fences and barriers, and how threads lie in scopes.

The words are those of the chapter on the memory consistency model in the manual of the PTX ISA.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = [
    "INITIAL", "SHARED_BITS", "SHARED_PLACE", "SPREAD", "Event", "Identity", "Source", "Threads", "morally_strong",
    "overlaps",
]

INITIAL = None
"""What a read has for a source where it reads the memory of before the launch."""
SHARED_PLACE = 1 << 60
"""Where the addresses of events in shared memory begin; those in global memory are the host's."""
SHARED_BITS = 32
SPREAD = ("cta", "cluster", "gpu", "sys")
"""The scopes, each within the next one."""


class Identity(NamedTuple):
    """An event by its thread, its place in program order, and which element of a vector it is."""

    thread: int
    place: int
    element: int


class Source(NamedTuple):
    """Where a read takes bytes from: ``first`` of ``count``, of an event, or of the memory of before."""

    first: int
    size: int
    event: Identity | None


class Event(NamedTuple):
    """A memory operation, a fence, or a barrier.

    ``reads`` and ``writes``: both for a read-modify-write. ``address``, ``nbytes``: what a memory operation accesses;
    shared memory has addresses of its own for each block. ``strong``: not weak. ``sc``: a fence of that kind.
    ``barrier`` names a barrier and which of its phases; ``waits`` for those that arrive there. ``proxy`` is "" for the
    generic one; ``fences``: between it and the async one, in all memory, "async", or in one space, "async.global" or
    "async.shared". ``begins`` the copy of this number; ``awaits`` the end of such copies, or that they have read
    (``awaits_reads``). An implicit fence has no ``statement``.
    """

    who: Identity
    reads: bool = False
    writes: bool = False
    address: int = 0
    nbytes: int = 0
    strong: bool = False
    acquire: bool = False
    release: bool = False
    sc: bool = False
    fence: bool = False
    scope: str = ""
    proxy: str = ""
    fences: str = ""
    begins: int = -1
    awaits: tuple[int, ...] = ()
    awaits_reads: bool = False
    sources: tuple[Source, ...] = ()
    read: bytes = b""
    written: bytes = b""
    barrier: tuple[Any, ...] = ()
    arrives: bool = False
    waits: bool = False
    statement: Any = None

    @property
    def updates(self) -> bool:
        """Whether it is an atomic read-modify-write."""
        return self.reads and self.writes

    @property
    def end(self) -> int:
        return self.address + self.nbytes


class Threads:
    """The threads that take part: their blocks and clusters, by the number of the thread.

    Copies that complete later are threads too, with the numbers behind those of the launch, in the block of the thread
    that begins them, or of the mbarrier that counts their bytes.
    """

    def __init__(self, blocks: Iterable[int], clusters: Iterable[int]) -> None:
        self.blocks, self.clusters = list(blocks), list(clusters)
        self._count = len(self.blocks)
        self._copies: dict[tuple[int, int, int], int] = {}

    def __len__(self) -> int:
        """How many the launch has, without copies."""
        return self._count

    def copy(self, thread: int, index: int, block: int) -> int:
        """The number of a copy: the one with this index among those of a thread."""
        found = self._copies.get((thread, index, block))
        if found is None:
            found = self._copies[thread, index, block] = len(self.blocks)
            self.blocks.append(block)
            self.clusters.append(self.clusters[self.blocks.index(block)])
        return found

    def begun_by(self, number: int) -> tuple[int, int]:
        """The thread that begins a copy, and the index of that among its copies."""
        return next(key[:2] for key, copy in self._copies.items() if copy == number)

    def covers(self, scope: str, one: int, other: int) -> bool:
        """Whether a scope of one thread includes the other."""
        if one == other or scope in ("gpu", "sys"):
            return True
        if scope == "cta":
            return self.blocks[one] == self.blocks[other]
        return scope == "cluster" and self.clusters[one] == self.clusters[other]

    def all_in(self, scope: str) -> bool:
        """Whether a scope of each of them includes all others."""
        return all(self.covers(scope, 0, other) for other in range(len(self)))

    def narrowest(self) -> str:
        """The narrowest scope that includes all of them."""
        return next(scope for scope in SPREAD if self.all_in(scope))


def overlaps(a: Event, b: Event) -> bool:
    """Whether two memory operations have a byte in common."""
    return a.address < b.end and b.address < a.end


def morally_strong(threads: Threads, a: Event, b: Event) -> bool:
    """Whether two operations are morally strong relative to each other."""
    one, other = a.who.thread, b.who.thread
    if one != other:
        if not (a.strong and b.strong and threads.covers(a.scope, one, other) and threads.covers(b.scope, other, one)):
            return False
    elif a.who.place == b.who.place:
        return False
    if a.proxy != b.proxy:
        return False
    return not (a.nbytes and b.nbytes) or (a.address == b.address and a.nbytes == b.nbytes)
