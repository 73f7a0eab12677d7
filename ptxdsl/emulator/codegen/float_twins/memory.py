"""Code of the micro-ops that follow floats to memory and back, for all lanes that access the same array at once."""

from __future__ import annotations

from typing import Any

from ...instructions.float_twins import TwinLoad, TwinStore
from ...machine.float_twins import Area, part_offsets
from ...machine.layout import LANES
from ..access import access_of
from ..data import guard_mask, source
from ..handler import Handler, i64, lanes_of, pointer
from ..registry import emits
from .areas import CELL, Lines, Plane, each_area, gather, scatter
from .numbers import ALIGN, Cases, kept_of, put_twins, twins_at

__all__: list[str] = []


@emits(TwinLoad, slow_path=True)
def twin_load(h: Handler, op: TwinLoad) -> None:
    count, b, shape = len(op.kept), h.numbers(LANES), op.shape
    access = access_of(h, op.address, None, op.bits // 8 * count, False)
    mask = guard_mask(h, op.guard, True)
    if op.guard:
        h.skip_unless_any(mask)
    plane = Plane(h, shape)
    values = [b.wrap(source(h, kind, LANES)) if has else None for kind, has in zip(op.dests, op.kept)]
    slots = [h.slot() if has else None for has in op.kept]
    hosts = access.hosts(mask)
    for value, slot in zip(values, slots):
        if value is not None:
            put_twins(h, slot, shape, value, twins_at(h, value, shape, None), mask)

    def one(_: Any, lines: Lines) -> None:
        for number, (value, slot) in enumerate(zip(values, slots)):
            for part in range(shape[1] if value is not None else 0):
                assert value is not None
                at = (number * op.bits + part * shape[2]) // 8
                code, where = value.field(part * shape[2], shape[2]).value, h.bools(lines.mask)
                held = gather(h, lines.words(at), code.type.element, 1, where, h.ir.not_(code))
                same = h.ir.and_(where, h.ir.icmp_unsigned("==", held, code))
                for (field, kind, align), place in zip(CELL, part_offsets(op.bits, part)):
                    old = h.load(slot, place, lanes_of(kind), ALIGN)
                    h.store(gather(h, lines.cell(at, field), kind, align, same, old), slot, place, ALIGN)

    each_area(h, plane, hosts, mask, one)
    h.next()


@emits(TwinStore, slow_path=True)
def twin_store(h: Handler, op: TwinStore) -> None:
    count, b, shape = len(op.kept), h.numbers(LANES), op.shape
    access = access_of(h, op.address, None, op.bits // 8 * count, True)
    mask = guard_mask(h, op.guard, True)
    if op.guard:
        h.skip_unless_any(mask)
    plane = Plane(h, shape)
    row, line = h.ir.inttoptr(h.field("q"), pointer), h.field()
    values = [
        b.wrap(source(h, kind, LANES)).resize(op.bits, False) if wanted else None
        for kind, wanted in zip(op.sources, op.wanted)
    ]
    slots = [h.slot() if has else None for has in op.kept]
    numbers = [None if v is None else twins_at(h, v, shape, slot) for v, slot in zip(values, slots)]
    hosts = access.hosts(mask)

    def one(area: Any, lines: Lines) -> None:
        where = h.bools(lines.mask)
        for number, (value, parts) in enumerate(zip(values, numbers)):
            for part, each in enumerate(parts or ()):
                assert value is not None
                at = (number * op.bits + part * shape[2]) // 8
                scatter(h, value.field(part * shape[2], shape[2]).value, lines.words(at), 1, where)
                for (field, _, align), kept in zip(CELL, kept_of(each)):
                    scatter(h, kept, lines.cell(at, field), align, where)
        with h.ir.if_then(h.nonzero(h.load(area, Area.ARRAY, i64))):
            cases = Cases(h, row, line, lines.mask)
            for number, parts in enumerate(numbers):
                for part, each in enumerate(parts or ()):
                    at = (number * op.bits + part * shape[2]) // 8
                    cases.stored(each, b.wrap(h.ir.add(hosts, h.splat(h.i64(at)))))

    each_area(h, plane, hosts, mask, one)
    Cases(h, row, line, mask).count()
    h.next()
