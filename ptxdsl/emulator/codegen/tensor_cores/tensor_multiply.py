"""Code of a product of tcgen05.mma: checks its descriptors, lays out A and B, multiplies, and keeps the sums.

In tensor memory the rows of a column follow each other, so D is a matrix of rows of that kind: dense products are made
as those of B's columns with A's rows, 16 of these a vector, in D itself where it holds f32 or whole numbers that just
wrap. A sparse A, whose rows select different elements of B each, is multiplied row by row in memory beside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ....isa.matrix_descriptors import SEGMENT
from ...instructions.tensor_cores.matrix_tiles import GROUP
from ...instructions.tensor_cores.tensor_multiply import TensorMultiply
from ...machine.layout import SHARED_START
from ...machine.product_plan import ProductPlan, ProductRequest
from ...semantics.lanes import Lanes
from ..handler import byte, i1, i16, i32, i64, pointer
from .matrix_tiles import integers, vector
from ..registry import builds
from ..routine_code import RoutineCode
from .tensor_columns import clear_columns, decompress
from .tensor_definedness import Known
from .tensor_tiles import not_a_tile

__all__: list[str] = []

_LINES, _ROWS, _DEPTH, _BLOCKS = 288, 128, 128, 6
"""The largest sizes of a product: columns of B's panel, rows of A's, k, blocks of scales."""
_PIECES = 2048
_QUARTER = 4 * 32
"""Bytes of a quarter of the lanes."""
double = ir.DoubleType()
_halves = ir.VectorType(ir.HalfType(), GROUP)


@builds(TensorMultiply)
def tensor_multiply(module: ir.Module, name: str, key: TensorMultiply) -> None:
    code = RoutineCode(module, name, 2, 0)
    Product(code, key).run()
    code.ir.ret_void()


class Product:
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
            self.codes, self.selected = self.room(_ROWS * 32), self.room(4 * _ROWS * depth)
        self.known = Known(self)
        if key.table:
            self.line = self.room(64)
        if key.scaled:
            self.differ = self.room(8)
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
        delta = b.sub(bases[1], bases[0])
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
            decompress(self, b.inttoptr(bases[0], pointer))
        else:
            self.panel(ProductPlan.B_PANEL, self.right, bases[0], groups, ProductPlan.B_PIECES, self.pitch)
        with b.if_then(self.nonzero(self.asked(ProductRequest.ZERO)), likely=False):
            clear_columns(self)
        self.times(self.said(ProductPlan.GROUP), self.side)

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
        self.known.begin()
        if self.key.scaled:
            known = self.known
            row, column = (lambda line: known.drop_row(known.scaled, line)), known.drop_column
            quarters = i64(4)
            self.scales(ProductRequest.SA, ProductPlan.SA_TABLE, self.scales_a, self.rows, row, quarters, 6)
            quarters = b.udiv(quarters, self.said(ProductPlan.BANKS))
            self.scales(ProductRequest.SB, ProductPlan.SB_TABLE, self.scales_b, self.lines, column, quarters, 7)
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
        self.known.begin_bank()
        if self.key.held:
            table = c.at(self.table(ProductPlan.A_TABLE), b.shl(b.mul(bank, self.groups), i64(2)))
            self.call(
                ProductPlan.A_PANEL, [self.left, self.cell(ProductRequest.A), table],
                [self.groups, self.said(ProductPlan.A_PIECES), b.shl(self.rows, i64(2))],
            )
            self.known.look_at_rows(table)
            self.negate()
        if self.key.sparse:
            self.find_meets(bank)
        # D's table by column, and the columns of B's panel
        self.d_table = c.at(self.table(ProductPlan.D_TABLE), b.shl(b.mul(self.first, self.groups), i64(2)))
        self.columns_at = c.at(self.right, b.shl(self.first, i64(2)))
        fresh = self.asked(ProductRequest.FRESH)
        self.known.note(fresh)
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

    def scales(
        self, operand: int, table: int, to: Any, lines: Any, drop: Callable[[Any], None], quarters: Any, status: int
    ) -> None:
        """The scales of lines, which must be the same in so many quarters of the lanes.

        ``drop(line)`` emits what is to be done where one is not known.
        """
        c, b = self.c, self.b
        c.store(byte(0), self.differ, 1)
        cells, places, numbers = self.cell(operand), self.table(table), self.table(ProductPlan.NUMBERS)

        def one(number: Any) -> None:
            offset = self.offset(places, number)
            self.known.unless_written(b.add(offset, self.asked(operand)), lambda: drop(b.urem(number, lines)))
            first = c.load(c.at(cells, offset), byte, 1)

            def quarter(which: Any) -> None:
                other = c.load(c.at(cells, b.add(offset, b.mul(which, i64(_QUARTER)))), byte, 1)
                c.store(b.or_(c.load(self.differ, byte, 1), b.xor(first, other)), self.differ, 1)

            self.times(quarters, quarter)
            found = b.zext(first, i64)
            value = c.load(c.at(numbers, b.shl(found, i64(3))), double, 8)
            c.store(value, c.at(to, b.shl(number, i64(3))), 8)

        self.times(b.mul(lines, self.blocks), one)
        self.leave_if(self.nonzero(c.load(self.differ, byte, 1)), status)

    def find_meets(self, bank: Any) -> None:
        """Which rows of B's panel the kept elements of each row select."""
        c, b = self.c, self.b
        chunks = self.said(ProductPlan.CHUNKS)
        count = b.mul(chunks, self.rows)
        table = c.at(self.table(ProductPlan.E_TABLE), b.shl(b.mul(bank, count), i64(3)))
        cells = self.cell(ProductRequest.E)

        def one(number: Any) -> None:
            pair = b.shl(number, i64(1))
            offset = self.offset(table, pair)
            word = c.load(c.at(cells, offset), i32)
            self.known.unless_written(
                b.add(offset, self.asked(ProductRequest.E)),
                lambda: self.known.drop_row(self.known.rows, b.urem(number, self.rows)),
            )
            low = b.trunc(self.offset(table, b.or_(pair, i64(1))), i32)
            c.store(b.trunc(b.and_(b.lshr(word, low), i32(15)), byte), c.at(self.codes, number), 1)

        self.times(count, one)
        self.call(ProductPlan.SELECTED, [self.selected, self.codes], [self.groups, chunks, self.pitch])

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
            selected = [self.selected] if self.key.sparse else []
            self.call(ProductPlan.MULTIPLY, [d, table, *sides, self.sizes, *selected], [])
            return
        own = self.table(ProductPlan.OWN_TABLE)

        def clear(number: Any) -> None:
            c.store(ir.Constant(vector, None), c.at(d, self.offset(table, number)))

        with b.if_then(self.nonzero(fresh)):
            self.times(b.mul(*counts), clear)

        def block(number: Any) -> None:
            self.fill([*counts, self.depth, *pitches, i64(1)])
            along = b.mul(number, self.depth)
            if self.key.sparse:  # B's rows are those that A selects
                selected = [c.at(self.selected, b.shl(b.mul(along, self.rows), i64(2)))]
                parts = c.at(sides[0], b.mul(along, pitches[0])), sides[1]
            else:
                selected, parts = [], tuple(c.at(side, b.mul(along, pitch)) for side, pitch in zip(sides, pitches))
            self.call(ProductPlan.MULTIPLY, [self.parts, own, *parts, self.sizes, *selected], [])
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
        b, c = self.b, self.c
        lane = b.and_(b.lshr(b.add(offset, self.asked(ProductRequest.D)), i64(2)), i64(_ROWS - 1))
        at = b.add(b.shl(self.number, i64(4)), b.lshr(lane, i64(3)))  # lanes are a multiple of 16
        off = c.load(c.at(c.at(self.request, ProductRequest.OFF), at), i16, 2)
        return b.bitcast(b.not_(off), ir.VectorType(i1, GROUP))
