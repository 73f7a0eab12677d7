"""Routines that write the synchronisation graph: strong accesses, fences and barriers of the cluster, as they happen.

What they leave out is only not known to be ordered (:mod:`.order_search`): a fence before the last one of its level,
what an acquire at less than the scope of the GPU leaves to a later fence, and all that is new once memory is full.
Nothing is in the graph that Python, following the log, would not find (``sanitizer.happens_before``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import SyncFollowing
from ...machine.layout import LANES, Block
from ...machine.shadow import (
    EPOCH_SHIFT, LANE, ORDER_HASH, STRENGTH, STRENGTH_SHIFT, WARP, Shadow, WarpClock,
)
from ...machine.sync_graph import (
    LEVEL_SHIFT, MOST_PROBES, NEAR_BITS, PLACE_BITS, Acquire, Does, Fence, Place, Release, SyncGraph, WarpSync,
)
from ..handler import Handler, i1, i32, i64, lanes_of, pointer
from ..registry import builds
from .epochs import ShadowState
from .mbarriers import PRECEDE
from .order_search import reaches
from .sync_log import FOLLOW

__all__ = ["follow"]

MANY = 8
"""Lanes whose places are asked for at once."""


@builds(SyncFollowing)
def follow(module: ir.Module, name: str, _: SyncFollowing) -> None:
    """Follow what the lanes of a mask do (:class:`Does`): to addresses, or to a cluster's barrier.

    The last argument is the one address of all, or stands for the barrier; where it is 0, the addresses are in SCRATCH.
    """
    _Follow(module, name)


class _Follow:
    def __init__(self, module: ir.Module, name: str) -> None:
        h = self.h = Handler(module, name, result=FOLLOW)
        self.mask, self.flags, self.key = h.function.args[3:]
        shadow = self.shadow = ShadowState(h)
        self.graph, rows = shadow.get(Shadow.GRAPH, pointer), shadow.get(Shadow.WARP_SYNC, pointer)
        self.rows, self.mine = rows, h.add(rows, h.ir.mul(shadow.number, h.i64(WarpSync.nbytes)))
        self.base, self.block = shadow.get(Shadow.BASE), shadow.get(Shadow.BLOCK, i32)
        self.word = h.ir.and_(shadow.clock(WarpClock.EPOCH), h.i64(0xFFFFFFFF << EPOCH_SHIFT | WARP))
        self.block_floor, self.warp_floor = (shadow.clock(n) for n in (WarpClock.BLOCK_FLOOR, WarpClock.WARP_FLOOR))
        self.time = h.ir.trunc(h.load(shadow.get(Shadow.EPOCH_COUNTER, pointer), 0, i64), i32)
        self.level = h.ir.lshr(self.flags, h.i32(LEVEL_SHIFT))
        self.found, self.live, self.first, self.asked = h.alloca(i64), h.alloca(i1), h.alloca(i64), h.alloca(i64)
        for what, body in ((Does.FENCES, self.fence), (Does.CLUSTER, self.cluster)):
            with h.ir.if_then(self.does(what)):
                body()
                h.ir.ret(ir.Constant(i1, 1))
                h.ir.position_at_end(h.block_named("unreachable"))
        h.for_each_lane(self.noted(), self.access)
        h.ir.ret(ir.Constant(i1, 1))

    def does(self, what: int) -> Any:
        return self.h.nonzero(self.h.ir.and_(self.flags, self.h.i32(what)))

    def bit(self, lane: Any) -> Any:
        return self.h.ir.shl(self.h.i32(1), lane)

    def level_of(self, word: Any) -> Any:
        h = self.h
        return h.ir.lshr(h.ir.and_(h.ir.trunc(word, i32), h.i32(STRENGTH)), h.i32(STRENGTH_SHIFT))

    def as_strength(self, level: Any) -> Any:
        return self.h.ir.shl(self.h.ir.zext(level, i64), self.h.i64(STRENGTH_SHIFT))

    # Memory

    def cell(self, nbytes: int, fill: Callable[[Any], None]) -> Any:
        """The address of new memory, which ``fill`` writes; 0 where there is no more room."""
        h, graph = self.h, self.graph
        at = h.load(graph, SyncGraph.NEXT, i64)
        room, on, before = h.block_named("room"), h.block_named("filled"), h.ir.block
        h.ir.cbranch(h.ir.icmp_unsigned("<", at, h.load(graph, SyncGraph.END, i64)), room, on)
        h.ir.position_at_end(room)
        h.store(h.ir.add(at, h.i64(nbytes)), graph, SyncGraph.NEXT)
        fill(h.ir.inttoptr(at, pointer))
        last = h.ir.block
        h.ir.branch(on)
        h.ir.position_at_end(on)
        made = h.ir.phi(i64)
        made.add_incoming(h.i64(0), before)
        made.add_incoming(at, last)
        return made

    def place_of(self, host: Any, number: Callable[[int], Any]) -> tuple[Any, Any]:
        """Where the entry of an address is probably: the line of the table, and the entry in it."""
        h = self.h
        lines = h.ir.lshr(host, number(NEAR_BITS + 2))
        key = h.ir.or_(lines, h.ir.shl(host, number(62)))
        hashed = h.ir.lshr(h.ir.mul(key, number(ORDER_HASH)), number(64 - PLACE_BITS + NEAR_BITS))
        near = h.ir.xor(h.ir.lshr(host, number(2)), lines)  # all of them are used for words of eight bytes too
        return hashed, h.ir.and_(near, number((1 << NEAR_BITS) - 1))

    def noted(self) -> Any:
        """The lanes that write, or whose place has perhaps been written. Many are asked for at once."""
        h = self.h
        count = h.call("llvm.ctpop.i32", i32, self.mask)
        before, many, on = h.ir.block, h.block_named("many"), h.block_named("few")
        h.ir.cbranch(h.ir.icmp_unsigned(">", count, h.i32(MANY)), many, on)
        h.ir.position_at_end(many)
        table = h.ir.ptrtoint(h.load(self.graph, SyncGraph.PLACES, pointer), i64)

        def number(value: int) -> ir.Constant:
            return ir.Constant(lanes_of(i64), [value] * LANES)

        hosts = h.load(h.add(h.block, Block.SCRATCH), 0, lanes_of(i64))
        hosts = h.ir.select(h.nonzero(self.key), h.splat(self.key), hosts)
        line, near = self.place_of(hosts, number)
        entry = h.ir.mul(h.ir.or_(h.ir.shl(line, number(NEAR_BITS)), near), number(Place.nbytes))
        places = h.ir.inttoptr(h.ir.add(entry, h.splat(h.ir.add(table, h.i64(Place.WRITER)))), lanes_of(pointer))
        active, rest = h.bools(self.mask), number(0)
        words = h.call("llvm.masked.gather.v32i64.v32p0", lanes_of(i64), places, h.i32(8), active, rest)
        old = h.ir.icmp_unsigned("<", words, h.splat(self.shadow.get(Shadow.LAUNCH)))
        fresh = h.ir.and_(self.mask, h.ir.not_(h.mask(old)))
        found = h.ir.select(self.does(Does.WRITES), self.mask, fresh)
        h.ir.branch(on)
        h.ir.position_at_end(on)
        return h.merged(before, [self.mask], many, [found])[0]

    def find(self, host: Any) -> Any:
        """The entry of a place, ``live`` if there is one, or where it would stand; 0 where there is no room for it."""
        h = self.h
        table, launch = h.load(self.graph, SyncGraph.PLACES, pointer), self.shadow.get(Shadow.LAUNCH)
        hashed, near = self.place_of(host, h.i64)
        head, look, used, next_, done = (h.block_named(n) for n in ("head", "look", "used", "next", "found"))
        h.ir.store(h.i64(0), self.found)
        h.ir.store(ir.Constant(i1, 0), self.live)
        before = h.ir.block
        h.ir.branch(head)
        h.ir.position_at_end(head)
        tried = h.ir.phi(i64)
        tried.add_incoming(h.i64(0), before)
        h.ir.cbranch(h.ir.icmp_unsigned("<", tried, h.i64(MOST_PROBES)), look, done)
        h.ir.position_at_end(look)
        line = h.ir.and_(h.ir.add(hashed, tried), h.i64((1 << PLACE_BITS - NEAR_BITS) - 1))
        number = h.ir.or_(h.ir.shl(line, h.i64(NEAR_BITS)), near)
        entry = h.add(table, h.ir.mul(number, h.i64(Place.nbytes)))
        free = h.ir.icmp_unsigned("<", h.load(entry, Place.WRITER, i64), launch)
        here, address = h.block_named("here"), h.ir.ptrtoint(entry, i64)
        h.ir.cbranch(free, here, used)
        h.ir.position_at_end(used)
        same = h.ir.icmp_unsigned("==", h.load(entry, Place.HOST, i64), host)
        h.ir.store(same, self.live)
        h.ir.cbranch(same, here, next_)
        h.ir.position_at_end(next_)
        tried.add_incoming(h.ir.add(tried, h.i64(1)), next_)
        h.ir.branch(head)
        h.ir.position_at_end(here)
        h.ir.store(address, self.found)
        h.ir.branch(done)
        h.ir.position_at_end(done)
        return h.ir.load(self.found)

    def note(self, entry: Any, host: Any, release: Any, word: Any) -> None:
        place = self.h.ir.inttoptr(entry, pointer)
        for value, offset in ((host, Place.HOST), (release, Place.RELEASE), (word, Place.WRITER)):
            self.h.store(value, place, offset)

    def writer(self, entry: Any) -> tuple[Any, Any]:
        """The shadow word of the last write to a place, and its block."""
        h = self.h
        word = h.load(h.ir.inttoptr(entry, pointer), Place.WRITER, i64)
        return word, h.load(*self.shadow.block_of(h.ir.lshr(word, h.i64(EPOCH_SHIFT))), i32)

    # Releases

    def release(self, point: Any, mask: Any) -> None:
        """Publish the clock of some lanes at a point (:class:`Fence`), unless that was published there last."""
        h, before = self.h, self.h.ir.load(self.first)
        word = h.load(point, Fence.WORD, i64)

        def again() -> Any:
            node = h.ir.inttoptr(before, pointer)
            same = h.ir.icmp_unsigned("==", h.load(node, Release.WORD, i64), word)
            return h.ir.and_(same, h.ir.icmp_unsigned("==", h.load(node, Release.MASK, i32), mask))

        def fill(node: Any) -> None:
            for field in (Release.WORD, Release.BLOCK_FLOOR, Release.WARP_FLOOR, Release.HEAD):
                h.store(h.load(point, field, i64), node, field)
            h.store(before, node, Release.BEFORE)
            for value, field in (
                (self.block, Release.BLOCK), (mask, Release.MASK), (h.load(point, Fence.TIME, i32), Release.TIME),
                (self.time, Release.CREATED), (h.i32(0), Release.SEARCHED),
            ):
                h.store(value, node, field)
            h.store(self.later(self.row(point, Fence.KNOWN), self.known_before(before)), node, Release.KNOWN, 64)

        with h.ir.if_then(h.ir.not_(h.asked_if(h.nonzero(before), again))):
            made = self.cell(Release.nbytes, fill)
            h.ir.store(h.ir.select(h.nonzero(made), made, before), self.first)

    def known_before(self, release: Any) -> Any:
        """What a read of a place acquires of the release before, if that is one of the block."""
        h, start = self.h, self.h.ir.block
        nothing = ir.Constant(lanes_of(i32), None)
        with h.ir.if_then(h.nonzero(release)):
            node = h.ir.inttoptr(release, pointer)
            known = h.ir.select(self.is_near(node), self.row(node, Release.KNOWN), nothing)
            end = h.ir.block
        return h.merged(start, [nothing], end, [known])[0]

    def is_near(self, node: Any) -> Any:
        """Whether a release is strong in the block, and of it."""
        h = self.h
        strong = h.nonzero(h.ir.and_(h.load(node, Release.WORD, i64), h.i64(STRENGTH)))
        return h.ir.and_(strong, h.ir.icmp_unsigned("==", h.load(node, Release.BLOCK, i32), self.block))

    def fill_point(self, point: Any, level: Any, mask: Any) -> None:
        """Write the clock of the warp, as it is now."""
        h = self.h
        for value, field in (
            (h.ir.or_(self.word, self.as_strength(level)), Fence.WORD), (self.block_floor, Fence.BLOCK_FLOOR),
            (self.warp_floor, Fence.WARP_FLOOR), (self.shadow.get(Shadow.ACQUIRED), Fence.HEAD),
            (mask, Fence.MASK), (self.time, Fence.TIME),
        ):
            h.store(value, point, field)
        own = h.ir.icmp_unsigned("==", h.iota(32), h.splat(h.ir.trunc(self.shadow.number, i32)))
        barrier = h.ir.trunc(h.ir.lshr(self.warp_floor, h.i64(EPOCH_SHIFT)), i32)
        known, _ = self.known()
        h.store(h.ir.select(own, h.splat(barrier), known), point, Fence.KNOWN, 64)

    def release_now(self, level: Any, mask: Any) -> None:
        point = self.mine  # the place of level 0, which no fence has
        self.fill_point(point, level, mask)
        self.release(point, mask)

    def release_fenced(self, lane: Any, above: Any) -> None:
        """Publish what fences of higher levels before a write of a lane let it release."""
        h, below = self.h, self.h.ir.icmp_unsigned
        number = h.ir.trunc(self.shadow.number, i32)
        fenced = h.ir.and_(self.shadow.get(Shadow.FENCED, i32), h.ir.not_(self.bit(number)))
        for level in (3, 2, 1):
            offset = level * Fence.nbytes
            fence = h.add(self.mine, offset)
            word, mask = h.load(fence, Fence.WORD, i64), h.load(fence, Fence.MASK, i32)
            handed = below("<", word, self.warp_floor)
            own = h.nonzero(h.ir.and_(mask, self.bit(lane)))
            usable = h.ir.and_(below(">", word, self.base), h.ir.or_(own, handed))
            asked = below(">", h.i32(level), above)
            with h.ir.if_then(h.ir.and_(asked, usable)):
                self.release(fence, h.ir.select(handed, mask, self.bit(lane)))
            fresh = h.ir.and_(usable, below(">=", word, self.block_floor))

            def other(number: Any, offset: int = offset) -> None:
                """What a fence of another warp, before the last barrier of the block, released."""
                place = h.ir.add(h.ir.mul(h.ir.zext(number, i64), h.i64(WarpSync.nbytes)), h.i64(offset))
                theirs = h.add(self.rows, place)
                at = h.load(theirs, Fence.WORD, i64)
                good = h.ir.and_(below(">", at, self.base), below("<", at, self.block_floor))
                with h.ir.if_then(good):
                    self.release(theirs, h.load(theirs, Fence.MASK, i32))

            with h.ir.if_then(h.ir.and_(asked, h.ir.not_(fresh))):
                h.for_each_lane(fenced, other)

    # Acquires

    def row(self, base: Any, offset: int) -> Any:
        return self.h.load(base, offset, lanes_of(i32), 64)

    def known(self) -> tuple[Any, Any]:
        """What all lanes of the warp know of each warp of the block, and what only some of them do."""
        h, none = self.h, ir.Constant(lanes_of(i32), None)
        known, part = (self.row(self.mine, offset) for offset in (WarpSync.KNOWN, WarpSync.PART))
        all_ = h.ir.icmp_unsigned("<", h.load(self.mine, WarpSync.PART_WORD, i64), self.warp_floor)
        return self.later(known, h.ir.select(all_, part, none)), h.ir.select(all_, none, part)

    def later(self, one: Any, other: Any) -> Any:
        return self.h.call("llvm.umax.v32i32", lanes_of(i32), one, other)

    def learn(self, release: Any, level: Any) -> None:
        """Some lanes know from here on what a release of the block knows, if both are strong in it."""
        h = self.h
        node = h.ir.inttoptr(release, pointer)
        with h.ir.if_then(h.ir.and_(self.is_near(node), h.nonzero(level))):
            known, part = self.known()
            h.store(known, self.mine, WarpSync.KNOWN, 64)
            h.store(self.later(part, self.row(node, Release.KNOWN)), self.mine, WarpSync.PART, 64)
            h.store(self.word, self.mine, WarpSync.PART_WORD)

    def acquire(self, release: Any, mask: Any, level: Any, word: Any, sibling: Any = None) -> Any:
        """Note what lanes acquire, or with a mask of 0 what a read saw."""
        h, shadow = self.h, self.shadow

        def fill(node: Any) -> None:
            for value, field in (
                (word, Acquire.WORD), (release, Acquire.RELEASE), (shadow.get(Shadow.ACQUIRED), Acquire.NEXT),
                (h.i64(0) if sibling is None else sibling, Acquire.SIBLING), (mask, Acquire.MASK),
                (level, Acquire.LEVEL), (self.time, Acquire.TIME), (h.i32(0), Acquire.FENCED),
            ):
                h.store(value, node, field)
            h.store(h.ir.ptrtoint(node, i64), shadow.block, Shadow.ACQUIRED)

        if not isinstance(mask, ir.Constant):
            self.learn(release, level)
        return self.cell(Acquire.nbytes, fill)

    def last_read(self) -> Any:
        """The last read of the warp that no fence has acquired, of this block."""
        h = self.h
        at = h.load(self.mine, WarpSync.READS, i64)

        def of_block() -> Any:
            word = h.load(h.ir.inttoptr(at, pointer), Acquire.WORD, i64)
            return h.ir.icmp_unsigned(">", word, self.base)

        return h.ir.select(h.asked_if(h.nonzero(at), of_block), at, h.i64(0))

    def read(self, lane: Any, entry: Any) -> None:
        """A strong read acquires what was published, or lets the next fence do that."""
        h = self.h
        release = h.load(h.ir.inttoptr(entry, pointer), Place.RELEASE, i64)
        with h.ir.if_then(h.nonzero(release)):
            word, block = self.writer(entry)
            strong = reaches(h, self.shadow, (block, self.block), (self.level_of(word), self.level))
            mine = h.ir.or_(self.word, h.ir.zext(lane, i64))
            with h.ir.if_then(strong), h.ir.if_else(self.does(Does.ACQUIRES)) as (now, later):
                with now, h.ir.if_then(h.ir.not_(self.acquired(release, lane))):
                    self.acquire(release, self.bit(lane), self.level, mine)
                with later:
                    last = self.last_read()
                    with h.ir.if_then(h.ir.not_(self.seen(last, release, lane))):
                        made = self.acquire(release, h.i32(0), h.i32(3), mine, last)
                        h.store(h.ir.select(h.nonzero(made), made, last), self.mine, WarpSync.READS)

    def acquired(self, release: Any, lane: Any) -> Any:
        """Whether that was the last that the block acquired, by this lane."""
        h, at = self.h, self.shadow.get(Shadow.ACQUIRED)

        def same() -> Any:
            node = h.ir.inttoptr(at, pointer)
            warp = h.zero(h.ir.and_(h.ir.xor(h.load(node, Acquire.WORD, i64), self.word), h.i64(WARP)))
            one = h.ir.icmp_unsigned("==", h.load(node, Acquire.MASK, i32), self.bit(lane))
            level = h.ir.icmp_unsigned("==", h.load(node, Acquire.LEVEL, i32), self.level)
            what = h.ir.icmp_unsigned("==", h.load(node, Acquire.RELEASE, i64), release)
            return h.ir.and_(h.ir.and_(warp, one), h.ir.and_(level, what))

        return h.asked_if(h.nonzero(at), same)

    def seen(self, last: Any, release: Any, lane: Any) -> Any:
        """Whether the last read of the warp is the same, with no barrier since."""
        h = self.h

        def same() -> Any:
            node = h.ir.inttoptr(last, pointer)
            word = h.load(node, Acquire.WORD, i64)
            mine = h.ir.icmp_unsigned("==", h.ir.and_(word, h.i64(LANE)), h.ir.zext(lane, i64))
            what = h.ir.icmp_unsigned("==", h.load(node, Acquire.RELEASE, i64), release)
            return h.ir.and_(h.ir.and_(mine, what), h.ir.icmp_unsigned(">=", word, self.warp_floor))

        return h.asked_if(h.nonzero(last), same)

    # Events

    def access(self, lane: Any) -> None:
        """A strong access of a lane."""
        h = self.h
        host = h.load(h.block, h.ir.add(h.ir.shl(h.ir.zext(lane, i64), h.i64(3)), h.i64(Block.SCRATCH)), i64)
        host = h.ir.select(h.nonzero(self.key), self.key, host)
        entry = self.find(host)
        live = self.runs(entry, host)
        h.ir.store(h.i64(0), self.first)
        with h.ir.if_then(h.ir.and_(live, self.does(Does.READS))):
            with h.ir.if_then(self.does(Does.TRUSTS)):
                self.judge(lane, entry)
            self.read(lane, entry)
        with h.ir.if_then(self.does(Does.WRITES)):
            with h.ir.if_then(h.ir.and_(live, self.does(Does.READS))):
                word, block = self.writer(entry)
                kept = reaches(h, self.shadow, (block, self.block), (self.level_of(word), self.level))
                before = h.load(h.ir.inttoptr(entry, pointer), Place.RELEASE, i64)
                h.ir.store(h.ir.select(kept, before, h.i64(0)), self.first)
            with h.ir.if_then(self.does(Does.RELEASES)):
                self.release_now(self.level, self.bit(lane))
            with h.ir.if_then(h.nonzero(self.shadow.get(Shadow.FENCED, i32))):
                self.release_fenced(lane, h.ir.select(self.does(Does.RELEASES), self.level, h.i32(0)))
            self.write(lane, entry, host, live)

    def write(self, lane: Any, entry: Any, host: Any, live: Any) -> None:
        h, first = self.h, self.h.ir.load(self.first)
        wanted = h.ir.or_(h.ir.or_(live, h.nonzero(first)), self.does(Does.NOTES))
        room = h.nonzero(entry)
        with h.ir.if_then(h.ir.and_(wanted, room)):
            word = h.ir.or_(h.ir.or_(self.word, self.as_strength(self.level)), h.ir.zext(lane, i64))
            self.note(entry, host, first, word)
        with h.ir.if_then(h.ir.and_(self.does(Does.NOTES), h.ir.not_(room))):
            h.store(h.i32(1), self.graph, SyncGraph.UNORDERED)

    def judge(self, lane: Any, entry: Any) -> None:
        """Note where the last write is not known to come before a load that counts on an order."""
        h = self.h
        h.ir.store(h.load(h.ir.inttoptr(entry, pointer), Place.WRITER, i64), self.asked)
        function = h.ir.bitcast(self.shadow.get(Shadow.SEARCH, pointer), PRECEDE.as_pointer())
        place = h.ir.bitcast(self.asked, pointer)
        arguments = [h.rec, h.warp, h.block, place, h.i64(1), h.i64(1), self.bit(lane)]
        with h.ir.if_then(h.ir.not_(h.ir.call(function, arguments))):
            h.store(h.i32(1), self.graph, SyncGraph.UNORDERED)

    def fence(self) -> None:
        h = self.h
        with h.ir.if_then(self.does(Does.ACQUIRES)):
            self.acquire_reads()
        with h.ir.if_then(self.does(Does.RELEASES)):
            place = h.add(self.mine, h.ir.mul(h.ir.zext(self.level, i64), h.i64(Fence.nbytes)))
            self.fill_point(place, self.level, self.mask)
            bit = self.bit(h.ir.trunc(self.shadow.number, i32))
            h.store(h.ir.or_(self.shadow.get(Shadow.FENCED, i32), bit), self.shadow.block, Shadow.FENCED)

    def acquire_reads(self) -> None:
        """Acquire what strong reads of the fence's lanes saw, unless a barrier has done so."""
        h, kept = self.h, self.found
        h.ir.store(h.i64(0), kept)

        def one(at: Any) -> Any:
            read = h.ir.inttoptr(at, pointer)
            word, next_ = h.load(read, Acquire.WORD, i64), h.load(read, Acquire.SIBLING, i64)
            bit = self.bit(h.ir.trunc(h.ir.and_(word, h.i64(LANE)), i32))
            open_ = h.ir.icmp_unsigned(">=", word, self.warp_floor)
            mine = h.nonzero(h.ir.and_(bit, self.mask))
            with h.ir.if_then(h.ir.and_(open_, mine)):
                h.store(h.i32(1), read, Acquire.FENCED)
                release = h.load(read, Acquire.RELEASE, i64)
                now = h.ir.or_(self.word, h.ir.and_(word, h.i64(LANE)))
                self.acquire(release, bit, self.level, now)
            with h.ir.if_then(h.ir.and_(open_, h.ir.not_(mine))):
                h.store(h.ir.load(kept), read, Acquire.SIBLING)
                h.ir.store(at, kept)
            return next_

        h.loop(self.last_read(), h.nonzero, one)
        h.store(h.ir.load(kept), self.mine, WarpSync.READS)

    def cluster(self) -> None:
        """Lanes arrive at the barrier of the cluster, or have waited: its phase, as a place, is ``key``."""
        h = self.h
        entry, whole = self.find(self.key), self.mask
        release = h.ir.select(self.of_cluster(entry), self.published(entry), h.i64(0))
        h.ir.store(release, self.first)
        with h.ir.if_then(h.ir.and_(self.does(Does.ACQUIRES), h.nonzero(release))):
            self.acquire(release, whole, h.i32(3), self.word)
        with h.ir.if_then(self.does(Does.WRITES)):
            with h.ir.if_else(self.does(Does.RELEASES)) as (now, fenced):
                with now:
                    self.release_now(h.i32(2), whole)
                with fenced:
                    h.for_each_lane(self.mask, lambda lane: self.release_fenced(lane, h.i32(1)))
            first = h.ir.load(self.first)
            with h.ir.if_then(h.ir.and_(h.nonzero(entry), h.nonzero(first))):
                self.note(entry, self.key, first, h.ir.or_(self.word, h.i64(2 << STRENGTH_SHIFT)))

    def of_cluster(self, entry: Any) -> Any:
        """Whether threads of this cluster have arrived: the memory of its barrier is used for one after the other."""
        h = self.h

        def same() -> Any:
            _, block = self.writer(entry)
            return reaches(h, self.shadow, (block, self.block), (h.i32(2), h.i32(2)))

        return h.asked_if(h.ir.load(self.live), same)

    def runs(self, entry: Any, host: Any) -> Any:
        """Whether a place has an entry that counts: memory of a block is another one's when that has ended."""
        h, shadow = self.h, self.shadow
        inside = h.ir.sub(host, shadow.get(Shadow.HOME))
        other = h.ir.icmp_unsigned(">=", inside, shadow.get(Shadow.HOME_BYTES))

        def since_begin() -> Any:
            return h.ir.icmp_unsigned(">=", h.load(h.ir.inttoptr(entry, pointer), Place.WRITER, i64), self.base)

        live = h.ir.load(self.live)
        mine = h.ir.or_(other, h.asked_if(h.ir.and_(live, h.ir.not_(other)), since_begin))
        mine = h.ir.or_(mine, h.asked_if(h.ir.and_(live, h.ir.not_(mine)), lambda: self.of_cluster(entry)))
        return h.ir.and_(live, mine)

    def published(self, entry: Any) -> Any:
        h = self.h
        safe = h.ir.select(h.nonzero(entry), entry, h.ir.ptrtoint(self.graph, i64))
        return h.load(h.ir.inttoptr(safe, pointer), Place.RELEASE, i64)
