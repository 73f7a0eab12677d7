"""The slow path of shadow checks: one lane and one granule after the other."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.layout import Block, Status
from ..machine.shadow import (
    EPOCH_SHIFT, LANE, ORDER_CACHE_BITS, ORDER_HASH, SEVERAL_LANES, STATEMENT_SHIFT, STRENGTH, STRENGTH_SHIFT,
    SUPPRESSED, THREAD, UNWRITTEN, WARP, WHOLE_WARP, Kind, Reason, Region, Role, Shadow, WarpClock,
)
from ..instructions.instrumentation import ShadowInspection
from .epochs import ShadowState
from .handler import Handler, i1, i32, i64, pointer
from .registry import builds

__all__ = ["INSPECT"]

INSPECT = ir.FunctionType(i1, [pointer, pointer, pointer, i32, i64, i32])


@builds(ShadowInspection)
def inspect(module: ir.Module, name: str, _: ShadowInspection) -> None:
    """Check the addresses in SCRATCH for the lanes of a mask; False to return to Python."""
    _Inspect(module, name)


class _Inspect:
    def __init__(self, module: ir.Module, name: str) -> None:
        h = self.h = Handler(module, name, result=INSPECT)
        mask, self.place, self.flags = h.function.args[3:]
        self.shadow = shadow = ShadowState(h)
        self.mine_warp = h.ir.or_(shadow.clock(WarpClock.EPOCH), self.place)
        self.suppressed = h.ir.icmp_unsigned("!=", h.ir.and_(self.place, h.i64(SUPPRESSED)), h.i64(0))
        done = shadow.get(Shadow.CHECKED_LANES, i32)
        h.for_each_lane(h.ir.and_(mask, h.ir.not_(done)), self.lane)
        h.store(h.i32(0), shadow.block, Shadow.CHECKED_LANES)
        h.ir.ret(ir.Constant(i1, 1))

    def bits(self, shift: int, width: int) -> Any:
        h = self.h
        return h.ir.and_(h.ir.lshr(self.flags, h.i32(shift)), h.i32((1 << width) - 1))

    def lane(self, lane: Any) -> None:
        h, shadow = self.h, self.shadow
        self.number = lane
        offset = h.ir.add(h.ir.shl(h.ir.zext(lane, i64), h.i64(3)), h.i64(Block.SCRATCH))
        host = h.load(h.block, offset, i64)
        regions, count = shadow.get(Shadow.REGIONS, pointer), shadow.get(Shadow.REGION_COUNT, i32)
        head, body, found, over = (h.block_named(n) for n in ("regions", "region", "found", "over"))
        before = h.ir.block
        h.ir.branch(head)
        h.ir.position_at_end(head)
        index = h.ir.phi(i32)
        index.add_incoming(h.i32(0), before)
        h.ir.cbranch(h.ir.icmp_unsigned("<", index, count), body, over)
        h.ir.position_at_end(body)
        region = h.add(regions, h.ir.mul(h.ir.zext(index, i64), h.i64(Region.nbytes)))
        within = h.ir.sub(host, h.load(region, Region.LOW, i64))
        hit = h.ir.icmp_unsigned("<", within, h.load(region, Region.BYTES, i64))
        index.add_incoming(h.ir.add(index, h.i32(1)), body)
        h.ir.cbranch(hit, found, head)
        h.ir.position_at_end(found)
        self.granules(region, host, within)
        h.ir.branch(over)
        h.ir.position_at_end(over)

    def granules(self, region: Any, host: Any, within: Any) -> None:
        h = self.h
        granule, count = h.ir.zext(self.bits(2, 3), i64), h.ir.zext(self.bits(5, 7), i64)
        words = h.load(region, Region.WORDS, i64)
        self.stride, self.kind = h.load(region, Region.STRIDE, i64), h.load(region, Region.KIND, i32)
        first = h.ir.add(words, h.ir.shl(h.ir.lshr(within, granule), h.i64(3)))
        head, body, after = (h.block_named(n) for n in ("pieces", "piece", "pieces_done"))
        before = h.ir.block
        h.ir.branch(head)
        h.ir.position_at_end(head)
        number = h.ir.phi(i64)
        number.add_incoming(h.i64(0), before)
        h.ir.cbranch(h.ir.icmp_unsigned("<", number, count), body, after)
        h.ir.position_at_end(body)
        self.at = h.ir.add(first, h.ir.shl(number, h.i64(3)))
        self.host = h.ir.add(host, h.ir.shl(number, granule))
        self.granule_check()
        number.add_incoming(h.ir.add(number, h.i64(1)), h.ir.block)
        h.ir.branch(head)
        h.ir.position_at_end(after)

    def get(self, plane: int) -> Any:
        h = self.h
        return h.ir.load(self.pointer(plane), align=8)

    def pointer(self, plane: int) -> Any:
        h = self.h
        return h.ir.inttoptr(h.ir.add(self.at, h.ir.mul(self.stride, h.i64(plane))), i64.as_pointer())

    def granule_check(self) -> None:
        h, shadow = self.h, self.shadow
        role, same = self.bits(0, 2), h.ir.trunc(self.bits(12, 1), i1)
        race, init = h.ir.trunc(self.bits(13, 1), i1), h.ir.trunc(self.bits(14, 1), i1)
        local = h.ir.icmp_unsigned("==", self.kind, h.i32(Kind.LOCAL))
        race = h.ir.and_(race, h.ir.not_(local))
        self.mine = h.ir.or_(self.mine_warp, h.ir.zext(self.number, i64))
        writer = self.get(0)
        reads = h.ir.icmp_unsigned("!=", role, h.i32(Role.WRITE))
        stale = h.ir.icmp_unsigned("<", writer, shadow.get(Shadow.BASE))
        stale = h.ir.select(h.ir.icmp_unsigned("!=", self.kind, h.i32(Kind.GLOBAL)), stale,
                            h.ir.icmp_unsigned("==", writer, h.i64(UNWRITTEN)))
        stale = h.ir.and_(h.ir.and_(init, reads), h.ir.and_(stale, h.ir.not_(self.suppressed)))
        h.branch_unless(h.ir.not_(stale), lambda: self.leave(Reason.UNINITIALISED, writer))
        quiet = h.ir.or_(h.ir.not_(race), self.suppressed)
        fine = h.ir.or_(quiet, self.fine(writer, h.ir.and_(same, h.ir.not_(reads))))
        h.branch_unless(fine, lambda: self.leave(Reason.WRITER, writer))
        is_read = h.ir.icmp_unsigned("==", role, h.i32(Role.READ))
        no = ir.Constant(i1, 0)
        with h.ir.if_else(is_read) as (then, otherwise):
            with then, h.ir.if_then(race):
                reader = self.get(1)
                change = h.ir.xor(reader, self.mine)
                here = h.ir.icmp_unsigned("<", change, h.i64(1 << EPOCH_SHIFT))
                other = h.ir.icmp_unsigned("!=", h.ir.and_(change, h.i64(SEVERAL_LANES | LANE)), h.i64(0))
                more = h.ir.select(h.ir.and_(here, other), h.i64(SEVERAL_LANES), h.i64(0))
                past = h.ir.or_(here, self.ordered(reader))
                h.ir.store(h.ir.select(past, self.get(2), reader), self.pointer(2), align=8)
                h.ir.store(h.ir.or_(self.mine, more), self.pointer(1), align=8)
            with otherwise:
                for plane, reason in ((1, Reason.READER), (2, Reason.EARLIER_READER)):
                    reader = self.get(plane)
                    fine = h.ir.or_(quiet, self.fine(reader, no))
                    h.branch_unless(fine, lambda reason=reason, reader=reader: self.leave(reason, reader))  # type: ignore[misc]
                h.ir.store(h.ir.select(self.weak_own(writer), writer, self.mine), self.pointer(0), align=8)

    def weak_own(self, word: Any) -> Any:
        """Whether a strong access follows a weak one of its thread: more accesses race with the weak one."""
        h = self.h
        change = h.ir.and_(h.ir.xor(word, self.mine), h.i64(THREAD))
        same = h.ir.icmp_unsigned("==", change, h.i64(0))
        weak = h.ir.icmp_unsigned("<", h.ir.and_(word, h.i64(STRENGTH)), h.ir.and_(self.mine, h.i64(STRENGTH)))
        return h.ir.and_(same, weak)

    def ordered(self, word: Any) -> Any:
        h, shadow = self.h, self.shadow
        below, floor, window = h.ir.icmp_unsigned, shadow.clock(WarpClock.BLOCK_FLOOR), shadow.get(Shadow.WINDOW)
        since = h.call("llvm.usub.sat.i64", i64, floor, window)  # none where another block had its turn since
        inside = below("<", h.ir.sub(word, window), since)
        there = h.ir.or_(below("<", word, shadow.get(Shadow.LAUNCH)), inside)
        return h.ir.select(below("!=", self.kind, h.i32(Kind.GLOBAL)), below("<", word, floor), there)

    def fine(self, word: Any, same: Any) -> Any:
        """Whether the access of a shadow word happens before this one, or does not race with it for another reason."""
        h, shadow, mine = self.h, self.shadow, self.mine
        equal = h.ir.icmp_unsigned
        change = h.ir.xor(word, mine)

        def agrees(bits: int) -> Any:
            return equal("==", h.ir.and_(change, h.i64(bits)), h.i64(0))

        epoch = h.ir.lshr(word, h.i64(EPOCH_SHIFT))
        block = equal("==", h.load(*shadow.block_of(epoch), i32), shadow.get(Shadow.BLOCK, i32))
        warp = h.ir.and_(block, agrees(WARP))
        thread = h.ir.and_(warp, equal("==", h.ir.and_(h.ir.or_(change, h.ir.and_(word, h.i64(SEVERAL_LANES))),
                                                      h.i64(LANE | SEVERAL_LANES)), h.i64(0)))
        met = h.ir.and_(warp, equal("<", word, shadow.clock(WarpClock.WARP_FLOOR)))
        both = [h.ir.and_(value, h.i64(STRENGTH)) for value in (word, mine)]
        weaker = h.ir.select(equal("<", *both), *both)
        needed = h.ir.select(block, h.i64(1 << STRENGTH_SHIFT), h.i64(2 << STRENGTH_SHIFT))
        strong = h.ir.and_(equal(">=", weaker, needed), equal("<", weaker, h.i64(3 << STRENGTH_SHIFT)))
        statement = agrees(0xFFFFFFFF << EPOCH_SHIFT | 0xFFFF << STATEMENT_SHIFT | WARP)
        benign = equal("==", both[0], h.i64(3 << STRENGTH_SHIFT))
        alike = h.ir.and_(statement, h.ir.or_(same, benign))
        good = self.ordered(word)
        for reason in (thread, met, strong, alike, self.cached(word, WHOLE_WARP), self.cached(word, 0)):
            good = h.ir.or_(good, reason)
        return good

    def cached(self, word: Any, whole: int) -> Any:
        """Whether the order is in the cache: Python has found it before, for both warps or for these two threads."""
        h, shadow = self.h, self.shadow
        key = h.ir.and_(word, h.i64(0xFFFFFFFF << EPOCH_SHIFT))
        if whole:
            own = h.ir.or_(h.ir.lshr(h.ir.and_(self.mine, h.i64(WARP)), h.i64(5)), h.i64(WHOLE_WARP))
        else:
            other = h.ir.and_(word, h.i64(LANE | SEVERAL_LANES))
            own = h.ir.or_(h.ir.and_(self.mine, h.i64(WARP | LANE)), h.ir.shl(other, h.i64(10)))
            own = h.ir.and_(own, h.i64(0xFFFFFFFF & ~WHOLE_WARP))
        key = h.ir.or_(key, own)
        slot = h.ir.lshr(h.ir.mul(key, h.i64(ORDER_HASH)), h.i64(64 - ORDER_CACHE_BITS))
        found = h.load(shadow.get(Shadow.ORDER_CACHE, pointer), h.ir.shl(slot, h.i64(3)), i64)
        return h.ir.icmp_unsigned("==", found, key)

    def leave(self, reason: int, word: Any) -> None:
        h, shadow = self.h, self.shadow
        for value, offset in (
            (word, Shadow.WORD), (self.at, Shadow.WORD_ADDRESS), (self.host, Shadow.HOST), (self.number, Shadow.LANE),
            (self.stride, Shadow.STRIDE), (h.i32(reason), Shadow.REASON),
        ):
            h.store(value, shadow.block, offset)
        before = h.ir.sub(h.ir.shl(h.i32(1), self.number), h.i32(1))
        h.store(h.ir.or_(shadow.get(Shadow.CHECKED_LANES, i32), before), shadow.block, Shadow.CHECKED_LANES)
        h.stop(Status.CALLBACK)
        h.ir.ret(ir.Constant(i1, 0))
