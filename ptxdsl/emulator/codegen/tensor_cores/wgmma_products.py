"""Products of wgmma: the places of a tile's 16-byte pieces by its descriptor, then the core's panels and products.

The accumulators are summed where the warp's registers lie, but where they are halves, saturate, or products are
subtracted: those are converted to f32, or summed for themselves, in memory beside.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from ....isa.fragments import chunk_of, metadata_place
from ....isa.matrix_descriptors import BASE_OFFSET
from ...instructions.tensor_cores.matrix_tiles import GROUP, elements_of
from ...instructions.tensor_cores.wgmma import ROWS, WARPS, WarpgroupProduct
from ...machine.layout import LANES, SHARED_START, Block
from ...machine.status import Fault
from ...semantics.lanes import Bits, Lanes
from ..handler import Handler, byte, i16, i32, i64, lanes_of, pointer
from .wgmma_tiles import PIECE, DescribedTile

__all__ = ["VECTOR", "Metadata", "Product", "Warps"]

VECTOR = 4 * LANES
"""Bytes of a register of a warp."""
_PIECES = 2
"""Pieces of a line of A, of which an instruction takes 32 bytes; a sparse A meets twice as much of B."""
_PITCH, _ROWS_PITCH = WARPS * ROWS * 16, ROWS * 16
"""Of A's panel: bytes between two k, and of what a warp takes of each."""
_PANEL = ir.FunctionType(ir.VoidType(), [pointer] * 3 + [i64] * 3)
_HELD = ir.FunctionType(ir.VoidType(), [pointer] * 3 + [i64])
_PRODUCT, _SPARSE_PRODUCT = (ir.FunctionType(ir.VoidType(), [pointer] * count) for count in (5, 6))
_LINES = ir.FunctionType(ir.VoidType(), [pointer] * 2 + [i64] * 3)
floats, words = lanes_of(ir.FloatType()), lanes_of(i32)


class Warps:
    """The warps of a group, by the first of them."""

    def __init__(self, h: Handler) -> None:
        self.h, self.first = h, h.warp
        self.stride = h.load(h.block, Block.STRIDE, i64)

    def warp(self, number: Any) -> Any:
        return self.h.add(self.first, self.h.ir.mul(self.stride, number))


class _Side(NamedTuple):
    """A tile in shared memory of ``lines``, of which the last ones repeat where they are not ``used``."""

    major: str
    lines: int
    used: int
    depth: int
    pieces: int
    """Of 16 bytes in a line."""


class Product:
    """A product of a group's warps: its panels in memory, and the sums where the warps have d or beside."""

    def __init__(self, h: Handler, op: WarpgroupProduct, group: Warps, table: Any) -> None:
        self.h, self.op, self.group, self.table, self.b = h, op, group, table, Lanes(h.ir, 1)
        self.lines = -(-op.columns // GROUP) * GROUP
        self.a = self.room(op.depth * _PITCH)
        self.further = 1 + op.sparse
        """How much longer than those of A the lines of B are."""
        self.columns = self.room(self.further * op.depth * self.lines * 4)
        self.metadata: Metadata | None = None
        self.apart = op.result == "f16" or op.saturates or op.negative
        self.count = op.columns // 2
        """Registers of d, of one number each."""
        if self.apart:
            self.sums = self.room(self.count * VECTOR)

    def room(self, nbytes: int) -> Any:
        return self.h.ir.bitcast(self.h.alloca(ir.ArrayType(byte, nbytes), 64), pointer)

    # Tiles

    def right(self, panel: Any, descriptor: Any) -> None:
        op, times = self.op, self.further
        side = _Side(op.majors[1], self.lines, op.columns, times * op.depth, times * _PIECES)
        self._lay_out(panel, self.columns, descriptor, side)

    def left(self, panel: Any, descriptor: Any) -> None:
        side = _Side(self.op.majors[0], WARPS * ROWS, WARPS * ROWS, self.op.depth, _PIECES)
        self._lay_out(panel, self.a, descriptor, side)

    def held(self, panel: Any, place: Any) -> None:
        """The panel of what each warp has left at ``place``."""
        h = self.h
        count = len(self.op.held) - self.op.sparse
        offsets = self._constant([number * VECTOR for number in range(count)])
        function = h.ir.inttoptr(panel, _HELD.as_pointer())
        for number in range(WARPS):
            to, held = h.add(self.a, number * _ROWS_PITCH), h.add(self.group.warp(h.i64(number)), place)
            h.ir.call(function, [to, held, offsets, h.i64(_PITCH)])

    def _constant(self, numbers: list[int]) -> Any:
        """Numbers of 32 bits in memory."""
        kind = ir.ArrayType(i32, len(numbers))
        held = ir.GlobalVariable(self.h.ir.module, kind, self.h.ir.module.get_unique_name("numbers"))
        held.initializer, held.global_constant, held.linkage = ir.Constant(kind, numbers), True, "internal"
        return self.h.ir.bitcast(held, pointer)

    def _lay_out(self, panel: Any, to: Any, descriptor: Any, side: _Side) -> None:
        """Write the panel of a tile."""
        h, lines = self.h, side.lines
        count = lines * side.pieces if side.major == "k" else side.depth * lines // 8
        offsets = self.room(4 * count)
        self._places(Bits(self.b, descriptor, 64), side, offsets)
        base = h.ir.sub(h.load(h.block, Block.SHARED, i64), h.i64(SHARED_START))
        spread = 16 if to is self.a else 4
        sizes = [lines // GROUP, side.pieces if side.major == "k" else side.depth, lines * spread]
        function = h.ir.inttoptr(panel, _PANEL.as_pointer())
        h.ir.call(function, [to, h.ir.inttoptr(base, pointer), offsets, *map(h.i64, sizes)])

    def _places(self, descriptor: Bits, side: _Side, offsets: Any) -> None:
        """Write the address in shared memory of each piece; a fault where one lies outside."""
        h = self.h
        major, lines, used = side.major, side.lines, side.used
        tile = DescribedTile(self.b, descriptor)
        lowest, highest = h.alloca(i64, 8), h.alloca(i64, 8)
        h.ir.store(h.i64(1 << 32), lowest)
        h.ir.store(h.i64(0), highest)

        def put(index: Bits, address: Bits) -> None:
            address = tile.swizzled(address)
            for place, choose in ((lowest, Bits.min), (highest, Bits.max)):
                h.ir.store(choose(Bits(self.b, h.ir.load(place), 64), address).value, place)
            place = h.ir.gep(offsets, [(index << 2).value], source_etype=byte)
            h.ir.store(h.ir.trunc(address.value, i32), h.ir.bitcast(place, i32.as_pointer()), align=4)

        def by_line(i: Any) -> None:
            line = Bits(self.b, i, 64)
            row = tile.line(line.min(used - 1))
            step = tile.plain.pick(tile.leading, self.b.bits(64, PIECE))
            for piece in range(side.pieces):
                put(line * side.pieces + piece, row + step * piece)

        def by_depth(i: Any) -> None:
            k = Bits(self.b, i, 64)
            row = tile.depth(k)

            def piece(j: Any) -> None:
                number = Bits(self.b, j, 64)
                put(k * (lines // 8) + number, row + tile.along(number.min(used // 8 - 1)))

            h.count(h.i64(lines // 8), 1, piece)

        h.count(h.i64(lines if major == "k" else side.depth), 1, by_line if major == "k" else by_depth)
        end = h.ir.zext(h.load(h.block, Block.TOTAL_SHARED, i32), i64)
        end = h.ir.add(end, h.i64(SHARED_START - PIECE))
        good = BASE_OFFSET.of(descriptor).eq(0).value
        good = h.ir.and_(good, h.ir.icmp_unsigned(">=", h.ir.load(lowest), h.i64(SHARED_START)))
        good = h.ir.and_(good, h.ir.icmp_signed("<=", h.ir.load(highest), end))

        def leave(fault: Fault = Fault.DESCRIPTOR) -> None:
            h.store(descriptor.value, h.block, Block.FAULT_ADDRESS)
            h.fault(fault, h.i32(1))

        h.branch_unless(good, leave)
        if major == "k" and side.pieces > _PIECES:
            wide = (tile.plain | tile.span.ge(side.pieces * PIECE)).value
            h.branch_unless(wide, lambda: leave(Fault.DESCRIPTOR_ROWS))

    # The product

    def run(self, function: Any, fresh: Any) -> None:
        h, op = self.h, self.op
        sizes = self.room(48)
        clear = h.i64(1) if op.saturates else h.ir.zext(fresh, i64)
        for number, value in enumerate((
            h.i64(4), h.i64(op.columns // 4), h.i64(op.depth), h.i64(_PITCH), h.i64(4 * self.lines), clear,
        )):
            h.store(value, sizes, 8 * number)
        kind = _SPARSE_PRODUCT if op.sparse else _PRODUCT
        multiply = h.ir.inttoptr(function, kind.as_pointer())
        offsets = self._own_offsets() if self.apart else self.table

        def one(number: Any) -> None:
            self.warp = self.group.warp(number)
            if self.apart and not op.saturates:
                self._each(self._taken)
            rows = h.add(self.a, h.ir.mul(number, h.i64(_ROWS_PITCH)))
            met = [self.metadata.lines(self.warp)] if self.metadata is not None else []
            h.ir.call(multiply, [self.sums if self.apart else self.warp, offsets, rows, self.columns, sizes, *met])
            if self.apart:
                self._each(lambda register: self._given(register, fresh))

        h.count(h.i64(WARPS), 1, one)

    def _own_offsets(self) -> Any:
        """Those of the vectors of d in memory of its own, in the order of the product."""
        return self._constant([
            VECTOR * (4 * eight + 2 * (four // 2) + odd) + 64 * (four % 2)
            for four in range(4) for eight in range(self.op.columns // 8) for odd in range(2)
        ])

    def _each(self, body: Any) -> None:
        """Run ``body`` for each register of d, as the table has them."""
        per = 1 if self.op.result != "f16" else 2
        self.h.count(self.h.i64(self.count // per), 1, body)

    def _register(self, number: Any) -> Any:
        """The address of a register of d."""
        h = self.h
        if self.op.result != "f16":  # the table has the vectors of rows 0 to 3, 4 to 7, ... one after the other
            half = h.ir.and_(h.ir.lshr(number, h.i64(1)), h.i64(1))
            pair = h.ir.add(h.ir.shl(h.ir.lshr(number, h.i64(2)), h.i64(1)), h.ir.and_(number, h.i64(1)))
            number = h.ir.add(h.ir.mul(half, h.i64(2 * (self.op.columns // 4))), pair)
        offset = h.ir.load(h.ir.gep(h.ir.bitcast(self.table, i32.as_pointer()), [number], source_etype=i32), align=4)
        return h.add(self.warp, offset)

    def _sum(self, number: Any) -> Any:
        return self.h.add(self.sums, self.h.ir.mul(number, self.h.i64(VECTOR)))

    def _keep(self, value: Any, number: Any) -> None:
        self.h.store(self.h.ir.bitcast(value, words), self._sum(number), 0)

    def _kept(self, number: Any) -> Any:
        return self.h.ir.bitcast(self.h.load(self._sum(number), 0, words), floats)

    def _taken(self, number: Any) -> None:
        """The addends, of the other sign where products are subtracted."""
        h, op = self.h, self.op
        word = h.load(self._register(number), 0, words)
        if op.result != "f16":
            self._keep(h.ir.fneg(h.ir.bitcast(word, floats)), number)
            return
        for part in range(2):
            half = h.ir.trunc(h.ir.lshr(word, h.splat(h.i32(16 * part))), lanes_of(i16))
            value = h.ir.fpext(h.ir.bitcast(half, lanes_of(ir.HalfType())), floats)
            at = h.ir.add(h.ir.shl(number, h.i64(1)), h.i64(part))
            self._keep(h.ir.fneg(value) if op.negative else value, at)

    def _given(self, number: Any, fresh: Any) -> None:
        h, op = self.h, self.op
        place = self._register(number)
        if op.saturates:
            old = h.ir.select(h.nonzero(fresh), ir.Constant(words, None), h.load(place, 0, words))
            total = h.call("llvm.sadd.sat.v32i32", words, h.load(self._sum(number), 0, words), old)
            h.store(total, place, 0)
            return
        if op.result != "f16":
            h.store(h.ir.bitcast(h.ir.fneg(self._kept(number)), words), place, 0)
            return
        word: Any = None
        for part in range(2):
            value = self._kept(h.ir.add(h.ir.shl(number, h.i64(1)), h.i64(part)))
            value = h.ir.fneg(value) if op.negative else value
            odd = h.ir.fcmp_unordered("uno", value, value)
            bits = h.ir.bitcast(h.ir.fptrunc(value, lanes_of(ir.HalfType())), lanes_of(i16))
            bits = h.ir.select(odd, h.splat(i16(0x7FFF)), bits)
            wide = h.ir.zext(bits, words)
            word = wide if word is None else h.ir.or_(word, h.ir.shl(wide, h.splat(h.i32(16))))
        h.store(word, place, 0)


class Metadata:
    """The metadata of a sparse A: those of a warp's 16 rows are what its lanes hold, as for mma."""

    def __init__(self, product: Product, function: Any, place: Any) -> None:
        self.h, self.product, self.place = product.h, product, place
        self.bits = 128 // elements_of(product.op.types[0])
        self.depth = product.further * product.op.depth
        self.chunks = self.depth // chunk_of(self.bits)
        self.function = self.h.ir.inttoptr(function, _LINES.as_pointer())
        self.codes = product.room(self.chunks * ROWS)
        self.found = product.room(4 * product.op.depth * ROWS)

    def lines(self, warp: Any) -> Any:
        """Where B's panel has what the kept elements of a warp's rows meet."""
        h = self.h
        held = h.load(h.add(warp, self.place), 0, words)
        numbers = ir.VectorType(i32, ROWS)
        for chunk in range(self.chunks):
            found = [metadata_place(self.bits, self.depth, row, chunk, self.product.op.selector) for row in range(ROWS)]
            lanes, shifts = (ir.Constant(numbers, [each[part] for each in found]) for part in (0, 1))
            word = h.ir.lshr(h.ir.shuffle_vector(held, held, lanes), shifts)
            h.store(h.ir.trunc(word, ir.VectorType(byte, ROWS)), self.codes, chunk * ROWS)
        pitch = 4 * self.product.lines
        h.ir.call(self.function, [self.found, self.codes, h.i64(1), h.i64(self.chunks), h.i64(pitch)])
        return self.found
