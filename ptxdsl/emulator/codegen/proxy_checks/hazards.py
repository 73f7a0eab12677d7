"""Handlers that say whether a register of wgmma that may be touched too early is, in this run."""

from __future__ import annotations

from typing import Any

from ...instructions.proxy_checks import ProxyHazard, ProxyNote, ProxyProductFence
from ...machine.layout import LANES
from ...machine.status import Status
from ...machine.proxy_shadow import HAZARDS, ProxyShadow
from ...machine.shadow import SUPPRESSED, Reason
from ..data import guard_mask
from ..handler import Handler, i32, i64
from ..instrumentation.epochs import ShadowState
from ..registry import emits
from .events import leave
from .orders import Orders

__all__: list[str] = []


def _slot(h: Handler, orders: Orders, number: int) -> Any:
    return h.ir.add(h.ir.mul(orders.shadow.number, h.i64(HAZARDS)), h.i64(number))


@emits(ProxyNote)
def proxy_note(h: Handler, op: ProxyNote) -> None:
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)
    orders = Orders(h, ShadowState(h))
    count = ProxyShadow.COMMITTED if op.product else ProxyShadow.PRODUCT_FENCES
    number = h.ir.add(orders.get(count, orders.shadow.number, i32), h.i32(1))
    orders.put(number, ProxyShadow.NOTED, _slot(h, orders, op.slot))
    h.next()


@emits(ProxyProductFence)
def proxy_product_fence(h: Handler, op: ProxyProductFence) -> None:
    mask = guard_mask(h, op.guard, True)
    h.skip_unless_any(mask)
    orders = Orders(h, ShadowState(h))
    warp = orders.shadow.number
    number = h.ir.add(orders.get(ProxyShadow.PRODUCT_FENCES, warp, i32), h.i32(1))
    orders.put(number, ProxyShadow.PRODUCT_FENCES, warp)
    h.next()


@emits(ProxyHazard)
def proxy_hazard(h: Handler, op: ProxyHazard) -> None:
    mask = guard_mask(h, op.guard, True)
    other, statement = h.field(), h.field()
    h.skip_unless_any(mask)
    orders = Orders(h, ShadowState(h))
    warp = orders.shadow.number
    noted = orders.get(ProxyShadow.NOTED, _slot(h, orders, op.slot), i32)
    before = h.ir.sub(noted, h.i32(1))
    if op.kind_of == "pending":
        done = orders.get(ProxyShadow.WAITED, warp, i32)
        bad = h.ir.and_(h.nonzero(noted), h.ir.icmp_signed(">=", before, done))
    else:
        fences = orders.get(ProxyShadow.PRODUCT_FENCES, warp, i32)
        bad = h.zero(fences)
        if op.kind_of == "unfenced":
            bad = h.ir.and_(h.nonzero(noted), h.ir.icmp_unsigned("==", before, fences))
    bad = h.ir.and_(bad, h.zero(h.ir.and_(statement, h.i32(SUPPRESSED))))

    def away() -> None:
        lane = h.ir.and_(h.first_lane(mask), h.i32(LANES - 1))
        leave(h, orders.shadow, Reason.REGISTERS, h.ir.zext(other, i64), (h.i64(0), h.i64(0)), lane)
        h.stop(Status.CALLBACK)
        h.ir.ret_void()

    h.branch_unless(h.ir.not_(bad), away)
    h.next()
