"""The masks of :mod:`..instructions.undefined`: which registers hold an undefined number in which lanes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..instructions.undefined import (
    AbsorbUndefined, ClearUndefined, DemandDefined, SelectUndefined, ShuffleUndefined, SpreadUndefined,
)
from ..machine.layout import LANES, Warp
from ..machine.status import Fault
from .data import guard_mask, source
from .handler import Handler, byte, i1, i32, lanes_of, zeros
from .registry import emits
from .warp import sources_of

__all__: list[str] = []

words = lanes_of(i32)


@emits(ClearUndefined)
def clear(h: Handler, _: ClearUndefined) -> None:
    place, nbytes = h.slot(), h.extended(h.field())
    h.call("llvm.memset.p0.i64", ir.VoidType(), place, ir.Constant(byte, 0), nbytes, ir.Constant(i1, 0))
    h.next()


def _masks(h: Handler, count: int) -> Any:
    found: Any = h.i32(0)
    for _ in range(count):
        found = h.ir.or_(found, h.load(h.slot(), 0, i32))
    return found


def _put(h: Handler, place: Any, mask: Any, lanes: Any) -> None:
    old = h.load(place, 0, i32)
    h.store(h.ir.or_(h.ir.and_(old, h.ir.not_(lanes)), h.ir.and_(mask, lanes)), place, 0)


@emits(SpreadUndefined)
def spread(h: Handler, op: SpreadUndefined) -> None:
    lanes = guard_mask(h, op.guard, True)
    perhaps = h.ir.and_(h.active, h.load(h.slot(), 0, i32))
    mask = h.ir.or_(_masks(h, op.sources), perhaps)
    for _ in range(op.written):
        _put(h, h.slot(), mask, h.ir.or_(lanes, perhaps))
    h.next()


@emits(AbsorbUndefined)
def absorb(h: Handler, op: AbsorbUndefined) -> None:
    mask = _masks(h, op.sources)
    values = [guard_mask(h, kind, False) for kind in op.predicates]
    for value in values:
        decides = h.ir.not_(value) if op.neutral else value
        mask = h.ir.and_(mask, h.ir.not_(h.ir.and_(decides, h.ir.not_(h.load(h.slot(), 0, i32)))))
    for _ in range(op.written):
        _put(h, h.slot(), mask, h.active)
    h.next()


@emits(SelectUndefined)
def select(h: Handler, op: SelectUndefined) -> None:
    lanes = guard_mask(h, op.guard, True)
    chosen = guard_mask(h, op.predicate, False)
    yes, no, which = (h.load(h.slot(), 0, i32) for _ in range(3))
    picked = h.ir.or_(h.ir.and_(chosen, yes), h.ir.and_(h.ir.not_(chosen), no))
    _put(h, h.slot(), h.ir.or_(picked, which), lanes)
    h.next()


@emits(ShuffleUndefined)
def shuffle(h: Handler, op: ShuffleUndefined) -> None:
    lanes = guard_mask(h, op.guard, True)
    taken = sources_of(h, op.mode, op.constant, op.b, op.c)[0]
    group = h.splat(lanes)
    if op.members:
        group = h.ir.and_(group, source(h, op.members, LANES))
    place, before, result, origins = h.field(), h.slot(), h.slot(), h.slot()

    def there(mask: Any) -> Any:
        return h.ir.trunc(h.ir.lshr(mask, taken), lanes_of(i1))

    missing = h.ir.and_(lanes, h.ir.not_(h.mask(there(group))))
    mask = h.ir.or_(missing, h.mask(there(h.splat(h.load(before, 0, i32)))))
    _put(h, result, mask, lanes)
    word = h.ir.or_(h.splat(h.ir.or_(h.ir.shl(place, h.i32(8)), h.i32(-(1 << 31)))), taken)
    known = (h.load(h.warp, Warp.INITIAL, i32), h.load(h.warp, Warp.ALIVE, i32), lanes)
    for bit, which in enumerate(known):
        word = h.ir.or_(word, h.ir.shl(h.ir.zext(there(h.splat(which)), words), h.splat(h.i32(5 + bit))))
    old = h.load(origins, 0, words)
    first = h.ir.icmp_unsigned("==", old, zeros(words))
    h.store(h.ir.select(h.ir.and_(h.bools(missing), first), word, old), origins, 0)
    h.next()


@emits(DemandDefined)
def demand(h: Handler, op: DemandDefined) -> None:
    lanes = guard_mask(h, op.guard, True)
    decides = h.load(h.slot(), 0, i32)
    mask = h.ir.or_(h.ir.and_(lanes, _masks(h, op.sources)), h.ir.and_(h.active, decides))
    h.branch_unless(h.zero(mask), lambda: h.fault(Fault.UNDEFINED, mask))
    h.next()
