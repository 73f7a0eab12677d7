"""Texture and surface instructions: operands into a request, a unit for each lane, results out of it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...machine.texture_pool import HEADERS, Header, Request
from ...machine.layout import LANES, Block
from ...machine.status import Status
from ...instructions.textures import HandleTest, HeaderQuery, ImageRequest
from ..handler import Handler, i32, i64, lanes_of, pointer
from ..data import fit, guard_mask, put, slots_of, source
from ..registry import builds, emits
from .unit import UNIT, Unit


@emits(ImageRequest)
def image_request(h: Handler, op: ImageRequest) -> None:
    dests, bits = op.dests, op.bits
    pool, unit = h.field("q"), h.ir.inttoptr(h.field("q"), UNIT.as_pointer())
    mask = guard_mask(h, op.guard, True)
    place = h.ir.alloca(ir.ArrayType(i64, Request.nbytes // 8))
    place.align = 64
    base = h.ir.bitcast(place, pointer)
    for offset, kind, size, real in op.inputs:
        value = fit(h, source(h, kind, LANES), size, False)
        if real:
            value = h.ir.bitcast(h.ir.sitofp(value, lanes_of(ir.FloatType())), lanes_of(i32))
        h.store(value, base, offset, size // 8)
    *slots, flag = slots_of(h, (*dests, op.resident))
    if op.guard:
        h.skip_unless_any(mask)

    def one(lane: Any) -> None:
        fault = h.ir.call(unit, [pool, base, lane])
        with h.ir.if_then(h.nonzero(fault), likely=False):
            h.stop(Status.FAULT)
            h.store(fault, h.block, Block.FAULT_KIND)
            h.store(lane, h.block, Block.FAULT_LANE)
            h.ir.ret_void()

    h.for_each_lane(mask, one)
    element = lanes_of(ir.IntType(bits))
    step = bits // 8 * LANES
    count = 4 if op.conversion else len(dests)
    values = [h.load(base, Request.RESULT + step * number, element, bits // 8) for number in range(count)]
    kept = mask if op.masked or op.guard else None
    for dest, slot, value in zip(dests, slots, _converted(h, values, op.conversion)):
        if slot is not None:
            put(h, slot, fit(h, value, dest.bits, False), kept)
    if flag is not None:
        put(h, flag, h.bools(h.i32(-1)), kept)
    h.next()


def _converted(h: Handler, values: list[Any], conversion: str) -> list[Any]:
    """The results in the type that is asked for."""
    if not conversion:
        return values
    halves = []
    for value in values:
        real = h.ir.bitcast(value, lanes_of(ir.FloatType()))
        halves.append(h.ir.bitcast(h.ir.fptrunc(real, lanes_of(ir.HalfType())), lanes_of(ir.IntType(16))))
    if conversion == "half":
        return halves
    wide = [h.ir.zext(half, lanes_of(i32)) for half in halves]
    sixteen = h.splat(h.i32(16))
    return [h.ir.or_(wide[n], h.ir.shl(wide[n + 1], sixteen)) for n in (0, 2)]


@builds(HeaderQuery)
def header_query(module: ir.Module, name: str, key: HeaderQuery) -> None:
    unit = Unit(module, name)
    header = unit.header(Request.HANDLE, *key.kinds)
    if key.level:
        number = unit.given(Request.LOD).min(unit.field(header, Header.LEVELS) - 1)
        header = unit.at(unit.load(header, Header.TABLE, pointer, 8), number * key.level)
    unit.answer(unit.field(header, key.offset).value, Request.RESULT, 4)
    unit.fine()


@emits(HandleTest)
def handle_test(h: Handler, op: HandleTest) -> None:
    pool = h.splat(h.field("q"))
    mask = guard_mask(h, op.guard, op.masked)
    slot = h.slot()
    handles = source(h, op.handle, LANES)
    distance = h.ir.sub(handles, pool)
    inside = h.ir.icmp_unsigned("<", distance, h.splat(h.i64(HEADERS * Header.nbytes)))
    odd = h.ir.and_(distance, h.splat(h.i64(Header.nbytes - 1)))
    inside = h.ir.and_(inside, h.ir.icmp_unsigned("==", odd, h.splat(h.i64(0))))
    places = h.ir.inttoptr(handles, lanes_of(pointer))
    nothing = ir.Constant(lanes_of(i32), None)
    kinds = h.call("llvm.masked.gather.v32i32.v32p0", lanes_of(i32), places, h.i32(4), inside, nothing)
    value = h.ir.icmp_unsigned("==", kinds, h.splat(h.i32(op.wanted)))
    put(h, slot, value, mask)
    h.next()
