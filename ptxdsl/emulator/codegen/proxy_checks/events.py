"""Handlers that follow what completes accesses by the async proxy, who sees that, and fences between proxies."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from llvmlite import ir

from ...instructions.proxy_checks import (
    ProxyCommit, ProxyEnd, ProxyFence, ProxyGroup, ProxyMbarrier, ProxyObject, ProxyObservation, ProxyReuse,
    ProxyUnseen,
)
from ...machine.layout import LANES, Block, Mbarrier, Warp
from ...machine.status import Status
from ...machine.proxy_shadow import (
    ASYNC, GENERATION_BITS, GENERATION_SHIFT, OBJECT_SHIFT, RING, CommitEvent, FenceEvent, Kinds, ProxyShadow,
)
from ...machine.shadow import LANE, MBARRIERS, WARP_SHIFT, Action, Reason, Shadow, WarpClock, WarpOrder
from ..access import Access
from ..atomics import element_at, place_at, spill
from ..data import guard_mask
from ..handler import Handler, const, i1, i16, i32, i64, lanes_of, pointer
from ..instrumentation.epochs import ShadowState, leave as report
from ..registry import builds, emits
from .orders import Orders, commit_at

__all__ = ["OBSERVE", "leave"]

OBSERVE = ir.FunctionType(i64, [pointer, pointer, pointer, i32, i64, i64])
_STATEMENT = 0xFFFF0000


def leave(h: Handler, shadow: ShadowState, reason: Any, word: Any, places: tuple[Any, Any], lane: Any) -> None:
    """Leave an access to Python: its shadow word and the word's address, the host address; it is checked once more."""
    for value, offset in (
        (word, Shadow.WORD), (places[0], Shadow.WORD_ADDRESS), (places[1], Shadow.HOST), (lane, Shadow.LANE),
        (shadow.get(Shadow.SHARED_STRIDE), Shadow.STRIDE),
    ):
        h.store(value, shadow.block, offset)
    h.store(h.i32(reason) if isinstance(reason, int) else reason, shadow.block, Shadow.REASON)


def _observe(h: Handler, shadow: ShadowState, mask: Any, host: Any, place: Any) -> Any:
    function = h.ir.bitcast(shadow.get(Shadow.OBSERVE, pointer), OBSERVE.as_pointer())
    return h.ir.call(function, [h.rec, h.warp, h.block, mask, host, place])


@emits(ProxyMbarrier, slow_path=True)
def proxy_mbarrier(h: Handler, op: ProxyMbarrier) -> None:
    access = Access(h, op.address, None, 8, True)
    mask = guard_mask(h, op.guard, True)
    statement = h.field()
    h.skip_unless_any(mask)
    hosts = access.hosts(mask)
    shadow = ShadowState(h)
    place = h.ir.or_(h.ir.zext(statement, i64), h.i64(op.action))
    first = h.ir.extract_element(hosts, h.first_lane(mask))
    differs = h.ir.and_(mask, h.mask(h.ir.icmp_unsigned("!=", hosts, h.splat(first))))
    with h.ir.if_else(h.zero(differs)) as (one, several):
        with one:
            _observe(h, shadow, mask, first, place)
        with several:
            places = spill(h, hosts)
            h.for_each_lane(mask, lambda lane: _observe(
                h, shadow, h.ir.shl(h.i32(1), lane), element_at(h, places, lane, i64), place
            ))
    h.next()


@builds(ProxyObservation)
def observation(module: ir.Module, name: str, _: ProxyObservation) -> None:
    """Follow what lanes do to the mbarrier at a host address; its number, or one too large where there is no room."""
    h = Handler(module, name, result=OBSERVE)
    mask, host, place = h.function.args[3:]
    orders = Orders(h, ShadowState(h))
    number = _number(h, orders, host)
    word = h.load(h.ir.inttoptr(host, pointer), 0, i64)
    parity = h.ir.trunc(h.ir.and_(h.ir.lshr(word, h.i64(Mbarrier.PARITY)), h.i64(1)), i32)

    def does(action: int) -> Any:
        return h.nonzero(h.ir.and_(place, h.i64(action)))

    def advance() -> None:
        generation = orders.get(ProxyShadow.GENERATIONS, number, i32)
        row = h.ir.mul(_ring(h, number, h.ir.zext(generation, i64)), h.i64(LANES))
        seen = h.ir.add(h.ir.shl(row, h.i64(3)), h.i64(ProxyShadow.SEEN))
        h.store(ir.Constant(lanes_of(i64), None), orders.proxies, seen, 8)
        orders.put(h.ir.add(generation, h.i32(1)), ProxyShadow.GENERATIONS, number)

    with h.ir.if_then(does(Action.INITIALISES)):
        advance()
        orders.put(h.i32(0), ProxyShadow.PARITIES, number)
        lane = h.ir.zext(h.first_lane(mask), i64)
        mine = h.ir.or_(orders.shadow.clock(WarpClock.EPOCH), h.ir.and_(place, h.i64(_STATEMENT)))
        orders.put(h.ir.or_(mine, lane), ProxyShadow.INITIALISERS, number)
        h.ir.ret(number)
        h.ir.position_at_end(h.block_named("unreachable"))
    with h.ir.if_then(h.ir.icmp_unsigned("!=", orders.get(ProxyShadow.PARITIES, number, i32), parity)):
        advance()
        orders.put(parity, ProxyShadow.PARITIES, number)
    generation = h.ir.zext(orders.get(ProxyShadow.GENERATIONS, number, i32), i64)
    with h.ir.if_then(h.ir.and_(does(Action.WAITS), h.nonzero(generation))):
        row = h.ir.mul(_ring(h, number, h.ir.sub(generation, h.i64(1))), h.i64(LANES))
        mine = h.ir.add(row, orders.shadow.number)
        before = h.ir.icmp_unsigned(">=", orders.get(ProxyShadow.SEEN, mine), orders.shadow.get(Shadow.BASE))
        with h.ir.if_else(before) as (again, anew):
            with again:
                by = orders.get(ProxyShadow.SEEN_BY, mine, i32)
                orders.put(h.ir.or_(by, mask), ProxyShadow.SEEN_BY, mine)
            with anew:
                orders.put(orders.shadow.clock(WarpClock.EPOCH), ProxyShadow.SEEN, mine)
                orders.put(mask, ProxyShadow.SEEN_BY, mine)
    h.ir.ret(number)


def _ring(h: Handler, number: Any, generation: Any) -> Any:
    return h.ir.add(h.ir.mul(number, h.i64(RING)), h.ir.and_(generation, h.i64(RING - 1)))


def _number(h: Handler, orders: Orders, host: Any) -> Any:
    """The number of an mbarrier, which it is given where it has none; the routine ends where there is none left."""
    first = h.ir.lshr(host, h.i64(3))
    found = h.alloca(i64)
    h.ir.store(h.i64(MBARRIERS), found)

    def one(tried: Any) -> Any:
        number = h.ir.and_(h.ir.add(first, tried), h.i64(MBARRIERS - 1))
        held = orders.get(ProxyShadow.HOSTS, number)
        with h.ir.if_then(h.zero(held)):
            orders.put(host, ProxyShadow.HOSTS, number)
            orders.put(h.i32(0), ProxyShadow.GENERATIONS, number)
            word = h.load(h.ir.inttoptr(host, pointer), 0, i64)
            parity = h.ir.trunc(h.ir.and_(h.ir.lshr(word, h.i64(Mbarrier.PARITY)), h.i64(1)), i32)
            orders.put(parity, ProxyShadow.PARITIES, number)
        mine = h.ir.or_(h.zero(held), h.ir.icmp_unsigned("==", held, host))
        with h.ir.if_then(mine):
            h.ir.store(number, found)
        return h.ir.add(tried, h.i64(1))

    def goes_on(tried: Any) -> Any:
        missing = h.ir.icmp_unsigned("==", h.ir.load(found), h.i64(MBARRIERS))
        return h.ir.and_(missing, h.ir.icmp_unsigned("<", tried, h.i64(MBARRIERS)))

    h.loop(h.i64(0), goes_on, one)
    number = h.ir.load(found)
    h.branch_unless(h.ir.icmp_unsigned("<", number, h.i64(MBARRIERS)), lambda: h.ir.ret(number))
    return number


def _observe_each(h: Handler, access: Access, mask: Any, then: Callable[[Orders, Any, Any, Any], None]) -> None:
    """Follow what each lane does to an mbarrier; ``then`` gets its number, its host address and the lane."""
    places = spill(h, access.hosts(mask))
    orders = Orders(h, ShadowState(h))

    def one(lane: Any) -> None:
        host = element_at(h, places, lane, i64)
        then(orders, _observe(h, orders.shadow, h.ir.shl(h.i32(1), lane), host, h.i64(0)), host, lane)

    h.for_each_lane(mask, one)
    h.next()


@emits(ProxyObject, slow_path=True)
def proxy_object(h: Handler, op: ProxyObject) -> None:
    access = Access(h, op.address, None, 8, True)
    mask = guard_mask(h, op.guard, True)
    objects, statement = h.slot(), h.ir.zext(h.field(), i64)
    h.skip_unless_any(mask)

    def one(orders: Orders, number: Any, host: Any, lane: Any) -> None:
        at = place_at(h, objects, lane, i64)
        h.ir.store(h.i64(0), at, align=8)
        with h.ir.if_then(h.ir.icmp_unsigned("<", number, h.i64(MBARRIERS))):
            generation = h.ir.zext(orders.get(ProxyShadow.GENERATIONS, number, i32), i64)
            word = h.ir.or_(h.ir.shl(number, h.i64(OBJECT_SHIFT)), h.ir.shl(generation, h.i64(GENERATION_SHIFT)))
            word = h.ir.or_(word, h.i64(ASYNC))
            h.ir.store(word, at, align=8)
            mine = h.ir.or_(statement, h.ir.shl(orders.shadow.number, h.i64(WARP_SHIFT)))
            orders.put(h.ir.or_(h.ir.or_(word, mine), h.ir.zext(lane, i64)), ProxyShadow.COPIES, number)
            initialiser = orders.get(ProxyShadow.INITIALISERS, number)
            with h.ir.if_then(h.nonzero(initialiser), likely=False):
                _demand_fenced(h, orders, number, initialiser, host, lane)

    _observe_each(h, access, mask, one)


def _demand_fenced(h: Handler, orders: Orders, number: Any, word: Any, host: Any, lane: Any) -> None:
    """Leave where neither a fence nor a barrier stands between an mbarrier's initialisation and a copy."""
    who = orders.now(h.ir.shl(h.i32(1), lane))
    fenced = h.nonzero(orders.fenced(word, who, Kinds.SHARED | Kinds.MBARRIER))
    own = h.ir.icmp_unsigned("==", h.ir.lshr(h.ir.and_(word, h.i64(0x3FF)), h.i64(WARP_SHIFT)), orders.shadow.number)
    same = h.ir.icmp_unsigned("==", h.ir.trunc(h.ir.and_(word, h.i64(LANE)), i32), lane)
    known = h.load(who.order, h.ir.add(h.ir.shl(who.number, h.i64(3)), h.i64(WarpOrder.KNOWN)), i64)
    barriers = (h.ir.icmp_unsigned("<", word, floor) for floor in (who.block_floor, who.warp_floor, known))
    program = h.ir.and_(h.ir.and_(own, same), h.ir.not_(reduce(h.ir.or_, barriers)))
    good = h.ir.or_(fenced, h.ir.and_(orders.before(word, who), h.ir.not_(program)))

    def away() -> None:
        place = h.ir.add(h.ir.ptrtoint(orders.proxies, i64), h.ir.shl(number, h.i64(3)))
        place = h.ir.add(place, h.i64(ProxyShadow.INITIALISERS))
        leave(h, orders.shadow, Reason.UNFENCED_MBARRIER, word, (place, host), lane)
        _stop(h)

    h.branch_unless(good, away)
    orders.put(h.i64(0), ProxyShadow.INITIALISERS, number)


def _stop(h: Handler) -> None:
    h.stop(Status.CALLBACK)
    h.ir.ret_void()


@emits(ProxyReuse, slow_path=True)
def proxy_reuse(h: Handler, op: ProxyReuse) -> None:
    access = Access(h, op.address, None, 8, True)
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)

    def one(orders: Orders, number: Any, host: Any, lane: Any) -> None:
        with h.ir.if_then(h.ir.icmp_unsigned("<", number, h.i64(MBARRIERS))):
            _demand_unused(h, orders, number, host, lane)

    _observe_each(h, access, mask, one)


def _demand_unused(h: Handler, orders: Orders, number: Any, host: Any, lane: Any) -> None:
    """Leave where an mbarrier that the block has made before is still in use."""
    copy = orders.get(ProxyShadow.COPIES, number)
    with h.ir.if_then(h.nonzero(copy)):
        orders.put(h.i64(0), ProxyShadow.COPIES, number)
        _leave_unless(
            h, orders, orders.settled(copy, h.ir.shl(h.i32(1), lane)), Reason.REUSED_MBARRIER, copy, host, lane
        )
    word = h.load(h.ir.inttoptr(host, pointer), 0, i64)
    valid = h.ir.icmp_unsigned("==", h.ir.lshr(word, h.i64(Mbarrier.MAGIC)), h.i64(Mbarrier.VALID))
    nbytes = h.ir.ashr(h.ir.shl(word, h.i64(64 - Mbarrier.PARITY)), h.i64(64 - Mbarrier.PARITY + Mbarrier.TX))
    made = h.nonzero(orders.get(ProxyShadow.GENERATIONS, number, i32))  # else it is what lay there
    waits = h.ir.and_(h.ir.and_(valid, made), h.ir.icmp_signed(">", nbytes, h.i64(0)))
    _leave_unless(h, orders, h.ir.not_(waits), Reason.EXPECTING_MBARRIER, nbytes, host, lane)


def _leave_unless(h: Handler, orders: Orders, good: Any, reason: int, word: Any, host: Any, lane: Any) -> None:
    with h.ir.if_then(h.ir.not_(good), likely=False):
        leave(h, orders.shadow, reason, word, (h.i64(0), host), lane)
        _stop(h)


@emits(ProxyUnseen, slow_path=True)
def proxy_unseen(h: Handler, op: ProxyUnseen) -> None:
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)
    orders = Orders(h, ShadowState(h))
    warp = h.ir.shl(h.i32(1), h.ir.trunc(orders.shadow.number, i32))
    others = h.ir.or_(h.ir.xor(h.load(h.block, Block.LIVE, i32), warp), h.ir.xor(h.load(h.warp, Warp.ALIVE, i32), mask))
    h.branch_unless(h.zero(others), h.next)

    def one(number: Any) -> None:
        copy = orders.get(ProxyShadow.COPIES, number)
        with h.ir.if_then(h.nonzero(copy)):
            generation = h.ir.and_(h.ir.lshr(copy, h.i64(GENERATION_SHIFT)), h.i64((1 << GENERATION_BITS) - 1))
            count = h.ir.zext(orders.get(ProxyShadow.GENERATIONS, number, i32), i64)
            seen = h.alloca(i1)
            h.ir.store(h.ir.icmp_signed(">", h.ir.sub(count, generation), h.i64(RING)), seen)

            def look(later: Any) -> Any:
                row = h.ir.mul(_ring(h, number, later), h.i64(LANES))
                place = h.ir.add(h.ir.shl(row, h.i64(3)), h.i64(ProxyShadow.SEEN))
                epochs = h.load(orders.proxies, place, lanes_of(i64), 8)
                some = h.nonzero(h.mask(h.ir.icmp_unsigned("!=", epochs, h.splat(h.i64(0)))))
                h.ir.store(h.ir.or_(h.ir.load(seen), some), seen)
                return h.ir.add(later, h.i64(1))

            h.loop(generation, lambda later: h.ir.and_(
                h.ir.not_(h.ir.load(seen)), h.ir.icmp_unsigned("<", later, count)
            ), look)
            orders.put(h.i64(0), ProxyShadow.COPIES, number)
            host = orders.get(ProxyShadow.HOSTS, number)
            _leave_unless(h, orders, h.ir.load(seen), Reason.UNSEEN_COPY, copy, host, h.first_lane(mask))

    h.count(h.i64(MBARRIERS), 1, one)
    h.next()


@emits(ProxyCommit, slow_path=True)
def proxy_commit(h: Handler, op: ProxyCommit) -> None:
    access = Access(h, op.address, None, 8, True)
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)

    def one(orders: Orders, number: Any, _: Any, lane: Any) -> None:
        warp = orders.shadow.number
        generation = orders.get(ProxyShadow.GENERATIONS, number, i32)
        count = orders.get(ProxyShadow.TENSOR_COMMITTED, warp, i32)
        event = commit_at(h, orders, warp, h.ir.zext(count, i64))
        h.store(h.ir.trunc(number, i16), event, CommitEvent.MBARRIER)
        h.store(generation, event, CommitEvent.GENERATION)
        h.store(h.ir.shl(h.i32(1), lane), event, CommitEvent.MASK)
        orders.put(h.ir.add(count, h.i32(1)), ProxyShadow.TENSOR_COMMITTED, warp)

    _observe_each(h, access, mask, one)


@emits(ProxyGroup)
def proxy_group(h: Handler, op: ProxyGroup) -> None:
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)
    orders = Orders(h, ShadowState(h))
    warp = orders.shadow.number
    if op.of_thread:
        h.for_each_lane(mask, lambda lane: _group(h, orders, op, h.ir.add(
            h.ir.shl(warp, h.i64(WARP_SHIFT)), h.ir.zext(lane, i64)
        )))
    else:
        _group(h, orders, op, warp)
    h.next()


def _group(h: Handler, orders: Orders, op: ProxyGroup, of: Any) -> None:
    names = ("THREAD_COMMITTED", "THREAD_WAITED", "THREAD_SEEN") if op.of_thread else (
        "COMMITTED", "WAITED", "GROUP_SEEN"
    )
    committed, waited, seen = (getattr(ProxyShadow, name) for name in names)
    count = orders.get(committed, of, i32)
    if op.commits:
        orders.put(h.ir.add(count, h.i32(1)), committed, of)
        return
    done, before = h.ir.sub(count, h.i32(op.left)), orders.get(waited, of, i32)
    with h.ir.if_then(h.ir.icmp_signed(">", done, before)):
        first = h.ir.sub(done, h.i32(RING))
        first = h.ir.select(h.ir.icmp_signed(">", first, before), first, before)
        first, end = h.ir.zext(first, i64), h.ir.zext(done, i64)
        epoch = orders.shadow.clock(WarpClock.EPOCH)
        h.loop(first, lambda n: h.ir.icmp_unsigned("<", n, end), lambda n: _note(h, orders, epoch, seen, of, n))
        orders.put(done, waited, of)


@emits(ProxyEnd)
def proxy_end(h: Handler, op: ProxyEnd) -> None:
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)
    orders = Orders(h, ShadowState(h))
    first = h.ir.shl(orders.shadow.number, h.i64(WARP_SHIFT))

    def one(lane: Any) -> None:
        of = h.ir.add(first, h.ir.zext(lane, i64))
        word = orders.get(ProxyShadow.THREAD_LAST, of)
        generation = h.ir.and_(h.ir.lshr(word, h.i64(GENERATION_SHIFT)), h.i64((1 << GENERATION_BITS) - 1))
        waited = h.ir.zext(orders.get(ProxyShadow.THREAD_WAITED, of, i32), i64)
        with h.ir.if_then(h.ir.and_(h.nonzero(word), h.ir.icmp_unsigned(">=", generation, waited)), likely=False):
            orders.put(h.i64(0), ProxyShadow.THREAD_LAST, of)
            places = h.i64(0), orders.get(ProxyShadow.THREAD_SOURCE, of)
            leave(h, orders.shadow, Reason.UNREAD_SOURCE, word, places, lane)
            _stop(h)

    h.for_each_lane(mask, one)
    h.next()


def _note(h: Handler, orders: Orders, epoch: Any, seen: int, of: Any, generation: Any) -> Any:
    orders.put(epoch, seen, _ring(h, of, generation))
    return h.ir.add(generation, h.i64(1))


@emits(ProxyFence)
def proxy_fence(h: Handler, op: ProxyFence) -> None:
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)
    orders = Orders(h, ShadowState(h))
    shadow, warp = orders.shadow, orders.shadow.number
    number = orders.get(ProxyShadow.FENCES, warp, i32)
    event, _ = orders.fence(warp, h.ir.zext(number, i64))
    who = orders.now(mask)
    copy = h.add(event, FenceEvent.ORDER)
    h.call("llvm.memcpy.p0.p0.i64", ir.VoidType(), copy, who.order, h.i64(WarpOrder.nbytes), const(i1, 0))
    for value, field in (
        (shadow.clock(WarpClock.EPOCH), FenceEvent.EPOCH), (who.block_floor, FenceEvent.BLOCK_FLOOR),
        (who.warp_floor, FenceEvent.WARP_FLOOR), (mask, FenceEvent.MASK), (h.i32(op.kinds), FenceEvent.KINDS),
        (shadow.get(Shadow.ACQUIRED), FenceEvent.ACQUIRED),
    ):
        h.store(value, event, field)
    table = shadow.get(Shadow.FENCED_BLOCKS)
    with h.ir.if_then(h.nonzero(table) if op.kinds & Kinds.GLOBAL else const(i1, 0)):
        place = h.ir.shl(h.ir.zext(shadow.get(Shadow.BLOCK, i32), i64), h.i64(3))
        h.store(shadow.clock(WarpClock.EPOCH), h.ir.inttoptr(h.ir.add(table, place), pointer), 0)
    orders.put(h.ir.add(number, h.i32(1)), ProxyShadow.FENCES, warp)
    alone = h.ir.icmp_unsigned("!=", shadow.get(Shadow.GIVEN_UP), shadow.get(Shadow.BASE))
    h.branch_unless(alone, lambda: report(h, shadow, Reason.SYNC_INSTRUCTION, h.following(), mask))
    shadow.begin_epoch()
    h.next()
