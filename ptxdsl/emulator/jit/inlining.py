"""The micro-ops that block functions are made of, and those that only they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...isa import lookup
from .. import semantics
from ..machine.layout import LANES, SHARED_START, SPACE_BITS, Block, Cluster
from ..machine.status import Status
from ..codegen import data
from ..codegen.access import RESOLVE, Access
from ..codegen.gathers import IndexedPlaces, Places, StridedPlaces
from ..codegen.handler import Handler, i1, i32, i64, lanes_of
from ..codegen.registry import emits
from ..instructions.addresses import AccessFlags, Pattern
from ..instructions.operand_classes import OperandClass
from .inlined import Slot
from .plan import Index
from .row_plan import picked
from .row_micro_ops import ComputeRows, RowWrapCheck

__all__ = ["HoistedAccess", "RowAccess", "exit_if_active"]


def exit_if_active(h: Handler, guard: OperandClass) -> None:
    """A side exit if a lane is active under the guard."""
    mask = data.guard_mask(h, guard, True)
    h.branch_unless(h.zero(mask), h.side_exit)  # type: ignore[attr-defined]


class HoistedAccess(Access):
    """An address whose buffer entry is loaded once for the block."""

    def limits(self, extent: Any) -> tuple[Any, Any, Any]:
        h: Any = self.h
        if h.planned.access >= 0 or self.in_window:
            return super().limits(extent)
        return h.limits(h.planned.value("entry"), self.write, int(extent.constant))

    def check_scalar(self) -> tuple[Any, Any]:
        h: Any = self.h
        return (ir.Constant(i1, 1), h.hosts[0]) if h.hosts else super().check_scalar()

    def elements(self, bits: int) -> tuple[int, ...]:
        h: Any = self.h
        if not self.kind.affine:
            return ()
        return picked(h.plan.lane_offsets[int(self.known.constant)][: h.present], bits, self.nbytes)

    @property
    def step(self) -> int:
        """Bytes from the address of each lane to that of the next; 0 where that is not one known number."""
        h: Any = self.h
        if not self.kind.affine or self.pattern is not None or self.searches:
            return 0
        known = h.plan.lane_offsets[int(self.known.constant)][: h.present]
        step = known[1] - known[0] if len(known) > 1 else 0
        even = all(offset - known[0] == step * lane for lane, offset in enumerate(known))
        return step if even and step % self.nbytes == 0 else 0

    @property
    def strides(self) -> bool:
        return self.step != 0

    def places(self, mask: Any) -> Places:
        """Of lanes a known distance apart: if the first active one and the last are within bounds, so are all."""
        h: Any = self.h
        if h.planned.indexed is not None and not self.searches:
            return self._indexed(h.planned.indexed, mask)
        step = self.step
        if not step:
            return super().places(mask)
        lowest = self.base()
        start = lowest if step > 0 else h.ir.add(lowest, h.i64(-step * (h.present - 1)))
        first = h.ir.zext(h.ir.and_(h.first_lane(mask), h.i32(LANES - 1)), i64)
        last = h.call("llvm.ctlz.i32", i32, mask, ir.Constant(i1, 0))
        last = h.ir.zext(h.ir.and_(h.ir.sub(h.i32(LANES - 1), last), h.i32(LANES - 1)), i64)
        below = h.ir.add(start, h.ir.mul(first if step > 0 else last, h.i64(step)))
        low, size, delta = self.limits(h.i64(0))
        extent = h.ir.add(h.ir.mul(h.ir.sub(last, first), h.i64(abs(step))), h.i64(self.nbytes - 1))
        bound = h.call("llvm.usub.sat.i64", i64, size, extent)
        self.demand(self.and_aligned(h.ir.icmp_unsigned("<", h.ir.sub(below, low), bound), lowest))
        return StridedPlaces(h, h.ir.add(start, delta), [step * lane for lane in range(LANES)])

    @property
    def beside(self) -> bool:
        h: Any = self.h
        return bool(h.planned.beside)

    def _indexed(self, index: Index, mask: Any) -> Places:
        """Of an index: bounds are a range of it, which is the same in all turns of a loop mostly."""
        h: Any = self.h
        scale, bits = index.scale, 32
        base = h.ir.add(self.offset, h.i64(index.offset))
        for slot in index.bases:
            base = h.ir.add(base, h.load(Slot(slot), 0, i64))
        low, bound, delta = self.limits(h.i64(self.nbytes - 1))
        least, most = (-(1 << bits - 1), 1 << bits - 1) if index.signed else (0, 1 << bits)
        first = self._at_least(h.ir.sub(low, base), scale)
        first = h.ir.select(h.ir.icmp_signed("<", first, h.i64(least)), h.i64(least), first)
        above = h.ir.icmp_signed(">", first, h.i64(most))
        first = h.ir.select(above, h.i64(most), first)
        end = self._at_least(h.ir.sub(h.ir.add(low, bound), base), scale)
        end = h.ir.select(h.ir.icmp_signed(">", end, h.i64(most)), h.i64(most), end)
        count = h.ir.sub(end, first)
        limit = h.i64(((1 << bits - 1) - 8) // scale)
        count = h.ir.select(h.ir.icmp_signed("<", count, limit), count, limit)
        count = h.ir.select(h.ir.icmp_signed("<", count, h.i64(0)), h.i64(0), count)
        lanes = h.load(Slot(index.slot), 0, lanes_of(i32))
        numbers = h.ir.sub(lanes, h.splat(h.ir.trunc(first, i32)))
        good = h.ir.icmp_unsigned("<", numbers, h.splat(h.ir.trunc(count, i32)))
        if scale % self.nbytes:
            rest = h.ir.add(h.ir.mul(lanes, h.splat(h.i32(scale))), h.splat(h.ir.trunc(base, i32)))
            odd = h.ir.and_(rest, h.splat(h.i32(self.nbytes - 1)))
            good = h.ir.and_(good, h.ir.icmp_unsigned("==", odd, h.splat(h.i32(0))))
        fine = h.zero(h.ir.and_(mask, h.ir.not_(h.mask(good))))
        if scale % self.nbytes == 0 and self.nbytes > 1:
            fine = h.ir.and_(fine, h.zero(h.ir.and_(base, h.i64(self.nbytes - 1))))
        self.demand(fine)
        start = h.ir.add(h.ir.add(base, delta), h.ir.mul(first, h.i64(scale)))
        return IndexedPlaces(h, start, numbers, scale)

    def _at_least(self, distance: Any, scale: int) -> Any:
        """How many elements it takes to come so many bytes further, at least; both may be negative."""
        h = self.h
        if scale & scale - 1 == 0:
            return h.ir.ashr(h.ir.add(distance, h.i64(scale - 1)), h.i64(scale.bit_length() - 1))
        quotient = h.ir.sdiv(distance, h.i64(scale))
        more = h.ir.icmp_signed(">", h.ir.srem(distance, h.i64(scale)), h.i64(0))
        return h.ir.add(quotient, h.ir.zext(more, i64))

    @property
    def searches(self) -> bool:
        h: Any = self.h
        return bool(h.planned.access >= 0)

    def hosts(self, mask: Any) -> Any:
        if not self.searches:
            return super().hosts(mask)
        h = self.h
        good, lanes = self.check_vector(mask)
        with h.ir.if_else(h.likely(good)) as (then, otherwise):
            with then:
                one = h.ir.block
            with otherwise:
                found = self._of_cluster(mask) if self._may_be_of_cluster else self._search(mask)
                other = h.ir.block
        return h.merged(one, [lanes], other, [found])[0]

    @property
    def _may_be_of_cluster(self) -> bool:
        """Whether it may be to the shared memory of other blocks."""
        h: Any = self.h
        spaces = h.planned.value("flags") >> AccessFlags.SPACES_SHIFT
        return h.plan.clustered > 1 and bool(spaces & (SPACE_BITS["shared"] | SPACE_BITS["generic"]))

    def _of_cluster(self, mask: Any) -> Any:
        """The host addresses where all are in shared memory of the cluster, whose blocks all run; else by RESOLVE.

        The state of each block lies as far from the one before.
        """
        h: Any = self.h
        generic = h.planned.value("flags") >> AccessFlags.SPACES_SHIFT & SPACE_BITS["generic"]
        first, pitch, size, window = (
            Handler.load(h, h.block, field, i64)
            for field in (Block.CLUSTER_FIRST, Block.CLUSTER_PITCH, Block.CLUSTER_OPEN, Block.CLUSTER_WINDOW)
        )
        lanes = self.vector()
        if generic:
            lanes = h.ir.sub(lanes, h.splat(window))
        inside = h.ir.and_(lanes, h.splat(h.i64((1 << Cluster.RANK_BITS) - 1)))
        rank = h.ir.lshr(lanes, h.splat(h.i64(Cluster.RANK_BITS)))
        bound = h.call("llvm.usub.sat.i64", i64, size, h.i64(self.nbytes - 1))
        below = h.ir.icmp_unsigned
        good = below("<", h.ir.sub(inside, h.splat(h.i64(SHARED_START))), h.splat(bound))
        good = h.ir.and_(good, below("<", rank, h.splat(h.i64(h.plan.clustered))))
        good = self.and_aligned(good, lanes)
        number = h.ir.and_(rank, h.splat(h.i64(0xFF)))
        step = h.ir.and_(pitch, h.i64(0xFFFFFFFF))  # a product of 32 bits each
        hosts = h.ir.add(h.ir.add(inside, h.splat(first)), h.ir.mul(number, h.splat(step)))
        with h.ir.if_else(h.zero(h.ir.and_(mask, h.ir.not_(h.mask(good))))) as (then, otherwise):
            with then:
                one = h.ir.block
            with otherwise:
                found, other = self._search(mask), h.ir.block
        return h.merged(one, [hosts], other, [found])[0]

    def host(self, mask: Any) -> Any:
        if not self.searches:
            return super().host(mask)
        h = self.h
        good, host = self.check_scalar()
        with h.ir.if_else(h.likely(good)) as (then, otherwise):
            with then:
                one = h.ir.block
            with otherwise:
                lowest = h.ir.and_(mask, h.ir.sub(h.i32(0), mask))
                lane = h.ir.and_(h.first_lane(mask), h.i32(LANES - 1))
                found, other = h.ir.extract_element(self._search(lowest), lane), h.ir.block
        return h.merged(one, [host], other, [found])[0]

    def _search(self, mask: Any) -> Any:
        """The host addresses by RESOLVE, which keeps the entry; a side exit where a lane is at fault."""
        h: Any = self.h
        scratch = h.add(h.block, Block.SCRATCH)
        h.store(self.vector(), scratch, 0)
        resolve = h.load(h.block, Block.RESOLVE, RESOLVE.as_pointer(), 8)
        fine = h.ir.call(resolve, [h.micro_op_at(h.planned.access), h.warp, h.block, mask])

        def leave() -> None:
            h.store(h.i32(Status.RUNNING), h.block, Block.STATUS)  # the first tier finds the fault again
            h.side_exit()

        h.branch_unless(fine, leave)
        return Handler.load(h, scratch, 0, lanes_of(i64))


class RowAccess(HoistedAccess):
    """A row-affine address, contiguous or the same within a row."""

    def __init__(self, h: Handler, kind: OperandClass, pattern: Pattern | None, nbytes: int, write: bool) -> None:
        super().__init__(h, kind, pattern, nbytes, write)
        self.extent: Any = h.field()

    def vector(self) -> Any:
        h: Any = self.h
        lanes = h.load(self.slot, 0, lanes_of(ir.IntType(self.bits)))
        lanes = h.ir.zext(lanes, lanes_of(i64)) if self.bits < 64 else lanes
        return h.ir.add(lanes, h.splat(self.offset))

    def check_scalar(self) -> tuple[Any, Any]:
        h: Any = self.h
        if h.hosts:
            self.segments = [h.ir.sub(host, h.hosts[0]) for host in h.hosts[1:]]
            return ir.Constant(i1, 1), h.hosts[0]
        assert self.pattern is not None
        low, bound, delta = self.limits(h.i64(int(self.extent.constant)))
        good: Any = ir.Constant(ir.IntType(1), 1)
        hosts = []
        for row in range(0, h.present, self.pattern[1]):
            h.row = row
            address = self.base()
            good = self.and_aligned(h.ir.and_(good, h.ir.icmp_unsigned("<", h.ir.sub(address, low), bound)), address)
            hosts.append(h.ir.add(address, delta))
        h.row = 0
        self.segments = [h.ir.sub(host, hosts[0]) for host in hosts[1:]]
        return good, hosts[0]


@emits(ComputeRows)
def compute_rows(h: Any, op: ComputeRows) -> None:
    form, kinds = lookup(op.mnemonic)[op.number], op.operands
    slot: Any = None
    read: list[tuple[Any, Any, Any]] = []
    for spec, kind in zip(form.operands, kinds):
        if spec.written:
            slot = h.slot()
        elif kind.shaping:
            read.append((kind.bits, None, None))
        else:
            read.append((_first_lane(h, kind), kind, spec))
    results = []
    for row in range(0, h.present, h.plan.row_affine[slot.offset].lanes):
        h.row = row
        values = [data.cut(h, get(), spec) if kind else get for get, kind, spec in read]
        result = semantics.lookup(form)(h.numbers(1), form, *values)
        signed = form.operands[0].type is not None and form.operands[0].type.is_signed
        results.append((h.row, data.fit(h, result, kinds[0].bits, signed)))
    for row, result in results:
        h.row = row
        h.store(result, slot, 0)
    h.row = 0
    h.next()


def _first_lane(h: Any, kind: OperandClass) -> Callable[[], Any]:
    """What gives an operand's number in the first lane of the current row."""
    if kind.scalar or kind.predicate:
        value = data.source(h, kind, 1)
        return lambda: value
    element = ir.IntType(kind.bits)
    slot = h.slot()
    if kind.per_lane:
        return lambda: h.load(slot, 0, element)
    number, known = h.load(slot, 0, element), h.plan.lane_offsets[int(h.field("q").constant)]
    return lambda: h.ir.add(number, ir.Constant(element, known[h.row] & (1 << element.width) - 1))


@emits(RowWrapCheck)
def row_wrap_check(h: Any, op: RowWrapCheck) -> None:
    first = _first_lane(h, op.base)
    least, most = h.field("q"), h.field("q")
    good: Any = ir.Constant(ir.IntType(1), 1)
    for row in range(0, h.present, h.plan.row_lanes):
        h.row = row
        good = h.ir.and_(good, data.within(h, first(), least, most, op.signed))
    h.row = 0
    h.branch_unless(good, h.side_exit)
    h.next()
