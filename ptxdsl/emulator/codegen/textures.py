"""Handlers of texture and surface instructions: operands into a request, a unit for each lane, results out of it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.texture_pool import HEADERS, Header, Request
from ..machine.layout import LANES, Block, Status
from .library import Shape
from .handler import Handler, i32, i64, lanes_of, pointer
from .data import fit, guard_mask, put, source
from .texture_request import UNIT, Unit

__all__ = ["kind_of", "query_unit", "request"]


def request(module: ir.Module, name: str, shape: Shape) -> None:
    """("request", inputs, class of each result, their bits, how they are made, whether resident, guard, masked, codes).

    An input is its place in the request, its class, its bits, and whether an integer becomes a float. ``made`` is ""
    for results as they are, "half" for f16, "pairs" for f16x2. Behind the results may stand a predicate that always
    holds: texels are resident.
    """
    _, inputs, dests, bits, made, resident, guard, masked, codes = shape
    h = Handler(module, name, codes)
    pool, unit = h.field("q"), h.ir.inttoptr(h.field("q"), UNIT.as_pointer())
    mask = guard_mask(h, guard, True)
    place = h.ir.alloca(ir.ArrayType(i64, Request.nbytes // 8))
    place.align = 64
    base = h.ir.bitcast(place, pointer)
    for offset, kind, size, real in inputs:
        value = fit(h, source(h, kind, LANES), size, False)
        if real:
            value = h.ir.bitcast(h.ir.sitofp(value, lanes_of(ir.FloatType())), lanes_of(i32))
        h.store(value, base, offset, size // 8)
    slots = [None if dest == "_" else h.slot() for dest in dests]
    flag = None if resident in ("", "_") else h.slot()
    if guard:
        go, skip = h.block_named("go"), h.block_named("skip")
        h.ir.cbranch(h.ir.icmp_unsigned("!=", mask, h.i32(0)), go, skip)
        h.ir.position_at_end(skip)
        h.goto(h.following())
        h.ir.position_at_end(go)

    def one(lane: Any) -> None:
        fault = h.ir.call(unit, [pool, base, lane])
        good, bad = h.block_named("good"), h.block_named("bad")
        h.ir.cbranch(h.likely(h.ir.icmp_unsigned("==", fault, h.i32(0))), good, bad)
        h.ir.position_at_end(bad)
        h.stop(Status.FAULT)
        h.store(fault, h.block, Block.FAULT_KIND)
        h.store(lane, h.block, Block.FAULT_LANE)
        h.ir.ret_void()
        h.ir.position_at_end(good)

    h.for_each_lane(mask, one)
    element = lanes_of(ir.IntType(bits))
    step = bits // 8 * LANES
    count = 4 if made else len(dests)
    values = [h.load(base, Request.RESULT + step * number, element, bits // 8) for number in range(count)]
    kept = mask if masked or guard else None
    for dest, slot, value in zip(dests, slots, _made(h, values, made)):
        if slot is not None:
            put(h, slot, fit(h, value, int(dest[1:]), False), kept)
    if flag is not None:
        put(h, flag, h.bools(h.i32(-1)), kept)
    h.next()


def _made(h: Handler, values: list[Any], made: str) -> list[Any]:
    """The results in the type that is asked for."""
    if not made:
        return values
    halves = []
    for value in values:
        real = h.ir.bitcast(value, lanes_of(ir.FloatType()))
        halves.append(h.ir.bitcast(h.ir.fptrunc(real, lanes_of(ir.HalfType())), lanes_of(ir.IntType(16))))
    if made == "half":
        return halves
    wide = [h.ir.zext(half, lanes_of(i32)) for half in halves]
    sixteen = h.splat(h.i32(16))
    return [h.ir.or_(wide[n], h.ir.shl(wide[n + 1], sixteen)) for n in (0, 2)]


def query_unit(module: ir.Module, name: str, shape: Shape) -> None:
    """("query_unit", kinds of headers, offset, bytes of a level or 0): a number of a header, or of a mipmap level."""
    _, kinds, offset, level = shape
    unit = Unit(module, name)
    header = unit.header(Request.HANDLE, *kinds)
    if level:
        number = unit.given(Request.LOD).min(unit.field(header, Header.LEVELS) - 1)
        header = unit.at(unit.load(header, Header.TABLE, pointer, 8), number * level)
    unit.answer(unit.field(header, offset).value, Request.RESULT, 4)
    unit.fine()


def kind_of(module: ir.Module, name: str, shape: Shape) -> None:
    """("kind_of", kind, dest, class of a, guard, masked, codes): istypep."""
    _, kind, _, a, guard, masked, codes = shape
    h = Handler(module, name, codes)
    pool = h.splat(h.field("q"))
    mask = guard_mask(h, guard, masked)
    slot = h.slot()
    handles = source(h, a, LANES)
    distance = h.ir.sub(handles, pool)
    inside = h.ir.icmp_unsigned("<", distance, h.splat(h.i64(HEADERS * Header.nbytes)))
    odd = h.ir.and_(distance, h.splat(h.i64(Header.nbytes - 1)))
    inside = h.ir.and_(inside, h.ir.icmp_unsigned("==", odd, h.splat(h.i64(0))))
    places = h.ir.inttoptr(handles, lanes_of(pointer))
    nothing = ir.Constant(lanes_of(i32), None)
    kinds = h.call("llvm.masked.gather.v32i32.v32p0", lanes_of(i32), places, h.i32(4), inside, nothing)
    value = h.ir.icmp_unsigned("==", kinds, h.splat(h.i32(kind)))
    put(h, slot, value, mask)
    h.next()
