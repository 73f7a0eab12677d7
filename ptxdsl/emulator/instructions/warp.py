"""Instructions by which the lanes of a warp see each other; ``members`` is the class of the member mask, if any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import Immediate, Instruction, Operand, Register
from ..rewrite.builder import WholeWarp
from .lowering import Lowering, lowers
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import NOTHING, Field

__all__ = ["ActiveMask", "Elect", "Match", "Reduce", "Shuffle", "Vote", "WarpBarrier", "shuffle_sources", "source_lane"]


class WarpBarrier(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """bar.warp.sync; ``whole``: all 32 lanes must be there."""

    whole: bool
    members: OperandClass
    guard: OperandClass
    masked: bool


class Shuffle(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """shfl; ``constant`` is (b, c) where both are numbers: the lanes to take from are known then.

    ``lenient``: it may take from lanes that do not take part (:mod:`.undefined`).
    """

    mode: str
    constant: tuple[int, int] | None
    lenient: bool
    dest: OperandClass
    predicate: OperandClass
    a: OperandClass
    b: OperandClass
    c: OperandClass
    members: OperandClass
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


def _emit(
    low: Lowering, statement: Instruction, kind: Callable[..., MicroOp], shape: tuple[Any, ...], *fields: Field
) -> None:
    """Emit a micro-op of this kind: what shapes its code, and its operands in the order of its fields."""
    guard = low.operands.guard(statement)
    op = kind(*shape, *(field.kind for field in fields), guard.kind, low.divergent)
    low.emit(op, guard, low.priority(), *fields)


def _results(low: Lowering, statement: Instruction) -> tuple[list[Field], tuple[Operand, ...]]:
    """The result and the predicate beside it, if there is one, and the other operands."""
    operands = statement.operands
    count = 2 if statement.form.operands[1].written else 1
    results = [low.operands.destination(operand) for operand in operands[:count]]
    return [*results, NOTHING][:2], operands[count:]


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The lane that a shuffle takes from, and whether it is within the segment; the manual's pseudocode."""
    clamp, segment = c & 31, c >> 8 & 31
    low, high = lane & segment, (lane & segment) | (clamp & ~segment)
    b &= 31
    to = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": low | (b & ~segment & 31)}[mode]
    good = to >= high if mode == "up" else to <= high
    return (to if good else lane), good


@lowers("bar_warp_sync")
def warp_barrier(low: Lowering, statement: Instruction) -> None:
    whole = isinstance(statement, WholeWarp)
    _emit(low, statement, WarpBarrier, (whole,), low.read(statement, statement.operands[0]))


@lowers("shfl")
def shuffle(low: Lowering, statement: Instruction) -> None:
    results, _ = _results(low, statement)
    constant, sources = shuffle_sources(low, statement)
    mode = statement.form.modifiers["mode"]
    _emit(low, statement, Shuffle, (mode, constant, low.tracks_undefined), *results, *sources)


def shuffle_sources(low: Lowering, statement: Instruction) -> tuple[tuple[int, int] | None, list[Field]]:
    """Operands b and c where both are numbers; the fields of a, b, c and the member mask."""
    a, *others = _results(low, statement)[1]
    b, c, *members = [low.numbers.get(each.name, each) if isinstance(each, Register) else each for each in others]
    constant = (b.bits, c.bits) if isinstance(b, Immediate) and isinstance(c, Immediate) else None
    lanes = (b, c) if constant is None else (None, None)
    return constant, [low.read(statement, operand) for operand in (a, *lanes, *members, None)[:4]]


@lowers("vote")
def vote(low: Lowering, statement: Instruction) -> None:
    mode = next(token for token in statement.form.tokens if token in ("ballot", "all", "any", "uni"))
    dest, *sources = statement.operands
    a, members = (low.read(statement, operand) for operand in (*sources, None)[:2])
    _emit(low, statement, Vote, (mode,), low.operands.destination(dest), a, members)


@lowers("activemask")
def active_mask(low: Lowering, statement: Instruction) -> None:
    _emit(low, statement, ActiveMask, (), low.operands.destination(statement.operands[0]))


@lowers("elect")
def elect(low: Lowering, statement: Instruction) -> None:
    results, (members,) = _results(low, statement)
    _emit(low, statement, Elect, (), *results, low.read(statement, members))


@lowers("match")
def match(low: Lowering, statement: Instruction) -> None:
    form = statement.form
    assert form.type is not None
    results, (a, members) = _results(low, statement)
    sources = low.read(statement, a, form.type.bits), low.read(statement, members)
    _emit(low, statement, Match, (form.tokens[0],), *results, *sources)


@lowers("redux")
def reduce(low: Lowering, statement: Instruction) -> None:
    form = statement.form
    assert form.type is not None
    operation = next(token for token in form.tokens if token in ("add", "min", "max", "and", "or", "xor"))
    if form.type.is_float:
        operation = f"{operation}.NaN.f32" if "NaN" in form.tokens else f"{operation}.f32"
    dest, a, members = statement.operands
    fields = low.operands.destination(dest), low.read(statement, a), low.read(statement, members)
    _emit(low, statement, Reduce, (operation, form.type.is_signed or "abs" in form.tokens), *fields)
