"""What sanitizer, profiler and debugger insert before and behind the micro-ops of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..machine.shadow import CHECK_FLAGS, Role
from .addresses import Pattern, WithAddress
from .memory import Private
from .micro_op import MicroOp, Routine
from .operand_classes import OperandClass

if TYPE_CHECKING:
    from .tensor_copies import Shape

__all__ = [
    "BULK_BYTES", "BarrierFollowing", "Breakpoint", "BulkGroup", "BulkReport", "BulkShadowCheck", "CopyBegin",
    "CopyCommit", "CopyWait", "CountBranch", "CountExecution", "CountMemory", "EpochArrive", "EpochBarrier",
    "EpochBegin", "EpochWarpBarrier", "MarkSectors", "MbarrierFollowing", "OrderLookup", "OrderSearch", "ShadowCheck",
    "ShadowInspection",
    "SyncAccess", "SyncBarrier", "SyncBarrierEnd", "SyncFollowing", "SyncInstruction", "SyncMbarrier",
    "TensorReadCheck", "TensorShadowCheck",
]

BULK_BYTES = 16
"""Of a bulk copy, checked at once."""


class ShadowCheck(
    WithAddress, MicroOp, may_fault=True, repeatable=True, inlinable=True, instrumentation=True, by_lane=True
):
    """Checks the shadow of the memory that an access is about to touch, and brings it up to date.

    ``role`` is READ, WRITE or ATOMIC. ``block_private``: only this block reaches the memory, None where that is not
    known. ``readers``: the kernel reads the memory. ``barriers_only``: only barriers of the whole block order its
    threads. ``folded``: all segments of the address pattern coincide. ``granule``: bytes of a granule, as a power of
    two. ``copies``: asynchronous copies may write there. ``same_value``: all lanes store the same, and it does not
    depend on what was there. ``sources``: what is stored, in items of so many ``bits``. ``defers``: unwritten memory is
    no error of a load itself, and a store may leave it as undefined as before; ``flagged`` are the elements with a
    predicate that says whether they are defined, which a load clears. ``followed``: compiled code follows mbarriers.
    ``searched``: it follows flags, fences or barriers of the cluster. ``private`` as of :class:`.memory.Load`.
    ``apart``: how many arrays the kernel writes, outside of which nothing races; 0 where it is known which one it is.
    ``in_cluster``: barriers of the cluster order all that its threads have done. ``anywhere``: it is to
    some array in shared memory of the block.
    """

    role: int
    strength: int
    same_value: bool
    block_private: bool | None
    address: OperandClass
    pattern: Pattern | None
    nbytes: int
    granule: int
    guard: OperandClass
    race: bool
    init: bool
    readers: bool
    barriers_only: bool
    folded: bool
    copies: bool
    sources: tuple[OperandClass, ...]
    bits: int
    defers: bool
    flagged: tuple[bool, ...]
    followed: bool
    searched: bool
    private: Private
    apart: int
    in_cluster: bool
    anywhere: bool

    grouped = proxied = False

    @property
    def granules(self) -> int:
        """Granules that a lane accesses."""
        return self.nbytes >> self.granule

    def granules_of(self, element: int) -> range:
        """The granules of an element."""
        count = self.granules // len(self.flagged)
        return range(element * count, element * count + count)

    @property
    def item(self) -> int:
        """Bytes of a value that is stored; 0 where none is known."""
        return self.bits // 8 if self.sources else 0

    @property
    def flags(self) -> int:
        """The last argument of a shadow inspection."""
        return sum(getattr(self, name) << shift for name, (shift, _) in CHECK_FLAGS.items())

    @property
    def fusible(self) -> bool:
        return not self.guard and (self.block_private is not None or bool(self.private))


class BulkShadowCheck(MicroOp, may_fault=True, repeatable=True, inlinable="see BulkMove", instrumentation=True):
    """Checks the shadow of the memory at host addresses, and brings it up to date, granule by granule.

    The fields are those of :class:`ShadowCheck`. Lanes in which all of ``identity`` is equal store the same.
    ``grouped``: a group of the thread completes it; ``proxied``: a fence must be behind what the generic proxy wrote.
    """

    role: int
    strength: int
    granule: int
    race: bool
    init: bool
    size: OperandClass
    identity: tuple[OperandClass, ...]
    guard: OperandClass
    grouped: bool
    proxied: bool

    @property
    def flags(self) -> int:
        """The last argument of a shadow inspection of BULK_BYTES."""
        values = {"role": self.role, "granule": self.granule, "race": self.race, "init": self.init}
        values |= {"granules": BULK_BYTES >> self.granule, "grouped": self.grouped, "proxied": self.proxied}
        return sum(value << CHECK_FLAGS[name][0] for name, value in values.items())


class TensorShadowCheck(MicroOp, may_fault=True, repeatable=True, inlinable="see TensorMove", instrumentation=True):
    """Checks the shadow of what boxes take of their tensors; fields as of TensorMove and of BulkShadowCheck."""

    role: int
    strength: int
    granule: int
    race: bool
    init: bool
    shape: Shape
    offsets: int
    coordinates: tuple[OperandClass, ...]
    identity: tuple[OperandClass, ...]
    guard: OperandClass
    grouped: bool
    proxied: bool

    @property
    def flags(self) -> int:
        """The last argument of a shadow inspection, without the number of granules."""
        values = {"role": self.role, "granule": self.granule, "race": self.race, "init": self.init}
        values |= {"grouped": self.grouped, "proxied": self.proxied}
        return sum(value << CHECK_FLAGS[name][0] for name, value in values.items())


class BulkGroup(MicroOp, may_fault=False, repeatable=False, inlinable="see BulkMove", instrumentation=True):
    """Each thread commits what it has written to global memory as a group, or has waited for all but ``left``."""

    commits: bool
    left: int
    guard: OperandClass


class CopyBegin(WithAddress, MicroOp, may_fault=True, repeatable=True, inlinable=True, instrumentation=True):
    """``cp.async``, behind its stores: what it writes is incomplete from here on. Fields as of ShadowCheck."""

    block_private: bool | None
    address: OperandClass
    pattern: Pattern | None
    nbytes: int
    granule: int
    guard: OperandClass

    role = Role.COPY
    same_value = True
    folded = False

    @property
    def granules(self) -> int:
        """Granules that a lane copies."""
        return self.nbytes >> self.granule

    @property
    def flags(self) -> int:
        """The last argument of a shadow inspection."""
        return sum(getattr(self, name) << CHECK_FLAGS[name][0] for name in ("role", "granule", "granules"))


class CopyCommit(MicroOp, may_fault=False, repeatable=False, inlinable=True, instrumentation=True):
    """Ends a group of copies, of which ``groups`` are remembered."""

    groups: int
    guard: OperandClass


class CopyWait(MicroOp, may_fault=False, repeatable=True, inlinable=True, instrumentation=True):
    """All copies but those of the last ``left`` groups are complete; of all, those without a group too, at -1."""

    groups: int
    left: int
    guard: OperandClass


class BulkReport(MicroOp, may_fault=True, repeatable=False, inlinable="see BulkMove", instrumentation=True):
    """Reports the host addresses and bytes of an end to Python: one that a copy only ``reads``, or writes.

    ``shared``: it lies in shared memory, and Python checks the access too; ``identity`` as of BulkShadowCheck.
    """

    reads: bool
    shared: bool
    size: OperandClass
    identity: tuple[OperandClass, ...]
    guard: OperandClass


class EpochBegin(MicroOp, may_fault=False, repeatable=True, inlinable=True, instrumentation=True):
    """A warp starts on a block; the block's first one makes the shadow state ready."""


class EpochArrive(MicroOp, may_fault=False, repeatable=True, inlinable=True, instrumentation=True):
    """Before a barrier of the whole block."""


class EpochBarrier(
    MicroOp, may_fault=False, repeatable=True, inlinable=True, instrumentation=True
):
    """Behind a barrier of the whole block."""

    guard: OperandClass


class EpochWarpBarrier(
    MicroOp, may_fault=True, repeatable=False, inlinable=True, instrumentation=True
):
    """Behind a warp barrier. ``followed``: compiled code follows those of part of a warp."""

    guard: OperandClass
    members: OperandClass
    followed: bool


class SyncInstruction(
    MicroOp, may_fault=True, repeatable=False, inlinable=True, instrumentation=True
):
    """Reports an instruction to Python; ``whole`` only where all lanes of the warp are active, ``logged`` later.

    ``does`` is what a fence or a barrier of the cluster does to the synchronisation graph. ``orders_all``: threads do
    nothing between their arrival at a barrier of the cluster and the end of its phase.
    """

    guard: OperandClass
    whole: bool
    logged: bool
    does: int
    orders_all: bool


class SyncAccess(
    WithAddress, MicroOp, may_fault=True, repeatable=False, inlinable=True, instrumentation=True
):
    """Reports an access to Python by which threads synchronise.

    ``logged``: later, with the ``bits`` of the first element that were there and what ``stored`` puts there. A load
    ``polls``: the thread probably waits. ``does`` is what it does to the synchronisation graph.
    """

    address: OperandClass
    nbytes: int
    writes: bool
    guard: OperandClass
    logged: bool
    polls: bool
    bits: int
    stored: OperandClass
    does: int


class SyncMbarrier(
    WithAddress, MicroOp, may_fault=True, repeatable=False, inlinable="see MbarrierOperation", instrumentation=True
):
    """Follows an operation on an mbarrier, an :class:`..machine.shadow.Action`; reports it where it cannot."""

    address: OperandClass
    action: int
    guard: OperandClass


class MbarrierFollowing(Routine):
    """What :class:`SyncMbarrier` calls."""


class SyncBarrier(MicroOp, may_fault=True, repeatable=False, inlinable="see Barrier", instrumentation=True):
    """Before a barrier of some warps: follows it, or reports it where it cannot."""

    waits: bool
    guard: OperandClass
    number: OperandClass
    threads: OperandClass


class SyncBarrierEnd(MicroOp, may_fault=True, repeatable=False, inlinable="see Barrier", instrumentation=True):
    """Behind a barrier of some warps where they wait."""

    guard: OperandClass


class BarrierFollowing(Routine):
    """What :class:`SyncBarrier` calls."""


class OrderLookup(Routine):
    """What a shadow check calls for accesses that no barrier of the block orders."""


class SyncFollowing(Routine):
    """What :class:`SyncAccess` and :class:`SyncInstruction` call."""


class OrderSearch(Routine):
    """What a shadow check calls for accesses that no barrier orders which compiled code counts."""


class ShadowInspection(Routine):
    """What a shadow check calls for lanes that the fast path does not decide."""


class TensorReadCheck(MicroOp, may_fault=True, repeatable=True, inlinable="as the load", instrumentation=True):
    """Before a load of tensor memory: the predicates of registers are cleared in lanes whose cells nobody has written.

    ``shape`` to ``masked`` are those of the load. The record has the address of a table of the predicates' offsets, -1
    where there is none: of each of ``registers``, then of ``folded`` results that depend on all of these.
    """

    shape: str
    registers: int
    packed: bool
    folded: int
    address: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class CountExecution(MicroOp, may_fault=False, repeatable=False, inlinable="for observers", instrumentation=True):
    """One execution, and the lanes for which the guard holds."""

    guard: OperandClass


class CountBranch(
    MicroOp, may_fault=False, repeatable=False, inlinable="for observers", instrumentation=True
):
    """Also whether lanes diverge; ``selector`` is the class of brx.idx's operand."""

    guard: OperandClass
    selector: OperandClass


class CountMemory(
    MicroOp, may_fault=False, repeatable=False, inlinable="for observers", instrumentation=True
):
    """Also what the memory system has to do; of ``exclusive`` accesses, atomics, two to one word conflict."""

    space: str
    address: OperandClass
    nbytes: int
    exclusive: bool
    guard: OperandClass


class MarkSectors(
    MicroOp, may_fault=False, repeatable=False, inlinable="for observers", instrumentation=True
):
    """Sets ``bits`` in the bytes that stand for the sectors that are touched (:attr:`..machine.layout.Block.MARKS`)."""

    address: OperandClass
    nbytes: int
    bits: int
    guard: OperandClass


class Breakpoint(MicroOp, may_fault=True, repeatable=False, inlinable="for observers", instrumentation=True):
    """Returns to Python where one lane of one warp of one block is active."""


class Stop(MicroOp, may_fault=True, repeatable=False, inlinable="for observers", instrumentation=True):
    """Returns to Python, for whichever lanes are active."""
