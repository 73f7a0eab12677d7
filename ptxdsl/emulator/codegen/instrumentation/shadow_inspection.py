"""The slow path of shadow checks: one lane and one granule after the other."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import ShadowInspection
from ...machine.layout import Block, Status
from ...machine.shadow import (
    CHECK_FLAGS, EPOCH_SHIFT, LANE, ORDER_CACHE_BITS, ORDER_HASH, SEVERAL_LANES, STATEMENT_SHIFT, STRENGTH,
    STRENGTH_SHIFT, SUPPRESSED, THREAD, TICKET_SHIFT, UNWRITTEN, WARP, WARP_SHIFT, WHOLE_WARP, WORD_SHIFT, Kind, Plane,
    Reason, Region, Role, Shadow, WarpClock,
)
from .epochs import ShadowState
from ..handler import Handler, i1, i32, i64, pointer
from ..registry import builds

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
        self.suppressed = h.nonzero(h.ir.and_(self.place, h.i64(SUPPRESSED)))
        done = shadow.get(Shadow.CHECKED_LANES, i32)
        h.for_each_lane(h.ir.and_(mask, h.ir.not_(done)), self.lane)
        h.store(h.i32(0), shadow.block, Shadow.CHECKED_LANES)
        h.ir.ret(ir.Constant(i1, 1))

    def flag(self, name: str) -> Any:
        """A property of the check; of one bit, as a boolean."""
        h, (shift, width) = self.h, CHECK_FLAGS[name]
        value = h.ir.and_(h.ir.lshr(self.flags, h.i32(shift)), h.i32((1 << width) - 1))
        return h.ir.trunc(value, i1) if width == 1 else value

    def lane(self, lane: Any) -> None:
        """Check the granules of a lane, in the region that holds them."""
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
        granule, count = h.ir.zext(self.flag("granule"), i64), h.ir.zext(self.flag("granules"), i64)
        words = h.load(region, Region.WORDS, i64)
        self.stride, self.kind = h.load(region, Region.STRIDE, i64), h.load(region, Region.KIND, i32)
        self.owner = h.load(region, Region.OWNER, i64)
        first = h.ir.add(words, h.ir.shl(h.ir.lshr(within, granule), h.i64(WORD_SHIFT)))

        def one(number: Any) -> None:
            self.at = h.ir.add(first, h.ir.shl(number, h.i64(WORD_SHIFT)))
            self.host = h.ir.add(host, h.ir.shl(number, granule))
            self.check_granule()

        h.count(count, 1, one)

    def get(self, plane: int) -> Any:
        return self.h.ir.load(self.pointer(plane), align=8)

    def put(self, plane: int, word: Any) -> None:
        self.h.ir.store(word, self.pointer(plane), align=8)

    def pointer(self, plane: int) -> Any:
        h = self.h
        return h.ir.inttoptr(h.ir.add(self.at, h.ir.mul(self.stride, h.i64(plane))), i64.as_pointer())

    def check_granule(self) -> None:
        h = self.h
        role, init = self.flag("role"), self.flag("init")
        local = h.ir.icmp_unsigned("==", self.kind, h.i32(Kind.LOCAL))
        race = h.ir.and_(self.flag("race"), h.ir.not_(local))
        self.mine = h.ir.or_(self.mine_warp, h.ir.zext(self.number, i64))
        begins, checked, after = h.block_named("begins"), h.block_named("checked"), h.block_named("after")
        h.ir.cbranch(h.ir.icmp_unsigned("==", role, h.i32(Role.COPY)), begins, checked)
        h.ir.position_at_end(begins)
        self.put(Plane.COPY, h.ir.or_(self.shadow.get(Shadow.COPY_WORD), h.ir.zext(self.number, i64)))
        h.ir.branch(after)
        h.ir.position_at_end(checked)
        self.check_copy()
        writer = self.get(Plane.WRITER)
        reads = h.ir.icmp_unsigned("!=", role, h.i32(Role.WRITE))
        unwritten = h.ir.and_(h.ir.and_(init, reads), h.ir.and_(self.unwritten(writer), h.ir.not_(self.suppressed)))
        h.branch_unless(h.ir.not_(unwritten), lambda: self.leave(Reason.UNINITIALISED, writer))
        ignored = h.ir.or_(h.ir.not_(race), self.suppressed)
        same_value = h.ir.and_(self.flag("same_value"), h.ir.not_(reads))
        good = h.ir.or_(ignored, self.harmless(writer, same_value))
        h.branch_unless(good, lambda: self.leave(Reason.WRITER, writer))
        with h.ir.if_else(h.ir.icmp_unsigned("==", role, h.i32(Role.READ))) as (then, otherwise):
            with then, h.ir.if_then(race):
                self.read()
            with otherwise:
                self.write(writer, ignored)
        h.ir.branch(after)
        h.ir.position_at_end(after)

    def check_copy(self) -> None:
        """Leave where an asynchronous copy to a granule that is read is incomplete."""
        h = self.h
        owned = h.ir.and_(self.flag("copies"), h.nonzero(self.owner))
        look, on = h.block_named("copy"), h.block_named("no_copy")
        h.ir.cbranch(h.ir.and_(owned, h.ir.not_(self.suppressed)), look, on)
        h.ir.position_at_end(look)
        word, owner = self.get(Plane.COPY), h.ir.inttoptr(self.owner, pointer)
        clocks, size = (h.load(owner, field, i64) for field in (Shadow.COPY_CLOCKS, Shadow.COPY_BYTES))
        warp = h.ir.lshr(h.ir.and_(word, h.i64(WARP)), h.i64(WARP_SHIFT))
        at = h.ir.add(h.ir.mul(warp, size), h.ir.shl(h.ir.and_(word, h.i64(LANE)), h.i64(2)))
        oldest = h.load(h.ir.inttoptr(h.ir.add(clocks, at), pointer), 0, i32)
        complete = h.ir.icmp_unsigned("<", h.ir.trunc(h.ir.lshr(word, h.i64(TICKET_SHIFT)), i32), oldest)
        h.branch_unless(complete, lambda: self.leave(Reason.INCOMPLETE_COPY, word))
        h.ir.branch(on)
        h.ir.position_at_end(on)

    def unwritten(self, writer: Any) -> Any:
        h = self.h
        private = h.ir.icmp_unsigned("!=", self.kind, h.i32(Kind.GLOBAL))
        before_block = h.ir.icmp_unsigned("<", writer, self.shadow.get(Shadow.BASE))
        return h.ir.select(private, before_block, h.ir.icmp_unsigned("==", writer, h.i64(UNWRITTEN)))

    def read(self) -> None:
        """Become the last reader; the one before becomes the earlier reader, if it is of another warp and unordered."""
        h, reader = self.h, self.get(Plane.READER)
        change = h.ir.xor(reader, self.mine)
        same_epoch = h.ir.icmp_unsigned("<", change, h.i64(1 << EPOCH_SHIFT))
        other_lane = h.nonzero(h.ir.and_(change, h.i64(SEVERAL_LANES | LANE)))
        several = h.ir.select(h.ir.and_(same_epoch, other_lane), h.i64(SEVERAL_LANES), h.i64(0))
        obsolete = h.ir.or_(same_epoch, self.ordered(reader))
        self.put(Plane.EARLIER_READER, h.ir.select(obsolete, self.get(Plane.EARLIER_READER), reader))
        self.put(Plane.READER, h.ir.or_(self.mine, several))

    def write(self, writer: Any, ignored: Any) -> None:
        """Become the last writer, unless a reader races with it."""
        h, no = self.h, ir.Constant(i1, 0)
        for plane, reason in ((Plane.READER, Reason.READER), (Plane.EARLIER_READER, Reason.EARLIER_READER)):
            reader = self.get(plane)
            good = h.ir.or_(ignored, self.harmless(reader, no))
            h.branch_unless(good, partial(self.leave, reason, reader))
        self.put(Plane.WRITER, h.ir.select(self.weak_own(writer), writer, self.mine))

    def weak_own(self, word: Any) -> Any:
        """Whether a strong access follows a weak one of its thread: more accesses race with the weak one."""
        h = self.h
        change = h.ir.and_(h.ir.xor(word, self.mine), h.i64(THREAD))
        same = h.zero(change)
        weak = h.ir.icmp_unsigned("<", h.ir.and_(word, h.i64(STRENGTH)), h.ir.and_(self.mine, h.i64(STRENGTH)))
        return h.ir.and_(same, weak)

    def ordered(self, word: Any) -> Any:
        """Whether a barrier of the block orders the access of a shadow word before this one."""
        h, shadow = self.h, self.shadow
        below, floor, window = h.ir.icmp_unsigned, shadow.clock(WarpClock.BLOCK_FLOOR), shadow.get(Shadow.WINDOW)
        reach = h.call("llvm.usub.sat.i64", i64, floor, window)  # 0 where another block had a time slice since
        inside = below("<", h.ir.sub(word, window), reach)
        of_block = h.ir.or_(below("<", word, shadow.get(Shadow.LAUNCH)), inside)
        return h.ir.select(below("!=", self.kind, h.i32(Kind.GLOBAL)), below("<", word, floor), of_block)

    def harmless(self, word: Any, same_value: Any) -> Any:
        """Whether the access of a shadow word happens before this one, or does not race with it for another reason."""
        h, shadow, mine = self.h, self.shadow, self.mine
        compare = h.ir.icmp_unsigned
        change = h.ir.xor(word, mine)

        def agree(bits: int) -> Any:
            return compare("==", h.ir.and_(change, h.i64(bits)), h.i64(0))

        epoch = h.ir.lshr(word, h.i64(EPOCH_SHIFT))
        block = compare("==", h.load(*shadow.block_of(epoch), i32), shadow.get(Shadow.BLOCK, i32))
        warp = h.ir.and_(block, agree(WARP))
        lanes = h.ir.and_(h.ir.or_(change, h.ir.and_(word, h.i64(SEVERAL_LANES))), h.i64(LANE | SEVERAL_LANES))
        same_thread = h.ir.and_(warp, compare("==", lanes, h.i64(0)))
        warp_barrier = h.ir.and_(warp, compare("<", word, shadow.clock(WarpClock.WARP_FLOOR)))
        both = [h.ir.and_(value, h.i64(STRENGTH)) for value in (word, mine)]
        weaker = h.ir.select(compare("<", *both), *both)
        needed = h.ir.select(block, h.i64(1 << STRENGTH_SHIFT), h.i64(2 << STRENGTH_SHIFT))
        morally_strong = compare(">=", weaker, needed)
        one_statement = agree(0xFFFFFFFF << EPOCH_SHIFT | 0xFFFF << STATEMENT_SHIFT | WARP)
        one_store = h.ir.and_(one_statement, same_value)
        cached = self.cached(word, WHOLE_WARP), self.cached(word, 0)
        return reduce(h.ir.or_, (same_thread, warp_barrier, morally_strong, one_store, *cached), self.ordered(word))

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
        found = h.load(shadow.get(Shadow.ORDER_CACHE, pointer), h.ir.shl(slot, h.i64(WORD_SHIFT)), i64)
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
