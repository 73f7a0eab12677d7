"""What single threads have done to tensor memory beside products: copies from shared memory, shifts, and commits.

Copies and shifts are made where they stand, behind the products that were issued before. The arrival at the mbarrier
stands behind a commit (:mod:`..rewrite.async_copies`); where products are deferred it comes when they are made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ....ir import Address, Instruction
from ..addresses import WithAddress, lane_by_lane
from ..lowering import Lowering, lowers
from ..micro_op import MicroOp
from ..operand_classes import OperandClass
from ..operands import raw
from .tensor_memory import group_of
from .tensor_tiles import TilePlaces

__all__ = ["SHAPES", "SWIZZLES", "CopyShape", "TensorCommit", "TensorCopy", "TensorShift", "element_bits"]

_ALONE = "tensor memory has no block functions"
SWIZZLES = 0b1010111
"""A bit for each swizzle that the rows of a copy may have: those of a K-major tile."""


class CopyShape(NamedTuple):
    """``rows`` of so many ``pieces`` of 16 bytes; ``lanes`` gives those that a row goes to, from the address on.

    It begins in lane 0, or with ``anywhere`` in one of the first 32.
    """

    rows: int
    pieces: int
    lanes: Callable[[int], tuple[int, ...]]
    anywhere: bool = False


SHAPES = {
    "128x256b": CopyShape(128, 2, lambda row: (row,)),
    "128x128b": CopyShape(128, 1, lambda row: (row,)),
    "4x256b": CopyShape(4, 2, lambda row: (32 * row,), True),
    "warpx2::02_13": CopyShape(64, 1, lambda row: (row, row + 64)),
    "warpx2::01_23": CopyShape(64, 1, lambda row: (64 * (row // 32) + row % 32, 64 * (row // 32) + row % 32 + 32)),
    "warpx4": CopyShape(32, 1, lambda row: (row, row + 32, row + 64, row + 96)),
}
"""By the last modifier of the shape."""


class TensorCopy(MicroOp, may_fault=True, repeatable=False, inlinable=_ALONE, reads_memory=True):
    """Rows that a matrix descriptor names go to tensor memory; 16 elements of ``bits`` fewer than 8 to as many bytes.

    The record has the address of the routine that finds the rows, and that of a table of the lanes that they go to.
    """

    group: int
    shape: str
    bits: int
    address: OperandClass
    descriptor: OperandClass
    guard: OperandClass
    masked: bool


class TensorShift(MicroOp, may_fault=True, repeatable=False, inlinable=_ALONE):
    """The cells of a quarter of the lanes move to the lane below, in some columns."""

    group: int
    address: OperandClass
    guard: OperandClass
    masked: bool


class TensorCommit(WithAddress, MicroOp, may_fault=True, repeatable=True, inlinable=_ALONE):
    """An mbarrier tracks what was issued; the arrival is another instruction."""

    group: int
    address: OperandClass
    guard: OperandClass
    masked: bool


def element_bits(statement: Instruction) -> int:
    """Of the elements that a copy reads: 6 and 4 where it makes bytes of them."""
    return next((int(token[1]) for token in statement.form.tokens if "_p" in token), 8)


@lowers("tensor_memory_copy")
def copy(low: Lowering, statement: Instruction) -> None:
    guard, address = low.operands.guard(statement), statement.operand("a")
    assert isinstance(address, Address)
    base, offset = low.read(statement, address.base), raw("i", address.offset)
    if statement.form.tokens[0] == "shift":
        low.emit(TensorShift(group_of(statement), base.kind, guard.kind, low.divergent), guard, base, offset)
        return
    tokens = statement.form.tokens
    shape = next(token for token in tokens if token in SHAPES)
    bits = element_bits(statement)
    rows, _, lanes, _ = SHAPES[shape]
    table = raw("qq", 0, low.pool.table([lane for row in range(rows) for lane in lanes(row)]))
    descriptor = low.read(statement, statement.operand("s"), 64)
    op = TensorCopy(group_of(statement), shape, bits, base.kind, descriptor.kind, guard.kind, low.divergent)
    low.emit(op, table, guard, base, offset, descriptor).links = {0: TilePlaces("k")}


@lowers("tensor_commit")
def commit(low: Lowering, statement: Instruction) -> None:
    guard, mbar = low.operands.guard(statement), statement.operand("mbar")
    assert isinstance(mbar, Address)
    kind, _, place = low.address(statement, mbar, 8, True)
    low.emit(TensorCommit(group_of(statement), kind, guard.kind, low.divergent), lane_by_lane(kind, place), guard)
