"""Code of what a product of tcgen05.mma does with B's columns: indices into tables, and the zero-column mask of .ws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from llvmlite import ir

from ....isa.matrix_descriptors import SEGMENT
from ...machine.product_plan import ProductPlan, ProductRequest
from ..handler import byte, i16, i32, i64, pointer
from ..routine_code import RoutineCode
from .tensor_cells import COLUMN_BYTES

__all__ = ["clear_columns", "decompress"]

_ROWS = 128


class Product(Protocol):
    """What is needed of a product under construction: its panel of B, and what plan and request say."""

    c: RoutineCode
    b: Any
    key: Any
    request: Any
    right: Any
    line: Any
    offsets: Any
    rows: Any
    columns: Any
    depth: Any
    pitch: Any

    def said(self, place: int) -> Any: ...
    def asked(self, place: int) -> Any: ...
    def table(self, place: int) -> Any: ...
    def offset(self, table: Any, number: Any) -> Any: ...
    def nonzero(self, value: Any) -> Any: ...
    def times(self, count: Any, body: Callable[[Any], None]) -> None: ...


def decompress(p: Product, base: Any) -> None:
    """The panel of a B whose lines are indices of 3 bits: each eight of them have a table of eight elements."""
    b, c = p.b, p.c
    line, pair = p.line, ir.VectorType(i64, 2)
    segment = b.and_(b.lshr(p.asked(ProductRequest.B), i64(SEGMENT.low)), i64(1))
    numbers = p.table(ProductPlan.ELEMENTS)
    half = b.udiv(p.columns, p.said(ProductPlan.GROUP))

    def column(n: Any) -> None:
        for piece in range(3):
            place = c.at(base, p.offset(p.offsets, b.add(b.mul(n, i64(3)), i64(piece))))
            c.store(c.load(place, pair, 16), c.at(line, 16 * piece), 16)
        side = b.udiv(n, half)
        where = c.at(p.request, b.add(i64(ProductRequest.CELLS), b.shl(side, i64(3))))
        group = b.lshr(b.urem(n, half), i64(3))
        cells = c.at(b.inttoptr(c.load(where, i64, 8), pointer), p.asked(ProductRequest.LUT))
        table = c.at(cells, b.shl(group, i64(2)))

        def one(k: Any) -> None:
            bit = b.add(b.mul(segment, i64(192)), b.mul(k, i64(3)))
            word = b.zext(c.load(c.at(line, b.lshr(bit, i64(3))), i16, 1), i64)
            index = b.and_(b.lshr(word, b.and_(bit, i64(7))), i64(7))
            at = b.add(b.mul(b.lshr(index, i64(2)), i64(COLUMN_BYTES)), b.and_(index, i64(3)))
            code = b.zext(c.load(c.at(table, at), byte, 1), i64)
            value = c.load(c.at(numbers, b.shl(code, i64(2))), i32)
            c.store(value, c.at(p.right, b.add(b.mul(k, p.pitch), b.shl(n, i64(2)))))

        p.times(i64(64), one)

    p.times(p.columns, column)


def clear_columns(p: Product) -> None:
    """Shift the columns of B's panel, and make zeros of those that the zero-column mask names."""
    b, c = p.b, p.c
    mask = p.asked(ProductRequest.ZERO)
    banks = b.udiv(i64(_ROWS), p.rows)
    run = b.udiv(p.columns, banks)

    def field(low: Any, width: int) -> Any:
        low = i64(low) if isinstance(low, int) else low
        return b.and_(b.lshr(mask, low), i64((1 << width) - 1))

    shift = field(56, 6)

    def move(k: Any) -> None:
        row = c.at(p.right, b.mul(k, p.pitch))

        def one(n: Any) -> None:
            place = c.at(row, b.shl(n, i64(2)))
            c.store(c.load(c.at(place, b.shl(shift, i64(2))), i32), place)

        p.times(p.columns, one)

    depth = b.mul(p.depth, i64(1 + p.key.sparse))
    with b.if_then(p.nonzero(shift)):
        p.times(depth, move)
    zeros, used = (b.add(field(low, 8), i64(1)) for low in (40, 48))

    def column(n: Any) -> None:
        bank = b.udiv(n, run)
        spot = b.add(b.urem(n, run), field(b.shl(bank, i64(3)), 8))
        spot = b.urem(spot, b.add(zeros, used))
        skips = b.icmp_unsigned("<", spot, zeros)
        uses = b.icmp_unsigned(">=", spot, used)
        clear = b.select(p.nonzero(field(b.add(bank, i64(32)), 1)), skips, uses)

        def one(k: Any) -> None:
            place = c.at(p.right, b.add(b.mul(k, p.pitch), b.shl(n, i64(2))))
            c.store(ir.Constant(ir.FloatType(), 0), place)

        with b.if_then(clear):
            p.times(depth, one)

    with b.if_then(p.nonzero(field(39, 1))):
        p.times(p.columns, column)
