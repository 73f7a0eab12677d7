"""Code of what a product of tcgen05.mma leaves defined: elements of D are as little known as what they are made of.

An element is known where its row's A in tensor memory, metadata and scales are, and its column's scales; and where D is
added to, if it was known before. Cells of tensor memory have a bit that says so, which loads look at under a sanitizer.
What products take from shared memory is checked where it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from llvmlite import ir

from ...instructions.tensor_cores.tensor_tiles import COLUMN_BYTES
from ...machine.tensor_memory import TensorMemory
from ...machine.product_plan import ProductPlan, ProductRequest
from ..handler import byte, i16, i64
from ..routine_code import RoutineCode

__all__ = ["Known"]

_ROWS, _COLUMNS = 128, 288
_BITS = TensorMemory.WRITTEN - TensorMemory.CELLS


class Product(Protocol):
    """What is needed of a product under construction."""

    c: RoutineCode
    b: Any
    key: Any
    cells: Any
    first: Any
    groups: Any

    def room(self, nbytes: int) -> Any: ...
    def said(self, place: int) -> Any: ...
    def asked(self, place: int) -> Any: ...
    def offset(self, table: Any, number: Any) -> Any: ...
    def nonzero(self, value: Any) -> Any: ...
    def times(self, count: Any, body: Callable[[Any], None]) -> None: ...
    def written(self, offset: Any) -> Any: ...
    def each_vector(self, body: Callable[[Any, Any, Any, Any], None]) -> None: ...


class Known:
    """The rows and columns of D that a product leaves known in a block: a bit for each row, a byte for each column."""

    def __init__(self, product: Product) -> None:
        self.p, self.c, self.b = product, product.c, product.b
        self.scaled, self.rows = product.room(_ROWS // 8), product.room(_ROWS // 8)
        self.columns, self.doubt = product.room(_COLUMNS), product.room(8)
        self.all_rows = ir.Constant(ir.VectorType(i64, 2), [-1, -1])

    def begin(self) -> None:
        """All is known of a block."""
        self.c.store(i64(0), self.doubt, 8)
        self.c.store(self.all_rows, self.scaled, 16)
        if self.p.key.scaled:
            for at in range(0, _COLUMNS, 16):
                self.c.store(self.all_rows, self.c.at(self.columns, at), 16)

    def begin_bank(self) -> None:
        """What scales say holds for all banks."""
        self.c.store(self.c.load(self.scaled, ir.VectorType(i64, 2), 16), self.rows, 16)

    def bits(self, offset: Any) -> Any:
        """Where the bits of 16 cells lie, or those of eight from a multiple of eight on."""
        return self.c.at(self.p.cells, self.b.add(self.b.lshr(offset, i64(5)), i64(_BITS)))

    def unless_written(self, offset: Any, otherwise: Callable[[], None]) -> None:
        """Run the code that ``otherwise`` emits where a cell was not written."""
        b = self.b
        flags = b.zext(self.c.load(self.bits(offset), byte, 1), i64)
        mine = b.and_(b.lshr(flags, b.and_(b.lshr(offset, i64(2)), i64(7))), i64(1))
        with b.if_then(b.icmp_unsigned("==", mine, i64(0)), likely=False):
            self.c.store(i64(1), self.doubt, 8)
            otherwise()

    def drop_row(self, rows: Any, row: Any) -> None:
        b = self.b
        place = self.c.at(rows, b.lshr(row, i64(3)))
        bit = b.trunc(b.shl(i64(1), b.and_(row, i64(7))), byte)
        self.c.store(b.and_(self.c.load(place, byte, 1), b.not_(bit)), place, 1)

    def drop_column(self, column: Any) -> None:
        self.c.store(byte(0), self.c.at(self.columns, column), 1)

    def look_at_rows(self, table: Any) -> None:
        """What is known of an A in tensor memory, whose groups of 16 rows a table has."""
        b, c, p = self.b, self.c, self.p

        def group(number: Any) -> None:
            first = b.add(p.asked(ProductRequest.A), p.offset(table, number))
            place = c.at(self.rows, b.shl(number, i64(1)))

            def column(at: Any) -> None:
                mine = c.load(self.bits(b.add(first, b.mul(at, i64(COLUMN_BYTES)))), i16, 2)
                with b.if_then(b.icmp_signed("!=", mine, i16(-1)), likely=False):
                    c.store(i64(1), self.doubt, 8)
                    c.store(b.and_(c.load(place, i16, 2), mine), place, 2)

            p.times(p.said(ProductPlan.A_COLUMNS), column)

        p.times(p.groups, group)

    def note(self, fresh: Any) -> None:
        """Note what is known of D; where it is added to, and nothing is in doubt, that stays as it is."""
        b = self.b
        doubt = self.p.nonzero(self.c.load(self.doubt, i64, 8))
        with b.if_then(b.or_(self.p.nonzero(fresh), doubt)):
            self.p.each_vector(lambda _, n, group, offset: self._note(n, group, offset, fresh))

    def _note(self, n: Any, group: Any, offset: Any, fresh: Any) -> None:
        b, c, p = self.b, self.c, self.p
        place = self.bits(b.add(offset, p.asked(ProductRequest.D)))
        before = c.load(place, i16, 2)
        after = b.select(p.nonzero(fresh), i16(-1), before)
        after = b.and_(after, c.load(c.at(self.rows, b.shl(group, i64(1))), i16, 2))
        if p.key.scaled:
            flag = c.load(c.at(self.columns, b.add(p.first, n)), byte, 1)
            after = b.select(b.icmp_signed("!=", flag, byte(0)), after, i16(0))
        mine = b.bitcast(p.written(offset), i16)
        after = b.or_(b.and_(after, mine), b.and_(before, b.not_(mine)))
        c.store(after, place, 2)
