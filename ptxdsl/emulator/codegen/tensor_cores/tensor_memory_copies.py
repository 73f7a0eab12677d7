"""Code of copies from shared to tensor memory, shifts and commits, for each thread that executes them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.tensor_cores.tensor_memory_copies import (
    SHAPES, SWIZZLES, CopyShape, TensorCommit, TensorCopy, TensorShift,
)
from ...machine.layout import LANES, SHARED_START, Block
from ...machine.tensor_memory import TensorMemory
from ...machine.status import Fault
from ...machine.pending import Kind, Pending
from ..access import Access
from ..atomics import element_at, spill
from ..data import guard_mask, source
from ..handler import Handler, byte, i1, i32, i64, pointer
from ..pending import faulty, make_where, some_pending
from ..registry import emits
from .tensor_cells import COLUMN_BYTES, TensorCells, issued, split
from .tensor_flight import ALL_LANES, Flight, note_commit
from .tensor_tiles import not_a_tile

__all__ = ["SHIFTED_COLUMNS", "shift_down"]

SHIFTED_COLUMNS = 8
"""That a shift moves: 32 bytes of each lane. Of how many lanes the manual says "for a warp": the quarter at the address
is taken here, and no other (docs/numerics.md)."""
_QUARTER = ir.VectorType(i32, 32)


FP6_LOW, FP4_LOW = 0, 2
"""The lowest bit of FP6 and of FP4 in the byte that a copy makes of them (docs/numerics.md)."""
_PLACES = ir.FunctionType(ir.VoidType(), [pointer] * 3 + [i64] * 3)
_FAR = 1 << 40


@emits(TensorCopy)
def tensor_copy(h: Handler, op: TensorCopy) -> None:
    function, table = h.field("q"), h.field("q")
    lanes = guard_mask(h, op.guard, True)
    addresses = spill(h, source(h, op.address, LANES))
    offset = h.field()
    words = spill(h, source(h, op.descriptor, LANES))
    if op.guard:
        h.skip_unless_any(lanes)
    own, shape = TensorCells(h), SHAPES[op.shape]
    own.use_group(op.group, lanes)
    make_products(h)
    places = h.ir.bitcast(h.alloca(ir.ArrayType(i32, shape.rows * shape.pieces)), pointer)
    find = h.ir.inttoptr(function, _PLACES.as_pointer())
    lanes_at = h.ir.inttoptr(table, pointer)

    def one(number: Any) -> None:
        thread = h.ir.shl(h.i32(1), number)
        address = h.ir.add(element_at(h, addresses, number, i32), offset)
        lane, column = split(h, address)
        good = h.ir.icmp_unsigned("<", lane, h.i32(32 if shape.anywhere else 1))
        for cells in own.pair(op.group):
            cells.check_lanes(address, good, thread)
            cells.check_columns(address, column, h.i32(4 * shape.pieces), thread)
        _find_rows(h, shape, find, element_at(h, words, number, i64), places, thread)
        groups = h.ir.shl(h.i32(0x55), h.ir.lshr(lane, h.i32(4))) if shape.anywhere else h.i32(ALL_LANES)
        _fly(h, own, op.group, (column, h.i32(4 * shape.pieces), groups), thread)
        for cells in own.pair(op.group):
            _copy_rows(h, op, cells, places, lanes_at, (lane, column))
        issued(h, "cp")

    h.for_each_lane(lanes, one)
    h.next()


def _fly(h: Handler, own: TensorCells, group: int, place: tuple[Any, Any, Any], thread: Any) -> None:
    """A thread has the tensor core write columns: first, count, groups of lanes."""
    flight = Flight(h, own, thread, core=True)
    for cells in own.pair(group):
        flight.check(cells, *place, writes=True)
    flight.begin(own.pair(group))
    for cells in own.pair(group):
        flight.note(cells, *place, writes=True)


def _find_rows(h: Handler, shape: CopyShape, find: Any, word: Any, places: Any, thread: Any) -> None:
    """Put the addresses of the pieces of all rows into ``places``; a fault where there are none."""
    bounds, sizes = (h.ir.bitcast(h.alloca(ir.ArrayType(i64, n)), pointer) for n in (2, 6))
    for n, value in enumerate((shape.rows, shape.rows - 1, _FAR, shape.pieces, 3, 0)):
        h.store(h.i64(value), sizes, 8 * n)
    h.store(h.i64(_FAR), bounds, 0)
    h.store(h.i64(0), bounds, 8)

    def leave() -> None:
        h.store(word, h.block, Block.FAULT_ADDRESS)
        h.fault(Fault.TENSOR_DESCRIPTOR, thread)

    wrong = not_a_tile(h.ir, word, h.i64(SWIZZLES), h.i64(16 * shape.pieces), ir.Constant(i1, 0))
    h.branch_unless(h.ir.not_(wrong), leave)
    h.ir.call(find, [places, sizes, bounds, word, h.i64(0), h.i64(0)])
    lowest, highest = h.load(bounds, 0, i64), h.load(bounds, 8, i64)
    end = h.ir.zext(h.load(h.block, Block.TOTAL_SHARED, i32), i64)
    inside = h.ir.icmp_unsigned("<=", highest, h.ir.add(end, h.i64(SHARED_START - 16)))
    h.branch_unless(h.ir.and_(inside, h.ir.icmp_unsigned(">=", lowest, h.i64(SHARED_START))), leave)


def _copy_rows(
    h: Handler, op: TensorCopy, cells: TensorCells, places: Any, lanes_at: Any, place: tuple[Any, Any]
) -> None:
    """Copy the rows from a block's shared memory to its own tensor memory."""
    shape, (lane, column) = SHAPES[op.shape], place
    base = h.ir.sub(h.load(cells.block, Block.SHARED, i64), h.i64(SHARED_START))
    copies = len(shape.lanes(0))
    whole = ir.IntType(128)

    def row(number: Any) -> None:
        found: list[Any] = []
        for piece in range(shape.pieces):
            at = h.ir.add(h.ir.mul(number, h.i64(4 * shape.pieces)), h.i64(4 * piece))
            offset = h.ir.zext(h.load(h.add(places, at), 0, i32), i64)
            value = h.load(h.ir.inttoptr(h.ir.add(base, offset), pointer), 0, whole, 1)
            found += [_word(h, value, part, op.bits) for part in range(4)]
        for copy in range(copies):
            at = h.ir.add(h.ir.mul(number, h.i64(4 * copies)), h.i64(4 * copy))
            to = h.ir.add(lane, h.load(h.add(lanes_at, at), 0, i32))
            first = cells.cell(to, column)
            for n, value in enumerate(found):
                h.store(value, first, n * COLUMN_BYTES, 4)
            if shape.anywhere:
                _mark_lane(h, cells, to, column, len(found))

    h.count(h.i64(shape.rows), 1, row)
    if not shape.anywhere:
        for n in range(4 * shape.pieces):
            cells.mark(h.i32(0), h.ir.add(column, h.i32(n)), TensorMemory.LANES)


def _word(h: Handler, piece: Any, number: int, bits: int) -> Any:
    """A word of 16 bytes, or four bytes of elements of fewer bits."""
    per = 4 * bits
    word = h.ir.trunc(h.ir.lshr(piece, piece.type(per * number)), i32)
    if bits == 8:
        return word
    low, result = FP6_LOW if bits == 6 else FP4_LOW, None
    for n in range(4):
        part = h.ir.and_(h.ir.lshr(word, h.i32(bits * n)), h.i32((1 << bits) - 1))
        part = h.ir.shl(part, h.i32(8 * n + low))
        result = part if result is None else h.ir.or_(result, part)
    return result


def _mark_lane(h: Handler, cells: TensorCells, lane: Any, column: Any, count: int) -> None:
    """Note that the cells of one lane were written."""
    place = cells.written(lane, column)
    bit = h.ir.trunc(h.ir.shl(h.i32(1), h.ir.and_(lane, h.i32(7))), byte)
    for n in range(count):
        at = n * TensorMemory.WRITTEN_PITCH
        h.store(h.ir.or_(h.load(place, at, byte), bit), place, at, 1)


@emits(TensorShift)
def tensor_shift(h: Handler, op: TensorShift) -> None:
    lanes = guard_mask(h, op.guard, True)
    addresses = spill(h, source(h, op.address, LANES))
    offset = h.field()
    if op.guard:
        h.skip_unless_any(lanes)
    own = TensorCells(h)
    own.use_group(op.group, lanes)
    make_products(h)

    def one(number: Any) -> None:
        thread = h.ir.shl(h.i32(1), number)
        address = h.ir.add(element_at(h, addresses, number, i32), offset)
        lane, column = split(h, address)
        aligned = h.zero(h.ir.and_(lane, h.i32(-1 - (TensorMemory.LANES - 32))))
        for cells in own.pair(op.group):
            cells.check_lanes(address, aligned, thread)
            cells.check_columns(address, column, h.i32(SHIFTED_COLUMNS), thread)
        _fly(h, own, op.group, (column, h.i32(SHIFTED_COLUMNS), h.ir.shl(h.i32(3), h.ir.lshr(lane, h.i32(4)))), thread)
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


def make_products(h: Handler) -> None:
    """Make the products that have been issued: what comes now stands behind them."""
    with h.ir.if_then(some_pending(h)):
        tensor = h.i32(Kind.TENSOR)
        make_where(h, lambda operation: h.ir.icmp_unsigned("==", h.load(operation, Pending.KIND, i32), tensor))
        h.branch_unless(h.ir.not_(faulty(h)), h.ir.ret_void)


@emits(TensorCommit, slow_path=True)
def tensor_commit(h: Handler, op: TensorCommit) -> None:
    access = Access(h, op.address, None, 8, True)
    lanes = guard_mask(h, op.guard, True)
    if op.guard:
        h.skip_unless_any(lanes)
    hosts = spill(h, access.hosts(lanes))
    TensorCells(h).use_group(op.group, lanes)
    h.for_each_lane(lanes, lambda lane: note_commit(h, element_at(h, hosts, lane, i64)))
    h.next()


