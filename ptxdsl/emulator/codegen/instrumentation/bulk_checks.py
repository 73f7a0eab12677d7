"""Shadow checks of bulk copies: a shadow inspection of each 16 bytes, lane by lane."""

from __future__ import annotations

from typing import Any

from ...instructions.instrumentation import BULK_BYTES, BulkReport, BulkShadowCheck
from ...machine.layout import LANES, Block
from ...machine.shadow import STRENGTH_SHIFT, Reason, Shadow
from ..atomics import element_at, spill
from ..data import guard_mask, source
from ..handler import Handler, i32, i64, lanes_of, pointer
from ..registry import emits
from .epochs import ShadowState, leave
from .shadow_inspection import INSPECT

__all__: list[str] = []


@emits(BulkShadowCheck)
def bulk_shadow_check(h: Handler, op: BulkShadowCheck) -> None:
    mask = guard_mask(h, op.guard, True)
    counts, places = spill(h, source(h, op.size, LANES)), h.ir.bitcast(h.slot(), i64.as_pointer())
    statement = h.field()
    h.skip_unless_any(mask)
    shadow = ShadowState(h)
    place = h.ir.or_(h.ir.zext(statement, i64), h.i64(op.strength << STRENGTH_SHIFT))
    function = h.ir.bitcast(shadow.get(Shadow.INSPECT, pointer), INSPECT.as_pointer())

    def one(lane: Any) -> None:
        bit, host = h.ir.shl(h.i32(1), lane), element_at(h, places, lane, i64)
        scratch = h.ir.add(h.ir.shl(h.ir.zext(lane, i64), h.i64(3)), h.i64(Block.SCRATCH))

        def chunk(offset: Any) -> None:
            h.store(h.ir.sub(bit, h.i32(1)), shadow.block, Shadow.CHECKED_LANES)
            h.store(h.ir.add(host, offset), h.block, scratch)
            fine = h.ir.call(function, [h.rec, h.warp, h.block, bit, place, h.i32(op.flags)])
            h.branch_unless(fine, h.ir.ret_void)

        h.count(h.ir.zext(element_at(h, counts, lane, i32), i64), BULK_BYTES, chunk)

    h.for_each_lane(h.ir.and_(mask, h.ir.not_(shadow.get(Shadow.CHECKED_LANES, i32))), one)
    h.store(h.i32(0), shadow.block, Shadow.CHECKED_LANES)
    h.next()


@emits(BulkReport)
def bulk_report(h: Handler, op: BulkReport) -> None:
    mask, hosts = guard_mask(h, op.guard, True), h.slot()
    h.skip_unless_any(mask)
    h.store(h.load(hosts, 0, lanes_of(i64)), h.block, Block.SCRATCH)
    leave(h, ShadowState(h), Reason.SYNC_ACCESS, h.following(), mask)
