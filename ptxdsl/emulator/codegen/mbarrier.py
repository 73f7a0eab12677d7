"""mbarriers: barriers that are words of shared memory, which threads and copies count down.

The word is opaque to a kernel; here it holds (``layout.Mbarrier``) the arrivals that the phase still waits for, those
of the next phase, the bytes, and the parity of the phase. It is changed lane by lane with plain reads and writes: the
shared memory of a cluster belongs to one host thread. A wait that fails makes what the mbarrier counts and is pending
(:mod:`.pending`), then gives way to the next warp at once, so that a loop of waits costs little more than the warps
that it waits for.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.layout import LANES, Block, Mbarrier, Warp
from ..machine.status import Fault, Status
from ..machine.pending import READERS, Kind, Pending
from ..instructions.mbarrier import ArriveLater, MakeCommitted, MbarrierOperation
from .atomics import array_of, element_at, place_at, spill
from .control import return_status
from .handler import HANDLER, Handler, const, i1, i32, i64, lanes_of, pointer
from .tensor_cores.tensor_flight import note_complete
from .data import guard_mask, put, slots_of, source
from .access import Access
from .pending import Begun, each, fault_of, faulty, make_where, some_pending
from .registry import builds, emits

__all__ = ["count_operation"]


@emits(MbarrierOperation, slow_path=True)
def mbarrier_operation(h: Handler, op: MbarrierOperation) -> None:
    what, amounts_given = op.action, (op.arrivals, op.nbytes)
    together = op.address.scalar and all(not each or each.immediate or each.uniform for each in amounts_given)
    access = Access(h, op.address, None, 8, True)
    lanes = guard_mask(h, op.guard, True)
    slot, held = slots_of(h, (op.dest, op.held))
    given = [source(h, each, 1 if together else LANES) if each else None for each in amounts_given]
    if held is not None:
        h.store(h.i32(0), held, 0)
    if op.guard:
        h.skip_unless_any(lanes)
    work = _Word(h, access, what, lanes, together)
    amounts = [_Amount(h, value) for value in given]
    result = array_of(h, i64)
    complete = h.ir.alloca(i32)
    h.ir.store(h.i32(0), complete)

    def one(lane: Any) -> None:
        given = [amount.at(lane) for amount in amounts]
        old = work.lane(lane, given)
        if what in ("wait", "parity"):
            old = h.ir.or_(old, h.asked_if(h.ir.not_(old), lambda: _counted(h, work, lane, given)))
            bit = h.ir.shl(h.ir.zext(old, i32), lane)
            h.ir.store(h.ir.or_(h.ir.load(complete), bit), complete)
            with h.ir.if_then(old):
                note_complete(h, work.host.at(lane))
        elif slot is not None:
            h.ir.store(old, place_at(h, result, lane, i64), align=8)

    distinct, before = _uniform_lanes(h, work, what, lanes, amounts) if together else (lanes, None)
    h.for_each_lane(distinct, one)
    put_mask = lanes if op.masked or op.guard else None
    if what in ("wait", "parity"):
        holds = h.ir.load(complete)
        if distinct is not lanes:
            holds = h.ir.select(h.nonzero(holds), lanes, holds)
        if slot is not None:
            put(h, slot, h.bools(holds), put_mask)
        if held is not None:
            h.store(holds, held, 0)
        all_ = h.ir.icmp_unsigned("==", holds, lanes)
        first = work.host.at(h.first_lane(h.ir.and_(lanes, h.ir.not_(h.ir.select(all_, h.i32(0), holds)))))
        h.store(h.ir.select(all_, h.i64(0), first), h.warp, Warp.WAITS_AT)
        h.branch_unless(all_, lambda: _yield_warp(h, op.polled))
    elif slot is not None:
        words = h.ir.load(h.ir.bitcast(result, lanes_of(i64).as_pointer()), align=16)
        if before is not None:
            first = h.ir.load(place_at(h, result, h.first_lane(lanes), i64), align=8)
            words = h.ir.select(before[0], h.ir.sub(h.splat(first), before[1]), words)
        put(h, slot, words, put_mask)
    h.next()


def _counted(h: Handler, work: _Word, lane: Any, given: list[Any]) -> Any:
    """Make what the mbarrier of a lane counts; whether the phase is complete then."""

    def ask() -> Any:
        place = h.ir.bitcast(work.place(lane), pointer)
        h.ir.call(h.load(h.block, Block.MAKE_COUNTED, HANDLER.as_pointer(), 8), [place, h.warp, h.block])
        h.branch_unless(h.ir.not_(faulty(h)), h.ir.ret_void)
        return work.lane(lane, given)

    return h.asked_if(some_pending(h), ask)


class _Amount:
    """An operand: one number for all lanes, or one for each, or none."""

    def __init__(self, h: Handler, value: Any) -> None:
        self.h, self.value = h, value
        self.lanes = value is not None and isinstance(value.type, ir.VectorType)
        self.place = spill(h, value) if self.lanes else None

    def at(self, lane: Any) -> Any:
        """The number of a lane."""
        return element_at(self.h, self.place, lane, self.value.type.element) if self.lanes else self.value


def _uniform_lanes(h: Handler, work: _Word, what: str, lanes: Any, amounts: list[_Amount]) -> tuple[Any, Any]:
    """The lanes to go through where all do the same to one mbarrier: one polls for all, or one counts for all.

    One counts for all only if the phase is not over before the last of them. The other result is whether it does, and
    what those before each lane have counted then; None where that is never so.
    """
    first = h.ir.and_(lanes, h.ir.sub(h.i32(0), lanes))
    if what in ("wait", "parity"):
        return first, None
    count = amounts[0].value
    if what != "change" or amounts[1].value is not None or count is None:
        return lanes, None
    arrivals = h.ir.zext(count, i64)
    total = h.ir.mul(arrivals, h.ir.zext(h.call("llvm.ctpop.i32", i32, lanes), i64))
    word = h.ir.load(work.place(None), align=8)
    quick = h.ir.icmp_unsigned("<=", total, h.ir.and_(word, h.i64(Mbarrier.MOST)))
    quick = h.ir.and_(quick, h.nonzero(total))
    amounts[0].value = h.ir.select(quick, h.ir.trunc(total, i32), count)
    below = ir.Constant(lanes_of(i32), [(1 << lane) - 1 for lane in range(LANES)])
    ranks = h.call("llvm.ctpop.v32i32", lanes_of(i32), h.ir.and_(h.splat(lanes), below))
    return h.ir.select(quick, first, lanes), (quick, h.ir.mul(h.ir.zext(ranks, lanes_of(i64)), h.splat(arrivals)))


def _yield_warp(h: Handler, polled: bool) -> None:
    """Let other warps run before the kernel polls again; return once the budget is spent, to find deadlocks."""
    h.store(h.rec, h.warp, Warp.WAITS)
    budget = h.ir.sub(h.load(h.block, Block.BUDGET, i32), h.i32(1))
    h.store(budget, h.block, Block.BUDGET)
    if polled:  # the time slice is over, for functions of a warp too, which have a budget of their own
        h.store(h.i32(0), h.warp, Warp.BUDGET)
        h.goto(h.following())
        return
    h.store(h.following(), h.warp, Warp.PC)
    h.branch_unless(h.ir.icmp_signed(">=", budget, h.i32(0)), lambda: return_status(h, Status.YIELD))
    h.tail_to(Block.SCHEDULE, h.rec)


class _Word:
    """What a handler does to the mbarrier of one lane."""

    def __init__(self, h: Handler, access: Access, what: str, lanes: Any, together: bool) -> None:
        self.h, self.what = h, what
        self.address = _Amount(h, access.base() if together else access.vector())
        self.host = _Amount(h, access.host(lanes) if together else access.hosts(lanes))

    def place(self, lane: Any) -> Any:
        """Where the word of a lane lies."""
        return self.h.ir.inttoptr(self.host.at(lane), i64.as_pointer())

    def lane(self, lane: Any, amounts: list[Any]) -> Any:
        """Do it; the word that was there, for a wait whether the phase is complete."""
        h, what = self.h, self.what
        place = self.place(lane)
        count, nbytes = amounts
        if what == "init":
            self._init(lane, place, count)
            return h.i64(0)
        word = h.ir.load(place, align=8)
        valid = h.ir.icmp_unsigned("==", h.ir.lshr(word, h.i64(Mbarrier.MAGIC)), h.i64(Mbarrier.VALID))
        self.demand(valid, Fault.MBARRIER_INVALID, lane)
        if what == "inval":
            self._demand_unused(lane, place)
            h.ir.store(h.i64(0), place, align=8)
        elif what == "wait":
            changed = h.ir.xor(word, nbytes)
            return h.ir.trunc(h.ir.lshr(changed, h.i64(Mbarrier.PARITY)), i1)
        elif what == "parity":
            wanted = h.ir.trunc(nbytes, i1)
            return h.ir.icmp_unsigned("!=", h.ir.trunc(h.ir.lshr(word, h.i64(Mbarrier.PARITY)), i1), wanted)
        elif what == "find":
            return self.host.at(lane)
        elif what != "check":
            self._change(lane, place, word, count, nbytes)
        return word

    def demand(self, condition: Any, kind: int, lane: Any) -> None:
        """Stop with a fault of this lane where the condition does not hold."""
        h = self.h

        def leave() -> None:
            h.stop(Status.FAULT)
            h.store(h.i32(kind), h.block, Block.FAULT_KIND)
            h.store(lane, h.block, Block.FAULT_LANE)
            h.store(self.address.at(lane), h.block, Block.FAULT_ADDRESS)
            h.ir.ret_void()

        h.branch_unless(condition, leave)

    def _init(self, lane: Any, place: Any, count: Any) -> None:
        h = self.h
        self._demand_unused(lane, place)
        less = h.ir.sub(count, h.i32(1))
        self.demand(h.ir.icmp_unsigned("<", less, h.i32(Mbarrier.MOST)), Fault.MBARRIER_INIT, lane)
        number = h.ir.zext(count, i64)
        word = h.ir.or_(number, h.ir.shl(number, h.i64(Mbarrier.EXPECTED)))
        h.ir.store(h.ir.or_(word, h.i64(Mbarrier.VALID << Mbarrier.MAGIC)), place, align=8)

    def _demand_unused(self, lane: Any, place: Any) -> None:
        """No warp of the block waits there, and no operation is to be counted there."""
        h = self.h
        host, used = h.ir.ptrtoint(place, i64), h.alloca(i1)
        h.ir.store(const(i1, 0), used)

        def note(other: Any) -> None:
            h.ir.store(h.ir.or_(h.ir.load(used), h.ir.icmp_unsigned("==", other, host)), used)

        stride, warps = h.load(h.block, Block.STRIDE, i64), h.load(h.block, Block.WARPS, pointer)
        each_warp = h.load(h.block, Block.LIVE, i32)
        h.for_each_lane(each_warp, lambda number: note(
            h.load(h.add(warps, h.ir.mul(h.ir.zext(number, i64), stride)), Warp.WAITS_AT, i64)
        ))
        each(h, lambda operation: note(h.load(operation, Pending.MBARRIER, i64)))
        self.demand(h.ir.not_(h.ir.load(used)), Fault.MBARRIER_BUSY, lane)

    def _change(self, lane: Any, place: Any, word: Any, count: Any, nbytes: Any) -> None:
        h, what = self.h, self.what
        most = h.i64(Mbarrier.MOST)
        pending = h.ir.and_(word, most)
        expected = h.ir.and_(h.ir.lshr(word, h.i64(Mbarrier.EXPECTED)), most)
        tx = h.ir.ashr(h.ir.shl(word, h.i64(64 - Mbarrier.PARITY)), h.i64(64 - Mbarrier.PARITY + Mbarrier.TX))
        parity = h.ir.and_(word, h.i64(1 << Mbarrier.PARITY))
        if nbytes is not None:
            amount = h.ir.zext(nbytes, i64)
            tx = (h.ir.add if ".expect" in what else h.ir.sub)(tx, amount)
            inside = h.ir.icmp_unsigned("<=", h.ir.add(tx, most), h.i64(2 * Mbarrier.MOST))
            self.demand(inside, Fault.MBARRIER_BYTES, lane)
        if count is not None:
            arrivals = h.ir.zext(count, i64)
            less = h.ir.sub(arrivals, h.i64(1))
            self.demand(h.ir.icmp_unsigned("<", less, pending), Fault.MBARRIER_COUNT, lane)
            pending = h.ir.sub(pending, arrivals)
            if ".drop" in what:
                expected = h.ir.sub(expected, arrivals)
        done = h.zero(h.ir.or_(pending, tx))
        if ".stay" in what:
            self.demand(h.ir.not_(done), Fault.MBARRIER_COMPLETES, lane)
        pending = h.ir.select(done, expected, pending)
        parity = h.ir.xor(parity, h.ir.select(done, h.i64(1 << Mbarrier.PARITY), h.i64(0)))
        tx = h.ir.and_(tx, h.i64((1 << Mbarrier.PARITY - Mbarrier.TX) - 1))
        for part, shift in ((expected, Mbarrier.EXPECTED), (tx, Mbarrier.TX)):
            pending = h.ir.or_(pending, h.ir.shl(part, h.i64(shift)))
        fresh = h.ir.or_(h.ir.or_(pending, parity), h.i64(Mbarrier.VALID << Mbarrier.MAGIC))
        h.ir.store(fresh, place, align=8)


class _OfOperation(_Word):
    """The same for the mbarrier that counts a pending operation, ``h.rec``."""

    def __init__(self, h: Handler) -> None:
        self.h, self.what = h, "change"

    def demand(self, condition: Any, kind: int, lane: Any) -> None:  # noqa: ARG002
        self.h.branch_unless(condition, lambda: fault_of(self.h, Fault(kind)))

    def change(self, count: Any, nbytes: Any) -> None:
        h = self.h
        place = h.ir.inttoptr(h.load(h.rec, Pending.MBARRIER, i64), i64.as_pointer())
        word = h.ir.load(place, align=8)
        valid = h.ir.icmp_unsigned("==", h.ir.lshr(word, h.i64(Mbarrier.MAGIC)), h.i64(Mbarrier.VALID))
        self.demand(valid, Fault.MBARRIER_INVALID, None)
        self._change(None, place, word, count, nbytes)


def count_operation(h: Handler, arrives: bool = False) -> None:
    """The operation that is made, ``h.rec``, is complete: its mbarrier, if it has one, counts its bytes, or it."""
    with h.ir.if_then(h.nonzero(h.load(h.rec, Pending.MBARRIER, i64))):
        work = _OfOperation(h)
        if arrives:
            work.change(h.i32(1), None)
        else:
            work.change(None, h.load(h.rec, Pending.NBYTES, i32))


# The arrival of tcgen05.commit


@emits(ArriveLater)
def arrive_later(h: Handler, op: ArriveLater) -> None:
    routine, mask = h.field("q"), guard_mask(h, op.guard, True)
    mbarriers = h.ir.bitcast(h.slot(), i64.as_pointer())
    h.skip_unless_any(mask)

    def one(lane: Any) -> None:
        host = element_at(h, mbarriers, lane, i64)
        begun = Begun(h, None, routine, Kind.ARRIVAL, READERS, lane, host, op.clustered)
        begun.put(h.ir.ptrtoint(h.block, i64), Pending.WORDS)
        begun.end()

    h.for_each_lane(mask, one)
    h.next()


@builds(MakeCommitted)
def make_committed(module: ir.Module, name: str, _: MakeCommitted) -> None:
    h = Handler(module, name)
    block, mine = h.block, h.load(h.rec, Pending.OWNER, i32)
    h.block = h.load(h.rec, Pending.WORDS, pointer)
    here = h.ir.icmp_unsigned("==", h.ir.ptrtoint(block, i64), h.ir.ptrtoint(h.block, i64))

    def committed(operation: Any, arrival: Any) -> Any:
        """Whether a product is of the thread, and an arrival comes behind it."""
        earlier = h.ir.icmp_unsigned("<", h.ir.ptrtoint(operation, i64), h.ir.ptrtoint(arrival, i64))
        product = h.ir.icmp_unsigned("==", h.load(operation, Pending.KIND, i32), h.i32(Kind.TENSOR))
        same = h.ir.icmp_unsigned("==", h.load(operation, Pending.OWNER, i32), mine)
        return h.ir.and_(h.ir.and_(product, same), h.ir.or_(earlier, h.ir.not_(here)))

    make_where(h, lambda operation: committed(operation, h.rec))
    for field, kind in ((Block.FAULT_KIND, i32), (Block.FAULT_WARP, i32), (Block.FAULT_LANE, i32),
                        (Block.FAULT_PC, i64), (Block.FAULT_ADDRESS, i64), (Block.STATUS, i32)):
        with h.ir.if_then(faulty(h)):
            h.store(h.load(h.block, field, kind), block, field)
    h.branch_unless(h.ir.not_(faulty(h)), h.ir.ret_void)
    count_operation(h, arrives=True)

    def at_once(arrival: Any) -> Any:
        """Whether another arrival of the thread waits for no product any more: it comes at the same time."""
        kind, owner = (h.load(arrival, field, i32) for field in (Pending.KIND, Pending.OWNER))
        of_block = h.ir.icmp_unsigned("==", h.load(arrival, Pending.WORDS, i64), h.ir.ptrtoint(producer, i64))
        same = h.ir.and_(h.ir.icmp_unsigned("==", kind, h.i32(Kind.ARRIVAL)), h.ir.icmp_unsigned("==", owner, mine))
        waits = h.alloca(i1)
        h.ir.store(const(i1, 0), waits)
        h.block = producer
        each(h, lambda op: h.ir.store(h.ir.or_(h.ir.load(waits), committed(op, arrival)), waits))
        h.block = block
        return h.ir.and_(h.ir.and_(same, of_block), h.ir.not_(h.ir.load(waits)))

    producer, h.block = h.block, block
    make_where(h, at_once)
    h.ir.ret_void()
