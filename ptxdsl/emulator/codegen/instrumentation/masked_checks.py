"""Shadow checks of lanes that lie anyhow or of which some are inactive: one function beside the code that asks.

The fast path of a check takes whole lines of shadow words. Where that does not do (each lane has an address of its own,
some are inactive, a barrier of the warp orders the accesses, Python has found their order before), this function looks
at one word a lane. It changes nothing unless all lanes are decided, so that the slow path may start over.

Words are gathered, which costs more than all else, unless groups of eight lanes lie side by side. So it asks for as few
as it can: the last reader of a place in this epoch is the only thread that may have come there since, as anything else
would have been a race with that read; and where the last reader is before the last barrier, or the launch, the one
before it is too.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import ShadowCheck
from ...machine.layout import FULL, LANES
from ...machine.shadow import (
    EPOCH_BITS, EPOCH_SHIFT, FIRST, LANE, ORDER_CACHE_BITS, ORDER_HASH, SEVERAL_LANES, STORED, STRENGTH, STRENGTH_SHIFT,
    THREAD, UNWRITTEN, UPDATED, WARP, WARP_SHIFT, WHOLE_WARP, WORD_SHIFT, Kind, Plane, Region, Role, Shadow, WarpClock,
    WarpOrder,
)
from ..handler import Handler, i1, i32, i64, lanes_of, pointer
from ..storage import digest
from .epochs import ShadowState
from .lane_rows import LaneRows, may_descend
from .mbarriers import PRECEDE

__all__ = ["MOST_GRANULES", "MOST_PRIVATE", "masked_check"]

MOST_GRANULES, MOST_PRIVATE = 4, 16
"""Granules a lane that are checked so; of local memory, where no two threads meet, there is less to check."""
_Words, _Bools = lanes_of(i64), lanes_of(i1)
_MASKED = ir.FunctionType(i1, [pointer, pointer, pointer, i32, i64, i64, i64, _Words])


def masked_check(module: ir.Module, check: ShadowCheck) -> ir.Function:
    """Whether a check is passed, which is then noted: (_, warp, block, mask, place, words, stride, hosts)."""
    what = (
        check.role, check.strength, check.block_private, check.granules, check.granule, check.race, check.init,
        check.readers, check.copies, bool(check.sources), check.followed, check.searched,
        bool(check.private), check.in_cluster, may_descend(check),
    )
    name = f"masked.{digest(repr(what).encode())}"
    found: ir.Function | None = module.globals.get(name)
    return found if found is not None else _MaskedCheck(module, name, check).h.function


class _MaskedCheck(LaneRows):
    def __init__(self, module: ir.Module, name: str, check: ShadowCheck) -> None:
        h = self.h = Handler(module, name, result=_MASKED)
        h.function.linkage = "internal"
        for attribute in ("noinline", "cold"):
            h.function.attributes.add(attribute)
        self.check, self.of_block = check, bool(check.block_private or check.private)
        self.race = check.race and not check.private
        mask, place, words, stride, self.hosts = h.function.args[3:]
        self.active, self.stride, self.words = h.bools(mask), stride, h.splat(words)
        shadow = self.shadow = ShadowState(h)
        self.word = h.ir.or_(shadow.clock(WarpClock.EPOCH), place)
        self.mine = h.ir.or_(h.splat(self.word), h.iota(64))
        self.updates = h.splat(h.nonzero(h.ir.and_(place, h.i64(UPDATED))))
        self.floor, self.base = shadow.clock(WarpClock.BLOCK_FLOOR), shadow.get(Shadow.BASE)
        self.anywhere = check.block_private is None and not check.private
        if self.anywhere:
            self._find(mask)
        self.places = [self._place(number) for number in range(check.granules)]
        if check.granules == 1 and not self.anywhere:
            self.emit_side_by_side()
        self.emit()

    def emit(self) -> None:
        h, check = self.h, self.check
        self.writers: list[Any] = []
        self.readers: Any = None
        if self.race and not check.strength and not check.copies and check.granules == 1:
            self._emit_again()
        self._judge()
        if check.role != Role.READ:
            self._write()
        elif self.race:
            for number in range(check.granules):
                self._read(number)
        h.ir.ret(ir.Constant(i1, 1))

    def _emit_again(self) -> None:
        """Be done where each lane is the last reader of its place, in this epoch, and the only one of a later store."""
        h, check = self.h, self.check
        if check.role == Role.ATOMIC or not check.readers:
            return
        again, anew = h.block_named("again"), h.block_named("anew")
        self.readers = self.get(0, Plane.READER)
        h.ir.cbranch(self.all(self.agree(self.readers, THREAD)), again, anew)
        h.ir.position_at_end(again)
        if check.role == Role.WRITE:
            alone = h.ir.and_(self.readers, self.number(STORED | FIRST))
            alone = h.ir.or_(h.ir.icmp_unsigned("==", alone, self.number(FIRST)), h.ir.not_(self.active))
            good: Any = self.all(alone) if self.of_block else ir.Constant(i1, 0)
            look, done = h.block_named("look"), h.block_named("done")
            h.ir.cbranch(good, done, look)
            h.ir.position_at_end(look)
            read = h.ir.not_(self.marked(self.readers, STORED))
            good = h.ir.and_(read, self.harmless(self.get(0, Plane.EARLIER_READER)))
            h.ir.cbranch(self.all(h.ir.or_(good, h.ir.not_(self.active))), done, anew)
            h.ir.position_at_end(done)
            self.put(0, Plane.WRITER, self.mine)
        h.ir.ret(ir.Constant(i1, 1))
        h.ir.position_at_end(anew)

    # Shadow words

    def _place(self, granule: int) -> Any:
        h, shift = self.h, self.check.granule
        hosts = h.ir.add(self.hosts, self.number(granule << shift)) if granule else self.hosts
        return h.ir.add(h.ir.shl(h.ir.lshr(hosts, self.number(shift)), self.number(WORD_SHIFT)), self.words)

    def _find(self, mask: Any) -> None:
        """Find the words of each lane, where all are in memory that blocks share: of the launch, or of a cluster."""
        h, shadow = self.h, self.shadow
        words, stride, found = h.alloca(_Words, 64), h.alloca(_Words, 64), h.alloca(i32)
        h.ir.store(h.i32(0), found)
        regions, count = shadow.get(Shadow.REGIONS, pointer), shadow.get(Shadow.REGION_COUNT)
        shift = h.i64(self.check.granule)

        def missing() -> Any:
            return h.nonzero(h.ir.and_(mask, h.ir.not_(h.ir.load(found))))

        def one(number: Any) -> Any:
            region = h.add(regions, h.ir.mul(number, h.i64(Region.nbytes)))
            low, size = (h.load(region, field, i64) for field in (Region.LOW, Region.BYTES))
            within = self.below(h.ir.sub(self.hosts, h.splat(low)), size)
            hit = h.ir.and_(h.mask(within), mask)
            with h.ir.if_then(h.nonzero(hit)):
                shared = h.ir.icmp_unsigned("==", h.load(region, Region.KIND, i32), h.i32(Kind.GLOBAL))
                h.branch_unless(shared, lambda: h.ir.ret(ir.Constant(i1, 0)))
                before = h.ir.shl(h.ir.lshr(low, shift), h.i64(WORD_SHIFT))
                origin = h.ir.sub(h.load(region, Region.WORDS, i64), before)
                for place, value in ((words, origin), (stride, h.load(region, Region.STRIDE, i64))):
                    h.ir.store(h.ir.select(within, h.splat(value), h.ir.load(place)), place)
                h.ir.store(h.ir.or_(h.ir.load(found), hit), found)
            return h.ir.add(number, h.i64(1))

        h.loop(h.i64(0), lambda n: h.ir.and_(h.ir.icmp_unsigned("<", n, count), missing()), one)
        h.branch_unless(h.ir.not_(missing()), lambda: h.ir.ret(ir.Constant(i1, 0)))
        self.words, self.stride = h.ir.load(words), h.ir.load(stride)

    # What they hold

    def below(self, words: Any, limit: Any) -> Any:
        return self.h.ir.icmp_unsigned("<", words, limit if limit.type == _Words else self.h.splat(limit))

    def marked(self, words: Any, mark: int) -> Any:
        return self.h.ir.icmp_unsigned("!=", self.h.ir.and_(words, self.number(mark)), self.number(0))

    def agree(self, words: Any, bits: int) -> Any:
        """Whether words agree with this access in some bits."""
        return self.h.ir.not_(self.marked(self.h.ir.xor(words, self.mine), bits))

    def ordered(self, words: Any) -> Any:
        """Whether barriers of the block order the accesses of shadow words before this one."""
        h, shadow = self.h, self.shadow
        if self.of_block:
            return self.below(words, self.floor)
        window = shadow.get(Shadow.WINDOW)
        reach = h.call("llvm.usub.sat.i64", i64, self.floor, window)
        inside = self.below(h.ir.sub(words, h.splat(window)), reach)
        good = h.ir.or_(self.below(words, shadow.get(Shadow.LAUNCH)), inside)
        if not self.check.in_cluster:
            return good
        base, reach = shadow.of_cluster()
        return h.ir.or_(good, self.below(h.ir.sub(words, h.splat(base)), reach))

    def harmless(self, words: Any) -> Any:
        """Whether the accesses of shadow words do not race with this one."""
        h, check = self.h, self.check
        on = h.block_named("on")
        ways: list[tuple[Any, ir.Block]] = []

        def passed(good: Any, name: str) -> None:
            """Be done where this holds of all lanes, else go on with what takes longer."""
            further = h.block_named(name)
            ways.append((good, h.ir.block))
            h.ir.cbranch(self.all(good), on, further)  # what is not active is its own
            h.ir.position_at_end(further)

        strong: Any = None
        if check.strength and (self.of_block or check.strength == 3):
            least = (1 if self.of_block else 3) << STRENGTH_SHIFT
            strong = h.ir.icmp_unsigned(">=", h.ir.and_(words, self.number(STRENGTH)), self.number(least))
            passed(strong, "weak")
        good = h.ir.or_(self.ordered(words), self.agree(words, THREAD))
        good = good if strong is None else h.ir.or_(good, strong)
        if check.followed and self.of_block:
            passed(good, "known")
            good = self._known_of_one_warp(words, good)
        passed(good, "rare")
        further = self._known(words, h.ir.or_(good, self._ordered_in_warp(words)))
        for asked, routine in ((check.followed, Shadow.PRECEDE), (check.searched, Shadow.SEARCH)):
            if asked:
                further = h.ir.or_(further, self._followed(words, further, routine))
        ways.append((further, h.ir.block))
        h.ir.branch(on)
        h.ir.position_at_end(on)
        result = h.ir.phi(good.type)
        for value, block in ways:
            result.add_incoming(value, block)
        return result

    def _known_of_one_warp(self, words: Any, good: Any) -> Any:
        """Those that are good, and those of one warp that this warp knows of: what is left is mostly of one."""
        h, shadow = self.h, self.shadow
        left = h.mask(h.ir.and_(self.active, h.ir.not_(good)))
        first = h.ir.extract_element(words, h.ir.and_(h.first_lane(left), h.i32(LANES - 1)))
        warp = h.ir.lshr(h.ir.and_(first, h.i64(WARP)), h.i64(WARP_SHIFT))
        mine = h.add(shadow.get(Shadow.ORDERS, pointer), h.ir.mul(shadow.number, h.i64(WarpOrder.nbytes)))
        floor = h.load(mine, h.ir.add(h.ir.shl(warp, h.i64(3)), h.i64(WarpOrder.KNOWN)), i64)
        same = h.ir.not_(self.marked(h.ir.xor(words, h.splat(first)), WARP))
        return h.ir.or_(good, h.ir.and_(same, self.below(words, floor)))

    def _ordered_in_warp(self, words: Any) -> Any:
        """Whether a barrier of the warp orders them, or one of the block before its last time slice."""
        h, shadow = self.h, self.shadow
        good = self.below(words, shadow.clock(WarpClock.WARP_FLOOR))
        if self.check.followed:
            good = h.ir.or_(good, self._of_tile(words))
        good = h.ir.and_(self.agree(words, WARP), good)
        if self.of_block:  # what is not before the block's floor is of the block
            return good
        epochs = h.ir.and_(h.ir.lshr(words, self.number(EPOCH_SHIFT)), self.number((1 << EPOCH_BITS) - 1))
        table = h.splat(h.ir.ptrtoint(shadow.get(Shadow.EPOCH_BLOCKS, pointer), i64))
        places = h.ir.inttoptr(h.ir.add(table, h.ir.shl(epochs, self.number(2))), lanes_of(pointer))
        block = h.splat(shadow.get(Shadow.BLOCK, i32))
        good = h.ir.or_(good, self.below(words, self.floor))
        return h.ir.and_(good, h.ir.icmp_unsigned("==", self.gathered(places, block), block))

    def _of_tile(self, words: Any) -> Any:
        """Whether a barrier of lanes of the warp orders them, where they are of one lane of it."""
        h, shadow = self.h, self.shadow
        row = h.add(shadow.get(Shadow.ORDERS, pointer), h.ir.mul(shadow.number, h.i64(WarpOrder.nbytes)))
        tiles = h.ir.zext(h.load(row, WarpOrder.TILE_MASK, lanes_of(i32), 64), _Words)
        inside = self.marked(h.ir.lshr(tiles, h.ir.and_(words, self.number(LANE))), 1)
        inside = h.ir.and_(inside, h.ir.not_(self.marked(words, SEVERAL_LANES)))
        return h.ir.and_(inside, self.below(words, h.load(row, WarpOrder.TILE_FLOOR, _Words, 64)))

    def _known(self, words: Any, good: Any) -> Any:
        """Those that are good, and of which Python has found before that all of their epoch precedes this warp.

        Mostly what is left is of one epoch: then one entry of the table says it.
        """
        h, shadow = self.h, self.shadow
        left = h.mask(h.ir.and_(self.active, h.ir.not_(good)))
        names = ("asked", "one", "more", "answered")
        before, asked, single, several, on = h.ir.block, *map(h.block_named, names)
        used = h.nonzero(shadow.get(Shadow.CACHE_USED, i32))  # most launches never come to the table's memory
        h.ir.cbranch(h.ir.and_(h.nonzero(left), used), asked, on)
        h.ir.position_at_end(asked)
        own = h.ir.or_(h.ir.lshr(h.ir.and_(self.mine, self.number(WARP)), self.number(WARP_SHIFT)),
                       self.number(WHOLE_WARP))
        keys = h.ir.or_(h.ir.and_(words, self.number(0xFFFFFFFF << EPOCH_SHIFT)), own)
        table = h.ir.ptrtoint(shadow.get(Shadow.ORDER_CACHE, pointer), i64)
        first = h.ir.extract_element(keys, h.ir.and_(h.first_lane(left), h.i32(LANES - 1)))
        others = h.ir.and_(left, h.mask(h.ir.icmp_unsigned("!=", keys, h.splat(first))))
        h.ir.cbranch(h.zero(others), single, several)
        h.ir.position_at_end(single)
        slot = h.ir.lshr(h.ir.mul(first, h.i64(ORDER_HASH)), h.i64(64 - ORDER_CACHE_BITS))
        place = h.ir.inttoptr(h.ir.add(table, h.ir.shl(slot, h.i64(WORD_SHIFT))), i64.as_pointer())
        same = h.ir.icmp_unsigned("==", h.ir.load(place, align=8), first)
        alike = h.ir.or_(good, h.splat(same))
        h.ir.branch(on)
        h.ir.position_at_end(several)
        slots = h.ir.lshr(h.ir.mul(keys, self.number(ORDER_HASH)), self.number(64 - ORDER_CACHE_BITS))
        places = h.ir.add(h.splat(table), h.ir.shl(slots, self.number(WORD_SHIFT)))
        found = self.gathered(h.ir.inttoptr(places, lanes_of(pointer)), keys)
        found = h.ir.or_(good, h.ir.icmp_unsigned("==", found, keys))
        h.ir.branch(on)
        h.ir.position_at_end(on)
        result = h.ir.phi(good.type)
        for value, block in ((good, before), (alike, single), (found, several)):
            result.add_incoming(value, block)
        return result

    def _followed(self, words: Any, good: Any, routine: int) -> Any:
        """Whether a routine knows of an order for those that are not good."""
        h = self.h
        asked = h.ir.and_(self.active, h.ir.not_(good))
        left = h.mask(asked)

        def ask_for(numbers: Any, count: int, private: bool, lanes: Any) -> Any:
            place = h.alloca(numbers.type)
            h.ir.store(numbers, place)
            function = h.ir.bitcast(self.shadow.get(routine, pointer), PRECEDE.as_pointer())
            at = h.ir.bitcast(place, pointer)
            return h.ir.call(function, [h.rec, h.warp, h.block, at, h.i64(count), h.i64(private), lanes])

        def ask() -> Any:
            private = bool(self.check.block_private) and routine == Shadow.PRECEDE
            return ask_for(h.ir.select(asked, words, self.number(0)), LANES, private, h.mask(self.active))

        known: Any = None
        if routine == Shadow.SEARCH:  # mostly all are of one epoch, lane 0's among them
            first = h.ir.extract_element(words, h.i32(0))
            others = self.marked(h.ir.xor(words, h.splat(first)), 0xFFFFFFFF << EPOCH_SHIFT | WARP)
            one = h.ir.and_(h.zero(h.mask(h.ir.and_(asked, others))), h.nonzero(h.ir.and_(left, h.i32(1))))
            known = h.asked_if(one, lambda: ask_for(h.ir.or_(first, h.i64(SEVERAL_LANES)), 1, False, h.i32(FULL)))
            left = h.ir.select(known, h.i32(0), left)
        found = h.asked_if(h.nonzero(left), ask)
        return h.splat(found if known is None else h.ir.or_(found, known))

    def written(self, words: Any) -> Any:
        if self.of_block:
            return self.h.ir.not_(self.below(words, self.base))
        return self.h.ir.icmp_unsigned("!=", words, self.number(UNWRITTEN))

    def demand(self, good: Any) -> None:
        self.h.branch_unless(self.all(good), lambda: self.h.ir.ret(ir.Constant(i1, 0)))

    # The check, and what is noted

    def _judge(self) -> None:
        """Go on where no granule needs the slow path."""
        check = self.check
        for granule in range(check.granules):
            writers = self.get(granule, Plane.WRITER)
            self.writers.append(writers)
            if check.copies:
                self.demand(self.below(self.get(granule, Plane.COPY), self.shadow.get(Shadow.OLDEST_COPY)))
            if check.init and check.role != Role.WRITE:
                self.demand(self.written(writers))
            if not self.race:
                continue
            self._judge_writers(writers)
            self._judge_readers(granule)

    def _judge_writers(self, writers: Any) -> None:
        """Go on where no last writer races with this access; mostly all are of before the launch, or the barrier."""
        h, check = self.h, self.check
        since, on = h.block_named("since"), h.block_named("writers_passed")
        start = self.floor if self.of_block else self.shadow.get(Shadow.LAUNCH)
        later = h.ir.and_(self.active, h.ir.not_(self.below(writers, start)))
        h.ir.cbranch(h.zero(h.mask(later)), on, since)
        h.ir.position_at_end(since)
        self.demand(self.harmless(writers))
        if check.role == Role.WRITE and check.sources:  # whether it stores something else is a question of values
            again = h.ir.and_(self.agree(writers, THREAD), h.ir.not_(self.ordered(writers)))
            self.demand(h.ir.or_(h.ir.not_(h.ir.and_(again, self.active)), self.updates))
        h.ir.branch(on)
        h.ir.position_at_end(on)

    def _judge_readers(self, granule: int) -> None:
        h, check = self.h, self.check
        reads = check.role == Role.READ
        if not check.strength and (reads or not check.readers):
            return
        if reads:  # the readers may be stores that are weaker than the last
            for plane in (Plane.READER, Plane.EARLIER_READER):
                words = self.get(granule, plane)
                self.demand(h.ir.or_(self.ordered(words), h.ir.not_(self.marked(words, STORED))))
            return
        if not check.readers:
            return
        words = self.get(granule, Plane.READER)
        since, on = h.block_named("read_since"), h.block_named("readers_passed")
        before = self.ordered(words) if self.of_block else self.below(words, self.shadow.get(Shadow.LAUNCH))
        h.ir.cbranch(self.all(h.ir.or_(before, h.ir.not_(self.active))), on, since)
        h.ir.position_at_end(since)
        self.demand(self.harmless(words))
        self.demand(self.harmless(self.get(granule, Plane.EARLIER_READER)))
        h.ir.branch(on)
        h.ir.position_at_end(on)

    def _read(self, granule: int) -> None:
        """Become the last reader; the one before becomes the earlier reader, if it is of another warp and unordered."""
        h = self.h
        readers = self.get(granule, Plane.READER) if self.readers is None else self.readers
        change = h.ir.xor(readers, self.mine)
        same_epoch = self.below(change, self.number(1 << EPOCH_SHIFT))
        several = h.ir.and_(same_epoch, self.marked(change, SEVERAL_LANES | LANE))
        on = h.block_named("apart")
        known = h.ir.and_(same_epoch, h.ir.not_(several))
        known = h.ir.or_(known, h.ir.and_(same_epoch, self.marked(readers, SEVERAL_LANES)))
        known = h.ir.and_(known, h.ir.not_(self.marked(readers, STORED)))
        adds = h.block_named("adds")
        h.ir.cbranch(self.all(h.ir.or_(known, h.ir.not_(self.active))), on, adds)
        h.ir.position_at_end(adds)
        obsolete = h.ir.or_(same_epoch, self.ordered(readers))
        replace, keep = h.block_named("replace"), h.block_named("keep")
        h.ir.cbranch(self.all(obsolete), replace, keep)
        h.ir.position_at_end(keep)
        self.put(granule, Plane.EARLIER_READER, readers, h.ir.not_(obsolete))
        h.ir.branch(replace)
        h.ir.position_at_end(replace)
        words = h.ir.or_(self.mine, h.ir.select(several, self.number(SEVERAL_LANES), self.number(0)))
        if self.of_block:
            words = h.ir.or_(words, self._first(readers, same_epoch))
        self.put(granule, Plane.READER, words)
        last = self.get(granule, Plane.READER)
        others = h.ir.and_(self.active, h.ir.not_(self.agree(last, LANE)))
        shared = h.block_named("shared")
        h.ir.cbranch(h.zero(h.mask(others)), on, shared)
        h.ir.position_at_end(shared)
        self.put(granule, Plane.READER, h.ir.or_(last, self.number(SEVERAL_LANES)), others)
        h.ir.branch(on)
        h.ir.position_at_end(on)

    def _first(self, readers: Any, same_epoch: Any) -> Any:
        """The bit that says that the reader before is ordered before this one, from the last readers."""
        h = self.h
        before = h.ir.icmp_unsigned("==", h.ir.and_(readers, self.number(STORED | FIRST)), self.number(FIRST))
        first = h.ir.or_(self.ordered(readers), h.ir.and_(same_epoch, before))
        return h.ir.select(first, self.number(FIRST), self.number(0))

    def _write(self) -> None:
        h, check = self.h, self.check
        if check.role == Role.ATOMIC and not self.race:  # only what has been written
            return
        for granule, writers in enumerate(self.writers):
            mine = self.mine
            if check.strength:  # more accesses race with the weaker one
                weak = h.ir.not_(self.marked(writers, STRENGTH))
                mine = h.ir.select(h.ir.and_(self.agree(writers, THREAD), weak), writers, mine)
            self.put(granule, Plane.WRITER, mine)
            if granule == 0 and check.role == Role.WRITE and self.race and not self.packed:
                self._demand_apart(mine)

    def _demand_apart(self, mine: Any) -> None:
        """Go on where no two lanes wrote the same granule; those of all elements are the same then."""
        h = self.h
        others = self.h.ir.icmp_unsigned("!=", self.get(0, Plane.WRITER), mine)
        others = h.zero(h.mask(h.ir.and_(others, self.active)))

        def restore() -> None:
            self.put(0, Plane.WRITER, self.writers[0])
            h.ir.ret(ir.Constant(i1, 0))

        h.branch_unless(others, restore)
