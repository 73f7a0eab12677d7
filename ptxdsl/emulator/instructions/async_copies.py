"""``cp.async``, ``st.async`` and ``red.async``, where they are made later than they stand.

That is where a launch has a seed and no sanitizer: a pipeline of ``cp.async`` is compiled to loads and stores otherwise
(:mod:`..rewrite.async_copies`).
"""

from __future__ import annotations

from ...ir import Address, Immediate, Instruction, Operand, Vector, elements
from ..machine.pending import MANY, Kind
from .addresses import AccessFlags
from .bulk_copies import (
    BulkAddress, GroupCommit, GroupWait, MakeBulk, find_mbarrier, hosts, plain_address, reduction, slot,
)
from .lowering import Lowering
from .micro_op import MicroOp, Routine
from .operand_classes import ABSENT, OperandClass
from .operands import Field, raw

__all__ = ["CopyArrival", "CopyLater", "MakeArrival", "MakeCopy", "StoreLater", "cp_async", "store"]


class CopyLater(
    MicroOp, may_fault=True, repeatable=False, inlinable="it is for launches with a seed", reads_memory=True,
    writes_memory=True,
):
    """Begins ``cp.async`` of ``nbytes``, lane by lane, of which ``used`` are read; its record has that of MakeCopy."""

    nbytes: int
    used: OperandClass
    guard: OperandClass


class MakeCopy(Routine):
    """Copies SIZE bytes; those behind them, to NBYTES, are zeros."""


class CopyArrival(MicroOp, may_fault=True, repeatable=False, inlinable="it is for launches with a seed"):
    """Begins an arrival at an mbarrier, which comes when the copies of its thread are complete.

    ``adds``: the phase waits for one more.
    """

    adds: bool
    guard: OperandClass


class MakeArrival(Routine):
    """Makes the copies of the thread that were begun before, and arrives."""


class StoreLater(
    MicroOp, may_fault=True, repeatable=False, inlinable="it is for launches with a seed", writes_memory=True,
):
    """Begins to store, or combine, values of so many bits, lane by lane; its record has that of :class:`MakeBulk`."""

    bits: int
    values: tuple[OperandClass, ...]
    clustered: bool
    guard: OperandClass

    @property
    def nbytes(self) -> int:
        return self.bits // 8 * len(self[2])


def cp_async(low: Lowering, statement: Instruction) -> None:
    """A copy, the end of a group, a wait, or an arrival."""
    effects, guard = statement.form.effects, low.operands.guard(statement)
    if effects.completes:
        _copy(low, statement, guard)
    elif effects.waits:
        left = statement.operands[0].bits if statement.operands else -1  # type: ignore[union-attr]
        low.emit(GroupWait(Kind.COPY, left, False, guard.kind), guard)
    elif effects.commits == "mbarrier":
        mbar = statement.operands[0]
        assert isinstance(mbar, Address)
        find_mbarrier(low, statement, mbar)
        op = CopyArrival("noinc" not in statement.form.tokens, guard.kind)
        low.emit(op, raw("q", 0), guard, _mbarrier(low)).links = {0: MakeArrival()}
    else:
        low.emit(GroupCommit(Kind.COPY, guard.kind), guard)


def _copy(low: Lowering, statement: Instruction, guard: Field) -> None:
    low.pending = MANY
    size, used = statement.operand("size"), statement.operand("used")
    assert isinstance(size, Immediate)
    nbytes = low.operands.number(size.bits, 32)
    taken = nbytes if used is None else low.read(statement, used)
    for operand, amount, writes, space in ((1, taken, False, "global"), (0, nbytes, True, "shared")):
        address = statement.operands[operand]
        fixed = size.bits if amount is nbytes else 0
        kind, place = plain_address(low, statement, address, writes, space, fixed)
        if not fixed:  # that of an array's end may be read in part
            place = place._replace(values=(place.values[0] | AccessFlags.BYTEWISE, *place.values[1:]))
        op = BulkAddress(operand, kind, size.bits, writes, False, ABSENT, amount.kind, ABSENT, guard.kind, False)
        low.emit(op, place, guard, amount, hosts(low, operand))
    copy = CopyLater(size.bits, taken.kind, guard.kind)
    low.emit(copy, raw("q", 0), guard, taken, hosts(low, 0), hosts(low, 1)).links = {0: MakeCopy()}


def _mbarrier(low: Lowering) -> Field:
    return raw("i", slot(low, "%pending.mbarrier", 8))


def store(low: Lowering, statement: Instruction) -> None:
    """``st.async`` or ``red.async`` that an mbarrier counts."""
    low.pending = MANY
    form, guard = statement.form, low.operands.guard(statement)
    kind_of, values = form.type, elements(_value(statement))
    assert kind_of is not None
    nbytes = kind_of.bytes * len(values)
    kind, place = plain_address(low, statement, statement.operands[0], True, "shared", nbytes)
    size = low.operands.number(nbytes, 32)
    found = BulkAddress(0, kind, nbytes, True, False, ABSENT, size.kind, ABSENT, guard.kind, False)
    low.emit(found, place, guard, size, hosts(low, 0))
    find_mbarrier(low, statement, statement.operand("mbar"))
    items = [low.read(statement, value, kind_of.bits) for value in values]
    clustered = low.spaces.cluster not in (None, (1, 1, 1))
    op = StoreLater(kind_of.bits, tuple(item.kind for item in items), clustered, guard.kind)
    operation, function = "", ""
    if form.effects.atomic:
        operation, function = reduction(form.effects.atomic, kind_of, False)
    placed = low.emit(op, raw("q", 0), guard, *items, hosts(low, 0), _mbarrier(low))
    placed.links = {0: MakeBulk(operation, function, kind_of.bits, False, False)}


def _value(statement: Instruction) -> Operand | Vector:
    value: Operand = statement.operand("b")
    return value
