"""Handlers of the sanitizer that begin epochs.

A warp begins an epoch (:mod:`..machine.shadow`) where it starts on a block and at each barrier.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import EpochArrive, EpochBarrier, EpochBegin, EpochWarpBarrier
from ...machine.layout import LANES, Block, Warp
from ...machine.status import Status
from ...machine.proxy_shadow import ProxyShadow
from ...machine.shadow import (
    EPOCH_BITS, EPOCH_SHIFT, NO_TICKET, ORDER_CACHE_BITS, TICKET_SHIFT, Reason, Shadow, WarpClock, WarpOrder,
)
from ..data import guard_mask, source
from ..handler import Handler, byte, i1, i32, i64, lanes_of, pointer
from ..registry import emits

__all__ = ["ShadowState", "arrive", "barrier", "begin", "leave", "scatter_words", "warp_barrier"]


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
    for nothing_yet in (WarpClock.BARRIERS, WarpClock.CLUSTER_FLOOR, WarpClock.KNOWN):
        h.store(h.i64(0), shadow.warp, nothing_yet)
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
