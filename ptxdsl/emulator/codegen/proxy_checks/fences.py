"""Fences between proxies, and what the generic proxy has written to global memory.

Of the block that asks the fences are known with what happens before them (:mod:`.orders`). Of a write by another block
they are not: a fence of that block after the write will do, or one of this block after the write that happens before
the access, unless it had not acquired anything from other blocks yet. So a fence that is there for something else is
taken for one that orders the write. Where Python has taken over the order of threads, it decides what is left.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from llvmlite import ir

from ...instructions.proxy_checks import ProxyFencing
from ...machine.layout import LANES
from ...machine.proxy_shadow import EVENTS, SAME, FenceEvent, Kinds, ProxyShadow
from ...machine.shadow import EPOCH_SHIFT, Shadow, WarpClock
from ..handler import Handler, const, i1, i32, i64, pointer
from ..instrumentation.epochs import ShadowState
from ..registry import builds
from .orders import Orders, Who

__all__ = ["FENCED_BY", "demand"]

FENCED_BY = ir.FunctionType(i1, [pointer, pointer, pointer, i64, i32, i32])


def demand(h: Handler, shadow: ShadowState, word: Any, mask: Any, kinds: int) -> Any:
    """Whether a fence of some kinds stands behind the write of a shadow word, as far as lanes of the warp know."""
    function = h.ir.bitcast(shadow.get(Shadow.FENCED_BY, pointer), FENCED_BY.as_pointer())
    return h.ir.call(function, [h.rec, h.warp, h.block, word, mask, h.i32(kinds)])


@builds(ProxyFencing)
def fencing(module: ir.Module, name: str, _: ProxyFencing) -> None:
    h = Handler(module, name, result=FENCED_BY)
    word, mask, kinds = h.function.args[3:]
    shadow = ShadowState(h)
    before = h.ir.icmp_unsigned("<", word, shadow.get(Shadow.LAUNCH))
    same = h.zero(h.ir.and_(h.ir.xor(word, shadow.get(Shadow.FENCED_WORD)), h.i64(SAME)))
    asked = h.ir.icmp_unsigned("==", shadow.get(Shadow.FENCED_EPOCH), shadow.clock(WarpClock.EPOCH))
    for good in (before, h.ir.and_(same, asked)):
        h.branch_unless(h.ir.not_(good), lambda: h.ir.ret(const(i1, 1)))
    orders = Orders(h, shadow)
    who = orders.now(mask)
    block = h.load(*shadow.block_of(h.ir.lshr(word, h.i64(EPOCH_SHIFT))), i32)
    own, other, end = (h.block_named(name) for name in ("own", "other", "end"))
    h.ir.cbranch(h.ir.icmp_unsigned("==", block, shadow.get(Shadow.BLOCK, i32)), own, other)
    h.ir.position_at_end(own)
    here = orders.fenced(word, who, kinds)
    last = h.ir.block
    h.ir.branch(end)
    h.ir.position_at_end(other)
    elsewhere = _across(h, orders, who, word, block, kinds)
    behind = h.ir.block
    h.ir.branch(end)
    h.ir.position_at_end(end)
    found = h.merged(last, [here], behind, [elsewhere])[0]
    with h.ir.if_then(h.ir.icmp_unsigned("==", found, h.i32(2))):
        h.store(word, shadow.block, Shadow.FENCED_WORD)
        h.store(shadow.clock(WarpClock.EPOCH), shadow.block, Shadow.FENCED_EPOCH)
    h.ir.ret(h.nonzero(found))


def _across(h: Handler, orders: Orders, who: Who, word: Any, block: Any, kinds: Any) -> Any:
    """2 where a fence may order a write by another block, else 0."""
    shadow, found = orders.shadow, h.alloca(i32)
    table = shadow.get(Shadow.FENCED_BLOCKS)
    theirs = h.ir.and_(h.nonzero(table), h.nonzero(h.ir.and_(kinds, h.i32(Kinds.GLOBAL))))

    def after() -> Any:
        place = h.ir.add(table, h.ir.shl(h.ir.zext(block, i64), h.i64(3)))
        fence = h.load(h.ir.inttoptr(place, pointer), 0, i64)
        return h.ir.icmp_unsigned(">=", h.ir.lshr(fence, h.i64(EPOCH_SHIFT)), h.ir.lshr(word, h.i64(EPOCH_SHIFT)))

    h.ir.store(h.ir.select(h.asked_if(theirs, after), h.i32(2), h.i32(0)), found)
    anyhow = h.ir.or_(h.zero(shadow.get(Shadow.GRAPH)), h.zero(shadow.get(Shadow.ACQUIRED)))

    def of_warp(warp: Any) -> Any:
        count = h.ir.zext(orders.get(ProxyShadow.FENCES, warp, i32), i64)
        kept = h.ir.select(h.ir.icmp_unsigned("<", count, h.i64(EVENTS)), count, h.i64(EVENTS))

        def one(number: Any) -> Any:
            event, fence = orders.fence(warp, h.ir.sub(h.ir.sub(count, number), h.i64(1)))
            epoch = h.load(event, FenceEvent.EPOCH, i64)
            good = reduce(h.ir.and_, (
                h.nonzero(h.ir.and_(h.load(event, FenceEvent.KINDS, i32), kinds)),
                h.ir.icmp_unsigned("<", word, epoch),
                h.ir.or_(anyhow, h.nonzero(h.load(event, FenceEvent.ACQUIRED, i64))),
            ))
            good = h.asked_if(good, lambda: orders.before(epoch, who, fence.mask))
            oldest = h.ir.and_(
                h.ir.icmp_unsigned("==", h.ir.add(number, h.i64(1)), h.i64(EVENTS)),
                h.ir.and_(h.ir.icmp_unsigned(">", count, h.i64(EVENTS)), h.ir.icmp_unsigned("<", word, epoch)),
            )
            with h.ir.if_then(h.ir.or_(good, oldest)):
                h.ir.store(h.i32(2), found)
            return h.ir.add(number, h.i64(1))

        h.loop(h.i64(0), lambda n: h.ir.and_(h.ir.icmp_unsigned("<", n, kept), h.zero(h.ir.load(found))), one)
        return h.ir.add(warp, h.i64(1))

    h.loop(h.i64(0), lambda n: h.ir.and_(h.ir.icmp_unsigned("<", n, h.i64(LANES)), h.zero(h.ir.load(found))), of_warp)
    return h.ir.load(found)
