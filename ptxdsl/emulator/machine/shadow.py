"""Layout of the sanitizer's shadow memory and of its state beside each block, shared by compiled checks and Python.

The execution of a warp is divided into *epochs* (FastTrack, Flanagan and Freund 2009), numbered through the whole
process in the order in which they begin; whatever orders a warp with others begins a new one. Each granule of memory
has three *shadow words*: its last writer, its last reader, and the last reader before that from another warp. A shadow
word holds epoch, statement, warp and lane of that access. Epoch numbers grow with time, so "everything up to this
barrier" is one comparison, and most accesses need no other.
"""

from __future__ import annotations

EPOCH_SHIFT = 32
STATEMENT_SHIFT = 16
SEVERAL_LANES = 1 << 12
"""More than one lane of the warp made the access; the word names the last of them."""
SUPPRESSED = 1 << 13
"""Beside the number of a statement: its accesses are recorded but no longer reported."""
STRENGTH_SHIFT = 10
"""0 for a weak access, 1 for one that is strong at block scope, 2 for one that is strong at a wider scope."""
STRENGTH = 3 << STRENGTH_SHIFT
WARP_SHIFT = 5
WARP = 31 << WARP_SHIFT
LANE = 31
THREAD = 0xFFFFFFFF << EPOCH_SHIFT | SEVERAL_LANES | WARP | LANE
"""Bits of a shadow word that are equal in two accesses of one thread in one epoch."""
UNWRITTEN = 1
"""Shadow word of global memory that the host left uninitialised."""
EPOCH_BITS = 26
"""The blocks of the last 2^26 epochs are kept."""
ORDER_CACHE_BITS = 14
"""The cache of happens-before answers has this many bits of index."""
ORDER_HASH = 0x9E3779B97F4A7C15
WHOLE_WARP = 1 << 20
"""In the key of such an answer: it holds for all lanes of both warps."""


class Shadow:
    """Offsets in the shadow state of a block. Epochs are shifted as in a shadow word."""

    EPOCH_COUNTER = 0
    """Address of the number of the last epoch."""
    EPOCH_BLOCKS = 8
    """Address of the block of each epoch, plus one."""
    LAUNCH = 16
    """First epoch of the launch."""
    BASE = 24
    """First epoch of the block."""
    WINDOW = 32
    """Epochs from here on, up to the warp's BLOCK_FLOOR, are of this block."""
    PENDING_BARRIERS = 40
    """For barriers of even and odd number: the BLOCK_FLOOR of all warps once the barrier completes."""
    REGIONS = 56
    REGION_COUNT = 64
    ORDER_CACHE = 72
    BLOCK = 80
    """Number of the block, plus one."""
    INSPECT = 88
    WORD = 96
    """What a check passes to Python: the shadow word, its address, the host address, the lane and a :class:`Reason`."""
    WORD_ADDRESS = 104
    HOST = 112
    LANE = 120
    REASON = 124
    CHECKED_LANES = 128
    """Lanes of the current instruction that have been checked already."""
    CACHE_USED = 132
    """Whether ORDER_CACHE holds anything."""
    STRIDE = 136
    WARP_CLOCKS = 192
    SIZE = WARP_CLOCKS + 32 * 64


class WarpClock:
    """Offsets in the clock of one warp."""

    EPOCH = 0
    """Its current epoch and its number, as in a shadow word."""
    BLOCK_FLOOR = 8
    """Every access of the block in an epoch before this one happens before what the warp does now."""
    WARP_FLOOR = 16
    """The same for accesses of the warp's own lanes."""
    BARRIERS = 24
    """Barriers of the whole block that it has passed."""
    SIZE = 64


class Region:
    """Offsets in the description of a range of host memory: its shadow words, and who shares it."""

    LOW = 0
    BYTES = 8
    WORDS = 16
    STRIDE = 24
    """Bytes between the shadow words of last writers, last readers and earlier readers."""
    KIND = 32
    """0 for global memory, 1 for shared memory of the block, 2 for local memory."""
    SIZE = 64


class Reason:
    """Why a compiled check returns to Python."""

    WRITER = 1
    READER = 2
    EARLIER_READER = 3
    UNINITIALISED = 4
    SYNC_ACCESS = 8
    """A memory access that may synchronise threads."""
    SYNC_INSTRUCTION = 9
    WARP_BARRIER = 10
