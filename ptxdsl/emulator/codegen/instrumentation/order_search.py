"""Whether accesses happen before what a warp does now: a search through the synchronisation graph, backwards in time.

It begins with what the block of the warp has acquired, as far as barriers of block and warp hand it on to the lanes
that ask, and goes from release to release. None made before the access can know of it, so a search is as long as what
was released since. What it does not find is not known to be unordered: barriers of some warps or lanes and mbarriers
are not in the graph, and its memory may be full. Python answers then.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import OrderSearch
from ...machine.layout import FULL, LANES
from ...machine.shadow import (
    EPOCH_SHIFT, LANE, SEVERAL_LANES, STRENGTH, STRENGTH_SHIFT, WARP, WARP_SHIFT, Shadow, WarpClock,
)
from ...machine.sync_graph import MOST_VISITS, Acquire, Release, SyncGraph, WarpSync
from ..handler import Handler, i1, i32, i64, lanes_of, pointer
from ..registry import builds
from .epochs import ShadowState
from .mbarriers import PRECEDE

__all__ = ["known_to_all", "reaches"]

_SEARCH = ir.FunctionType(i1, [pointer, pointer, pointer, i64, i32, i1])
_WHOLE = 0xFFFFFFFF << EPOCH_SHIFT | WARP


def reaches(h: Handler, shadow: ShadowState, blocks: tuple[Any, Any], levels: tuple[Any, Any]) -> Any:
    """Whether operations of threads of two blocks, at these levels, are morally strong."""
    below = h.ir.icmp_unsigned
    least = h.ir.select(below("<", *levels), *levels)
    clusters = shadow.get(Shadow.CLUSTERS)

    def same_cluster() -> Any:
        table = h.ir.inttoptr(h.ir.sub(clusters, h.i64(4)), pointer)
        one, other = (h.load(table, h.ir.shl(h.ir.zext(each, i64), h.i64(2)), i32) for each in blocks)
        return below("==", one, other)

    same = h.ir.and_(below("==", *blocks), h.nonzero(least))
    near = h.ir.and_(h.nonzero(clusters), below("==", least, h.i32(2)))
    return h.ir.or_(h.ir.or_(same, below("==", least, h.i32(3))), h.asked_if(near, same_cluster))


def known_to_all(h: Handler, shadow: ShadowState, word: Any) -> Any:
    """Whether all lanes of the warp know what the warp of an access of the block did in its epoch."""
    epoch = h.ir.trunc(h.ir.lshr(word, h.i64(EPOCH_SHIFT)), i32)
    warp = h.ir.shl(h.ir.lshr(h.ir.and_(word, h.i64(WARP)), h.i64(WARP_SHIFT)), h.i64(2))
    rows = h.add(shadow.get(Shadow.WARP_SYNC, pointer), h.ir.mul(shadow.number, h.i64(WarpSync.nbytes)))
    by_all, by_some = (
        h.ir.icmp_unsigned("<", epoch, h.load(rows, h.ir.add(warp, h.i64(offset)), i32))
        for offset in (WarpSync.KNOWN, WarpSync.PART)
    )
    settled = h.ir.icmp_unsigned("<", h.load(rows, WarpSync.PART_WORD, i64), shadow.clock(WarpClock.WARP_FLOOR))
    return h.ir.or_(by_all, h.ir.and_(by_some, settled))


@builds(OrderSearch)
def search_order(module: ir.Module, name: str, _: OrderSearch) -> None:
    """Whether the accesses of shadow words, but for those that are 0, happen before what the lanes of a mask do.

    ``own``: also those of the same thread, which a check treats in a way of its own.
    """
    search = _Search(module, f"{name}.one").h.function
    h = Handler(module, name, result=PRECEDE)
    words, count, own, mask = h.function.args[3:]
    single = h.zero(h.ir.and_(mask, h.ir.sub(mask, h.i32(1))))
    last = h.alloca(i64)
    h.ir.store(h.i64(0), last)

    def ask(word: Any, lanes: Any) -> Any:
        return h.ir.call(search, [*h.function.args[:3], word, lanes, h.nonzero(own)])

    def only() -> None:
        """Of one access what is asked is what is to be known."""
        word = h.load(words, 0, i64)
        h.ir.ret(h.ir.or_(h.zero(word), h.asked_if(h.nonzero(word), lambda: ask(word, mask))))

    h.branch_unless(h.ir.icmp_unsigned("!=", count, h.i64(1)), only)

    def of_one_epoch() -> Any:
        """Whether the words of all lanes are of one epoch, all of which is known to come before."""
        lanes = h.load(words, 0, lanes_of(i64), 8)
        zeros = ir.Constant(lanes.type, None)
        first = h.first_lane(h.mask(h.ir.icmp_unsigned("!=", lanes, zeros)))
        word = h.ir.extract_element(lanes, h.ir.and_(first, h.i32(LANES - 1)))
        others = h.ir.and_(h.ir.xor(lanes, h.splat(word)), ir.Constant(lanes.type, [_WHOLE] * LANES))
        others = h.ir.select(h.ir.icmp_unsigned("==", lanes, zeros), zeros, others)
        alike = h.zero(h.mask(h.ir.icmp_unsigned("!=", others, zeros)))
        return h.asked_if(alike, lambda: ask(h.ir.or_(word, h.i64(SEVERAL_LANES)), h.i32(FULL)))

    many = h.ir.and_(h.ir.icmp_unsigned("==", count, h.i64(LANES)), h.ir.not_(single))
    h.branch_unless(h.ir.not_(h.asked_if(many, of_one_epoch)), lambda: h.ir.ret(ir.Constant(i1, 1)))

    def one(at: Any) -> None:
        word = h.load(words, h.ir.shl(at, h.i64(3)), i64)
        epoch = h.ir.and_(word, h.i64(_WHOLE))
        todo = h.ir.and_(h.nonzero(word), h.ir.icmp_unsigned("!=", epoch, h.ir.load(last)))
        with h.ir.if_then(todo):
            whole = h.asked_if(h.ir.not_(single), lambda: ask(h.ir.or_(word, h.i64(SEVERAL_LANES)), h.i32(FULL)))
            h.ir.store(h.ir.select(whole, epoch, h.ir.load(last)), last)
            known = h.ir.or_(whole, h.asked_if(h.ir.not_(whole), lambda: ask(word, mask)))
            h.branch_unless(known, lambda: h.ir.ret(ir.Constant(i1, 0)))

    h.count(count, 1, one)
    h.ir.ret(ir.Constant(i1, 1))


class _Search:
    """Of one access, before what the lanes of a mask do."""

    def __init__(self, module: ir.Module, name: str) -> None:
        h = self.h = Handler(module, name, result=_SEARCH)
        h.function.linkage = "internal"
        self.word, self.lanes, self.own = h.function.args[3:]
        self.shadow = shadow = ShadowState(h)
        self.graph = shadow.get(Shadow.GRAPH, pointer)
        epoch = h.ir.lshr(self.word, h.i64(EPOCH_SHIFT))
        self.epoch, self.block = h.ir.trunc(epoch, i32), h.load(*shadow.block_of(epoch), i32)
        self.lane = h.ir.shl(h.i32(1), h.ir.trunc(h.ir.and_(self.word, h.i64(LANE)), i32))
        self.several = h.nonzero(h.ir.and_(self.word, h.i64(SEVERAL_LANES)))
        self.point = {n: h.alloca(k) for n, k in (
            ("block", i32), ("word", i64), ("block_floor", i64), ("warp_floor", i64), ("mask", i32), ("any", i1),
        )}
        self.at, self.depth, self.visits = h.alloca(i64), h.alloca(i64), h.alloca(i32)
        self.blocks = {n: h.block_named(n) for n in ("walk", "chain", "pop", "unknown", "before")}
        self.begin()
        self.walk()
        self.pop()
        for name_, answer in (("unknown", 0), ("before", 1)):
            h.ir.position_at_end(self.blocks[name_])
            h.ir.ret(ir.Constant(i1, answer))

    def set(self, **values: Any) -> None:
        for name, value in values.items():
            self.h.ir.store(value, self.point[name])

    def get(self, name: str) -> Any:
        return self.h.ir.load(self.point[name])

    def same_warp(self, one: Any, other: Any) -> Any:
        h = self.h
        return h.zero(h.ir.and_(h.ir.xor(one, other), h.i64(WARP)))

    def inside(self, block: Any, word: Any, block_floor: Any, warp_floor: Any, own: Any) -> Any:
        """Whether the access comes before a point of its block; ``own``: of one of the threads there."""
        h, below = self.h, self.h.ir.icmp_unsigned
        now = h.ir.or_(word, h.i64((1 << EPOCH_SHIFT) - 1))
        in_warp = h.ir.or_(below("<", self.word, warp_floor), h.ir.and_(own, below("<=", self.word, now)))
        in_warp = h.ir.and_(in_warp, self.same_warp(self.word, word))
        ordered = h.ir.or_(below("<", self.word, block_floor), in_warp)
        return h.ir.and_(below("==", block, self.block), ordered)

    def begin(self) -> None:
        h, shadow, graph = self.h, self.shadow, self.graph
        serial = h.ir.add(h.load(graph, SyncGraph.SEARCHES, i32), h.i32(1))
        h.store(serial, graph, SyncGraph.SEARCHES)
        self.serial, self.stack = serial, h.load(graph, SyncGraph.STACK, i64)
        mine = (
            shadow.get(Shadow.BLOCK, i32), shadow.clock(WarpClock.EPOCH), shadow.clock(WarpClock.BLOCK_FLOOR),
            shadow.clock(WarpClock.WARP_FLOOR),
        )
        own = h.ir.and_(h.ir.not_(self.several), h.ir.icmp_unsigned("==", self.lane, self.lanes))
        own = h.ir.and_(own, self.own)
        names = ("block", "word", "block_floor", "warp_floor")
        self.set(**dict(zip(names, mine)), mask=self.lanes, any=ir.Constant(i1, 0))
        h.ir.store(shadow.get(Shadow.ACQUIRED), self.at)
        h.ir.store(h.i64(0), self.depth)
        h.ir.store(h.i32(0), self.visits)
        near = h.ir.icmp_unsigned("==", mine[0], self.block)
        before = h.ir.or_(self.inside(*mine, own), h.ir.and_(near, known_to_all(h, shadow, self.word)))
        h.ir.cbranch(before, self.blocks["before"], self.blocks["walk"])

    def walk(self) -> None:
        """The acquires that come before a point, the last first."""
        h, blocks, below = self.h, self.blocks, self.h.ir.icmp_unsigned
        h.ir.position_at_end(blocks["walk"])
        there, recent, usable = (h.block_named(n) for n in ("there", "recent", "usable"))
        at = h.ir.load(self.at)
        h.ir.cbranch(h.nonzero(at), there, blocks["pop"])
        h.ir.position_at_end(there)
        acquire = h.ir.inttoptr(at, pointer)
        h.ir.cbranch(below("<", h.load(acquire, Acquire.TIME, i32), self.epoch), blocks["pop"], recent)
        h.ir.position_at_end(recent)
        h.ir.store(h.load(acquire, Acquire.NEXT, i64), self.at)
        word, mask = h.load(acquire, Acquire.WORD, i64), h.load(acquire, Acquire.MASK, i32)
        point, lanes = self.get("word"), self.get("mask")
        in_warp = self.same_warp(word, point)
        barrier = h.ir.and_(in_warp, below("<", word, self.get("warp_floor")))
        barrier = h.ir.or_(below("<", word, self.get("block_floor")), barrier)
        barrier = h.ir.and_(barrier, h.zero(h.load(acquire, Acquire.FENCED, i32)))
        some = h.nonzero(h.ir.and_(mask, lanes))
        every = h.zero(h.ir.and_(lanes, h.ir.not_(mask)))
        own = h.ir.and_(in_warp, h.ir.select(self.get("any"), some, every))
        h.ir.cbranch(h.ir.or_(barrier, own), usable, blocks["walk"])
        h.ir.position_at_end(usable)
        first, level = h.load(acquire, Acquire.RELEASE, i64), h.load(acquire, Acquire.LEVEL, i32)
        h.ir.branch(blocks["chain"])
        self.chain(usable, first, level)

    def chain(self, usable: Any, first: Any, level: Any) -> None:
        """The releases at a place, the last first; those of which the search has been already know no more."""
        h, blocks, below = self.h, self.blocks, self.h.ir.icmp_unsigned
        h.ir.position_at_end(blocks["chain"])
        there, fresh, reached, on, push = (h.block_named(n) for n in ("node", "fresh", "reached", "on", "push"))
        at = h.ir.phi(i64)
        at.add_incoming(first, usable)
        h.ir.cbranch(h.nonzero(at), there, blocks["walk"])
        h.ir.position_at_end(there)
        node = h.ir.inttoptr(at, pointer)
        old = below("<", h.load(node, Release.CREATED, i32), self.epoch)
        seen = below("==", h.load(node, Release.SEARCHED, i32), self.serial)
        h.ir.cbranch(h.ir.or_(old, seen), blocks["walk"], fresh)
        h.ir.position_at_end(fresh)
        word, block = h.load(node, Release.WORD, i64), h.load(node, Release.BLOCK, i32)
        strength = h.ir.lshr(h.ir.and_(h.ir.trunc(word, i32), h.i32(STRENGTH)), h.i32(STRENGTH_SHIFT))
        strong = reaches(h, self.shadow, (block, self.get("block")), (strength, level))
        knows = below(">=", h.load(node, Release.TIME, i32), self.epoch)
        h.ir.cbranch(h.ir.and_(strong, knows), reached, on)
        h.ir.position_at_end(reached)
        h.store(self.serial, node, Release.SEARCHED)
        mask = h.load(node, Release.MASK, i32)
        own = h.ir.select(self.several, h.full(mask), h.nonzero(h.ir.and_(mask, self.lane)))
        block_floor, warp_floor = h.load(node, Release.BLOCK_FLOOR, i64), h.load(node, Release.WARP_FLOOR, i64)
        h.ir.cbranch(self.inside(block, word, block_floor, warp_floor, own), blocks["before"], push)
        h.ir.position_at_end(push)
        depth, visits = h.ir.load(self.depth), h.ir.add(h.ir.load(self.visits), h.i32(1))
        h.ir.store(visits, self.visits)
        h.store(at, h.ir.inttoptr(h.ir.add(self.stack, depth), pointer), 0)
        h.ir.store(h.ir.add(depth, h.i64(8)), self.depth)
        h.ir.cbranch(below("<", visits, h.i32(MOST_VISITS)), on, blocks["unknown"])
        h.ir.position_at_end(on)
        at.add_incoming(h.load(node, Release.BEFORE, i64), on)
        h.ir.branch(blocks["chain"])

    def pop(self) -> None:
        """Go on from a release that was found."""
        h, blocks = self.h, self.blocks
        h.ir.position_at_end(blocks["pop"])
        more = h.block_named("more")
        depth = h.ir.load(self.depth)
        h.ir.cbranch(h.nonzero(depth), more, blocks["unknown"])
        h.ir.position_at_end(more)
        depth = h.ir.sub(depth, h.i64(8))
        h.ir.store(depth, self.depth)
        node = h.load(h.ir.inttoptr(h.ir.add(self.stack, depth), pointer), 0, pointer)
        self.set(
            block=h.load(node, Release.BLOCK, i32), word=h.load(node, Release.WORD, i64),
            block_floor=h.load(node, Release.BLOCK_FLOOR, i64), warp_floor=h.load(node, Release.WARP_FLOOR, i64),
            mask=h.load(node, Release.MASK, i32), any=ir.Constant(i1, 1),
        )
        h.ir.store(h.load(node, Release.HEAD, i64), self.at)
        h.ir.branch(blocks["walk"])
