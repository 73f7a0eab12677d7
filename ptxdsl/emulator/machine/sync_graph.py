"""Layout of the synchronisation graph: what threads have released by memory and cluster barriers, and who acquired it.

Its nodes are releases. Each holds the clock of its threads, as compiled code has it for barriers, and the list of what
their block had acquired until then; so a release leads to those before it. Whether one access happens before another is
a search for a release of the first one's thread, backwards from the second one. No clocks of threads are
joined, so a release and an acquire cost the same however many threads there are. What all lanes of the warps of one
block are known to have done is: one number for each warp, by which most questions are answered without a search.
"""

from __future__ import annotations

from .layout import LANES
from .status import Number
from .structs import Struct, field

PLACE_BITS = 18
"""The table of places has this many bits of index."""
NEAR_BITS = 4
"""So many of these tell words of 64 bytes apart: what lies side by side in memory does so in the table."""
MOST_PROBES = 32
"""Entries of the table that are looked at for a place."""
MOST_VISITS = 2048
"""Releases that a search looks at before it leaves the question to Python."""
CELL = 64
"""Bytes of an acquire, and to which a release is aligned too."""


class SyncGraph(Struct):
    """The graph of a launch."""

    align = 64
    NEXT = field("Q")
    """Address of the next free cell."""
    END = field("Q")
    PLACES = field("Q")
    """Address of the table of places, of :class:`Place`."""
    STACK = field("Q")
    """Address of the releases whose past a search has yet to look at."""
    SEARCHES = field("I")
    """The number of the last search."""
    UNORDERED = field("I")
    """Whether a load that counts on an order may have missed the last store before it."""


class Release(Struct):
    """A release, at the place where it was written, or by the fence before."""

    align = CELL
    WORD = field("Q")
    """Epoch, level (as the strength of an access) and warp, as in a shadow word."""
    BLOCK_FLOOR = field("Q")
    WARP_FLOOR = field("Q")
    HEAD = field("Q")
    """The last :class:`Acquire` of the block before it."""
    BEFORE = field("Q")
    """The release before it, which a read of the place acquires as well; 0 for none."""
    BLOCK = field("I")
    """Number of the block, plus one."""
    MASK = field("I")
    """The lanes that release."""
    TIME = field("I")
    """The last epoch of all when it was made, or its fence: it knows of no later one."""
    CREATED = field("I")
    """The same for the release and all before it."""
    SEARCHED = field("I")
    """The last search that came here."""
    KNOWN = field("I", LANES, CELL)
    """For each warp of its block: what its lanes did in epochs before this one happens before the release."""


class Acquire(Struct):
    """What lanes of a warp have acquired, or what a strong read saw (MASK is 0): barriers acquire that for all."""

    align = CELL
    WORD = field("Q")
    """Epoch, warp and lane of the read."""
    RELEASE = field("Q")
    NEXT = field("Q")
    """The acquire before it, of any warp of the block."""
    SIBLING = field("Q")
    """The read before it, of the same warp, that a fence may still acquire."""
    MASK = field("I")
    LEVEL = field("I")
    TIME = field("I")
    FENCED = field("I")
    """Of a read: a fence has acquired it, at its own level."""


class Place(Struct):
    """The last strong write to an address: what it has published, and its shadow word. An older word: no entry."""

    HOST = field("Q")
    RELEASE = field("Q")
    WRITER = field("Q")
    FREE = field("Q")


class Fence(Struct):
    """The last fence of a warp: what a strong write behind it releases. The fields are those of Release."""

    align = CELL
    WORD = field("Q")
    BLOCK_FLOOR = field("Q")
    WARP_FLOOR = field("Q")
    HEAD = field("Q")
    MASK = field("I")
    TIME = field("I")
    KNOWN = field("I", LANES, CELL)


class WarpSync(Struct):
    """What a warp has done: its fences of each level, its strong reads that no fence has acquired yet."""

    align = CELL
    FENCES = field(Fence, 4)
    READS = field("Q")
    PART_WORD = field("Q")
    """Epoch and warp of the last acquire that is in PART."""
    KNOWN = field("I", LANES, CELL)
    """What the lanes of each warp of the block did in epochs before these happens before what any lane does now."""
    PART = field("I", LANES, CELL)
    """The same for lanes that have acquired it: for all of them once the warp has passed a barrier since."""


class Does(Number):
    """What an access or instruction does, as the routines that follow it are told; its level stands above."""

    READS = 1
    WRITES = 2
    ACQUIRES = 4
    RELEASES = 8
    TRUSTS = 16
    """A load that counts on an order (``sanitizer.hand_over``)."""
    NOTES = 32
    """The last write is noted in any case, since some load may count on it."""
    CLUSTER = 64
    """A barrier of the cluster."""
    FENCES = 128


LEVEL_SHIFT = 8
assert Acquire.nbytes == CELL
