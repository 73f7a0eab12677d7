"""Handlers of the sanitizer that log synchronisation for Python: strong accesses, fences and barriers of clusters.

The synchronisation graph is brought up to date before that (:mod:`.releases`). A read that a loop repeats is logged
once, until there is a strong write.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import SyncAccess, SyncInstruction
from ...machine.layout import FULL, LANES, Block, Cluster, ClusterBlock, Warp
from ...machine.shadow import (
    ALIKE, EPOCH_SHIFT, POLL, SYNC_RECORD_OF_ONE, WRITES, Reason, Shadow, SyncRecord, WarpClock, WarpOrder,
)
from ...machine.sync_graph import LEVEL_SHIFT, Does
from ..access import access_of
from ..data import guard_mask, source
from ..gathers import gather
from ..handler import Handler, i1, i32, i64, lanes_of, pointer
from ..registry import emits
from .epochs import ShadowState, leave

__all__ = ["FOLLOW", "sync_access", "sync_instruction"]

FOLLOW = ir.FunctionType(i1, [pointer, pointer, pointer, i32, i32, i64])
"""Of the routine that follows what lanes do (:mod:`.releases`)."""
_WRITES = 16
"""Where the numbers of strong writes stand behind the log's cursor (:data:`..machine.shadow.WRITES`)."""


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
        h.store(h.i64(0), shadow.warp, WarpClock.POLLED_EPOCH)  # what is read again behind a fence may tell it more
        _follow(h, shadow, who, op.does, h.i64(0) if phase is None else _key(h, phase, op.does))
        lanes = [] if phase is None else [(SyncRecord.HOSTS, h.splat(h.ir.zext(phase[1], i64)))]
        _log(h, shadow, Reason.SYNC_INSTRUCTION, mask, False, True, *lanes)
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


def _log(
    h: Handler, shadow: ShadowState, reason: int, mask: Any, reads: bool, alike: bool, *lanes: tuple[int, Any]
) -> None:
    """Note an event and go on in the next epoch; return to Python where there is no more room.

    ``alike``: the numbers are the same in all lanes that take part. Where compiled code follows the mbarriers of the
    block, what the warp knows by them is noted first; what a strong read acquires cannot be held there.
    """
    cursor, orders = shadow.get(Shadow.LOG, pointer), shadow.get(Shadow.ORDERS)
    alone = h.ir.icmp_unsigned("==", shadow.get(Shadow.GIVEN_UP), shadow.get(Shadow.BASE))
    followed = h.ir.and_(h.nonzero(orders), h.ir.not_(alone))
    at, end = h.load(cursor, 0, i64), h.load(cursor, 8, i64)
    room = h.ir.icmp_unsigned("<", at, end)
    if reads:
        room = h.ir.and_(room, h.ir.not_(followed))

    def away() -> None:
        for place, values in lanes:
            if place == SyncRecord.HOSTS:
                h.store(values, h.block, Block.SCRATCH)
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
    place = h.ir.ptrtoint(h.here(), i64)
    _record(h, shadow, cursor, h.ir.or_(place, h.i64(ALIKE)) if alike else place, mask, lanes, alike)
    shadow.begin_epoch()
    h.next()


def _record(
    h: Handler, shadow: ShadowState, cursor: Any, place: Any, mask: Any, lanes: Iterable[tuple[int, Any]],
    alike: bool = False,
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

    def of_one() -> None:
        for offset, values in lanes:
            where = SyncRecord.HOSTS + (offset - SyncRecord.HOSTS) // LANES
            lane = h.ir.and_(h.first_lane(mask), h.i32(LANES - 1))
            h.store(h.ir.extract_element(values, lane), record, where)
        h.store(h.ir.add(at, h.i64(SYNC_RECORD_OF_ONE)), cursor, 0)

    if isinstance(place, ir.Constant):
        of_all()
    elif alike:
        of_one()
    else:
        with h.ir.if_else(h.zero(h.ir.and_(mask, h.ir.sub(mask, h.i32(1))))) as (one, several):
            with one:
                of_one()
            with several:
                of_all()


def _wide(h: Handler, values: Any) -> Any:
    """Numbers of the lanes in 64 bits each; the low ones of wider numbers."""
    kind, width = lanes_of(i64), values.type.element.width
    return values if width == 64 else (h.ir.zext if width < 64 else h.ir.trunc)(values, kind)


def _writes(h: Handler, shadow: ShadowState, host: Any) -> tuple[Any, Any]:
    """Where the strong writes to an address are counted, together with those to some others."""
    line = h.ir.xor(h.ir.lshr(host, h.i64(2)), h.ir.lshr(host, h.i64(7)))
    place = h.ir.shl(h.ir.and_(line, h.i64(WRITES - 1)), h.i64(2))
    return shadow.get(Shadow.LOG, pointer), h.ir.add(place, h.i64(_WRITES))


def _count_writes(h: Handler, shadow: ShadowState, hosts: Any, mask: Any) -> None:
    """Count strong writes of some lanes, mostly one."""

    def one(lane: Any) -> None:
        place = _writes(h, shadow, h.ir.extract_element(hosts, lane))
        h.store(h.ir.add(h.load(*place, i32), h.i32(1)), *place)

    h.for_each_lane(mask, one)


def _skip_poll(h: Handler, shadow: ShadowState, hosts: Any, mask: Any) -> None:
    """Go on with the next micro-op where lanes read once more what they have read, with no strong write there since."""
    host = h.ir.extract_element(hosts, h.first_lane(mask))
    others = h.ir.and_(h.mask(h.ir.icmp_unsigned("!=", hosts, h.splat(host))), mask)
    now = (
        (WarpClock.POLLED_PC, h.ir.ptrtoint(h.here(), i64)), (WarpClock.POLLED_HOST, host),
        (WarpClock.POLLED_MASK, mask),
        (WarpClock.POLLED_WRITES, h.load(*_writes(h, shadow, host), i32)),
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
    one = h.ir.extract_element(hosts, h.i32(0)) if op.address.scalar else None
    if one is None:
        h.store(hosts, h.block, Block.SCRATCH)
    if op.writes:
        _count_writes(h, shadow, hosts, mask)
    else:
        _skip_poll(h, shadow, hosts, mask)
    _follow(h, shadow, mask, op.does, h.i64(0) if one is None else one)
    if op.polls:
        _charge(h, shadow, h.ir.extract_element(hosts, h.first_lane(mask)), mask)
    alike = op.address.scalar and (stored is None or op.stored.scalar)
    _log(h, shadow, Reason.SYNC_ACCESS, mask, op.polls, alike, *lanes)
