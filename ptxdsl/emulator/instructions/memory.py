"""Loads and stores."""

from __future__ import annotations

from typing import Any

from ...ir import Address, Instruction, Symbol, Vector
from ..analysis.divergence import UNIFORM
from ..machine.layout import LOCAL_ORIGIN
from .addresses import Pattern, WithAddress, lane_by_lane
from .barriers import Fence
from .lowering import Lowering, lowers
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import raw

__all__ = ["Load", "LoadParameter", "MemoryCheck", "Private", "Store", "private_of"]

Private = tuple[Any, ...]
"""Of an access of local memory: bytes of a granule, whether its variable is known, whether its address is generic."""
LINE = 128
"""Bytes that discard and applypriority are about."""


class LoadParameter(MicroOp, may_fault=False, repeatable=True, inlinable=True, by_lane=True):
    """A load from the kernel's parameters, whose place is checked when it is lowered."""

    bits: int
    signed: bool
    dests: tuple[OperandClass, ...]
    guard: OperandClass
    masked: bool

    @property
    def fusible(self) -> bool:
        return not self.guard


class Load(WithAddress, MicroOp, may_fault=True, repeatable=True, inlinable=True, reads_memory=True, by_lane=True):
    """ld of one or more elements of so many bits; ``private`` where that is surely from local memory."""

    address: OperandClass
    pattern: Pattern | None
    bits: int
    signed: bool
    dests: tuple[OperandClass, ...]
    guard: OperandClass
    masked: bool
    private: Private

    @property
    def fusible(self) -> bool:
        return not self.guard


class Store(WithAddress, MicroOp, may_fault=True, repeatable=False, inlinable=True, writes_memory=True, by_lane=True):
    """st; ``uniform`` where all lanes store the same at one address."""

    address: OperandClass
    pattern: Pattern | None
    bits: int
    sources: tuple[OperandClass, ...]
    uniform: bool
    guard: OperandClass
    masked: bool
    private: Private

    @property
    def fusible(self) -> bool:
        return not self.guard


class MemoryCheck(MicroOp, may_fault=True, repeatable=True, inlinable="seldom used"):
    """The memory must be there; nothing happens to it."""

    address: OperandClass
    nbytes: int
    writes: bool
    guard: OperandClass


@lowers("ld", "ldu")
def load(low: Lowering, statement: Instruction) -> None:
    form = statement.form
    dest, address = statement.operands[:2]
    assert isinstance(address, Address) and form.type is not None
    items = dest.items if isinstance(dest, Vector) else (dest,)
    dests = [low.operands.destination(item) for item in items]
    kinds = tuple(part.kind for part in dests)
    guard = low.operands.guard(statement)
    bits, signed = form.type.bits, form.type.is_signed
    masked = low.divergent and any(kind.per_lane for kind in kinds)
    if form.space == "param" and isinstance(address.base, Symbol):
        offset = address.offset + address.base.offset
        offset = low.spaces.parameter(statement, address.base.symbol, offset, bits // 8 * len(items))
        low.emit(LoadParameter(bits, signed, kinds, guard.kind, masked), guard, raw("i", offset), *dests)
        return
    kind, pattern, place = low.address(statement, address, bits // 8 * len(items), False)
    private = private_of(low, form.space, address)
    if private:
        pattern, place = None, lane_by_lane(kind, place)
    low.emit(Load(kind, pattern, bits, signed, kinds, guard.kind, masked, private), place, guard, *dests)
    if form.effects.acquires:
        low.emit(Fence("acquire"))


@lowers("st")
def store(low: Lowering, statement: Instruction) -> None:
    form = statement.form
    address, value = statement.operands[:2]
    assert isinstance(address, Address) and form.type is not None
    items = value.items if isinstance(value, Vector) else (value,)
    bits = form.type.bits
    if form.effects.releases:
        low.emit(Fence("release"))
    kind, pattern, place = low.address(statement, address, bits // 8 * len(items), True)
    private = private_of(low, form.space, address)
    scalar = kind.scalar and not private and not low.facts.may_be_local(form.space, low.origin(address.base))
    scalar = scalar and all(low.operands.lane_offsets(item) is UNIFORM for item in items)
    values = [low.operands.source(item, bits, scalar, statement) for item in items]
    guard = low.operands.guard(statement)
    if (kind.scalar and not scalar) or private:
        pattern, place = None, lane_by_lane(kind, place)
    kinds = tuple(part.kind for part in values)
    low.emit(Store(kind, pattern, bits, kinds, scalar, guard.kind, low.divergent, private), place, guard, *values)


def private_of(low: Lowering, space: str, address: Address) -> Private:
    """What is known of an access that is surely of local memory; () for all others."""
    origin = low.origin(address.base)
    known = origin.startswith(LOCAL_ORIGIN)
    if space != "local" and not (space == "generic" and known):
        return ()
    return low.spaces.local_granule, known and origin in low.spaces.entries, space == "generic"


@lowers("discard", "applypriority")
def check_memory(low: Lowering, statement: Instruction) -> None:
    """discard and applypriority: hints about caches, for memory that must be there."""
    address = next(operand for operand in statement.operands if isinstance(operand, Address))
    writes, guard = statement.form.effects.writes, low.operands.guard(statement)
    kind, _, place = low.address(statement, address, LINE, writes)
    low.emit(MemoryCheck(kind, LINE, writes, guard.kind), lane_by_lane(kind, place), guard)
