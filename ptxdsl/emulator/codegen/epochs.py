"""Handlers of the sanitizer that keep count of segments: where warps begin, meet at barriers, or must be asked about.

What lies between two of them is one segment of a warp's life (``shadow``).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.layout import LANES, Block, Status, Warp
from .library import Shape
from ..machine.shadow import OWNERS_BITS, SEEN_BITS, SEGMENT_SHIFT, Ledger, Own, Reason
from .handler import Handler, byte, i1, i32, i64, pointer
from .data import guard_mask, source
from .memory import Access, twins

__all__ = ["Book", "arrive", "ask", "begin", "meeting", "passed", "touch"]


class Book:
    """The ledger of the block, and the warp's part of it, for a handler; ``fixed`` where it only reads what it gets."""

    def __init__(self, h: Handler, fixed: bool = False) -> None:
        self.h, self.fixed = h, fixed and h.lasting
        self.ledger = h.load(h.block, Block.WATCH, pointer, fixed=True)
        number = h.ir.zext(h.load(h.warp, Warp.INDEX, i32, fixed=True), i64)
        self.own = h.add(self.ledger, h.ir.add(h.ir.mul(number, h.i64(Own.SIZE)), h.i64(Ledger.WARPS)))
        self.number = number

    def get(self, offset: int, kind: ir.Type = i64) -> Any:
        return self.h.load(self.ledger, offset, kind, fixed=self.fixed)

    def mine(self, offset: int) -> Any:
        return self.h.load(self.own, offset, i64, fixed=self.fixed)

    def owner(self, segment: Any) -> tuple[Any, Any]:
        """Where the block of a segment is noted."""
        h = self.h
        place = h.ir.and_(segment, h.i64((1 << OWNERS_BITS) - 1))
        return self.get(Ledger.OWNERS, pointer), h.ir.shl(place, h.i64(2))

    def fresh(self) -> Any:
        """A new segment for this warp, as in a tag."""
        h = self.h
        counter = self.get(Ledger.NEXT, pointer)
        segment = h.ir.add(h.load(counter, 0, i64), h.i64(1))
        h.store(segment, counter, 0)
        h.store(self.get(Ledger.BLOCK, i32), *self.owner(segment))
        tag = h.ir.shl(segment, h.i64(SEGMENT_SHIFT))
        h.store(h.ir.or_(tag, h.ir.shl(self.number, h.i64(5))), self.own, Own.CURRENT)
        return tag


def begin(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_begin", codes): a warp starts on a block; the block's first one makes the ledger ready."""
    h = Handler.of(module, name, shape[-1])
    book = Book(h)
    number = h.ir.add(h.ir.trunc(h.load(h.block, Block.CTA64, i64), i32), h.i32(1))
    with h.ir.if_then(h.ir.icmp_unsigned("!=", book.get(Ledger.BLOCK, i32), number)):
        h.store(number, book.ledger, Ledger.BLOCK)
        with h.ir.if_then(h.ir.icmp_unsigned("!=", book.get(Ledger.DIRTY, i32), h.i32(0))):
            h.store(h.i32(0), book.ledger, Ledger.DIRTY)
            nothing, size = ir.Constant(byte, 0), h.i64(8 << SEEN_BITS)
            seen = book.get(Ledger.SEEN, pointer)
            h.call("llvm.memset.p0.i64", ir.VoidType(), seen, nothing, size, ir.Constant(i1, 0))
        base = book.fresh()
        for offset in (Ledger.BASE, Ledger.WINDOW):
            h.store(base, book.ledger, offset)
    floor = h.ir.add(book.get(Ledger.BASE), h.i64(1 << SEGMENT_SHIFT))
    book.fresh()
    h.store(floor, book.own, Own.FLOOR)
    h.store(floor, book.own, Own.MEETING)
    h.store(h.i64(0), book.own, Own.BARRIERS)
    h.next()


def _pending(book: Book) -> Any:
    h = book.h
    odd = h.ir.and_(book.mine(Own.BARRIERS), h.i64(1))
    return h.add(book.ledger, h.ir.add(h.ir.shl(odd, h.i64(3)), h.i64(Ledger.PENDING)))


def arrive(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_arrive", codes): before a barrier of the whole block. The last warp's number is the one that stays."""
    h = Handler.of(module, name, shape[-1])
    book = Book(h)
    place = _pending(book)
    h.store(book.fresh(), place, 0)
    h.next()


def passed(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_passed", guard, codes): behind a barrier of the whole block."""
    _, guard, codes = shape
    h = Handler.of(module, name, codes)
    mask = guard_mask(h, guard, True)
    book = Book(h)
    with h.ir.if_then(h.ir.icmp_unsigned("!=", mask, h.i32(0))):
        floor = h.load(_pending(book), 0, i64)
        h.store(floor, book.own, Own.FLOOR)
        h.store(floor, book.own, Own.MEETING)
        h.store(h.ir.add(book.mine(Own.BARRIERS), h.i64(1)), book.own, Own.BARRIERS)
        book.fresh()
    h.next()


def meeting(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_meet", guard, members, codes): behind a bar.warp.sync; only some lanes are Python's affair."""
    _, guard, kind, codes = shape
    h = Handler(module, name, codes)
    mask = guard_mask(h, guard, True)
    members = source(h, kind, LANES)
    book = Book(h)
    some, whole, part, after = (h.block_named(n) for n in ("some", "whole", "part", "after"))
    h.ir.cbranch(h.ir.icmp_unsigned("!=", mask, h.i32(0)), some, after)
    h.ir.position_at_end(some)
    first = h.ir.extract_element(members, h.call("llvm.cttz.i32", i32, mask, ir.Constant(i1, 0)))
    absent = h.ir.and_(h.load(h.warp, Warp.INITIAL, i32), h.ir.not_(h.ir.and_(mask, first)))
    h.ir.cbranch(h.ir.icmp_unsigned("==", absent, h.i32(0)), whole, part)
    h.ir.position_at_end(whole)
    h.store(book.fresh(), book.own, Own.MEETING)
    h.ir.branch(after)
    h.ir.position_at_end(part)
    _leave(h, book, Reason.MEET, h.following(), mask)
    h.ir.position_at_end(after)
    h.next()


def _leave(h: Handler, book: Book, reason: int, resume: Any, mask: Any) -> None:
    """Return to Python; the warp goes on at the record ``resume``."""
    h.store(h.i32(reason), book.ledger, Ledger.REASON)
    h.stop(Status.WATCH)
    h.store(resume, h.warp, Warp.PC)
    h.store(h.ir.zext(mask, i64), h.block, Block.FAULT_ADDRESS)
    h.ir.ret_void()


def ask(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_ask", guard, whole, codes): tell Python of an instruction; ``whole`` only where the warp is together."""
    _, guard, whole, codes = shape
    h = Handler(module, name, codes)
    mask = guard_mask(h, guard, True)
    go = h.ir.icmp_unsigned("!=", mask, h.i32(0))
    if whole:
        go = h.ir.and_(go, h.ir.icmp_unsigned("==", mask, h.load(h.warp, Warp.ALIVE, i32)))
    h.branch_unless(go, h.next)
    _leave(h, Book(h), Reason.NOTE, h.following(), mask)


def touch(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_touch", address, bytes, writes, guard, codes): tell Python of an access by which threads synchronise."""
    twins(module, name, shape, _touch)


def _touch(h: Handler, shape: Shape, slow: ir.Function | None) -> None:
    _, kind, nbytes, writes, guard, _ = shape
    access = Access(h, kind, None, nbytes, writes)
    mask = guard_mask(h, guard, True)
    h.branch_unless(h.ir.icmp_unsigned("!=", mask, h.i32(0)), lambda: h.goto(h.following()))
    hosts = access.hosts(mask, slow)
    h.store(hosts, h.block, Block.SCRATCH)
    _leave(h, Book(h), Reason.ATOMIC, h.following(), mask)
