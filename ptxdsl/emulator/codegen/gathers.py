"""Gathers and scatters: the numbers at the host addresses of a warp's lanes, wherever these lie.

A CPU's gather takes as long for one active lane as for all, so where few lanes may be active, groups of them that have
none are skipped: as many lanes as one instruction of the CPU gathers. Numbers of less than 32 bits are gathered as the
aligned words that they lie in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ...machine_code.host import vector_registers
from ..machine.layout import LANES
from .handler import Handler, i1, i32, i64, lanes_of, pointer, zeros

__all__ = ["WORD", "IndexedPlaces", "Places", "StridedPlaces", "concat", "gather", "gather_all", "scatter"]

WORD = 32
"""Bits of the smallest number that CPUs gather and scatter."""
GROUP = 8
"""Lanes that are skipped together, at least."""
SCALES = (1, 2, 4, 8)
"""What CPUs multiply an index by."""
LINE = range(LANES)


class Places:
    """Host addresses, one for each lane."""

    index_bits = 64
    """Bits of the number of each lane that the CPU takes."""

    def __init__(self, h: Handler, hosts: Any) -> None:
        self.h, self._hosts = h, hosts

    @property
    def hosts(self) -> Any:
        """As numbers, <32 x i64>."""
        return self._hosts

    def moved(self, offset: int) -> Places:
        """As many bytes further."""
        return Places(self.h, self.h.ir.add(self._hosts, self.h.splat(self.h.i64(offset)))) if offset else self

    def part(self, first: int, size: int) -> Any:
        """Those of ``size`` lanes from one on, as numbers."""
        return self._hosts if size == LANES else _part(self.h, self._hosts, first, size)

    def pointers(self, first: int, size: int) -> Any:
        """The same as pointers."""
        return self.h.ir.inttoptr(self.part(first, size), ir.VectorType(pointer, size))

    def words(self, first: int, size: int) -> tuple[Any, Any]:
        """Pointers to the words in which they lie, and the bits below them there."""
        h, hosts = self.h, self.part(first, size)
        inside = ir.Constant(hosts.type, [WORD // 8 - 1] * size)
        words = h.ir.inttoptr(h.ir.and_(hosts, h.ir.not_(inside)), ir.VectorType(pointer, size))
        return words, _bits_of(h, h.ir.trunc(h.ir.and_(hosts, inside), ir.VectorType(i32, size)))

    def halves(self, step: int, lanes: Any) -> Any:
        """Whether all lanes are active, and each half warp lies side by side; the first two lanes are asked before."""
        h, numbers = self.h, self._numbers(step)
        if numbers is None:
            return ir.Constant(i1, 0)
        kind = numbers[0].type
        first, second = (h.ir.extract_element(numbers[0], h.i32(lane)) for lane in (0, 1))
        beside = h.ir.icmp_unsigned("==", h.ir.sub(second, first), ir.Constant(kind.element, numbers[1]))
        before = h.ir.block
        with h.ir.if_then(h.ir.and_(h.full(lanes), beside)):
            order = ir.Constant(lanes_of(i32), [lane // 16 * 16 for lane in LINE])
            bases = h.ir.shuffle_vector(numbers[0], numbers[0], order)
            line = h.ir.add(bases, ir.Constant(kind, [lane % 16 * numbers[1] for lane in LINE]))
            same = h.full(h.mask(h.ir.icmp_unsigned("==", numbers[0], line)))
            asked = h.ir.block
        return h.merged(before, [ir.Constant(i1, 0)], asked, [same])[0]

    def starts(self) -> list[Any]:
        """Those of lanes 0 and 16."""
        h, whole = self.h, self._numbers(0)
        assert whole is not None
        return [self._host(h.ir.extract_element(whole[0], h.i32(lane))) for lane in (0, 16)]

    def line(self, step: int, lanes: Any) -> tuple[Any, Any]:
        """That of lane 0, and whether the active lanes lie side by side from there."""
        h, numbers = self.h, self._numbers(step)
        if numbers is None:
            return h.i64(0), ir.Constant(i1, 0)
        starts = h.ir.sub(numbers[0], ir.Constant(numbers[0].type, [lane * numbers[1] for lane in LINE]))
        start = h.ir.extract_element(starts, h.ir.and_(h.first_lane(lanes), h.i32(LANES - 1)))
        apart = h.ir.and_(h.mask(h.ir.icmp_unsigned("!=", starts, h.splat(start))), lanes)
        return self._host(start), h.zero(apart)

    def _numbers(self, step: int) -> tuple[Any, int] | None:
        """Numbers of the lanes that say where they lie, and their difference if lanes lie so many bytes apart."""
        return self._hosts, step

    def _host(self, number: Any) -> Any:
        """The host address that such a number stands for."""
        return number


class StridedPlaces(Places):
    """Host addresses at known distances from one."""

    def __init__(self, h: Handler, host: Any, offsets: Sequence[int]) -> None:
        self.h, self._start, self._offsets = h, host, offsets

    @property
    def hosts(self) -> Any:
        return self.part(0, LANES)

    def part(self, first: int, size: int) -> Any:
        h, kind = self.h, ir.VectorType(i64, size)
        one = h.ir.insert_element(ir.Constant(kind, ir.Undefined), self._start, h.i32(0))
        start = h.ir.shuffle_vector(one, one, zeros(ir.VectorType(i32, size)))
        return h.ir.add(start, ir.Constant(kind, list(self._offsets[first : first + size])))

    def moved(self, offset: int) -> Places:
        return StridedPlaces(self.h, self._start, [each + offset for each in self._offsets])

    def _numbers(self, step: int) -> tuple[Any, int] | None:  # noqa: ARG002
        return None  # it is known that they do not


class IndexedPlaces(Places):
    """Host addresses that are one plus so many times a number of each lane, <32 x i32>, which is not negative.

    The products have less than 32 bits, so CPUs add them to the one address where they gather.
    """

    index_bits = 32

    def __init__(self, h: Handler, base: Any, numbers: Any, scale: int) -> None:
        self.h, self._base, self._index, self._scale = h, base, numbers, scale

    @property
    def hosts(self) -> Any:
        return self.part(0, LANES)

    def moved(self, offset: int) -> Places:
        return IndexedPlaces(self.h, self.h.ir.add(self._base, self.h.i64(offset)), self._index, self._scale)

    def _some(self, first: int, size: int, scale: int = 1) -> Any:
        numbers = self._index if size == LANES else _part(self.h, self._index, first, size)
        return numbers if scale == 1 else self.h.ir.mul(numbers, ir.Constant(numbers.type, [scale] * size))

    def part(self, first: int, size: int) -> Any:
        h, kind = self.h, ir.VectorType(i64, size)
        one = h.ir.insert_element(ir.Constant(kind, ir.Undefined), self._base, h.i32(0))
        base = h.ir.shuffle_vector(one, one, zeros(ir.VectorType(i32, size)))
        return h.ir.add(base, h.ir.zext(self._some(first, size, self._scale), kind))

    def pointers(self, first: int, size: int) -> Any:
        if self._scale in SCALES:
            return self._indexed(self._base, self._some(first, size), self._scale)
        return self._indexed(self._base, self._some(first, size, self._scale), 1)

    def _indexed(self, base: Any, numbers: Any, scale: int) -> Any:
        place = self.h.ir.inttoptr(base, pointer)
        found = self.h.ir.gep(place, [numbers], source_etype=ir.IntType(8 * scale))
        found.type = ir.VectorType(pointer, numbers.type.count)
        return found

    def words(self, first: int, size: int) -> tuple[Any, Any]:
        h, inside = self.h, WORD // 8 - 1
        rest = h.ir.trunc(h.ir.and_(self._base, h.i64(inside)), i32)
        numbers = self._some(first, size, self._scale)
        one = h.ir.insert_element(ir.Constant(numbers.type, ir.Undefined), rest, h.i32(0))
        numbers = h.ir.add(numbers, h.ir.shuffle_vector(one, one, zeros(numbers.type)))
        base, two = h.ir.and_(self._base, h.i64(~inside)), ir.Constant(numbers.type, [2] * size)
        words = self._indexed(base, h.ir.lshr(numbers, two), WORD // 8)
        return words, _bits_of(h, h.ir.and_(numbers, ir.Constant(numbers.type, [inside] * size)))

    def _numbers(self, step: int) -> tuple[Any, int] | None:
        return (self._index, step // self._scale) if step % self._scale == 0 else None

    def _host(self, number: Any) -> Any:
        h = self.h
        return h.ir.add(self._base, h.ir.mul(h.ir.sext(number, i64), h.i64(self._scale)))


def _bits_of(h: Handler, nbytes: Any) -> Any:
    return h.ir.shl(nbytes, ir.Constant(nbytes.type, [3] * nbytes.type.count))


def _part(h: Handler, whole: Any, first: int, size: int) -> Any:
    return h.ir.shuffle_vector(whole, whole, ir.Constant(ir.VectorType(i32, size), list(range(first, first + size))))


def concat(h: Handler, parts: list[Any]) -> Any:
    while len(parts) > 1:
        size = parts[0].type.count * 2
        order = ir.Constant(ir.VectorType(i32, size), list(range(size)))
        parts = [h.ir.shuffle_vector(parts[n], parts[n + 1], order) for n in range(0, len(parts), 2)]
    return parts[0]


def _lanes_of_group(places: Places, bits: int) -> int:
    """The lanes that one instruction gathers or scatters, if that is more than a few."""
    return max(GROUP, vector_registers()[1] * 8 // max(bits, places.index_bits))


def gather(h: Handler, hosts: Any, bits: int, lanes: Any) -> Any:
    """The number at each host address of the lanes in the mask."""
    return gather_all(h, Places(h, hosts), bits, 1, lanes)[0]


def gather_all(h: Handler, places: Places, bits: int, count: int, lanes: Any) -> list[Any]:
    """So many numbers, one after the other, from each place of the lanes in the mask."""
    if not h.sparse:
        return [_gathered(h, places.moved(n * bits // 8), 0, LANES, bits, h.bools(lanes)) for n in range(count)]
    size = _lanes_of_group(places, bits)
    groups = [_group(h, places, bits, count, lanes, range(first, first + size)) for first in range(0, LANES, size)]
    return [concat(h, [group[n] for group in groups]) for n in range(count)]


def _group(h: Handler, places: Places, bits: int, count: int, lanes: Any, group: range) -> list[Any]:
    """The numbers of a few lanes, if any of them is in the mask."""
    first, size = group.start, len(group)
    some = h.nonzero(h.ir.and_(lanes, h.i32((1 << size) - 1 << first)))
    start = h.ir.block
    with h.ir.if_then(some):
        mask = _part(h, h.bools(lanes), first, size)
        found = [_gathered(h, places.moved(n * bits // 8), first, size, bits, mask) for n in range(count)]
        end = h.ir.block
    return h.merged(start, [zeros(value.type) for value in found], end, found)


def _gathered(h: Handler, places: Places, first: int, size: int, bits: int, mask: Any) -> Any:
    if bits >= WORD:
        return _gathered_words(h, places.pointers(first, size), bits, mask)
    pointers, below = places.words(first, size)
    words = _gathered_words(h, pointers, WORD, mask)
    return h.ir.trunc(h.ir.lshr(words, below), ir.VectorType(ir.IntType(bits), size))


def _gathered_words(h: Handler, pointers: Any, bits: int, mask: Any) -> Any:
    size = pointers.type.count
    kind = ir.VectorType(ir.IntType(bits), size)
    name = f"llvm.masked.gather.v{size}i{bits}.v{size}p0"
    return h.call(name, kind, pointers, h.i32(bits // 8), mask, zeros(kind))


def scatter(h: Handler, values: list[Any], places: Places, lanes: Any) -> None:
    """Store the values of the lanes in the mask; of two lanes at one address the higher one wins."""
    for number, value in enumerate(values):
        bits = value.type.element.width
        moved = places.moved(number * bits // 8)
        if bits < WORD:
            _scatter_parts(h, value, moved, lanes)
        elif not h.sparse:
            _scattered(h, value, moved.pointers(0, LANES), h.bools(lanes))
        else:
            size = _lanes_of_group(places, bits)
            for first in range(0, LANES, size):
                with h.ir.if_then(h.nonzero(h.ir.and_(lanes, h.i32((1 << size) - 1 << first)))):
                    part, mask = (_part(h, whole, first, size) for whole in (value, h.bools(lanes)))
                    _scattered(h, part, moved.pointers(first, size), mask)


def _scatter_parts(h: Handler, value: Any, places: Places, lanes: Any) -> None:
    """Numbers that no CPU scatters: a branch for each lane of a group, unless all or none of them are active."""
    size = GROUP if h.sparse else LANES
    for first in range(0, LANES, size):
        group = h.i32((1 << size) - 1 << first)
        here = h.ir.and_(lanes, group)
        with h.ir.if_else(h.ir.icmp_unsigned("==", here, group)) as (then, otherwise):
            with then:
                every = ir.Constant(ir.VectorType(i1, size), [1] * size)
                _scattered(h, _part(h, value, first, size), places.pointers(first, size), every)
            with otherwise, h.ir.if_then(h.nonzero(here)):
                some = _part(h, h.bools(lanes), first, size)
                _scattered(h, _part(h, value, first, size), places.pointers(first, size), some)


def _scattered(h: Handler, value: Any, pointers: Any, mask: Any) -> None:
    size, bits = value.type.count, value.type.element.width
    h.call(f"llvm.masked.scatter.v{size}i{bits}.v{size}p0", ir.VoidType(), value, pointers, h.i32(bits // 8), mask)
