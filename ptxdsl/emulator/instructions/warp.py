"""Instructions by which the lanes of a warp see each other; ``members`` is the class of the member mask, if any."""

from __future__ import annotations

from ...ir import Immediate, Instruction
from .lowering import Lowering, lowers
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import NOTHING

__all__ = ["ActiveMask", "Elect", "Match", "Reduce", "Shuffle", "Vote", "WarpBarrier"]


class WarpBarrier(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """bar.warp.sync."""

    guard: OperandClass
    masked: bool
    members: OperandClass


class Shuffle(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """shfl; ``constant`` is (b, c) where both are numbers: the lanes to take from are known then."""

    mode: str
    dest: OperandClass
    predicate: OperandClass
    a: OperandClass
    b: OperandClass
    c: OperandClass
    members: OperandClass
    constant: tuple[int, int] | None
    guard: OperandClass
    masked: bool


class Vote(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """vote; ``mode`` is ballot, all, any or uni."""

    mode: str
    dest: OperandClass
    predicate: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class ActiveMask(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """The mask of the lanes that execute it."""

    dest: OperandClass
    guard: OperandClass
    masked: bool


class Elect(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """The lowest member."""

    dest: OperandClass
    predicate: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class Match(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """match; ``mode`` is any or all."""

    mode: str
    dest: OperandClass
    predicate: OperandClass
    a: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class Reduce(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """redux. Of floats ``operation`` is the mnemonic for two numbers, and ``signed`` that absolute values are taken."""

    operation: str
    signed: bool
    dest: OperandClass
    a: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


@lowers("bar_warp_sync")
def warp_barrier(low: Lowering, statement: Instruction) -> None:
    members, guard = low.operands.source(statement.operands[0], 32, False, statement), low.operands.guard(statement)
    low.emit(WarpBarrier(guard.kind, low.divergent, members.kind), guard, low.priority(), members)


@lowers("shfl")
def shuffle(low: Lowering, statement: Instruction) -> None:
    form, operands = statement.form, list(statement.operands)
    joined = form.operands[1].joined
    dest, flag = low.operands.destination(operands[0]), NOTHING
    if joined:
        flag = low.operands.destination(operands[1])
    a, b, c, *members = operands[2 if joined else 1 :]
    mode = form.modifiers["mode"]
    assert mode is not None
    constant = (b.bits, c.bits) if isinstance(b, Immediate) and isinstance(c, Immediate) else None
    parts = [low.operands.source(a, 32, False, statement)]
    numbers = [NOTHING, NOTHING]
    if constant is None:
        numbers = [low.operands.source(operand, 32, False, statement) for operand in (b, c)]
    group = low.operands.source(members[0], 32, False, statement) if members else NOTHING
    guard = low.operands.guard(statement)
    low.emit(
        Shuffle(
            mode, dest.kind, flag.kind, parts[0].kind, numbers[0].kind, numbers[1].kind, group.kind, constant,
            guard.kind, low.divergent,
        ),
        guard, low.priority(), dest, flag, *parts, *numbers, group,
    )


@lowers("vote")
def vote(low: Lowering, statement: Instruction) -> None:
    form, operands = statement.form, statement.operands
    mode = next(token for token in form.tokens if token in ("ballot", "all", "any", "uni"))
    dest = low.operands.destination(operands[0])
    flag = low.predicate(operands[1])
    group = low.operands.source(operands[2], 32, False, statement) if len(operands) > 2 else NOTHING
    guard = low.operands.guard(statement)
    op = Vote(mode, dest.kind, flag.kind, group.kind, guard.kind, low.divergent)
    low.emit(op, guard, low.priority(), dest, flag, group)


@lowers("activemask")
def active_mask(low: Lowering, statement: Instruction) -> None:
    dest, guard = low.operands.destination(statement.operands[0]), low.operands.guard(statement)
    low.emit(ActiveMask(dest.kind, guard.kind, low.divergent), guard, low.priority(), dest)


@lowers("elect")
def elect(low: Lowering, statement: Instruction) -> None:
    dest, flag = (low.operands.destination(operand) for operand in statement.operands[:2])
    group = low.operands.source(statement.operands[2], 32, False, statement)
    guard = low.operands.guard(statement)
    op = Elect(dest.kind, flag.kind, group.kind, guard.kind, low.divergent)
    low.emit(op, guard, low.priority(), dest, flag, group)


@lowers("match")
def match(low: Lowering, statement: Instruction) -> None:
    form, operands = statement.form, statement.operands
    assert form.type is not None
    joined = form.operands[1].joined
    dest = low.operands.destination(operands[0])
    flag = low.operands.destination(operands[1]) if joined else NOTHING
    a, members = operands[-2:]
    value = low.operands.source(a, form.type.bits, False, statement)
    group = low.operands.source(members, 32, False, statement)
    guard = low.operands.guard(statement)
    low.emit(
        Match(form.tokens[0], dest.kind, flag.kind, value.kind, group.kind, guard.kind, low.divergent),
        guard, low.priority(), dest, flag, value, group,
    )


@lowers("redux")
def reduce(low: Lowering, statement: Instruction) -> None:
    form, operands = statement.form, statement.operands
    assert form.type is not None
    op = next(token for token in form.tokens if token in ("add", "min", "max", "and", "or", "xor"))
    if form.type.is_float:
        op = f"{op}.NaN.f32" if "NaN" in form.tokens else f"{op}.f32"
    dest = low.operands.destination(operands[0])
    value = low.operands.source(operands[1], 32, False, statement)
    group = low.operands.source(operands[2], 32, False, statement)
    guard = low.operands.guard(statement)
    signed = form.type.is_signed or "abs" in form.tokens
    low.emit(
        Reduce(op, signed, dest.kind, value.kind, group.kind, guard.kind, low.divergent),
        guard, low.priority(), dest, value, group,
    )
