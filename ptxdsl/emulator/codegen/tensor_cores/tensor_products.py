"""Code of tcgen05.mma: finds the plan of its descriptor, checks what it names in tensor memory, has it multiplied."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.tensor_cores.tensor_products import MakeTensorProduct, TensorProduct
from ...machine.layout import LANES, SHARED_START, Block
from ...machine.tensor_memory import TensorMemory
from ...machine.status import Fault
from ...machine.pending import READERS, Kind, Pending
from ...machine.product_plan import ProductPlan, ProductRequest
from ..atomics import element_at, place_at, spill
from ..data import guard_mask, source
from ..handler import Handler, i1, i32, i64, pointer
from ..pending import Begun, fault_of
from ..registry import builds, emits
from .tensor_cells import COLUMN_BYTES, TensorCells, issued, split
from .tensor_flight import ALL_LANES, Flight

__all__: list[str] = []

_MULTIPLY = ir.FunctionType(ir.VoidType(), [pointer, pointer])
_SCALES = 0x3FFFFFFF
"""The bits of a scale's address: software keeps the byte's number in the other two."""


@emits(TensorProduct)
def tensor_product(h: Handler, op: TensorProduct) -> None:
    plans, multiply, routine = h.field("q"), h.field("q"), h.field("q")
    mask = guard_mask(h, op.guard, True)
    places = [spill(h, source(h, kind, LANES)) for kind in op.places]
    offsets = [h.field() for _ in op.places]
    descriptors = [spill(h, source(h, kind, LANES)) for kind in op.descriptors]
    words = spill(h, source(h, op.word, LANES))
    enabled = guard_mask(h, op.enable, False)
    off = [spill(h, source(h, kind, LANES)) for kind in op.lanes]
    zeros = spill(h, source(h, op.zeros, LANES)) if op.zeros else None
    kept = h.ir.bitcast(h.slot(), i64.as_pointer()) if op.keeps else None
    h.skip_unless_any(mask)
    found = h.ir.bitcast(h.alloca(ir.ArrayType(i64, LANES)), i64.as_pointer())
    h.for_each_lane(mask, lambda lane: _find_plan(h, plans, element_at(h, words, lane, i32), lane, found))
    room = Begun.room_of(h, op.defers)

    def one(lane: Any) -> None:
        plan = h.ir.inttoptr(element_at(h, found, lane, i64), pointer)
        begun = Begun(h, room, routine, Kind.TENSOR, READERS, lane)
        request = h.add(begun.record, Pending.BYTES)
        begun.put(h.ir.ptrtoint(plan, i64), Pending.TO)
        begun.put(multiply, Pending.SOURCE)
        if kept is not None:
            h.ir.store(h.ir.ptrtoint(plan, i64), place_at(h, kept, lane, i64), align=8)
        issue = _Issue(h, op, request, plan, lane)
        issue.places([h.ir.add(element_at(h, each, lane, i32), add) for each, add in zip(places, offsets)])
        names = (ProductRequest.A, ProductRequest.B)[-len(descriptors) :]
        for name, each in zip(names, descriptors):
            h.store(element_at(h, each, lane, i64), request, name)
        bit = h.ir.and_(h.ir.lshr(enabled, lane), h.i32(1))
        h.store(h.ir.zext(h.ir.xor(bit, h.i32(1)), i64), request, ProductRequest.FRESH)
        h.store(h.i64(0) if zeros is None else element_at(h, zeros, lane, i64), request, ProductRequest.ZERO)
        h.store(h.i64(op.divided), request, ProductRequest.SCALE)
        for number in range(4 * op.variant.group):
            lanes = element_at(h, off[number], lane, i32) if off else h.i32(0)
            h.store(lanes, request, ProductRequest.OFF + 4 * number)
        issue.name_memory()
        begun.end()
        issue.fly()
        issued(h, "mma")

    h.for_each_lane(mask, one)
    h.next()


def _find_plan(h: Handler, plans: Any, word: Any, lane: Any, found: Any) -> None:
    """Put the plan of a descriptor into a lane's place; where there is none Python makes it."""
    wanted, at = h.ir.zext(word, i64), place_at(h, found, lane, i64)
    h.ir.store(plans, at)

    def field(plan: Any, name: int) -> Any:
        return h.load(h.ir.inttoptr(plan, pointer), name, i64)

    def another(plan: Any) -> Any:
        return h.asked_if(
            h.nonzero(plan), lambda: h.ir.icmp_unsigned("!=", field(plan, ProductPlan.WORD), wanted)
        )

    def further(plan: Any) -> Any:
        following = field(plan, ProductPlan.NEXT)
        h.ir.store(following, at)
        return following

    h.loop(plans, another, further)

    def leave() -> None:
        h.store(wanted, h.block, Block.FAULT_ADDRESS)
        h.fault(Fault.PRODUCT_NEW, h.ir.shl(h.i32(1), lane))

    h.branch_unless(h.nonzero(h.ir.load(at)), leave)


class _Issue:
    """A product of one lane: its operands are checked and put into a request."""

    def __init__(self, h: Handler, op: TensorProduct, request: Any, plan: Any, lane: Any) -> None:
        self.h, self.op, self.request, self.plan = h, op, request, plan
        self.lane = h.ir.shl(h.i32(1), lane)
        own = TensorCells(h)
        own.use_group(op.variant.group, self.lane)
        self.blocks: list[TensorCells] = list(own.by_parity()) if op.variant.group == 2 else [own]
        self.flight = Flight(h, own, self.lane, core=True)
        self.used: list[tuple[Any, Any, Any, bool]] = []
        """Of each operand in tensor memory its columns, its lanes in groups, and whether it is written."""

    def said(self, place: int) -> Any:
        return self.h.ir.trunc(self.h.load(self.plan, place, i64), i32)

    def places(self, addresses: list[Any]) -> None:
        """Check the operands in tensor memory, and note where they lie."""
        h, variant = self.h, self.op.variant
        names = [(ProductRequest.D, ProductPlan.D_COLUMNS)]
        if variant.held:
            names.append((ProductRequest.A, ProductPlan.A_COLUMNS))
        if variant.sparse:
            names.append((ProductRequest.E, ProductPlan.E_COLUMNS))
        if variant.table:
            names.append((ProductRequest.LUT, ProductPlan.LUT_COLUMNS))
        if variant.blocks:
            names += [(ProductRequest.SA, ProductPlan.SA_COLUMNS), (ProductRequest.SB, ProductPlan.SB_COLUMNS)]
        first = h.ir.lshr(addresses[0], h.i32(16))
        for (name, columns), address in zip(names, addresses):
            scale = name in (ProductRequest.SA, ProductRequest.SB)
            if scale:
                address = h.ir.and_(address, h.i32(_SCALES))
            lane, column = split(h, address)
            halved = h.nonzero(self.said(ProductPlan.HALVES))
            good = h.zero(lane) if scale else h.ir.icmp_unsigned("==", lane, first)
            if name == ProductRequest.LUT:  # in a quarter, in two columns from an even one on
                good = h.zero(h.ir.and_(address, h.i32(0x1F0001)))
            if name == ProductRequest.D:
                good = h.ir.or_(h.zero(lane), h.ir.and_(halved, h.ir.icmp_unsigned("==", lane, h.i32(16))))

            def leave(address: Any = address) -> None:
                h.store(h.ir.zext(address, i64), h.block, Block.FAULT_ADDRESS)
                h.fault(Fault.PRODUCT_LANES, self.lane)

            h.branch_unless(good, leave)
            half = h.ir.shl(h.i32(0x55), h.ir.and_(h.ir.lshr(lane, h.i32(4)), h.i32(1)))
            groups = h.i32(ALL_LANES) if scale else h.ir.select(halved, half, h.i32(ALL_LANES))
            writes = name == ProductRequest.D or (name == ProductRequest.A and self.op.shifted)
            self.used.append((column, self.said(columns), groups, writes))
            for cells in self.blocks:
                cells.check_columns(address, column, self.said(columns), self.lane)
                self.flight.check(cells, *self.used[-1])
            offset = h.ir.add(h.ir.mul(column, h.i32(COLUMN_BYTES)), h.ir.shl(lane, h.i32(2)))
            h.store(h.ir.zext(offset, i64), self.request, name)

    def name_memory(self) -> None:
        """Say where the memory of the blocks lies."""
        h = self.h
        for number, cells in enumerate(self.blocks):
            start = h.ir.ptrtoint(h.add(cells.place, TensorMemory.CELLS), i64)
            h.store(start, self.request, ProductRequest.CELLS + 8 * number)
            shared = h.ir.sub(h.load(cells.block, Block.SHARED, i64), h.i64(SHARED_START))
            h.store(shared, self.request, ProductRequest.SHARED + 8 * number)
        end = h.ir.add(h.load(h.block, Block.TOTAL_SHARED, i32), h.i32(SHARED_START))
        h.store(h.ir.zext(end, i64), self.request, ProductRequest.END)

    def fly(self) -> None:
        """Note what it writes and reads until somebody has waited."""
        self.flight.begin(self.blocks)
        for used in self.used:
            for cells in self.blocks:
                self.flight.note(cells, *used)


@builds(MakeTensorProduct)
def make_tensor_product(module: ir.Module, name: str, key: MakeTensorProduct) -> None:
    h = Handler(module, name)
    request, plan = h.add(h.rec, Pending.BYTES), h.load(h.rec, Pending.TO, pointer)
    h.ir.call(h.load(h.rec, Pending.SOURCE, _MULTIPLY.as_pointer(), 8), [request, plan])
    status = h.load(request, ProductRequest.STATUS, i64)
    h.branch_unless(h.zero(status), lambda: fault_of(h, Fault.PRODUCT_TILE, status))
    for block in range(key.group if key.shifted else 0):
        _shift(h, request, plan, h.load(request, ProductRequest.CELLS + 8 * block, pointer))
    h.ir.ret_void()


def _shift(h: Handler, request: Any, plan: Any, cells: Any) -> None:
    """Move A's rows down by one, but for the last one of each quarter, which stays."""
    first = h.load(request, ProductRequest.A, i64)

    def column(number: Any) -> None:
        at = h.add(cells, h.ir.add(first, h.ir.mul(number, h.i64(COLUMN_BYTES))))
        for quarter in range(0, COLUMN_BYTES, 4 * LANES):
            rows = h.add(at, quarter), h.add(at, quarter + 4)
            h.call("llvm.memmove.p0.p0.i64", ir.VoidType(), *rows, h.i64(4 * LANES - 4), ir.Constant(i1, 0))

    h.count(h.load(plan, ProductPlan.A_COLUMNS, i64), 1, column)
