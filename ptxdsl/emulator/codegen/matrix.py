"""mma and wmma.mma: a product of fragments, in vectors over the lanes.

Every element of an operand lies at a lane and in a register that the layout fixes, so a step of the product is two
shuffles with constant lanes and one fma. The order is ours, for PTX leaves it open: products are exact, and are added
to the accumulator one after the other, k ascending, each sum rounded to f32. Those of integers are exact in any order.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from llvmlite import ir

from ...isa.fragments import ELEMENT_BITS, Place, layout
from ..semantics.lanes import Bits
from ..machine.layout import LANES
from ..instructions.matrix import MatrixProduct
from ..semantics.formats import FORMATS, widen
from .handler import Handler, i16, i32, i64, lanes_of
from .data import put, slots_of, source
from .registry import emits
from .warp import Members

floats, halves, words, shorts = (lanes_of(kind) for kind in (ir.FloatType(), ir.HalfType(), i32, i16))
doubles, longs = lanes_of(ir.DoubleType()), lanes_of(i64)
_NAN = 0x7FFFFFFF
_INTEGERS = {"s8": (8, True), "u8": (8, False), "s4": (4, True), "u4": (4, False)}


class _Operands:
    """The elements of a and b as vectors of what is multiplied, each made once."""

    def __init__(self, h: Handler, shape: str, kinds: tuple[str, str], a: list[Any], b: list[Any]) -> None:
        self.h, self.kinds, self.registers = h, dict(zip("ab", kinds)), {"a": a, "b": b}
        self.layouts = {name: layout(shape, name, ELEMENT_BITS[kind]) for name, kind in self.kinds.items()}
        self._parts: dict[tuple[str, int, int], Any] = {}
        self._moved: dict[Any, Any] = {}

    @cached_property
    def steps(self) -> range:
        """The columns of a to multiply; of single bits a word at a time."""
        return range(0, self.layouts["a"].columns, 32 if self.kinds["a"] == "b1" else 1)

    def element(self, name: str, places: list[tuple[int, int]]) -> Any:
        """In each lane the element of a or b at a (row, column)."""
        owners = [self.layouts[name].owner(*place) for place in places]
        register, part = owners[0][1:]
        lanes = tuple(lane for lane, *_ in owners)
        key = (name, register, part, lanes)
        if key not in self._moved:
            value = self._part(name, register, part)
            self._moved[key] = self.h.ir.shuffle_vector(value, value, ir.Constant(words, list(lanes)))
        return self._moved[key]

    def _part(self, name: str, register: int, part: int) -> Any:
        key = (name, register, part)
        if key not in self._parts:
            self._parts[key] = widened(self.h, self.registers[name][register], part, self.kinds[name])
        return self._parts[key]


def widened(h: Handler, word: Any, part: int, kind: str) -> Any:
    """An element of a register as what is multiplied: f32, f64 or a 32-bit integer."""
    if kind == "b1":
        return word
    if kind == "f64":
        return h.ir.bitcast(word, doubles)
    if kind == "tf32":
        return h.ir.bitcast(h.ir.and_(word, h.splat(h.i32(-0x2000))), floats)
    if kind in _INTEGERS:
        bits, signed = _INTEGERS[kind]
        up = h.ir.shl(word, h.splat(h.i32(32 - bits * (part + 1))))
        return (h.ir.ashr if signed else h.ir.lshr)(up, h.splat(h.i32(32 - bits)))
    if kind == "bf16":
        bits = h.ir.and_(word, h.splat(h.i32(-0x10000))) if part else h.ir.shl(word, h.splat(h.i32(16)))
        return h.ir.bitcast(bits, floats)
    code = h.ir.lshr(word, h.splat(h.i32(part * ELEMENT_BITS[kind]))) if part else word
    if kind == "f16":
        return h.ir.fpext(h.ir.bitcast(h.ir.trunc(code, shorts), halves), floats)
    code = h.ir.trunc(code, lanes_of(ir.IntType(8)))
    return widen(Bits(h.numbers(LANES), code, 8), FORMATS[kind]).value


@emits(MatrixProduct)
def matrix_product(h: Handler, op: MatrixProduct) -> None:
    group = Members(h, op.guard, op.masked)
    slots = slots_of(h, op.d)
    a, b = ([source(h, x, LANES) for x in classes] for classes in (op.a, op.b))
    operands = _Operands(h, op.shape, op.types, a, b)
    before = [source(h, x, LANES) for x in op.c]
    group.check(op.members)
    group.check_whole()
    sums = {
        place: _sum(h, operands, op.shape, place, before, op.addend, op.variant)
        for place in _places(op.shape, op.result)
    }
    words_of: dict[int, Any] = {}
    for place, value in sums.items():
        words_of[place.register] = _joined(h, words_of.get(place.register), place, value, op.result)
    for number, slot in enumerate(slots):
        if slot is not None:
            put(h, slot, words_of[number], group.mask_for_put)
    h.next()


def _places(size: str, kind: str) -> tuple[Place, ...]:
    return layout(size, "c", 16 if kind == "f16" else 32).places


def _sum(
    h: Handler, operands: _Operands, size: str, place: Place, before: list[Any], addend: str, variant: str
) -> Any:
    """An element of the result in each lane: <32 x float>, <32 x double> or <32 x i32>."""
    start = next(p for p in _places(size, addend) if (p.row, p.column) == (place.row, place.column))
    word = before[start.register]
    rows = [place.row + lane // 4 for lane in range(LANES)]
    columns = [place.column + 2 * (lane % 4) for lane in range(LANES)]
    pairs = [
        (operands.element("a", [(row, k) for row in rows]), operands.element("b", [(k, column) for column in columns]))
        for k in operands.steps
    ]
    if addend == "s32":
        return _integer_sum(h, pairs, word, variant)
    wide = addend == "f64"
    total = widened(h, word, start.part, addend) if addend != "f32" else h.ir.bitcast(word, floats)
    for x, y in pairs:
        total = h.call(f"llvm.fma.v32f{64 if wide else 32}", doubles if wide else floats, x, y, total)
    return total


def _integer_sum(h: Handler, pairs: list[tuple[Any, Any]], start: Any, variant: str) -> Any:
    """The products alone stay within 32 bits, so it is the sum with the addend that wraps or is clamped."""
    total: Any = h.splat(h.i32(0))
    for x, y in pairs:
        if variant in ("xor", "and"):
            both = h.ir.xor(x, y) if variant == "xor" else h.ir.and_(x, y)
            part = h.call("llvm.ctpop.v32i32", words, both)
        else:
            part = h.ir.mul(x, y)
        total = h.ir.add(total, part)
    if variant == "satfinite":
        return h.call("llvm.sadd.sat.v32i32", words, total, start)
    return h.ir.add(total, start)


def _joined(h: Handler, word: Any, place: Place, value: Any, kind: str) -> Any:
    """The register of a result with this element in it."""
    if kind == "s32":
        return value
    if kind == "f64":
        return h.ir.bitcast(value, longs)
    odd = h.ir.fcmp_unordered("uno", value, value)
    if kind == "f32":
        return h.ir.select(odd, h.splat(h.i32(_NAN)), h.ir.bitcast(value, words))
    bits = h.ir.zext(h.ir.bitcast(h.ir.fptrunc(value, halves), shorts), words)
    bits = h.ir.select(odd, h.splat(h.i32(_NAN >> 16)), bits)
    if place.part:
        bits = h.ir.shl(bits, h.splat(h.i32(16)))
    return bits if word is None else h.ir.or_(word, bits)
