"""Where everything lies in the emulator's memory: the one home of the offsets that compiled code and Python share.

A *block state* holds what the warps of one block have in common, a *warp* its masks, its place in the program and its
registers, an *entry* of the buffer table one piece of memory that the kernel may touch. All of them live in memory
between instructions, so that a warp can stop anywhere, be examined, and go on.
"""

from __future__ import annotations

from .structs import Struct, field

LANES = 32
FULL = 0xFFFFFFFF
NEVER = 0x7FFFFFFF
"""Priority of no block: what PARKED holds where all live lanes of a warp are at one place."""

# The address of a generic pointer into shared and local memory: no host address has these upper bits.
SHARED_WINDOW = 0x0100_0000_0000_0000
LOCAL_WINDOW = 0x0200_0000_0000_0000
FUNCTION_START = 0x0400_0000_0000_0000
"""Before the address of the first function."""
# The same where addresses have 32 bits: there arrays get other addresses than in host memory, from NARROW_START on.
NARROW_SHARED = 0xFE00_0000
NARROW_LOCAL = 0xFF00_0000
NARROW_START = 0x1000_0000
ALIGNED_START = 0x0300_0000_0000_0000
"""From here on lie arrays that a kernel needs better aligned than they are in host memory: a GPU's memory would be."""
SHARED_START = 0x400
"""Offset of the first shared variable: the first KiB belongs to the system since sm_90, so 0 is no variable."""
LOCAL_START = 0x10
CALL_STACK = "$stack"
"""The variable that is the stack of recursive functions, whose frames hold anything at first."""
LOCAL_ORIGIN = "@"
"""The provenance of a pointer to a variable in local memory begins so."""
CLUSTER_ORIGIN = "&"
"""What stands before the name of a variable in shared memory where an address may be that of any block of a cluster."""


class Barrier(Struct):
    """One of the 16 barriers of a block."""

    ARRIVED = field("I")
    """Warps that have arrived."""
    EXPECTED = field("I")
    """Threads that must arrive; 0 for all that live."""
    WAITING = field("I")
    """Mask of the warps that wait."""
    RESULT = field("I")


SINK_BYTES = 64
"""What the widest access of a lane has, and more."""


class Block(Struct):
    """A block state: what the warps of one block have in common."""

    # Set for all blocks that run in it
    SCHEDULE = field("Q")
    """Function that goes on with the next warp that can run."""
    RESCHEDULE = field("Q")
    """Function that goes on with the lanes of this warp that come first in the program."""
    ADVANCE = field("Q")
    """As RESCHEDULE, where PARKED is known to be the priority of those lanes' block."""
    RETIRE = field("Q")
    """Function that ends this warp and goes on with the next one."""
    RESOLVE = field("Q")
    """Function that translates the addresses in SCRATCH, lane by lane."""
    TABLE = field("Q")
    """The buffer table, of ENTRIES entries."""
    GRID = field("Q")
    """What all blocks of the launch share (:class:`Launch`)."""
    LAUNCH = field("Q")
    """The bytes of the kernel's parameters."""
    SHARED = field("Q")
    SHARED_BYTES = field("Q")
    LOCAL = field("Q")
    LOCAL_BYTES = field("Q")
    """Of each thread."""
    LOCAL_SHIFT = field("Q")
    """Bytes of a granule of local memory, as a power of two (:mod:`.codegen.local_memory`)."""
    LOCAL_WINDOW = field("Q")
    """Where the window of local memory begins among generic addresses."""
    WINDOW = field("Q")
    """What the addresses of its shared memory have above those of the first block of the cluster."""
    WORKSPACE = field("Q")
    """Address of the counter for barriers of the grid, which %envreg1 (its upper half) and %envreg2 give."""
    ENTRIES = field("i")
    NTID = field("i", 3)
    NCTAID = field("i", 3)
    DYNAMIC = field("i")
    """Bytes of dynamic shared memory."""
    TOTAL_SHARED = field("i")
    SEED = field("I")
    """Of the next choice among warps, where they run in a random order."""
    ALL = field("I")
    """Mask of the block's warps."""

    # Set with the code that it runs
    WARPS = field("Q")
    STRIDE = field("Q")
    """Bytes from warp to warp."""
    BLOCKS = field("Q")
    """Micro-op at the start of each basic block, by priority."""
    ENTRY = field("Q")
    RECONVERGE = field("Q")
    """Micro-op that does nothing but RESCHEDULE."""
    FUNCTION = field("Q")
    """Function that runs a whole block, 0 where there is none."""

    # What runs
    STATUS = field("i")
    BUDGET = field("i")
    EXITS = field("I")
    """Blocks that a block function has left before their end."""
    LOCKS = field("I")
    """Whether others may change memory at the same time, so that atomics need the host's (:mod:`.runtime.alone`)."""
    RUNNABLE = field("I")
    """Mask of the warps that can run."""
    LIVE = field("I")
    """Mask of the warps that have not ended."""
    BARRED = field("I")
    """Mask of the barriers where warps wait or have arrived."""
    BEGUN = field("I")
    """How many blocks, from BEGUN_FIRST on, have made turns of a loop together with one that ran before."""
    TURNS = field("I")
    """The turns that the block that starts has made."""
    STAY = field("I")
    """Whether the current warp must go on, also in a random order."""
    CURRENT = field("I")
    """Number of the warp that runs."""
    FAULT_KIND = field("i")
    FAULT_WARP = field("i")
    FAULT_LANE = field("i")
    FAULT_PC = field("Q")
    """Address of the micro-op."""
    EXIT_PC = field("Q")
    """Micro-op at which the block that EXITS has counted last goes on."""
    REGION = field("i")
    """Where FUNCTION has left the block to wait for others of its cluster: a basic block, plus 1; 0 elsewhere."""
    BEGUN_FIRST = field("Q")
    BEGUN_TURNS = field("I")
    """The turns that they have made,"""
    BEGUN_FURTHER = field("I")
    """and how many of them have made another one."""
    FAULT_ADDRESS = field("Q")
    CTA64 = field("Q")
    """Number of the block in the grid."""
    CTAID = field("i", 3)
    SMID = field("i")
    SCRATCH = field("Q", LANES, align=64)
    EXTENTS = field("Q", LANES)
    """Bytes from each address in SCRATCH on, where a micro-op does not say how many it accesses."""
    BARRIERS = field(Barrier, 16)

    # Rarely used
    ZEROS = field("Q", 16, align=64)
    """What lanes read that are not active, where all lanes read: as floats that are quick to compute with."""
    HEAP = field("Q")
    """Where memory of malloc begins, and the address of its map (:mod:`.heap`), 0 where the kernel has none."""
    HEAP_MAP = field("Q")
    SHADOW = field("Q")
    """Shadow state of the block, where a sanitizer runs (:mod:`.shadow`)."""
    COUNTERS = field("Q")
    """How far the counters of the host thread that runs it are from those that micro-ops name, where one profiles."""
    SINK = field("Q")
    """Memory of SINK_BYTES a lane, for accesses out of bounds that a tool lets pass."""
    CLUSTER = field("Q")
    """What the cluster keeps for the block, 0 where the launch has no clusters (:class:`ClusterBlock`)."""
    CLUSTERID = field("i", 3)
    NCLUSTERID = field("i", 3)
    CLUSTER_CTAID = field("i", 3)
    RANK = field("i")
    """Number of the block in its cluster."""
    CLUSTER_FIRST = field("Q")
    """Where the offset 0 of the shared memory of the cluster's first block would be in host memory."""
    CLUSTER_PITCH = field("Q")
    """Bytes from the shared memory of one of its blocks to that of the next."""
    CLUSTER_OPEN = field("Q")
    """Bytes of shared memory while all of its blocks run, 0 once one of them has ended."""
    CLUSTER_WINDOW = field("Q")
    """The window of shared memory among generic addresses."""
    TENSOR = field("Q")
    """Its tensor memory (:class:`.tensor_memory.TensorMemory`), 0 where the kernel uses none."""
    FREED = field("i")
    """Registers of a thread that warps have given back by setmaxnreg, and no other has taken."""
    PENDING = field("Q")
    """The queue of operations that are not complete (:mod:`.pending`), 0 where the kernel has none,"""
    PENDING_FIRST = field("i")
    """the first of them in it, and behind the last one."""
    PENDING_END = field("i")
    PENDING_MOST = field("i")
    PACES = field("I", 2)
    """How probably they are made each time, of 2**32,"""
    PACE_SEED = field("I")
    """and the seed of the draws, 0 for none."""
    STAGING = field("Q")
    """Memory for what was read of sources, its bytes, and those in use."""
    STAGING_BYTES = field("q")
    STAGING_USED = field("q")
    MAKE_ALL = field("Q")
    """Functions that make all of them, those that an mbarrier waits for, and some."""
    MAKE_COUNTED = field("Q")
    MAKE_SOME = field("Q")
    RESUMED = field("Q")
    """Function that goes on with the current warp, where that and no other is to be next; 0 elsewhere."""
    MARKS = field("Q")
    """Of each entry of the buffer table the address of a byte for each of its sectors, 0 where they are not marked."""


class Cluster(Struct):
    """What the blocks of a cluster share: the state of its barrier. A :class:`ClusterBlock` for each block follows."""

    align = 64
    PHASE = field("i")
    ARRIVED = field("i")
    """Threads that have arrived in this phase."""
    LIVE = field("i")
    """Threads that have not ended."""
    BLOCKS = field("I")
    """Mask of the blocks."""
    ENDED = field("i")
    """Whether some thread has ended."""
    PENDING = field("Q", 2)
    """Where a sanitizer runs, for phases of even and odd number: the epoch behind the last thread that has arrived."""

    RANK_BITS = 24
    """Where the number of the block stands in an address of shared memory."""
    NUMBER = 16
    """What a warp that waits at it has for the number of the barrier."""


class ClusterBlock(Struct):
    """One block of a cluster."""

    align = 64
    BLOCK = field("Q")
    """The block state."""
    HEAD = field("Q")
    """The :class:`Cluster`."""
    WAITING = field("I")
    """Mask of the warps that wait."""
    MASKS = field("Q", LANES, align=64)
    """By warp, lanes that have arrived and not waited since, and the parity of the phase in which they did."""


class ClusterRun(Struct):
    """The clusters that one host thread runs one after the other (:mod:`.codegen.cluster_schedule`)."""

    HEAD = field("Q")
    """The :class:`Cluster`."""
    RUN = field("Q")
    """Function that runs the block of a state."""
    WINDOWS = field("Q")
    """Bytes from the begin of a state's buffer table to its entries for the shared memory of the cluster's blocks."""
    SHARED_BYTES = field("Q")
    GRID = field("i", 3)
    """Of clusters."""
    SHAPE = field("i", 3)
    """Of a cluster."""
    THREADS = field("i")
    """Of a cluster."""
    BLOCKS = field("I")
    """Mask of its blocks."""
    SLICE = field("i")
    """The budget that a block begins with."""
    RETURNED = field("i")
    """Whether the current block's status is to be answered."""
    NUMBER = field("q")
    """The cluster that runs, or is next."""
    END = field("q")
    """Behind the last one."""
    LEFT = field("I")
    """Mask of the blocks that have not ended; 0 between two clusters."""
    CURRENT = field("i")
    """Rank of the block that runs, or is next."""
    TURNS = field("i")
    """Turns that blocks may take before compiled code returns to Python."""


class Mbarrier:
    """The bits of an mbarrier's word: pending arrivals from 0 on, those expected of a phase, signed bytes, parity."""

    MOST = (1 << 20) - 1
    EXPECTED = 20
    TX = 40
    PARITY = 61
    MAGIC = 62
    VALID = 2
    """What the two bits of MAGIC are in an mbarrier, and not in unwritten memory, or in zeros."""


class Launch(Struct):
    """What all blocks of a launch share."""

    align = 64
    NEXT = field("q")
    """Number of the next block."""
    BLOCKS = field("q")
    GRID = field("i", 3)
    WORKSPACE = field("Q")
    NANOSECONDS = field("Q")
    CYCLES = field("Q")
    """What the clocks have shown last."""
    STOPPED = field("i")
    """Whether the clocks stand still, to see whether anything else changes."""
    SEVERAL = field("i")
    """Whether several host threads take blocks."""


class Warp(Struct):
    """A warp. Its registers follow, from REGISTERS on."""

    ACTIVE = field("I", align=64)
    ALIVE = field("I")
    PARKED = field("i")
    """Lowest priority of a block where lanes wait that are not active."""
    INDEX = field("i")
    PC = field("Q")
    BUDGET = field("i")
    YIELDS = field("i")
    INITIAL = field("I")
    """Mask of the lanes that a block begins with."""
    BARRIER = field("i")
    """Number of the barrier that the warp waits at."""
    RESULT = field("I")
    """What the last bar.red gave: a mask for .and and .or, a number for .popc."""
    AFTER = field("i")
    """Priority after which lanes are to run out of order; -1 for none."""
    TID = field("i", 3)
    """Uniform part of %tid.x, y, z where the shape of the block makes it uniform plus a known vector."""
    WAITS = field("Q")
    """Micro-op of the barrier that the warp waits at, 0 where it waits at none."""
    ZERO = field("Q")
    """Always 0: the uniform part of what is nothing but a known vector."""
    FRESH = field("I", 4, align=16)
    """What ACTIVE, ALIVE, PARKED and INDEX are when a block begins."""
    SKIP = field("I")
    """Whether the next function of a warp is not entered, since one was left for what it could not do."""
    PRODUCTS = field("i", align=8)
    """Products of wgmma that it has come to."""
    GROUPS = field("i")
    """Groups of these that it has committed."""
    WAITS_AT = field("Q")
    """Host address of the mbarrier at which it found the phase not complete, 0 since it has found one that is."""
    MAXNREG = field("i", align=8)
    """Registers of a thread that setmaxnreg has given it, 0 before."""
    PRIORITIES = field("i", LANES, align=64)
    """Priority of the basic block that each lane is at, for lanes that are not active."""
    TIDS = field("i", 3 * LANES, align=64)
    """%tid.x, y, z of each lane."""
    REGISTERS = field("B", 0, align=64)


class Entry(Struct):
    """An entry of the buffer table: a range of addresses and where it lies in host memory.

    That of a variable in local memory, which is elsewhere for each thread, has SIZE 0, so that the check fails and the
    search decides; DELTA are its bytes there.
    """

    align = 64
    LOW = field("Q")
    SIZE = field("q")
    WRITABLE = field("q")
    """SIZE where stores are allowed, else 0."""
    DELTA = field("q")
    """Host address minus address."""
    SPACES = field("I")
    """Bit mask of the state spaces that reach it."""
    SHADOW_WORDS = field("Q")
    """Address that the shadow word of host address 0 would have."""
    SHADOW_STRIDE = field("Q")
    """Bytes between the shadow words of writers, readers and earlier readers."""


SPACE_BITS = {"global": 1, "shared": 2, "const": 4, "param": 8, "generic": 16, "local": 32}
