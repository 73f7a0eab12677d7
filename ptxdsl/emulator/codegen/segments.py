"""Accesses whose lanes lie in known places from one host address on: in segments, or all within a few cache lines."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.layout import LANES
from .access import Access
from .gathers import concat
from .handler import Handler, Lines, byte, i1, i32, i64, lanes_of, undefined

__all__ = [
    "LINE", "as_pointer", "in_lanes", "interleaved", "lines_of", "segments", "spread", "store_segments",
    "store_spread", "strided",
]

LINE = 64
"""Bytes of a cache line."""
WORDS = ir.VectorType(i32, LINE // 4)
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
        elif count == 1 and lanes & (lanes - 1):
            return [_row(h, place, element, lanes)]
        else:
            whole = _contiguous(h, place, element, lanes * count, access.nbytes)
            parts.append([strided(h, whole, n, count, lanes) for n in range(count)])
    return [in_lanes(h, [part[n] for part in parts]) for n in range(count)]


def _contiguous(h: Handler, place: Any, element: ir.Type, count: int, align: int) -> Any:
    """So many elements as one load; in pieces that LLVM keeps apart where that is better."""
    if h.lines is not None and element.width >= 32 and count * element.width % (8 * LINE) == 0:
        return concat(h, [_parted(h, h.add(place, at), element) for at in range(0, count * element.width // 8, LINE)])
    size = PIECE * 8 // element.width
    if not h.loads_pieces or count <= size or count & (count - 1):
        return h.load(place, 0, ir.VectorType(element, count), align)
    kind = ir.VectorType(element, size)
    return concat(h, [h.load_apart(place, number * PIECE, kind, align) for number in range(count // size)])


def _parted(h: Handler, place: Any, element: ir.Type) -> Any:
    """As many elements as a cache line has, of one line or of two."""
    lines, kind = h.lines, ir.VectorType(element, LINE * 8 // element.width)
    assert lines is not None
    with h.ir.if_else(lines.parts) as (then, otherwise):
        with then:
            start = h.add(place, h.ir.neg(lines.within))
            first, second = (h.load(start, at, WORDS, LINE) for at in (0, LINE))
            both = h.ir.bitcast(h.call("llvm.x86.avx512.vpermi2var.d.512", WORDS, first, lines.order, second), kind)
            one = h.ir.block
        with otherwise:
            whole, other = h.load(place, 0, kind, element.width // 8), h.ir.block
    found: Any = h.merged(one, [both], other, [whole])[0]
    return found


def lines_of(h: Handler, hosts: list[Any]) -> Lines:
    """How to load rows of a tile that begin at these host addresses, vectors of them.

    One load of what lies in two lines needs both in the first cache at a time. Rows that lie a power of two apart fall
    on the same few places there: the lines of some evict those of others that wait for their second, and are fetched
    again. Two loads of a line each do not wait for each other. They read nothing but lines with some of the row.
    """
    within = h.ir.and_(h.ir.extract_element(hosts[0], h.i32(0)), h.i64(LINE - 1))
    apart: Any = None
    for host in hosts:
        odd = h.ir.and_(h.ir.sub(host, _all(h, within, host.type)), _all(h, h.i64(LINE - 1), host.type))
        apart = odd if apart is None else h.ir.or_(apart, odd)
    alike = h.ir.icmp_unsigned("==", h.call(f"llvm.vector.reduce.or.v{apart.type.count}i64", i64, apart), h.i64(0))
    straddles = h.ir.icmp_unsigned("!=", within, h.i64(0))
    skipped = h.ir.lshr(h.ir.trunc(within, i32), h.i32(2))
    order = h.ir.add(spread(h, skipped, WORDS.count), ir.Constant(WORDS, list(range(WORDS.count))))
    return Lines(h.ir.and_(alike, straddles), within, order)


def _all(h: Handler, value: Any, kind: ir.VectorType) -> Any:
    return spread(h, value, kind.count)


def _picked(h: Handler, access: Access, host: Any, bits: int, count: int) -> list[Any]:
    """All elements from the lowest lane's to the highest's, of which each lane picks its own."""
    places, element = access.elements(bits), ir.IntType(bits)
    size, width = max(places) + count, LINE * 8 // bits
    place = as_pointer(h, host, byte)
    if size <= width:
        whole = h.load(place, 0, ir.VectorType(element, size), access.nbytes)
        orders = [[each + n for each in places] for n in range(count)]
        return [h.ir.shuffle_vector(whole, whole, ir.Constant(lanes_of(i32), order)) for order in orders]
    starts = [min(at, size - width) for at in range(0, size, width)]
    pieces = [h.load(place, at * bits // 8, ir.VectorType(element, width), access.nbytes) for at in starts]
    return [_of_pieces(h, pieces, starts, [each + n for each in places]) for n in range(count)]


def _of_pieces(h: Handler, pieces: list[Any], starts: list[int], order: list[int]) -> Any:
    """The elements of an order, of vectors that begin with these; LLVM is good at two vectors of one size at a time."""
    width = pieces[0].type.count
    lanes, parts = min(width, LANES), []
    kind = ir.VectorType(i32, lanes)
    for first in range(0, LANES, lanes):
        wanted, found = order[first : first + lanes], None
        for pair in range(0, len(pieces), 2):
            one, other = pair, min(pair + 1, len(pieces) - 1)
            chosen, here = [], []
            for at in wanted:
                in_one = starts[one] <= at < starts[one] + width
                in_other = starts[other] <= at < starts[other] + width
                chosen.append(at - starts[one] if in_one else width + at - starts[other] if in_other else 0)
                here.append(in_one or in_other)
            part = h.ir.shuffle_vector(pieces[one], pieces[other], ir.Constant(kind, chosen))
            if found is not None:
                blend = [lanes + lane if there else lane for lane, there in enumerate(here)]
                part = h.ir.shuffle_vector(found, part, ir.Constant(kind, blend))
            found = part
        parts.append(found)
    return concat(h, parts)


def spread(h: Handler, value: Any, lanes: int) -> Any:
    kind = ir.VectorType(value.type, lanes)
    first = h.ir.insert_element(undefined(kind), value, h.i32(0))
    return h.ir.shuffle_vector(first, first, ir.Constant(ir.VectorType(i32, lanes), None))


def _row(h: Handler, place: Any, element: ir.Type, lanes: int) -> Any:
    """So many contiguous lanes, no power of two: vectors of which the rest is not loaded."""
    kind = lanes_of(element)
    there = ir.Constant(lanes_of(i1), [int(lane < lanes) for lane in range(LANES)])
    name = f"llvm.masked.load.v{LANES}i{element.width}.p0"
    return h.call(name, kind, place, h.i32(element.width // 8), there, ir.Constant(kind, None))


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
    if count == 1 and width & (width - 1) and len(starts) == 1:
        bits = values[0].type.element.width
        place = as_pointer(h, starts[0], byte)
        name = f"llvm.masked.store.v{LANES}i{bits}.p0"
        h.call(name, ir.VoidType(), values[0], place, h.i32(bits // 8), h.bools(lanes))
        return
    parts = [interleaved(h, values, number * width, width) for number in range(len(starts))]
    with h.ir.if_else(h.whole(lanes)) as (then, otherwise):
        with then:
            for start, part in zip(starts, parts):
                place = as_pointer(h, start, byte)
                if h.ahead is not None:
                    _fetch(h, h.add(place, h.ahead), part.type.count * part.type.element.width // 8)
                h.store(part, place, 0, access.nbytes)
        with otherwise:
            bools = h.bools(lanes)
            for number, (start, part) in enumerate(zip(starts, parts)):
                order = [number * width + lane // count for lane in range(width * count)]
                chosen = h.ir.shuffle_vector(bools, bools, ir.Constant(ir.VectorType(i32, len(order)), order))
                bits = part.type.element.width
                name = f"llvm.masked.store.v{part.type.count}i{bits}.p0"
                h.call(name, ir.VoidType(), part, as_pointer(h, start, byte), h.i32(bits // 8), chosen)


def _fetch(h: Handler, place: Any, nbytes: int) -> None:
    """Have lines fetched that are to be written."""
    for at in range(0, nbytes, LINE):
        h.call("llvm.prefetch.p0", ir.VoidType(), h.add(place, at), h.i32(1), h.i32(3), h.i32(1))


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
