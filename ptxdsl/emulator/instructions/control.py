"""Lowering of branches, of the ends of threads, and of what does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ir import Call, Instruction
from ..analysis.divergence import UNIFORM
from ..machine.layout import POLL, SHORT_LOOP, Fault
from ..machine.unsupported import unsupported
from .clusters import ClusterBarrier
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import Field, raw

if TYPE_CHECKING:
    from .lowering import Lowering

__all__ = [
    "METHODS", "Branch", "Exit", "IndexedBranch", "Jump", "Reconvergence", "SystemCall", "Trap", "leave",
]


class Jump(MicroOp, may_fault=False, repeatable=True, inlinable=False):
    """To a basic block; ``divergent`` where other lanes may wait there or before it."""

    divergent: bool
    backward: bool
    conservative: bool

    @property
    def ends(self) -> bool:
        return True

    @property
    def values(self) -> tuple[str, ...]:
        return ("distance", *(("rank",) if self.divergent else ()), *(("cost",) if self.backward else ()))


class Branch(MicroOp, may_fault=False, repeatable=True, inlinable=False):
    """To a basic block or on. One that is not divergent is the same for all lanes that live, and these are active."""

    guard: OperandClass
    divergent: bool
    backward: bool
    conservative: bool

    @property
    def ends(self) -> bool:
        return True

    @property
    def values(self) -> tuple[str, ...]:
        ranks = ("rank", "next_rank") if self.divergent else ()
        return ("guard", "distance", *ranks, *(("cost",) if self.backward else ()))


class IndexedBranch(MicroOp, may_fault=True, repeatable=False, inlinable=False):
    """brx.idx."""

    selector: OperandClass
    guard: OperandClass

    @property
    def ends(self) -> bool:
        return True


class Reconvergence(MicroOp, may_fault=False, repeatable=True, inlinable=False):
    """The start of a basic block that lanes fall into where others may wait."""


class Exit(MicroOp, may_fault=True, repeatable=True, inlinable=False, rare=True):
    """Lanes end; ``masked`` where others of the warp may be left."""

    guard: OperandClass
    masked: bool

    @property
    def ends(self) -> bool:
        return not self.guard


class Trap(MicroOp, may_fault=True, repeatable=True, inlinable=False, rare=True):
    """Stops with a fault."""

    guard: OperandClass
    fault: int


class SystemCall(MicroOp, may_fault=True, repeatable=True, inlinable=False, rare=True):
    """A call that Python answers."""

    guard: OperandClass


def _branch(low: Lowering, statement: Instruction) -> None:
    node = low.graph.blocks[low.node]
    guard = low.operands.guard(statement)
    if node.exits:
        _exit(low, statement)
        return
    target = node.targets[0]
    back = target <= low.node
    cost = [raw("i", _cost(low, target))] if back else []
    rank = low.graph.blocks[target].priority
    if statement.guard is None:
        ranks = [raw("i", rank)] if low.parted else []
        record = low.emit(Jump(low.parted, back, low.conservative), raw("i", 0), *ranks, *cost)
        record.targets = {0: target}
        return
    apart = low.parted or low.operands.known(statement.guard) is not UNIFORM
    fall = low.graph.blocks[node.fallthrough].priority if node.fallthrough >= 0 else rank
    ranks = [raw("ii", rank, fall)] if apart else []
    if node.fallthrough < 0:  # the text ends after the branch: lanes that fall through have ended
        raise unsupported(statement, "a conditional branch as a kernel's last instruction")
    record = low.emit(Branch(guard.kind, apart, back, low.conservative), guard, raw("i", 0), *ranks, *cost)
    record.targets = {1: target}


def _cost(low: Lowering, target: int) -> int:
    """What a backward branch costs of the warp's slice: a short loop that looks at memory probably waits."""
    start, stop = low.graph.blocks[target].start, low.place
    polls = stop - start <= SHORT_LOOP and any(_polls(low.graph.statements[place]) for place in range(start, stop))
    return POLL if polls else 1


def _index_branch(low: Lowering, statement: Instruction) -> None:
    node = low.graph.blocks[low.node]
    number = low.operands.source(statement.operands[0], 32, False, statement)
    guard = low.operands.guard(statement)
    ranks = [low.graph.blocks[target].priority for target in node.targets]
    on = [low.graph.blocks[node.fallthrough].priority] if statement.guard is not None else []
    table = raw("i" * len(on) + "iq", *on, len(ranks), low.pool.table(ranks))
    low.emit(IndexedBranch(number.kind, guard.kind), guard, number, table)


def leave(low: Lowering, guard: Field) -> None:
    """Lanes are about to end: the barrier of the cluster no longer waits for them."""
    if low.leaves:
        low.emit(ClusterBarrier("leave", False, guard.kind, low.parted), guard)


def _exit(low: Lowering, statement: Instruction) -> None:
    guard = low.operands.guard(statement)
    leave(low, guard)
    low.emit(Exit(guard.kind, low.parted), guard)


def _trap(low: Lowering, statement: Instruction) -> None:
    guard = low.operands.guard(statement)
    low.emit(Trap(guard.kind, Fault.TRAP), guard)


def _nothing(low: Lowering, statement: Instruction) -> None:
    """Hints: right if ignored."""


def _polls(statement: Instruction | Call) -> bool:
    if isinstance(statement, Call):
        return False
    words = {
        "ld": ("volatile", "acquire", "relaxed", "mmio"), "atom": ("cas", "exch"),
        "mbarrier": ("test_wait", "try_wait"),
    }.get(statement.form.opcode, ())
    return any(word in statement.form.tokens for word in words)


METHODS: dict[str, Any] = {
    "bra": _branch, "brx": _index_branch, "ret": _exit, "exit": _exit, "trap": _trap,
    "prefetch": _nothing, "prefetchu": _nothing, "pmevent": _nothing,
    "applypriority": _nothing, "discard": _nothing, "nanosleep": _nothing,
    "setmaxnreg": _nothing, "griddepcontrol": _nothing, "brkpt": _nothing,
}
