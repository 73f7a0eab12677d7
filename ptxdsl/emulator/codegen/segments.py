"""Accesses whose lanes lie in known places from one host address on: in segments, or all within a few cache lines."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.layout import LANES
from .access import Access
from .gathers import concat
from .handler import Handler, byte, i1, i32, lanes_of, undefined

__all__ = ["as_pointer", "in_lanes", "interleaved", "segments", "spread", "store_segments", "store_spread", "strided"]

PIECE = 16
"""Bytes that lie within a cache line in arrays of numpy, which are aligned to as many."""


def as_pointer(h: Handler, address: Any, kind: ir.Type) -> Any:
    """A host address as a pointer to such a value."""
    return h.ir.inttoptr(address, kind.as_pointer())


def segments(h: Handler, access: Access, host: Any, bits: int, count: int) -> list[Any]:
    """One host load a segment of equal or contiguous lanes."""
    element = ir.IntType(bits)
    if access.pattern is None and access.kind.affine:
        return _picked(h, access, host, bits, count)
    if access.pattern is None:
        return [h.splat(h.load(as_pointer(h, host, byte), n * bits // 8, element, bits // 8)) for n in range(count)]
    letter, lanes = access.pattern
    parts: list[list[Any]] = []
    for start in access.starts(host)[: -(-h.present // lanes)]:
        place = as_pointer(h, start, byte)
        if letter == "b":
            numbers = [h.load(place, n * bits // 8, element, bits // 8) for n in range(count)]
            parts.append([spread(h, number, lanes) for number in numbers])
        else:
            whole = _contiguous(h, place, element, lanes * count, access.nbytes)
            parts.append([strided(h, whole, n, count, lanes) for n in range(count)])
    return [in_lanes(h, [part[n] for part in parts]) for n in range(count)]


class _VolatileLoad(ir.instructions.LoadInstr):  # type: ignore[misc]
    """A load that LLVM makes as it is."""

    def descr(self, buf: list[str]) -> None:
        text: list[str] = []
        super().descr(text)
        buf.append("".join(text).replace("load ", "load volatile ", 1))


def _contiguous(h: Handler, place: Any, element: ir.Type, count: int, align: int) -> Any:
    """So many elements as one load; in pieces that LLVM keeps apart where that is better."""
    size = PIECE * 8 // element.width
    if not h.loads_pieces or count <= size or count & (count - 1):
        return h.load(place, 0, ir.VectorType(element, count), align)
    kind, pieces = ir.VectorType(element, size), []
    for number in range(count // size):
        piece = _VolatileLoad(h.ir.block, h.ir.bitcast(h.add(place, number * PIECE), kind.as_pointer()))
        piece.align = align
        h.ir._insert(piece)
        pieces.append(piece)
    return concat(h, pieces)


def _picked(h: Handler, access: Access, host: Any, bits: int, count: int) -> list[Any]:
    """All elements from the lowest lane's to the highest's, of which each lane picks its own."""
    places = access.elements(bits)
    size = max(places) + count
    whole = h.load(as_pointer(h, host, byte), 0, ir.VectorType(ir.IntType(bits), size), access.nbytes)
    orders = [[place + n for place in places] for n in range(count)]
    return [h.ir.shuffle_vector(whole, whole, ir.Constant(lanes_of(i32), order)) for order in orders]


def spread(h: Handler, value: Any, lanes: int) -> Any:
    kind = ir.VectorType(value.type, lanes)
    first = h.ir.insert_element(undefined(kind), value, h.i32(0))
    return h.ir.shuffle_vector(first, first, ir.Constant(ir.VectorType(i32, lanes), None))


def strided(h: Handler, whole: Any, first: int, count: int, lanes: int) -> Any:
    if count == 1:
        return whole
    order = [first + lane * count for lane in range(lanes)]
    return h.ir.shuffle_vector(whole, whole, ir.Constant(ir.VectorType(i32, lanes), order))


def in_lanes(h: Handler, parts: list[Any]) -> Any:
    """Segments of lanes as one vector; lanes behind them, which the block does not have, hold anything."""
    lanes = parts[0].type.count
    if LANES % lanes == 0:
        return concat(h, parts + [parts[0]] * (LANES // lanes - len(parts)))
    whole: Any = None
    for number, part in enumerate(parts):
        first, last = number * lanes, (number + 1) * lanes
        order = [lane - first if first <= lane < last else 0 for lane in range(LANES)]
        wide = h.ir.shuffle_vector(part, part, ir.Constant(lanes_of(i32), order))
        blend = [lane if lane < first else LANES + lane for lane in range(LANES)]
        whole = wide if whole is None else h.ir.shuffle_vector(whole, wide, ir.Constant(lanes_of(i32), blend))
    return whole


def store_segments(h: Handler, access: Access, values: list[Any], host: Any, lanes: Any) -> None:
    count, width = len(values), access.pattern[1] if access.pattern else LANES
    starts = access.starts(host)[: h.present // width]
    parts = [interleaved(h, values, number * width, width) for number in range(len(starts))]
    with h.ir.if_else(h.whole(lanes)) as (then, otherwise):
        with then:
            for start, part in zip(starts, parts):
                h.store(part, as_pointer(h, start, byte), 0, access.nbytes)
        with otherwise:
            bools = h.bools(lanes)
            for number, (start, part) in enumerate(zip(starts, parts)):
                order = [number * width + lane // count for lane in range(width * count)]
                chosen = h.ir.shuffle_vector(bools, bools, ir.Constant(ir.VectorType(i32, len(order)), order))
                bits = part.type.element.width
                name = f"llvm.masked.store.v{part.type.count}i{bits}.p0"
                h.call(name, ir.VoidType(), part, as_pointer(h, start, byte), h.i32(bits // 8), chosen)


def interleaved(h: Handler, values: list[Any], first: int, lanes: int) -> Any:
    """Lanes ``first`` to ``first + lanes`` of the values as they lie in memory: a vector access interleaves them."""
    count = len(values)
    whole = concat(h, _padded(values))
    order = [value * LANES + first + lane for lane in range(lanes) for value in range(count)]
    return h.ir.shuffle_vector(whole, whole, ir.Constant(ir.VectorType(i32, len(order)), order))


def _padded(values: list[Any]) -> list[Any]:
    size = 1 << (len(values) - 1).bit_length()
    return values + [values[0]] * (size - len(values))


def store_spread(h: Handler, values: list[Any], host: Any, places: tuple[int, ...], align: int) -> None:
    """One store of all from the lowest lane's elements to the highest's, which leaves out what lies between them."""
    whole, count = concat(h, _padded(values)), len(values)
    order, there = ([0] * (max(places) + count) for _ in range(2))
    for lane, place in enumerate(places):
        for number in range(count):
            order[place + number], there[place + number] = number * LANES + lane, 1
    part = h.ir.shuffle_vector(whole, whole, ir.Constant(ir.VectorType(i32, len(order)), order))
    name = f"llvm.masked.store.v{len(order)}i{part.type.element.width}.p0"
    mask = ir.Constant(ir.VectorType(i1, len(there)), there)
    h.call(name, ir.VoidType(), part, as_pointer(h, host, byte), h.i32(align), mask)
