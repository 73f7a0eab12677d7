"""Code of copies from shared to tensor memory, shifts and commits, for each thread that executes them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..instructions.tensor_memory_copies import TensorCommit, TensorShift
from ..machine.layout import LANES, TensorMemory
from .atomics import element_at, spill
from .data import guard_mask, source
from .handler import Handler, i32
from .registry import emits
from .tensor_cells import COLUMN_BYTES, TensorCells, issued, split

__all__ = ["SHIFTED_COLUMNS", "shift_down"]

SHIFTED_COLUMNS = 8
"""That a shift moves: 32 bytes of each lane. Of how many lanes the manual says "for a warp": the quarter at the address
is taken here, and no other (docs/numerics.md)."""
_QUARTER = ir.VectorType(i32, 32)


@emits(TensorShift)
def tensor_shift(h: Handler, op: TensorShift) -> None:
    lanes = guard_mask(h, op.guard, True)
    addresses = spill(h, source(h, op.address, LANES))
    offset = h.field()
    if op.guard:
        h.skip_unless_any(lanes)
    own = TensorCells(h)
    own.use_group(op.group, lanes)

    def one(number: Any) -> None:
        thread = h.ir.shl(h.i32(1), number)
        address = h.ir.add(element_at(h, addresses, number, i32), offset)
        lane, column = split(h, address)
        aligned = h.zero(h.ir.and_(lane, h.i32(-1 - (TensorMemory.LANES - 32))))
        for cells in own.pair(op.group):
            cells.check_lanes(address, aligned, thread)
            cells.check_columns(address, column, h.i32(SHIFTED_COLUMNS), thread)
        for cells in own.pair(op.group):
            shift_down(h, cells, lane, column, h.i64(SHIFTED_COLUMNS))
        issued(h, "shift")

    h.for_each_lane(lanes, one)
    h.next()


def shift_down(h: Handler, cells: TensorCells, lane: Any, column: Any, count: Any) -> None:
    """Move 32 lanes of ``count`` columns down by one; the last one keeps its cells."""
    mask = ir.Constant(_QUARTER, [min(31, lane + 1) for lane in range(32)])
    place, written = cells.cell(lane, column), cells.written(lane, column)

    def move(number: Any) -> None:
        at = h.add(place, h.ir.mul(number, h.i64(COLUMN_BYTES)))
        old = h.load(at, 0, _QUARTER, 4)
        h.store(h.ir.shuffle_vector(old, old, mask), at, 0, 4)
        bits_at = h.add(written, h.ir.mul(number, h.i64(TensorMemory.WRITTEN_PITCH)))
        bits = h.load(bits_at, 0, i32)
        h.store(h.ir.or_(h.ir.lshr(bits, h.i32(1)), h.ir.and_(bits, h.i32(-1 << 31))), bits_at, 0)

    h.count(count, 1, move)


@emits(TensorCommit)
def tensor_commit(h: Handler, op: TensorCommit) -> None:
    lanes = guard_mask(h, op.guard, True)
    if op.guard:
        h.skip_unless_any(lanes)
    TensorCells(h).use_group(op.group, lanes)
    h.next()


