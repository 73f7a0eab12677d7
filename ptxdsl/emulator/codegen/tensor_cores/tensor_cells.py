"""The tensor memory of a block, and of the other block of its pair, as instructions check and access it.

An address is a lane, in its upper 16 bits, and a column. The lanes of a column lie side by side in memory, so that what
neighbouring lanes have there is a vector. The blocks of a cluster run on one host thread, so the cells of the other
block of a pair are read and written as plainly as a block's own.

Every instruction here is complete where it stands, which a GPU could choose too. What is to be done where one has been
issued, so that others may complete it later, belongs into :func:`issued`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...machine.layout import Block
from ...machine.tensor_memory import TensorMemory
from ...machine.status import Fault
from ..handler import Handler, byte, i1, i32, i64, pointer

__all__ = ["COLUMN_BYTES", "TensorCells", "at_most", "issued", "split"]

COLUMN_BYTES = TensorMemory.PITCH
_UNIT_BITS = TensorMemory.UNIT.bit_length() - 1


def issued(h: Handler, kind: str) -> None:
    """An asynchronous operation of a kind (mma, cp, shift, ld, st) has been issued; it is complete here."""


def split(h: Handler, address: Any) -> tuple[Any, Any]:
    """Lane and column of an address, i32."""
    return h.ir.lshr(address, h.i32(16)), h.ir.and_(address, h.i32(0xFFFF))


def at_most(h: Handler, value: Any, most: int) -> Any:
    """A number without a sign, cut to what shifts can do with."""
    return h.call("llvm.umin.i32", i32, value, h.i32(most))


class TensorCells:
    """The tensor memory of the block that runs, or of the other one of its pair (:meth:`peer`)."""

    def __init__(self, h: Handler, place: Any = None, block: Any = None) -> None:
        self.h = h
        self.block = h.block if block is None else block
        self.place = h.load(h.block, Block.TENSOR, pointer) if place is None else place

    def peer(self) -> TensorCells:
        """That of the pair's other block, which is there (:meth:`use_group`)."""
        found = (self.h.load(self.place, field, pointer) for field in (TensorMemory.PEER, TensorMemory.PEER_BLOCK))
        return TensorCells(self.h, *found)

    def pair(self, group: int) -> list[TensorCells]:
        """Those that an instruction of a `.cta_group` works on, the block's own first."""
        return [self, self.peer()] if group == 2 else [self]

    def by_parity(self) -> tuple[TensorCells, TensorCells]:
        """Those of the pair's block of even rank, and of the other one."""
        h, other = self.h, self.peer()
        odd = h.nonzero(h.ir.and_(h.load(self.block, Block.RANK, i32), h.i32(1)))

        def chosen(one: Any, two: Any) -> TensorCells:
            return TensorCells(h, h.ir.select(odd, one.place, two.place), h.ir.select(odd, one.block, two.block))

        return chosen(other, self), chosen(self, other)

    def get(self, field: int, kind: ir.Type = i32) -> Any:
        return self.h.load(self.place, field, kind)

    def put(self, field: int, value: Any) -> None:
        self.h.store(value, self.place, field)

    # Checks

    def fault(self, kind: Fault, lanes: Any, address: Any = None) -> None:
        """Stop with a fault of an instruction; ``address`` is an i32."""
        h = self.h
        if address is not None:
            h.store(h.ir.zext(address, i64), h.block, Block.FAULT_ADDRESS)
        h.fault(kind, lanes)

    def use_group(self, group: int, lanes: Any, present: bool = True) -> None:
        """Check and note the `.cta_group` of an instruction, and with ``present`` that its pair is there."""
        h = self.h
        before = self.get(TensorMemory.GROUP)
        same = h.ir.or_(h.zero(before), h.ir.icmp_unsigned("==", before, h.i32(group)))
        h.branch_unless(same, lambda: self.fault(Fault.TENSOR_GROUP, lanes))
        self.put(TensorMemory.GROUP, h.i32(group))
        if group == 2 and present:
            self.demand_peer(lanes)

    def demand_peer(self, lanes: Any) -> None:
        """Check that there is another block of the pair, which has not ended."""
        h = self.h
        there = h.nonzero(self.get(TensorMemory.PEER, i64))

        def size() -> Any:
            return h.nonzero(h.load(self.get(TensorMemory.PEER_OPEN, pointer), 0, i64))

        h.branch_unless(h.asked_if(there, size), lambda: self.fault(Fault.TENSOR_PAIR, lanes))

    def check_columns(self, address: Any, column: Any, count: Any, lanes: Any) -> None:
        """Check that ``count`` columns, an i32, from one on are allocated; ``address`` is what a fault names."""
        h = self.h
        most = TensorMemory.EXCLUSIVE_COLUMNS
        end = h.ir.add(at_most(h, column, most), at_most(h, count, most))
        inside = h.ir.icmp_unsigned("<=", h.ir.add(column, count), h.i32(most))
        inside = h.ir.and_(inside, h.ir.icmp_unsigned("<=", column, h.i32(most)))
        rounded = at_most(h, h.ir.add(end, h.i32(TensorMemory.UNIT - 1)), most)
        first, behind = (h.ir.lshr(at_most(h, each, most), h.i32(_UNIT_BITS)) for each in (column, rounded))
        wanted = h.ir.sub(h.ir.shl(h.i32(1), behind), h.ir.shl(h.i32(1), first))
        missing = h.ir.and_(wanted, h.ir.not_(self.get(TensorMemory.ALLOCATED)))
        good = h.ir.and_(inside, h.zero(missing))

        def leave() -> None:
            h.store(h.ir.zext(count, i64), h.block, Block.EXTENTS)
            self.fault(Fault.TENSOR_COLUMNS, lanes, address)

        h.branch_unless(good, leave)

    def check_lanes(self, address: Any, good: Any, lanes: Any) -> None:
        """Check that an instruction may access the lane of an address."""
        self.h.branch_unless(good, lambda: self.fault(Fault.TENSOR_LANES, lanes, address))

    # Cells

    def cell(self, lane: Any, column: Any) -> Any:
        """Where a cell lies; that of the next lane 4 bytes behind, of the next column COLUMN_BYTES."""
        h = self.h
        offset = h.ir.add(h.ir.mul(column, h.i32(COLUMN_BYTES)), h.ir.shl(lane, h.i32(2)))
        return h.add(self.place, h.ir.add(offset, h.i32(TensorMemory.CELLS)))

    def written(self, lane: Any, column: Any) -> Any:
        """Where the bits lie that say of eight lanes from one on whether a column's cells were written."""
        h = self.h
        offset = h.ir.add(h.ir.mul(column, h.i32(TensorMemory.WRITTEN_PITCH)), h.ir.lshr(lane, h.i32(3)))
        return h.add(self.place, h.ir.add(offset, h.i32(TensorMemory.WRITTEN)))

    def mark(self, lane: Any, column: Any, count: int) -> None:
        """Note that 16, 32, 64 or 128 lanes from one on, a multiple of 16, were written in a column."""
        kind = ir.IntType(count)
        self.h.store(kind(-1), self.written(lane, column), 0, 2)

    def clear(self, column: Any, count: Any) -> None:
        """Make columns as they are when they are allocated: unknown, and not written."""
        h = self.h
        for field, pitch, value in (
            (TensorMemory.CELLS, COLUMN_BYTES, 0xFF), (TensorMemory.WRITTEN, TensorMemory.WRITTEN_PITCH, 0),
            (TensorMemory.WRITERS, TensorMemory.FLIGHT_PITCH, 0), (TensorMemory.READERS, TensorMemory.FLIGHT_PITCH, 0),
        ):
            place = h.add(self.place, h.ir.add(h.ir.mul(column, h.i32(pitch)), h.i32(field)))
            size = h.ir.zext(h.ir.mul(count, h.i32(pitch)), i64)
            h.call("llvm.memset.p0.i64", ir.VoidType(), place, ir.Constant(byte, value), size, ir.Constant(i1, 0))
