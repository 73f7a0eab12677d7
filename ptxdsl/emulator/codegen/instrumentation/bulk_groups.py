"""Bulk groups that write global memory: when each is complete, and what a shadow word of one stands for then.

What a group writes happens at no time that its thread knows, so its shadow words have an epoch of the group's own, and
are ordered with nothing. Once the thread has waited for the group, they stand for accesses in the epoch of that wait.
"""

from __future__ import annotations

from typing import Any

from ...instructions.instrumentation import BulkGroup
from ...machine.proxy_shadow import (
    GROUP_EPOCH, GROUP_RECORDS, GROUPED, THREAD_GROUPS, GroupRecord, ProxyShadow,
)
from ...machine.shadow import EPOCH_SHIFT, PENDING, WARP_SHIFT, Shadow, WarpClock
from ..data import guard_mask
from ..handler import Handler, i32, i64, pointer
from ..registry import emits
from .epochs import ShadowState

__all__ = ["Groups", "stands_for"]


class Groups:
    """Those of the threads of the current warp."""

    def __init__(self, h: Handler, shadow: ShadowState) -> None:
        self.h, self.shadow = h, shadow
        self.proxies = shadow.get(Shadow.PROXIES, pointer)

    def thread(self, lane: Any) -> Any:
        h = self.h
        return h.ir.add(h.ir.shl(self.shadow.number, h.i64(WARP_SHIFT)), h.ir.zext(lane, i64))

    def place(self, field: int, index: Any) -> Any:
        return self.h.add(self.proxies, self.h.ir.add(self.h.ir.shl(index, self.h.i64(2)), self.h.i64(field)))

    def get(self, field: int, index: Any) -> Any:
        return self.h.load(self.place(field, index), 0, i32)

    def put(self, value: Any, field: int, index: Any) -> None:
        self.h.store(value, self.place(field, index), 0)

    def open(self, lane: Any) -> None:
        """Note the upper half of the shadow words of the open group of a lane, which begins where there is none."""
        h, shadow, thread = self.h, self.shadow, self.thread(lane)
        with h.ir.if_then(h.zero(self.get(ProxyShadow.GROUP_OPEN, thread))):
            counter = shadow.get(Shadow.EPOCH_COUNTER, pointer)
            epoch = h.ir.add(h.load(counter, 0, i64), h.i64(1))
            h.store(epoch, counter, 0)
            h.store(shadow.get(Shadow.BLOCK, i32), *shadow.block_of(epoch))
            record = record_of(h, shadow, epoch)
            h.store(epoch, record, GroupRecord.EPOCH)
            h.store(h.i64(0), record, GroupRecord.DONE)
            self.put(h.ir.trunc(epoch, i32), ProxyShadow.GROUP_OPEN, thread)
        epoch = h.ir.zext(self.get(ProxyShadow.GROUP_OPEN, thread), i64)
        word = h.ir.or_(h.ir.shl(epoch, h.i64(EPOCH_SHIFT)), h.i64(GROUPED))
        h.store(word, shadow.block, Shadow.GROUP)

    def _at(self, thread: Any, number: Any) -> Any:
        h = self.h
        number = h.ir.and_(h.ir.zext(number, i64), h.i64(THREAD_GROUPS - 1))
        return h.ir.add(h.ir.mul(thread, h.i64(THREAD_GROUPS)), number)

    def _complete(self, thread: Any, end: Any) -> None:
        """All groups of a thread before ``end`` are complete."""
        h, shadow = self.h, self.shadow
        done = h.ir.and_(shadow.clock(WarpClock.EPOCH), h.i64(-1 << EPOCH_SHIFT))

        def one(number: Any) -> Any:
            epoch = h.ir.zext(self.get(ProxyShadow.GROUP_EPOCHS, self._at(thread, number)), i64)
            record = record_of(h, shadow, epoch)
            mine = h.ir.icmp_unsigned("==", h.load(record, GroupRecord.EPOCH, i64), epoch)
            with h.ir.if_then(h.ir.and_(mine, h.nonzero(epoch))):
                h.store(done, record, GroupRecord.DONE)
            return h.ir.add(number, h.i32(1))

        first = self.get(ProxyShadow.GROUP_DONE, thread)
        h.loop(first, lambda number: h.ir.icmp_signed("<", number, end), one)
        with h.ir.if_then(h.ir.icmp_signed("<", first, end)):
            self.put(end, ProxyShadow.GROUP_DONE, thread)

    def commit(self, lane: Any) -> None:
        h, thread = self.h, self.thread(lane)
        count = self.get(ProxyShadow.GROUP_COMMITTED, thread)
        self._complete(thread, h.ir.sub(count, h.i32(THREAD_GROUPS - 1)))
        self.put(self.get(ProxyShadow.GROUP_OPEN, thread), ProxyShadow.GROUP_EPOCHS, self._at(thread, count))
        self.put(h.i32(0), ProxyShadow.GROUP_OPEN, thread)
        self.put(h.ir.add(count, h.i32(1)), ProxyShadow.GROUP_COMMITTED, thread)

    def wait(self, lane: Any, left: int) -> None:
        thread = self.thread(lane)
        count = self.get(ProxyShadow.GROUP_COMMITTED, thread)
        self._complete(thread, self.h.ir.sub(count, self.h.i32(left)))


def record_of(h: Handler, shadow: ShadowState, epoch: Any) -> Any:
    """The record of a group, or of another one, by its epoch."""
    number = h.ir.and_(epoch, h.i64(GROUP_RECORDS - 1))
    return h.add(shadow.get(Shadow.GROUPS, pointer), h.ir.mul(number, h.i64(GroupRecord.nbytes)))


def stands_for(h: Handler, shadow: ShadowState, word: Any) -> Any:
    """A shadow word, or what one of a group stands for: 0 where that is ordered before all, itself while pending."""
    found = h.alloca(i64)
    h.ir.store(word, found)
    grouped = h.ir.and_(
        h.ir.icmp_unsigned(">=", word, h.i64(GROUPED)), h.ir.icmp_unsigned("<", word, h.i64(PENDING))
    )
    with h.ir.if_then(grouped, likely=False):
        epoch = h.ir.and_(word, h.i64(GROUP_EPOCH))
        number = h.ir.lshr(epoch, h.i64(EPOCH_SHIFT))
        h.ir.store(h.i64(0), found)
        with h.ir.if_then(h.ir.icmp_unsigned(">=", epoch, shadow.get(Shadow.LAUNCH))):
            record = record_of(h, shadow, number)
            with h.ir.if_then(h.ir.icmp_unsigned("==", h.load(record, GroupRecord.EPOCH, i64), number)):
                done = h.load(record, GroupRecord.DONE, i64)
                complete = h.ir.or_(done, h.ir.and_(word, h.i64(0xFFFFFFFF)))
                h.ir.store(h.ir.select(h.zero(done), word, complete), found)
    return h.ir.load(found)


@emits(BulkGroup)
def bulk_group(h: Handler, op: BulkGroup) -> None:
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)
    shadow = ShadowState(h)
    groups = Groups(h, shadow)
    h.for_each_lane(mask, groups.commit if op.commits else lambda lane: groups.wait(lane, op.left))
    if not op.commits:
        shadow.begin_epoch()
    h.next()
