"""Lowering of branches, of the ends of threads, and of what does nothing."""

from __future__ import annotations

from ...analysis.def_use import DefUse
from ...ir import Address, Call, Instruction, Symbol, registers
from ..analysis.divergence import UNIFORM
from ..machine.budgets import FOLLOWS, OWN_POLL, POLL, SHORT_LOOP
from ..machine.status import Fault
from ..machine.unsupported import unsupported
from .clusters import leave_cluster
from .lowering import Lowering, lowers
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import raw
from .tensor_cores.tensor_memory import leave_tensor_memory

__all__ = ["Branch", "Exit", "IndexedBranch", "Jump", "Reconvergence", "SystemCall", "Trap"]


class Jump(MicroOp, may_fault=False, repeatable=True, inlinable="control flow", by_lane=True):
    """To a basic block; ``divergent`` where other lanes may wait there or before it."""

    divergent: bool
    backward: bool
    conservative: bool
    ends = True

    @property
    def values(self) -> tuple[str, ...]:
        return ("distance", *(("priority",) if self.divergent else ()), *(("cost",) if self.backward else ()))


class Branch(MicroOp, may_fault=False, repeatable=True, inlinable="control flow", by_lane=True):
    """To a basic block or on. One that is not divergent is the same for all lanes that live, and these are active."""

    guard: OperandClass
    divergent: bool
    backward: bool
    conservative: bool
    ends = True

    @property
    def values(self) -> tuple[str, ...]:
        priorities = ("priority", "next_priority") if self.divergent else ()
        return ("guard", "distance", *priorities, *(("cost",) if self.backward else ()))


class IndexedBranch(MicroOp, may_fault=True, repeatable=False, inlinable="control flow", by_lane=True):
    """brx.idx."""

    selector: OperandClass
    guard: OperandClass
    ends = True


class Reconvergence(MicroOp, may_fault=False, repeatable=True, inlinable="control flow"):
    """The start of a basic block that lanes fall into where others may wait."""


class Exit(MicroOp, may_fault=True, repeatable=True, inlinable=True, rare=True, by_lane=True):
    """Lanes end; ``masked`` where others of the warp may be left."""

    guard: OperandClass
    masked: bool

    @property
    def ends(self) -> bool:
        return not self.guard


class Trap(MicroOp, may_fault=True, repeatable=True, inlinable=True, rare=True, by_lane=True):
    """Stops with a fault."""

    guard: OperandClass
    fault: int


class SystemCall(MicroOp, may_fault=True, repeatable=True, inlinable=True, rare=True, by_lane=True):
    """A call that Python answers."""

    guard: OperandClass


@lowers("bra")
def branch(low: Lowering, statement: Instruction) -> None:
    blocks = low.graph.blocks
    block = blocks[low.basic_block]
    guard = low.operands.guard(statement)
    if block.exits:
        exit_(low, statement)
        return
    target = block.targets[0]
    backward = target <= low.basic_block
    cost = [raw("i", _cost(low, target))] if backward else []
    priorities = [blocks[target].priority]
    if statement.guard is None:
        divergent = low.divergent
        op: Jump | Branch = Jump(divergent, backward, low.conservative)
    else:
        if block.fallthrough < 0:  # the text ends after the branch: lanes that fall through have ended
            raise unsupported(statement, "a conditional branch as a kernel's last instruction")
        priorities.append(blocks[block.fallthrough].priority)
        divergent = low.divergent or low.operands.lane_offsets(statement.guard) is not UNIFORM
        op = Branch(guard.kind, divergent, backward, low.conservative)
    waits = [raw("i" * len(priorities), *priorities)] if divergent else []
    placed = low.emit(op, guard, raw("i", 0), *waits, *cost)
    placed.targets = {op.values.index("distance"): target}


def _cost(low: Lowering, target: int) -> int:
    """What a backward branch takes of the warp's time slice: a short loop that polls one place probably waits.

    One that polls another place in each turn may wait too, but more probably follows links.
    """
    start, stop = low.graph.blocks[target].start, low.place
    if stop - start > SHORT_LOOP:
        return 1
    ops = low.graph.def_use[start:stop]
    places = [
        {r.name for operand in op.reads if isinstance(operand, Address) for r in registers(operand)}
        for op in ops if _polls(op.statement)
    ]
    if not places:
        return 1
    changing = _changing(ops)
    if all(changing.intersection(names) for names in places):
        return FOLLOWS
    return OWN_POLL if all(_is_own(low, op.statement) for op in ops if _polls(op.statement)) else POLL


def _is_own(low: Lowering, statement: Instruction | Call) -> bool:
    """Whether what a statement polls is memory that only warps of its block write."""
    if not isinstance(statement, Instruction) or low.spaces.cluster is not None:
        return False
    access = statement.form.effects.access
    if access is None:
        return False
    place = statement.operands[access.operand]
    return isinstance(place, Address) and low.spaces.is_shared(low.origin(place.base))


def _changing(ops: list[DefUse]) -> set[str]:
    """The registers that a loop computes of what it has read from memory, or of what it carries to the next turn."""
    needed: set[str] = set()
    written: set[str] = set()
    for op in ops:
        needed.update(r.name for r in op.uses if r.name not in written)
        written.update(r.name for r in op.writes)
    found: set[str] = set()
    while True:
        before = len(found)
        for op in ops:
            carried = {r.name for r in op.writes} & needed
            loads = isinstance(op.statement, Call) or op.statement.form.effects.reads
            found.update(r.name for r in op.writes if loads or carried or found.intersection(u.name for u in op.uses))
        if len(found) == before:
            return found


@lowers("brx")
def indexed_branch(low: Lowering, statement: Instruction) -> None:
    block = low.graph.blocks[low.basic_block]
    selector, guard = low.read(statement, statement.operands[0]), low.operands.guard(statement)
    priorities = [low.graph.blocks[target].priority for target in block.targets]
    on = [low.graph.blocks[block.fallthrough].priority] if statement.guard is not None else []
    table = raw("i" * len(on) + "iq", *on, len(priorities), low.pool.table(priorities))
    low.emit(IndexedBranch(selector.kind, guard.kind), guard, selector, table)


@lowers("ret", "exit")
def exit_(low: Lowering, statement: Instruction) -> None:
    guard = low.operands.guard(statement)
    leave_cluster(low, guard)
    leave_tensor_memory(low, guard)
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
