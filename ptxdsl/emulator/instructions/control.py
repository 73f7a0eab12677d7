"""Lowering of branches, of the ends of threads, and of what does nothing."""

from __future__ import annotations

from ...ir import Call, Instruction, Symbol
from ..analysis.divergence import UNIFORM
from ..machine.layout import POLL, SHORT_LOOP, Fault
from ..machine.unsupported import unsupported
from .clusters import leave_cluster
from .lowering import Lowering, lowers
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import raw

__all__ = ["Branch", "Exit", "IndexedBranch", "Jump", "Reconvergence", "SystemCall", "Trap"]


class Jump(MicroOp, may_fault=False, repeatable=True, inlinable="control flow"):
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


class Branch(MicroOp, may_fault=False, repeatable=True, inlinable="control flow"):
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


class IndexedBranch(MicroOp, may_fault=True, repeatable=False, inlinable="its target is a number"):
    """brx.idx."""

    selector: OperandClass
    guard: OperandClass

    @property
    def ends(self) -> bool:
        return True


class Reconvergence(MicroOp, may_fault=False, repeatable=True, inlinable="control flow"):
    """The start of a basic block that lanes fall into where others may wait."""


class Exit(MicroOp, may_fault=True, repeatable=True, inlinable=True, rare=True):
    """Lanes end; ``masked`` where others of the warp may be left."""

    guard: OperandClass
    masked: bool

    @property
    def ends(self) -> bool:
        return not self.guard


class Trap(MicroOp, may_fault=True, repeatable=True, inlinable=True, rare=True):
    """Stops with a fault."""

    guard: OperandClass
    fault: int


class SystemCall(MicroOp, may_fault=True, repeatable=True, inlinable=True, rare=True):
    """A call that Python answers."""

    guard: OperandClass


@lowers("bra")
def branch(low: Lowering, statement: Instruction) -> None:
    node = low.graph.blocks[low.node]
    guard = low.operands.guard(statement)
    if node.exits:
        exit_(low, statement)
        return
    target = node.targets[0]
    back = target <= low.node
    cost = [raw("i", _cost(low, target))] if back else []
    rank = low.graph.blocks[target].priority
    if statement.guard is None:
        ranks = [raw("i", rank)] if low.divergent else []
        record = low.emit(Jump(low.divergent, back, low.conservative), raw("i", 0), *ranks, *cost)
        record.targets = {0: target}
        return
    apart = low.divergent or low.operands.lane_offsets(statement.guard) is not UNIFORM
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


@lowers("brx")
def indexed_branch(low: Lowering, statement: Instruction) -> None:
    node = low.graph.blocks[low.node]
    number = low.operands.source(statement.operands[0], 32, False, statement)
    guard = low.operands.guard(statement)
    ranks = [low.graph.blocks[target].priority for target in node.targets]
    on = [low.graph.blocks[node.fallthrough].priority] if statement.guard is not None else []
    table = raw("i" * len(on) + "iq", *on, len(ranks), low.pool.table(ranks))
    low.emit(IndexedBranch(number.kind, guard.kind), guard, number, table)


@lowers("ret", "exit")
def exit_(low: Lowering, statement: Instruction) -> None:
    guard = low.operands.guard(statement)
    leave_cluster(low, guard)
    low.emit(Exit(guard.kind, low.divergent), guard)


@lowers("trap")
def trap(low: Lowering, statement: Instruction) -> None:
    guard = low.operands.guard(statement)
    low.emit(Trap(guard.kind, Fault.TRAP), guard)


@lowers("griddepcontrol")
def grid_dependency(low: Lowering, statement: Instruction) -> None:
    """Grids run one after the other."""


@lowers("call")
def system_call(low: Lowering, statement: Call) -> None:
    guard = low.operands.guard(statement)
    low.prints = low.prints or statement.callee == Symbol("vprintf")
    low.emit(SystemCall(guard.kind), guard)


def _polls(statement: Instruction | Call) -> bool:
    return isinstance(statement, Instruction) and statement.form.effects.polls
