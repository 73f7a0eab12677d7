"""What single threads have done to tensor memory beside products: copies from shared memory, shifts, and commits.

All of it is complete where it stands (:mod:`..codegen.tensor_cells`): an arrival at the mbarrier stands behind a commit
(:mod:`..rewrite.async_copies`).
"""

from __future__ import annotations

from ...ir import Address, Instruction
from ..machine.unsupported import unsupported
from .lowering import Lowering, lowers
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import raw
from .tensor_memory import group_of

__all__ = ["TensorCommit", "TensorShift"]

_ALONE = "tensor memory has no block functions"


class TensorShift(MicroOp, may_fault=True, repeatable=False, inlinable=_ALONE):
    """The cells of a quarter of the lanes move to the lane below, in some columns."""

    group: int
    address: OperandClass
    guard: OperandClass
    masked: bool


class TensorCommit(MicroOp, may_fault=True, repeatable=True, inlinable=_ALONE):
    """An mbarrier tracks what was issued; the arrival is another instruction."""

    group: int
    guard: OperandClass
    masked: bool


@lowers("tensor_memory_copy")
def copy(low: Lowering, statement: Instruction) -> None:
    guard, address = low.operands.guard(statement), statement.operand("a")
    assert isinstance(address, Address)
    base, offset = low.read(statement, address.base), raw("i", address.offset)
    if statement.form.tokens[0] == "shift":
        low.emit(TensorShift(group_of(statement), base.kind, guard.kind, low.divergent), guard, base, offset)
        return
    raise unsupported(statement, f"`{statement.form.mnemonic}`")


@lowers("tensor_commit")
def commit(low: Lowering, statement: Instruction) -> None:
    guard = low.operands.guard(statement)
    low.emit(TensorCommit(group_of(statement), guard.kind, low.divergent), guard)
