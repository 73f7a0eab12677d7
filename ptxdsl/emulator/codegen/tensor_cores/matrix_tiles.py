"""The numeric core of matrix instructions whose tiles lie in memory: panels of f32, and their products.

The product is a micro-kernel as in a BLAS: a block of vectors of d stays in machine registers over all of k, and each
step of k loads a few vectors of A and B for many multiply-adds. It takes what lanes hold of d as it lies in their
registers, so accumulators are never rearranged: A's panel is spread instead, once for all columns.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....isa.fragments import chunk_of
from ...instructions.tensor_cores.matrix_tiles import (
    GROUP, ScaledSum, SparseLines, TilePanel, TileProduct, WarpPanel, elements_of,
)
from ....machine_code.host import described
from ...semantics.formats import FORMATS, widen
from ...semantics.lanes import Bits, Lanes
from ..handler import byte, i16, i32, i64
from ..registry import builds
from ..routine_code import RoutineCode

__all__ = ["integers", "parts", "repeated", "vector", "widened"]

f32 = ir.FloatType()
vector = ir.VectorType(f32, GROUP)
integers = ir.VectorType(i32, GROUP)
_PAIRS = [line for eight in (0, 8) for odd in (0, 1) for line in range(eight + odd, eight + 8, 2)]


# ---------------------------------------------------------------------------------------------------------------------
# Products


@builds(TileProduct)
def tile_product(module: ir.Module, name: str, key: TileProduct) -> None:
    code = RoutineCode(module, name, 5 + key.sparse, 0)
    d, offsets, a, b, place, *lines = code.function.args
    by_a, by_b, depth, pitch_a, pitch_b, fresh = (code.load(code.at(place, 8 * n), i64, 8) for n in range(6))
    rows, columns = _block(key)
    clear = code.ir.icmp_unsigned("!=", fresh, i64(0))
    wide_a, wide_b = ({"vector": 64, "quad": 16, "one": 4}[side] for side in (key.left, key.right))

    def block(i: Any, j: Any) -> None:
        left, right = code.at(a, code.ir.mul(i, i64(wide_a))), code.at(b, code.ir.mul(j, i64(wide_b)))
        places = []
        for row in range(rows):
            line = code.ir.add(code.ir.mul(code.ir.add(i, i64(row)), by_b), j)
            first = code.at(offsets, code.ir.shl(line, i64(2)))
            found = [code.load(code.at(first, 4 * column), i32) for column in range(columns)]
            places += [code.at(d, code.ir.sext(offset, i64)) for offset in found]
        kind = vector if key.products == "reals" else integers
        zero = ir.Constant(kind, None)
        before = [code.ir.select(clear, zero, code.load(place, kind)) for place in places]
        starts = [ir.Constant(vector, None)] * len(before) if key.products == "integers" else before

        per = 4 if key.left == "vector" else 1  # rows of a vector of d
        begin = code.at(lines[0], code.ir.mul(i, i64(4 * per))) if key.sparse else right
        further = code.ir.mul(by_a, i64(4 * per)) if key.sparse else pitch_b

        def step(_: Any, values: list[Any]) -> list[Any]:
            x, y, *totals = values
            lefts = [_spread(code, code.at(x, wide_a * row), key.left) for row in range(rows)]
            if key.sparse:
                meets = [_met(code, key, right, code.at(y, 4 * per * row), columns) for row in range(rows)]
            else:
                meets = [[_spread(code, code.at(y, wide_b * column), key.right) for column in range(columns)]] * rows
            pairs = [(one, other) for one, others in zip(lefts, meets) for other in others]
            sums = [_added(code, key, *pair, total) for pair, total in zip(pairs, totals)]
            return [code.at(x, pitch_a), code.at(y, further), *sums]

        totals = code.loop(depth, 1, [left, begin, *starts], step)[2:]
        if key.products == "integers":
            totals = [code.ir.add(code.ir.fptosi(total, integers), old) for total, old in zip(totals, before)]
        for place, total in zip(places, totals):
            code.store(total, place)

    def row(i: Any, _: list[Any]) -> list[Any]:
        def column(j: Any, _: list[Any]) -> list[Any]:
            block(i, j)
            return []

        return code.loop(by_b, columns, [], column)

    code.loop(by_a, rows, [], row)
    code.ir.ret_void()


def _added(code: RoutineCode, key: TileProduct, left: Any, right: Any, total: Any) -> Any:
    call = Lanes(code.ir, 1).call
    if key.products == "words":
        return code.ir.add(code.ir.mul(*(code.ir.fptosi(each, integers) for each in (left, right))), total)
    if key.products != "bits":
        return call("llvm.fma.v16f32", vector, left, right, total)
    both = code.ir.and_(code.ir.bitcast(left, integers), code.ir.bitcast(right, integers))
    return code.ir.add(call("llvm.ctpop.v16i32", integers, both), total)


def _met(code: RoutineCode, key: TileProduct, right: Any, place: Any, columns: int) -> list[Any]:
    """Of the rows of a vector of d the elements of B that theirs of a sparse A meet."""
    if key.left == "one":
        line = code.at(right, code.ir.zext(code.load(place, i32), i64))
        return [code.load(code.at(line, 64 * column), vector, 64) for column in range(columns)]
    lines = [code.at(right, code.ir.zext(code.load(code.at(place, 4 * row), i32), i64)) for row in range(4)]
    four = ir.VectorType(f32, 4)
    return [_joined(code, [code.load(code.at(line, 16 * n), four, 16) for line in lines]) for n in range(columns)]


def _block(key: TileProduct) -> tuple[int, int]:
    """The vectors that are summed at a time: those of the key where a CPU has 32 registers of 512 bits for them."""
    if "+avx512f" in described()[2]:
        return key.rows, key.columns
    return 2 - key.rows % 2, 2 - key.columns % 2


def _spread(code: RoutineCode, place: Any, side: str) -> Any:
    if side == "vector":
        return code.load(place, vector, 64)
    if side == "quad":
        four = code.load(place, ir.VectorType(f32, 4), 16)
        return code.shuffle(four, four, list(range(4)) * 4)
    return code.splat(code.load(place, f32))


# ---------------------------------------------------------------------------------------------------------------------
# Panels


@builds(SparseLines)
def sparse_lines(module: ir.Module, name: str, key: SparseLines) -> None:
    code = RoutineCode(module, name, 2, 3)
    to, codes, groups, chunks, pitch = code.function.args
    size, b = chunk_of(key.bits), code.ir
    step = 2 if size == 8 else 1
    rows, every = b.mul(groups, i64(GROUP)), code.splat(b.trunc(pitch, i32))

    def place(chunk: Any, _: list[Any]) -> list[Any]:
        start = code.splat(b.mul(b.trunc(chunk, i32), i32(size)))

        def group(number: Any, _: list[Any]) -> list[Any]:
            row = b.mul(number, i64(GROUP))
            mine = code.load(code.at(codes, b.add(b.mul(chunk, rows), row)), ir.VectorType(byte, GROUP), 1)
            word = b.zext(mine, integers)
            for kept in range(size // 2):
                low = 1 if size == 2 else 2 * (kept // step)
                index = b.and_(b.lshr(word, repeated(low)), repeated(min(3, size - 1)))
                k = b.add(b.add(b.mul(index, repeated(step)), repeated(kept % step)), start)
                line = b.add(b.mul(chunk, i64(size // 2)), i64(kept))
                code.store(b.mul(k, every), code.at(to, b.shl(b.add(b.mul(line, rows), row), i64(2))))
            return []

        return code.loop(groups, 1, [], group)

    code.loop(chunks, 1, [], place)
    b.ret_void()


@builds(ScaledSum)
def scaled_sum(module: ir.Module, name: str, _: ScaledSum) -> None:
    code = RoutineCode(module, name, 6, 0)
    d, offsets, sums, left, right, sizes = code.function.args
    rows, vectors = (code.load(code.at(sizes, 8 * n), i64, 8) for n in range(2))
    b, reals = code.ir, ir.VectorType(ir.DoubleType(), GROUP)

    def row(i: Any, _: list[Any]) -> list[Any]:
        scale = code.splat(code.load(code.at(left, b.shl(i, i64(3))), ir.DoubleType(), 8))

        def column(j: Any, _: list[Any]) -> list[Any]:
            at = b.add(b.mul(i, vectors), j)
            place = code.at(d, b.sext(code.load(code.at(offsets, b.shl(at, i64(2))), i32), i64))
            inner = b.fpext(code.load(code.at(sums, b.shl(at, i64(6))), vector), reals)
            both = b.fmul(scale, code.load(code.at(right, b.shl(j, i64(7))), reals, 8))
            total = Lanes(b, 1).call("llvm.fma.v16f64", reals, inner, both, b.fpext(code.load(place, vector), reals))
            code.store(b.fptrunc(total, vector), place)
            return []

        return code.loop(vectors, 1, [], column)

    code.loop(rows, 1, [], row)
    b.ret_void()


@builds(TilePanel)
def tile_panel(module: ir.Module, name: str, key: TilePanel) -> None:
    code = RoutineCode(module, name, 3, 3)
    to, base, offsets, groups, pieces, pitch = code.function.args
    size = elements_of(key.element)
    order = _PAIRS if key.order == "pairs" else list(range(GROUP))
    width = 4 * GROUP * (4 if key.order == "spread" else 1)

    def place_of(number: Any) -> Any:
        at = code.load(code.at(offsets, code.ir.shl(number, i64(2))), i32)
        return code.at(base, code.ir.zext(at, i64))

    def by_lines(group: Any, number: Any) -> None:
        """Pieces of 16 lines: their elements are transposed."""
        first = code.ir.mul(group, i64(GROUP))
        lines = [code.ir.add(first, i64(line)) for line in order]
        places = [place_of(code.ir.add(code.ir.mul(line, pieces), number)) for line in lines]
        k = code.ir.mul(number, i64(size))
        place = code.at(to, code.ir.add(code.ir.mul(group, i64(width)), code.ir.mul(k, pitch)))
        for further, value in enumerate(_fields(code, _transposed(code, places), key.element)):
            _put(code, value, code.at(place, code.ir.mul(pitch, i64(further))), key.order)

    def by_depth(group: Any, k: Any) -> None:
        """Pieces of one k: 16 lines lie in one or more of them."""
        per = max(1, GROUP // size)
        first = code.ir.add(code.ir.mul(k, code.ir.mul(groups, i64(per))), code.ir.mul(group, i64(per)))
        places = [place_of(code.ir.add(first, i64(number))) for number in range(per)]
        value = _joined(code, [_elements(code, place, key.element) for place in places])
        if key.order == "pairs":
            value = code.shuffle(value, value, _PAIRS)
        _put(code, value, code.at(to, code.ir.add(code.ir.mul(group, i64(width)), code.ir.mul(k, pitch))), key.order)

    def group(number: Any, _: list[Any]) -> list[Any]:
        def inner(at: Any, _: list[Any]) -> list[Any]:
            (by_lines if key.major == "k" else by_depth)(number, at)
            return []

        return code.loop(pieces, 1, [], inner)

    code.loop(groups, 1, [], group)
    code.ir.ret_void()


@builds(WarpPanel)
def warp_panel(module: ir.Module, name: str, key: WarpPanel) -> None:
    """A lane of a quad has a run of k; in a spread panel all four lanes have each k."""
    code = RoutineCode(module, name, 3, 1)
    to, registers, offsets, pitch = code.function.args
    run = elements_of(key.element) // 4
    for register in range(4):
        along, half = divmod(register, 2)
        slot = code.at(registers, code.ir.sext(code.load(code.at(offsets, 4 * register), i32), i64))
        for eight in range(2):
            word = code.load(code.at(slot, 64 * eight), integers)
            for part, value in enumerate(parts(code, word, key.element)):
                for t in range(4):
                    k = code.ir.mul(pitch, i64(4 * run * along + run * t + part))
                    spread = code.shuffle(value, value, [lane // 4 * 4 + t for lane in range(GROUP)])
                    code.store(spread, code.at(to, code.ir.add(k, i64(64 * (2 * half + eight)))), 64)
    code.ir.ret_void()


def parts(code: RoutineCode, word: Any, kind: str) -> list[Any]:
    """The elements of a word."""
    count = elements_of(kind) // 4
    return _fields(code, [word] * 4, kind)[:count]


def _put(code: RoutineCode, value: Any, place: Any, order: str) -> None:
    if order != "spread":
        code.store(value, place, 64)
        return
    for four in range(4):
        mask = [4 * four + lane // 4 for lane in range(GROUP)]
        code.store(code.shuffle(value, value, mask), code.at(place, 64 * four), 64)


def _joined(code: RoutineCode, parts: list[Any]) -> Any:
    """Vectors one after the other as one."""
    while len(parts) > 1:
        count = parts[0].type.count
        parts = [code.shuffle(a, b, list(range(2 * count))) for a, b in zip(parts[::2], parts[1::2])]
    return parts[0]


def _transposed(code: RoutineCode, places: list[Any]) -> list[Any]:
    """Of 16 pieces of 4 words the first words, the second ones, and so on.

    A vector takes every fourth piece, so that the rest are exchanges within 128 bits.
    """
    pieces = [code.load(place, ir.VectorType(i32, 4), 16) for place in places]
    a, b, c, d = (_joined(code, pieces[n::4]) for n in range(4))

    def within(left: Any, right: Any, mask: tuple[int, ...]) -> Any:
        return code.shuffle(left, right, [at + 4 * four + (12 if at > 3 else 0) for four in range(4) for at in mask])

    low, high, first, last = (0, 4, 1, 5), (2, 6, 3, 7), (0, 1, 4, 5), (2, 3, 6, 7)
    halves = [(within(a, b, mask), within(c, d, mask)) for mask in (low, high)]
    return [within(*pair, mask) for pair in halves for mask in (first, last)]


def _fields(code: RoutineCode, words: list[Any], kind: str) -> list[Any]:
    """The elements of pieces as f32, whose words stand side by side."""
    size, b = elements_of(kind), code.ir
    bits = _BITS.get(kind, 128 // size)
    if kind == "b1":
        return [b.bitcast(word, vector) for word in words]
    if kind == "tf32":
        return [b.bitcast(b.and_(word, repeated(-0x2000)), vector) for word in words]
    if kind == "bf16":
        both = [(b.shl(word, repeated(16)), b.and_(word, repeated(-0x10000))) for word in words]
        return [b.bitcast(half, vector) for pair in both for half in pair]
    found = []
    for at in range(0, size * bits, bits):
        word, shift = words[at // 32], at % 32
        if kind == "s8":
            whole = b.ashr(b.shl(word, repeated(24 - shift)), repeated(24))
            found.append(b.sitofp(whole, vector))
            continue
        field = b.lshr(word, repeated(shift)) if shift else word
        if shift + bits > 32:
            field = b.or_(field, b.shl(words[at // 32 + 1], repeated(32 - shift)))
        found.append(widened(code, field, kind))
    return found


_BITS = {"e2m1": 4, "e2m1x": 4, "e3m2": 6, "e2m3": 6}


def repeated(value: int) -> ir.Constant:
    return ir.Constant(integers, [value] * GROUP)


def widened(code: RoutineCode, field: Any, kind: str) -> Any:
    """An element in the lowest bits of a word as f32; the bits above do not count."""
    b = code.ir
    if kind == "f16":
        short = b.trunc(field, ir.VectorType(i16, GROUP))
        return b.fpext(b.bitcast(short, ir.VectorType(ir.HalfType(), GROUP)), vector)
    if kind == "u8":
        return b.sitofp(b.and_(field, repeated(0xFF)), vector)
    if kind == "ti16":
        return _signed_magnitude(code, field)
    value = Bits(Lanes(b, GROUP), field, 32)
    return widen(value.trunc(8) if kind == "e5m2" else value, FORMATS[kind.rstrip("x")]).value


def _signed_magnitude(code: RoutineCode, words: Any) -> Any:
    """Numbers of 11 bits and a sign in bit 15; the bits above do not count."""
    b = code.ir
    size = b.and_(words, ir.Constant(words.type, [0x7FF] * words.type.count))
    minus = b.icmp_signed("!=", b.and_(words, ir.Constant(words.type, [0x8000] * words.type.count)), words.type(None))
    return b.sitofp(b.select(minus, b.neg(size), size), ir.VectorType(f32, words.type.count))


def _elements(code: RoutineCode, place: Any, kind: str) -> Any:
    """The elements of a 16-byte piece as f32."""
    size = elements_of(kind)
    result = ir.VectorType(f32, size)
    if kind == "tf32":
        words = code.load(place, ir.VectorType(i32, size))
        return code.ir.bitcast(code.ir.and_(words, ir.Constant(words.type, [-0x2000] * size)), result)
    if kind == "f16":
        return code.ir.fpext(code.load(place, ir.VectorType(ir.HalfType(), size)), result)
    if kind == "bf16":
        wide = code.ir.zext(code.load(place, ir.VectorType(i16, size)), ir.VectorType(i32, size))
        return code.ir.bitcast(code.ir.shl(wide, ir.Constant(wide.type, [16] * size)), result)
    if kind == "ti16":
        wide = code.ir.zext(code.load(place, ir.VectorType(i16, size)), ir.VectorType(i32, size))
        return _signed_magnitude(code, wide)
    bytes_ = code.load(place, ir.VectorType(byte, 16))
    if kind in ("s8", "u8"):
        wide = (code.ir.sext if kind == "s8" else code.ir.zext)(bytes_, integers)
        return code.ir.sitofp(wide, result)
    bits = _BITS.get(kind, 8)
    if bits < 8:  # the two bytes in which each lies
        at = [bits * number for number in range(size)]
        picked = [byte_ for bit in at for byte_ in (bit // 8, min(15, bit // 8 + 1))]
        pairs = code.ir.bitcast(code.shuffle(bytes_, bytes_, picked), ir.VectorType(i16, size))
        codes = code.ir.lshr(pairs, ir.Constant(pairs.type, [bit % 8 for bit in at]))
    else:
        codes = bytes_
    lanes = Lanes(code.ir, size)
    wide = codes if kind == "e5m2" else code.ir.zext(codes, ir.VectorType(i32, size))
    return widen(Bits(lanes, wide, 8 if kind == "e5m2" else 32), FORMATS[kind.rstrip("x")]).value
