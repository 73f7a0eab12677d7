"""Instructions that only compute: their semantics between loads and stores of register slots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir

from ...isa import OperandSpec, lookup
from .. import semantics
from ..machine.layout import Block, Launch
from ..machine.status import Fault, Status
from ..semantics.lanes import Lanes, integer_range
from ..instructions.data import Compute, ReadClock, SpaceTest, WrapCheck
from ..instructions.operand_classes import ABSENT, NEGATED, PREDICATE, SINK, OperandClass
from .handler import Handler, i1, i32, i64, lanes_of, pointer
from .registry import emits

__all__ = ["cut", "fit", "guard_mask", "put", "slots_of", "source", "within"]


def source(h: Handler, kind: Any, width: int) -> Any:
    """The value of the next operand: <32 x iN> at width 32, iN at width 1; a tuple for an operand in braces."""
    if isinstance(kind, tuple):
        return tuple(source(h, item, width) for item in kind)
    if kind in (PREDICATE, NEGATED):
        mask = guard_mask(h, kind, False)
        return h.bools(mask) if width > 1 else h.ir.trunc(mask, i1)
    bits = kind.bits
    element = ir.IntType(bits)
    if kind.immediate:
        number = h.field("q")
        if bits == 128:
            number = h.ir.or_(h.ir.zext(number, element), h.ir.shl(h.ir.zext(h.field("q"), element), element(64)))
        elif bits < 64:
            number = h.ir.trunc(number, element)
        return h.splat(number) if width > 1 else number
    slot = h.add(h.block, h.field()) if kind.block_field else h.slot()
    if kind.per_lane:
        if width == 1:
            raise AssertionError("one number is wanted of a register that has one a lane")
        return h.load(slot, 0, lanes_of(element))
    number = h.load(slot, 0, element)
    if width == 1:
        return number
    spread = h.splat(number)
    if kind.affine:
        spread = h.ir.add(spread, h.lane_offsets(h.field("q"), bits))
    return spread


def slots_of(h: Handler, dests: Iterable[OperandClass]) -> list[Any]:
    """Where results go; None for a sink, or where there is none."""
    return [None if dest in (SINK, ABSENT) else h.slot() for dest in dests]


def put(h: Handler, slot: Any, value: Any, mask: Any) -> None:
    """Store a result in its slot; only in the lanes of the i32 ``mask`` unless that is None."""
    kind = value.type
    if mask is not None and not h.keeps(slot):
        mask = None
    if kind == i1:  # a uniform predicate is kept as a mask too
        value, kind = h.ir.sext(value, i32), i32
    elif isinstance(kind, ir.VectorType) and kind.element == i1:
        value, kind = h.mask(value), i32
        if mask is not None:
            old = h.load(slot, 0, i32)
            value = h.ir.or_(h.ir.and_(value, mask), h.ir.and_(old, h.ir.not_(mask)))
    elif mask is not None:
        value = h.ir.select(h.bools(mask), value, h.held(slot, kind))
    h.store(value, slot, 0)


def guard_mask(h: Handler, guard: OperandClass, masked: bool) -> Any:
    """The lanes that execute: those of the guard, if there is one, that are active; None for all."""
    mask = None
    if guard:
        mask = h.load(h.slot(), 0, i32)
        mask = h.ir.not_(mask) if guard == NEGATED else mask
    if masked:
        mask = h.active if mask is None else h.ir.and_(mask, h.active)
    return mask


def fit(h: Handler, value: Any, bits: int, signed: bool) -> Any:
    """The value widened or cut to the width of its register or operand."""
    kind = value.type
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    if element.width == bits:
        return value
    wanted = ir.VectorType(ir.IntType(bits), kind.count) if isinstance(kind, ir.VectorType) else ir.IntType(bits)
    if element.width > bits:
        return h.ir.trunc(value, wanted)
    return (h.ir.sext if signed else h.ir.zext)(value, wanted)


@emits(Compute)
def compute(h: Handler, op: Compute) -> None:
    width, kinds, form = op.width, op.operands, lookup(op.mnemonic)[op.number]
    mask = guard_mask(h, op.guard, op.masked)
    if width == 1 and mask is not None:
        h.skip_unless_any(mask)
        mask = None
    places: list[tuple[OperandSpec | None, tuple[OperandClass, ...], list[Any]]] = []
    values: list[Any] = []
    for spec, kind in zip(form.operands, kinds):
        if spec.written:
            items = kind if isinstance(kind, tuple) else (kind,)
            slots = slots_of(h, items)
            places.append((spec, items, slots))
            if spec.role == "rw":
                loaded = tuple(h.load(slot, 0, _register(item, width)) for item, slot in zip(items, slots))
                values.append(loaded if isinstance(kind, tuple) else loaded[0])
        elif isinstance(kind, OperandClass) and kind.shaping:
            values.append(kind.bits)
        else:
            values.append(cut(h, source(h, kind, width), spec))
    if form.effects.reads_carry:
        values.append(source(h, kinds[len(form.operands)], width))
    if form.effects.writes_carry:
        places.append((None, (kinds[-1],), [h.slot()]))
    named = {"selectors": op.selectors} if op.selectors else {}
    result = semantics.lookup(form)(h.numbers(width), form, *values, **named)
    for (written, items, slots), value in zip(places, result if len(places) > 1 else (result,)):
        signed = written is not None and written.type is not None and written.type.is_signed
        for item, slot, part in zip(items, slots, value if isinstance(value, tuple) else (value,)):
            if slot is not None:
                if item.per_lane != (width > 1):
                    raise AssertionError(f"a result of width {width} for the class {item}")
                put(h, slot, part if item.predicate else fit(h, part, item.bits, signed), mask)
    h.next()


@emits(SpaceTest)
def space_test(h: Handler, op: SpaceTest) -> None:
    width = op.width
    mask = guard_mask(h, op.guard, op.masked)
    slot = h.slot()
    address = Lanes(h.ir, width).wrap(source(h, op.address, width))
    found = address.b.bits(1, int(op.negated))
    for letter in op.ranges:
        moved = h.load(h.block, h.field(), i64) if letter == "B" else i64(0)
        base, size = (fit(h, each, address.bits, False) for each in (h.ir.add(moved, h.field("q")), h.field("q")))
        if width > 1:
            base, size = h.splat(base), h.splat(size)
        found = found ^ (address - address.b.wrap(base)).lt(address.b.wrap(size))
    value = found.value
    if width == 1 and mask is not None:
        old = h.ir.trunc(h.load(slot, 0, i32), i1)
        value = h.ir.select(h.nonzero(mask), value, old)
        mask = None
    put(h, slot, value, mask)
    h.next()


@emits(ReadClock)
def read_clock(h: Handler, op: ReadClock) -> None:
    mask = guard_mask(h, op.guard, op.masked)
    slot = h.slot()
    value = _clock(h, "timer" in op.register)
    if op.register.endswith("_hi"):
        value = h.ir.lshr(value, i64(32))
    value = fit(h, value, op.dest.bits, False)
    put(h, slot, value if op.dest.uniform else h.splat(value), None if op.dest.uniform else mask)
    h.next()


def _clock(h: Handler, timer: bool) -> Any:
    """The wall clock or the cycle counter, or what it showed last where the clocks are stopped."""
    launch = h.load(h.block, Block.LAUNCH, pointer, fixed=True)  # which the parameters follow
    last = (Launch.NANOSECONDS if timer else Launch.CYCLES) - Launch.nbytes
    with h.ir.if_then(h.zero(h.load(launch, Launch.STOPPED - Launch.nbytes, i32))):
        h.store(_nanoseconds(h) if timer else h.call("llvm.readcyclecounter", i64), launch, last)
    return h.load(launch, last, i64)


def _nanoseconds(h: Handler) -> Any:
    """The wall clock, from the C library."""
    kind = ir.FunctionType(i32, [i32, pointer])
    function = h.ir.module.globals.get("clock_gettime") or ir.Function(h.ir.module, kind, "clock_gettime")
    place = h.ir.bitcast(h.ir.alloca(ir.ArrayType(i64, 2)), pointer)
    h.ir.call(function, [i32(0), place])
    seconds, rest = h.load(place, 0, i64), h.load(place, 8, i64)
    return h.ir.add(h.ir.mul(seconds, i64(1_000_000_000)), rest)


def cut(h: Handler, value: Any, spec: OperandSpec) -> Any:
    """A source at the width of its operand: an instruction such as cvt takes a wider register."""
    if isinstance(value, tuple):
        return tuple(cut(h, item, spec) for item in value)
    return value if spec.type is None or spec.type.kind == "p" else fit(h, value, spec.type.bits, False)


def _register(item: OperandClass, width: int) -> ir.Type:
    element = ir.IntType(item.bits)
    return lanes_of(element) if width > 1 else element


@emits(WrapCheck)
def wrap_check(h: Handler, op: WrapCheck) -> None:
    base = source(h, op.base, 1)
    good = within(h, base, h.field("q"), h.field("q"), op.signed)

    def leave() -> None:
        h.store(h.i32(Fault.WRAP), h.block, Block.FAULT_KIND)
        h.stop(Status.DEOPT)
        h.ir.ret_void()

    h.branch_unless(good, lambda: h.deoptimise(leave))
    h.next()


def within(h: Handler, base: Any, low: Any, high: Any, signed: bool) -> Any:
    """Whether the base plus each of two i64 offsets is a number of its type."""
    wide = (h.ir.sext if signed else h.ir.zext)(base, i64)
    least, most = integer_range(base.type.width, signed)
    good = h.ir.icmp_signed(">=", h.ir.add(wide, low), h.i64(least))
    return h.ir.and_(good, h.ir.icmp_signed("<=", h.ir.add(wide, high), h.i64(most)))
