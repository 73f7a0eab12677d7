"""What a matrix product multiplies: the elements of its fragments, in vectors over the lanes.

Every element lies at a lane and in a register that the layout fixes, so an element for each lane is one shuffle with
constant lanes, or a few where the lanes take it from several registers.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from llvmlite import ir

from ....isa.fragments import Layout, QuadPairs, layout
from ...instructions.tensor_cores.matrix import MatrixProduct
from ...machine.layout import LANES
from ...semantics.formats import FORMATS, widen
from ...semantics.lanes import Bits
from ..handler import Handler, i16, i32, i64, lanes_of

__all__ = ["Elements", "accumulator", "doubles", "floats", "longs", "moved", "widened", "words"]

floats, halves, words, shorts = (lanes_of(kind) for kind in (ir.FloatType(), ir.HalfType(), i32, i16))
doubles, longs = lanes_of(ir.DoubleType()), lanes_of(i64)
_INTEGERS = {"s8": (8, True), "u8": (8, False), "s4": (4, True), "u4": (4, False)}
Places = list[tuple[int, int]]


def accumulator(op: MatrixProduct, kind: str) -> Layout | QuadPairs:
    """The fragment of C or D, of elements of this type."""
    if op.orders:
        return QuadPairs("c16" if kind == "f16" else "c32", "")
    return layout(op.shape, "c", 16 if kind == "f16" else 32)


class Elements:
    """The elements of a, b and c as vectors of what is multiplied, each made once."""

    def __init__(self, h: Handler, op: MatrixProduct, a: list[Any], b: list[Any], c: list[Any]) -> None:
        self.h, self.op = h, op
        self.registers, self.kinds = {"a": a, "b": b, "c": c}, {"a": op.types[0], "b": op.types[1], "c": op.addend}
        self.fragments: dict[str, Layout | QuadPairs] = {
            "a": QuadPairs("a", op.orders[0]) if op.orders else layout(op.shape, "a", op.bits),
            "b": QuadPairs("b", op.orders[1]) if op.orders else layout(op.shape, "b", op.bits),
            "c": accumulator(op, op.addend),
        }
        self._parts: dict[tuple[str, int, int], Any] = {}
        self._moved: dict[Any, Any] = {}

    @cached_property
    def steps(self) -> range:
        """The columns of a to multiply; of single bits a word at a time."""
        return range(0, self.fragments["a"].columns, 32 if self.kinds["a"] == "b1" else 1)

    def term(self, k: int, rows: list[int], columns: list[int]) -> tuple[Any, Any]:
        """In each lane what is multiplied for column ``k`` of A, for a row and column of D."""
        if self.op.orders:  # B's matrices lie side by side
            columns = [column + row // 8 * 8 for row, column in zip(rows, columns)]
        places = [(row, k) for row in rows], [(k, column) for column in columns]
        return self.element("a", places[0]), self.element("b", places[1])

    def element(self, name: str, places: Places) -> Any:
        """In each lane the element of a, b or c at a (row, column)."""
        owners = [self.fragments[name].owner(*place) for place in places]
        lanes = tuple(lane for lane, *_ in owners)
        found = None
        for register, part in sorted({owner[1:] for owner in owners}):
            value = self._shuffled((name, register, part), lanes)
            if found is not None:
                there = sum(1 << n for n, owner in enumerate(owners) if owner[1:] == (register, part))
                value = self.h.ir.select(self.h.bools(self.h.i32(there)), value, found)
            found = value
        return found

    def _shuffled(self, key: tuple[str, int, int], lanes: tuple[int, ...]) -> Any:
        if (key, lanes) not in self._moved:
            self._moved[key, lanes] = moved(self.h, self._part(*key), lanes)
        return self._moved[key, lanes]

    def _part(self, name: str, register: int, part: int) -> Any:
        key = (name, register, part)
        if key not in self._parts:
            self._parts[key] = widened(self.h, self.registers[name][register], part, self.kinds[name], self.op.bits)
        return self._parts[key]


def moved(h: Handler, value: Any, lanes: tuple[int, ...]) -> Any:
    """In each lane what another has."""
    if lanes == tuple(range(LANES)):
        return value
    return h.ir.shuffle_vector(value, value, ir.Constant(words, list(lanes)))


def widened(h: Handler, word: Any, part: int, kind: str, size: int) -> Any:
    """An element of a register as what is multiplied: f32, f64 or a 32-bit integer; ``size`` are the bits of FP4."""
    if kind in ("b1", "s32"):
        return word
    if kind in ("f64", "f32"):
        return h.ir.bitcast(word, doubles if kind == "f64" else floats)
    if kind == "tf32":
        return h.ir.bitcast(h.ir.and_(word, h.splat(h.i32(-0x2000))), floats)
    if kind in _INTEGERS:
        bits, signed = _INTEGERS[kind]
        up = h.ir.shl(word, h.splat(h.i32(32 - bits * (part + 1))))
        return (h.ir.ashr if signed else h.ir.lshr)(up, h.splat(h.i32(32 - bits)))
    if kind == "bf16":
        bits = h.ir.and_(word, h.splat(h.i32(-0x10000))) if part else h.ir.shl(word, h.splat(h.i32(16)))
        return h.ir.bitcast(bits, floats)
    low = part * 16 if kind == "f16" else part * size
    if kind == "e2m1" and size == 8:
        low += 2  # in the middle of the byte
    code = h.ir.lshr(word, h.splat(h.i32(low))) if low else word
    if kind == "f16":
        return h.ir.fpext(h.ir.bitcast(h.ir.trunc(code, shorts), halves), floats)
    value = Bits(h.numbers(LANES), code, 32)
    return widen(value.trunc(8) if kind == "e5m2" else value, FORMATS[kind]).value
