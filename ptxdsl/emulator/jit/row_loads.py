"""Rows of memory, one for each lane: loaded lane by lane, and transposed to the numbers of all lanes in each column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..codegen.gathers import concat
from ..codegen.handler import Handler, byte, i32, i64, lanes_of, undefined, zeros
from ..codegen.access import Access
from ..machine.layout import LANES, Block

__all__ = ["RowLoads"]

GROUP = 8
"""Lanes that are loaded together, or skipped where none of them is active."""
CHUNK = 16
"""Bytes that a lane loads at once."""


class RowLoads:
    """The rows of a basic block, once they are loaded."""

    def __init__(self, h: Any) -> None:
        self.h = h
        self.rows: dict[int, tuple[Any, list[Any]]] = {}
        """By the place of the first load: whether the row could be read, None where that is sure, and its columns."""

    def begin(self, access: Access, bits: int, lanes: Any, guarded: bool) -> None:
        """Load the row of which this access is the first."""
        h = self.h
        row = h.planned.row
        if row is None or row.leader != h.place:
            return
        element = bits // 8
        size = element * row.columns
        if element < 4:
            size = 1 << (size - 1).bit_length()
        back = element * row.column
        check = self._check_affine if access.kind.affine else self._check_lanes
        good, pointers, skip = check(access, back, size, lanes)
        may_fail = size > element * row.columns or (access.kind.affine and (guarded or h.partial))
        if not may_fail:
            access.demand(good)
            self.rows[h.place] = None, _columns(h, pointers, skip, bits, row.columns)
            return
        kind = lanes_of(ir.IntType(bits))
        with h.ir.if_else(h.likely(good)) as (then, otherwise):
            with then:
                columns, one = _columns(h, pointers, skip, bits, row.columns), h.ir.block
            with otherwise:
                other = h.ir.block
        self.rows[h.place] = good, h.merged(one, columns, other, [undefined(kind)] * len(columns))

    def values(self, count: int, otherwise: Callable[[], list[Any]]) -> list[Any] | None:
        """What an access loads of its row, or where that could not be read ``otherwise``; None where it has no row."""
        h = self.h
        row = h.planned.row
        if row is None:
            return None
        good, columns = self.rows[row.leader]
        mine = columns[row.column : row.column + count]
        if good is None:
            return mine
        start = h.ir.block
        read, apart = h.block_named("in_row"), h.block_named("apart")
        h.ir.cbranch(h.likely(good), read, apart)
        h.ir.position_at_end(apart)
        others = otherwise()
        other = h.ir.block
        h.ir.branch(read)
        h.ir.position_at_end(read)
        return h.merged(start, mine, other, others)

    def _check_affine(self, access: Access, back: int, size: int, _: Any) -> tuple[Any, Callable[[int], Any], Any]:
        """Whether the rows of all lanes that a warp has are within bounds, and where each begins."""
        h = self.h
        known = h.plan.lane_offsets[int(access.known.constant)][: h.present]
        least = min(known)
        address = access.base()
        first = h.ir.sub(address, h.i64(back))
        low, bound, delta = access.limits(h.i64(max(known) - least + size - 1))
        good = access.and_aligned(h.ir.icmp_unsigned("<", h.ir.sub(first, low), bound), address)
        host = h.ir.inttoptr(h.ir.add(first, delta), byte.as_pointer())
        return good, lambda lane: h.add(host, (known[lane] if lane < len(known) else known[0]) - least), None

    def _check_lanes(self, access: Access, back: int, size: int, lanes: Any) -> tuple[Any, Callable[[int], Any], Any]:
        """The same of the active lanes; the others read zeros."""
        h = self.h
        mine = access.vector()
        first = h.ir.sub(mine, h.splat(h.i64(back))) if back else mine
        low, bound, delta = access.limits(h.i64(size - 1))
        inside = h.ir.icmp_unsigned("<", h.ir.sub(first, h.splat(low)), h.splat(bound))
        bad = h.ir.and_(lanes, h.ir.not_(h.mask(access.and_aligned(inside, mine))))
        idle = h.splat(h.ir.ptrtoint(h.add(h.block, Block.ZEROS), i64))
        hosts = h.ir.select(h.bools(lanes), h.ir.add(first, h.splat(delta)), idle)

        def place(lane: int) -> Any:
            return h.ir.inttoptr(h.ir.extract_element(hosts, h.i32(lane)), byte.as_pointer())

        return h.zero(bad), place, lanes if h.masked else None


def _columns(h: Handler, pointers: Callable[[int], Any], active: Any, bits: int, columns: int) -> list[Any]:
    """The numbers of all lanes in each column; zeros in lanes that are not active.

    Whatever else would be there is computed with too, and CPUs take a hundred times as long for denormal floats.
    """
    groups = []
    for first in range(0, LANES, GROUP):
        if active is None:
            groups.append(_group(h, pointers, first, bits, columns))
            continue
        some = h.nonzero(h.ir.and_(active, h.i32((1 << GROUP) - 1 << first)))
        start = h.ir.block
        with h.ir.if_then(some):
            loaded = _group(h, pointers, first, bits, columns)
            end = h.ir.block
        groups.append(h.merged(start, [zeros(value.type) for value in loaded], end, loaded))
    return [concat(h, [group[n] for group in groups]) for n in range(columns)]


def _group(h: Handler, pointers: Callable[[int], Any], first: int, bits: int, columns: int) -> list[Any]:
    """The same of a few lanes."""
    places = [pointers(first + lane) for lane in range(GROUP)]
    if bits < 32:
        size = 1 << (columns * bits - 1).bit_length()
        words = _numbers(h, places, 0, size, bits // 8)
        kind = ir.VectorType(ir.IntType(bits), GROUP)
        return [h.ir.trunc(_right(h, words, n * bits), kind) for n in range(columns)]
    found: list[Any] = []
    while len(found) < columns:
        offset, left = len(found) * bits // 8, (columns - len(found)) * bits // 8
        if left >= CHUNK:
            found += _transposed(h, places, offset, bits)
        elif bits == 32 and left >= 8:
            words = _numbers(h, places, offset, 64, 4)
            kind = ir.VectorType(i32, GROUP)
            found += [h.ir.trunc(_right(h, words, n), kind) for n in (0, 32)]
        else:
            found.append(_numbers(h, places, offset, bits, bits // 8))
    return found


def _right(h: Handler, words: Any, bits: int) -> Any:
    if not bits:
        return words
    return h.ir.lshr(words, ir.Constant(words.type, [bits] * words.type.count))


def _numbers(h: Handler, places: list[Any], offset: int, bits: int, align: int) -> Any:
    """One number of each lane."""
    element = ir.IntType(bits)
    vector: Any = undefined(ir.VectorType(element, len(places)))
    for lane, place in enumerate(places):
        vector = h.ir.insert_element(vector, h.load(place, offset, element, align), h.i32(lane))
    return vector


def _transposed(h: Handler, places: list[Any], offset: int, bits: int) -> list[Any]:
    """All numbers of 16 bytes of each lane.

    Within each 128 bits, as the CPU's instructions interleave: so the lanes are first put where they come out in order.
    """
    count = CHUNK * 8 // bits
    kind = ir.VectorType(ir.IntType(bits), count)
    rows = [h.load(place, offset, kind, bits // 8) for place in places]
    if bits == 64:
        return [_shuffled(h, concat(h, rows[::2]), concat(h, rows[1::2]), _interleaved(n, GROUP)) for n in (0, 1)]
    pairs = [concat(h, [rows[lane], rows[lane + 4]]) for lane in range(4)]
    low, high = [0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]
    halves = [_shuffled(h, pairs[n], pairs[n + 1], order) for order in (low, high) for n in (0, 2)]
    even, odd = [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]
    return [_shuffled(h, halves[n], halves[n + 1], order) for n in (0, 2) for order in (even, odd)]


def _interleaved(first: int, size: int) -> list[int]:
    """Every second element of two vectors, in turn."""
    return [number + first + side * size for number in range(0, size, 2) for side in (0, 1)]


def _shuffled(h: Handler, a: Any, b: Any, order: list[int]) -> Any:
    return h.ir.shuffle_vector(a, b, ir.Constant(ir.VectorType(i32, len(order)), order))
