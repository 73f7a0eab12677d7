"""What sanitizer, profiler and debugger insert before and behind the micro-ops of a kernel."""

from __future__ import annotations

from .memory import Pattern, address_values
from .micro_op import MicroOp, Routine
from .operand_classes import OperandClass

__all__ = [
    "Breakpoint", "CountBranch", "CountExecution", "CountMemory", "EpochArrive",
    "EpochBarrier", "EpochBegin", "EpochWarpBarrier", "ShadowCheck", "ShadowInspection", "SyncAccess",
    "SyncInstruction",
]


class ShadowCheck(MicroOp, may_fault=True, repeatable=True, inlinable=True, instrumentation=True, kind="shadow_check"):
    """The shadow of the memory that an access is about to touch is checked and brought up to date.

    ``role`` is READ, WRITE or ATOMIC; ``own``: the memory is certainly the block's, False
    certainly not, None unknown. ``same``: all lanes write the same. ``readers``: somebody reads the memory.
    ``simple``: nothing orders the kernel's threads but barriers of the block. ``folded``: all segments of the address
    pattern are the same.
    """

    role: int
    strength: int
    same: bool
    own: bool | None
    address: OperandClass
    pattern: Pattern | None
    nbytes: int
    grain: int
    guard: OperandClass
    race: bool
    init: bool
    readers: bool
    simple: bool
    folded: bool

    @property
    def pieces(self) -> int:
        """Pieces of memory that an access touches."""
        return self.nbytes >> self.grain

    @property
    def fusible(self) -> bool:
        return not self.guard and self.own is not None

    @property
    def values(self) -> tuple[str, ...]:
        return address_values(self.address)


class EpochBegin(MicroOp, may_fault=False, repeatable=True, inlinable=True, instrumentation=True, kind="epoch_begin"):
    """A warp starts on a block; the block's first one makes the shadow state ready."""


class EpochArrive(MicroOp, may_fault=False, repeatable=True, inlinable=True, instrumentation=True, kind="epoch_arrive"):
    """Before a barrier of the whole block."""


class EpochBarrier(
    MicroOp, may_fault=False, repeatable=True, inlinable=True, instrumentation=True, kind="epoch_barrier"
):
    """Behind a barrier of the whole block."""

    guard: OperandClass


class EpochWarpBarrier(
    MicroOp, may_fault=True, repeatable=False, inlinable=False, instrumentation=True, kind="epoch_warp_barrier"
):
    """Behind a warp barrier."""

    guard: OperandClass
    members: OperandClass


class SyncInstruction(
    MicroOp, may_fault=True, repeatable=False, inlinable=False, instrumentation=True, kind="sync_instruction"
):
    """Tells Python of an instruction; ``whole`` only where all lanes of the warp are active."""

    guard: OperandClass
    whole: bool


class SyncAccess(
    MicroOp, may_fault=True, repeatable=False, inlinable=False, instrumentation=True, kind="sync_access"
):
    """Tells Python of an access by which threads synchronise."""

    address: OperandClass
    nbytes: int
    writes: bool
    guard: OperandClass


class ShadowInspection(Routine, kind="shadow_inspection"):
    """What a shadow check calls for lanes that the fast path does not decide."""


class CountExecution(MicroOp, may_fault=False, repeatable=False, inlinable=False, instrumentation=True, kind="count"):
    """One execution, and the lanes for which the guard holds."""

    guard: OperandClass


class CountBranch(
    MicroOp, may_fault=False, repeatable=False, inlinable=False, instrumentation=True, kind="count_branch"
):
    """Also whether lanes diverge; ``selector`` is the class of brx.idx's operand."""

    guard: OperandClass
    selector: OperandClass


class CountMemory(
    MicroOp, may_fault=False, repeatable=False, inlinable=False, instrumentation=True, kind="count_memory"
):
    """Also what the memory system has to do; of ``exclusive`` accesses, atomics, two to one word conflict."""

    space: str
    address: OperandClass
    nbytes: int
    exclusive: bool
    guard: OperandClass


class Breakpoint(MicroOp, may_fault=True, repeatable=False, inlinable=False, instrumentation=True, kind="breakpoint"):
    """Returns to Python where one lane of one warp of one block is active."""
