"""Code of the queue of operations that are not complete (:mod:`..machine.pending`): begin, find and make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..machine.layout import SHARED_START, Block, Warp
from ..machine.status import Fault, Status
from ..machine.pending import Kind, Pending
from .handler import HANDLER, Handler, byte, i1, i32, i64, pointer

__all__ = [
    "Begun", "each", "fault_of", "faulty", "make", "make_all", "make_counted", "make_some", "make_where",
    "some_pending",
]


def some_pending(h: Handler) -> Any:
    """Whether the block's queue has an operation."""
    first, end = (h.load(h.block, field, i32) for field in (Block.PENDING_FIRST, Block.PENDING_END))
    return h.ir.icmp_unsigned("!=", first, end)


def faulty(h: Handler) -> Any:
    """Whether one has stopped with a fault: the caller returns."""
    return h.ir.icmp_unsigned("==", h.load(h.block, Block.STATUS, i32), h.i32(Status.FAULT))


def _operation(h: Handler, block: Any, number: Any) -> Any:
    queue = h.load(block, Block.PENDING, pointer)
    return h.add(queue, h.ir.mul(h.ir.zext(number, i64), h.i64(Pending.nbytes)))


def make(h: Handler, operation: Any) -> None:
    """Make an operation, which is pending no longer."""
    routine = h.load(operation, Pending.ROUTINE, HANDLER.as_pointer(), 8)
    h.store(h.i64(0), operation, Pending.ROUTINE)
    h.ir.call(routine, [operation, h.load(operation, Pending.WARP, pointer), h.block])


def each(h: Handler, body: Callable[[Any], None], end: Any = None) -> None:
    """Run ``body(operation)`` for the pending ones, the oldest first, until one stops with a fault."""
    first = h.load(h.block, Block.PENDING_FIRST, i32)
    end = h.load(h.block, Block.PENDING_END, i32) if end is None else end

    def turn(number: Any) -> Any:
        operation = _operation(h, h.block, number)
        with h.ir.if_then(h.nonzero(h.load(operation, Pending.ROUTINE, i64))):
            body(operation)
        return h.ir.add(number, h.i32(1))

    def goes_on(number: Any) -> Any:
        return h.ir.and_(h.ir.icmp_unsigned("<", number, end), h.ir.not_(faulty(h)))

    h.loop(first, goes_on, turn)


def make_where(h: Handler, wanted: Callable[[Any], Any]) -> None:
    """Make those of the block's pending operations of which ``wanted`` says so."""

    def one(operation: Any) -> None:
        with h.ir.if_then(wanted(operation)):
            make(h, operation)

    each(h, one)
    _trim(h)


def _trim(h: Handler) -> None:
    """Forget the oldest operations that have been made."""
    end = h.load(h.block, Block.PENDING_END, i32)

    def made(number: Any) -> Any:
        inside = h.ir.icmp_unsigned("<", number, end)
        operation = _operation(h, h.block, number)
        return h.asked_if(inside, lambda: h.zero(h.load(operation, Pending.ROUTINE, i64)))

    def turn(number: Any) -> Any:
        following = h.ir.add(number, h.i32(1))
        h.store(following, h.block, Block.PENDING_FIRST)
        return following

    h.loop(h.load(h.block, Block.PENDING_FIRST, i32), made, turn)
    with h.ir.if_then(h.ir.not_(some_pending(h))):
        h.store(h.i32(0), h.block, Block.PENDING_FIRST)
        h.store(h.i32(0), h.block, Block.PENDING_END)
        h.store(h.i64(0), h.block, Block.STAGING_USED)


def _draw(h: Handler) -> Any:
    """The next random number of 32 bits (xorshift32)."""
    seed = h.load(h.block, Block.PACE_SEED, i32)
    for move, amount in ((h.ir.shl, 13), (h.ir.lshr, 17), (h.ir.shl, 5)):
        seed = h.ir.xor(seed, move(seed, h.i32(amount)))
    h.store(seed, h.block, Block.PACE_SEED)
    return seed


# Functions of the scheduler


def make_all(module: ir.Module, name: str) -> None:
    """``make_all(_, _, block)``: all that are pending."""
    h = Handler(module, name)
    make_where(h, lambda _: h.ir.not_(faulty(h)))
    h.ir.ret_void()


def make_counted(module: ir.Module, name: str) -> None:
    """``make_counted(mbarrier, _, block)``: those that an mbarrier counts, by its host address; where the paces are
    drawn perhaps none, and what waits comes again.
    """
    h = Handler(module, name)
    host = h.ir.ptrtoint(h.rec, i64)
    drawn = h.nonzero(h.ir.or_(*(h.load(h.block, Block.PACES + 4 * n, i32) for n in range(2))))
    go, leave = h.block_named("go"), h.block_named("leave")
    later = h.asked_if(drawn, lambda: h.ir.icmp_unsigned("<", _draw(h), ir.Constant(i32, 3 << 30)))
    h.ir.cbranch(later, leave, go)
    h.ir.position_at_end(go)
    make_where(h, lambda operation: h.ir.icmp_unsigned("==", h.load(operation, Pending.MBARRIER, i64), host))
    h.ir.branch(leave)
    h.ir.position_at_end(leave)
    h.ir.ret_void()


def make_some(module: ir.Module, name: str) -> None:
    """``make_some(_, _, block)``: those that are drawn; products in their order."""
    h = Handler(module, name)
    kept = h.alloca(i1)
    h.ir.store(ir.Constant(i1, 0), kept)

    def wanted(operation: Any) -> Any:
        pace = h.ir.zext(h.load(operation, Pending.PACE, i32), i64)
        pace = h.load(h.add(h.block, Block.PACES), h.ir.shl(pace, h.i64(2)), i32, 4)
        drawn = h.ir.icmp_unsigned("<", _draw(h), pace)
        product = h.ir.icmp_unsigned(">=", h.load(operation, Pending.KIND, i32), h.i32(Kind.PRODUCT))
        drawn = h.ir.and_(drawn, h.ir.not_(h.ir.and_(product, h.ir.load(kept))))
        h.ir.store(h.ir.or_(h.ir.load(kept), h.ir.and_(product, h.ir.not_(drawn))), kept)
        return drawn

    make_where(h, wanted)
    h.ir.ret_void()


def owner_block(h: Handler, host: Any) -> Any:
    """The block state of a cluster in whose shared memory a host address lies."""
    first, pitch = (h.load(h.block, field, i64) for field in (Block.CLUSTER_FIRST, Block.CLUSTER_PITCH))
    rank = h.ir.udiv(h.ir.sub(host, first), pitch)
    own = h.ir.zext(h.load(h.block, Block.RANK, i32), i64)
    return h.add(h.block, h.ir.mul(h.ir.sub(rank, own), pitch))


class Begun:
    """An operation that a lane begins: fields are put into it, then it is pending, or made where nothing is deferred.

    ``room`` is memory for it then, None where operations are deferred; ``mbarrier`` the host address of the one that
    counts it, None where there is none. ``clustered``: that may lie in another block.
    """

    def __init__(
        self, h: Handler, room: Any, routine: Any, kind: int, pace: int, lane: Any, mbarrier: Any = None,
        clustered: bool = False,
    ) -> None:
        self.h, self.room, self.routine, self.block = h, room, routine, h.block
        self.record = room
        if room is None:
            if mbarrier is not None and clustered:
                self.block = owner_block(h, mbarrier)
            self.record = self._place()
        owner = h.ir.add(h.ir.shl(h.load(h.warp, Warp.INDEX, i32), h.i32(5)), lane)
        for value, field in (
            (h.ir.ptrtoint(h.rec, i64), Pending.PLACE), (h.ir.ptrtoint(h.warp, i64), Pending.WARP),
            (h.i64(0) if mbarrier is None else mbarrier, Pending.MBARRIER), (h.i32(kind), Pending.KIND),
            (h.i32(pace), Pending.PACE), (lane, Pending.LANE), (owner, Pending.OWNER), (h.i32(0), Pending.AGE),
            (h.i32(0), Pending.STAGED), (h.i32(0), Pending.NBYTES), (h.i64(0), Pending.SIZE),
        ):
            self.put(value, field)

    @staticmethod
    def room_of(h: Handler, defers: bool) -> Any:
        """Memory for operations that are made at once."""
        return None if defers else h.ir.bitcast(h.alloca(ir.ArrayType(byte, Pending.nbytes), 64), pointer)

    def _place(self) -> Any:
        """Room in the queue: where it is full all is made."""
        h = self.h
        end, most = (h.load(self.block, field, i32) for field in (Block.PENDING_END, Block.PENDING_MOST))
        with h.ir.if_then(h.likely(h.ir.icmp_unsigned(">=", end, most), False)):
            self._call(Block.MAKE_ALL)
        return _operation(h, self.block, h.load(self.block, Block.PENDING_END, i32))

    def _call(self, function: int) -> None:
        h = self.h
        address = h.load(self.block, function, HANDLER.as_pointer(), 8)
        h.ir.call(address, [h.rec, h.warp, self.block])
        self._return_if_faulty()

    def _return_if_faulty(self) -> None:
        h = self.h
        h.branch_unless(h.ir.not_(faulty(h)), h.ir.ret_void)

    def put(self, value: Any, field: int) -> None:
        self.h.store(value, self.record, field)

    def end(self) -> None:
        """All fields are there."""
        h = self.h
        if self.room is not None:
            routine = h.ir.inttoptr(self.routine, HANDLER.as_pointer())
            h.ir.call(routine, [self.record, h.warp, h.block])
            self._return_if_faulty()
            return
        self.put(self.routine, Pending.ROUTINE)
        end = h.load(self.block, Block.PENDING_END, i32)
        h.store(h.ir.add(end, h.i32(1)), self.block, Block.PENDING_END)
        if self.block is h.block:
            with h.ir.if_then(h.nonzero(h.load(h.block, Block.PACE_SEED, i32))):
                self._call(Block.MAKE_SOME)


def fault_of(h: Handler, kind: Fault, about: Any = None) -> None:
    """End the launch with a fault of the operation that is made, ``h.rec``, about its mbarrier, or this number."""
    operation = h.rec
    warp = h.load(operation, Pending.WARP, pointer)
    h.store(h.i32(Status.FAULT), h.block, Block.STATUS)
    h.store(h.i32(kind), h.block, Block.FAULT_KIND)
    h.store(h.load(operation, Pending.PLACE, i64), h.block, Block.FAULT_PC)
    h.store(h.load(warp, Warp.INDEX, i32), h.block, Block.FAULT_WARP)
    h.store(h.load(operation, Pending.LANE, i32), h.block, Block.FAULT_LANE)
    offset = h.ir.sub(h.load(operation, Pending.MBARRIER, i64), h.load(h.block, Block.SHARED, i64))
    address = h.ir.add(offset, h.ir.add(h.load(h.block, Block.WINDOW, i64), h.i64(SHARED_START)))
    h.store(address if about is None else about, h.block, Block.FAULT_ADDRESS)
    h.ir.ret_void()
