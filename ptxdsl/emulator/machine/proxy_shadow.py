"""What the sanitizer keeps of a block's accesses by the async proxy: which are complete, who knows, which are fenced.

The shadow word of an access by bulk copies, tensor copies and wgmma to shared memory holds no epoch, since it happens
at no time that its thread knows: it names what completes it and a number that grows, the *generation*. That is a phase
of an mbarrier, or a group of a warpgroup or of a thread. Threads see that a generation is complete where they wait for
it: the epochs in which they do so are noted here, so that the access happens before what any of them happens before.
"""

from __future__ import annotations

from .layout import LANES
from .status import Number
from .shadow import MBARRIERS, WarpOrder
from .structs import Struct, field

__all__ = [
    "ASYNC", "EVENTS", "GENERATION_BITS", "GENERATION_SHIFT", "HAZARDS", "OBJECT_SHIFT", "RING", "SAME", "FenceEvent",
    "Kinds", "Objects", "ProxyShadow",
]

ASYNC = 1 << 63
"""In a shadow word: the access is by the async proxy."""
OBJECT_SHIFT = 55
GENERATION_SHIFT, GENERATION_BITS = 32, 23
RING = 4
"""The last generations of which it is known who has seen them complete; those before are ordered before all."""
EVENTS = 8
"""The last fences of a warp that are known; what is older counts as fenced."""
HAZARDS = 64
"""Hazards of registers that are told apart."""
SAME = 0xFFFFFFFF << 32 | 31 << 5
"""Bits of a shadow word that are equal in accesses which are judged alike: epoch or generation, and the warp."""


class Objects(Number):
    """What completes an access: an mbarrier (from 0 on), a warpgroup (from WARPGROUP on), groups of the thread."""

    WARPGROUP = MBARRIERS
    THREAD = MBARRIERS + 8


class Kinds(Number):
    """What a fence orders: shared or global memory between the proxies, initialised mbarriers, tensor maps."""

    SHARED = 1
    GLOBAL = 2
    MBARRIER = 4
    TENSORMAP = 8


class FenceEvent(Struct):
    """A fence between proxies: when, by which lanes, and what their warp knew then."""

    align = 64
    ORDER = field(WarpOrder)
    EPOCH = field("Q")
    BLOCK_FLOOR = field("Q")
    WARP_FLOOR = field("Q")
    MASK = field("I")
    KINDS = field("I")


class ProxyShadow(Struct):
    """Of one block. What is before SEEN is cleared where a block begins; epochs before it are of other blocks."""

    align = 64
    HOSTS = field("Q", MBARRIERS)
    """The mbarriers, found by a hash of their host addresses."""
    INITIALISERS = field("Q", MBARRIERS)
    """The shadow words of their initialisations, 0 once these are known to be fenced."""
    GENERATIONS = field("I", MBARRIERS)
    """The number of the current phase."""
    PARITIES = field("I", MBARRIERS)
    COMMITTED = field("I", LANES)
    """Groups of wgmma that each warp has committed, and that it has waited for."""
    WAITED = field("I", LANES)
    THREAD_COMMITTED = field("I", LANES * LANES)
    """The same of the bulk groups of each thread; waited for means that they have read their sources."""
    THREAD_WAITED = field("I", LANES * LANES)
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
    EVENTS = field(FenceEvent, LANES * EVENTS)
