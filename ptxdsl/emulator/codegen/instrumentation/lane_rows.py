"""Where the shadow words of a masked check lie: anyhow, or in rows of lanes that lie side by side.

Words are gathered, unless groups of eight lanes lie side by side, in rising or in falling order, or all that are active
do: then a load of a line, or a store, is for a group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import ShadowCheck
from ...machine.layout import LANES
from ...machine.shadow import WORD_SHIFT, Plane, Role
from ..gathers import concat
from ..handler import Handler, i32, i64, lanes_of, pointer
from .epochs import scatter_words
from .packed_lanes import GROUP, fetch, packed_lanes

__all__ = ["LaneRows", "may_descend"]

_Words = lanes_of(i64)


def may_descend(check: ShadowCheck) -> bool:
    """Whether addresses may fall from lane to lane: their offsets are known, and are none that rise side by side."""
    return bool(check.address.affine) and check.pattern is None


class LaneRows(ABC):
    """The shadow words of the lanes of a check; ``emit`` is the check itself, for each way in which they may lie."""

    h: Handler
    check: ShadowCheck
    anywhere: bool
    active: Any
    mine: Any
    word: Any
    hosts: Any
    stride: Any
    places: list[Any]
    starts: tuple[Any, ...] = ()
    """Of groups of lanes that lie side by side: where their words begin."""
    descending = False
    """Whether the lanes of each group lie in reverse order."""
    packed = False
    """Whether lanes are no longer in their own places: each word is asked for once."""

    @abstractmethod
    def emit(self) -> None:
        """The check of lanes that lie as is said here; it returns."""

    def number(self, value: int) -> ir.Constant:
        """A number in each lane."""
        return ir.Constant(_Words, [value] * LANES)

    def all(self, bools: Any) -> Any:
        return self.h.full(self.h.mask(bools))

    def emit_side_by_side(self) -> None:
        """The check of groups of lanes that lie side by side; go on with one word a lane where they do not."""
        h, places = self.h, self.places[0]
        first = ir.Constant(lanes_of(i32), [lane // GROUP * GROUP for lane in range(LANES)])
        line = ir.Constant(_Words, [lane % GROUP << WORD_SHIFT for lane in range(LANES)])
        same = h.ir.icmp_unsigned("==", places, h.ir.add(h.ir.shuffle_vector(places, places, first), line))
        lines, apart = h.block_named("lines"), h.block_named("apart")
        h.ir.cbranch(self.all(h.ir.or_(same, h.ir.not_(self.active))), lines, apart)
        h.ir.position_at_end(lines)
        self.starts = tuple(h.ir.extract_element(places, h.i32(lane)) for lane in range(0, LANES, GROUP))
        self.emit()
        self.starts = ()
        h.ir.position_at_end(apart)
        if may_descend(self.check):
            self._emit_descending()
        if not self.check.followed and not self.check.searched:
            self._emit_packed()

    def _emit_descending(self) -> None:
        """The check of groups of lanes that lie side by side in reverse order."""
        h, places = self.h, self.places[0]
        lowest = [lane // GROUP * GROUP + GROUP - 1 for lane in range(LANES)]
        line = ir.Constant(_Words, [end - lane << WORD_SHIFT for lane, end in enumerate(lowest)])
        first = h.ir.shuffle_vector(places, places, ir.Constant(lanes_of(i32), lowest))
        same = h.ir.icmp_unsigned("==", places, h.ir.add(first, line))
        lines, apart = h.block_named("descending"), h.block_named("apart")
        h.ir.cbranch(self.all(h.ir.or_(same, h.ir.not_(self.active))), lines, apart)
        h.ir.position_at_end(lines)
        self.starts = tuple(h.ir.extract_element(places, h.i32(lane)) for lane in range(GROUP - 1, LANES, GROUP))
        self.descending = True
        self.emit()
        self.starts, self.descending = (), False
        h.ir.position_at_end(apart)

    def _emit_packed(self) -> None:
        """The check of active lanes whose places follow one another: the first lanes stand for them."""
        h, places, mask = self.h, self.places[0], self.h.mask(self.active)
        below = ir.Constant(lanes_of(i32), [(1 << lane) - 1 for lane in range(LANES)])
        rank = h.call("llvm.ctpop.v32i32", lanes_of(i32), h.ir.and_(h.splat(mask), below))
        first = h.ir.extract_element(places, h.ir.and_(h.first_lane(mask), h.i32(LANES - 1)))
        line = h.ir.add(h.splat(first), h.ir.shl(h.ir.zext(rank, _Words), self.number(WORD_SHIFT)))
        same = h.ir.icmp_unsigned("==", places, line)
        packed, apart = h.block_named("packed"), h.block_named("anyhow")
        h.ir.cbranch(self.all(h.ir.or_(same, h.ir.not_(self.active))), packed, apart)
        h.ir.position_at_end(packed)
        mine, active = self.mine, self.active
        self.mine = h.ir.or_(h.splat(self.word), packed_lanes(h, mask))
        count = h.call("llvm.ctpop.i32", i32, mask)
        self.active = h.ir.icmp_unsigned("<", h.iota(32), h.splat(count))
        self.starts = tuple(h.ir.add(first, h.i64(lane << WORD_SHIFT)) for lane in range(0, LANES, GROUP))
        self.packed = True
        end = h.ir.add(first, h.ir.shl(h.ir.zext(count, i64), h.i64(WORD_SHIFT)))
        fetch(h, end, 4)  # what is packed next goes there
        if self.check.role == Role.WRITE:
            fetch(h, h.ir.extract_element(self.hosts, h.ir.and_(h.first_lane(mask), h.i32(LANES - 1))), 2)
        self.emit()
        self.mine, self.active, self.starts, self.packed = mine, active, (), False
        h.ir.position_at_end(apart)

    def _plane(self, granule: int, plane: int) -> Any:
        """Where the shadow words of the lanes are."""
        h, place = self.h, self.places[granule]
        if not plane:
            return place
        if self.anywhere:
            return h.ir.add(place, h.ir.mul(self.stride, self.number(plane)))
        return h.ir.add(place, h.splat(h.ir.mul(self.stride, h.i64(plane))))

    def get(self, granule: int, plane: int) -> Any:
        """The shadow word of each active lane; its own of the others."""
        rest = self.number(0) if plane == Plane.COPY else self.mine
        if self.starts:
            parts = [self._line(plane, number, rest) for number in range(len(self.starts))]
            return concat(self.h, [self._in_order(part) for part in parts])
        return self.gathered(self.h.ir.inttoptr(self._plane(granule, plane), lanes_of(pointer)), rest)

    def gathered(self, places: Any, rest: Any) -> Any:
        h, bits = self.h, rest.type.element.width
        return h.call(f"llvm.masked.gather.v32i{bits}.v32p0", rest.type, places, h.i32(bits // 8), self.active, rest)

    def _part(self, value: Any, number: int) -> Any:
        """What a vector has for a group of lanes."""
        order = ir.Constant(ir.VectorType(i32, GROUP), [number * GROUP + lane for lane in range(GROUP)])
        return self._in_order(self.h.ir.shuffle_vector(value, value, order))

    def _in_order(self, part: Any) -> Any:
        """What a group of lanes has, in the order of their places; and back."""
        if not self.descending:
            return part
        order = ir.Constant(ir.VectorType(i32, GROUP), list(reversed(range(GROUP))))
        return self.h.ir.shuffle_vector(part, part, order)

    def _start(self, plane: int, number: int) -> Any:
        h, place = self.h, self.starts[number]
        place = h.ir.add(place, h.ir.mul(self.stride, h.i64(plane))) if plane else place
        return h.ir.inttoptr(place, ir.VectorType(i64, GROUP).as_pointer())

    def _line(self, plane: int, number: int, rest: Any) -> Any:
        h, part = self.h, self._part(rest, number)
        start, active = self._start(plane, number), self._part(self.active, number)
        return h.call("llvm.masked.load.v8i64.p0", part.type, start, h.i32(8), active, part)

    def put(self, granule: int, plane: int, value: Any, where: Any = None) -> None:
        """Write the shadow words of the active lanes, or of those of them ``where`` that holds."""
        h = self.h
        chosen = self.active if where is None else h.ir.and_(self.active, where)
        for number in range(len(self.starts)):
            part, lanes = self._part(value, number), self._part(chosen, number)
            name = "llvm.masked.store.v8i64.p0"
            h.call(name, ir.VoidType(), part, self._start(plane, number), h.i32(8), lanes)
        if self.starts:
            return
        scatter_words(h, value, self._plane(granule, plane), chosen)
