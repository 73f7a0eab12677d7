"""Checks of tensor maps that a kernel has changed: the copies that use them come behind a fence for tensor maps."""

from __future__ import annotations

from typing import Any

from ...instructions.proxy_checks import ProxyMap
from ....isa.tensor_maps import USED_BYTES
from ...machine.status import Status
from ...machine.proxy_shadow import Kinds
from ...machine.shadow import SUPPRESSED, WORD_SHIFT, Reason, Region, Shadow
from ..atomics import element_at
from ..data import guard_mask
from ..handler import Handler, i64, pointer
from ..instrumentation.epochs import ShadowState
from ..registry import emits
from .events import leave
from .fences import demand

__all__: list[str] = []


@emits(ProxyMap)
def proxy_map(h: Handler, op: ProxyMap) -> None:
    mask = guard_mask(h, op.guard, True)
    maps = h.ir.bitcast(h.slot(), i64.as_pointer())
    statement = h.field()
    h.skip_unless_any(mask)
    h.branch_unless(h.zero(h.ir.and_(statement, h.i32(SUPPRESSED))), h.next)
    shadow = ShadowState(h)
    regions, count = shadow.get(Shadow.REGIONS, pointer), shadow.get(Shadow.REGION_COUNT)

    def of_lane(lane: Any) -> None:
        host = element_at(h, maps, lane, i64)

        def in_region(number: Any) -> None:
            region = h.add(regions, h.ir.mul(number, h.i64(Region.nbytes)))
            within = h.ir.sub(host, h.load(region, Region.LOW, i64))
            with h.ir.if_then(h.ir.icmp_unsigned("<", within, h.load(region, Region.BYTES, i64))):
                first = h.ir.shl(h.ir.lshr(within, h.i64(op.granule)), h.i64(WORD_SHIFT))
                at = h.ir.add(h.load(region, Region.WORDS, i64), first)
                h.count(h.i64(USED_BYTES >> op.granule), 1, lambda n: word(at, host, n, lane))

        h.count(count, 1, in_region)

    def word(at: Any, host: Any, number: Any, lane: Any) -> None:
        place = h.ir.add(at, h.ir.shl(number, h.i64(WORD_SHIFT)))
        writer = h.load(h.ir.inttoptr(place, pointer), 0, i64)
        changed = h.ir.and_(
            h.ir.icmp_signed(">=", writer, h.i64(0)), h.ir.icmp_unsigned(">=", writer, shadow.get(Shadow.LAUNCH))
        )
        bit = h.ir.shl(h.i32(1), lane)
        bad = h.asked_if(changed, lambda: h.ir.not_(demand(h, shadow, writer, bit, Kinds.TENSORMAP)))

        def away() -> None:
            changed = h.ir.add(host, h.ir.shl(number, h.i64(op.granule)))
            leave(h, shadow, Reason.UNFENCED_MAP, writer, (place, changed), lane)
            h.stop(Status.CALLBACK)
            h.ir.ret_void()

        h.branch_unless(h.ir.not_(bad), away)

    h.for_each_lane(mask, of_lane)
    h.next()
