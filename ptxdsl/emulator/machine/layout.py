"""Where everything lies in the emulator's memory: the one home of the offsets that compiled code and Python share.

A *block state* holds what the warps of one block have in common, a *warp* its masks, its place in the program and its
registers, an *entry* of the buffer table one piece of memory that the kernel may touch. All of them live in memory
between instructions, so that a warp can stop anywhere, be looked at, and go on.
"""

from __future__ import annotations

LANES = 32
FULL = 0xFFFFFFFF
NEVER = 0x7FFFFFFF
"""Rank of no block: what `parked` holds where every live lane of a warp is at one place."""

# The address of a generic pointer into shared and local memory: no host address has these upper bits.
SHARED_WINDOW = 0x0100_0000_0000_0000
LOCAL_WINDOW = 0x0200_0000_0000_0000
FUNCTION_START = 0x0400_0000_0000_0000
"""Before the address of the first function."""
# The same where addresses have 32 bits: there arrays get addresses of their own, from NARROW_START on.
NARROW_SHARED = 0xFE00_0000
NARROW_LOCAL = 0xFF00_0000
NARROW_START = 0x1000_0000
ALIGNED_START = 0x0300_0000_0000_0000
"""From here on lie arrays that a kernel needs better aligned than they are in host memory: a GPU's memory would be."""
SHARED_START = 0x400
"""Offset of the first shared variable: the first KiB belongs to the system since sm_90, so 0 is no variable."""
LOCAL_START = 0x10


class Block:
    """Offsets in a block state."""

    SCHEDULE = 0
    """Function that goes on with the next warp that can run."""
    RESCHEDULE = 8
    """Function that goes on with the lanes of this warp that come first in the program."""
    RESOLVE = 16
    """Function that translates the addresses in SCRATCH, lane by lane."""
    TABLE = 24
    ENTRIES = 32
    BLOCKS = 40
    """Record of each basic block, by rank."""
    WARPS = 48
    STRIDE = 56
    CURRENT = 64
    ALL = 72
    """Mask of the block's warps."""
    RUNNABLE = 80
    LIVE = 88
    ENTRY = 96
    LAUNCH = 104
    """The bytes of the kernel's parameters."""
    SHARED = 112
    SHARED_BYTES = 120
    LOCAL = 128
    LOCAL_BYTES = 136
    STATUS = 144
    FAULT_LANE = 148
    FAULT_KIND = 152
    FAULT_WARP = 156
    FAULT_RECORD = 160
    FAULT_ADDRESS = 168
    BUDGET = 176
    CTAID = 192
    LINEAR = 204
    NTID = 208
    NCTAID = 220
    CTA64 = 232
    DYNAMIC = 240
    NWARPS = 244
    TOTAL_SHARED = 248
    SMID = 252
    RETIRE = 1024
    """Function that ends this warp and goes on with the next one."""
    GRID = 184
    """What all blocks of the launch share."""
    MEET = 1040
    """Record that does nothing but RESCHEDULE."""
    SEED = 1056
    """Of the next choice among warps, where they run in shuffled order."""
    STAY = 1060
    """Whether the current warp must go on, also in shuffled order."""
    SHADOW = 1048
    """The block's shadow state (:mod:`shadow`), 0 without the sanitizer."""
    HEAP = 1064
    """Where memory of malloc begins, and the address of its map (:mod:`heap`), 0 where the kernel has none."""
    HEAP_MAP = 1072
    FUNCTION = 1080
    """Function that runs a whole block, 0 where there is none."""
    WORKSPACE = 1088
    """Address of what the blocks of a cooperative launch meet by, which %envreg1 (its upper half) and %envreg2 give."""
    BARRED = 1032
    """Mask of the barriers where somebody waits or has arrived."""
    CLUSTERID = 1200
    NCLUSTERID = 1212
    CLUSTER_CTAID = 1224
    RANK = 1236
    """Number of the block in its cluster."""
    WINDOW = 1240
    """What the addresses of its shared memory have above those of the first block of the cluster."""
    CLUSTER = 1248
    """What the cluster keeps for the block, 0 where nothing asks for a cluster (:class:`Cluster`)."""
    SCRATCH = 256
    BARRIERS = 512
    LOCAL_WINDOW = 1096
    """Where the window of local memory begins among generic addresses."""
    ADVANCE = 1256
    """As RESCHEDULE, where PARKED is known to be the rank of those lanes."""
    SIZE = 1264


class Barrier:
    """Offsets in one of the 16 barriers of a block state."""

    ARRIVED = 0
    """Warps that have arrived."""
    EXPECTED = 4
    """Warps that must arrive; 0 for all that live."""
    WAITING = 8
    RESULT = 12
    SIZE = 32


class Cluster:
    """Offsets in what the blocks of a cluster share: the state of its barrier, then a part for each block."""

    PHASE = 0
    ARRIVED = 4
    """Threads that have arrived in this phase."""
    LIVE = 8
    """Threads that have not ended."""
    BLOCKS = 12
    """Mask of the blocks."""
    HEAD_SIZE = 64

    BLOCK = 0
    """Of a part: the block state, the head, the mask of warps that wait, and two masks of lanes for each warp."""
    HEAD = 8
    WAITING = 16
    MASKS = 64
    """Lanes that have arrived and not waited since, and the parity of the phase in which they did."""
    PART_SIZE = 64 + 8 * LANES
    RANK_BITS = 24
    """Where the number of the block stands in an address of shared memory."""
    NUMBER = 16
    """What a warp that waits at it has for the number of the barrier."""


class Mbarrier:
    """The bits of an mbarrier's word: pending arrivals from 0 on, those expected of a phase, signed bytes, parity."""

    MOST = (1 << 20) - 1
    EXPECTED = 20
    TX = 40
    PARITY = 61
    MAGIC = 62
    VALID = 2
    """What the two bits of MAGIC are in an mbarrier, and not in memory that nobody wrote, or of zeros."""


class Launch:
    """Offsets in what all blocks of a launch share."""

    NEXT = 0
    BLOCKS = 8
    GRID = 16
    STOP = 28
    WORKSPACE = 48
    SIZE = 64


class Warp:
    """Offsets in a warp. Registers follow the header."""

    ACTIVE = 0
    ALIVE = 4
    PARKED = 8
    INDEX = 12
    PC = 16
    BUDGET = 24
    YIELDS = 28
    INITIAL = 32
    FLAGS = 36
    BARRIER = 40
    RESULT = 44
    """What the last bar.red gave: a mask for .and and .or, a number for .popc."""
    AFTER = 60
    """Rank after which to look for lanes that get their turn out of order; 0 where none has been asked for."""
    TID = 48
    """Base of %tid.x, y, z where the shape of the block makes it uniform plus a known vector."""
    PLACES = 64
    """Rank of the basic block that each lane is at, for lanes that are not active."""
    ZERO = 576
    """Always 0: the uniform part of what is nothing but a known vector."""
    FRESH = 592
    """What ACTIVE, ALIVE, PARKED and INDEX are when a block begins."""
    WAITS = 584
    """Record of the barrier that the warp waits at, 0 where it waits at none."""
    TIDS = 192
    """%tid.x, y, z of each lane."""
    REGISTERS = 640


class Entry:
    """Offsets in an entry of the buffer table: a range of addresses and where it lies in host memory."""

    LOW = 0
    SIZE = 8
    WRITABLE = 16
    """SIZE where stores are allowed, else 0."""
    DELTA = 24
    """Host address minus address."""
    SPACES = 32
    """Bit mask of the state spaces that reach it."""
    SHADOW_WORDS = 40
    """Address that the shadow word of host address 0 would have."""
    SHADOW_STRIDE = 48
    """Bytes between the shadow words of writers, readers and earlier readers."""
    BYTES = 64


SPACE_BITS = {"global": 1, "shared": 2, "const": 4, "param": 8, "generic": 16, "local": 32}


SLICE = 4096
"""Backward branches that a warp may take before another one gets its turn."""
SHORT = 16
"""Statements of a loop that probably waits, where it looks at memory."""
POLL = SLICE + 1
"""What a backward branch of a loop that probably waits costs: the others have their turn at once."""
SLICE_TURNS, POLL_TURNS = 16, 4
"""What a slice, or a look at what one waits for, counts among the turns after which compiled code returns to Python."""
PATIENCE = 1024
"""Turns that diverged lanes may take, 16 a slice and 1 a look, before the others of their warp get theirs too."""


class Status:
    """Why compiled code returned."""

    RUNNING = 0
    YIELD = 1
    FAULT = 2
    STUCK = 3
    DEOPT = 4
    DONE = 5
    SERVICE = 6
    CALLBACK = 7
    """Instrumentation calls Python: a check of the sanitizer, or a breakpoint."""


class Count:
    """What is counted of each instruction while somebody profiles: columns of 64-bit numbers."""

    EXECUTIONS = 0
    LANES = 1
    DIVERGENT = 2
    GLOBAL_REQUESTS = 3
    GLOBAL_LANES = 4
    SECTORS = 5
    SHARED_REQUESTS = 6
    SHARED_LANES = 7
    WAVEFRONTS = 8
    """Turns that the banks take."""
    LEAST = 9
    """Turns that they would take without a conflict."""
    LOCAL_LANES = 10
    COLUMNS = 11


class Fault:
    """What went wrong, where the status is FAULT."""

    MEMORY = 0
    ALIGNMENT = 1
    TRAP = 2
    BARRIER_DIVERGED = 3
    BARRIER_COUNT = 4
    BARRIER_MISMATCH = 5
    BARRIER_NUMBER = 6
    MEMBERS = 7
    ASSERT = 8
    BRANCH_INDEX = 9
    WRAP = 10
    CONVERGENCE = 18
    """Nothing yet: all lanes of a warp that are left wait for others (:mod:`.runtime.convergence`)."""
    CLUSTER_ARRIVE = 16
    CLUSTER_WAIT = 17
    MBARRIER_INVALID = 11
    MBARRIER_INIT = 12
    MBARRIER_COUNT = 13
    MBARRIER_BYTES = 14
    MBARRIER_COMPLETES = 15
    HANDLE = 30
    """Of a texture, sampler or surface."""
    SURFACE = 31
    SURFACE_ALIGNMENT = 32
