"""The order of accesses by the async proxy: whether they are complete for a thread, and what fences have ordered.

A generation is complete for a thread if that has waited for it, or another one has and that wait happens before what
the thread does now. A write by the generic proxy is visible to the async proxy if it happens before a fence that
happens before the access, whichever thread executes the fence. Both are questions of the order that barriers and
mbarriers make, as vectors with a number for each warp (:class:`..machine.shadow.WarpOrder`).
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any, NamedTuple

from llvmlite import ir

from ...instructions.proxy_checks import ProxySettlement
from ...machine.layout import LANES, Warp
from ...machine.proxy_shadow import (
    ASYNC, COMMITS, EVENTS, GENERATION_BITS, GENERATION_SHIFT, OBJECT_SHIFT, RING, CommitEvent, FenceEvent, Objects,
    ProxyShadow,
)
from ...machine.shadow import EPOCH_SHIFT, LANE, SEVERAL_LANES, WARP, WARP_SHIFT, Shadow, WarpClock, WarpOrder
from ..handler import Handler, const, i1, i16, i32, i64, lanes_of, pointer
from ..instrumentation.epochs import ShadowState
from ..instrumentation.mbarriers import SETTLED
from ..registry import builds

__all__ = ["Orders", "Who", "commit_at"]

_Row = lanes_of(i64)


class Who(NamedTuple):
    """Lanes of a warp at some time: what they knew then.

    What they do they do ``together``, so that what one of them has done before comes before it; or each does it.
    """

    order: Any
    number: Any
    block_floor: Any
    warp_floor: Any
    mask: Any
    together: Any


class Orders:
    """What is known of the order in a block, in a routine or a handler."""

    def __init__(self, h: Handler, shadow: ShadowState) -> None:
        self.h, self.shadow = h, shadow
        self.proxies = shadow.get(Shadow.PROXIES, pointer)
        self.answer = h.alloca(i32)

    def now(self, mask: Any, together: Any = const(i1, 1)) -> Who:  # noqa: B008
        """Lanes of the current warp."""
        h, shadow = self.h, self.shadow
        order = h.add(shadow.get(Shadow.ORDERS, pointer), h.ir.mul(shadow.number, h.i64(WarpOrder.nbytes)))
        floors = (shadow.clock(field) for field in (WarpClock.BLOCK_FLOOR, WarpClock.WARP_FLOOR))
        block_floor, warp_floor = floors
        return Who(order, shadow.number, block_floor, warp_floor, mask, together)

    def fence(self, warp: Any, number: Any) -> tuple[Any, Who]:
        """One of the last fences of a warp, and who executed it."""
        h = self.h
        place = h.ir.add(h.ir.mul(warp, h.i64(EVENTS)), h.ir.and_(number, h.i64(EVENTS - 1)))
        event = h.add(self.proxies, h.ir.add(h.ir.mul(place, h.i64(FenceEvent.nbytes)), h.i64(ProxyShadow.EVENTS)))
        floors = (h.load(event, field, i64) for field in (FenceEvent.BLOCK_FLOOR, FenceEvent.WARP_FLOOR))
        block_floor, warp_floor = floors
        mask = h.load(event, FenceEvent.MASK, i32)
        return event, Who(h.add(event, FenceEvent.ORDER), warp, block_floor, warp_floor, mask, const(i1, 1))

    def get(self, field: int, index: Any, kind: ir.Type = i64) -> Any:
        """An element of a field of the :class:`ProxyShadow`."""
        h, shift = self.h, 3 if kind is i64 else 2
        return h.load(self.proxies, h.ir.add(h.ir.shl(index, h.i64(shift)), h.i64(field)), kind)

    def put(self, value: Any, field: int, index: Any) -> None:
        h, shift = self.h, 3 if value.type is i64 else 2
        h.store(value, self.proxies, h.ir.add(h.ir.shl(index, h.i64(shift)), h.i64(field)))

    # Accesses by the generic proxy

    def some_know(self, who: Who) -> Any:
        """Whether what only some lanes of a warp have acquired is known to these."""
        h = self.h
        part = h.load(who.order, WarpOrder.PART_MASK, i32)
        shared = h.ir.icmp_unsigned("<", h.load(who.order, WarpOrder.PART_FLOOR, i64), who.warp_floor)
        inside = h.zero(h.ir.and_(who.mask, h.ir.not_(part)))
        return h.ir.and_(h.nonzero(part), h.ir.or_(shared, inside))

    def before(self, word: Any, who: Who, by: Any = None) -> Any:
        """Whether the access of a shadow word happens before what lanes do.

        With ``by``: whether what each of these lanes of its warp has done then does, for one of them.
        """
        h, below = self.h, partial(self.h.ir.icmp_unsigned, "<")
        place = h.ir.lshr(h.ir.and_(word, h.i64(WARP)), h.i64(WARP_SHIFT - 3))
        own = h.ir.icmp_unsigned("==", h.ir.lshr(place, h.i64(3)), who.number)
        lane = h.ir.shl(h.i32(1), h.ir.trunc(h.ir.and_(word, h.i64(LANE)), i32))
        single = h.zero(h.ir.and_(word, h.i64(SEVERAL_LANES)))
        if by is None:
            whole = h.ir.icmp_unsigned("==", who.mask, h.load(h.warp, Warp.ALIVE, i32))
            one = h.zero(h.ir.and_(who.mask, h.ir.not_(lane)))
            one = h.ir.or_(one, h.ir.and_(who.together, h.nonzero(h.ir.and_(lane, who.mask))))
            program = h.ir.or_(h.ir.and_(single, one), h.ir.and_(whole, who.together))
        else:
            program = h.nonzero(h.ir.and_(who.mask, by))
        program = h.ir.or_(program, below(word, who.warp_floor))
        program = h.ir.or_(program, self._of_tile(word, who, lane, single))
        found = h.ir.or_(below(word, who.block_floor), h.ir.and_(own, program))

        def known(all_: int, one: int) -> Any:
            floor, latest = (h.load(who.order, h.ir.add(place, h.i64(row)), i64) for row in (all_, one))
            same: Any = const(i1, 1)
            if by is None:
                other = h.nonzero(h.ir.and_(h.ir.xor(word, latest), h.i64(LANE)))
                same = h.ir.and_(single, h.ir.not_(other))
            return h.ir.or_(below(word, floor), h.ir.and_(same, below(word, latest)))

        found = h.ir.or_(found, known(WarpOrder.KNOWN, WarpOrder.ONE))
        return h.ir.or_(found, h.ir.and_(self.some_know(who), known(WarpOrder.PART, WarpOrder.PART_ONE)))

    def _of_tile(self, word: Any, who: Who, lane: Any, single: Any) -> Any:
        """Whether a barrier of some lanes of the warp orders it before the only lane."""
        h = self.h
        mine = h.ir.zext(h.ir.and_(h.first_lane(who.mask), h.i32(LANES - 1)), i64)
        tile = h.load(who.order, h.ir.add(h.ir.shl(mine, h.i64(2)), h.i64(WarpOrder.TILE_MASK)), i32)
        floor = h.load(who.order, h.ir.add(h.ir.shl(mine, h.i64(3)), h.i64(WarpOrder.TILE_FLOOR)), i64)
        alone = h.zero(h.ir.and_(who.mask, h.ir.sub(who.mask, h.i32(1))))
        inside = h.ir.and_(h.nonzero(h.ir.and_(tile, lane)), h.ir.icmp_unsigned("<", word, floor))
        return reduce(h.ir.and_, (alone, single, inside))

    def alike(self, word: Any, who: Who) -> Any:
        """Whether that is so of all lanes of its warp in its epoch."""
        h = self.h
        place = h.ir.lshr(h.ir.and_(word, h.i64(WARP)), h.i64(WARP_SHIFT - 3))
        own = h.ir.icmp_unsigned("==", h.ir.lshr(place, h.i64(3)), who.number)
        whole = h.ir.icmp_unsigned("==", who.mask, h.load(h.warp, Warp.ALIVE, i32))
        known = h.load(who.order, h.ir.add(place, h.i64(WarpOrder.KNOWN)), i64)
        floors = h.ir.or_(h.ir.icmp_unsigned("<", word, who.block_floor), h.ir.icmp_unsigned("<", word, known))
        return h.ir.or_(floors, h.ir.and_(own, whole))

    def fenced(self, word: Any, who: Who, kinds: Any) -> Any:
        """Whether a fence stands between an access by the generic proxy and what lanes do: 2 where that is so of all
        accesses of its warp in its epoch, and where the fence may be one of those that are no longer known.
        """
        h, found = self.h, self.answer
        wanted = h.i32(kinds) if isinstance(kinds, int) else kinds
        h.ir.store(h.i32(0), found)

        def of_warp(warp: Any) -> Any:
            count = h.ir.zext(self.get(ProxyShadow.FENCES, warp, i32), i64)
            kept = h.ir.select(h.ir.icmp_unsigned("<", count, h.i64(EVENTS)), count, h.i64(EVENTS))

            def one(number: Any) -> Any:
                event, fence = self.fence(warp, h.ir.sub(h.ir.sub(count, number), h.i64(1)))
                kind = h.nonzero(h.ir.and_(h.load(event, FenceEvent.KINDS, i32), wanted))
                epoch = h.load(event, FenceEvent.EPOCH, i64)
                later = h.ir.icmp_unsigned("<", word, h.ir.add(epoch, h.i64(1 << EPOCH_SHIFT)))

                def decide() -> Any:
                    after = self.before(epoch, who, fence.mask)
                    return h.ir.and_(after, h.asked_if(after, lambda: self.before(word, fence)))

                good = h.asked_if(h.ir.and_(kind, later), decide)
                with h.ir.if_then(good):
                    answer = h.ir.select(self.alike(word, fence), h.i32(2), h.i32(1))
                    h.ir.store(answer, found)
                oldest = h.ir.icmp_unsigned("==", h.ir.add(number, h.i64(1)), h.i64(EVENTS))
                forgotten = h.ir.icmp_unsigned(">", count, h.i64(EVENTS))
                forgotten = reduce(h.ir.and_, (oldest, forgotten, later, h.zero(h.ir.load(found))))
                with h.ir.if_then(forgotten):
                    h.ir.store(h.i32(2), found)
                return h.ir.add(number, h.i64(1))

            h.loop(h.i64(0), lambda n: h.ir.and_(h.ir.icmp_unsigned("<", n, kept), h.zero(h.ir.load(found))), one)
            return h.ir.add(warp, h.i64(1))

        h.loop(h.i64(0), lambda n: h.ir.and_(h.ir.icmp_unsigned("<", n, h.i64(LANES)), h.zero(h.ir.load(found))),
               of_warp)
        return h.ir.load(found)

    # Accesses by the async proxy

    def settled(self, word: Any, mask: Any) -> Any:
        """Whether one is complete for lanes of the current warp."""
        h = self.h
        function = h.ir.bitcast(self.shadow.get(Shadow.SETTLED, pointer), SETTLED.as_pointer())
        return h.ir.call(function, [h.rec, h.warp, h.block, word, mask, const(i1, 1)])


@builds(ProxySettlement)
def settlement(module: ir.Module, name: str, _: ProxySettlement) -> None:
    """Whether an access by the async proxy is complete for the lanes of a mask."""
    h = Handler(module, name, result=SETTLED)
    word, mask, together = h.function.args[3:]
    orders = Orders(h, ShadowState(h))
    who = orders.now(mask, together)
    number = h.ir.and_(h.ir.lshr(word, h.i64(OBJECT_SHIFT)), h.i64(0xFF))
    generation = h.ir.and_(h.ir.lshr(word, h.i64(GENERATION_SHIFT)), h.i64((1 << GENERATION_BITS) - 1))
    blocks = {name: h.block_named(name) for name in ("of_mbarrier", "of_group", "of_thread", "of_core", "grouped")}
    mbarrier = h.ir.icmp_unsigned("<", number, h.i64(Objects.WARPGROUP))
    h.ir.cbranch(mbarrier, blocks["of_mbarrier"], blocks["grouped"])
    h.ir.position_at_end(blocks["grouped"])
    chosen = h.ir.switch(number, blocks["of_group"])
    chosen.add_case(h.i64(Objects.THREAD), blocks["of_thread"])
    chosen.add_case(h.i64(Objects.TENSOR), blocks["of_core"])
    h.ir.position_at_end(blocks["of_thread"])
    _of_thread(h, orders, who, word, generation)
    h.ir.position_at_end(blocks["of_core"])
    _of_core(h, orders, word, generation)
    h.ir.position_at_end(blocks["of_group"])
    _of_group(h, orders, who, h.ir.sub(number, h.i64(Objects.WARPGROUP)), generation)
    h.ir.position_at_end(blocks["of_mbarrier"])
    _of_mbarrier(h, orders, who, number, generation)


def _place(h: Handler, of: Any, generation: Any) -> Any:
    """Where what is known of a generation lies, among the last ones of an object."""
    return h.ir.add(h.ir.mul(of, h.i64(RING)), h.ir.and_(generation, h.i64(RING - 1)))


def _is_old(h: Handler, count: Any, generation: Any) -> Any:
    return h.ir.icmp_unsigned(">", h.ir.sub(count, generation), h.i64(RING))


def _of_thread(h: Handler, orders: Orders, who: Who, word: Any, generation: Any) -> None:
    thread = h.ir.and_(word, h.i64(WARP | LANE))
    count = h.ir.zext(orders.get(ProxyShadow.THREAD_WAITED, thread, i32), i64)
    complete = h.ir.icmp_unsigned("<", generation, count)
    h.branch_unless(complete, lambda: h.ir.ret(const(i1, 0)))
    seen = orders.get(ProxyShadow.THREAD_SEEN, _place(h, thread, generation))
    seen = h.ir.or_(seen, h.ir.and_(word, h.i64(LANE)))
    h.ir.ret(h.ir.or_(_is_old(h, count, generation), orders.before(seen, who)))


def _of_group(h: Handler, orders: Orders, who: Who, group: Any, generation: Any) -> None:
    """Any of the four warps may have waited."""
    found = h.alloca(i1)
    h.ir.store(const(i1, 0), found)

    def one(at: Any) -> None:
        warp = h.ir.add(h.ir.shl(group, h.i64(2)), at)
        count = h.ir.zext(orders.get(ProxyShadow.WAITED, warp, i32), i64)
        complete = h.ir.icmp_unsigned("<", generation, count)
        seen = orders.get(ProxyShadow.GROUP_SEEN, _place(h, warp, generation))

        def ordered() -> Any:
            return h.ir.or_(_is_old(h, count, generation), orders.before(seen, who, h.i32(-1)))

        good = h.asked_if(complete, ordered)
        h.ir.store(h.ir.or_(h.ir.load(found), good), found)

    h.count(h.i64(4), 1, one)
    h.ir.ret(h.ir.load(found))


def commit_at(h: Handler, orders: Orders, warp: Any, number: Any) -> Any:
    """The record of a commit of a warp."""
    place = h.ir.add(h.ir.mul(warp, h.i64(COMMITS)), h.ir.and_(number, h.i64(COMMITS - 1)))
    place = h.ir.add(h.ir.mul(place, h.i64(CommitEvent.nbytes)), h.i64(ProxyShadow.TENSOR_COMMITS))
    return h.add(orders.proxies, place)


def _of_core(h: Handler, orders: Orders, word: Any, generation: Any) -> None:
    """The phase of an mbarrier is known to be complete at which a commit of its thread behind it has arrived."""
    warp = h.ir.lshr(h.ir.and_(word, h.i64(WARP)), h.i64(WARP_SHIFT))
    lane = h.ir.shl(h.i32(1), h.ir.trunc(h.ir.and_(word, h.i64(LANE)), i32))
    count = h.ir.zext(orders.get(ProxyShadow.TENSOR_COMMITTED, warp, i32), i64)
    known = h.ir.icmp_signed("<=", h.ir.sub(count, generation), h.i64(COMMITS))
    h.branch_unless(known, lambda: h.ir.ret(const(i1, 1)))
    found = h.alloca(i1)
    h.ir.store(const(i1, 0), found)
    mask, together = h.function.args[4:]

    def one(number: Any) -> Any:
        event = commit_at(h, orders, warp, number)
        mine = h.nonzero(h.ir.and_(h.load(event, CommitEvent.MASK, i32), lane))

        def complete() -> Any:
            at = h.ir.zext(h.load(event, CommitEvent.MBARRIER, i16), i64)
            phase = h.ir.zext(h.load(event, CommitEvent.GENERATION, i32), i64)
            other = h.ir.or_(h.ir.shl(at, h.i64(OBJECT_SHIFT)), h.ir.shl(phase, h.i64(GENERATION_SHIFT)))
            followed = h.ir.icmp_unsigned("<", at, h.i64(Objects.WARPGROUP))
            arguments = [*h.function.args[:3], h.ir.or_(other, h.i64(ASYNC)), mask, together]
            over = h.asked_if(followed, lambda: h.ir.call(h.function, arguments))
            return h.ir.or_(h.ir.not_(followed), over)

        h.ir.store(h.asked_if(mine, complete), found)
        return h.ir.add(number, h.i64(1))

    h.loop(
        generation, lambda n: h.ir.and_(h.ir.icmp_unsigned("<", n, count), h.ir.not_(h.ir.load(found))), one
    )
    h.ir.ret(h.ir.load(found))


def _of_mbarrier(h: Handler, orders: Orders, who: Who, number: Any, generation: Any) -> None:
    """A thread has seen the phase complete, or a later one."""
    count = h.ir.zext(orders.get(ProxyShadow.GENERATIONS, number, i32), i64)
    complete = h.ir.icmp_unsigned("<", generation, count)
    h.branch_unless(complete, lambda: h.ir.ret(const(i1, 0)))
    h.branch_unless(h.ir.not_(_is_old(h, count, generation)), lambda: h.ir.ret(const(i1, 1)))
    base, part = h.splat(orders.shadow.get(Shadow.BASE)), h.splat(orders.some_know(who))
    mine = h.ir.icmp_unsigned("==", h.iota(64), h.splat(who.number))
    known, ones, parts, part_ones = (
        h.load(who.order, row, _Row, 8)
        for row in (WarpOrder.KNOWN, WarpOrder.ONE, WarpOrder.PART, WarpOrder.PART_ONE)
    )
    floor = h.splat(who.block_floor)
    floor = h.ir.select(h.ir.icmp_unsigned(">", floor, known), floor, known)
    floor = h.ir.select(h.ir.icmp_unsigned(">", floor, ones), floor, ones)
    for row in (parts, part_ones):
        row = h.ir.select(part, row, ir.Constant(_Row, None))
        floor = h.ir.select(h.ir.icmp_unsigned(">", floor, row), floor, row)
    warp_floor = h.ir.select(mine, h.splat(who.warp_floor), ir.Constant(_Row, None))
    floor = h.ir.select(h.ir.icmp_unsigned(">", floor, warp_floor), floor, warp_floor)

    def one(later: Any) -> None:
        place = h.ir.mul(_place(h, number, h.ir.add(generation, later)), h.i64(LANES))
        seen = h.load(orders.proxies, h.ir.add(h.ir.shl(place, h.i64(3)), h.i64(ProxyShadow.SEEN)), _Row, 8)
        by = h.load(orders.proxies, h.ir.add(h.ir.shl(place, h.i64(2)), h.i64(ProxyShadow.SEEN_BY)), lanes_of(i32), 4)
        outside = h.ir.and_(h.splat(who.mask), h.ir.not_(by))
        program = h.ir.and_(mine, h.ir.icmp_unsigned("==", outside, ir.Constant(lanes_of(i32), None)))
        good = h.ir.or_(program, h.ir.icmp_unsigned("<", seen, floor))
        good = h.ir.and_(good, h.ir.icmp_unsigned(">=", seen, base))
        h.branch_unless(h.zero(h.mask(good)), lambda: h.ir.ret(const(i1, 1)))

    h.count(h.ir.sub(count, generation), 1, one)
    h.ir.ret(const(i1, 0))
