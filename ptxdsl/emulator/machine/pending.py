"""Asynchronous operations that are not complete: a block state's queue of them, and when they are made.

A bulk or tensor copy, a product of wgmma and the like is a record of all that the making of it needs. Its routine is
called later, with the record in place of a micro-op: then sources are read, destinations written, bytes and arrivals
counted at an mbarrier. Without a seed that is as late as the program's waits allow: a wait that needs it makes it, the
end of the block, or that nothing else can go on. A seed draws for the operations that write shared memory, and for
those that read it, how soon they are made (:data:`PACES`).

Of an operation that an mbarrier counts the record is in the queue of the mbarrier's block, else in that of its thread.
Operations of ``bulk_group`` and ``async_group`` count the groups of their thread since (``AGE``, 0 until it commits).
Whoever adds a kind says by what it waits (``KIND``), and which routine makes it; products are made in order.

Nothing is deferred in sanitized launches, whose checks know what is complete; ``cp.async``, ``st.async`` and
``red.async`` are where a launch has a seed.
"""

from __future__ import annotations

from .structs import Struct, field

__all__ = ["COPIES", "FEW", "MANY", "PACES", "Kind", "Pending", "paces"]

FEW, MANY = 256, 4096
"""Operations of a queue: of those of one thread or a warpgroup, and of those that each thread makes."""
COPIES, READERS = 0, 1
"""What writes shared memory, and what reads it: their paces are drawn apart."""
PACES = (0, 1 << 28, 1 << 30, (1 << 32) - 1)
"""How probably an operation is made, of 2**32, each time that another warp runs or one is begun."""


class Kind:
    """What a thread waits by."""

    COUNTED = 0
    """An mbarrier."""
    BULK = 1
    """Groups of bulk copies."""
    COPY = 2
    """Groups of ``cp.async``."""
    ARRIVAL = 3
    """As COUNTED, but it comes behind the COPYs of its thread that were begun before."""
    PRODUCT = 4
    """Groups of wgmma; AGE is the number of the group, OWNER the first warp."""
    TENSOR = 5
    """tcgen05.mma: a commit, whose arrival comes behind it, as ARRIVAL."""


class Pending(Struct):
    """An operation."""

    align = 64
    ROUTINE = field("Q")
    """What makes it; 0 once it has."""
    PLACE = field("Q")
    """The micro-op that has begun it."""
    WARP = field("Q")
    MBARRIER = field("Q")
    """Host address of the one that it is counted at, 0 where there is none,"""
    NBYTES = field("i")
    """and its bytes."""
    KIND = field("i")
    PACE = field("i")
    """COPIES or READERS."""
    LANE = field("i")
    OWNER = field("i")
    """The thread of the block."""
    AGE = field("i")
    SIZE = field("q")
    """Bytes of memory from SOURCE on that it reads,"""
    TO = field("Q")
    SOURCE = field("Q")
    STAGED = field("i")
    """which have been read, and lie elsewhere."""
    MASK = field("I")
    WORDS = field("i", 8)
    """Coordinates, or numbers."""
    BYTES = field("B", 192, align=64)
    """A tensor map, a value, or the request of a product."""


def paces(seed: int) -> tuple[int, int]:
    """Those of a seed: any 16 seeds in a row have each pair."""
    return PACES[seed % 4], PACES[(seed // 4 + seed) % 4]
