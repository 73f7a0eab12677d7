"""The slow path of shadow checks: one lane and one granule after the other."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import ShadowInspection
from ...machine.layout import LANES, Block
from ...machine.status import Status
from ...machine.proxy_shadow import ASYNC, GROUPED, Kinds
from ...machine.shadow import (
    CHANGED, CHECK_FLAGS, EPOCH_SHIFT, LANE, LAST_STATEMENT, ORDER_CACHE_BITS, ORDER_HASH, SEVERAL_LANES,
    STATEMENT_SHIFT, STORED, STRENGTH, STRENGTH_SHIFT, SUPPRESSED, TICKET_SHIFT, UNWRITTEN, UPDATED, WARP, WARP_SHIFT,
    WHOLE_WARP, WORD_SHIFT, Kind, Plane, Reason, Region, Role, Shadow, WarpClock,
)
from .bulk_groups import stands_for
from .epochs import ShadowState
from .mbarriers import PRECEDE
from ..handler import Handler, byte, i1, i32, i64, pointer
from ..registry import builds

__all__ = ["INSPECT"]

_READERS = ((Plane.READER, Reason.READER), (Plane.EARLIER_READER, Reason.EARLIER_READER))
_FENCED_BY = ir.FunctionType(i1, [pointer, pointer, pointer, i64, i32, i32])
INSPECT = ir.FunctionType(i1, [pointer, pointer, pointer, i32, i64, i32])


@builds(ShadowInspection)
def inspect(module: ir.Module, name: str, _: ShadowInspection) -> None:
    """Check the addresses in SCRATCH for the lanes of a mask; False to return to Python."""
    _Inspect(module, name)


class _Inspect:
    def __init__(self, module: ir.Module, name: str) -> None:
        h = self.h = Handler(module, name, result=INSPECT)
        self.mask, self.place, self.flags = h.function.args[3:]
        self.differs, self.asked = h.alloca(i32), h.alloca(i64)
        self.shadow = shadow = ShadowState(h)
        self.mine_warp = h.ir.or_(shadow.clock(WarpClock.EPOCH), self.place)
        self.suppressed = h.nonzero(h.ir.and_(self.place, h.i64(SUPPRESSED)))
        done = shadow.get(Shadow.CHECKED_LANES, i32)
        h.for_each_lane(h.ir.and_(self.mask, h.ir.not_(done)), self.lane)
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
        self.owner, self.start = h.load(region, Region.OWNER, i64), host
        first = h.ir.add(words, h.ir.shl(h.ir.lshr(within, granule), h.i64(WORD_SHIFT)))

        def one(number: Any) -> None:
            self.at = h.ir.add(first, h.ir.shl(number, h.i64(WORD_SHIFT)))
            self.host = h.ir.add(host, h.ir.shl(number, granule))
            offset = h.ir.add(h.ir.shl(number, h.i64(2)), h.i64(Shadow.UNDEFINED))
            self.undefined, self.bit = h.add(self.shadow.block, offset), h.ir.shl(h.i32(1), self.number)
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
        unwritten = h.ir.and_(h.ir.and_(init, reads), self.unwritten(writer))
        with h.ir.if_then(h.ir.and_(unwritten, self.flag("defers"))):
            h.store(h.ir.or_(h.load(self.undefined, 0, i32), self.bit), self.undefined, 0)
            h.ir.branch(after)
            h.ir.position_at_end(h.block_named("unreachable"))
        unwritten = h.ir.and_(unwritten, h.ir.not_(self.suppressed))
        h.branch_unless(h.ir.not_(unwritten), lambda: self.leave(Reason.UNINITIALISED, writer))
        ignored = h.ir.or_(h.ir.not_(race), self.suppressed)
        with h.ir.if_else(h.ir.icmp_unsigned("==", role, h.i32(Role.READ))) as (then, otherwise):
            with then, h.ir.if_then(race):
                self.check_writer(writer)
                self.demand_fenced(writer, self.suppressed)
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

    def check_writer(self, writer: Any) -> None:
        """Leave where a read races with the last store, or with a weaker one of the same thread before it."""
        h = self.h
        ignored = self.suppressed
        h.branch_unless(h.ir.or_(ignored, self.harmless(writer)), lambda: self.leave(Reason.WRITER, writer))
        weak = h.zero(h.ir.and_(self.mine, h.i64(STRENGTH)))
        for plane, reason in _READERS:
            word = self.get(plane)
            read = h.zero(h.ir.and_(word, h.i64(STORED)))
            good = reduce(h.ir.or_, (ignored, weak, read, self.harmless(word)))
            h.branch_unless(good, partial(self.leave, reason, word))

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
        """Become the last writer, unless an access before races with it.

        Stores that it is not ordered with, of the same value, stay among the readers: they may race with later stores.
        """
        h = self.h
        harmless = h.ir.or_(ignored, self.harmless(writer))
        self.demand(harmless, writer, Reason.WRITER)
        self.demand_fenced(writer, ignored)
        for plane, reason in _READERS:
            word = self.get(plane)
            self.demand(h.ir.or_(ignored, self.harmless(word)), word, reason)
        own = self.same_thread(writer)
        change = h.ir.xor(writer, self.mine)
        together = h.zero(h.ir.and_(change, h.i64(0xFFFFFFFF << EPOCH_SHIFT | WARP)))
        several = h.ir.and_(h.ir.not_(harmless), together)
        weaker = h.ir.icmp_unsigned("<", *(h.ir.and_(word, h.i64(STRENGTH)) for word in (writer, self.mine)))
        kept = h.ir.and_(own, h.ir.and_(weaker, together))  # more accesses race with the weaker one
        open_ = h.ir.not_(self.ordered(writer))
        earlier = h.ir.and_(h.ir.and_(own, weaker), h.ir.and_(open_, h.ir.not_(together)))
        apart = h.ir.and_(h.ir.not_(harmless), h.ir.not_(together))
        with h.ir.if_then(h.ir.or_(earlier, apart)):
            self.put(Plane.EARLIER_READER, self.get(Plane.READER))
            self.put(Plane.READER, writer)
        word = h.ir.or_(self.mine, h.ir.select(several, h.i64(SEVERAL_LANES), h.i64(0)))
        changed = self.own_changed(writer, h.ir.and_(own, open_))
        changed = h.ir.or_(changed, h.ir.and_(kept, h.zero(h.ir.and_(self.mine, h.i64(STORED)))))
        word = h.ir.or_(h.ir.select(kept, writer, word), h.ir.select(changed, h.i64(CHANGED), h.i64(0)))
        undefined = h.nonzero(h.ir.and_(h.load(self.undefined, 0, i32), self.bit))
        undefined = h.ir.and_(undefined, self.flag("defers"))
        everywhere = h.ir.icmp_unsigned("==", self.kind, h.i32(Kind.GLOBAL))
        nothing = h.ir.select(everywhere, h.i64(UNWRITTEN), h.i64(0))
        grouped = h.ir.and_(self.flag("grouped"), h.ir.not_(kept))
        group = h.ir.or_(self.shadow.get(Shadow.GROUP), h.ir.and_(word, h.i64(0xFFFFFFFF)))
        word = h.ir.select(grouped, group, word)
        self.put(Plane.WRITER, h.ir.select(undefined, nothing, word))

    def demand_fenced(self, writer: Any, ignored: Any) -> None:
        """Leave where the async proxy comes behind a store by the generic one, with no fence for proxies between."""
        h, shadow = self.h, self.shadow
        generic = h.ir.and_(
            h.ir.icmp_signed(">=", writer, h.i64(0)), h.ir.icmp_unsigned(">=", writer, shadow.get(Shadow.LAUNCH))
        )
        asked = reduce(h.ir.and_, (self.flag("proxied"), generic, h.ir.not_(ignored)))

        def unfenced() -> Any:
            function = h.ir.bitcast(shadow.get(Shadow.FENCED_BY, pointer), _FENCED_BY.as_pointer())
            bit = h.ir.shl(h.i32(1), self.number)
            return h.ir.not_(h.ir.call(function, [h.rec, h.warp, h.block, writer, bit, h.i32(Kinds.GLOBAL)]))

        bad = h.asked_if(asked, unfenced)
        h.branch_unless(h.ir.not_(bad), lambda: self.leave(Reason.UNFENCED, writer))

    def demand(self, good: Any, word: Any, reason: int) -> None:
        """Leave where an access is not harmless, unless it stored what is stored now."""
        h = self.h
        judge, on = h.block_named("judge"), h.block_named("on")
        h.ir.cbranch(h.likely(good), on, judge)
        h.ir.position_at_end(judge)
        clean = h.zero(h.ir.and_(word, h.i64(CHANGED | UPDATED)))
        clean = h.ir.and_(clean, h.nonzero(h.ir.and_(word, h.i64(STORED))))
        clean = h.ir.and_(clean, h.zero(h.ir.and_(self.mine, h.i64(UPDATED))))
        h.branch_unless(h.ir.and_(clean, h.nonzero(self.flag("item"))), partial(self.leave, reason, word))
        h.branch_unless(self.same_value(word), partial(self.leave, reason, word))
        h.ir.branch(on)
        h.ir.position_at_end(on)

    def own_changed(self, writer: Any, own: Any) -> Any:
        """Whether the thread has stored something else there, which barriers do not order with the others."""
        h = self.h

        def changed() -> Any:
            return h.ir.or_(h.ir.not_(self.same_value(writer)), h.nonzero(h.ir.and_(writer, h.i64(CHANGED))))

        return h.asked_if(h.ir.and_(own, h.nonzero(self.flag("item"))), changed)

    def same_value(self, word: Any) -> Any:
        """Whether a store wrote to the granule what this one does: it is there, or a lane before it stores it now."""
        h = self.h
        item, values = h.ir.zext(self.flag("item"), i64), self.shadow.get(Shadow.VALUES)
        lane = h.ir.trunc(h.ir.and_(word, h.i64(LANE)), i32)
        theirs = h.load(h.block, h.ir.add(h.ir.shl(h.ir.zext(lane, i64), h.i64(3)), h.i64(Block.SCRATCH)), i64)
        nbytes = h.ir.shl(h.ir.zext(self.flag("granules"), i64), h.ir.zext(self.flag("granule"), i64))
        inside = h.ir.sub(self.host, theirs)
        bits = 0xFFFFFFFF << EPOCH_SHIFT | LAST_STATEMENT << STATEMENT_SHIFT | WARP
        now = h.zero(h.ir.and_(h.ir.xor(word, self.mine), h.i64(bits)))
        now = h.ir.and_(now, h.ir.icmp_unsigned("<", lane, self.number))
        active = h.ir.and_(h.ir.lshr(self.mask, lane), h.i32(1))
        now = reduce(h.ir.and_, (now, h.nonzero(active), h.ir.icmp_unsigned("<", inside, nbytes)))

        def stored(number: Any, offset: Any) -> Any:
            """Address of what a lane stores at so many bytes from its address."""
            which = h.ir.add(h.ir.mul(h.ir.udiv(offset, item), h.i64(LANES)), h.ir.zext(number, i64))
            return h.ir.add(values, h.ir.add(h.ir.mul(which, item), h.ir.urem(offset, item)))

        mine = stored(self.number, h.ir.sub(self.host, self.start))
        before = h.ir.select(now, stored(lane, inside), self.host)
        differs = self.differs
        h.ir.store(h.i32(0), differs)

        def one(number: Any) -> None:
            both = [h.ir.load(h.ir.inttoptr(h.ir.add(at, number), byte.as_pointer()), align=1) for at in (mine, before)]
            found = h.ir.zext(h.ir.xor(*both), i32)
            h.ir.store(h.ir.or_(h.ir.load(differs), found), differs)

        h.count(h.ir.shl(h.i64(1), h.ir.zext(self.flag("granule"), i64)), 1, one)
        return h.zero(h.ir.load(differs))

    def ordered(self, word: Any) -> Any:
        """Whether a barrier of the block orders the access of a shadow word before this one."""
        h, shadow = self.h, self.shadow
        below, floor, window = h.ir.icmp_unsigned, shadow.clock(WarpClock.BLOCK_FLOOR), shadow.get(Shadow.WINDOW)
        reach = h.call("llvm.usub.sat.i64", i64, floor, window)  # 0 where another block had a time slice since
        inside = below("<", h.ir.sub(word, window), reach)
        base, before = shadow.of_cluster()
        inside = h.ir.or_(inside, below("<", h.ir.sub(word, base), before))
        of_block = h.ir.or_(below("<", word, shadow.get(Shadow.LAUNCH)), inside)
        return h.ir.select(below("!=", self.kind, h.i32(Kind.GLOBAL)), below("<", word, floor), of_block)

    def same_warp(self, word: Any) -> Any:
        h, shadow = self.h, self.shadow
        block = h.load(*shadow.block_of(h.ir.lshr(word, h.i64(EPOCH_SHIFT))), i32)
        agree = h.zero(h.ir.and_(h.ir.xor(word, self.mine), h.i64(ASYNC | WARP)))  # a word of the async proxy has none
        return h.ir.and_(agree, h.ir.icmp_unsigned("==", block, shadow.get(Shadow.BLOCK, i32)))

    def same_cluster(self, block: Any) -> Any:
        """Whether a block, by its number plus one, is of this block's cluster."""
        h, shadow = self.h, self.shadow
        clusters = shadow.get(Shadow.CLUSTERS)

        def same() -> Any:
            table = h.ir.inttoptr(h.ir.sub(clusters, h.i64(4)), pointer)
            pair = block, shadow.get(Shadow.BLOCK, i32)
            one, other = (h.load(table, h.ir.shl(h.ir.zext(n, i64), h.i64(2)), i32) for n in pair)
            return h.ir.icmp_unsigned("==", one, other)

        return h.asked_if(h.ir.and_(h.nonzero(clusters), h.nonzero(block)), same)

    def same_thread(self, word: Any) -> Any:
        h = self.h
        lanes = h.ir.or_(h.ir.xor(word, self.mine), h.ir.and_(word, h.i64(SEVERAL_LANES)))
        return h.ir.and_(self.same_warp(word), h.zero(h.ir.and_(lanes, h.i64(LANE | SEVERAL_LANES))))

    def harmless(self, word: Any) -> Any:
        """Whether the access of a shadow word happens before this one, or does not race with it for another reason."""
        h, shadow = self.h, self.shadow
        compare = h.ir.icmp_unsigned
        group = h.ir.or_(shadow.get(Shadow.GROUP), h.ir.and_(self.mine, h.i64(0xFFFFFFFF)))
        again = h.zero(h.ir.and_(h.ir.xor(word, group), h.i64(~(SEVERAL_LANES | CHANGED))))  # Python was asked between
        again = h.ir.and_(again, self.flag("grouped"))
        word = stands_for(h, shadow, word)
        pending = compare(">=", word, h.i64(GROUPED))
        block = h.load(*shadow.block_of(h.ir.lshr(word, h.i64(EPOCH_SHIFT))), i32)
        same_block = compare("==", block, shadow.get(Shadow.BLOCK, i32))
        warp_barrier = h.ir.and_(self.same_warp(word), compare("<", word, shadow.clock(WarpClock.WARP_FLOOR)))
        both = [h.ir.and_(value, h.i64(STRENGTH)) for value in (word, self.mine)]
        weaker = h.ir.select(compare("<", *both), *both)
        needed = h.ir.select(self.same_cluster(block), h.i64(2 << STRENGTH_SHIFT), h.i64(3 << STRENGTH_SHIFT))
        needed = h.ir.select(same_block, h.i64(1 << STRENGTH_SHIFT), needed)
        cached = self.cached(word, WHOLE_WARP), self.cached(word, 0)
        reasons = (again, self.same_thread(word), warp_barrier, compare(">=", weaker, needed), *cached)
        found = reduce(h.ir.or_, reasons, self.ordered(word))
        for where, routine in ((Shadow.ORDERS, Shadow.PRECEDE), (Shadow.GRAPH, Shadow.SEARCH)):
            ask = h.ir.and_(h.ir.not_(h.ir.or_(found, pending)), h.nonzero(shadow.get(where)))
            found = h.ir.or_(found, h.asked_if(ask, partial(self.precedes, word, routine)))
        return found

    def precedes(self, word: Any, routine: int) -> Any:
        """Whether a routine knows of an order."""
        h, shadow = self.h, self.shadow
        h.ir.store(word, self.asked)
        function = h.ir.bitcast(shadow.get(routine, pointer), PRECEDE.as_pointer())
        lane = h.ir.shl(h.i32(1), self.number)
        place = h.ir.bitcast(self.asked, pointer)
        return h.ir.call(function, [h.rec, h.warp, h.block, place, h.i64(1), h.i64(0), lane])

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
