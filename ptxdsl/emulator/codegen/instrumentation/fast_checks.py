"""The fast path of shadow checks: decisions on whole vectors of shadow words.

An access before the last barrier, or by the same thread, is no race; what these vectors cannot say is left to the
inspection lane by lane.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import ShadowCheck
from ...machine.shadow import (
    CHANGED, EPOCH_SHIFT, FIRST, LANE, SEVERAL_LANES, STORED, STRENGTH, STRENGTH_SHIFT, THREAD, UNWRITTEN, UPDATED,
    WARP, WORD_SHIFT, Kind, Plane, Region, Role, Shadow, WarpClock,
)
from .epochs import ShadowState
from ..handler import Handler, i1, i32, i64, pointer
from .masked_checks import MOST_GRANULES, masked_check
from .shadow_groups import Group, Groups

__all__ = ["FastCheck", "Found", "knows_again"]


def knows_again(check: ShadowCheck) -> bool:
    """Whether the check of one lane asks at first whether that was the last to read its only granule."""
    known = check.granules == 1 and check.race and check.readers and check.role != Role.ATOMIC
    return known and not check.strength and not check.copies


class Found:
    """An access whose memory has been found, in a function beside its code; what cannot be decided is not passed."""

    def __init__(self, h: Handler) -> None:
        self.h, self.entry = h, h.block

    def demand(self, good: Any) -> None:
        self.h.branch_unless(good, lambda: self.h.ir.ret(ir.Constant(i1, 0)))


class FastCheck(Groups):
    """A check on whole vectors of shadow words; what it cannot decide starts over on the slow path."""

    def __init__(
        self, h: Handler, check: ShadowCheck, access: Any, shadow: ShadowState, word: Any, mask: Any,
        values: list[Any], place: Any,
    ) -> None:
        super().__init__(h, check, access, mask)
        self.values, self.place_bits, self.shadow = values, place, shadow
        self.check: ShadowCheck = check
        self.masked = self.look_at_each()
        self.word, self.rest = word, h.splat(word)
        self.floor = shadow.clock(WarpClock.BLOCK_FLOOR)
        self.base, self.launch, self.window = (shadow.get(n) for n in (Shadow.BASE, Shadow.LAUNCH, Shadow.WINDOW))
        if check.in_cluster:
            self.cluster, self.cluster_reach = shadow.of_cluster()
        self.oldest_copy = shadow.get(Shadow.OLDEST_COPY) if check.copies else None

    def look_at_each(self) -> ir.Block | None:
        """Where one word a lane is looked at, if that is done."""
        h, check = self.h, self.check
        alone = h.merged_granules() is None and 0 < check.granules <= MOST_GRANULES
        alone = alone and (check.race or check.address.scalar or self.by_segments())
        return h.block_named("masked") if alone else None

    def compare_lanes(self, values: list[Any]) -> None:
        """Take what the first lane stores at the one address of all lanes for what all do, where they do."""
        h, lane = self.h, self.h.first_lane(self.mask)
        self.values = [h.ir.extract_element(value, lane) for value in values]
        differ: Any = h.i32(0)
        for value, first in zip(values, self.values):
            differ = h.ir.or_(differ, h.mask(h.ir.icmp_unsigned("!=", value, h.splat(first))))
        updates = h.ir.and_(self.place_bits, h.i64(UPDATED))
        self.together = h.ir.and_(h.zero(h.ir.and_(differ, self.mask)), h.zero(updates))

    def emit(self) -> None:
        h = self.h
        if self.masked is not None:
            self._check_or_masked(self.masked)
            return
        if not h.partial or not self.by_segments():
            self._check(True)
            return
        with h.ir.if_else(h.likely(h.full(self.mask))) as (then, otherwise):
            with then:
                self._check(True)
            with otherwise:
                self._check(False)

    def find_region(self) -> None:
        """Find the shadow words of what one lane accesses, in memory that blocks share."""
        host = self.at
        h, shadow, shift = self.h, self.shadow, self.h.i64(self.check.granule)
        place = h.alloca(i64)
        h.ir.store(h.i64(0), place)
        regions, count = shadow.get(Shadow.REGIONS, pointer), shadow.get(Shadow.REGION_COUNT)

        def missing(number: Any) -> Any:
            return h.ir.and_(h.ir.icmp_unsigned("<", number, count), h.zero(h.ir.load(place)))

        def one(number: Any) -> Any:
            region = h.add(regions, h.ir.mul(number, h.i64(Region.nbytes)))
            low, size = (h.load(region, field, i64) for field in (Region.LOW, Region.BYTES))
            within = h.ir.icmp_unsigned("<", h.ir.sub(host, low), size)
            h.ir.store(h.ir.select(within, h.ir.ptrtoint(region, i64), h.i64(0)), place)
            return h.ir.add(number, h.i64(1))

        h.loop(h.i64(0), missing, one)
        found = h.ir.load(place)
        self.demand(h.nonzero(found))
        region = h.ir.inttoptr(found, pointer)
        self.demand(h.ir.icmp_unsigned("==", h.load(region, Region.KIND, i32), h.i32(Kind.GLOBAL)))
        before = h.ir.shl(h.ir.lshr(h.load(region, Region.LOW, i64), shift), h.i64(WORD_SHIFT))
        self.words = h.ir.sub(h.load(region, Region.WORDS, i64), before)
        self.stride = h.load(region, Region.STRIDE, i64)

    def demand(self, good: Any) -> None:
        """Go on where this holds, else look at one word a lane, or start over on the slow path."""
        masked = self.masked
        if masked is None:
            self.access.demand(good)
        else:
            self.h.branch_unless(good, lambda: self.h.ir.branch(masked))

    def _check_or_masked(self, masked: ir.Block) -> None:
        """The check of whole lines, and where that does not do that of one word a lane."""
        h = self.h
        checked = self.checked = h.block_named("checked")
        if self.check.address.scalar or self.by_segments():
            self._check(True)
            h.ir.branch(checked)
        else:
            h.ir.branch(masked)
        h.ir.position_at_end(masked)
        function = masked_check(h.function.module, self.check)
        hosts = h.splat(self.at) if self.at is not None else self.access.hosts_within(self.mask)
        words = (self.words, self.stride) if self.check.block_private is not None else (h.i64(0), h.i64(0))
        arguments = [h.rec, h.warp, h.block, self.mask, self.place_bits, *words, hosts]
        self.access.demand(h.ir.call(function, arguments))
        h.ir.branch(checked)
        h.ir.position_at_end(checked)

    def _check(self, whole: bool) -> None:
        for group in self.groups(whole):
            self.check_group(group)

    def check_group(self, group: Group) -> None:
        """Go on where the words of some lanes pass, which is then noted."""
        if self.check.copies:
            copies = group.get(Plane.COPY)
            complete = self.h.ir.icmp_unsigned("<", copies, self.splat(self.oldest_copy, group.size))
            self.demand(self.all(complete, group.size))
        if self.h.lane is not None and self.masked is not None and knows_again(self.check):
            self._be_done_again(group)
        if self.check.role == Role.READ:
            self.read(group)
        else:
            self.write(group)

    def _be_done_again(self, group: Group) -> None:
        """Be done where the lane was the last reader of its place in this epoch, as in :mod:`.masked_checks`."""
        h = self.h
        mine, readers = h.ir.or_(self.word, group.lanes), group.get(Plane.READER)
        again, anew = h.block_named("again"), h.block_named("anew")
        same = self.same_thread(readers, mine, 1)
        if self.check.role == Role.WRITE:
            earlier = group.get(Plane.EARLIER_READER)
            fine = h.ir.or_(self.ordered(earlier, 1), self.same_thread(earlier, mine, 1))
            same = h.ir.and_(h.ir.and_(same, h.ir.not_(self.marked(readers, STORED, 1))), fine)
        h.ir.cbranch(same, again, anew)
        h.ir.position_at_end(again)
        if self.check.role == Role.WRITE:
            group.put(Plane.WRITER, mine, None)
        h.ir.branch(self.checked)
        h.ir.position_at_end(anew)

    # What the words hold

    def ordered(self, words: Any, n: int) -> Any:
        """Whether barriers of the block order the accesses of shadow words before this one."""
        below = self.h.ir.icmp_unsigned
        if self.check.block_private:
            return below("<", words, self.splat(self.floor, n))
        since = self.h.ir.sub(words, self.splat(self.window, n))
        reach = self.h.call("llvm.usub.sat.i64", i64, self.floor, self.window)
        inside = below("<", since, self.splat(reach, n))
        good = self.h.ir.or_(below("<", words, self.splat(self.launch, n)), inside)
        if not self.check.in_cluster:
            return good
        since = self.h.ir.sub(words, self.splat(self.cluster, n))
        return self.h.ir.or_(good, below("<", since, self.splat(self.cluster_reach, n)))

    def same_thread(self, words: Any, mine: Any, n: int) -> Any:
        """Whether accesses are of one thread, in one epoch."""
        h = self.h
        differs = h.ir.and_(h.ir.xor(words, mine), self.splat(THREAD, n))
        return h.ir.icmp_unsigned("==", differs, self.splat(0, n))

    def marked(self, words: Any, mark: int, n: int) -> Any:
        h = self.h
        return h.ir.icmp_unsigned("!=", h.ir.and_(words, self.splat(mark, n)), self.splat(0, n))

    def harmless(self, words: Any, own: Any, n: int) -> Any:
        """Whether the accesses of shadow words do not race with this one, where they are not its thread's ``own``."""
        h, check = self.h, self.check
        good = h.ir.or_(self.ordered(words, n), own)
        if check.strength and (check.block_private or check.strength == 3):
            level = h.ir.and_(words, self.splat(STRENGTH, n))
            least = 1 << STRENGTH_SHIFT if check.block_private else 3 << STRENGTH_SHIFT
            good = h.ir.or_(good, h.ir.icmp_unsigned(">=", level, self.splat(least, n)))
        return good

    def written(self, words: Any, n: int) -> Any:
        """Whether the memory has been written."""
        if self.check.block_private:
            return self.h.ir.icmp_unsigned(">=", words, self.splat(self.base, n))
        return self.h.ir.icmp_unsigned("!=", words, self.splat(UNWRITTEN, n))

    def all(self, bools: Any, n: int) -> Any:
        """Whether all of a vector of booleans hold."""
        h = self.h
        if n == 1:
            return bools
        whole = h.ir.bitcast(bools, ir.IntType(n))
        return h.ir.icmp_unsigned("==", whole, ir.Constant(ir.IntType(n), -1))

    def read(self, group: Group) -> None:
        h, check, n = self.h, self.check, group.size
        mine = h.ir.or_(self.splat(self.word, n), group.lanes)
        self.read_writers(group.get(Plane.WRITER), mine, n)
        if not check.race:
            return
        readers = group.get(Plane.READER)
        if check.strength:  # the readers may be stores that are weaker than the last
            for words in (readers, group.get(Plane.EARLIER_READER)):
                good = h.ir.or_(self.ordered(words, n), h.ir.not_(self.marked(words, STORED, n)))
                self.demand(self.all(good, n))
        after = h.block_named("read")
        if check.block_private:
            self.read_first(group, readers, mine, n, after)
        change = h.ir.xor(readers, mine)
        same_epoch = h.ir.icmp_unsigned("<", change, self.splat(1 << EPOCH_SHIFT, n))
        other_lane = h.ir.icmp_unsigned("!=", h.ir.and_(change, self.splat(SEVERAL_LANES | LANE, n)), self.splat(0, n))
        several = h.ir.select(h.ir.and_(same_epoch, other_lane), self.splat(SEVERAL_LANES, n), self.splat(0, n))
        if check.block_private:
            first = h.ir.icmp_unsigned("==", h.ir.and_(readers, self.splat(STORED | FIRST, n)), self.splat(FIRST, n))
            first = h.ir.and_(same_epoch, first)
            several = h.ir.or_(several, h.ir.select(first, self.splat(FIRST, n), self.splat(0, n)))
        obsolete = h.ir.or_(same_epoch, self.ordered(readers, n))
        keep, replace = h.block_named("keep_reader"), h.block_named("replace_reader")
        h.ir.cbranch(self.all(obsolete, n), replace, keep)
        h.ir.position_at_end(keep)
        group.put(Plane.EARLIER_READER, h.ir.select(obsolete, group.get(Plane.EARLIER_READER), readers), None)
        h.ir.branch(replace)
        h.ir.position_at_end(replace)
        group.put(Plane.READER, h.ir.or_(mine, several), None)
        h.ir.branch(after)
        h.ir.position_at_end(after)

    def read_writers(self, writers: Any, mine: Any, n: int) -> None:
        """Continue where no last writer races with the read."""
        h, check = self.h, self.check
        if check.block_private and check.race and check.init:  # one comparison tells written and ordered
            since = h.ir.sub(writers, self.splat(self.base, n))
            usual = h.ir.icmp_unsigned("<", since, self.splat(h.ir.sub(self.floor, self.base), n))
            rare, on = h.block_named("unusual"), h.block_named("usual")
            h.ir.cbranch(h.likely(self.all(usual, n)), on, rare)
            h.ir.position_at_end(rare)
            good = h.ir.and_(self.harmless(writers, self.same_thread(writers, mine, n), n), self.written(writers, n))
            self.demand(self.all(good, n))
            h.ir.branch(on)
            h.ir.position_at_end(on)
            return
        own = self.same_thread(writers, mine, n)
        good = self.harmless(writers, own, n) if check.race else self.written(writers, n)
        if check.race and check.init:
            good = h.ir.and_(good, self.written(writers, n))
        self.demand(self.all(good, n))

    def read_first(self, group: Group, readers: Any, mine: Any, n: int, after: ir.Block) -> None:
        """The first reader since the last barrier replaces the word; one after two of other warps changes nothing."""
        h = self.h
        floor = self.splat(self.floor, n)
        first, later = h.block_named("first"), h.block_named("later")
        h.ir.cbranch(self.all(h.ir.icmp_unsigned("<", readers, floor), n), first, later)
        h.ir.position_at_end(first)
        group.put(Plane.READER, h.ir.or_(mine, self.splat(FIRST, n)), None)
        h.ir.branch(after)
        h.ir.position_at_end(later)
        if self.check.barriers_only and self.check.pattern is not None:
            earlier = group.get(Plane.EARLIER_READER)
            both = (readers, earlier)
            others = [h.ir.icmp_unsigned(">=", h.ir.xor(t, mine), self.splat(1 << EPOCH_SHIFT, n)) for t in both]
            live = [h.ir.icmp_unsigned(">=", words, floor) for words in both]
            enough = h.ir.and_(h.ir.and_(*others), h.ir.and_(*live))
            update = h.block_named("update")
            h.ir.cbranch(self.all(enough, n), after, update)
            h.ir.position_at_end(update)

    def again(self, writers: Any, mine: Any, n: int) -> Any:
        """Whether the same lanes store once more what is there already."""
        h = self.h
        differs = h.ir.and_(h.ir.xor(writers, mine), self.splat(THREAD & ~LANE, n))
        same_warp = h.ir.icmp_unsigned("==", differs, self.splat(0, n))
        same_lanes = h.ir.or_(self.same_thread(writers, mine, n), self.marked(writers, SEVERAL_LANES, n))
        return h.ir.and_(h.ir.and_(same_warp, same_lanes), self.alike(writers, n))

    def equal(self) -> Any:
        """Whether all lanes store what is there already."""
        h, equal = self.h, ir.Constant(i1, bool(self.values))
        for number, value in enumerate(self.values):
            at = h.ir.add(self.host, h.i64(number * self.check.bits // 8))
            place = h.ir.inttoptr(at, value.type.as_pointer())
            equal = h.ir.and_(equal, h.ir.icmp_unsigned("==", h.ir.load(place, align=1), value))
        return equal

    def alike(self, words: Any, n: int) -> Any:
        """Whether accesses have stored what is stored now."""
        h = self.h
        clean = h.ir.not_(self.marked(words, CHANGED | UPDATED, n))
        return h.ir.and_(h.ir.and_(clean, self.marked(words, STORED, n)), self.splat(self.stored, n))

    def keep_stores(self, group: Group, writers: Any, mine: Any, good: Any, n: int) -> Any:
        """The word of this store; those of other warps that it is not ordered with stay among the readers."""
        h, open_ = self.h, self.h.ir.not_(good)
        other_warp = self.marked(h.ir.xor(writers, mine), 0xFFFFFFFF << EPOCH_SHIFT | WARP, n)
        apart, together = h.ir.and_(open_, other_warp), h.ir.and_(open_, h.ir.not_(other_warp))
        some, on = h.block_named("apart"), h.block_named("together")
        h.ir.cbranch(self.all(h.ir.not_(apart), n), on, some)
        h.ir.position_at_end(some)
        readers, earlier = group.get(Plane.READER), group.get(Plane.EARLIER_READER)
        group.put(Plane.EARLIER_READER, h.ir.select(apart, readers, earlier), None)
        group.put(Plane.READER, h.ir.select(apart, writers, readers), None)
        h.ir.branch(on)
        h.ir.position_at_end(on)
        return h.ir.or_(mine, h.ir.select(together, self.splat(SEVERAL_LANES, n), self.splat(0, n)))

    def write(self, group: Group) -> None:
        h, check, n = self.h, self.check, group.size
        mine = h.ir.or_(self.splat(self.word, n), group.lanes)
        if check.race:
            writers = group.get(Plane.WRITER)
            one = h.ir.and_(mine, self.splat(~SEVERAL_LANES & (1 << 64) - 1, n))  # several lanes are no one thread
            own = self.same_thread(writers, one, n)
            compared = check.address.scalar and bool(self.values)
            if compared:
                updates, equal = h.nonzero(h.ir.and_(self.place_bits, h.i64(UPDATED))), self.equal()
                self.stored = h.ir.and_(equal, h.ir.not_(updates))
            if compared and h.lane is not None and n == 1:  # what the inspection finds of a store of the same thread
                changed = h.ir.or_(h.ir.not_(equal), self.marked(writers, CHANGED, n))
                mine = h.ir.or_(mine, h.ir.select(h.ir.and_(own, changed), h.i64(CHANGED), h.i64(0)))
            elif check.address.scalar and check.sources:
                own = h.ir.and_(own, self.marked(writers, CHANGED, n))
                again = self.again(writers, mine, n) if compared else None
                mine = h.ir.or_(mine, h.ir.select(own, self.splat(CHANGED, n), self.splat(0, n)))
                own = own if again is None else h.ir.or_(own, again)
            good = before = self.harmless(writers, own, n)
            if compared:
                good = h.ir.or_(good, self.alike(writers, n))
            for plane in (Plane.READER, Plane.EARLIER_READER) if check.readers else ():
                words = group.get(plane)
                fine = self.harmless(words, self.same_thread(words, one, n), n)
                good = h.ir.and_(good, h.ir.or_(fine, self.alike(words, n)) if compared else fine)
            if check.init and check.role == Role.ATOMIC:
                good = h.ir.and_(good, self.written(writers, n))
            self.demand(self.all(good, n))
            if compared:
                mine = self.keep_stores(group, writers, mine, before, n)
            if check.strength:
                same = self.same_thread(writers, one, n)
                weak = h.ir.icmp_unsigned("==", h.ir.and_(writers, self.splat(STRENGTH, n)), self.splat(0, n))
                mine = h.ir.select(h.ir.and_(same, weak), writers, mine)
        elif check.role == Role.ATOMIC:
            self.demand(self.all(self.written(group.get(Plane.WRITER), n), n))
            return
        group.put(Plane.WRITER, mine, None)
        if group.gathered and check.role == Role.WRITE and check.race:
            distinct = h.ir.icmp_unsigned("==", group.get(Plane.WRITER), mine)  # else lanes wrote the same granule
            distinct = h.ir.or_(distinct, h.ir.not_(h.bools(self.mask)))
            restore, on = h.block_named("restore"), h.block_named("distinct")
            h.ir.cbranch(h.likely(self.all(distinct, n)), on, restore)
            h.ir.position_at_end(restore)
            group.put(Plane.WRITER, writers, None)
            self.access.demand(ir.Constant(i1, 0))
            h.ir.branch(on)
            h.ir.position_at_end(on)
