"""Bulk copies and reductions: `cp.async.bulk` and `cp.reduce.async.bulk` of memory without a tensor map.

Micro-ops find and check the host addresses of both ends and of the mbarrier where the instruction stands; another one
begins the copy, which is made then or later (:mod:`..machine.pending`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...ir import Address, Immediate, Instruction
from ...types import ScalarType
from ..machine.pending import FEW, Kind
from ..machine.unsupported import unsupported
from .addresses import AccessFlags, WithAddress, lane_by_lane
from .lowering import Lowering, lowers
from . import mbarrier
from .micro_op import MicroOp, Routine
from .operand_classes import ABSENT, OperandClass, per_lane
from .operands import NOTHING, Field, raw

__all__ = [
    "ALIGNMENT", "BulkAddress", "BulkMove", "BulkTrim", "End", "GroupCommit", "GroupWait", "MakeBulk", "begins",
    "ends", "find", "find_mbarrier", "hosts", "identity", "move", "plain_address", "reduction", "size_of", "slot",
    "told",
]

ALIGNMENT = 16
"""Of addresses and sizes."""


class BulkAddress(WithAddress, MicroOp, may_fault=True, repeatable=True, inlinable="its cost is the copy's"):
    """The host addresses of one end of a copy, for each lane, where all its bytes may be accessed.

    ``operand`` is the place of the address in the statement; it must be a multiple of ``alignment``. ``own_block``: it
    must lie in the block's own memory. ``mbarrier`` is an address that must lie in the same block.
    """

    operand: int
    address: OperandClass
    alignment: int
    writes: bool
    own_block: bool
    mbarrier: OperandClass
    size: OperandClass
    skipped: OperandClass
    guard: OperandClass
    bulk: bool


class BulkMove(
    MicroOp, may_fault=True, repeatable=False, inlinable="its cost is that of the copy",
    reads_memory=True, writes_memory=True,
):
    """Begins a copy between host addresses, lane by lane; its record has the address of :class:`MakeBulk`.

    ``waits`` says what waits for it (:class:`..machine.pending.Kind`), ``clustered`` that its mbarrier may lie in
    another block. Where it does not ``defer``, it is made at once. The mbarrier counts ``size`` bytes, or ``counted``.
    """

    waits: int
    clustered: bool
    defers: bool
    size: OperandClass
    counted: OperandClass
    byte_mask: OperandClass
    guard: OperandClass


class BulkTrim(MicroOp, may_fault=True, repeatable=True, inlinable="its cost is that of the copy"):
    """The bytes of copies without those that are ignored at their begins and ends."""

    size: OperandClass
    left: OperandClass
    right: OperandClass
    guard: OperandClass


class MakeBulk(Routine):
    """Makes a copy, and counts its bytes.

    ``operation`` and ``function`` are those of an atomic operation (:class:`.atomics.Atomic`) on elements of so many
    bits, empty for a copy; ``host_atomic`` where other threads of the host may change them too. ``masked``: MASK says
    which of each 16 bytes are copied.
    """

    operation: str
    function: str
    bits: int
    host_atomic: bool
    masked: bool


class GroupCommit(MicroOp, may_fault=False, repeatable=False, inlinable="it is followed by a wait"):
    """Ends the group of operations that each thread has begun since its last one; ``waits`` is what waits for it."""

    waits: int
    guard: OperandClass


class GroupWait(MicroOp, may_fault=True, repeatable=False, inlinable="it waits for copies"):
    """Makes the operations of each thread's groups but for the last ``left`` ones; all where that is -1.

    ``sources``: it is enough that they have read their sources.
    """

    waits: int
    left: int
    sources: bool
    guard: OperandClass


class End(NamedTuple):
    """One end of a copy: the place of its address among the operands, and its space, ``shared::cta`` say."""

    operand: int
    space: str
    writes: bool


def ends(statement: Instruction) -> tuple[End, End]:
    """Destination and source."""
    spaces = [token for token in statement.form.tokens if token.split("::")[0] in ("shared", "global")]
    return End(0, spaces[0], True), End(1, spaces[1], False)


@lowers("cp_async_bulk", "cp_reduce_async_bulk")
def bulk_copy(low: Lowering, statement: Instruction) -> None:
    find(low, statement)
    move(low, statement)


def find(low: Lowering, statement: Instruction) -> None:
    """Emit what finds the host addresses of both ends, and the mbarrier."""
    if any(token.startswith("mbarrier::report::validity") for token in statement.form.tokens):
        raise unsupported(statement, f"`{statement.form.mnemonic}`")
    clustered = low.spaces.cluster not in (None, (1, 1, 1))
    size, guard = size_of(low, statement), low.operands.guard(statement)
    skipped = low.read(statement, statement.operand("left"))
    if ignores(statement):
        whole, right = (low.read(statement, statement.operand(name)) for name in ("size", "right"))
        low.emit(BulkTrim(whole.kind, skipped.kind, right.kind, guard.kind), guard, whole, skipped, right, size)
    mbar = statement.operand("mbar")
    for end in ends(statement)[::-1]:
        address, field = plain_address(low, statement, statement.operands[end.operand], end.writes, end.space)
        if ignores(statement):
            field = field._replace(values=(field.values[0] | AccessFlags.BYTEWISE, *field.values[1:]))
        own_block = clustered and end.space == "shared::cta"
        word, place = ABSENT, NOTHING
        if mbar is not None and clustered and end.writes:
            word, place = plain_address(low, statement, mbar, True, "shared", 8)
        kinds = word, size.kind, skipped.kind, guard.kind
        op = BulkAddress(end.operand, address, ALIGNMENT, end.writes, own_block, *kinds, True)
        low.emit(op, field, place, guard, size, skipped, hosts(low, end.operand))
    if mbar is not None:
        find_mbarrier(low, statement, mbar)


def find_mbarrier(low: Lowering, statement: Instruction, mbar: Address) -> None:
    """Emit what checks the mbarrier that counts an operation, and finds its host address."""
    mbarrier.emit(low, statement, "find", mbar, _mbarrier_host(low))


def _mbarrier_host(low: Lowering) -> Field:
    return Field(per_lane(64), "i", (slot(low, "%pending.mbarrier", 8),))


def begins(low: Lowering, statement: Instruction) -> tuple[int, bool, bool, Field]:
    """How an operation is begun: what waits for it, whether by another block, whether it is deferred; the mbarrier."""
    if low.defers:
        low.pending = max(low.pending, FEW)
    clustered = low.spaces.cluster not in (None, (1, 1, 1))
    if statement.form.effects.completes != "mbarrier":
        return Kind.BULK, clustered, low.defers, NOTHING
    return Kind.COUNTED, clustered, low.defers, raw("i", slot(low, "%pending.mbarrier", 8))


def move(low: Lowering, statement: Instruction) -> None:
    """Emit what moves the bytes."""
    form = statement.form
    dest, source = ends(statement)
    size, guard = size_of(low, statement), low.operands.guard(statement)
    mask = statement.operand("mask") if "cp_mask" in form.tokens else None
    chosen = low.read(statement, mask, 16)
    operation, function = _reduction(statement) if form.semantics == "cp_reduce_async_bulk" else ("", "")
    bits = form.type.bits if operation and form.type is not None else 8
    kind, clustered, defers, mbarrier_host = begins(low, statement)
    counted = low.read(statement, statement.operand("size")) if ignores(statement) else NOTHING
    op = BulkMove(kind, clustered, defers, size.kind, counted.kind, chosen.kind, guard.kind)
    placed = low.emit(
        op, raw("q", 0), guard, size, counted, chosen, hosts(low, dest.operand), hosts(low, source.operand),
        mbarrier_host,
    )
    placed.links = {0: MakeBulk(operation, function, bits, dest.space == "global", mask is not None)}


def _reduction(statement: Instruction) -> tuple[str, str]:
    kind = statement.form.type
    assert kind is not None
    return reduction(statement.form.effects.atomic, kind, "noftz" in statement.form.tokens)


def reduction(operation: str, kind: ScalarType, keeps_subnormals: bool) -> tuple[str, str]:
    """The operation on elements of a type, and the instruction that computes it where the host has none."""
    if operation in ("min", "max"):
        return operation, f"{operation}.{kind}"
    if operation != "add" or kind.kind != "f":
        return operation, ""
    if str(kind) == "f32" and not keeps_subnormals:
        return operation, "add.ftz.f32"  # as red.global does
    return operation, f"add.rn.{kind}"


def ignores(statement: Instruction) -> bool:
    """Whether a copy ignores bytes at its begin and its end, which may lie outside of an array."""
    return "ignore_oob" in statement.form.tokens


def size_of(low: Lowering, statement: Instruction) -> Field:
    """The bytes that are moved."""
    if ignores(statement):
        return Field(per_lane(32), "i", (slot(low, "%bulk.size", 4),))
    return low.read(statement, statement.operand("size"))


def plain_address(
    low: Lowering, statement: Instruction, address: Any, writes: bool, space: str, nbytes: int = 0
) -> tuple[OperandClass, Field]:
    """An address without its segments; by its flags it is of 0 bytes where the size is that of each lane."""
    kind, _, place = low.address(statement, address, nbytes, writes, space.split("::", maxsplit=1)[0])
    return kind, lane_by_lane(kind, place)


def hosts(low: Lowering, operand: int) -> Field:
    """Where a warp keeps the host addresses of an end, by the place of its address among the operands."""
    return raw("i", slot(low, f"%bulk.{operand}", 8))


def identity(low: Lowering, statement: Instruction) -> tuple[Field, ...]:
    """What is equal in lanes whose copies are one and the same; nothing where each of them counts, as in sums."""
    if statement.form.semantics == "cp_reduce_async_bulk" or "cp_mask" in statement.form.tokens:
        return ()
    return size_of(low, statement), *told(low, statement, *(end.operand for end in ends(statement)))


def told(low: Lowering, statement: Instruction, *operands: int) -> tuple[Field, ...]:
    """The host addresses of these ends of a copy, and of the mbarrier that counts it."""
    found = [Field(per_lane(64), "i", hosts(low, operand).values) for operand in operands]
    return *found, *([_mbarrier_host(low)] if statement.operand("mbar") is not None else [])


def slot(low: Lowering, name: str, nbytes: int) -> int:
    """Where a warp keeps something of so many bytes a lane."""
    return low.slot(name, nbytes)


@lowers("cp_async_bulk_commit", "cp_async_bulk_wait")
def bulk_group(low: Lowering, statement: Instruction) -> None:
    if not low.defers:
        return
    guard = low.operands.guard(statement)
    if statement.form.effects.commits:
        low.emit(GroupCommit(Kind.BULK, guard.kind), guard)
        return
    left = statement.operands[0]
    assert isinstance(left, Immediate)
    low.emit(GroupWait(Kind.BULK, left.bits, "read" in statement.form.tokens, guard.kind), guard)
