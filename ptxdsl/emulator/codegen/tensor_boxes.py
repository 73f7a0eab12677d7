"""Boxes of tensors in LLVM: what the bytes of a tensor map say, and the loops over the rows of a box.

A row is a run of bytes in both memories, cut into chunks of 16 bytes of shared memory. There the swizzle moves whole
chunks, by the bits of their address; a host address has the same bits, for a block's shared memory is aligned to 1024.
Rows and bytes outside of the tensor are those whose coordinate, as a number without a sign, is not below the extent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...isa.tensor_maps import ADDRESS_ALIGNMENT, CORNER_BITS, ELEMENTS, FIELDS, PIXELS, TILED_MODES
from ..instructions.instrumentation import TensorShadowCheck
from ..instructions.tensor_copies import MOST_HALO, MOST_OFFSET, PIXEL_SHAPES, MakeTensor, Shape, TensorBox
from ..semantics.lanes import Bits, Lanes
from .atomics import element_at
from .handler import Handler, byte, i16, i32, i64, pointer

__all__ = ["CHUNK", "MapFields", "TensorBoxes", "box_of", "chunk_type"]

CHUNK = 16
"""Bytes of shared memory that a swizzle moves together."""
chunk_type = ir.VectorType(byte, CHUNK)
_LINE = 128
_ROWS = 4
"""Rows of a gather or a scatter."""
_CODES = 16


def _table(of: Callable[[Any], int], default: int) -> ir.Constant:
    """A number for each code of an element type."""
    numbers = [default] * _CODES
    for element in ELEMENTS.values():
        numbers[element.code] = of(element)
    return ir.Constant(ir.ArrayType(byte, _CODES), numbers)


class MapFields:
    """The fields of a tensor map at an address of the host."""

    def __init__(self, h: Handler, map_: Any) -> None:
        self.h, self.map, self.b = h, map_, Lanes(h.ir, 1)

    def field(self, name: str, dimension: int = 0) -> Bits:
        """A field, 64 bits wide."""
        offset, bits, bias = FIELDS[name][dimension]
        size = _word_of(offset, bits)
        word = Bits(self.b, self.h.load(self.map, offset // size * size // 8, ir.IntType(size), 1), size)
        value = (word.zext(64) >> offset % size) & (1 << bits) - 1
        return value + bias if bias else value

    def put(self, name: str, value: Any, dimension: int = 0) -> None:
        """Give a field the value of an i64; what does not fit is lost."""
        offset, bits, bias = FIELDS[name][dimension]
        size = _word_of(offset, bits)
        place, mask = offset // size * size // 8, (1 << bits) - 1 << offset % size
        held = (Bits(self.b, value, 64) - bias << offset % size).trunc(size) if size < 64 else Bits(self.b, value, 64)
        if bits < size:
            old = Bits(self.b, self.h.load(self.map, place, ir.IntType(size), 1), size)
            held = old & ~mask | held & mask
        self.h.store(held.value, self.map, place)


def _word_of(offset: int, bits: int) -> int:
    """Bits of the least aligned word that holds some bits."""
    return next(size for size in (8, 32, 64) if offset % size + bits <= size)


class TensorBoxes(MapFields):
    """The box of a lane: ``map`` is the host address of its tensor map, ``coordinates`` the innermost first."""

    modes: tuple[int, ...] = TILED_MODES

    def __init__(self, h: Handler, map_: Any, coordinates: list[Any], rows: bool = False) -> None:
        super().__init__(h, h.ir.inttoptr(map_, pointer))
        self.rows = rows
        self.coordinates = [Bits(self.b, h.ir.sext(each, i64), 64) for each in coordinates]
        self.code = self.field("elemtype")
        self.rank = 2 if rows else len(coordinates)
        self.bits = self._looked_up(lambda element: element.bits, 0)
        self.stored = self._looked_up(lambda element: element.stored_bits, 0)
        self.row_bytes = (self.field("box_dim") * self.stored) >> 3
        self.chunk_bytes = (self.bits * CHUNK).divide(self.stored.max(1), False)
        """Bytes of the tensor in a chunk."""
        self.limit = (self.field("global_dim") * self.bits) >> 3
        self.first = (self.coordinates[0] * self.bits).sar(3)
        """Where a row of the box begins, and where one of the tensor ends, in bytes from the latter's start."""

    def number(self, value: int) -> Bits:
        return self.b.bits(64, value)

    def _looked_up(self, of: Callable[[Any], int], default: int) -> Bits:
        h = self.h
        table = h.ir.alloca(ir.ArrayType(byte, _CODES))
        h.ir.store(_table(of, default), table)
        place = h.ir.gep(h.ir.bitcast(table, pointer), [self.code.value], source_etype=byte)
        return Bits(self.b, h.ir.load(place, align=1), 8).zext(64)

    def stride(self, dimension: int) -> Bits:
        """In bytes, of a dimension behind the innermost."""
        low, high = (self.field(name, dimension - 1) for name in ("global_stride", "global_stride_high"))
        return (low | high << 32) << 4

    def count(self, dimension: int) -> Bits:
        """Rows of the box along a dimension behind the innermost."""
        if self.rows:
            return self.number(_ROWS)
        step = self.field("element_stride", dimension)
        return (self.field("box_dim", dimension) + step - 1).divide(step, False)

    def row_count(self) -> Bits:
        """Rows of the box."""
        total = self.number(1)
        for dimension in range(1, self.rank):
            total = total * self.count(dimension)
        return total

    def swizzle(self) -> Bits:
        """The mode; rows of 96 bytes are swizzled as those of 32."""
        return self.field("swizzle_mode") | self.field("swizzle_96")

    def nbytes(self) -> Bits:
        """Bytes of the tensor in a box: those that it has in shared memory, without padding."""
        return ((self.field("box_dim") * self.bits) >> 3) * self.row_count()

    def extent(self) -> Bits:
        """Bytes of shared memory in which a box lies: whole lines of 128 where it is swizzled."""
        total = self.row_bytes * self.row_count()
        return self.swizzle().ne(0).pick((total + _LINE - 1) & ~(_LINE - 1), total)

    def valid(self, stores: bool, codes: frozenset[int] | None) -> Any:
        """Whether such a copy can use the map; ``codes`` are the element types that it takes, where not all."""
        b = self.b
        mask = sum(1 << mode for mode in self.modes)
        good = (self.number(mask) >> self.field("mode") & 1).ne(0) & self.field("rank").eq(self.rank)
        good = good & self.field("global_address").ne(0)
        good = good & self.field("interleave_layout").eq(0) & (self.row_bytes & CHUNK - 1).eq(0) & self.bits.ne(0)
        good = good & (Bits(b, self.h.ir.ptrtoint(self.map, i64), 64) & 63).eq(0)
        good = good & (self.field("global_address") & ADDRESS_ALIGNMENT - 1).eq(0)
        if stores:
            good = good & self.bits.eq(self.stored)
        if codes is not None:
            mask = sum(1 << code for code in codes)
            good = good & (self.number(mask) >> self.code & 1).ne(0)
        if self.rows:
            good = good & self.field("box_dim", 1).eq(1)
        return good.value

    # What it takes of the tensor

    def _axis(self, dimension: int) -> tuple[Bits, Bits]:
        """The lowest and highest row that lies in the tensor, along a dimension; none where the lowest is higher."""
        extent = self.field("global_dim", dimension)
        if self.rows:
            low, high = self.number(1 << 62), self.number(-1)
            for row in self.coordinates[1:]:
                inside = row.lt(extent)
                low = inside.pick(row.min(low, signed=True), low)
                high = inside.pick(row.max(high, signed=True), high)
            return low, high
        first, step = self.coordinates[dimension], self.field("element_stride", dimension)
        last = first + (self.count(dimension) - 1) * step
        missing = self.number(0).max(self.number(0) - first, signed=True)
        low = first + (missing + step - 1).divide(step, False) * step
        beyond = (last - extent + 1).max(0, signed=True)
        return low, last - (beyond + step - 1).divide(step, False) * step

    def span(self) -> tuple[Bits, Bits]:
        """The lowest address that the box takes of the tensor, rounded down to a chunk, and the bytes from there."""
        last = self.first + self.row_bytes.divide(CHUNK, False) * self.chunk_bytes
        low, end = self.first.max(0, signed=True), last.min(self.limit, signed=True)
        some = low.lt(end, signed=True)
        for dimension in range(1, self.rank):
            lowest, highest = self._axis(dimension)
            some = some & (highest.lt(lowest, signed=True) ^ 1)
            low, end = low + lowest * self.stride(dimension), end + highest * self.stride(dimension)
        start = (self.field("global_address") + low) & ~(CHUNK - 1)
        return start, some.pick(self.field("global_address") + end - start, 0)

    # The rows

    def each_row(self, body: Callable[[Bits, Bits, Bits], None]) -> None:
        """Run ``body(address, inside, number)`` for each row: its start in the tensor, whether it is one of it."""
        self._rows(self.rank - 1, self.field("global_address"), self.b.bits(1, 1), self.number(0), body)

    def _rows(
        self, dimension: int, address: Bits, inside: Bits, number: Bits, body: Callable[[Bits, Bits, Bits], None]
    ) -> None:
        if dimension == 0:
            body(address, inside, number)
            return
        extent, stride, count = self.field("global_dim", dimension), self.stride(dimension), self.count(dimension)
        if self.rows:
            for row, at in enumerate(self.coordinates[1:]):
                self._rows(0, address + at * stride, at.lt(extent), self.number(row), body)
            return
        step = self.field("element_stride", dimension)

        def one(i: Any) -> None:
            turn = Bits(self.b, i, 64)
            at = self.coordinates[dimension] + turn * step
            self._rows(dimension - 1, address + at * stride, inside & at.lt(extent), number * count + turn, body)

        self.h.count(count.value, 1, one)

    def swizzled(self) -> Callable[[Bits], tuple[Bits, Bits]]:
        """What gives the place of a chunk in shared memory, and whether its halves change places."""
        mode, atomicity = self.swizzle(), self.field("swizzle_atomicity")
        low = atomicity.eq(0).pick(4, atomicity.eq(3).pick(6, self.number(5)))
        bits = atomicity.eq(0).pick(mode, atomicity.eq(3).pick(1, self.number(2)))
        mask = (self.number(1) << bits) - 1
        flips = atomicity.eq(2)

        def place(address: Bits) -> tuple[Bits, Bits]:
            line = address >> 7
            return address ^ (line & mask) << low, flips & (line & 1).ne(0)

        return place


class TensorPixels(TensorBoxes):
    """The pixels that a convolution needs (im2col): a walk over a bounding box, the innermost dimension first.

    The box lies between two corners that the map has, the upper one relative to the last pixel. ``offsets`` are added
    to each pixel's place behind the walk; from there channels are taken.
    """

    modes = (PIXELS,)

    def __init__(self, h: Handler, map_: Any, coordinates: list[Any], offsets: list[Any]) -> None:
        super().__init__(h, map_, coordinates)
        self.offsets = [Bits(self.b, h.ir.zext(each, i64), 64) for each in offsets]

    def row_count(self) -> Bits:
        return self.field("pixels")

    def span(self) -> tuple[Bits, Bits]:
        """All of the tensor: a walk may come anywhere."""
        total = self.limit
        for dimension in range(1, self.rank):
            total = total + (self.field("global_dim", dimension) - 1) * self.stride(dimension)
        return self.field("global_address"), total

    def _corner(self, name: str, dimension: int) -> Bits:
        bits = CORNER_BITS[self.rank]
        return (self.field(name) << 64 - bits * dimension).sar(64 - bits)

    def each_row(self, body: Callable[[Bits, Bits, Bits], None]) -> None:
        h = self.h
        spatial = range(1, self.rank - 1)
        places = {dimension: h.alloca(i64) for dimension in range(1, self.rank)}
        for dimension, place in places.items():
            h.ir.store(self.coordinates[dimension].value, place)
        low = {dimension: self._corner("low_corner", dimension) for dimension in spatial}
        last = {
            dimension: self.field("global_dim", dimension) - 1 + self._corner("high_corner", dimension)
            for dimension in spatial
        }

        def pixel(i: Any) -> None:
            address, inside = self.field("global_address"), self.b.bits(1, 1)
            walked = {dimension: Bits(self.b, h.ir.load(place), 64) for dimension, place in places.items()}
            for dimension, at in walked.items():
                if dimension in low and self.offsets:
                    at = at + self.offsets[dimension - 1]
                address = address + at * self.stride(dimension)
                inside = inside & at.lt(self.field("global_dim", dimension))
            body(address, inside, Bits(self.b, i, 64))
            carry = self.b.bits(1, 1)
            for dimension, at in walked.items():
                step = self.field("element_stride", dimension) if dimension in low else self.number(1)
                moved = carry.pick(at + step, at)
                carry = carry & last[dimension].lt(moved, signed=True) if dimension in low else carry
                moved = carry.pick(low[dimension], moved) if dimension in low else moved
                h.ir.store(moved.value, places[dimension])

        h.count(self.row_count().value, 1, pixel)


class WidePixels(TensorPixels):
    """Pixels along the width only (im2col::w): the walk goes on with the next image behind the upper corner.

    Behind the pixels lie those of the halo, on which the walk goes on. ``chunked`` (im2col::w::128): each 32 of 128
    pixels have a halo, the next 32 begin where it begins; in shared memory the halos lie behind all pixels, the first
    pixel of each, then the second. The offset is added to both corners and to the first pixel.
    """

    _CHUNKS, _CHUNK_PIXELS = 4, 32

    def __init__(self, h: Handler, map_: Any, coordinates: list[Any], offsets: list[Any], shape: Shape) -> None:
        super().__init__(h, map_, coordinates, offsets)
        self.halo, self.offset = self.offsets or (self.number(0), self.number(0))
        self.most_halo, self.chunked = MOST_HALO[shape], shape == "chunks"

    def row_count(self) -> Bits:
        if self.chunked:
            return self.halo * self._CHUNKS + self._CHUNKS * self._CHUNK_PIXELS
        return self.field("pixels") + self.halo

    def valid(self, stores: bool, codes: frozenset[int] | None) -> Any:
        mode, wide = self.field("swizzle_mode"), self.field("swizzle_96").ne(0)
        good = mode.ne(0) & mode.ne(1) & self.field("swizzle_atomicity").lt(2)
        good = (good if self.chunked else good | wide) & self.halo.lt(self.most_halo) & self.offset.lt(MOST_OFFSET)
        return self.h.ir.and_(super().valid(stores, codes), good.value)

    def each_row(self, body: Callable[[Bits, Bits, Bits], None]) -> None:
        h, image = self.h, self.rank - 1
        low = self._corner("low_corner", 1) + self.offset
        last = self.field("global_dim", 1) - 1 + self._corner("high_corner", 1) + self.offset
        step = self.field("element_stride", 1)
        start, fixed = self.field("global_address"), self.b.bits(1, 1)
        for dimension in range(2, image):
            at = self.coordinates[dimension]
            start, fixed = start + at * self.stride(dimension), fixed & at.lt(self.field("global_dim", dimension))
        walk, halo = ([h.alloca(i64), h.alloca(i64)] for _ in range(2))
        for place, value in zip(walk, (self.coordinates[1] + self.offset, self.coordinates[image])):
            h.ir.store(value.value, place)

        def pixel(places: list[Any], number: Bits) -> None:
            x, n = (Bits(self.b, h.ir.load(place), 64) for place in places)
            inside = fixed & x.lt(self.field("global_dim", 1)) & n.lt(self.field("global_dim", image))
            body(start + x * self.stride(1) + n * self.stride(image), inside, number)
            beyond = last.lt(x + step, signed=True)
            h.ir.store(beyond.pick(low, x + step).value, places[0])
            h.ir.store((n + beyond.zext(64)).value, places[1])

        def chunk(number: Any) -> None:
            turn = Bits(self.b, number, 64)
            pixels = turn * self._CHUNK_PIXELS
            h.count(h.i64(self._CHUNK_PIXELS), 1, lambda i: pixel(walk, pixels + Bits(self.b, i, 64)))
            for to, of in zip(halo, walk):
                h.ir.store(h.ir.load(of), to)
            behind = turn + self._CHUNKS * self._CHUNK_PIXELS
            h.count(self.halo.value, 1, lambda i: pixel(halo, behind + Bits(self.b, i, 64) * self._CHUNKS))

        if self.chunked:
            h.count(h.i64(self._CHUNKS), 1, chunk)
        else:
            h.count(self.row_count().value, 1, lambda i: pixel(walk, Bits(self.b, i, 64)))


def box_of(
    h: Handler, op: TensorBox | MakeTensor | TensorShadowCheck, map_: Any, places: list[Any], lane: Any
) -> TensorBoxes:
    """The box of a lane; ``places`` are where its coordinates and offsets lie, one a lane."""
    count = len(places) - op.offsets
    given = [element_at(h, place, lane, i32) for place in places[:count]]
    if op.shape not in PIXEL_SHAPES:
        return TensorBoxes(h, map_, given, op.shape == "rows")
    offsets = [element_at(h, place, lane, i16) for place in places[count:]]
    if op.shape == "pixels":
        return TensorPixels(h, map_, given, offsets)
    return WidePixels(h, map_, given, offsets, op.shape)
