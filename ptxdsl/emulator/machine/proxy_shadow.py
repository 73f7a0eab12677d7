"""What the sanitizer keeps of a block's accesses by the async proxy: which are complete, who knows, which are fenced.

The shadow word of an access by bulk copies, tensor copies, wgmma and tcgen05 to shared memory holds no epoch, since it
happens at no time that its thread knows: it names what completes it and a number that grows, the *generation*. That is
a phase of an mbarrier, or a group of a warpgroup or of a thread. Threads see that a generation is complete where they
wait for it: the epochs in which they do so are noted here, so that the access happens before what any of them happens
before. What completes tcgen05 is not known when it is issued: its generation counts the commits of its warp, and each
commit says at which phase of which mbarrier it arrives.
"""

from __future__ import annotations

from .layout import LANES
from .status import Number
from .shadow import MBARRIERS, WarpOrder
from .structs import Struct, field

__all__ = [
    "ASYNC", "COMMITS", "EVENTS", "GENERATION_BITS", "GENERATION_SHIFT", "GROUPED", "GROUP_EPOCH", "GROUP_RECORDS",
    "HAZARDS", "OBJECT_SHIFT", "RING", "SAME", "THREAD_GROUPS", "CommitEvent", "FenceEvent", "GroupRecord", "Kinds",
    "Objects", "ProxyShadow",
]

ASYNC = 1 << 63
"""In a shadow word: the access is by the async proxy."""
OBJECT_SHIFT = 55
GENERATION_SHIFT, GENERATION_BITS = 32, 23
GROUPED = 0xF0000000 << 32
"""In a shadow word of global memory: the access is of a bulk group, and its epoch is the group's own."""
GROUP_EPOCH = 0x0FFFFFFF << 32
GROUP_RECORDS = 1 << 14
"""The last groups that are known; what is older counts as complete, and as ordered."""
THREAD_GROUPS = 8
"""Of a thread the last groups that it has committed and not waited for; what is older counts as complete."""
RING = 4
"""The last generations of which it is known who has seen them complete; those before are ordered before all."""
COMMITS = 32
"""The last commits of tcgen05 of a warp that are known; what one before these has completed is over for all."""
EVENTS = 8
"""The last fences of a warp that are known; what is older counts as fenced."""
HAZARDS = 64
"""Hazards of registers that are told apart."""
SAME = 0xFFFFFFFF << 32 | 31 << 5
"""Bits of a shadow word that are equal in accesses which are judged alike: epoch or generation, and the warp."""


class Objects(Number):
    """What completes an access: an mbarrier (from 0 on), a warpgroup (from WARPGROUP on), what its thread commits."""

    WARPGROUP = MBARRIERS
    THREAD = MBARRIERS + 8
    TENSOR = MBARRIERS + 9


class Kinds(Number):
    """What a fence orders: shared or global memory between the proxies, initialised mbarriers, tensor maps."""

    SHARED = 1
    GLOBAL = 2
    MBARRIER = 4
    TENSORMAP = 8


class CommitEvent(Struct):
    """A commit of tcgen05: the number of the mbarrier that it arrives at, its phase, and the lanes that execute it."""

    MBARRIER = field("H")
    GENERATION = field("I")
    MASK = field("I")


class GroupRecord(Struct):
    """A bulk group of a thread, by the low bits of an epoch of its own: that, and the one of the wait for it, or 0."""

    EPOCH = field("Q")
    DONE = field("Q")


class FenceEvent(Struct):
    """A fence between proxies: when, by which lanes, and what their warp knew then."""

    align = 64
    ORDER = field(WarpOrder)
    EPOCH = field("Q")
    BLOCK_FLOOR = field("Q")
    WARP_FLOOR = field("Q")
    MASK = field("I")
    KINDS = field("I")
    ACQUIRED = field("Q")
    """What the block had acquired from others, as :class:`.shadow.Shadow` has it."""


class ProxyShadow(Struct):
    """Of one block. What is before SEEN is cleared where a block begins; epochs before it are of other blocks."""

    align = 64
    HOSTS = field("Q", MBARRIERS)
    """The mbarriers, found by a hash of their host addresses."""
    INITIALISERS = field("Q", MBARRIERS)
    """The shadow words of their initialisations, 0 once these are known to be fenced."""
    COPIES = field("Q", MBARRIERS)
    """The shadow word of the last copy that each completes."""
    GENERATIONS = field("I", MBARRIERS)
    """The number of the current phase."""
    PARITIES = field("I", MBARRIERS)
    COMMITTED = field("I", LANES)
    """Groups of wgmma that each warp has committed, and that it has waited for."""
    WAITED = field("I", LANES)
    THREAD_COMMITTED = field("I", LANES * LANES)
    """The same of the bulk groups of each thread; waited for means that they have read their sources."""
    THREAD_WAITED = field("I", LANES * LANES)
    TENSOR_COMMITTED = field("I", LANES)
    """Commits of tcgen05 of each warp."""
    THREAD_LAST = field("Q", LANES * LANES)
    """The shadow word of the last copy of each thread that reads shared memory for a bulk group, and its address."""
    THREAD_SOURCE = field("Q", LANES * LANES)
    GROUP_OPEN = field("I", LANES * LANES)
    """The epoch of the open bulk group of each thread, 0 where that has written nothing; committed, and complete ones.
    """
    GROUP_COMMITTED = field("I", LANES * LANES)
    GROUP_DONE = field("I", LANES * LANES)
    CORE_BEGUN = field("I")
    """Whether the next two are of this block."""
    FENCES = field("I", LANES)
    """Fences between proxies that each warp has executed."""
    PRODUCT_FENCES = field("I", LANES)
    """Those before products (``wgmma.fence``)."""
    NOTED = field("I", LANES * HAZARDS)
    """When each warp has last executed what a hazard is about: the groups committed, or the fences, plus one."""
    GOOD = field("Q", 3)
    """Of the current check: the words of each plane that are known to be good, but for their lanes."""
    CHANGES = field("Q")
    """Of the current check: how often the word of the last writers was another one."""
    TILES = field("Q", 8)
    TILE_GENERATIONS = field("Q", 8)
    TILE_WRITERS = field("Q", 8)
    """Of each warpgroup, the last tile that its first warp has checked for all: descriptor, group and last writer."""
    SEEN = field("Q", MBARRIERS * RING * LANES, 64)
    """For each mbarrier, generation and warp, the epoch in which it has seen that complete, and which lanes have."""
    SEEN_BY = field("I", MBARRIERS * RING * LANES, 64)
    GROUP_SEEN = field("Q", LANES * RING)
    THREAD_SEEN = field("Q", LANES * LANES * RING)
    CORE_KNOWN = field("I", LANES * 96)
    """For each warp, of the streams of operations on tensor memory the numbers that it knows to have been issued,"""
    CORE_STORED = field("I", LANES)
    """and that of its last store which others may know of."""
    GROUP_EPOCHS = field("I", LANES * LANES * THREAD_GROUPS)
    TENSOR_COMMITS = field(CommitEvent, LANES * COMMITS)
    EVENTS = field(FenceEvent, LANES * EVENTS)
