"""Handlers that follow mbarriers: the order among the warps of a block, as vectors with a number for each warp.

A warp that arrives puts what it knows into the mbarrier, one that waits takes what was there when the last phase ended
(:class:`..machine.shadow.WarpOrder`). What these cannot hold exactly (lanes of a warp that have acquired different
things, several of its lanes that arrive apart) is left to Python from there on, until the block ends.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import MbarrierFollowing, OrderLookup, SyncMbarrier
from ...machine.layout import LANES, Block, Mbarrier, Warp
from ...machine.shadow import (
    EPOCH_SHIFT, LANE, MBARRIERS, SEVERAL_LANES, WARP, WARP_SHIFT, Action, MbarrierOrder, Reason, Shadow, WarpClock,
    WarpOrder,
)
from ..data import guard_mask
from ..handler import Handler, i1, i32, i64, lanes_of, pointer
from ..access import Access
from ..registry import builds, emits
from .epochs import ShadowState, leave

__all__ = ["ARRIVE", "PRECEDE", "SETTLED", "Row", "Rows"]

ARRIVE = ir.FunctionType(i1, [pointer, pointer, pointer, i32, i64, i64])
SETTLED = ir.FunctionType(i1, [pointer, pointer, pointer, i64, i32, i1])
PRECEDE = ir.FunctionType(i1, [pointer, pointer, pointer, pointer, i64, i64, i32])
Row = lanes_of(i64)
_WHOLE = 0xFFFFFFFF << EPOCH_SHIFT | WARP
"""Of a shadow word: its epoch and warp, which all are known of together."""
_ROWS = (("PENDING", "COMPLETE"), ("PENDING_ONE", "COMPLETE_ONE"))


@emits(SyncMbarrier, slow_path=True)
def sync_mbarrier(h: Handler, op: SyncMbarrier) -> None:
    access = Access(h, op.address, None, 8, True)
    mask = guard_mask(h, op.guard, True)
    statement = h.field()
    h.skip_unless_any(mask)
    if op.address.scalar:
        host = access.host(mask)
        hosts, one = h.splat(host), ir.Constant(i1, 1)
    else:
        hosts = access.hosts(mask)
        host = h.ir.extract_element(hosts, h.first_lane(mask))
        differs = h.mask(h.ir.icmp_unsigned("!=", hosts, h.splat(host)))
        one = h.zero(h.ir.and_(differs, mask))
    shadow = ShadowState(h)
    place = h.ir.or_(h.ir.zext(statement, i64), h.i64(op.action))

    def follow() -> Any:
        function = h.ir.bitcast(shadow.get(Shadow.ARRIVE, pointer), ARRIVE.as_pointer())
        return h.ir.call(function, [h.rec, h.warp, h.block, mask, host, place])

    def report() -> None:
        h.store(hosts, h.block, Block.SCRATCH)
        leave(h, shadow, Reason.SYNC_ACCESS, h.following(), mask)

    h.branch_unless(h.asked_if(one, follow), report)
    h.next()


class Rows:
    """What a warp knows, in a routine."""

    def __init__(self, h: Handler, shadow: ShadowState) -> None:
        self.h, self.shadow = h, shadow
        self.orders = shadow.get(Shadow.ORDERS, pointer)
        self.mine = h.add(self.orders, h.ir.mul(shadow.number, h.i64(WarpOrder.nbytes)))
        floor = h.load(self.mine, WarpOrder.PART_FLOOR, i64)
        self.shared = h.ir.icmp_unsigned("<", floor, shadow.clock(WarpClock.WARP_FLOOR))
        """Whether all lanes know what some have acquired, since the warp has passed a barrier."""

    def row(self, base: Any, offset: int) -> Any:
        return self.h.load(base, offset, Row, 64)

    def alone(self) -> Any:
        """Whether Python does not follow the block."""
        shadow = self.shadow
        return self.h.ir.icmp_unsigned("!=", shadow.get(Shadow.GIVEN_UP), shadow.get(Shadow.BASE))

    def part_mask(self) -> Any:
        return self.h.load(self.mine, WarpOrder.PART_MASK, i32)

    def end(self, done: bool) -> None:
        self.h.ir.ret(ir.Constant(i1, done))

    def most(self, one: Any, other: Any) -> Any:
        return self.h.call("llvm.umax.v32i64", Row, one, other)

    def most_ones(self, one: Any, other: Any, known: Any) -> Any:
        """The later of two accesses of one lane of each warp; ends where that forgets what ``known`` does not cover."""
        h, none = self.h, ir.Constant(Row, None)
        most, least = self.most(one, other), h.call("llvm.umin.v32i64", Row, one, other)
        other_lane = h.ir.icmp_unsigned("!=", h.ir.and_(h.ir.xor(most, least), h.splat(h.i64(LANE))), none)
        beyond = h.ir.icmp_unsigned(">=", least, h.ir.add(known, h.splat(h.i64(1 << EPOCH_SHIFT))))
        lost = h.ir.and_(h.ir.and_(other_lane, beyond), h.ir.icmp_unsigned("!=", least, none))
        h.branch_unless(h.zero(h.mask(lost)), lambda: self.end(False))
        return most

    def settle_part(self) -> None:
        """What some lanes have acquired is known to all behind a barrier of the warp."""
        h = self.h
        with h.ir.if_then(h.ir.and_(h.nonzero(self.part_mask()), self.shared)):
            known = self.most(self.row(self.mine, WarpOrder.KNOWN), self.row(self.mine, WarpOrder.PART))
            one, part = self.row(self.mine, WarpOrder.ONE), self.row(self.mine, WarpOrder.PART_ONE)
            one = self.most_ones(one, part, self.above_floor(known))
            h.store(known, self.mine, WarpOrder.KNOWN, 64)
            h.store(one, self.mine, WarpOrder.ONE, 64)
            h.store(h.i32(0), self.mine, WarpOrder.PART_MASK)

    def above_floor(self, known: Any) -> Any:
        """With what barriers of the block order."""
        return self.most(known, self.h.splat(self.shadow.clock(WarpClock.BLOCK_FLOOR)))

    def released(self, active: Any, whole: Any) -> tuple[Any, Any]:
        """What lanes release: all that are alive, or one."""
        h, shadow, nothing = self.h, self.shadow, ir.Constant(Row, None)
        takes_part = h.splat(h.nonzero(h.ir.and_(active, self.part_mask())))
        part, part_one = (
            h.ir.select(takes_part, self.row(self.mine, place), nothing)
            for place in (WarpOrder.PART, WarpOrder.PART_ONE)
        )
        known = self.above_floor(self.most(self.row(self.mine, WarpOrder.KNOWN), part))
        one = self.most_ones(self.row(self.mine, WarpOrder.ONE), part_one, known)
        word = h.ir.and_(shadow.clock(WarpClock.EPOCH), h.i64(-1 << EPOCH_SHIFT))
        now = h.ir.add(word, h.i64(1 << EPOCH_SHIFT))
        mine = h.ir.icmp_unsigned("==", h.iota(64), h.splat(shadow.number))
        own = h.ir.select(whole, now, shadow.clock(WarpClock.WARP_FLOOR))
        known = self.most(known, h.ir.select(mine, h.splat(own), nothing))
        lane = h.ir.or_(now, h.ir.zext(h.first_lane(active), i64))
        lane = h.ir.select(whole, h.i64(0), lane)
        return known, self.most_ones(one, h.ir.select(mine, h.splat(lane), nothing), known)


@builds(MbarrierFollowing)
def follow_mbarrier(module: ir.Module, name: str, _: MbarrierFollowing) -> None:
    """Follow what the lanes of a mask do to the mbarrier at a host address; False to leave it to Python."""
    _Follow(module, name)


class _Follow(Rows):
    def __init__(self, module: ir.Module, name: str) -> None:
        h = Handler(module, name, result=ARRIVE)
        super().__init__(h, ShadowState(h))
        self.active, self.host, self.place = h.function.args[3:]
        shadow = self.shadow
        self.base = shadow.get(Shadow.BASE)
        h.branch_unless(self.alone(), lambda: self.end(False))
        self.word = h.ir.and_(shadow.clock(WarpClock.EPOCH), h.i64(-1 << EPOCH_SHIFT))
        self.whole = h.ir.icmp_unsigned("==", self.active, h.load(h.warp, Warp.ALIVE, i32))
        parity = h.load(h.ir.inttoptr(self.host, pointer), 0, i64)
        self.parity = h.ir.trunc(h.ir.and_(h.ir.lshr(parity, h.i64(Mbarrier.PARITY)), h.i64(1)), i32)
        self.mbarrier = self.find()
        with h.ir.if_then(self.does(Action.INITIALISES)):
            self.initialise()
            self.end(True)
            h.ir.position_at_end(h.block_named("unreachable"))
        self.settle_part()
        self.begin_phase()
        self.demand_initialised()
        with h.ir.if_then(self.does(Action.ARRIVES)):
            self.release()
        with h.ir.if_then(self.does(Action.WAITS)):
            self.acquire()
        self.end(True)

    def does(self, action: int) -> Any:
        return self.h.nonzero(self.h.ir.and_(self.place, self.h.i64(action)))

    def of(self, name: str) -> Any:
        return self.row(self.mbarrier, getattr(MbarrierOrder, name))

    def put(self, name: str, row: Any) -> None:
        self.h.store(row, self.mbarrier, getattr(MbarrierOrder, name), 64)

    def find(self) -> Any:
        """The entry of the mbarrier, made where there is none; ends where there is no room."""
        h = self.h
        table = h.add(self.orders, LANES * WarpOrder.nbytes)
        first = h.ir.lshr(self.host, h.i64(3))
        head, look, stale, next_, found, full = (
            h.block_named(name) for name in ("head", "look", "stale", "next", "found", "full")
        )
        before = h.ir.block
        h.ir.branch(head)
        h.ir.position_at_end(head)
        tried = h.ir.phi(i64)
        tried.add_incoming(h.i64(0), before)
        h.ir.cbranch(h.ir.icmp_unsigned("<", tried, h.i64(MBARRIERS)), look, full)
        h.ir.position_at_end(full)
        self.end(False)
        h.ir.position_at_end(look)
        number = h.ir.and_(h.ir.add(first, tried), h.i64(MBARRIERS - 1))
        entry = h.add(table, h.ir.mul(number, h.i64(MbarrierOrder.nbytes)))
        used = h.ir.icmp_unsigned("==", h.load(entry, MbarrierOrder.BASE, i64), self.base)
        h.ir.cbranch(used, next_, stale)
        h.ir.position_at_end(stale)
        h.store(self.base, entry, MbarrierOrder.BASE)
        h.store(self.host, entry, MbarrierOrder.HOST)
        self.clear(entry, h.i64(0))
        h.store(self.parity, entry, MbarrierOrder.PARITY)
        h.ir.branch(found)
        h.ir.position_at_end(next_)
        tried.add_incoming(h.ir.add(tried, h.i64(1)), next_)
        same = h.ir.icmp_unsigned("==", h.load(entry, MbarrierOrder.HOST, i64), self.host)
        h.ir.cbranch(same, found, head)
        h.ir.position_at_end(found)
        return entry

    def clear(self, entry: Any, initialiser: Any) -> None:
        h = self.h
        for rows in _ROWS:
            for name in rows:
                h.store(ir.Constant(Row, None), entry, getattr(MbarrierOrder, name), 64)
        h.store(initialiser, entry, MbarrierOrder.INITIALISER)
        h.store(h.i32(0), entry, MbarrierOrder.PARITY)
        h.store(h.i32(0), entry, MbarrierOrder.USERS)

    def initialise(self) -> None:
        h = self.h
        lane = h.ir.or_(h.ir.zext(h.first_lane(self.active), i64), h.ir.shl(self.shadow.number, h.i64(WARP_SHIFT)))
        place = h.ir.and_(self.place, h.i64(-16))
        self.clear(self.mbarrier, h.ir.or_(h.ir.or_(self.word, place), lane))
        self.shadow.begin_epoch()

    def begin_phase(self) -> None:
        """What was released before a phase ended can be acquired."""
        h, mbarrier = self.h, self.mbarrier
        ended = h.ir.icmp_unsigned("!=", h.load(mbarrier, MbarrierOrder.PARITY, i32), self.parity)
        with h.ir.if_then(ended):
            known = self.most(self.of("COMPLETE"), self.of("PENDING"))
            one = self.most_ones(self.of("COMPLETE_ONE"), self.of("PENDING_ONE"), known)
            self.put("COMPLETE", known)
            self.put("COMPLETE_ONE", one)
            self.put("PENDING", ir.Constant(Row, None))
            self.put("PENDING_ONE", ir.Constant(Row, None))
            h.store(self.parity, mbarrier, MbarrierOrder.PARITY)

    def demand_initialised(self) -> None:
        """End where the mbarrier's initialisation does not happen before its use."""
        h, shadow, mbarrier = self.h, self.shadow, self.mbarrier
        users, bit = h.load(mbarrier, MbarrierOrder.USERS, i32), h.ir.shl(h.i32(1), h.ir.trunc(shadow.number, i32))
        with h.ir.if_then(h.zero(h.ir.and_(users, bit))):
            word = h.load(mbarrier, MbarrierOrder.INITIALISER, i64)
            warp = h.ir.lshr(h.ir.and_(word, h.i64(WARP)), h.i64(WARP_SHIFT))
            own = h.ir.icmp_unsigned("==", warp, shadow.number)
            before = h.ir.icmp_unsigned("<", word, shadow.clock(WarpClock.BLOCK_FLOOR))
            floor = h.ir.icmp_unsigned("<", word, shadow.clock(WarpClock.WARP_FLOOR))
            known = h.load(self.mine, h.ir.shl(warp, h.i64(3)), i64)
            all_ = h.ir.or_(h.ir.or_(before, h.ir.and_(own, floor)), h.ir.icmp_unsigned("<", word, known))
            lane = h.ir.shl(h.i32(1), h.ir.trunc(h.ir.and_(word, h.i64(LANE)), i32))
            same = h.ir.and_(own, h.ir.icmp_unsigned("==", self.active, lane))
            h.branch_unless(h.ir.or_(all_, same), lambda: self.end(False))
            h.store(h.ir.or_(users, h.ir.select(all_, bit, h.i32(0))), mbarrier, MbarrierOrder.USERS)

    def release(self) -> None:
        """Lanes arrive: all that are alive, or one."""
        h, shadow = self.h, self.shadow
        latest = h.load(self.mine, WarpOrder.TILE_LATEST, i64)
        single = h.ir.icmp_unsigned("<=", latest, shadow.clock(WarpClock.WARP_FLOOR))
        single = h.ir.and_(single, h.zero(h.ir.and_(self.active, h.ir.sub(self.active, h.i32(1)))))
        h.branch_unless(h.ir.or_(self.whole, single), lambda: self.end(False))
        known, one = self.released(self.active, self.whole)
        pending = self.most(self.of("PENDING"), known)
        one = self.most_ones(self.of("PENDING_ONE"), one, pending)
        self.put("PENDING", pending)
        self.put("PENDING_ONE", one)
        shadow.begin_epoch()

    def acquire(self) -> None:
        h = self.h
        complete, one = self.of("COMPLETE"), self.of("COMPLETE_ONE")
        known = self.row(self.mine, WarpOrder.KNOWN)
        ones = self.row(self.mine, WarpOrder.ONE)
        more = h.ir.or_(h.ir.icmp_unsigned(">", complete, known), h.ir.icmp_unsigned(">", one, ones))
        with h.ir.if_then(h.nonzero(h.mask(more))):
            with h.ir.if_else(self.whole) as (all_, some):
                with all_:
                    both = self.most(complete, known)
                    both_ones = self.most_ones(one, ones, self.above_floor(both))
                    h.store(both, self.mine, WarpOrder.KNOWN, 64)
                    h.store(both_ones, self.mine, WarpOrder.ONE, 64)
                with some:
                    self.acquire_part(complete, one)
            self.shadow.begin_epoch()

    def acquire_part(self, complete: Any, one: Any) -> None:
        """Only some lanes acquire: the same ones as since the last barrier of the warp."""
        h, before, nothing = self.h, self.part_mask(), ir.Constant(Row, None)
        first = h.zero(before)
        h.branch_unless(h.ir.or_(first, h.ir.icmp_unsigned("==", before, self.active)), lambda: self.end(False))
        part, part_one = (
            h.ir.select(h.splat(first), nothing, self.row(self.mine, place))
            for place in (WarpOrder.PART, WarpOrder.PART_ONE)
        )
        part = self.most(part, complete)
        part_one = self.most_ones(part_one, one, self.above_floor(part))
        h.store(part, self.mine, WarpOrder.PART, 64)
        h.store(part_one, self.mine, WarpOrder.PART_ONE, 64)
        h.store(self.shadow.clock(WarpClock.WARP_FLOOR), self.mine, WarpOrder.PART_FLOOR)
        h.store(self.active, self.mine, WarpOrder.PART_MASK)


@builds(OrderLookup)
def look_order_up(module: ir.Module, name: str, _: OrderLookup) -> None:
    """Whether the accesses of shadow words, but for those that are 0, happen before what the lanes of a mask do."""
    h = Handler(module, name, result=PRECEDE)
    words, count, private, mask = h.function.args[3:]
    rows = Rows(h, ShadowState(h))
    shadow = rows.shadow
    part = h.ir.and_(h.nonzero(rows.part_mask()), h.ir.or_(rows.shared, h.zero(
        h.ir.and_(mask, h.ir.not_(rows.part_mask()))
    )))
    number = shadow.get(Shadow.BLOCK, i32)
    lane, single = h.first_lane(mask), h.zero(h.ir.and_(mask, h.ir.sub(mask, h.i32(1))))
    place_of = (h.ir.add(h.ir.shl(h.ir.zext(lane, i64), h.i64(shift)), h.i64(field)) for field, shift in (
        (WarpOrder.TILE_MASK, 2), (WarpOrder.TILE_FLOOR, 3)
    ))
    tile, tile_floor = (h.load(rows.mine, place, kind) for place, kind in zip(place_of, (i32, i64)))
    own = h.ir.shl(shadow.number, h.i64(WARP_SHIFT))
    last = h.alloca(i64)
    h.ir.store(h.i64(0), last)

    def of_tile(word: Any) -> Any:
        """Whether the access is of a lane that a barrier of some lanes of the warp orders before the only one."""
        same = h.ir.icmp_unsigned("==", h.ir.and_(word, h.i64(WARP | SEVERAL_LANES)), own)
        inside = h.ir.lshr(tile, h.ir.trunc(h.ir.and_(word, h.i64(LANE)), i32))
        inside = h.ir.and_(h.ir.trunc(inside, i1), h.ir.icmp_unsigned("<", word, tile_floor))
        return h.ir.and_(h.ir.and_(single, same), inside)

    def by_proxy(word: Any, epoch: Any) -> None:
        """An access by the async proxy: whether it is complete."""
        known = h.nonzero(shadow.get(Shadow.SETTLED))

        def settled() -> Any:
            function = h.ir.bitcast(shadow.get(Shadow.SETTLED, pointer), SETTLED.as_pointer())
            return h.ir.call(function, [h.rec, h.warp, h.block, word, mask, ir.Constant(i1, 0)])

        h.branch_unless(h.asked_if(known, settled), lambda: rows.end(False))
        h.ir.store(epoch, last)

    def one(at: Any) -> None:
        word = h.load(words, h.ir.shl(at, h.i64(3)), i64)
        epoch = h.ir.and_(word, h.i64(_WHOLE))
        todo = h.ir.and_(h.nonzero(word), h.ir.icmp_unsigned("!=", epoch, h.ir.load(last)))
        with h.ir.if_then(h.ir.and_(todo, h.ir.icmp_signed("<", word, h.i64(0))), likely=False):
            by_proxy(word, epoch)
        with h.ir.if_then(h.ir.and_(todo, h.ir.icmp_signed(">=", word, h.i64(0)))):
            block = h.load(*shadow.block_of(h.ir.lshr(word, h.i64(EPOCH_SHIFT))), i32)
            same = h.ir.or_(h.nonzero(private), h.ir.icmp_unsigned("==", block, number))
            h.branch_unless(same, lambda: rows.end(False))
            place = h.ir.lshr(h.ir.and_(word, h.i64(WARP)), h.i64(WARP_SHIFT - 3))

            whole = h.ir.icmp_unsigned("<", word, h.load(rows.mine, h.ir.add(place, h.i64(WarpOrder.KNOWN)), i64))
            h.ir.store(h.ir.select(whole, epoch, h.ir.load(last)), last)

            def known(all_: int, lane: int) -> Any:
                floor, one = (h.load(rows.mine, h.ir.add(place, h.i64(row)), i64) for row in (all_, lane))
                other = h.nonzero(h.ir.and_(h.ir.xor(word, one), h.i64(LANE)))
                other = h.ir.or_(other, h.nonzero(h.ir.and_(word, h.i64(SEVERAL_LANES))))
                by_one = h.ir.and_(h.ir.not_(other), h.ir.icmp_unsigned("<", word, one))
                return h.ir.or_(h.ir.icmp_unsigned("<", word, floor), by_one)

            def others() -> Any:
                good = h.ir.or_(known(WarpOrder.KNOWN, WarpOrder.ONE), of_tile(word))
                return h.ir.or_(good, h.ir.and_(part, known(WarpOrder.PART, WarpOrder.PART_ONE)))

            good = h.asked_if(h.ir.not_(whole), others)
            h.branch_unless(h.ir.or_(whole, good), lambda: rows.end(False))

    h.count(count, 1, one)
    rows.end(True)
