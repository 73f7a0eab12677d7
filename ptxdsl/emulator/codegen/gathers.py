"""Gathers and scatters: the numbers at the host addresses of a warp's lanes, wherever these lie.

A CPU's gather takes as long for one active lane as for all, so where few lanes may be active, groups of them that have
none are skipped. Numbers of less than 32 bits are gathered as the aligned words that they lie in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ..machine.layout import LANES
from .handler import Handler, i1, i32, i64, pointer

__all__ = ["Places", "StridedPlaces", "concat", "gather", "gather_all", "scatter"]

WORD = 32
"""Bits of the smallest number that CPUs gather and scatter."""
GROUP = 8
"""Lanes that are skipped together."""


class Places:
    """Host addresses, one for each lane."""

    def __init__(self, h: Handler, hosts: Any) -> None:
        self.h, self._hosts = h, hosts

    def part(self, first: int, size: int) -> Any:
        """Those of ``size`` lanes from one on."""
        return self._hosts if size == LANES else _part(self.h, self._hosts, first, size)

    def moved(self, offset: int) -> Places:
        """As many bytes further."""
        return Places(self.h, self.h.ir.add(self._hosts, self.h.splat(self.h.i64(offset)))) if offset else self


class StridedPlaces(Places):
    """Host addresses at known distances from one."""

    def __init__(self, h: Handler, host: Any, offsets: Sequence[int]) -> None:
        self.h, self._host, self._offsets = h, host, offsets

    def part(self, first: int, size: int) -> Any:
        h, kind = self.h, ir.VectorType(i64, size)
        one = h.ir.insert_element(ir.Constant(kind, ir.Undefined), self._host, h.i32(0))
        start = h.ir.shuffle_vector(one, one, ir.Constant(ir.VectorType(i32, size), None))
        return h.ir.add(start, ir.Constant(kind, list(self._offsets[first : first + size])))

    def moved(self, offset: int) -> Places:
        return StridedPlaces(self.h, self._host, [each + offset for each in self._offsets])


def _part(h: Handler, whole: Any, first: int, size: int) -> Any:
    return h.ir.shuffle_vector(whole, whole, ir.Constant(ir.VectorType(i32, size), list(range(first, first + size))))


def concat(h: Handler, parts: list[Any]) -> Any:
    while len(parts) > 1:
        size = parts[0].type.count * 2
        order = ir.Constant(ir.VectorType(i32, size), list(range(size)))
        parts = [h.ir.shuffle_vector(parts[n], parts[n + 1], order) for n in range(0, len(parts), 2)]
    return parts[0]


def gather(h: Handler, hosts: Any, bits: int, lanes: Any) -> Any:
    """The number at each host address of the lanes in the mask."""
    return gather_all(h, Places(h, hosts), bits, 1, lanes)[0]


def gather_all(h: Handler, places: Places, bits: int, count: int, lanes: Any) -> list[Any]:
    """So many numbers, one after the other, from each place of the lanes in the mask."""
    if not h.sparse:
        return [_gathered(h, places.moved(n * bits // 8).part(0, LANES), bits, h.bools(lanes)) for n in range(count)]
    groups = [_group(h, places, bits, count, lanes, first) for first in range(0, LANES, GROUP)]
    return [concat(h, [group[n] for group in groups]) for n in range(count)]


def _group(h: Handler, places: Places, bits: int, count: int, lanes: Any, first: int) -> list[Any]:
    """The numbers of a few lanes, if any of them is in the mask."""
    some = h.nonzero(h.ir.and_(lanes, h.i32((1 << GROUP) - 1 << first)))
    start = h.ir.block
    with h.ir.if_then(some):
        mask = _part(h, h.bools(lanes), first, GROUP)
        found = [_gathered(h, places.moved(n * bits // 8).part(first, GROUP), bits, mask) for n in range(count)]
        end = h.ir.block
    return h.merged(start, [ir.Constant(value.type, None) for value in found], end, found)


def _gathered(h: Handler, hosts: Any, bits: int, mask: Any) -> Any:
    size = hosts.type.count
    if bits < WORD:
        inside = ir.Constant(hosts.type, [WORD // 8 - 1] * size)
        words = _gathered(h, h.ir.and_(hosts, h.ir.not_(inside)), WORD, mask)
        shift = h.ir.shl(h.ir.trunc(h.ir.and_(hosts, inside), words.type), ir.Constant(words.type, [3] * size))
        return h.ir.trunc(h.ir.lshr(words, shift), ir.VectorType(ir.IntType(bits), size))
    kind = ir.VectorType(ir.IntType(bits), size)
    pointers = h.ir.inttoptr(hosts, ir.VectorType(pointer, size))
    name = f"llvm.masked.gather.v{size}i{bits}.v{size}p0"
    return h.call(name, kind, pointers, h.i32(bits // 8), mask, ir.Constant(kind, None))


def scatter(h: Handler, values: list[Any], places: Places, lanes: Any) -> None:
    """Store the values of the lanes in the mask; of two lanes at one address the higher one wins."""
    for number, value in enumerate(values):
        bits = value.type.element.width
        moved = places.moved(number * bits // 8)
        if bits < WORD:
            _scatter_parts(h, value, moved, lanes)
        elif not h.sparse:
            _scattered(h, value, moved.part(0, LANES), h.bools(lanes))
        else:
            for first in range(0, LANES, GROUP):
                with h.ir.if_then(h.nonzero(h.ir.and_(lanes, h.i32((1 << GROUP) - 1 << first)))):
                    part, mask = (_part(h, whole, first, GROUP) for whole in (value, h.bools(lanes)))
                    _scattered(h, part, moved.part(first, GROUP), mask)


def _scatter_parts(h: Handler, value: Any, places: Places, lanes: Any) -> None:
    """Numbers that no CPU scatters: a branch for each lane of a group, unless all or none of them are active."""
    size = GROUP if h.sparse else LANES
    for first in range(0, LANES, size):
        group = h.i32((1 << size) - 1 << first)
        here = h.ir.and_(lanes, group)
        with h.ir.if_else(h.ir.icmp_unsigned("==", here, group)) as (then, otherwise):
            with then:
                every = ir.Constant(ir.VectorType(i1, size), [1] * size)
                _scattered(h, _part(h, value, first, size), places.part(first, size), every)
            with otherwise, h.ir.if_then(h.nonzero(here)):
                some = _part(h, h.bools(lanes), first, size)
                _scattered(h, _part(h, value, first, size), places.part(first, size), some)


def _scattered(h: Handler, value: Any, hosts: Any, mask: Any) -> None:
    size, bits = value.type.count, value.type.element.width
    pointers = h.ir.inttoptr(hosts, ir.VectorType(pointer, size))
    h.call(f"llvm.masked.scatter.v{size}i{bits}.v{size}p0", ir.VoidType(), value, pointers, h.i32(bits // 8), mask)
