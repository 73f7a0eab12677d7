"""Tensor memory of a block: its allocation, and the end of the block, which must have freed all of it."""

from __future__ import annotations

from ....ir import Address, Instruction
from ..addresses import WithAddress, lane_by_lane
from ..lowering import Lowering, lowers
from ..micro_op import MicroOp
from ..operand_classes import OperandClass
from ..operands import Field, raw

__all__ = [
    "TensorAllocate", "TensorDeallocate", "TensorMemoryEnd", "TensorRelinquish", "group_of", "leave_tensor_memory",
]

_WAITS = "it may wait for other warps"


class TensorAllocate(
    WithAddress, MicroOp, may_fault=True, repeatable=False, inlinable=_WAITS, converges=True, writes_memory=True
):
    """Columns are allocated, and their address is written to shared memory."""

    group: int
    exclusive: bool
    address: OperandClass
    columns: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class TensorDeallocate(MicroOp, may_fault=True, repeatable=False, inlinable=_WAITS, converges=True):
    """Columns from an address on are free again."""

    group: int
    exclusive: bool
    address: OperandClass
    columns: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class TensorRelinquish(MicroOp, may_fault=True, repeatable=False, inlinable="it is rare", converges=True):
    """The block allocates no more."""

    group: int
    members: OperandClass
    guard: OperandClass
    masked: bool


class TensorMemoryEnd(MicroOp, may_fault=True, repeatable=True, inlinable="tensor memory has no block functions"):
    """Lanes are about to end: where they are the block's last ones, nothing may be allocated any more."""

    guard: OperandClass


def group_of(statement: Instruction) -> int:
    """The `.cta_group` of an instruction."""
    return 1 + ("cta_group::2" in statement.form.tokens)


@lowers("tensor_memory")
def allocation(low: Lowering, statement: Instruction) -> None:
    tokens, group, exclusive = statement.form.tokens, group_of(statement), "exclusive" in statement.form.tokens
    guard, members = low.operands.guard(statement), low.operands.number(0xFFFFFFFF, 32)
    if tokens[0] == "relinquish_alloc_permit":
        low.emit(TensorRelinquish(group, members.kind, guard.kind, low.divergent), guard, low.priority(), members)
        return
    columns, site = low.read(statement, statement.operand("columns")), raw("i", low.place)
    if tokens[0] == "dealloc":
        address = low.read(statement, statement.operand("a"))
        op = TensorDeallocate(
            group, exclusive, address.kind, columns.kind, members.kind, guard.kind, low.divergent
        )
        low.emit(op, guard, low.priority(), address, columns, members, site)
        return
    dest = statement.operand("d")
    assert isinstance(dest, Address)
    kind, _, place = low.address(statement, dest, 4, True)
    made = TensorAllocate(group, exclusive, kind, columns.kind, members.kind, guard.kind, low.divergent)
    low.emit(made, lane_by_lane(kind, place), guard, low.priority(), columns, members, site)


def leave_tensor_memory(low: Lowering, guard: Field) -> None:
    """Lanes are about to end."""
    if low.spaces.tensor_memory:
        low.emit(TensorMemoryEnd(guard.kind), guard)
