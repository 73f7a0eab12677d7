"""Handlers of the sanitizer that begin epochs, and those that report synchronisation to Python.

A warp begins an epoch (:mod:`..machine.shadow`) where it starts on a block and at each barrier.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import (
    EpochArrive, EpochBarrier, EpochBegin, EpochWarpBarrier, SyncAccess, SyncInstruction,
)
from ...machine.layout import FULL, LANES, Block, Cluster, ClusterBlock, Warp
from ...machine.status import Status
from ...machine.proxy_shadow import ProxyShadow
from ...machine.shadow import (
    EPOCH_BITS, EPOCH_SHIFT, NO_TICKET, ORDER_CACHE_BITS, POLL, SYNC_RECORD_OF_ONE, TICKET_SHIFT, Reason, Shadow,
    SyncRecord, WarpClock, WarpOrder,
)
from ...machine.sync_graph import LEVEL_SHIFT, Does
from ..data import guard_mask, source
from ..handler import Handler, byte, i1, i32, i64, lanes_of, pointer
from ..gathers import gather
from ..access import access_of
from ..registry import emits

__all__ = [
    "FOLLOW", "ShadowState", "arrive", "barrier", "begin", "leave", "scatter_words", "sync_access", "sync_instruction",
    "warp_barrier",
]

FOLLOW = ir.FunctionType(i1, [pointer, pointer, pointer, i32, i32, i64])
_WRITES = 16
"""Where the number of strong writes stands behind the log's cursor."""


class ShadowState:
    """The shadow state of a block and the clock of the current warp, in a handler.

    ``fixed``: the handler changes nothing of what it loads.
    """

    def __init__(self, h: Handler, fixed: bool = False) -> None:
        self.h, self.fixed = h, fixed and h.single_warp
        self.block = h.load(h.block, Block.SHADOW, pointer, fixed=True)
        number = h.ir.zext(h.load(h.warp, Warp.INDEX, i32, fixed=True), i64)
        self.warp = h.add(self.block, h.ir.add(h.ir.mul(number, h.i64(WarpClock.nbytes)), h.i64(Shadow.WARP_CLOCKS)))
        self.number = number

    def get(self, offset: int, kind: ir.Type = i64) -> Any:
        return self.h.load(self.block, offset, kind, fixed=self.fixed)

    def clock(self, offset: int) -> Any:
        return self.h.load(self.warp, offset, i64, fixed=self.fixed)

    def of_cluster(self) -> tuple[Any, Any]:
        """Where the epochs of the cluster begin, and how many of them from there on come before what the warp does."""
        base = self.get(Shadow.CLUSTER_BASE)
        return base, self.h.call("llvm.usub.sat.i64", i64, self.clock(WarpClock.CLUSTER_FLOOR), base)

    def block_of(self, epoch: Any) -> tuple[Any, Any]:
        """Base and offset of the entry that holds the block of an epoch."""
        h = self.h
        place = h.ir.and_(epoch, h.i64((1 << EPOCH_BITS) - 1))
        return self.get(Shadow.EPOCH_BLOCKS, pointer), h.ir.shl(place, h.i64(2))

    def begin_epoch(self) -> Any:
        """Begin an epoch of this warp; its number, shifted as in a shadow word."""
        h = self.h
        counter = self.get(Shadow.EPOCH_COUNTER, pointer)
        epoch = h.ir.add(h.load(counter, 0, i64), h.i64(1))
        h.store(epoch, counter, 0)
        h.store(self.get(Shadow.BLOCK, i32), *self.block_of(epoch))
        word = h.ir.shl(epoch, h.i64(EPOCH_SHIFT))
        h.store(h.ir.or_(word, h.ir.shl(self.number, h.i64(5))), self.warp, WarpClock.EPOCH)
        return word


@emits(EpochBegin)
def begin(h: Handler, _: EpochBegin) -> None:
    """The first warp resets the block's shadow state."""
    shadow = ShadowState(h)
    number = h.ir.add(h.ir.trunc(h.load(h.block, Block.CTA64, i64), i32), h.i32(1))
    with h.ir.if_then(h.ir.icmp_unsigned("!=", shadow.get(Shadow.BLOCK, i32), number)):
        h.store(number, shadow.block, Shadow.BLOCK)
        with h.ir.if_then(h.nonzero(shadow.get(Shadow.CACHE_USED, i32))):
            h.store(h.i32(0), shadow.block, Shadow.CACHE_USED)
            nothing, size = ir.Constant(byte, 0), h.i64(8 << ORDER_CACHE_BITS)
            cache = shadow.get(Shadow.ORDER_CACHE, pointer)
            h.call("llvm.memset.p0.i64", ir.VoidType(), cache, nothing, size, ir.Constant(i1, 0))
        with h.ir.if_then(h.nonzero(shadow.get(Shadow.COPY_BYTES))):
            h.store(h.i64(NO_TICKET << TICKET_SHIFT), shadow.block, Shadow.OLDEST_COPY)
            ones, rows = ir.Constant(byte, 255), shadow.get(Shadow.COPY_CLOCKS, pointer)
            size = h.ir.mul(shadow.get(Shadow.COPY_BYTES), shadow.get(Shadow.COPY_WARPS))
            h.call("llvm.memset.p0.i64", ir.VoidType(), rows, ones, size, ir.Constant(i1, 0))
        with h.ir.if_then(h.nonzero(shadow.get(Shadow.PROXIES))):
            _clear_shared(h, shadow)
        base = shadow.begin_epoch()
        for offset in (Shadow.BASE, Shadow.WINDOW):
            h.store(base, shadow.block, offset)
        h.store(h.i64(0), shadow.block, Shadow.ACQUIRED)
        h.store(h.i32(0), shadow.block, Shadow.FENCED)
    floor = h.ir.add(shadow.get(Shadow.BASE), h.i64(1 << EPOCH_SHIFT))
    shadow.begin_epoch()
    h.store(floor, shadow.warp, WarpClock.BLOCK_FLOOR)
    h.store(floor, shadow.warp, WarpClock.WARP_FLOOR)
    h.store(h.i64(0), shadow.warp, WarpClock.BARRIERS)
    h.store(h.i64(0), shadow.warp, WarpClock.CLUSTER_FLOOR)
    h.next()


def _clear_shared(h: Handler, shadow: ShadowState) -> None:
    """Words of accesses by the async proxy are of no epoch: they say nothing of the block that they are of."""
    for start, size in (
        (shadow.get(Shadow.SHARED_WORDS, pointer), shadow.get(Shadow.SHARED_CLEARED)),
        (shadow.get(Shadow.PROXIES, pointer), h.i64(ProxyShadow.SEEN)),
    ):
        h.call("llvm.memset.p0.i64", ir.VoidType(), start, ir.Constant(byte, 0), size, ir.Constant(i1, 0))


def scatter_words(h: Handler, words: Any, places: Any, chosen: Any) -> None:
    """Store the shadow words of some lanes, the highest lane last: one store a lane is faster than a scatter."""
    nowhere = h.splat(h.ir.ptrtoint(h.add(h.block, Block.SCRATCH), i64))
    places = h.ir.select(chosen, places, nowhere)
    for lane in range(LANES):
        place = h.ir.inttoptr(h.ir.extract_element(places, h.i32(lane)), i64.as_pointer())
        h.alias_class(h.ir.store(h.ir.extract_element(words, h.i32(lane)), place, align=8), "shadow")


def _pending(shadow: ShadowState) -> Any:
    h = shadow.h
    odd = h.ir.and_(shadow.clock(WarpClock.BARRIERS), h.i64(1))
    return h.add(shadow.block, h.ir.add(h.ir.shl(odd, h.i64(3)), h.i64(Shadow.PENDING_BARRIERS)))


@emits(EpochArrive)
def arrive(h: Handler, _: EpochArrive) -> None:
    """The epoch of the last warp to arrive remains."""
    shadow = ShadowState(h)
    place = _pending(shadow)
    h.store(shadow.begin_epoch(), place, 0)
    h.next()


@emits(EpochBarrier)
def barrier(h: Handler, op: EpochBarrier) -> None:
    mask = guard_mask(h, op.guard, True)
    shadow = ShadowState(h)
    with h.ir.if_then(h.nonzero(mask)):
        floor = h.load(_pending(shadow), 0, i64)
        h.store(floor, shadow.warp, WarpClock.BLOCK_FLOOR)
        h.store(floor, shadow.warp, WarpClock.WARP_FLOOR)
        h.store(h.ir.add(shadow.clock(WarpClock.BARRIERS), h.i64(1)), shadow.warp, WarpClock.BARRIERS)
        shadow.begin_epoch()
    h.next()


@emits(EpochWarpBarrier)
def warp_barrier(h: Handler, op: EpochWarpBarrier) -> None:
    """A barrier of part of the warp is reported, unless all that its lanes know by others is in one mask."""
    mask = guard_mask(h, op.guard, True)
    members = source(h, op.members, LANES)
    shadow = ShadowState(h)
    some, whole, part, after = (h.block_named(n) for n in ("some", "whole", "part", "after"))
    h.ir.cbranch(h.nonzero(mask), some, after)
    h.ir.position_at_end(some)
    first = h.ir.extract_element(members, h.first_lane(mask))
    absent = h.ir.and_(h.load(h.warp, Warp.INITIAL, i32), h.ir.not_(h.ir.and_(mask, first)))
    h.ir.cbranch(h.zero(absent), whole, part)
    h.ir.position_at_end(whole)
    h.store(shadow.begin_epoch(), shadow.warp, WarpClock.WARP_FLOOR)
    h.ir.branch(after)
    h.ir.position_at_end(part)
    if op.followed:
        _tile_barrier(h, shadow, mask, members)
        h.ir.branch(after)
    else:
        h.deoptimise(lambda: leave(h, shadow, Reason.WARP_BARRIER, h.following(), mask))
    h.ir.position_at_end(after)
    h.next()


def _tile_barrier(h: Handler, shadow: ShadowState, mask: Any, members: Any) -> None:
    """Note a barrier of lanes of the warp; return to Python where some of them know more than the others."""
    row = h.add(shadow.get(Shadow.ORDERS, pointer), h.ir.mul(shadow.number, h.i64(WarpOrder.nbytes)))
    floor = shadow.clock(WarpClock.WARP_FLOOR)
    tiles = h.ir.and_(members, h.splat(mask))
    before = h.load(row, WarpOrder.TILE_MASK, lanes_of(i32), 64)
    floors = h.load(row, WarpOrder.TILE_FLOOR, lanes_of(i64), 64)
    outside = h.ir.icmp_unsigned("!=", h.ir.and_(before, h.ir.not_(tiles)), ir.Constant(lanes_of(i32), None))
    more = h.ir.and_(h.mask(h.ir.and_(outside, h.ir.icmp_unsigned(">", floors, h.splat(floor)))), mask)
    shared = h.ir.icmp_unsigned("<", h.load(row, WarpOrder.PART_FLOOR, i64), floor)
    shared = h.ir.or_(shared, h.zero(h.load(row, WarpOrder.PART_MASK, i32)))
    alone = h.ir.icmp_unsigned("!=", shadow.get(Shadow.GIVEN_UP), shadow.get(Shadow.BASE))
    fine = h.ir.and_(h.zero(more), h.ir.and_(shared, alone))

    def away() -> None:
        leave(h, shadow, Reason.WARP_BARRIER, h.following(), mask)

    h.branch_unless(fine, lambda: h.deoptimise(away))
    now, active = shadow.begin_epoch(), h.bools(mask)
    h.store(h.ir.select(active, h.splat(now), floors), row, WarpOrder.TILE_FLOOR, 64)
    h.store(h.ir.select(active, tiles, before), row, WarpOrder.TILE_MASK, 64)
    h.store(now, row, WarpOrder.TILE_LATEST)


def leave(h: Handler, shadow: ShadowState, reason: int, resume: Any, mask: Any) -> None:
    """Return to Python; the warp resumes at the micro-op ``resume``."""
    h.store(h.i32(reason), shadow.block, Shadow.REASON)
    h.stop(Status.CALLBACK)
    h.store(resume, h.warp, Warp.PC)
    h.store(h.ir.zext(mask, i64), h.block, Block.FAULT_ADDRESS)
    h.ir.ret_void()


@emits(SyncInstruction)
def sync_instruction(h: Handler, op: SyncInstruction) -> None:
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)
    if op.whole:
        h.branch_unless(h.ir.icmp_unsigned("==", mask, h.load(h.warp, Warp.ALIVE, i32)), h.next)
    shadow = ShadowState(h)
    if op.logged:
        phase = _phase(h) if op.does & Does.CLUSTER else None
        if phase is not None and op.orders_all:
            _order_all(h, shadow, mask, phase, op.does)
        who = mask if phase is None else _whole(h, mask)
        _follow(h, shadow, who, op.does, h.i64(0) if phase is None else _key(h, phase, op.does))
        lanes = [] if phase is None else [(SyncRecord.HOSTS, h.splat(h.ir.zext(phase[1], i64)))]
        _log(h, shadow, Reason.SYNC_INSTRUCTION, mask, False, *lanes)
    else:
        h.deoptimise(lambda: leave(h, shadow, Reason.SYNC_INSTRUCTION, h.following(), mask))
        h.ir.position_at_end(h.block_named("left"))
        h.next()


def _whole(h: Handler, mask: Any) -> Any:
    """The mask, or all 32 lanes where it has all that the warp has."""
    same = h.ir.icmp_unsigned("==", mask, h.load(h.warp, Warp.INITIAL, i32))
    return h.ir.select(same, h.i32(FULL), mask)


def _phase(h: Handler) -> tuple[Any, Any]:
    """The cluster of the block, and the phase of its barrier."""
    head = h.load(h.load(h.block, Block.CLUSTER, pointer), ClusterBlock.HEAD, pointer)
    return head, h.load(head, Cluster.PHASE, i32)


def _order_all(h: Handler, shadow: ShadowState, mask: Any, phase: tuple[Any, Any], does: int) -> None:
    """Note the epoch behind an arrival; or that all of the cluster before the last one happens before this warp.

    What a thread has done that has ended is not released by that, nor acquired by lanes that do not wait.
    """
    waits = bool(does & Does.ACQUIRES)
    number = h.ir.sub(phase[1], h.i32(1)) if waits else phase[1]
    odd = h.ir.shl(h.ir.zext(h.ir.and_(number, h.i32(1)), i64), h.i64(3))
    place = h.add(phase[0], h.ir.add(odd, h.i64(Cluster.PENDING)))
    if not waits:
        epoch = h.load(shadow.get(Shadow.EPOCH_COUNTER, pointer), 0, i64)
        h.store(h.ir.shl(h.ir.add(epoch, h.i64(1)), h.i64(EPOCH_SHIFT)), place, 0)
        return
    whole = h.ir.icmp_unsigned("==", mask, h.load(h.warp, Warp.INITIAL, i32))
    with h.ir.if_then(h.ir.and_(whole, h.zero(h.load(phase[0], Cluster.ENDED, i32)))):
        h.store(h.load(place, 0, i64), shadow.warp, WarpClock.CLUSTER_FLOOR)


def _key(h: Handler, phase: tuple[Any, Any], does: int) -> Any:
    """What stands for a phase as the address of a place: of the one that is over, for threads that have waited."""
    number = h.ir.zext(h.ir.sub(phase[1], h.i32(1)) if does & Does.ACQUIRES else phase[1], i64)
    return h.ir.xor(h.ir.ptrtoint(phase[0], i64), h.ir.add(h.ir.shl(number, h.i64(48)), h.i64(1)))


def _follow(h: Handler, shadow: ShadowState, mask: Any, does: int, key: Any) -> None:
    """Bring the synchronisation graph up to date."""
    if does & ((1 << LEVEL_SHIFT) - 1):
        function = h.ir.bitcast(shadow.get(Shadow.FOLLOW, pointer), FOLLOW.as_pointer())
        h.ir.call(function, [h.rec, h.warp, h.block, mask, h.i32(does), key])


def _log(h: Handler, shadow: ShadowState, reason: int, mask: Any, reads: bool, *lanes: tuple[int, Any]) -> None:
    """Note an event and go on in the next epoch; return to Python where there is no more room.

    Where compiled code follows the mbarriers of the block, what the warp knows by them is noted first; what a strong
    read acquires cannot be held there.
    """
    cursor, orders = shadow.get(Shadow.LOG, pointer), shadow.get(Shadow.ORDERS)
    alone = h.ir.icmp_unsigned("==", shadow.get(Shadow.GIVEN_UP), shadow.get(Shadow.BASE))
    followed = h.ir.and_(h.nonzero(orders), h.ir.not_(alone))
    at, end = h.load(cursor, 0, i64), h.load(cursor, 8, i64)
    room = h.ir.icmp_unsigned("<", at, end)
    if reads:
        room = h.ir.and_(room, h.ir.not_(followed))

    def away() -> None:
        leave(h, shadow, reason, h.following(), mask)

    h.branch_unless(room, lambda: h.deoptimise(away))
    if not reads:
        with h.ir.if_then(followed, likely=False):
            row = h.add(h.ir.inttoptr(orders, pointer), h.ir.mul(shadow.number, h.i64(WarpOrder.nbytes)))
            after = h.ir.add(at, h.i64(SyncRecord.nbytes))
            latest = h.load(row, WarpOrder.TILE_LATEST, i64)
            whole = h.ir.icmp_unsigned("<=", latest, shadow.clock(WarpClock.WARP_FLOOR))
            whole = h.ir.and_(whole, h.zero(h.load(row, WarpOrder.PART_MASK, i32)))
            fine = h.ir.and_(whole, h.ir.icmp_unsigned("<", after, end))
            h.branch_unless(fine, lambda: h.deoptimise(away))
            known = [(SyncRecord.HOSTS, WarpOrder.KNOWN), (SyncRecord.BEFORE, WarpOrder.ONE)]
            rows = [(to, h.load(row, place, lanes_of(i64), 64)) for to, place in known]
            _record(h, shadow, cursor, h.i64(0), mask, rows)
    _record(h, shadow, cursor, h.ir.ptrtoint(h.here(), i64), mask, lanes)
    shadow.begin_epoch()
    h.next()


def _record(
    h: Handler, shadow: ShadowState, cursor: Any, place: Any, mask: Any, lanes: Iterable[tuple[int, Any]]
) -> None:
    """Write a record at the cursor; ``place`` is 0 where it says what the warp knows (:class:`WarpOrder`)."""
    at = h.load(cursor, 0, i64)
    record = h.ir.inttoptr(at, pointer)
    for value, offset in (
        (place, SyncRecord.PC), (h.ir.ptrtoint(h.block, i64), SyncRecord.STATE),
        (shadow.clock(WarpClock.EPOCH), SyncRecord.EPOCH),
        (shadow.clock(WarpClock.BLOCK_FLOOR), SyncRecord.BLOCK_FLOOR),
        (shadow.clock(WarpClock.WARP_FLOOR), SyncRecord.WARP_FLOOR),
        (shadow.clock(WarpClock.BARRIERS), SyncRecord.BARRIERS),
        (shadow.get(Shadow.BLOCK, i32), SyncRecord.BLOCK), (mask, SyncRecord.MASK),
    ):
        h.store(value, record, offset)
    lanes = list(lanes)

    def of_all() -> None:
        for offset, values in lanes:
            h.store(values, record, offset, 8)
        h.store(h.ir.add(at, h.i64(SyncRecord.nbytes)), cursor, 0)

    if isinstance(place, ir.Constant):
        of_all()
        return
    with h.ir.if_else(h.zero(h.ir.and_(mask, h.ir.sub(mask, h.i32(1))))) as (one, several):
        with one:
            for offset, values in lanes:
                where = SyncRecord.HOSTS + (offset - SyncRecord.HOSTS) // LANES
                lane = h.ir.and_(h.first_lane(mask), h.i32(LANES - 1))
                h.store(h.ir.extract_element(values, lane), record, where)
            h.store(h.ir.add(at, h.i64(SYNC_RECORD_OF_ONE)), cursor, 0)
        with several:
            of_all()


def _wide(h: Handler, values: Any) -> Any:
    """Numbers of the lanes in 64 bits each; the low ones of wider numbers."""
    kind, width = lanes_of(i64), values.type.element.width
    return values if width == 64 else (h.ir.zext if width < 64 else h.ir.trunc)(values, kind)


def _skip_poll(h: Handler, shadow: ShadowState, hosts: Any, mask: Any) -> None:
    """Go on with the next micro-op where lanes read once more what they have read, with no strong write since."""
    host = h.ir.extract_element(hosts, h.first_lane(mask))
    others = h.ir.and_(h.mask(h.ir.icmp_unsigned("!=", hosts, h.splat(host))), mask)
    now = (
        (WarpClock.POLLED_PC, h.ir.ptrtoint(h.here(), i64)), (WarpClock.POLLED_HOST, host),
        (WarpClock.POLLED_MASK, mask),
        (WarpClock.POLLED_WRITES, h.load(shadow.get(Shadow.LOG, pointer), _WRITES, i32)),
    )
    again = h.ir.icmp_unsigned(">", h.load(shadow.warp, WarpClock.POLLED_EPOCH, i64), shadow.get(Shadow.BASE))
    again = h.ir.and_(again, h.zero(others))
    for offset, value in now:
        again = h.ir.and_(again, h.ir.icmp_unsigned("==", h.load(shadow.warp, offset, value.type), value))

    def skip() -> None:
        _charge(h, shadow, host, mask)
        h.next()

    h.branch_unless(h.ir.not_(again), skip)
    for offset, value in (*now, (WarpClock.POLLED_EPOCH, shadow.clock(WarpClock.EPOCH))):
        h.store(value, shadow.warp, offset)


def _charge(h: Handler, shadow: ShadowState, host: Any, mask: Any) -> None:
    """Shorten the time slice of the block, since its lanes probably wait; a block function charges its loops.

    Who reads shared memory waits for a warp of the same block, unless the launch is in clusters: that warp is to run.
    """
    if not h.single_warp:
        return
    inside = h.ir.sub(host, h.load(h.block, Block.SHARED, i64))
    own = h.ir.icmp_unsigned("<", inside, h.load(h.block, Block.SHARED_BYTES, i64))
    own = h.ir.and_(own, h.zero(shadow.get(Shadow.CLUSTERS)))
    cost = h.ir.mul(h.call("llvm.ctpop.i32", i32, mask), h.ir.select(own, h.i32(0), h.i32(POLL)))
    h.store(h.ir.sub(h.load(h.block, Block.BUDGET, i32), cost), h.block, Block.BUDGET)


@emits(SyncAccess, slow_path=True)
def sync_access(h: Handler, op: SyncAccess) -> None:
    access = access_of(h, op.address, None, op.nbytes, op.writes)
    mask = guard_mask(h, op.guard, True)
    stored = source(h, op.stored, LANES) if op.stored else None
    h.skip_unless_any(mask)
    hosts = access.hosts(mask)
    shadow = ShadowState(h)
    if not op.logged:
        h.store(hosts, h.block, Block.SCRATCH)
        h.deoptimise(lambda: leave(h, shadow, Reason.SYNC_ACCESS, h.following(), mask))
        h.ir.position_at_end(h.block_named("left"))
        h.next()
        return
    lanes = [(SyncRecord.HOSTS, hosts)]
    if op.bits:
        lanes.append((SyncRecord.BEFORE, _wide(h, gather(h, hosts, op.bits, mask))))
    if stored is not None:
        lanes.append((SyncRecord.STORED, _wide(h, stored)))
    h.store(hosts, h.block, Block.SCRATCH)
    if op.writes:
        cursor = shadow.get(Shadow.LOG, pointer)
        h.store(h.ir.add(h.load(cursor, _WRITES, i32), h.i32(1)), cursor, _WRITES)
    else:
        _skip_poll(h, shadow, hosts, mask)
    _follow(h, shadow, mask, op.does, h.i64(0))
    if op.polls:
        _charge(h, shadow, h.ir.extract_element(hosts, h.first_lane(mask)), mask)
    _log(h, shadow, Reason.SYNC_ACCESS, mask, op.polls, *lanes)
