"""Code of a product of tcgen05.mma: checks its descriptors, lays out A and B, multiplies, and keeps the sums.

In tensor memory the rows of a column follow each other, so D is a matrix of rows of that kind: dense products are made
as those of B's columns with A's rows, 16 of these a vector, in D itself where it holds f32 or whole numbers that just
wrap. A sparse A, whose rows each meet other elements of B, is multiplied row by row in memory beside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...isa.matrix_descriptors import SEGMENT
from ..instructions.matrix_tiles import GROUP
from ..instructions.tensor_products import TensorMultiply, TensorProduct
from ..machine.layout import LANES, SHARED_START, Block, Fault, TensorMemory
from ..machine.product_plan import ProductPlan, ProductRequest
from ..semantics.lanes import Lanes
from .atomics import element_at, place_at, spill
from .data import guard_mask, source
from .handler import Handler, byte, i1, i16, i32, i64, pointer
from .matrix_tiles import integers, vector
from .registry import builds, emits
from .routine_code import RoutineCode
from .tensor_cells import COLUMN_BYTES, TensorCells, issued, split
from .tensor_tiles import not_a_tile

__all__: list[str] = []

_LINES, _ROWS, _DEPTH, _BLOCKS = 288, 128, 128, 6
"""The largest sizes of a product: columns of B's panel, rows of A's, k, blocks of scales."""
_PIECES = 2048
double = ir.DoubleType()
_halves = ir.VectorType(ir.HalfType(), GROUP)


_MULTIPLY = ir.FunctionType(ir.VoidType(), [pointer, pointer])
_SCALES = 0x3FFFFFFF
"""The bits of a scale's address: software keeps the byte's number in the other two."""


@emits(TensorProduct)
def tensor_product(h: Handler, op: TensorProduct) -> None:
    plans, multiply = h.field("q"), h.field("q")
    mask = guard_mask(h, op.guard, True)
    places = [spill(h, source(h, kind, LANES)) for kind in op.places]
    offsets = [h.field() for _ in op.places]
    descriptors = [spill(h, source(h, kind, LANES)) for kind in op.descriptors]
    words = spill(h, source(h, op.word, LANES))
    enabled = guard_mask(h, op.enable, False)
    off = [spill(h, source(h, kind, LANES)) for kind in op.lanes]
    zeros = spill(h, source(h, op.zeros, LANES)) if op.zeros else None
    h.skip_unless_any(mask)
    found = h.ir.bitcast(h.alloca(ir.ArrayType(i64, LANES)), i64.as_pointer())
    h.for_each_lane(mask, lambda lane: _find_plan(h, plans, element_at(h, words, lane, i32), lane, found))
    request = h.ir.bitcast(h.alloca(ir.ArrayType(byte, ProductRequest.nbytes), 64), pointer)

    def one(lane: Any) -> None:
        plan = h.ir.inttoptr(element_at(h, found, lane, i64), pointer)
        issue = _Issue(h, op, request, plan, lane)
        issue.places([h.ir.add(element_at(h, each, lane, i32), add) for each, add in zip(places, offsets)])
        names = (ProductRequest.A, ProductRequest.B)[-len(descriptors) :]
        for name, each in zip(names, descriptors):
            h.store(element_at(h, each, lane, i64), request, name)
        bit = h.ir.and_(h.ir.lshr(enabled, lane), h.i32(1))
        h.store(h.ir.zext(h.ir.xor(bit, h.i32(1)), i64), request, ProductRequest.FRESH)
        h.store(h.i64(0) if zeros is None else element_at(h, zeros, lane, i64), request, ProductRequest.ZERO)
        h.store(h.i64(op.divided), request, ProductRequest.SCALE)
        for number, each in enumerate(off):
            h.store(element_at(h, each, lane, i32), request, ProductRequest.OFF + 4 * number)
        issue.run(h.ir.inttoptr(multiply, _MULTIPLY.as_pointer()))

    h.for_each_lane(mask, one)
    h.next()


def _find_plan(h: Handler, plans: Any, word: Any, lane: Any, found: Any) -> None:
    """Put the plan of a descriptor into a lane's place; where there is none Python makes it."""
    wanted, at = h.ir.zext(word, i64), place_at(h, found, lane, i64)
    h.ir.store(plans, at)

    def field(plan: Any, name: int) -> Any:
        return h.load(h.ir.inttoptr(plan, pointer), name, i64)

    def another(plan: Any) -> Any:
        return h.asked_if(
            h.nonzero(plan), lambda: h.ir.icmp_unsigned("!=", field(plan, ProductPlan.WORD), wanted)
        )

    def further(plan: Any) -> Any:
        following = field(plan, ProductPlan.NEXT)
        h.ir.store(following, at)
        return following

    h.loop(plans, another, further)

    def leave() -> None:
        h.store(wanted, h.block, Block.FAULT_ADDRESS)
        h.fault(Fault.PRODUCT_NEW, h.ir.shl(h.i32(1), lane))

    h.branch_unless(h.nonzero(h.ir.load(at)), leave)


class _Issue:
    """A product of one lane: its operands are checked and put into a request."""

    def __init__(self, h: Handler, op: TensorProduct, request: Any, plan: Any, lane: Any) -> None:
        self.h, self.op, self.request, self.plan = h, op, request, plan
        self.lane = h.ir.shl(h.i32(1), lane)
        own = TensorCells(h)
        own.use_group(op.variant.group, self.lane)
        self.blocks: list[TensorCells] = list(own.by_parity()) if op.variant.group == 2 else [own]

    def said(self, place: int) -> Any:
        return self.h.ir.trunc(self.h.load(self.plan, place, i64), i32)

    def places(self, addresses: list[Any]) -> None:
        """Check the operands in tensor memory, and note where they lie."""
        h, variant = self.h, self.op.variant
        names = [(ProductRequest.D, ProductPlan.D_COLUMNS)]
        if variant.held:
            names.append((ProductRequest.A, ProductPlan.A_COLUMNS))
        if variant.sparse:
            names.append((ProductRequest.E, ProductPlan.E_COLUMNS))
        if variant.table:
            names.append((ProductRequest.LUT, ProductPlan.LUT_COLUMNS))
        if variant.blocks:
            names += [(ProductRequest.SA, ProductPlan.SA_COLUMNS), (ProductRequest.SB, ProductPlan.SB_COLUMNS)]
        first = h.ir.lshr(addresses[0], h.i32(16))
        for (name, columns), address in zip(names, addresses):
            scale = name in (ProductRequest.SA, ProductRequest.SB)
            if scale:
                address = h.ir.and_(address, h.i32(_SCALES))
            lane, column = split(h, address)
            halved = h.nonzero(self.said(ProductPlan.HALVES))
            good = h.zero(lane) if scale else h.ir.icmp_unsigned("==", lane, first)
            if name == ProductRequest.LUT:  # in a quarter, in two columns from an even one on
                good = h.zero(h.ir.and_(address, h.i32(0x1F0001)))
            if name == ProductRequest.D:
                good = h.ir.or_(h.zero(lane), h.ir.and_(halved, h.ir.icmp_unsigned("==", lane, h.i32(16))))

            def leave(address: Any = address) -> None:
                h.store(h.ir.zext(address, i64), h.block, Block.FAULT_ADDRESS)
                h.fault(Fault.PRODUCT_LANES, self.lane)

            h.branch_unless(good, leave)
            for cells in self.blocks:
                cells.check_columns(address, column, self.said(columns), self.lane)
            offset = h.ir.add(h.ir.mul(column, h.i32(COLUMN_BYTES)), h.ir.shl(lane, h.i32(2)))
            h.store(h.ir.zext(offset, i64), self.request, name)

    def run(self, multiply: Any) -> None:
        h = self.h
        for number, cells in enumerate(self.blocks):
            start = h.ir.ptrtoint(h.add(cells.place, TensorMemory.CELLS), i64)
            h.store(start, self.request, ProductRequest.CELLS + 8 * number)
            shared = h.ir.sub(h.load(cells.block, Block.SHARED, i64), h.i64(SHARED_START))
            h.store(shared, self.request, ProductRequest.SHARED + 8 * number)
        end = h.ir.add(h.load(h.block, Block.TOTAL_SHARED, i32), h.i32(SHARED_START))
        h.store(h.ir.zext(end, i64), self.request, ProductRequest.END)
        h.ir.call(multiply, [self.request, self.plan])
        status = h.load(self.request, ProductRequest.STATUS, i64)

        def leave() -> None:
            h.store(status, h.block, Block.FAULT_ADDRESS)
            h.fault(Fault.PRODUCT_TILE, self.lane)

        h.branch_unless(h.zero(status), leave)
        if self.op.shifted:
            for cells in self.blocks:
                self.shift(cells)
        issued(h, "mma")

    def shift(self, cells: TensorCells) -> None:
        """Move A's rows down by one, but for the last one of each quarter, which stays."""
        h = self.h
        place = h.add(cells.place, TensorMemory.CELLS)
        first = h.load(self.request, ProductRequest.A, i64)

        def column(number: Any) -> None:
            at = h.add(place, h.ir.add(first, h.ir.mul(number, h.i64(COLUMN_BYTES))))
            for quarter in range(0, COLUMN_BYTES, 4 * LANES):
                rows = h.add(at, quarter), h.add(at, quarter + 4)
                h.call("llvm.memmove.p0.p0.i64", ir.VoidType(), *rows, h.i64(4 * LANES - 4), ir.Constant(i1, 0))

        h.count(h.load(self.plan, ProductPlan.A_COLUMNS, i64), 1, column)


@builds(TensorMultiply)
def tensor_multiply(module: ir.Module, name: str, key: TensorMultiply) -> None:
    code = RoutineCode(module, name, 2, 0)
    _Product(code, key).run()
    code.ir.ret_void()


class _Product:
    def __init__(self, code: RoutineCode, key: TensorMultiply) -> None:
        self.c, self.b, self.key = code, code.ir, key
        self.request, self.plan = code.function.args
        self.offsets = self.room(4 * _PIECES)
        self.bounds = self.room(16)
        self.sizes = self.room(48)
        depth = _DEPTH if key.scaled else _DEPTH // 2
        self.right = self.room(4 * _LINES * depth)
        self.left = self.room(4 * _ROWS * depth)
        self.sums = self.room(4 * _ROWS * _LINES)
        if key.sparse:
            self.codes, self.meets = self.room(_ROWS * 32), self.room(4 * _ROWS * depth)
        if key.scaled:
            self.parts = self.room(4 * _ROWS * _LINES)
            self.scales_a, self.scales_b = self.room(8 * _ROWS * _BLOCKS), self.room(8 * _LINES * _BLOCKS)

    def room(self, nbytes: int) -> Any:
        place = self.b.alloca(ir.ArrayType(byte, nbytes))
        place.align = 64
        return self.b.bitcast(place, pointer)

    # What plan and request say

    def said(self, place: int) -> Any:
        return self.c.load(self.c.at(self.plan, place), i64, 8)

    def asked(self, place: int) -> Any:
        return self.c.load(self.c.at(self.request, place), i64, 8)

    def table(self, place: int) -> Any:
        return self.b.inttoptr(self.said(place), pointer)

    def call(self, place: int, pointers: list[Any], numbers: list[Any]) -> None:
        kind = ir.FunctionType(ir.VoidType(), [pointer] * len(pointers) + [i64] * len(numbers))
        self.b.call(self.b.inttoptr(self.said(place), kind.as_pointer()), [*pointers, *numbers])

    def nonzero(self, value: Any) -> Any:
        return self.b.icmp_unsigned("!=", value, ir.Constant(value.type, 0))

    def offset(self, table: Any, number: Any) -> Any:
        return self.b.zext(self.c.load(self.c.at(table, self.b.shl(number, i64(2))), i32), i64)

    def times(self, count: Any, body: Callable[[Any], None]) -> None:
        """Run ``body(number)`` for each below ``count``, which is not 0."""

        def turn(number: Any, _: list[Any]) -> list[Any]:
            body(number)
            return []

        self.c.loop(count, 1, [], turn)

    # The whole

    def run(self) -> None:
        b, c = self.b, self.c
        c.store(i64(0), c.at(self.request, ProductRequest.STATUS), 8)
        self.rows, self.columns = self.said(ProductPlan.ROWS), self.said(ProductPlan.COLUMNS)
        self.lines, self.depth = self.said(ProductPlan.LINES), self.said(ProductPlan.DEPTH)
        self.pitch = b.shl(self.lines, i64(2))
        self.groups = b.lshr(self.rows, i64(4))
        self.blocks = self.said(ProductPlan.BLOCKS) if self.key.scaled else i64(1)
        bases = [self.asked(ProductRequest.SHARED + 8 * side) for side in range(2)]
        delta = b.sub(bases[1], bases[0]) if self.key.pair else i64(0)
        if not self.key.held:
            self.check(ProductRequest.A, ProductPlan.A_SWIZZLES, ProductPlan.A_LINE, 1)
        self.check(ProductRequest.B, ProductPlan.B_SWIZZLES, ProductPlan.B_LINE, 2)
        if not self.key.held:  # for its bounds, before anything is written
            self.places(ProductRequest.A, ProductPlan.A_PLACES, ProductPlan.A_SIZES, i64(0), i64(0), 3)
        shift = b.and_(b.lshr(self.asked(ProductRequest.ZERO), i64(56)), i64(63))
        self.leave_if(b.icmp_unsigned(">", shift, self.said(ProductPlan.SHIFT)), 5)
        self.places(ProductRequest.B, ProductPlan.B_PLACES, ProductPlan.B_SIZES, delta, shift, 4)
        groups = b.lshr(self.lines, i64(4))
        if self.key.table:
            self.decompress(b.inttoptr(bases[0], pointer))
        else:
            self.panel(ProductPlan.B_PANEL, self.right, bases[0], groups, ProductPlan.B_PIECES, self.pitch)
        if self.key.weights:
            self.clear_columns()
        if self.key.pair:
            self.times(i64(2), self.side)
        else:
            self.side(i64(0))

    def check(self, operand: int, swizzles: int, line: int, status: int) -> None:
        """Return where a descriptor is none of such a tile; ``problem`` of matrix_descriptors has the words."""
        word = self.asked(operand)
        if self.key.table and operand == ProductRequest.B:
            word = self.b.and_(word, i64(~(1 << SEGMENT.low)))
        long = self.nonzero(self.said(ProductPlan.LONG))
        self.leave_if(not_a_tile(self.b, word, self.said(swizzles), self.said(line), long), status)

    def leave_if(self, bad: Any, status: int) -> None:
        with self.b.if_then(bad, likely=False):
            self.c.store(i64(status), self.c.at(self.request, ProductRequest.STATUS), 8)
            self.b.ret_void()

    def places(self, operand: int, function: int, sizes: int, delta: Any, shift: Any, status: int) -> None:
        """The addresses of a tile's pieces, in ``offsets``."""
        c, b = self.c, self.b
        c.store(i64(1 << 40), self.bounds, 8)
        c.store(i64(0), c.at(self.bounds, 8), 8)
        self.call(function, [self.offsets, self.table(sizes), self.bounds], [self.asked(operand), delta, shift])
        lowest, highest = (c.load(c.at(self.bounds, at), i64, 8) for at in (0, 8))
        below = b.icmp_unsigned("<", lowest, i64(SHARED_START))
        beyond = b.icmp_unsigned(">", b.add(highest, i64(16)), self.asked(ProductRequest.END))
        self.leave_if(b.or_(below, beyond), status)

    def panel(self, function: int, to: Any, base: Any, groups: Any, pieces: int, pitch: Any) -> None:
        self.call(function, [to, self.b.inttoptr(base, pointer), self.offsets], [groups, self.said(pieces), pitch])

    def decompress(self, base: Any) -> None:
        """The panel of a B whose lines are indices of 3 bits: each eight of them have a table of eight elements."""
        b, c = self.b, self.c
        line, pair = self.room(64), ir.VectorType(i64, 2)
        segment = b.and_(b.lshr(self.asked(ProductRequest.B), i64(SEGMENT.low)), i64(1))
        numbers = self.table(ProductPlan.ELEMENTS)
        half = b.udiv(self.columns, i64(1 + self.key.pair))

        def column(n: Any) -> None:
            for piece in range(3):
                place = c.at(base, self.offset(self.offsets, b.add(b.mul(n, i64(3)), i64(piece))))
                c.store(c.load(place, pair, 16), c.at(line, 16 * piece), 16)
            side = b.udiv(n, half)
            where = c.at(self.request, b.add(i64(ProductRequest.CELLS), b.shl(side, i64(3))))
            group = b.lshr(b.urem(n, half), i64(3))
            cells = c.at(b.inttoptr(c.load(where, i64, 8), pointer), self.asked(ProductRequest.LUT))
            table = c.at(cells, b.shl(group, i64(2)))

            def one(k: Any) -> None:
                bit = b.add(b.mul(segment, i64(192)), b.mul(k, i64(3)))
                word = b.zext(c.load(c.at(line, b.lshr(bit, i64(3))), i16, 1), i64)
                index = b.and_(b.lshr(word, b.and_(bit, i64(7))), i64(7))
                at = b.add(b.mul(b.lshr(index, i64(2)), i64(COLUMN_BYTES)), b.and_(index, i64(3)))
                code = b.zext(c.load(c.at(table, at), byte, 1), i64)
                value = c.load(c.at(numbers, b.shl(code, i64(2))), i32)
                c.store(value, c.at(self.right, b.add(b.mul(k, self.pitch), b.shl(n, i64(2)))))

            self.times(i64(64), one)

        self.times(self.columns, column)

    def clear_columns(self) -> None:
        """Shift the columns of B's panel, and make zeros of those that the zero-column mask names."""
        b, c = self.b, self.c
        mask = self.asked(ProductRequest.ZERO)
        banks = b.udiv(i64(_ROWS), self.rows)
        run = b.udiv(self.columns, banks)

        def field(low: Any, width: int) -> Any:
            low = i64(low) if isinstance(low, int) else low
            return b.and_(b.lshr(mask, low), i64((1 << width) - 1))

        shift = field(56, 6)

        def move(k: Any) -> None:
            row = c.at(self.right, b.mul(k, self.pitch))

            def one(n: Any) -> None:
                place = c.at(row, b.shl(n, i64(2)))
                c.store(c.load(c.at(place, b.shl(shift, i64(2))), i32), place)

            self.times(self.columns, one)

        depth = b.mul(self.depth, i64(1 + self.key.sparse))
        with b.if_then(self.nonzero(shift)):
            self.times(depth, move)
        zeros, used = (b.add(field(low, 8), i64(1)) for low in (40, 48))

        def column(n: Any) -> None:
            bank = b.udiv(n, run)
            spot = b.add(b.urem(n, run), field(b.shl(bank, i64(3)), 8))
            spot = b.urem(spot, b.add(zeros, used))
            skips = b.icmp_unsigned("<", spot, zeros)
            uses = b.icmp_unsigned(">=", spot, used)
            clear = b.select(self.nonzero(field(b.add(bank, i64(32)), 1)), skips, uses)

            def one(k: Any) -> None:
                place = c.at(self.right, b.add(b.mul(k, self.pitch), b.shl(n, i64(2))))
                c.store(ir.Constant(ir.FloatType(), 0), place)

            with b.if_then(clear):
                self.times(depth, one)

        with b.if_then(self.nonzero(field(39, 1))):
            self.times(self.columns, column)

    def side(self, side: Any) -> None:
        """The product of one block of the pair."""
        b, c = self.b, self.c
        self.number = side
        pair = b.shl(side, i64(3))
        self.cells = b.inttoptr(c.load(c.at(self.request, b.add(i64(ProductRequest.CELLS), pair)), i64, 8), pointer)
        shared = c.load(c.at(self.request, b.add(i64(ProductRequest.SHARED), pair)), i64, 8)
        if not self.key.held:
            self.places(ProductRequest.A, ProductPlan.A_PLACES, ProductPlan.A_SIZES, i64(0), i64(0), 3)
            pitch = b.shl(self.rows, i64(2))
            self.panel(ProductPlan.A_PANEL, self.left, shared, self.groups, ProductPlan.A_PIECES, pitch)
            self.negate()
        if self.key.scaled:
            self.scales(ProductRequest.SA, ProductPlan.SA_TABLE, self.scales_a, self.rows)
            self.scales(ProductRequest.SB, ProductPlan.SB_TABLE, self.scales_b, self.lines)
        if self.key.held or self.key.sparse:
            self.times(self.said(ProductPlan.BANKS), self.bank)
        else:
            self.bank(i64(0))

    def cell(self, operand: int) -> Any:
        """The address of an operand in tensor memory."""
        return self.c.at(self.cells, self.asked(operand))

    def bank(self, bank: Any) -> None:
        """The product for the columns of a bank of lanes; all of them where A is not elsewhere for each."""
        b, c = self.b, self.c
        several = self.key.held or self.key.sparse
        self.run_of = b.udiv(self.columns, self.said(ProductPlan.BANKS)) if several else self.columns
        self.first = b.mul(bank, self.run_of)
        if self.key.held:
            table = c.at(self.table(ProductPlan.A_TABLE), b.shl(b.mul(bank, self.groups), i64(2)))
            self.call(
                ProductPlan.A_PANEL, [self.left, self.cell(ProductRequest.A), table],
                [self.groups, self.said(ProductPlan.A_PIECES), b.shl(self.rows, i64(2))],
            )
            self.negate()
        if self.key.sparse:
            self.find_meets(bank)
        # D's table by column, and the columns of B's panel
        self.d_table = c.at(self.table(ProductPlan.D_TABLE), b.shl(b.mul(self.first, self.groups), i64(2)))
        self.columns_at = c.at(self.right, b.shl(self.first, i64(2)))
        fresh = self.asked(ProductRequest.FRESH)
        with self.b.if_then(self.nonzero(fresh)):  # a sum with what was never written is as little known
            self.each_vector(self.mark)
        if self.key.sparse:
            self.beside(fresh)
            return
        with b.if_else(self.nonzero(self.said(ProductPlan.DIRECT))) as (then, otherwise):
            with then:
                self.sum_up(self.cell(ProductRequest.D), self.d_table, fresh)
            with otherwise:
                self.beside(fresh)

    def negate(self) -> None:
        c, b = self.c, self.b
        words = b.mul(b.mul(self.depth, self.blocks), self.groups)

        def one(number: Any) -> None:
            place = c.at(self.left, b.shl(number, i64(6)))
            c.store(b.fneg(c.load(place, vector, 64)), place, 64)

        with b.if_then(self.nonzero(self.said(ProductPlan.NEGATIVE))):
            self.times(words, one)

    # Scales and metadata

    def scales(self, operand: int, table: int, to: Any, lines: Any) -> None:
        c, b = self.c, self.b
        cells, places, numbers = self.cell(operand), self.table(table), self.table(ProductPlan.NUMBERS)

        def one(number: Any) -> None:
            found = b.zext(c.load(c.at(cells, self.offset(places, number)), byte, 1), i64)
            value = c.load(c.at(numbers, b.shl(found, i64(3))), double, 8)
            c.store(value, c.at(to, b.shl(number, i64(3))), 8)

        self.times(b.mul(lines, self.blocks), one)

    def find_meets(self, bank: Any) -> None:
        """Which rows of B's panel the kept elements of each row meet."""
        c, b = self.c, self.b
        chunks = self.said(ProductPlan.CHUNKS)
        count = b.mul(chunks, self.rows)
        table = c.at(self.table(ProductPlan.E_TABLE), b.shl(b.mul(bank, count), i64(3)))
        cells = self.cell(ProductRequest.E)

        def one(number: Any) -> None:
            pair = b.shl(number, i64(1))
            word = c.load(c.at(cells, self.offset(table, pair)), i32)
            low = b.trunc(self.offset(table, b.or_(pair, i64(1))), i32)
            c.store(b.trunc(b.and_(b.lshr(word, low), i32(15)), byte), c.at(self.codes, number), 1)

        self.times(count, one)
        self.call(ProductPlan.MEETS, [self.meets, self.codes], [self.groups, chunks, self.pitch])

    # Sums

    def fill(self, values: list[Any]) -> None:
        for number, value in enumerate(values):
            self.c.store(value, self.c.at(self.sizes, 8 * number), 8)

    def sum_up(self, d: Any, table: Any, fresh: Any) -> None:
        """Add the products of this bank to vectors at ``d``."""
        b, c = self.b, self.c
        rows_pitch = b.shl(self.rows, i64(2))
        if self.key.sparse:
            vectors = b.lshr(b.add(self.run_of, i64(15)), i64(4))
            sides, counts = (self.left, self.columns_at), (self.rows, vectors)
            pitches, scales = (rows_pitch, self.pitch), ("a", "b")
        else:
            sides, counts = (self.columns_at, self.left), (self.run_of, self.groups)
            pitches, scales = (self.pitch, rows_pitch), ("b", "a")
        if not self.key.scaled:
            self.fill([*counts, self.depth, *pitches, fresh])
            met = [self.meets] if self.key.sparse else []
            self.call(ProductPlan.MULTIPLY, [d, table, *sides, self.sizes, *met], [])
            return
        own = self.table(ProductPlan.OWN_TABLE)

        def clear(number: Any) -> None:
            c.store(ir.Constant(vector, None), c.at(d, self.offset(table, number)))

        with b.if_then(self.nonzero(fresh)):
            self.times(b.mul(*counts), clear)

        def block(number: Any) -> None:
            self.fill([*counts, self.depth, *pitches, i64(1)])
            along = b.mul(number, self.depth)
            if self.key.sparse:  # B's rows are those that A's elements meet
                met = [c.at(self.meets, b.shl(b.mul(along, self.rows), i64(2)))]
                parts = c.at(sides[0], b.mul(along, pitches[0])), sides[1]
            else:
                met, parts = [], tuple(c.at(side, b.mul(along, pitch)) for side, pitch in zip(sides, pitches))
            self.call(ProductPlan.MULTIPLY, [self.parts, own, *parts, self.sizes, *met], [])
            columns = c.at(self.scales_b, b.shl(self.first, i64(3)))
            held = {"a": (self.scales_a, self.rows), "b": (columns, self.lines)}
            of_lines = [c.at(to, b.shl(b.mul(number, lines), i64(3))) for to, lines in (held[each] for each in scales)]
            self.call(ProductPlan.SCALED, [d, table, self.parts, *of_lines, self.sizes], [])

        self.times(self.blocks, block)

    def beside(self, fresh: Any) -> None:
        """Sum in memory beside, and put into D what that becomes there."""
        b = self.b
        saturates = self.nonzero(self.said(ProductPlan.SATURATES))
        apart = b.or_(self.nonzero(fresh), saturates)
        with b.if_then(b.not_(apart)):
            self.each_vector(self.take)
        self.sum_up(self.sums, self.table(ProductPlan.OWN_TABLE), b.zext(apart, i64))
        self.each_vector(lambda place, n, group, offset: self.give(place, n, group, offset, fresh))

    def each_vector(self, body: Callable[[Any, Any, Any, Any], None]) -> None:
        """Run ``body(place, column, group, offset)`` for each vector of D in this bank, which lies at ``place``."""
        c, b, d = self.c, self.b, self.cell(ProductRequest.D)

        def column(n: Any) -> None:
            def group(j: Any) -> None:
                offset = self.offset(self.d_table, b.add(b.mul(n, self.groups), j))
                body(c.at(d, offset), n, j, offset)

            self.times(self.groups, group)

        self.times(self.run_of, column)

    def mark(self, _: Any, __: Any, ___: Any, offset: Any) -> None:
        """Note that a vector of D is written: a bit for each cell."""
        b, c = self.b, self.c
        cell = b.lshr(b.add(offset, self.asked(ProductRequest.D)), i64(5))
        place = c.at(self.cells, b.add(cell, i64(TensorMemory.WRITTEN - TensorMemory.CELLS)))
        if self.key.masked:
            bits = b.bitcast(self.written(offset), i16)
            c.store(b.or_(bits, c.load(place, i16, 2)), place, 2)
        else:
            c.store(i16(-1), place, 2)

    def own_places(self, n: Any, group: Any) -> list[Any]:
        """Where the sums of a vector of D lie: one place, of a sparse product one for each row."""
        b, c = self.b, self.c
        if not self.key.sparse:
            return [c.at(self.sums, b.shl(b.add(b.mul(n, self.groups), group), i64(6)))]
        pitch = b.shl(b.lshr(b.add(self.run_of, i64(15)), i64(4)), i64(6))
        row = b.mul(b.shl(group, i64(4)), pitch)
        first = c.at(self.sums, b.add(row, b.shl(n, i64(2))))
        return [c.at(first, b.mul(pitch, i64(number))) for number in range(GROUP)]

    def take(self, place: Any, n: Any, group: Any, _: Any) -> None:
        """The addends."""
        c, b = self.c, self.b
        words = c.load(place, integers)
        halves = b.bitcast(b.trunc(words, ir.VectorType(i16, GROUP)), _halves)
        value = b.select(
            self.nonzero(self.said(ProductPlan.HALF)), b.fpext(halves, vector), b.bitcast(words, vector),
        )
        power = b.shl(b.sub(i32(127), b.trunc(self.asked(ProductRequest.SCALE), i32)), i32(23))
        scaled = b.fmul(value, c.splat(b.bitcast(power, ir.FloatType())))
        value = b.select(self.nonzero(self.asked(ProductRequest.SCALE)), scaled, value)
        own = self.own_places(n, group)
        if len(own) == 1:
            c.store(b.bitcast(value, integers), own[0], 64)
            return
        for number, each in enumerate(own):
            c.store(b.extract_element(b.bitcast(value, integers), i32(number)), each)

    def give(self, place: Any, n: Any, group: Any, offset: Any, fresh: Any) -> None:
        c, b = self.c, self.b
        own = self.own_places(n, group)
        if len(own) == 1:
            total = c.load(own[0], integers, 64)
        else:
            total = ir.Constant(integers, None)
            for number, each in enumerate(own):
                total = b.insert_element(total, c.load(each, i32), i32(number))
        before = c.load(place, integers)
        old = b.select(self.nonzero(fresh), ir.Constant(integers, None), before)
        value = b.bitcast(total, vector)
        odd = b.fcmp_unordered("uno", value, value)
        half = b.zext(b.bitcast(b.fptrunc(value, _halves), ir.VectorType(i16, GROUP)), integers)
        half = b.select(odd, ir.Constant(integers, [0x7FFF] * GROUP), half)
        total = b.select(self.nonzero(self.said(ProductPlan.HALF)), half, total)
        both = Lanes(b, 1).call("llvm.sadd.sat.v16i32", integers, total, old)
        total = b.select(self.nonzero(self.said(ProductPlan.SATURATES)), both, total)
        c.store(b.select(self.written(offset), total, before), place)

    def written(self, offset: Any) -> Any:
        """Which rows of a vector of D are, where instructions name lanes that are not."""
        if not self.key.masked:
            return ir.Constant(ir.VectorType(i1, GROUP), [1] * GROUP)
        b, c = self.b, self.c
        lane = b.and_(b.lshr(b.add(offset, self.asked(ProductRequest.D)), i64(2)), i64(_ROWS - 1))
        at = b.add(b.shl(self.number, i64(4)), b.lshr(lane, i64(3)))  # lanes are a multiple of 16
        off = c.load(c.at(c.at(self.request, ProductRequest.OFF), at), i16, 2)
        return b.bitcast(b.not_(off), ir.VectorType(i1, GROUP))
