"""Fences of tcgen05: threads that read tensor memory which other warps have written, or the tensor core for them.

Each operation has a number in the stream of its warp (:mod:`..tensor_cores.tensor_flight`). A
``tcgen05.fence::after_thread_sync`` of a warp makes known to it what has been issued by then, a ``before_thread_sync``
lets others know of its stores. What is read must be known: an operation behind the last such fence of the reader is
not, whatever orders the threads, nor is a store that no fence of its own warp follows; ``tcgen05.commit`` is one for
the tensor core.

Looked at are loads, and A, metadata and scales of a product. A fence that stands before the barrier or the wait, and
not behind it, passes where the operation was issued before it all the same. What is overwritten is not looked at.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.proxy_checks import ProxyCells, ProxyCoreFence, ProxyOperands
from ...machine.layout import LANES, Block
from ...machine.tensor_memory import TensorMemory
from ...machine.product_plan import ProductPlan
from ...machine.proxy_shadow import ProxyShadow
from ...machine.shadow import SUPPRESSED, Reason, Shadow
from ...machine.status import Status
from ..atomics import element_at, spill
from ..data import guard_mask, source
from ..handler import Handler, const, i1, i32, i64, pointer
from ..instrumentation.epochs import ShadowState
from ..registry import emits
from ..tensor_cores.tensor_cells import TensorCells, split
from ..tensor_cores.tensor_flight import ALL_LANES, NUMBER_BITS, STORES
from ..tensor_cores.tensor_transfers import Transfer
from .events import leave

__all__: list[str] = []

_STREAMS = 96
_ROW = 4 * _STREAMS
_COLUMN = 32
_SCALES = 0x3FFFFFFF
_COLUMNS = {
    "a": ProductPlan.A_COLUMNS, "e": ProductPlan.E_COLUMNS, "lut": ProductPlan.LUT_COLUMNS,
    "sa": ProductPlan.SA_COLUMNS, "sb": ProductPlan.SB_COLUMNS,
}


class _Known:
    """What warps know to have been issued."""

    def __init__(self, h: Handler) -> None:
        self.h, self.shadow = h, ShadowState(h)
        self.proxies, self.tensor = self.shadow.get(Shadow.PROXIES, pointer), h.load(h.block, Block.TENSOR, pointer)
        self.issued = h.add(self.tensor, TensorMemory.ISSUED)
        begun = h.load(self.proxies, ProxyShadow.CORE_BEGUN, i32)
        with h.ir.if_then(h.zero(begun), likely=False):  # what was issued in blocks before is over
            h.store(h.i32(1), self.proxies, ProxyShadow.CORE_BEGUN)
            h.count(h.i64(LANES), 1, self.take)
            self._copy(h.add(self.proxies, ProxyShadow.CORE_STORED), h.add(self.issued, 4 * STORES), 4 * LANES)

    def _copy(self, to: Any, start: Any, nbytes: int) -> None:
        h = self.h
        h.call("llvm.memcpy.p0.p0.i64", ir.VoidType(), to, start, h.i64(nbytes), const(i1, 0))

    def row(self, warp: Any) -> Any:
        h = self.h
        return h.add(self.proxies, h.ir.add(h.ir.mul(warp, h.i64(_ROW)), h.i64(ProxyShadow.CORE_KNOWN)))

    def take(self, warp: Any) -> None:
        """A warp knows all that has been issued."""
        self._copy(self.row(warp), self.issued, _ROW)

    def stored(self, warp: Any) -> Any:
        h = self.h
        return h.add(self.proxies, h.ir.add(h.ir.shl(warp, h.i64(2)), h.i64(ProxyShadow.CORE_STORED)))

    def give(self) -> None:
        """Others may know of the warp's stores."""
        h, warp = self.h, self.shadow.number
        place = h.ir.shl(h.ir.add(warp, h.i64(STORES)), h.i64(2))
        h.store(h.load(self.issued, place, i32), self.stored(warp), 0)

    def _before(self, number: Any, known: Any) -> Any:
        """Whether a number is at most another one, in those of NUMBER_BITS."""
        h = self.h
        ahead = h.ir.shl(h.ir.sub(number, known), h.i32(32 - NUMBER_BITS))
        return h.ir.icmp_signed("<=", ahead, h.i32(0))

    def demand(self, cells: TensorCells, column: Any, count: Any, groups: Any, lane: Any) -> None:
        """Leave where the last writes to columns, for groups of 16 lanes, are not known to the warp."""
        h = self.h

        def of_column(number: Any) -> None:
            at = h.ir.add(column, h.ir.trunc(number, i32))
            place = h.add(cells.place, h.ir.add(h.ir.mul(at, h.i32(_COLUMN)), h.i32(TensorMemory.WRITERS)))

            def of_group(which: Any) -> None:
                self._demand(cells, h.load(h.add(place, h.ir.shl(which, h.i32(2))), 0, i32), at, which, lane)

            h.for_each_lane(groups, of_group)

        h.count(h.ir.zext(count, i64), 1, of_column)

    def _demand(self, cells: TensorCells, stamp: Any, column: Any, group: Any, lane: Any) -> None:
        h = self.h
        stream = h.ir.zext(h.ir.lshr(stamp, h.i32(NUMBER_BITS)), i64)
        number = h.ir.and_(stamp, h.i32((1 << NUMBER_BITS) - 1))
        warp = h.ir.and_(stream, h.i64(LANES - 1))
        stores = h.ir.icmp_unsigned(">=", stream, h.i64(STORES))
        known = h.add(self.row(self.shadow.number), h.ir.shl(stream, h.i64(2)))
        after = self._before(number, h.load(known, 0, i32))
        before = h.ir.or_(h.ir.not_(stores), self._before(number, h.load(self.stored(warp), 0, i32)))
        good = h.ir.or_(h.ir.icmp_unsigned("==", warp, self.shadow.number), h.ir.and_(after, before))
        good = h.ir.or_(good, h.zero(stamp))

        def away() -> None:
            h.store(number, known, 0)
            with h.ir.if_then(stores):
                h.store(number, self.stored(warp), 0)
            host = h.ir.ptrtoint(cells.cell(h.ir.shl(group, h.i32(4)), column), i64)
            word = h.ir.or_(stream, h.ir.shl(h.ir.zext(before, i64), h.i64(8)))
            leave(h, self.shadow, Reason.UNFENCED_CORE, word, (h.i64(0), host), lane)
            h.stop(Status.CALLBACK)
            h.ir.ret_void()

        h.branch_unless(good, away)


def _unless_suppressed(h: Handler, statement: Any) -> None:
    h.branch_unless(h.zero(h.ir.and_(statement, h.i32(SUPPRESSED))), h.next)


@emits(ProxyCoreFence)
def core_fence(h: Handler, op: ProxyCoreFence) -> None:
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)
    known = _Known(h)
    if op.before:
        known.give()
    else:
        known.take(known.shadow.number)
    h.next()


@emits(ProxyCells)
def proxy_cells(h: Handler, op: ProxyCells) -> None:
    transfer = Transfer(h, op, op.shape, op.packed, op.registers)
    transfer.check(op.members)
    statement = h.field()
    _unless_suppressed(h, statement)
    known, lane = _Known(h), h.first_lane(transfer.group.lanes)
    for start in transfer.starts:
        known.demand(transfer.cells, start, transfer.count, transfer.groups, h.ir.and_(lane, h.i32(LANES - 1)))
    h.next()


@emits(ProxyOperands)
def proxy_operands(h: Handler, op: ProxyOperands) -> None:
    mask = guard_mask(h, op.guard, True)
    plans = h.ir.bitcast(h.slot(), i64.as_pointer())
    places = [spill(h, source(h, kind, LANES)) for kind in op.places]
    offsets, statement = [h.field() for _ in op.places], h.field()
    h.skip_unless_any(mask)
    _unless_suppressed(h, statement)
    known, cells = _Known(h), TensorCells(h)

    def one(lane: Any) -> None:
        plan = h.ir.inttoptr(element_at(h, plans, lane, i64), pointer)
        halved = h.nonzero(h.load(plan, ProductPlan.HALVES, i64))
        for name, place, offset in zip(op.names, places, offsets):
            address = h.ir.add(element_at(h, place, lane, i32), offset)
            scale = name in ("sa", "sb")
            first, column = split(h, h.ir.and_(address, h.i32(_SCALES)) if scale else address)
            half = h.ir.shl(h.i32(0x55), h.ir.and_(h.ir.lshr(first, h.i32(4)), h.i32(1)))
            groups = h.i32(ALL_LANES) if scale else h.ir.select(halved, half, h.i32(ALL_LANES))
            count = h.ir.trunc(h.load(plan, _COLUMNS[name], i64), i32)
            known.demand(cells, column, count, groups, lane)

    h.for_each_lane(mask, one)
    h.next()
