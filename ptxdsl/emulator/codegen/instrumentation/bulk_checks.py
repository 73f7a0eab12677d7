"""Shadow checks of bulk and tensor copies: a shadow inspection of each 16 bytes, lane by lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...instructions.instrumentation import BULK_BYTES, BulkReport, BulkShadowCheck, TensorShadowCheck
from ...machine.layout import LANES, Block
from ...machine.shadow import CHECK_FLAGS, STRENGTH_SHIFT, Reason, Shadow
from ...semantics.lanes import Bits
from ..atomics import element_at, spill
from ..data import guard_mask, source
from ..handler import Handler, i32, i64, lanes_of, pointer
from ..registry import emits
from ..tensor_boxes import box_of
from .bulk_groups import Groups
from .epochs import ShadowState, leave
from .shadow_inspection import INSPECT

__all__ = ["one_of_each"]


def one_of_each(h: Handler, mask: Any, identity: list[Any]) -> Any:
    """The lanes of a mask but for those whose copy is that of one before: they store the same values."""
    if not identity:
        return mask
    kept, places = h.alloca(i32), [spill(h, values) for values in identity]
    h.ir.store(h.i32(0), kept)

    def turn(left: Any) -> Any:
        lane, alike = h.first_lane(left), left
        for values, place in zip(identity, places):
            one = h.splat(element_at(h, place, lane, values.type.element))
            alike = h.ir.and_(alike, h.mask(h.ir.icmp_unsigned("==", values, one)))
        h.ir.store(h.ir.or_(h.ir.load(kept), h.ir.shl(h.i32(1), lane)), kept)
        return h.ir.and_(left, h.ir.not_(alike))

    h.loop(mask, h.nonzero, turn)
    return h.ir.load(kept)


@emits(BulkShadowCheck)
def bulk_shadow_check(h: Handler, op: BulkShadowCheck) -> None:
    mask = guard_mask(h, op.guard, True)
    counts, places = spill(h, source(h, op.size, LANES)), h.ir.bitcast(h.slot(), i64.as_pointer())
    inspection = _Inspection(h, op, mask)

    def one(lane: Any) -> None:
        inspection.begin(lane)
        host = element_at(h, places, lane, i64)

        def chunk(offset: Any) -> None:
            inspection.inspect(lane, h.ir.add(host, offset), h.i32(op.flags))

        h.count(h.ir.zext(element_at(h, counts, lane, i32), i64), BULK_BYTES, chunk)

    inspection.run(one)


@emits(TensorShadowCheck)
def tensor_shadow_check(h: Handler, op: TensorShadowCheck) -> None:
    mask = guard_mask(h, op.guard, True)
    coordinates = [source(h, kind, LANES) for kind in op.coordinates]
    maps, tensors = (h.ir.bitcast(h.slot(), i64.as_pointer()) for _ in range(2))
    inspection = _Inspection(h, op, mask)
    spilled = [spill(h, each) for each in coordinates]
    shift = CHECK_FLAGS["granules"][0]

    def one(lane: Any) -> None:
        inspection.begin(lane)
        box = box_of(h, op, element_at(h, maps, lane, i64), spilled, lane)
        delta = Bits(box.b, element_at(h, tensors, lane, i64), 64)

        def row(address: Bits, inside: Bits, _: Bits) -> None:
            first = box.first.max(0, signed=True)
            end = (box.first + (box.row_bytes >> 4) * box.chunk_bytes).min(box.limit, signed=True)
            low = (address + first + delta) & -1 << op.granule
            high = address + end + delta
            nbytes = (inside & first.lt(end, signed=True)).pick(high - low, 0)
            whole = (nbytes + BULK_BYTES - 1) & ~(BULK_BYTES - 1)

            def chunk(offset: Any) -> None:
                at = Bits(box.b, offset, 64)
                left = (nbytes - at).min(BULK_BYTES)
                granules = (left + (1 << op.granule) - 1) >> op.granule
                flags = (granules << shift) | op.flags
                inspection.inspect(lane, (low + at).value, h.ir.trunc(flags.value, i32))

            h.count(whole.value, BULK_BYTES, chunk)

        box.each_row(row)

    inspection.run(one)


class _Inspection:
    """Inspects shadow words for one lane after the other; those that have been are not inspected again."""

    def __init__(self, h: Handler, op: BulkShadowCheck | TensorShadowCheck, mask: Any) -> None:
        self.h, self.grouped = h, op.grouped
        identity, statement = [source(h, kind, LANES) for kind in op.identity], h.field()
        h.skip_unless_any(mask)
        self.mask = one_of_each(h, mask, identity)
        self.shadow = ShadowState(h)
        self.place = h.ir.or_(h.ir.zext(statement, i64), h.i64(op.strength << STRENGTH_SHIFT))
        self.function = h.ir.bitcast(self.shadow.get(Shadow.INSPECT, pointer), INSPECT.as_pointer())

    def begin(self, lane: Any) -> None:
        if self.grouped:
            Groups(self.h, self.shadow).open(lane)

    def inspect(self, lane: Any, host: Any, flags: Any) -> None:
        """The granules from a host address on; leaves the handler where Python has to see them."""
        h = self.h
        bit = h.ir.shl(h.i32(1), lane)
        scratch = h.ir.add(h.ir.shl(h.ir.zext(lane, i64), h.i64(3)), h.i64(Block.SCRATCH))
        h.store(h.ir.sub(bit, h.i32(1)), self.shadow.block, Shadow.CHECKED_LANES)
        h.store(host, h.block, scratch)
        fine = h.ir.call(self.function, [h.rec, h.warp, h.block, bit, self.place, flags])
        h.branch_unless(fine, h.ir.ret_void)

    def run(self, one: Callable[[Any], None]) -> None:
        h, shadow = self.h, self.shadow
        h.for_each_lane(h.ir.and_(self.mask, h.ir.not_(shadow.get(Shadow.CHECKED_LANES, i32))), one)
        h.store(h.i32(0), shadow.block, Shadow.CHECKED_LANES)
        h.next()


@emits(BulkReport)
def bulk_report(h: Handler, op: BulkReport) -> None:
    mask, sizes, hosts = guard_mask(h, op.guard, True), source(h, op.size, LANES), h.slot()
    identity = [source(h, kind, LANES) for kind in op.identity]
    h.skip_unless_any(mask)
    mask = one_of_each(h, mask, identity)
    h.store(h.load(hosts, 0, lanes_of(i64)), h.block, Block.SCRATCH)
    h.store(h.ir.zext(sizes, lanes_of(i64)), h.block, Block.EXTENTS)
    leave(h, ShadowState(h), Reason.SYNC_ACCESS, h.following(), mask)
