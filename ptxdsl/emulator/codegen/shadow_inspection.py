"""The sanitizer's look at one access after the other, for whatever is not decided on whole vectors of tags."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.layout import Block, Status
from .library import Shape
from ..machine.shadow import (
    HASH, LANE, LENIENT, SEEN_BITS, SEGMENT_SHIFT, SEVERAL, STATEMENT_SHIFT, STRENGTH, STRENGTH_SHIFT, THREAD,
    UNWRITTEN, WARP, WHOLE, Ledger, Own, Reason, Region,
)
from .handler import Handler, i1, i32, i64, pointer
from .epochs import Book

__all__ = ["ATOMIC", "INSPECT", "READ", "WRITE", "inspect"]

INSPECT = ir.FunctionType(i1, [pointer, pointer, pointer, i32, i64, i32])
READ, WRITE, ATOMIC = 0, 1, 2


def inspect(module: ir.Module, name: str, shape: Shape) -> None:  # noqa: ARG001
    """("watch_inspect",): look at the accesses of SCRATCH for the lanes of a mask; False where Python is asked."""
    _Inspect(module, name)


class _Inspect:
    def __init__(self, module: ir.Module, name: str) -> None:
        h = self.h = Handler(module, name, result=INSPECT)
        mask, self.place, self.flags = h.function.args[3:]
        self.book = book = Book(h)
        self.mine_warp = h.ir.or_(book.mine(Own.CURRENT), self.place)
        self.lenient = h.ir.icmp_unsigned("!=", h.ir.and_(self.place, h.i64(LENIENT)), h.i64(0))
        done = book.get(Ledger.DONE, i32)
        h.for_each_lane(h.ir.and_(mask, h.ir.not_(done)), self.lane)
        h.store(h.i32(0), book.ledger, Ledger.DONE)
        h.ir.ret(ir.Constant(i1, 1))

    def bits(self, shift: int, width: int) -> Any:
        h = self.h
        return h.ir.and_(h.ir.lshr(self.flags, h.i32(shift)), h.i32((1 << width) - 1))

    def lane(self, lane: Any) -> None:
        h, book = self.h, self.book
        self.number = lane
        offset = h.ir.add(h.ir.shl(h.ir.zext(lane, i64), h.i64(3)), h.i64(Block.SCRATCH))
        host = h.load(h.block, offset, i64)
        regions, count = book.get(Ledger.REGIONS, pointer), book.get(Ledger.COUNT, i32)
        head, body, found, over = (h.block_named(n) for n in ("regions", "region", "found", "over"))
        before = h.ir.block
        h.ir.branch(head)
        h.ir.position_at_end(head)
        index = h.ir.phi(i32)
        index.add_incoming(h.i32(0), before)
        h.ir.cbranch(h.ir.icmp_unsigned("<", index, count), body, over)
        h.ir.position_at_end(body)
        region = h.add(regions, h.ir.mul(h.ir.zext(index, i64), h.i64(Region.SIZE)))
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
        grain, count = h.ir.zext(self.bits(2, 3), i64), h.ir.zext(self.bits(5, 7), i64)
        tags = h.load(region, Region.TAGS, i64)
        self.stride, self.own = h.load(region, Region.STRIDE, i64), h.load(region, Region.OWN, i32)
        first = h.ir.add(tags, h.ir.shl(h.ir.lshr(within, grain), h.i64(3)))
        head, body, after = (h.block_named(n) for n in ("pieces", "piece", "pieces_done"))
        before = h.ir.block
        h.ir.branch(head)
        h.ir.position_at_end(head)
        number = h.ir.phi(i64)
        number.add_incoming(h.i64(0), before)
        h.ir.cbranch(h.ir.icmp_unsigned("<", number, count), body, after)
        h.ir.position_at_end(body)
        self.at = h.ir.add(first, h.ir.shl(number, h.i64(3)))
        self.host = h.ir.add(host, h.ir.shl(number, grain))
        self.piece()
        number.add_incoming(h.ir.add(number, h.i64(1)), h.ir.block)
        h.ir.branch(head)
        h.ir.position_at_end(after)

    def get(self, plane: int) -> Any:
        h = self.h
        return h.ir.load(self.pointer(plane), align=8)

    def pointer(self, plane: int) -> Any:
        h = self.h
        return h.ir.inttoptr(h.ir.add(self.at, h.ir.mul(self.stride, h.i64(plane))), i64.as_pointer())

    def piece(self) -> None:
        h, book = self.h, self.book
        role, same = self.bits(0, 2), h.ir.trunc(self.bits(12, 1), i1)
        race, init = h.ir.trunc(self.bits(13, 1), i1), h.ir.trunc(self.bits(14, 1), i1)
        local = h.ir.icmp_unsigned("==", self.own, h.i32(2))
        race = h.ir.and_(race, h.ir.not_(local))
        self.mine = h.ir.or_(self.mine_warp, h.ir.zext(self.number, i64))
        writer = self.get(0)
        reads = h.ir.icmp_unsigned("!=", role, h.i32(WRITE))
        stale = h.ir.icmp_unsigned("<", writer, book.get(Ledger.BASE))
        stale = h.ir.select(h.ir.icmp_unsigned("!=", self.own, h.i32(0)), stale,
                            h.ir.icmp_unsigned("==", writer, h.i64(UNWRITTEN)))
        stale = h.ir.and_(h.ir.and_(init, reads), h.ir.and_(stale, h.ir.not_(self.lenient)))
        h.branch_unless(h.ir.not_(stale), lambda: self.leave(Reason.UNINITIALISED, writer))
        quiet = h.ir.or_(h.ir.not_(race), self.lenient)
        fine = h.ir.or_(quiet, self.fine(writer, h.ir.and_(same, h.ir.not_(reads))))
        h.branch_unless(fine, lambda: self.leave(Reason.WRITER, writer))
        is_read = h.ir.icmp_unsigned("==", role, h.i32(READ))
        no = ir.Constant(i1, 0)
        with h.ir.if_else(is_read) as (then, otherwise):
            with then, h.ir.if_then(race):
                reader = self.get(1)
                change = h.ir.xor(reader, self.mine)
                here = h.ir.icmp_unsigned("<", change, h.i64(1 << SEGMENT_SHIFT))
                other = h.ir.icmp_unsigned("!=", h.ir.and_(change, h.i64(SEVERAL | LANE)), h.i64(0))
                more = h.ir.select(h.ir.and_(here, other), h.i64(SEVERAL), h.i64(0))
                past = h.ir.or_(here, self.ordered(reader))
                h.ir.store(h.ir.select(past, self.get(2), reader), self.pointer(2), align=8)
                h.ir.store(h.ir.or_(self.mine, more), self.pointer(1), align=8)
            with otherwise:
                for plane, reason in ((1, Reason.READER), (2, Reason.EARLIER_READER)):
                    reader = self.get(plane)
                    fine = h.ir.or_(quiet, self.fine(reader, no))
                    h.branch_unless(fine, lambda reason=reason, reader=reader: self.leave(reason, reader))  # type: ignore[misc]
                h.ir.store(h.ir.select(self.weak_own(writer), writer, self.mine), self.pointer(0), align=8)

    def weak_own(self, tag: Any) -> Any:
        """Whether a strong access follows a weak one of its own thread, which is the one that others mind."""
        h = self.h
        change = h.ir.and_(h.ir.xor(tag, self.mine), h.i64(THREAD))
        same = h.ir.icmp_unsigned("==", change, h.i64(0))
        weak = h.ir.icmp_unsigned("<", h.ir.and_(tag, h.i64(STRENGTH)), h.ir.and_(self.mine, h.i64(STRENGTH)))
        return h.ir.and_(same, weak)

    def ordered(self, tag: Any) -> Any:
        h, book = self.h, self.book
        below, floor, window = h.ir.icmp_unsigned, book.mine(Own.FLOOR), book.get(Ledger.WINDOW)
        since = h.call("llvm.usub.sat.i64", i64, floor, window)  # none where another block had its turn since
        inside = below("<", h.ir.sub(tag, window), since)
        there = h.ir.or_(below("<", tag, book.get(Ledger.LAUNCH)), inside)
        return h.ir.select(below("!=", self.own, h.i32(0)), below("<", tag, floor), there)

    def fine(self, tag: Any, same: Any) -> Any:
        """Whether the access that a tag tells of comes before this one, or does not mind it."""
        h, book, mine = self.h, self.book, self.mine
        equal = h.ir.icmp_unsigned
        change = h.ir.xor(tag, mine)

        def agrees(bits: int) -> Any:
            return equal("==", h.ir.and_(change, h.i64(bits)), h.i64(0))

        segment = h.ir.lshr(tag, h.i64(SEGMENT_SHIFT))
        block = equal("==", h.load(*book.owner(segment), i32), book.get(Ledger.BLOCK, i32))
        warp = h.ir.and_(block, agrees(WARP))
        thread = h.ir.and_(warp, equal("==", h.ir.and_(h.ir.or_(change, h.ir.and_(tag, h.i64(SEVERAL))),
                                                      h.i64(LANE | SEVERAL)), h.i64(0)))
        met = h.ir.and_(warp, equal("<", tag, book.mine(Own.MEETING)))
        both = [h.ir.and_(value, h.i64(STRENGTH)) for value in (tag, mine)]
        weaker = h.ir.select(equal("<", *both), *both)
        needed = h.ir.select(block, h.i64(1 << STRENGTH_SHIFT), h.i64(2 << STRENGTH_SHIFT))
        strong = h.ir.and_(equal(">=", weaker, needed), equal("<", weaker, h.i64(3 << STRENGTH_SHIFT)))
        statement = agrees(0xFFFFFFFF << SEGMENT_SHIFT | 0xFFFF << STATEMENT_SHIFT | WARP)
        benign = equal("==", both[0], h.i64(3 << STRENGTH_SHIFT))
        alike = h.ir.and_(statement, h.ir.or_(same, benign))
        good = self.ordered(tag)
        for reason in (thread, met, strong, alike, self.seen(tag, WHOLE), self.seen(tag, 0)):
            good = h.ir.or_(good, reason)
        return good

    def seen(self, tag: Any, whole: int) -> Any:
        """Whether Python has said so before: of the warps, or of these two threads."""
        h, book = self.h, self.book
        key = h.ir.and_(tag, h.i64(0xFFFFFFFF << SEGMENT_SHIFT))
        if whole:
            own = h.ir.or_(h.ir.lshr(h.ir.and_(self.mine, h.i64(WARP)), h.i64(5)), h.i64(WHOLE))
        else:
            other = h.ir.and_(tag, h.i64(LANE | SEVERAL))
            own = h.ir.or_(h.ir.and_(self.mine, h.i64(WARP | LANE)), h.ir.shl(other, h.i64(10)))
            own = h.ir.and_(own, h.i64(0xFFFFFFFF & ~WHOLE))
        key = h.ir.or_(key, own)
        slot = h.ir.lshr(h.ir.mul(key, h.i64(HASH)), h.i64(64 - SEEN_BITS))
        return h.ir.icmp_unsigned("==", h.load(book.get(Ledger.SEEN, pointer), h.ir.shl(slot, h.i64(3)), i64), key)

    def leave(self, reason: int, tag: Any) -> None:
        h, book = self.h, self.book
        for value, offset in (
            (tag, Ledger.TAG), (self.at, Ledger.PLACE), (self.host, Ledger.HOST), (self.number, Ledger.LANE),
            (self.stride, Ledger.STRIDE), (h.i32(reason), Ledger.REASON),
        ):
            h.store(value, book.ledger, offset)
        before = h.ir.sub(h.ir.shl(h.i32(1), self.number), h.i32(1))
        h.store(h.ir.or_(book.get(Ledger.DONE, i32), before), book.ledger, Ledger.DONE)
        h.stop(Status.WATCH)
        h.ir.ret(ir.Constant(i1, 0))
