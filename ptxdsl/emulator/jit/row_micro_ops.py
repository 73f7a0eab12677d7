"""Micro-ops of registers that have one number for each row of the block in the warp; only block functions have them."""

from __future__ import annotations

from typing import Any

from ..instructions.micro_op import MicroOp
from ..instructions.operand_classes import OperandClass

__all__ = ["ComputeRows", "RowWrapCheck"]


class ComputeRows(MicroOp, may_fault=False, repeatable=True, inlinable=True):
    """As Compute: the result in the first lane of each row."""

    mnemonic: str
    number: int
    operands: tuple[Any, ...]


class RowWrapCheck(MicroOp, may_fault=True, repeatable=True, inlinable=True):
    """As WrapCheck, for each row."""

    base: OperandClass
    signed: bool
