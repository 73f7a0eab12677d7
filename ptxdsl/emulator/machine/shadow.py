"""Where the sanitizer keeps what it knows: the offsets that its compiled checks and its Python share.

A warp's life falls into *segments*, numbered through the whole process in the order in which they begin; whatever
orders a warp with others begins a new one. A *tag* says who touched a piece of memory last: segment, statement, warp
and lane. Each piece has three: its last writer, its last reader, and the last reader before that from another warp.
Numbers grow with time, so "everything up to this barrier" is one comparison, which is all that most accesses cost.
"""

from __future__ import annotations

SEGMENT_SHIFT = 32
STATEMENT_SHIFT = 16
SEVERAL = 1 << 12
"""More than one lane of the warp did it, the last of them is named."""
LENIENT = 1 << 13
"""Beside the number of a statement: its accesses are noted but not judged any more."""
STRENGTH_SHIFT = 10
"""0 for a weak access, 1 for one that is strong in its block, 2 for one that is strong everywhere."""
STRENGTH = 3 << STRENGTH_SHIFT
WARP_SHIFT = 5
WARP = 31 << WARP_SHIFT
LANE = 31
THREAD = 0xFFFFFFFF << SEGMENT_SHIFT | SEVERAL | WARP | LANE
"""Bits of a tag by which a thread knows its own access in this segment."""
UNWRITTEN = 1
"""Tag of global memory that the host left uninitialised."""
OWNERS_BITS = 26
"""So many segments have their block on record."""
SEEN_BITS = 14
"""The table of orders that have been looked up has this many bits of index."""
HASH = 0x9E3779B97F4A7C15
WHOLE = 1 << 20
"""In the key of such an order: it holds for whole warps."""


class Ledger:
    """Offsets in what the sanitizer has beside a block state. Segments are shifted as in a tag."""

    NEXT = 0
    """Address of the number of the last segment."""
    OWNERS = 8
    """Address of the block of each segment, plus one."""
    LAUNCH = 16
    """First segment of the launch."""
    BASE = 24
    """First segment of the block."""
    WINDOW = 32
    """Segments from here on, up to the warp's floor, are of this block."""
    PENDING = 40
    """Of barriers of even and odd number: the segment up to which all is ordered once they complete."""
    REGIONS = 56
    COUNT = 64
    SEEN = 72
    BLOCK = 80
    """Number of the block, plus one."""
    INSPECT = 88
    TAG = 96
    PLACE = 104
    """Address of the tags of a piece of memory in question."""
    HOST = 112
    LANE = 120
    REASON = 124
    DONE = 128
    """Lanes of the instruction that have been looked at."""
    DIRTY = 132
    """Whether SEEN holds anything."""
    STRIDE = 136
    WARPS = 192
    SIZE = WARPS + 32 * 64


class Own:
    """Offsets in what the sanitizer knows of one warp."""

    CURRENT = 0
    """Its segment and number, as in a tag."""
    FLOOR = 8
    """Everything in the block before this segment is ordered before what the warp does now."""
    MEETING = 16
    """Everything that the warp itself did before this segment is."""
    BARRIERS = 24
    """Barriers of the whole block that it has passed."""
    SIZE = 64


class Region:
    """Offsets in the description of a piece of host memory: its tags, and whether it is the block's own."""

    LOW = 0
    BYTES = 8
    TAGS = 16
    STRIDE = 24
    OWN = 32
    SIZE = 64


class Reason:
    """Why compiled code asks."""

    WRITER = 1
    READER = 2
    EARLIER_READER = 3
    UNINITIALISED = 4
    ATOMIC = 8
    NOTE = 9
    MEET = 10
