"""Code of what lays out the tiles of tcgen05: cells of tensor memory as panels, and the places of 16-byte pieces."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....isa.matrix_descriptors import (
    ABSOLUTE, ADDRESS, BASE_OFFSET, CONSTANT, LEADING, RESERVED, STRIDE, SWIZZLES, TENSOR_SWIZZLE, Bits as Field,
)
from ...instructions.tensor_cores.tensor_tiles import COLUMN_BYTES, CellPanel, TilePlaces
from ..handler import i32, i64
from .matrix_tiles import integers, parts, repeated, widened
from ..registry import builds
from ..routine_code import RoutineCode

__all__ = ["not_a_tile"]


@builds(CellPanel)
def cell_panel(module: ir.Module, name: str, key: CellPanel) -> None:
    code = RoutineCode(module, name, 3, 3)
    to, cells, offsets, groups, columns, pitch = code.function.args
    b = code.ir

    def group(number: Any, _: list[Any]) -> list[Any]:
        offset = code.load(code.at(offsets, b.shl(number, i64(2))), i32)
        rows, first = code.at(cells, b.zext(offset, i64)), code.at(to, b.shl(number, i64(6)))

        def column(at: Any, _: list[Any]) -> list[Any]:
            word = code.load(code.at(rows, b.mul(at, i64(COLUMN_BYTES))), integers)
            values = _cell(code, word, key.element)
            for part, value in enumerate(values):
                k = b.add(b.mul(at, i64(len(values))), i64(part))
                code.store(value, code.at(first, b.mul(k, pitch)), 64)
            return []

        return code.loop(columns, 1, [], column)

    code.loop(groups, 1, [], group)
    b.ret_void()


def _cell(code: RoutineCode, word: Any, kind: str) -> list[Any]:
    """The elements of 32 bits of tensor memory: FP6 and FP4 in bytes."""
    if kind not in ("e3m2", "e2m3", "e2m1"):
        return parts(code, word, kind)
    low = 2 if kind == "e2m1" else 0
    return [widened(code, code.ir.lshr(word, repeated(8 * part + low)), kind) for part in range(4)]


class _Descriptor:
    """The descriptor of a tile: its fields, and what its swizzle mode says; numbers of 64 bits."""

    def __init__(self, b: Any, word: Any) -> None:
        self.b, self.word = b, word
        self.mode = self.part(TENSOR_SWIZZLE)

    def part(self, field: Field) -> Any:
        b = self.b
        return b.shl(b.and_(b.lshr(self.word, i64(field.low)), i64((1 << field.width) - 1)), i64(field.unit))

    def of_swizzle(self, at: int) -> Any:
        """What ``SWIZZLES`` has in a column for its mode."""
        b = self.b
        packed = sum(numbers[at] << 8 * mode for mode, numbers in SWIZZLES.items())
        return b.and_(b.lshr(i64(packed), b.shl(self.mode, i64(3))), i64(0xFF))


def not_a_tile(b: Any, word: Any, swizzles: Any, line: Any, long: Any) -> Any:
    """Whether a descriptor is none of a tile, as ``matrix_descriptors.problem`` says; the numbers are of 64 bits."""

    def nonzero(value: Any) -> Any:
        return b.icmp_unsigned("!=", value, i64(0))

    tile = _Descriptor(b, word)
    span, mask = map(tile.of_swizzle, range(2))
    period = b.shl(b.add(mask, i64(1)), i64(7))
    within = b.and_(tile.part(ADDRESS), b.sub(period, i64(1)))
    absolute = nonzero(tile.part(ABSOLUTE))
    length = b.select(absolute, i64(0), line)
    wide = b.icmp_unsigned(">", b.add(within, b.select(nonzero(length), length, i64(1))), span)
    bad = b.icmp_unsigned("!=", tile.part(CONSTANT), i64(1))
    for each in (
        nonzero(b.and_(word, i64(RESERVED))), nonzero(tile.part(BASE_OFFSET)), b.and_(absolute, b.not_(long)),
        b.not_(nonzero(b.and_(b.lshr(swizzles, tile.mode), i64(1)))), b.and_(wide, nonzero(mask)),
    ):
        bad = b.or_(bad, each)
    return bad


@builds(TilePlaces)
def tile_places(module: ir.Module, name: str, key: TilePlaces) -> None:
    code = RoutineCode(module, name, 3, 3)
    places = _Places(code)
    if key.major == "k":
        code.loop(places.count, 1, [], places.line)
    else:
        code.loop(places.further, 1, [], places.depth)
    code.ir.ret_void()


class _Places:
    """The places of a tile's pieces, line by line, or k by k where these follow each other."""

    def __init__(self, code: RoutineCode) -> None:
        self.c, self.b = code, code.ir
        b = self.b
        self.to, sizes, self.bounds, word, self.delta, shift = code.function.args
        self.count, last, self.half, self.further, self.rows, per = (
            code.load(code.at(sizes, 8 * n), i64, 8) for n in range(6)
        )
        self.end = b.add(last, b.lshr(b.add(shift, b.sub(b.shl(i64(1), per), i64(1))), per))
        tile = _Descriptor(b, word)
        self.start, self.leading, self.stride = map(tile.part, (ADDRESS, LEADING, STRIDE))
        self.plain = b.icmp_unsigned("==", tile.mode, i64(0))
        self.absolute = b.icmp_unsigned("!=", tile.part(ABSOLUTE), i64(0))
        self.span, self.mask, self.low = map(tile.of_swizzle, range(3))

    def line(self, i: Any, _: list[Any]) -> list[Any]:
        b = self.b
        at, beyond = self._within(i)
        before = self._rows_at(at, self.stride)

        def piece(number: Any, _: list[Any]) -> list[Any]:
            along = b.mul(number, b.select(self.plain, self.leading, i64(16)))
            inside = b.add(b.and_(self.start, i64(127)), along)
            over = b.and_(self.absolute, b.icmp_unsigned(">=", inside, i64(128)))
            address = b.select(over, b.add(self.leading, b.and_(inside, i64(127))), b.add(self.start, along))
            self._put(b.add(b.mul(i, self.further), number), b.add(address, before), beyond)
            return []

        return self.c.loop(self.further, 1, [], piece)

    def depth(self, k: Any, _: list[Any]) -> list[Any]:
        b = self.b
        before = b.add(self.start, self._rows_at(k, b.select(self.plain, self.leading, self.stride)))
        pieces, slabs = b.lshr(self.span, i64(4)), b.select(self.plain, self.stride, self.leading)

        def piece(number: Any, _: list[Any]) -> list[Any]:
            at, beyond = self._within(number)
            slab = b.mul(b.udiv(at, pieces), slabs)
            address = b.add(b.add(before, slab), b.shl(b.urem(at, pieces), i64(4)))
            self._put(b.add(b.mul(k, self.count), number), address, beyond)
            return []

        return self.c.loop(self.count, 1, [], piece)

    def _within(self, number: Any) -> tuple[Any, Any]:
        """A place along the lines in its own block, and whether that is the other one."""
        b = self.b
        at = b.select(b.icmp_unsigned("<", number, self.end), number, self.end)
        beyond = b.icmp_unsigned(">=", at, self.half)
        return b.sub(at, b.select(beyond, self.half, i64(0))), beyond

    def _rows_at(self, number: Any, distance: Any) -> Any:
        """The bytes before a row."""
        b = self.b
        inner = b.and_(number, b.sub(b.shl(i64(1), self.rows), i64(1)))
        return b.add(b.mul(b.lshr(number, self.rows), distance), b.mul(inner, self.span))

    def _put(self, number: Any, address: Any, beyond: Any) -> None:
        """Write the address of a piece, and the bounds of all."""
        b, code = self.b, self.c
        address = b.xor(address, b.shl(b.and_(b.lshr(address, i64(7)), self.mask), self.low))
        for at, sign in ((0, "<"), (8, ">")):
            place = code.at(self.bounds, at)
            old = code.load(place, i64, 8)
            code.store(b.select(b.icmp_unsigned(sign, address, old), address, old), place, 8)
        address = b.add(address, b.select(beyond, self.delta, i64(0)))
        code.store(b.trunc(address, i32), code.at(self.to, b.shl(number, i64(2))))
