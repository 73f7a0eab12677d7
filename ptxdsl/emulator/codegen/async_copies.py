"""Code of ``cp.async``, ``st.async`` and ``red.async`` that are made later: lane by lane they are begun."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..instructions.async_copies import CopyArrival, CopyLater, MakeArrival, MakeCopy, StoreLater
from ..machine.layout import LANES, Mbarrier
from ..machine.status import Fault
from ..machine.pending import COPIES, Kind, Pending
from .atomics import element_at, spill
from .bulk_copies import move_bytes
from .data import fit, guard_mask, source
from .handler import Handler, byte, i1, i32, i64, pointer
from .mbarrier import count_operation
from .pending import Begun, each, make
from .registry import builds, emits

__all__: list[str] = []


def _places(h: Handler, count: int) -> list[Any]:
    return [h.ir.bitcast(h.slot(), i64.as_pointer()) for _ in range(count)]


@emits(CopyLater)
def copy_later(h: Handler, op: CopyLater) -> None:
    routine, mask = h.field("q"), guard_mask(h, op.guard, True)
    used = spill(h, source(h, op.used, LANES))
    places = _places(h, 2)
    h.skip_unless_any(mask)

    def one(lane: Any) -> None:
        begun = Begun(h, None, routine, Kind.COPY, COPIES, lane)
        for place, field in zip(places, (Pending.TO, Pending.SOURCE)):
            begun.put(element_at(h, place, lane, i64), field)
        begun.put(h.i32(op.nbytes), Pending.NBYTES)
        begun.put(h.ir.zext(element_at(h, used, lane, i32), i64), Pending.SIZE)
        begun.end()

    h.for_each_lane(mask, one)
    h.next()


@builds(MakeCopy)
def make_copy(module: ir.Module, name: str, _: MakeCopy) -> None:
    h = Handler(module, name)
    to, start, size = (h.load(h.rec, field, i64) for field in (Pending.TO, Pending.SOURCE, Pending.SIZE))
    rest = h.ir.sub(h.ir.zext(h.load(h.rec, Pending.NBYTES, i32), i64), size)
    move_bytes(h, to, start, size)
    behind = h.ir.inttoptr(h.ir.add(to, size), pointer)
    h.call("llvm.memset.p0.i64", ir.VoidType(), behind, ir.Constant(byte, 0), rest, ir.Constant(i1, 0))
    h.ir.ret_void()


@emits(CopyArrival)
def copy_arrival(h: Handler, op: CopyArrival) -> None:
    routine, mask = h.field("q"), guard_mask(h, op.guard, True)
    mbarriers, = _places(h, 1)
    h.skip_unless_any(mask)

    def one(lane: Any) -> None:
        host = element_at(h, mbarriers, lane, i64)
        if op.adds:
            place = h.ir.inttoptr(host, i64.as_pointer())
            word = h.ir.load(place, align=8)
            room = h.ir.icmp_unsigned("<", h.ir.and_(word, h.i64(Mbarrier.MOST)), h.i64(Mbarrier.MOST))
            h.branch_unless(room, lambda: h.fault(Fault.MBARRIER_INIT, h.ir.shl(h.i32(1), lane)))
            h.ir.store(h.ir.add(word, h.i64(1)), place, align=8)
        Begun(h, None, routine, Kind.ARRIVAL, COPIES, lane, host).end()

    h.for_each_lane(mask, one)
    h.next()


@builds(MakeArrival)
def make_arrival(module: ir.Module, name: str, _: MakeArrival) -> None:
    h = Handler(module, name)
    mine = h.load(h.rec, Pending.OWNER, i32)

    def one(operation: Any) -> None:
        earlier = h.ir.icmp_unsigned("<", h.ir.ptrtoint(operation, i64), h.ir.ptrtoint(h.rec, i64))
        copies = h.ir.icmp_unsigned("==", h.load(operation, Pending.KIND, i32), h.i32(Kind.COPY))
        same = h.ir.icmp_unsigned("==", h.load(operation, Pending.OWNER, i32), mine)
        with h.ir.if_then(h.ir.and_(h.ir.and_(earlier, copies), same)):
            make(h, operation)

    each(h, one)
    count_operation(h, arrives=True)
    h.ir.ret_void()


@emits(StoreLater)
def store_later(h: Handler, op: StoreLater) -> None:
    routine, mask = h.field("q"), guard_mask(h, op.guard, True)
    values = [spill(h, fit(h, source(h, kind, LANES), op.bits, False)) for kind in op.values]
    places, mbarriers = _places(h, 2)
    h.skip_unless_any(mask)
    element = ir.IntType(op.bits)

    def one(lane: Any) -> None:
        begun = Begun(
            h, None, routine, Kind.COUNTED, COPIES, lane, element_at(h, mbarriers, lane, i64), op.clustered
        )
        for number, value in enumerate(values):
            begun.put(element_at(h, value, lane, element), Pending.BYTES + number * op.bits // 8)
        begun.put(element_at(h, places, lane, i64), Pending.TO)
        begun.put(h.ir.ptrtoint(h.add(begun.record, Pending.BYTES), i64), Pending.SOURCE)
        begun.put(h.i32(op.nbytes), Pending.NBYTES)
        begun.put(h.i64(op.nbytes), Pending.SIZE)
        begun.end()

    h.for_each_lane(mask, one)
    h.next()
