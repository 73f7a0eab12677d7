"""Layout of the sanitizer's shadow memory and of its state beside each block, shared by compiled checks and Python.

The execution of a warp is divided into *epochs* (FastTrack, Flanagan and Freund 2009), numbered through the whole
process in the order in which they begin; whatever orders a warp with others begins a new one. Each granule of memory
has three *shadow words*: its last writer, its last reader, and the last reader before that from another warp. A shadow
word holds epoch, statement, warp and lane of that access. Epoch numbers grow with time, so "everything up to this
barrier" is one comparison, and most accesses need no other.
"""

from __future__ import annotations

from .layout import LANES
from .status import Number
from .structs import Struct, field

EPOCH_SHIFT = 32
STATEMENT_SHIFT = 16
LAST_STATEMENT = 0x7FFF
"""Stands for all statements from this number on."""
SEVERAL_LANES = 1 << 12
"""More than one lane of the warp made the access; the word names the last of them."""
SUPPRESSED = 1 << 13
"""Beside the number of a statement: its accesses are recorded but no longer reported."""
STORED = 1 << 14
"""The access is a store, not a read-modify-write: another store of the same value does not race with it."""
UPDATED = 1 << 15
"""Of a store: its thread has read the place before, so that it may undo another one, of the same value too."""
CHANGED = 1 << 31
"""Of a store: its thread has stored something else there before, which the same threads are not ordered with."""
FIRST = 1 << 31
"""Of a reader, in memory of the block: barriers order the reader before it before this one."""
NOTED = 1 << 31
"""In the record of a check, beside the number of a statement: its deferred loads are no longer reported to Python."""
STRENGTH_SHIFT = 10
"""0 for a weak access, 1 for one that is strong in its block, 2 in its cluster, 3 in the GPU."""
STRENGTH = 3 << STRENGTH_SHIFT
WARP_SHIFT = 5
WARP = 31 << WARP_SHIFT
LANE = 31
THREAD = 0xFFFFFFFF << EPOCH_SHIFT | SEVERAL_LANES | WARP | LANE
"""Bits of a shadow word that are equal in two accesses of one thread in one epoch."""
UNWRITTEN = 1
"""Shadow word of global memory that the host left uninitialised."""
PENDING = 0xFFFFFFFF << EPOCH_SHIFT
"""Epoch of an access by a bulk copy that no thread has waited for: it is ordered with nothing."""
EPOCH_BITS = 26
"""The blocks of the last 2^26 epochs are kept."""
ORDER_CACHE_BITS = 14
"""The cache of happens-before answers has this many bits of index."""
ORDER_HASH = 0x9E3779B97F4A7C15
WHOLE_WARP = 1 << 20
"""In the key of such an answer: it holds for all lanes of both warps."""


def statement_bits(statement: int) -> int:
    """The number of a statement in a shadow word."""
    return min(statement, LAST_STATEMENT) << STATEMENT_SHIFT


class WarpClock(Struct):
    """The clock of one warp."""

    align = 64
    EPOCH = field("Q")
    """Its current epoch and its number, as in a shadow word."""
    BLOCK_FLOOR = field("Q")
    """Every access of the block in an epoch before this one happens before what the warp does now."""
    WARP_FLOOR = field("Q")
    """The same for accesses of the lanes of the warp."""
    BARRIERS = field("Q")
    """Barriers of the whole block that it has passed."""
    POLLED_EPOCH = field("Q")
    POLLED_PC = field("Q")
    POLLED_HOST = field("Q")
    POLLED_MASK = field("I")
    POLLED_WRITES = field("I")
    """Its last strong read: when, which micro-op, where, of which lanes, after how many strong writes there."""
    CLUSTER_FLOOR = field("Q")
    """Every access of the cluster in an epoch before this one happens before what the warp does now."""
    KNOWN = field("Q")
    """Epoch and warp of the last accesses that were found, by what is acquired, to come before what the warp does."""


WORD_SHIFT = 3
"""A shadow word has 2^3 bytes."""
CHECK_FLAGS = {
    "role": (0, 2), "granule": (2, 3), "granules": (5, 7), "race": (13, 1), "init": (14, 1), "copies": (15, 1),
    "item": (16, 5), "defers": (28, 1), "grouped": (29, 1), "proxied": (30, 1),
}
"""What a shadow inspection gets of a check: shift and width of each property among the bits of its last argument."""


class Plane(Number):
    """The shadow words of a granule."""

    WRITER = 0
    READER = 1
    EARLIER_READER = 2
    COPY = 3
    """Of shared memory, in kernels with ``cp.async``: the last such copy to it (:class:`CopyClock`)."""


WRITES = 64
"""Numbers in which a launch counts its strong writes, by their address: a poll with none since sees nothing new."""
POLL = 128
"""Turns of a block state that a strong read costs: the thread probably waits for another block."""


class SyncRecord(Struct):
    """An event that may order threads, as compiled code notes it for Python: who, when, where.

    Hosts are the addresses of the lanes, ``BEFORE`` the numbers there, ``STORED`` those that a plain store puts there.
    Of one lane, or of lanes in which they are the same (ALIKE), each is one number, and the record ends behind them.
    """

    PC = field("Q")
    WARP_FLOOR = field("Q")
    STATE = field("Q")
    """Address of the block's state."""
    BLOCK_FLOOR = field("Q")
    BARRIERS = field("Q")
    EPOCH = field("Q")
    """The clock of the warp, as in :class:`WarpClock`, but in another order: copied as one vector, what has just been
    written would hold up the copy."""
    BLOCK = field("I")
    """Number of the block, plus one."""
    MASK = field("I")
    HOSTS = field("Q", LANES)
    BEFORE = field("Q", LANES)
    STORED = field("Q", LANES)


SYNC_RECORD_OF_ONE = SyncRecord.HOSTS + 3 * 8
"""Bytes of a record of one lane."""
ALIKE = 1
"""In the PC of a record, which is aligned: what it says of one lane is the same in all of its mask."""


class Role(Number):
    """What an access does, in a shadow check."""

    READ = 0
    WRITE = 1
    ATOMIC = 2
    COPY = 3
    """The beginning of an asynchronous copy, which is a write besides."""


class Kind(Number):
    """Which threads share a region. In a cluster, shared memory counts as global memory does."""

    GLOBAL = 0
    SHARED = 1
    LOCAL = 2


class Region(Struct):
    """The description of a range of host memory: its shadow words, and which threads share it."""

    align = 64
    LOW = field("Q")
    BYTES = field("Q")
    WORDS = field("Q")
    STRIDE = field("Q")
    """Bytes between the shadow words of last writers, last readers and earlier readers."""
    KIND = field("i")
    """A :class:`Kind`."""
    OWNER = field("Q")
    """Address of the shadow state of the block whose shared memory it is, where copies to it are followed; or 0."""


class CopyClock(Number):
    """Rows of 32 numbers that each warp has where ``cp.async`` is followed.

    Each execution of a copy has a *ticket*, a number that grows through the whole process; the shadow word of what it
    writes holds ticket, warp and lane. A copy is incomplete from the oldest incomplete ticket of its thread on, which
    only commits and waits of that thread change: so nothing is done for each copy that completes.
    """

    OLDEST = 0
    """The first ticket of a lane whose copy is incomplete, or NO_TICKET."""
    OPEN = 1
    """The first ticket of the group that the lane has not committed yet."""
    GROUPS = 2
    """The same of the groups that it has committed, the last first."""


NO_TICKET = 0xFFFFFFFF
TICKET_SHIFT = 32


class Shadow(Struct):
    """The shadow state of a block. Epochs are shifted as in a shadow word."""

    EPOCH_COUNTER = field("Q")
    """Address of the number of the last epoch."""
    EPOCH_BLOCKS = field("Q")
    """Address of the block of each epoch, plus one."""
    LAUNCH = field("Q")
    """First epoch of the launch."""
    BASE = field("Q")
    """First epoch of the block."""
    WINDOW = field("Q")
    """Epochs from here on, up to the warp's BLOCK_FLOOR, are of this block."""
    PENDING_BARRIERS = field("Q", 2)
    """For barriers of even and odd number: the BLOCK_FLOOR of all warps once the barrier completes."""
    REGIONS = field("Q")
    REGION_COUNT = field("Q")
    ORDER_CACHE = field("Q")
    BLOCK = field("Q")
    """Number of the block, plus one."""
    INSPECT = field("Q")
    WORD = field("Q")
    """What a check passes to Python: the shadow word, its address, the host address, the lane and a :class:`Reason`."""
    WORD_ADDRESS = field("Q")
    HOST = field("Q")
    LANE = field("i")
    REASON = field("i")
    CHECKED_LANES = field("i")
    """Lanes of the current instruction that have been checked already."""
    CACHE_USED = field("i")
    """Whether ORDER_CACHE holds anything."""
    STRIDE = field("Q")
    CLUSTERS = field("Q")
    """Address of the number of each block's cluster; 0 where the launch has none."""
    VALUES = field("Q")
    """Where the values are that the current instruction stores: those of all lanes, then those of its next item."""
    TICKET_COUNTER = field("Q")
    """Address of the last ticket of a copy."""
    COPY_CLOCKS = field("Q")
    """Address of the rows of the first warp (:class:`CopyClock`)."""
    COPY_BYTES = field("Q")
    """Bytes of the rows of one warp."""
    COPY_WARPS = field("Q")
    OLDEST_COPY = field("Q")
    """The oldest incomplete ticket of the block, shifted as in a shadow word."""
    UNDEFINED = field("I", 32)
    """For each granule of an access, the lanes for which it is undefined, where that is deferred to its use."""
    COPY_WORD = field("Q")
    """Of the copy that is inspected: its shadow word, without the lane."""
    LOCAL_WORDS = field("Q")
    """Where the shadow words of local memory are, less those of all addresses below it."""
    LOG = field("Q")
    """Address of where the next :class:`SyncRecord` goes; behind it, where there is no more room."""
    ORDERS = field("Q")
    """Address of what compiled code knows of the order among the warps of the block: a :class:`WarpOrder` for each of
    32 warps, MBARRIERS times :class:`MbarrierOrder`, and a :class:`BarrierOrder` for each of 16; 0 where it follows
    none."""
    GIVEN_UP = field("Q")
    """BASE of the last block that Python follows alone, since it has done what these cannot hold."""
    ARRIVE = field("Q")
    FOLLOW_BARRIER = field("Q")
    PRECEDE = field("Q")
    """Addresses of the routines that follow an mbarrier, and a barrier of some warps, and that compare with what is
    known."""
    GRAPH = field("Q")
    """Address of the :class:`.sync_graph.SyncGraph`; 0 where the kernel has nothing that goes there."""
    ACQUIRED = field("Q")
    """The last acquire of the block there."""
    WARP_SYNC = field("Q")
    """Address of the :class:`.sync_graph.WarpSync` of the first warp."""
    FOLLOW = field("Q")
    SEARCH = field("Q")
    """Addresses of the routines that write there, and that look for an order."""
    HOME = field("Q")
    HOME_BYTES = field("Q")
    """Where the memory begins that the block, or its cluster, has for itself, and how many bytes it has."""
    FENCED = field("I")
    """The warps that have executed a fence."""
    WORDS = field("Q")
    WORDS_STRIDE = field("Q")
    WORDS_BYTES = field("Q")
    """In a cluster: the shadow words of the block's shared memory, bytes from plane to plane, and those to clear."""
    FRESH = field("Q")
    """What those of last writers are where the block begins."""
    CLUSTER_BASE = field("Q")
    """First epoch of the cluster: those from here on are of its blocks."""
    PROXIES = field("Q")
    """Address of the :class:`.proxy_shadow.ProxyShadow`; 0 where accesses by the async proxy are not followed."""
    SHARED_ORIGIN = field("Q")
    """Where the shadow words of shared memory are, less those of all addresses below it."""
    SHARED_STRIDE = field("Q")
    """Bytes from plane to plane."""
    SHARED_LOW = field("Q")
    SHARED_SIZE = field("Q")
    SHARED_WORDS = field("Q")
    SHARED_CLEARED = field("Q")
    """Host address and bytes of shared memory, and of its words, which are cleared where a block begins."""
    GROUPS = field("Q")
    """Address of the :class:`.proxy_shadow.GroupRecord` of epoch 0."""
    GROUP = field("Q")
    """The upper half of the shadow words of the group whose copy is checked."""
    FENCED_BLOCKS = field("Q")
    """Address of the epoch of each block's last fence between proxies of global memory, by its number."""
    FENCED_WORD = field("Q")
    FENCED_EPOCH = field("Q")
    """The last shadow word that a fence was found behind, and the epoch of the warp that had asked."""
    OBSERVE = field("Q")
    SETTLED = field("Q")
    JUDGE = field("Q")
    FENCED_BY = field("Q")
    """Addresses of the routines that follow mbarriers, judge accesses, and look for fences, for the async proxy."""
    WARP_CLOCKS = field(WarpClock, LANES)


MBARRIERS = 64
"""The mbarriers of a block that compiled code follows."""
BARRIERS = 16
"""The barriers of a block that instructions number."""


class WarpOrder(Struct):
    """What happens before all that a warp does now, by mbarriers, and by barriers of some warps or some of its lanes.

    For each warp, KNOWN is a floor as in :class:`WarpClock`, of the accesses of all its lanes, and ONE that of one of
    its lanes, whose number is in the low bits. PART and PART_ONE are the same for what only the lanes of PART_MASK have
    acquired, until the warp passes a barrier; PART_FLOOR is its WARP_FLOOR at that time. What the lanes of a TILE_MASK
    did before TILE_FLOOR happens before what a lane does; TILE_LATEST is the last of these floors. WAITS is 1 from
    where the warp arrives at a barrier of some warps, to wait there, until it goes on.
    """

    align = 64
    KNOWN = field("Q", LANES, 64)
    ONE = field("Q", LANES, 64)
    PART = field("Q", LANES, 64)
    PART_ONE = field("Q", LANES, 64)
    TILE_FLOOR = field("Q", LANES, 64)
    TILE_MASK = field("I", LANES, 64)
    PART_FLOOR = field("Q")
    TILE_LATEST = field("Q")
    PART_MASK = field("I")
    WAITS = field("I")


class MbarrierOrder(Struct):
    """What threads release at an mbarrier: in its current phase, and in those that are complete, as in WarpOrder."""

    align = 64
    PENDING = field("Q", LANES, 64)
    PENDING_ONE = field("Q", LANES, 64)
    COMPLETE = field("Q", LANES, 64)
    COMPLETE_ONE = field("Q", LANES, 64)
    HOST = field("Q")
    BASE = field("Q")
    """First epoch of the block that it is of."""
    INITIALISER = field("Q")
    """The shadow word of its initialisation."""
    PARITY = field("I")
    """Of its current phase."""
    USERS = field("I")
    """The warps that are known to use it after its initialisation."""


class BarrierOrder(Struct):
    """What warps release that have arrived at a barrier of some warps, until it is complete, as in WarpOrder."""

    align = 64
    PENDING = field("Q", LANES, 64)
    PENDING_ONE = field("Q", LANES, 64)
    OPEN = field("Q")
    """First epoch of the block of which warps have arrived; another number where none have."""


class Action(Number):
    """What an instruction does to an mbarrier."""

    INITIALISES = 1
    ARRIVES = 2
    WAITS = 4


class Reason(Number):
    """Why a compiled check returns to Python."""

    WRITER = 1
    READER = 2
    EARLIER_READER = 3
    UNINITIALISED = 4
    INCOMPLETE_COPY = 5
    UNFENCED = 7
    """An access by another proxy, with no proxy fence between."""
    UNFENCED_MBARRIER = 11
    MISALIGNED = 12
    """A tile that does not begin where its swizzle does."""
    REGISTERS = 13
    """A register that a wgmma may still use, or that no fence orders before one."""
    UNFENCED_CORE = 16
    """Tensor memory that another warp has written, with no fence of tcgen05 between."""
    UNREAD_SOURCE = 15
    """A thread ends that has not waited until its copies have read shared memory."""
    REUSED_MBARRIER = 17
    """An mbarrier that is made again, of which a copy is not known to be complete."""
    EXPECTING_MBARRIER = 18
    """The same, whose phase still waits for bytes."""
    UNSEEN_COPY = 19
    """The block ends, and nobody has waited for a copy."""
    UNFENCED_MAP = 14
    """A tensor map that has been changed, with no fence for tensor maps behind that."""
    DEFERRED = 6
    """A load of unwritten memory, which is an error only where its value is used."""
    SYNC_ACCESS = 8
    """A memory access that may synchronise threads."""
    SYNC_INSTRUCTION = 9
    WARP_BARRIER = 10
