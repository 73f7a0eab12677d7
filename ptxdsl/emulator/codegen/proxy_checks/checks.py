"""Checks of what bulk copies, tensor copies and wgmma access in shared memory: 16 bytes and more of it at once.

A tile has mostly been written by one copy, or by warps that one barrier orders, so whole lines of shadow words are
compared with one that is known to be good; :func:`judgement` looks at those that are not.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

from llvmlite import ir

from ...instructions.proxy_checks import ProxyJudgement, ProxyRange, ProxyTile
from ...instructions.tensor_cores.wgmma import ROWS
from ....isa.matrix_descriptors import BASE_OFFSET
from ...machine.layout import LANES, SHARED_START, Warp
from ...machine.status import Status
from ...machine.proxy_shadow import (
    ASYNC, GENERATION_SHIFT, OBJECT_SHIFT, SAME, Kinds, Objects, ProxyShadow,
)
from ...machine.shadow import LANE, SUPPRESSED, TICKET_SHIFT, WARP, WARP_SHIFT, WORD_SHIFT, Plane, Reason, Shadow
from ...semantics.lanes import Bits, Lanes
from ..atomics import element_at, spill
from ..data import guard_mask, source
from ..handler import Handler, const, i1, i32, i64, pointer
from ..instrumentation.bulk_checks import one_of_each
from ..instrumentation.epochs import ShadowState
from ..registry import builds, emits
from ..tensor_cores.wgmma_tiles import PIECE, DescribedTile
from .events import leave
from .orders import Orders

__all__ = ["Pieces", "access_word", "suppressed"]

JUDGE = ir.FunctionType(i1, [pointer, pointer, pointer, i64, i64, i64, i64, i32, i32])
_WRITES, _INIT, _COPIES, _COUNT = 1, 2, 4, 8
"""What a judgement is told: bits, and the shift of the number of granules."""
_GRANULE = 4
_OBJECT = ASYNC | 0xFF << OBJECT_SHIFT
_OF_THREAD = _OBJECT | WARP | LANE
_PLANES = ((Plane.WRITER, Reason.WRITER), (Plane.READER, Reason.READER), (Plane.EARLIER_READER, Reason.EARLIER_READER))


class Pieces:
    """Checks 16 bytes or more of shared memory, and notes the access: ``word`` is its shadow word."""

    def __init__(
        self, h: Handler, granule: int, writes: bool, init: bool, copies: bool, replaced: int = _OF_THREAD
    ) -> None:
        """``replaced``: the bits of a word in which a read before must agree to be over once this one is."""
        self.h, self.granule, self.writes, self.init, self.copies = h, granule, writes, init, copies
        self.replaced = replaced
        self.shadow = ShadowState(h)
        self.orders = Orders(h, self.shadow)
        self.origin, self.stride = self.shadow.get(Shadow.SHARED_ORIGIN), self.shadow.get(Shadow.SHARED_STRIDE)
        self.low, self.nbytes = self.shadow.get(Shadow.SHARED_LOW), self.shadow.get(Shadow.SHARED_SIZE)

    def begin(self, word: Any, mask: Any, lane: Any) -> None:
        """Begin the check of an access by lanes of the warp."""
        h = self.h
        self.word, self.mask, self.lane = word, mask, lane
        for number in range(3):
            h.store(h.i64(-1), self.orders.proxies, ProxyShadow.GOOD + 8 * number)
        h.store(h.i64(0), self.orders.proxies, ProxyShadow.CHANGES)

    def _place(self, host: Any) -> Any:
        h = self.h
        return h.ir.add(self.origin, h.ir.shl(h.ir.lshr(host, h.i64(self.granule)), h.i64(WORD_SHIFT)))

    def check(self, host: Any, nbytes: int, marks: Any = None) -> None:
        """Check so many bytes from a host address on; what is read is noted where it ``marks``."""
        h, count = self.h, nbytes >> self.granule
        kind, place = ir.VectorType(i64, count), self._place(host)

        def at(plane: int) -> Any:
            address = h.ir.add(place, h.ir.mul(self.stride, h.i64(plane))) if plane else place
            return h.ir.inttoptr(address, kind.as_pointer())

        def like(plane: int, word: Any, bits: int = SAME) -> Any:
            words = h.ir.load(at(plane), align=8)
            first = h.ir.insert_element(ir.Constant(kind, ir.Undefined), word, h.i32(0))
            one = h.ir.shuffle_vector(first, first, ir.Constant(ir.VectorType(i32, count), [0] * count))
            differ = h.ir.and_(h.ir.xor(words, one), ir.Constant(kind, [bits] * count))
            whole = h.ir.icmp_unsigned("!=", differ, ir.Constant(kind, None))
            return h.zero(h.ir.bitcast(whole, ir.IntType(count)))

        good = [h.load(self.orders.proxies, ProxyShadow.GOOD + 8 * number, i64) for number in range(3)]
        fine = like(Plane.WRITER, good[0])
        if self.writes:
            fine = reduce(h.ir.and_, (fine, *(like(plane, good[plane]) for plane in (1, 2))))
        else:
            stays = like(Plane.READER, good[2])
            seen = h.ir.or_(like(Plane.READER, good[1]), like(Plane.READER, self.word, self.replaced))
            seen = h.ir.or_(seen, stays)
            seen = seen if marks is None else h.ir.or_(seen, h.ir.not_(marks))
            fine = h.ir.and_(fine, seen)
        if self.copies:
            words, oldest = h.ir.load(at(Plane.COPY), align=8), self.shadow.get(Shadow.OLDEST_COPY)
            first = h.ir.insert_element(ir.Constant(kind, ir.Undefined), oldest, h.i32(0))
            limit = h.ir.shuffle_vector(first, first, ir.Constant(ir.VectorType(i32, count), [0] * count))
            open_ = h.ir.bitcast(h.ir.icmp_unsigned(">=", words, limit), ir.IntType(count))
            fine = h.ir.and_(fine, h.zero(open_))
        quick, slow, done = (h.block_named(name) for name in ("quick", "slow", "checked"))
        h.ir.cbranch(h.likely(fine), quick, slow)
        h.ir.position_at_end(slow)
        flags = self.writes * _WRITES | self.init * _INIT | self.copies * _COPIES
        flags |= count << _COUNT | self.granule << _GRANULE
        function = h.ir.bitcast(self.shadow.get(Shadow.JUDGE, pointer), JUDGE.as_pointer())
        word = self.word if marks is None else h.ir.select(marks, self.word, h.i64(0))
        passed = h.ir.call(
            function, [h.rec, h.warp, h.block, place, host, word, h.ir.zext(self.lane, i64), self.mask, h.i32(flags)]
        )
        h.branch_unless(passed, h.ir.ret_void)
        h.ir.branch(done)
        h.ir.position_at_end(quick)
        first = h.ir.insert_element(ir.Constant(kind, ir.Undefined), self.word, h.i32(0))
        words = h.ir.shuffle_vector(first, first, ir.Constant(ir.VectorType(i32, count), [0] * count))
        if self.writes:
            h.ir.store(words, at(Plane.WRITER), align=8)
        else:
            with h.ir.if_then(const(i1, 1) if marks is None else marks):
                with h.ir.if_then(stays):
                    h.ir.store(h.ir.load(at(Plane.READER), align=8), at(Plane.EARLIER_READER), align=8)
                h.ir.store(words, at(Plane.READER), align=8)
        h.ir.branch(done)
        h.ir.position_at_end(done)


@builds(ProxyJudgement)
def judgement(module: ir.Module, name: str, _: ProxyJudgement) -> None:
    """Judge the shadow words of granules one by one, and note the access; False to return to Python."""
    h = Handler(module, name, result=JUDGE)
    first, host, mine, lane, mask, flags = h.function.args[3:]
    writes = h.nonzero(h.ir.and_(flags, h.i32(_WRITES)))
    init = h.nonzero(h.ir.and_(flags, h.i32(_INIT)))
    granule = h.ir.zext(h.ir.and_(h.ir.lshr(flags, h.i32(_GRANULE)), h.i32(3)), i64)
    count = h.ir.zext(h.ir.lshr(flags, h.i32(_COUNT)), i64)
    shadow = ShadowState(h)
    orders = Orders(h, shadow)
    who, base, stride = orders.now(mask), shadow.get(Shadow.BASE), shadow.get(Shadow.SHARED_STRIDE)
    alike = h.alloca(i1)

    def put_good(word: Any, plane: int) -> None:
        with h.ir.if_then(h.ir.load(alike)):
            h.store(word, orders.proxies, ProxyShadow.GOOD + 8 * plane)

    def one(number: Any) -> None:
        at = h.ir.add(first, h.ir.shl(number, h.i64(WORD_SHIFT)))
        where = h.ir.add(host, h.ir.shl(number, granule))

        def pointer_to(plane: int) -> Any:
            return h.ir.inttoptr(h.ir.add(at, h.ir.mul(stride, h.i64(plane))), i64.as_pointer())

        def away(reason: int, word: Any) -> None:
            leave(h, shadow, reason, word, (at, where), h.ir.trunc(lane, i32))
            h.stop(Status.CALLBACK)
            h.ir.ret(const(i1, 0))

        def settled(word: Any) -> Any:
            """Whether an access before is over, for one by the async proxy, or ordered."""
            h.ir.store(const(i1, 1), alike)
            asynchronous = h.ir.icmp_signed("<", word, h.i64(0))
            fresh = h.ir.and_(h.ir.not_(asynchronous), h.ir.icmp_unsigned(">", word, base))
            same = h.ir.icmp_unsigned("==", word, mine)  # where Python has been asked in between
            waits = h.asked_if(h.ir.and_(asynchronous, h.ir.not_(same)), lambda: h.ir.not_(orders.settled(word, mask)))

            def ordered() -> Any:
                h.ir.store(orders.alike(word, who), alike)
                return h.ir.not_(orders.before(word, who))

            return h.ir.not_(h.ir.or_(waits, h.asked_if(fresh, ordered)))

        writer = h.ir.load(pointer_to(Plane.WRITER), align=8)
        unwritten = h.ir.and_(h.ir.and_(init, h.ir.not_(writes)), h.ir.icmp_unsigned("<", writer, base))
        h.branch_unless(h.ir.not_(unwritten), lambda: away(Reason.UNINITIALISED, writer))
        _demand_copied(h, shadow, h.nonzero(h.ir.and_(flags, h.i32(_COPIES))), pointer_to, away)
        h.branch_unless(settled(writer), lambda: away(Reason.WRITER, writer))
        generic = h.ir.and_(h.ir.icmp_signed(">=", writer, h.i64(0)), h.ir.icmp_unsigned(">", writer, base))

        def unfenced() -> Any:
            known = orders.fenced(writer, who, Kinds.SHARED)
            h.ir.store(h.ir.and_(h.ir.load(alike), h.ir.icmp_unsigned("==", known, h.i32(2))), alike)
            return h.zero(known)

        h.branch_unless(h.ir.not_(h.asked_if(generic, unfenced)), lambda: away(Reason.UNFENCED, writer))
        before = h.load(orders.proxies, ProxyShadow.GOOD, i64)
        other = h.nonzero(h.ir.and_(h.ir.xor(before, writer), h.i64(SAME)))
        changes = h.load(orders.proxies, ProxyShadow.CHANGES, i64)
        h.store(h.ir.add(changes, h.ir.zext(other, i64)), orders.proxies, ProxyShadow.CHANGES)
        put_good(writer, Plane.WRITER)
        with h.ir.if_else(writes) as (stores, reads):
            with stores:
                for plane, reason in _PLANES[1:]:
                    word = h.ir.load(pointer_to(plane), align=8)
                    h.branch_unless(settled(word), partial(away, reason, word))
                    put_good(word, plane)
                h.ir.store(mine, pointer_to(Plane.WRITER), align=8)
            with reads, h.ir.if_then(h.nonzero(mine)):
                word = h.ir.load(pointer_to(Plane.READER), align=8)
                of_thread = h.ir.icmp_unsigned(">=", mine, h.i64(ASYNC | Objects.THREAD << OBJECT_SHIFT))
                bits = h.ir.select(of_thread, h.i64(_OF_THREAD), h.i64(_OBJECT))
                own = h.zero(h.ir.and_(h.ir.xor(word, mine), bits))
                obsolete = h.ir.or_(own, h.asked_if(h.ir.not_(own), lambda: settled(word)))
                with h.ir.if_else(obsolete) as (over, kept):
                    with over:
                        put_good(word, Plane.READER)
                    with kept:
                        h.ir.store(word, pointer_to(Plane.EARLIER_READER), align=8)
                        put_good(word, Plane.EARLIER_READER)
                h.ir.store(mine, pointer_to(Plane.READER), align=8)

    h.count(count, 1, one)
    h.ir.ret(const(i1, 1))


def _demand_copied(h: Handler, shadow: ShadowState, asked: Any, pointer_to: Any, away: Any) -> None:
    """Leave where a ``cp.async`` to a granule is incomplete."""
    look, on = h.block_named("copy"), h.block_named("no_copy")
    h.ir.cbranch(asked, look, on)
    h.ir.position_at_end(look)
    word = h.ir.load(pointer_to(Plane.COPY), align=8)
    clocks, size = shadow.get(Shadow.COPY_CLOCKS), shadow.get(Shadow.COPY_BYTES)
    warp = h.ir.lshr(h.ir.and_(word, h.i64(WARP)), h.i64(WARP_SHIFT))
    at = h.ir.add(h.ir.mul(warp, size), h.ir.shl(h.ir.and_(word, h.i64(LANE)), h.i64(2)))
    oldest = h.load(h.ir.inttoptr(h.ir.add(clocks, at), pointer), 0, i32)
    complete = h.ir.icmp_unsigned("<", h.ir.trunc(h.ir.lshr(word, h.i64(TICKET_SHIFT)), i32), oldest)
    h.branch_unless(complete, lambda: away(Reason.INCOMPLETE_COPY, word))
    h.ir.branch(on)
    h.ir.position_at_end(on)


def access_word(h: Handler, shadow: ShadowState, completed: Any, statement: Any, lane: Any) -> Any:
    """The shadow word of an access: what completes it, the statement, warp and lane."""
    who = h.ir.or_(h.ir.shl(shadow.number, h.i64(WARP_SHIFT)), h.ir.zext(lane, i64))
    return reduce(h.ir.or_, (completed, h.ir.zext(statement, i64), who))


def suppressed(h: Handler, statement: Any) -> Any:
    return h.nonzero(h.ir.and_(statement, h.i32(SUPPRESSED)))


@emits(ProxyRange)
def proxy_range(h: Handler, op: ProxyRange) -> None:
    mask = guard_mask(h, op.guard, True)
    counts, places = spill(h, source(h, op.size, LANES)), h.ir.bitcast(h.slot(), i64.as_pointer())
    objects = None if op.of_thread else h.ir.bitcast(h.slot(), i64.as_pointer())
    identity, statement = [source(h, kind, LANES) for kind in op.identity], h.field()
    h.skip_unless_any(mask)
    h.branch_unless(h.ir.not_(suppressed(h, statement)), h.next)
    pieces = Pieces(h, op.granule, op.writes, op.init, op.copies)
    shadow = pieces.shadow

    def one(lane: Any) -> None:
        host, size = element_at(h, places, lane, i64), h.ir.zext(element_at(h, counts, lane, i32), i64)
        if objects is None:
            of = h.ir.add(h.ir.shl(shadow.number, h.i64(WARP_SHIFT)), h.ir.zext(lane, i64))
            generation = h.ir.zext(pieces.orders.get(ProxyShadow.THREAD_COMMITTED, of, i32), i64)
            completed = h.ir.or_(h.ir.shl(generation, h.i64(GENERATION_SHIFT)),
                                 h.i64(ASYNC | Objects.THREAD << OBJECT_SHIFT))
        else:
            completed = element_at(h, objects, lane, i64)
        inside = h.ir.icmp_unsigned("<", h.ir.sub(host, pieces.low), pieces.nbytes)
        with h.ir.if_then(h.ir.and_(inside, h.nonzero(completed))):
            word = access_word(h, shadow, completed, statement, lane)
            pieces.begin(word, h.ir.shl(h.i32(1), lane), lane)
            if objects is None and not op.writes:
                pieces.orders.put(word, ProxyShadow.THREAD_LAST, of)
                pieces.orders.put(host, ProxyShadow.THREAD_SOURCE, of)
            h.count(size, PIECE, lambda at: pieces.check(h.ir.add(host, at), PIECE))

    h.for_each_lane(one_of_each(h, mask, identity), one)
    shadow.begin_epoch()
    h.next()


@emits(ProxyTile)
def proxy_tile(h: Handler, op: ProxyTile) -> None:
    mask = guard_mask(h, op.guard, True)
    descriptor = source(h, op.descriptor, 1 if op.descriptor.scalar else LANES)
    statement = h.field()
    h.skip_unless_any(mask)
    h.branch_unless(h.ir.not_(suppressed(h, statement)), h.next)
    if not op.descriptor.scalar:
        descriptor = h.ir.extract_element(descriptor, h.i32(0))
    pieces = Pieces(h, op.granule, False, op.init, op.copies, _OBJECT)
    shadow = pieces.shadow
    group = h.ir.lshr(shadow.number, h.i64(2))
    generation = h.ir.zext(pieces.orders.get(ProxyShadow.COMMITTED, shadow.number, i32), i64)
    completed = h.ir.shl(h.ir.add(group, h.i64(Objects.WARPGROUP)), h.i64(OBJECT_SHIFT))
    completed = reduce(h.ir.or_, (completed, h.ir.shl(generation, h.i64(GENERATION_SHIFT)), h.i64(ASYNC)))
    lane, mask = h.i32(0), h.load(h.warp, Warp.ALIVE, i32)
    pieces.begin(access_word(h, shadow, completed, statement, lane), mask, lane)
    tile = _Tile(h, op, pieces, descriptor)
    if op.left:
        tile.demand_aligned()
        tile.run()
        h.next()
        return
    orders = pieces.orders
    tile.demand_aligned()
    known = h.ir.icmp_unsigned("==", orders.get(ProxyShadow.TILES, group), descriptor)
    same = h.ir.icmp_unsigned("==", orders.get(ProxyShadow.TILE_GENERATIONS, group), generation)
    known = reduce(h.ir.and_, (known, same, h.ir.not_(tile.marks)))
    writer = orders.get(ProxyShadow.TILE_WRITERS, group)
    known = h.ir.and_(known, h.ir.icmp_signed("<", writer, h.i64(0)))
    h.branch_unless(h.ir.not_(h.asked_if(known, lambda: orders.settled(writer, mask))), h.next)
    tile.run()
    one = h.ir.icmp_unsigned("==", h.load(orders.proxies, ProxyShadow.CHANGES, i64), h.i64(1))
    with h.ir.if_then(h.ir.and_(tile.marks, one)):
        orders.put(descriptor, ProxyShadow.TILES, group)
        orders.put(generation, ProxyShadow.TILE_GENERATIONS, group)
        orders.put(h.load(orders.proxies, ProxyShadow.GOOD, i64), ProxyShadow.TILE_WRITERS, group)
    h.next()


class _Tile:
    """The pieces of a tile, as its descriptor says where they lie; those of 32 bytes where that is sure."""

    def __init__(self, h: Handler, op: ProxyTile, pieces: Pieces, descriptor: Any) -> None:
        self.h, self.op, self.pieces, self.b = h, op, pieces, Lanes(h.ir, 1)
        self.descriptor = Bits(self.b, descriptor, 64)
        number = Bits(self.b, pieces.shadow.number, 64) & 3
        self.marks = None if op.left else number.eq(0).value
        """What all warps read is noted by the first."""
        self.first = number * ROWS if op.left else self.b.bits(64, 0)
        self.tile = DescribedTile(self.b, self.descriptor)

    def demand_aligned(self) -> None:
        """Leave where the tile does not begin in the first row of its swizzle, and the descriptor does not say so."""
        h, pieces, tile = self.h, self.pieces, self.tile
        row = (tile.start >> 7) & tile.plain.pick(0, tile.mask)
        host = h.ir.add(h.ir.sub(tile.start.value, h.i64(SHARED_START)), pieces.low)
        good = (row.eq(0) | BASE_OFFSET.of(self.descriptor).ne(0)).value

        def away() -> None:
            leave(h, pieces.shadow, Reason.MISALIGNED, tile.span.value, (h.i64(0), host), h.i32(0))
            h.stop(Status.CALLBACK)
            h.ir.ret_void()

        h.branch_unless(good, away)

    def run(self) -> None:
        h, op, tile = self.h, self.op, self.tile
        if op.major == "mn":
            first = self.first >> 3

            def by_depth(i: Any) -> None:
                row = tile.depth(Bits(self.b, i, 64))
                h.count(h.i64(op.lines // 8), 1, lambda j: self._check(
                    row + tile.along(Bits(self.b, j, 64) + first), PIECE,
                ))

            h.count(h.i64(op.depth), 1, by_depth)
            return
        with h.ir.if_else(tile.plain.value) as (apart, together):
            with apart:
                self._by_line(tile.leading, 1)
            with together:
                self._by_line(self.b.bits(64, PIECE), 2)

    def _by_line(self, step: Bits, pieces: int) -> None:
        """Check the lines, so many pieces at once, which are one behind the other then."""

        def line(i: Any) -> None:
            row = self.tile.line(Bits(self.b, i, 64) + self.first)
            for number in range(0, self.op.pieces, pieces):
                self._check(row + step * number, pieces * PIECE)

        self.h.count(self.h.i64(self.op.lines), 1, line)

    def _check(self, address: Bits, nbytes: int) -> None:
        """Check a piece; one outside of shared memory is a fault of the product."""
        address = self.tile.swizzled(address)
        if nbytes > PIECE:
            address = address & -nbytes
        h, pieces = self.h, self.pieces
        inside = h.ir.sub(address.value, h.i64(SHARED_START))
        good = h.ir.icmp_unsigned("<", inside, h.ir.sub(pieces.nbytes, h.i64(nbytes - 1)))
        with h.ir.if_then(h.likely(good)):
            pieces.check(h.ir.add(inside, pieces.low), nbytes, self.marks)
