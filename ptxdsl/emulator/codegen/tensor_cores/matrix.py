"""mma and wmma.mma: a product of fragments, in vectors over the lanes.

The order is ours, for PTX leaves it open: products are exact, and are added to the accumulator one after the other, k
ascending, each sum rounded to f32; with scales the sum of a block is made first, and all of it in f64. Those of
integers are exact in any order. A sparse A, scales, FP6 and FP4 have loops
(:mod:`.matrix_loops`); the rest is unrolled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....isa.fragments import held
from ...instructions.tensor_cores.matrix import MatrixProduct
from ...machine.layout import LANES
from ...semantics.lanes import Lanes, Real
from ...semantics.rounding import directed_f64
from ..data import put, slots_of, source
from ..handler import Handler, i16, lanes_of
from .matrix_loops import LoopedProduct
from .matrix_operands import Elements, accumulator, doubles, longs, words
from ..registry import emits
from ..warp import Members

halves, shorts = lanes_of(ir.HalfType()), lanes_of(i16)
_NAN = 0x7FFFFFFF


@emits(MatrixProduct)
def matrix_product(h: Handler, op: MatrixProduct) -> None:
    group = Members(h, op.guard, op.masked)
    slots = slots_of(h, op.d)
    a, b, c, rest = ([source(h, x, LANES) for x in classes] for classes in (op.a, op.b, op.c, op.rest))
    narrow = not {"e3m2", "e2m3", "e2m1"}.isdisjoint(op.types)
    loops = LoopedProduct(h, op, a, b, c, rest) if rest or narrow else None
    group.check(op.members)
    group.check_whole()
    if loops is not None:
        loops.check()
        sums = loops.results()
    else:
        elements = Elements(h, op, a, b, c)
        sums = {place: _sum(h, op, elements, at) for place, at in held(accumulator(op, op.result)).items()}
    words_of: dict[int, Any] = {}
    for (register, part), value in sums.items():
        words_of[register] = _joined(h, words_of.get(register), part, value, op.result)
    for number, slot in enumerate(slots):
        if slot is not None:
            put(h, slot, words_of[number], group.mask_for_put)
    h.next()


def _sum(h: Handler, op: MatrixProduct, elements: Elements, places: tuple[tuple[int, int], ...]) -> Any:
    """An element of the result in each lane: <32 x float>, <32 x double> or <32 x i32>."""
    rows, columns = [row for row, _ in places], [column for _, column in places]
    start = elements.element("c", list(places))
    pairs = [elements.term(k, rows, columns) for k in elements.steps]
    if op.addend == "s32":
        return _integer_sum(h, pairs, start, op.variant)
    return _chain(h, pairs, start, op.variant)


def _chain(h: Handler, pairs: list[tuple[Any, Any]], total: Any, mode: str) -> Any:
    """The products added to ``total`` one after the other."""
    kind = total.type
    for x, y in pairs:
        if mode:
            total = h.ir.call(_directed(h, mode), [x, y, total])
        else:
            total = h.call(f"llvm.fma.v32f{64 if kind == doubles else 32}", kind, x, y, total)
    return total


def _directed(h: Handler, mode: str) -> ir.Function:
    """A function that multiplies and adds f64 in a rounding direction: it is long, and called for each product."""
    name = f"fma.{mode}"
    function = h.ir.module.globals.get(name)
    if function is None:
        function = ir.Function(h.ir.module, ir.FunctionType(doubles, [doubles] * 3), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        builder = ir.IRBuilder(function.append_basic_block())
        lanes = Lanes(builder, LANES)
        builder.ret(directed_f64("fma", [Real(lanes, value, 64) for value in function.args], mode).value)
    return function


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


def _joined(h: Handler, word: Any, part: int, value: Any, kind: str) -> Any:
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
    if part:
        bits = h.ir.shl(bits, h.splat(h.i32(16)))
    return bits if word is None else h.ir.or_(word, bits)
