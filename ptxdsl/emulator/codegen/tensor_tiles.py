"""Code of what lays out the tiles of tcgen05: cells of tensor memory as panels, and the places of 16-byte pieces."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...isa.matrix_descriptors import (
    ABSOLUTE, ADDRESS, BASE_OFFSET, CONSTANT, LEADING, RESERVED, STRIDE, SWIZZLES, TENSOR_SWIZZLE, Bits as Field,
)
from ..instructions.tensor_tiles import COLUMN_BYTES, CellPanel, TilePlaces
from .handler import i32, i64
from .matrix_tiles import integers, parts, repeated, widened
from .registry import builds
from .routine_code import RoutineCode

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


def not_a_tile(b: Any, word: Any, swizzles: Any, line: Any, long: Any) -> Any:
    """Whether a descriptor is none of a tile, as ``matrix_descriptors.problem`` says; the numbers are of 64 bits."""

    def part(field: Field) -> Any:
        return b.shl(b.and_(b.lshr(word, i64(field.low)), i64((1 << field.width) - 1)), i64(field.unit))

    def nonzero(value: Any) -> Any:
        return b.icmp_unsigned("!=", value, i64(0))

    mode = part(TENSOR_SWIZZLE)

    def of_mode(numbers: dict[int, int]) -> Any:
        packed = sum(number << 8 * at for at, number in numbers.items())
        return b.and_(b.lshr(i64(packed), b.shl(mode, i64(3))), i64(0xFF))

    span, mask = (of_mode({n: each[at] for n, each in SWIZZLES.items()}) for at in range(2))
    period = b.shl(b.add(mask, i64(1)), i64(7))
    within = b.and_(part(ADDRESS), b.sub(period, i64(1)))
    absolute = nonzero(part(ABSOLUTE))
    length = b.select(absolute, i64(0), line)
    wide = b.icmp_unsigned(">", b.add(within, b.select(nonzero(length), length, i64(1))), span)
    bad = b.icmp_unsigned("!=", part(CONSTANT), i64(1))
    for each in (
        nonzero(b.and_(word, i64(RESERVED))), nonzero(part(BASE_OFFSET)), b.and_(absolute, b.not_(long)),
        b.not_(nonzero(b.and_(b.lshr(swizzles, mode), i64(1)))), b.and_(wide, nonzero(mask)),
    ):
        bad = b.or_(bad, each)
    return bad


@builds(TilePlaces)
def tile_places(module: ir.Module, name: str, key: TilePlaces) -> None:
    code = RoutineCode(module, name, 3, 3)
    to, sizes, bounds, word, delta, shift = code.function.args
    b = code.ir
    count, last, half, further, rows, per = (code.load(code.at(sizes, 8 * n), i64, 8) for n in range(6))
    end = b.add(last, b.lshr(b.add(shift, b.sub(b.shl(i64(1), per), i64(1))), per))

    def part(field: Field) -> Any:
        return b.shl(b.and_(b.lshr(word, i64(field.low)), i64((1 << field.width) - 1)), i64(field.unit))

    start, leading, stride, mode = part(ADDRESS), part(LEADING), part(STRIDE), part(TENSOR_SWIZZLE)
    plain, absolute = b.icmp_unsigned("==", mode, i64(0)), b.icmp_unsigned("!=", part(ABSOLUTE), i64(0))

    def of_mode(numbers: dict[int, int]) -> Any:
        packed = sum(number << 8 * at for at, number in numbers.items())
        return b.and_(b.lshr(i64(packed), b.shl(mode, i64(3))), i64(0xFF))

    span, mask, low = (of_mode({n: each[at] for n, each in SWIZZLES.items()}) for at in range(3))

    def put(number: Any, address: Any, beyond: Any) -> None:
        address = b.xor(address, b.shl(b.and_(b.lshr(address, i64(7)), mask), low))
        for at, sign in ((0, "<"), (8, ">")):
            place = code.at(bounds, at)
            old = code.load(place, i64, 8)
            code.store(b.select(b.icmp_unsigned(sign, address, old), address, old), place, 8)
        address = b.add(address, b.select(beyond, delta, i64(0)))
        code.store(b.trunc(address, i32), code.at(to, b.shl(number, i64(2))))

    def within(number: Any) -> tuple[Any, Any]:
        """A place along the lines in its own block, and whether that is the other one."""
        at = b.select(b.icmp_unsigned("<", number, end), number, end)
        beyond = b.icmp_unsigned(">=", at, half)
        return b.sub(at, b.select(beyond, half, i64(0))), beyond

    def rows_at(number: Any, distance: Any) -> Any:
        """The bytes before a row."""
        inner = b.and_(number, b.sub(b.shl(i64(1), rows), i64(1)))
        return b.add(b.mul(b.lshr(number, rows), distance), b.mul(inner, span))

    def line(i: Any, _: list[Any]) -> list[Any]:
        at, beyond = within(i)
        before = rows_at(at, stride)

        def piece(number: Any, _: list[Any]) -> list[Any]:
            along = b.mul(number, b.select(plain, leading, i64(16)))
            inside = b.add(b.and_(start, i64(127)), along)
            over = b.and_(absolute, b.icmp_unsigned(">=", inside, i64(128)))
            address = b.select(over, b.add(leading, b.and_(inside, i64(127))), b.add(start, along))
            put(b.add(b.mul(i, further), number), b.add(address, before), beyond)
            return []

        return code.loop(further, 1, [], piece)

    def depth(k: Any, _: list[Any]) -> list[Any]:
        before = b.add(start, rows_at(k, b.select(plain, leading, stride)))
        pieces, slabs = b.lshr(span, i64(4)), b.select(plain, stride, leading)

        def piece(number: Any, _: list[Any]) -> list[Any]:
            at, beyond = within(number)
            slab = b.mul(b.udiv(at, pieces), slabs)
            address = b.add(b.add(before, slab), b.shl(b.urem(at, pieces), i64(4)))
            put(b.add(b.mul(k, count), number), address, beyond)
            return []

        return code.loop(count, 1, [], piece)

    code.loop(*((count, 1, [], line) if key.major == "k" else (further, 1, [], depth)))
    b.ret_void()
