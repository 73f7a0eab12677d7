"""Why compiled code returned to Python, what went wrong there, and which numbers the profiler counts."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Count", "Fault", "Number", "Status"]


class Number(IntEnum):
    """Written as its number: it stands in the keys of compiled code."""

    __repr__ = int.__repr__
    __str__ = int.__repr__


class Status(Number):
    """Why compiled code returned."""

    RUNNING = 0
    YIELD = 1
    FAULT = 2
    BLOCKED = 3
    """No warp can run, and some have not ended."""
    DEOPT = 4
    """Go on in conservative code."""
    DONE = 5
    SYSTEM_CALL = 6
    """A call of a function of the system."""
    CALLBACK = 7
    """Instrumentation calls Python: a check of the sanitizer, or a breakpoint."""


class Fault(Number):
    """What went wrong, where the status is FAULT; WRAP and CONVERGENCE are no faults of the kernel."""

    MEMORY = 1
    ALIGNMENT = 2
    TRAP = 3
    BRANCH_INDEX = 4
    MEMBERS = 5
    BARRIER_DIVERGED = 6
    BARRIER_COUNT = 7
    BARRIER_MISMATCH = 8
    BARRIER_NUMBER = 9
    CLUSTER_ARRIVE = 10
    CLUSTER_WAIT = 11
    MBARRIER_INVALID = 12
    MBARRIER_INIT = 13
    MBARRIER_COUNT = 14
    MBARRIER_BYTES = 15
    MBARRIER_COMPLETES = 16
    MBARRIER_BUSY = 70
    """It is made, or made invalid, while a warp waits there, or what it counts is not complete."""
    MAXNREG = 71
    """setmaxnreg in the wrong direction."""
    HANDLE = 17
    """Of a texture, sampler or surface."""
    SURFACE = 18
    SURFACE_ALIGNMENT = 19
    BULK_SIZE = 22
    """Of a bulk copy: no multiple of 16 bytes."""
    BULK_BLOCK = 23
    """`.shared::cta` is not the block's own."""
    BULK_MBARRIER = 24
    """The mbarrier lies in another block than the memory that is written."""
    BULK_IGNORED = 34
    """More bytes at the begin or the end are ignored than a bulk copy can."""
    TENSOR_MAP = 25
    """A tensor map that no copy, or not this one, can use."""
    TENSOR_SHARED = 26
    """The memory of a box is not aligned in shared memory."""
    WARPGROUP = 28
    """A warpgroup of which some warps are missing."""
    DESCRIPTOR = 27
    """A matrix descriptor that does not describe shared memory."""
    DESCRIPTOR_ROWS = 29
    """A matrix descriptor whose swizzle has shorter rows than the tile."""
    WRAP = 20
    """A register wraps around that was taken to be uniform plus a known vector."""
    SOURCE = 30
    """A shuffle takes from a lane that does not take part; the block goes on where that is followed."""
    UNDEFINED = 32
    """What such a shuffle gave is used."""
    MATRIX = 31
    """A matrix instruction in a warp of which some lanes have ended, or were never there."""
    SCALE = 33
    """A byte-id or thread-id of a block-scaled mma that names no scale."""
    TENSOR_COUNT = 40
    """Columns of tensor memory that no allocation can have."""
    TENSOR_PERMIT = 41
    """An allocation after the block has promised to make none."""
    TENSOR_DEALLOCATION = 42
    """Columns are freed that were not allocated like that."""
    TENSOR_LEAK = 43
    """The block ends with columns that are allocated."""
    TENSOR_SHARED_OWN = 44
    """The address of an allocation goes to memory that is not the block's own shared memory."""
    TENSOR_GROUP = 45
    """Another `.cta_group` than before."""
    TENSOR_PAIR = 46
    """`.cta_group::2` without another block of the pair, or after that has ended."""
    TENSOR_PAIR_DIFFERS = 47
    """The blocks of a pair allocate or free different columns."""
    TENSOR_COLUMNS = 48
    """Columns that are outside, or not allocated."""
    TENSOR_LANES = 49
    """Lanes that are outside, not aligned, or not the warp's."""
    TENSOR_ADDRESS = 50
    """Lanes of a warp give different addresses, or numbers of columns."""
    PRODUCT_NEW = 60
    """An instruction descriptor of tcgen05.mma that comes for the first time; the block goes on where it is right."""
    PRODUCT_LANES = 61
    """An operand of tcgen05.mma that begins in a lane that it cannot."""
    PRODUCT_TILE = 62
    """A tile in shared memory that tcgen05.mma cannot take."""
    TENSOR_DESCRIPTOR = 51
    """A matrix descriptor of a copy to tensor memory that names no rows in shared memory."""
    TENSOR_FLIGHT = 52
    """Columns that an operation of tcgen05 may still write or read."""
    CONVERGENCE = 21
    """All lanes of a warp that are left wait for others (:mod:`.runtime.convergence`)."""


class Count:
    """What the profiler counts of each instruction: columns of 64-bit numbers."""

    EXECUTIONS = 0
    LANES = 1
    DIVERGENT = 2
    GLOBAL_REQUESTS = 3
    GLOBAL_LANES = 4
    SECTORS = 5
    SHARED_REQUESTS = 6
    SHARED_LANES = 7
    WAVEFRONTS = 8
    """Cycles that the banks take."""
    LEAST = 9
    """Cycles that they would take without a conflict."""
    LOCAL_LANES = 10
    COLUMNS = 11
