"""The handler of mma and wmma.mma on f16 and bf16: a product of fragments, in vectors over the lanes.

Every element of an operand lies at a lane and in a register that the layout fixes, so a step of the product is two
shuffles with constant lanes and one fma. The order is ours, for PTX leaves it open: products are exact, and are added
to the accumulator one after the other, k ascending, each sum rounded to f32.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from llvmlite import ir

from ...isa.fragments import LAYOUTS, Place
from ..layout import LANES
from ..library import Shape
from .base import Handler, i16, i32, lanes_of
from .data import put, source
from .warp import Members

__all__ = ["product"]

floats, halves, words, shorts = (lanes_of(kind) for kind in (ir.FloatType(), ir.HalfType(), i32, i16))
_NAN = 0x7FFFFFFF


class _Operands:
    """The elements of a and b as vectors of f32, each made once."""

    def __init__(self, h: Handler, shape: str, kind: str, a: list[Any], b: list[Any]) -> None:
        self.h, self.kind, self.registers = h, kind, {"a": a, "b": b}
        self.layouts = {name: LAYOUTS[shape, name, 16] for name in "ab"}
        self._parts: dict[tuple[str, int, int], Any] = {}
        self._moved: dict[Any, Any] = {}

    @cached_property
    def depth(self) -> int:
        return self.layouts["a"].columns

    def element(self, name: str, places: list[tuple[int, int]]) -> Any:
        """In each lane the element of a or b at a (row, column)."""
        owners = [self.layouts[name].owner(*place) for place in places]
        register, half = owners[0][1:]
        lanes = tuple(lane for lane, *_ in owners)
        key = (name, register, half, lanes)
        if key not in self._moved:
            part = self._part(name, register, half)
            self._moved[key] = self.h.ir.shuffle_vector(part, part, ir.Constant(words, list(lanes)))
        return self._moved[key]

    def _part(self, name: str, register: int, half: int) -> Any:
        key = (name, register, half)
        if key not in self._parts:
            self._parts[key] = widened(self.h, self.registers[name][register], half, self.kind)
        return self._parts[key]


def widened(h: Handler, word: Any, half: int, kind: str) -> Any:
    """One of the two f16 or bf16 in a word, as f32."""
    if kind == "bf16":
        bits = h.ir.and_(word, h.splat(h.i32(-0x10000))) if half else h.ir.shl(word, h.splat(h.i32(16)))
        return h.ir.bitcast(bits, floats)
    bits = h.ir.lshr(word, h.splat(h.i32(16))) if half else word
    return h.ir.fpext(h.ir.bitcast(h.ir.trunc(bits, shorts), halves), floats)


def product(module: ir.Module, name: str, shape: Shape) -> None:
    """("product", matrix shape, type of a and b, type of d and of c, class of each d, a, b, c, members, guard, ...)."""
    _, size, kind, results, addend, dests, a, b, c, members, guard, masked, codes = shape
    h = Handler(module, name, codes)
    group = Members(h, guard, masked)
    slots = [None if dest == "_" else h.slot() for dest in dests]
    operands = _Operands(h, size, kind, [source(h, x, LANES) for x in a], [source(h, x, LANES) for x in b])
    before = [source(h, x, LANES) for x in c]
    group.check(members)
    sums = {place: _sum(h, operands, size, place, before, addend) for place in _places(size, results)}
    words_of: dict[int, Any] = {}
    for place, value in sums.items():
        words_of[place.register] = _joined(h, words_of.get(place.register), place, value, results)
    for number, slot in enumerate(slots):
        if slot is not None:
            put(h, slot, words_of[number], group.mask_for_put)
    h.next()


def _places(size: str, kind: str) -> tuple[Place, ...]:
    return LAYOUTS[size, "c", 32 if kind == "f32" else 16].places


def _sum(h: Handler, operands: _Operands, size: str, place: Place, before: list[Any], addend: str) -> Any:
    """An element of the result in each lane, <32 x float>."""
    start = next(p for p in _places(size, addend) if (p.row, p.column) == (place.row, place.column))
    word = before[start.register]
    total = h.ir.bitcast(word, floats) if addend == "f32" else widened(h, word, start.half, "f16")
    rows = [place.row + lane // 4 for lane in range(LANES)]
    columns = [place.column + 2 * (lane % 4) for lane in range(LANES)]
    for k in range(operands.depth):
        x = operands.element("a", [(row, k) for row in rows])
        y = operands.element("b", [(k, column) for column in columns])
        total = h.call("llvm.fma.v32f32", floats, x, y, total)
    return total


def _joined(h: Handler, word: Any, place: Place, value: Any, kind: str) -> Any:
    """The register of a result with this element in it."""
    odd = h.ir.fcmp_unordered("uno", value, value)
    if kind == "f32":
        return h.ir.select(odd, h.splat(h.i32(_NAN)), h.ir.bitcast(value, words))
    bits = h.ir.zext(h.ir.bitcast(h.ir.fptrunc(value, halves), shorts), words)
    bits = h.ir.select(odd, h.splat(h.i32(_NAN >> 16)), bits)
    if place.half:
        bits = h.ir.shl(bits, h.splat(h.i32(16)))
    return bits if word is None else h.ir.or_(word, bits)
