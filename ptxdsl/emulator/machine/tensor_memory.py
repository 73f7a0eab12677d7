"""Where everything lies in the tensor memory of a block: its allocations, operations in flight, and cells."""

from __future__ import annotations

from .structs import Struct, field

__all__ = ["Commit", "TensorMemory"]


class Commit(Struct):
    """A tcgen05.commit: the operations of a stream until one are complete once an mbarrier's phase is."""

    MBARRIER = field("Q")
    """Its host address."""
    ISSUER = field("Q")
    """The :class:`TensorMemory` of the block that has issued them."""
    STREAM = field("I")
    NUMBER = field("I")


class TensorMemory(Struct):
    """The tensor memory of a block: what of it is allocated, which cells were written, and the cells.

    A cell is 32 bits, in a lane and a column; the lanes of a column lie side by side. Masks have a bit for each unit of
    columns. What comes before PEER is zero when a block begins.
    """

    align = 64
    ALLOCATED = field("I")
    STARTS = field("I")
    """The units where an allocation starts,"""
    EXCLUSIVE = field("I")
    """those where an exclusive one does,"""
    FREED = field("I")
    """and those that have been allocated once."""
    GROUP = field("I")
    """The `.cta_group` of the block's instructions, 0 before the first of them."""
    RELINQUISHED = field("I")
    """Whether the block has promised to allocate no more."""
    REQUEST = field("Q")
    """What a warp asks the pair's other block to do as well, 0 for nothing
    (:mod:`..codegen.tensor_cores.tensor_memory`)."""
    ASKING = field("I")
    """That warp's number, plus 1."""
    ANSWER = field("I")
    """Once the other block has done so: the first column, plus 1."""
    SITES = field("i", 18)
    """By unit, the number of the statement that has allocated from there on,"""
    FREEING_SITES = field("i", 18)
    """or freed."""
    PEER = field("Q")
    """The tensor memory of the pair's other block, 0 where there is none."""
    PEER_BLOCK = field("Q")
    """The state of that block."""
    PEER_OPEN = field("Q")
    """Where 64 bits lie that are 0 once it has ended."""
    FLYING = field("Q", 2)
    """A bit for each stream that has an operation in flight (:mod:`..codegen.tensor_cores.tensor_flight`)."""
    COMMITS = field("I")
    """How many COMMITTED has."""
    ISSUED = field("I", 96)
    """By stream, the number of its last operation,"""
    DONE = field("I", 96)
    """of the last one that is known to be complete,"""
    ISSUED_AT = field("Q", 96)
    """and the micro-op of the last one."""
    COMMITTED = field(Commit, 64)
    WRITERS = field("I", 8 * 576, align=64)
    """By column and 16 lanes, the last operation that writes there: its stream, then its number."""
    READERS = field("I", 8 * 576, align=64)
    """The same of those that read there."""
    WRITTEN = field("Q", 2 * 576, align=64)
    """By column, a bit for each lane whose cell was written."""
    CELLS = field("Q", 64 * 576, align=64)

    LANES = 128
    COLUMNS = 512
    EXCLUSIVE_COLUMNS = 576
    """With those that only an exclusive allocation has."""
    UNIT = 32
    """Columns of a unit."""
    PITCH = 4 * LANES
    """Bytes of a column."""
    WRITTEN_PITCH = LANES // 8
    FLIGHT_PITCH = LANES // 4
