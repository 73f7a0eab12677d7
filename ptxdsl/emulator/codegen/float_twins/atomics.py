"""Code of the micro-op that follows atomics: lane by lane, in the order of the lanes, as these are made."""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir

from ....isa import lookup
from ...instructions.float_twins import TwinAtomic
from ...machine.float_twins import Case, Row
from ...machine.layout import LANES
from ...semantics.float64 import compute, parts_of
from ...semantics.lanes import Bits, Lanes, Real
from ..access import access_of
from ..atomics import changed, element_at, place_at, spill
from ..data import fit, guard_mask, source
from ..handler import Handler, i32, i64, lanes_of, pointer
from ..registry import emits
from .areas import CELL, Plane, there
from .numbers import Followed, put_twins, reals_of, relative, tiny_of, traced, twins_at, write_thread

__all__: list[str] = []

double, single = ir.DoubleType(), ir.FloatType()
Kept = tuple[Any, ...]
"""What a cell has, as integers."""


@emits(TwinAtomic, slow_path=True)
def twin_atomic(h: Handler, op: TwinAtomic) -> None:
    bits = op.shape[1] * op.shape[2]
    access = access_of(h, op.address, None, bits // 8 * len(op.sources[0]), True)
    mask = guard_mask(h, op.guard, True)
    if op.guard:
        h.skip_unless_any(mask)
    update = _Update(h, op)
    hosts = spill(h, access.hosts(mask))
    for step in (update.renew, update.one):
        h.for_each_lane(mask, partial(update.at, hosts, step))
    update.finish(mask)
    h.next()


class _Update:
    """An atomic on real numbers and on their twins."""

    def __init__(self, h: Handler, op: TwinAtomic) -> None:
        self.h, self.op, self.shape = h, op, op.shape
        self.bits, self.b = op.shape[1] * op.shape[2], Lanes(h.ir, 1)
        self.plane = Plane(h, op.shape)
        self.row, self.line = h.ir.inttoptr(h.field("q"), pointer), self.b.wrap(h.field())
        self.parts = parts_of(lookup(op.function)[0]) if op.function else ()
        self.slots = [h.slot() if has else None for has in op.dests]
        self.given = [
            [self._source(kind, has) for kind, has in zip(kinds, kept)] for kinds, kept in zip(op.sources, op.kept)
        ]
        zero = h.numbers(LANES).bits(self.bits, 0)
        self.into = [
            _Spilled(h, op.shape, zero, twins_at(h, zero, op.shape, None)) if slot is not None else None
            for slot in self.slots
        ]

    def _source(self, kind: Any, has: bool) -> _Spilled:
        h = self.h
        value = h.numbers(LANES).wrap(fit(h, source(h, kind, LANES), self.bits, False))
        return _Spilled(h, self.shape, value, twins_at(h, value, self.shape, h.slot() if has else None))

    def at(self, hosts: Any, step: Any, lane: Any) -> None:
        """Make a step where the address of a lane is in an area."""
        address = element_at(self.h, hosts, lane, i64)
        area = self.plane.area(address)
        with self.h.ir.if_then(there(self.h, area)):
            step(self.plane.place(area, address), address, lane)

    def renew(self, place: Any, address: Any, lane: Any) -> None:  # noqa: ARG002
        """Before the first lane: where the copy does not agree with the memory, that is its own twin."""
        h, slot = self.h, self.shape[2]
        for at in range(0, len(self.op.sources[0]) * self.bits // 8, slot // 8):
            held = h.load(h.ir.inttoptr(address, pointer), at, ir.IntType(slot), 1)
            with h.ir.if_then(h.ir.icmp_unsigned("!=", held, place.word(at, slot))):
                place.put_word(at, held)
                own = reals_of(self.b.wrap(held), (self.shape[0], 1, slot))[0]
                _write_cell(h, place.cell(at), (own.to_bits().value, h.i32(0), h.i32(0)))

    def one(self, place: Any, address: Any, lane: Any) -> None:  # noqa: ARG002
        """What the atomic does for a lane."""
        h, op = self.h, self.op
        for number in range(len(op.sources[0])):
            start = number * self.bits // 8
            old = place.word(start, self.bits)
            dest = self.into[number] if number < len(self.into) else None
            if dest is not None:
                dest.put_whole(lane, old)
            words = [group[number].word(lane) for group in self.given]
            new = changed(h, op.operation, op.function, old, words)
            for part in range(self.shape[1]):
                cell = place.cell(start + part * self.shape[2] // 8)
                before = _read_cell(h, cell)
                if dest is not None:
                    dest.put(lane, part, before)
                values = [group[number].part(lane, part) for group in self.given]
                _write_cell(h, cell, self._twin(lane, part, (old, new), before, words, values))
            place.put_word(start, new)

    def finish(self, mask: Any) -> None:
        """Keep the twins of what was there before."""
        for slot, dest in zip(self.slots, self.into):
            if slot is not None and dest is not None:
                whole = dest.whole()
                made = dest.back(reals_of(whole, self.shape), tiny_of(self.shape))
                put_twins(self.h, slot, self.shape, whole, made, mask)

    def _twin(
        self, lane: Any, part: int, change: tuple[Any, Any], before: Kept, words: list[Any], values: list[Kept]
    ) -> Kept:
        h, (old, new) = self.h, change
        if not self.op.function:
            if self.op.operation == "exch":
                return tuple(values[0])
            same = h.ir.icmp_unsigned("==", old, words[0])
            return tuple(h.ir.select(same, after, kept) for after, kept in zip(values[1], before))
        held, given = self._followed(old, part, before), self._followed(words[0], part, values[0])
        number, shape = self.parts[part], self.op.shape
        twin, = compute(self.b, number, [held.twin, given.twin])
        assert isinstance(twin, Real)
        real = reals_of(self.b.wrap(new), shape)[part]
        error = relative(real, twin, held.tiny)
        inherited, origin, arose = traced(error, [held, given], self.line)
        self._note(lane, Row.WORST, error, real, twin, inherited)
        own = origin.eq(self.line).pick(arose.to(64), 0.0)
        self._note(lane, Row.ARISES, own, real, twin, inherited)
        h.store(h.ir.add(h.load(self.row, Row.LANES, i64), h.i64(1)), self.row, Row.LANES)
        return twin.to_bits().value, origin.value, arose.to_bits().value

    def _followed(self, word: Any, part: int, values: Kept) -> Followed:
        h, b = self.h, self.b
        real = reals_of(b.wrap(word), self.op.shape)[part]
        twin, arose = Real(b, h.ir.bitcast(values[0], double), 64), Real(b, h.ir.bitcast(values[2], single), 32)
        return Followed(real, twin, b.wrap(values[1]), arose, tiny_of(self.op.shape))

    def _note(self, lane: Any, case: int, measure: Real, real: Real, twin: Real, inherited: Real) -> None:
        h = self.h
        known = h.load(self.row, case + Case.MEASURE, double)
        with h.ir.if_then(h.ir.fcmp_ordered(">", measure.value, known), likely=False):
            for field, value in (
                (Case.MEASURE, measure), (Case.REAL, real), (Case.TWIN, twin), (Case.INHERITED, inherited)
            ):
                h.store(value.value, self.row, case + field)
            write_thread(h, self.row, case, lane)


class _Spilled:
    """Numbers of each lane in memory: the bits of each register, and the twin, the line and the error of each part."""

    def __init__(self, h: Handler, shape: Any, value: Bits, numbers: list[Followed]) -> None:
        self.h, self.shape = h, shape
        self.value = spill(h, value.resize(shape[1] * shape[2], False).value)
        self.parts = [
            [spill(h, h.ir.bitcast(v, lanes_of(kind))) for v, kind in
             ((each.twin.value, i64), (each.origin.value, i32), (each.arose.value, i32))]
            for each in numbers
        ]

    def word(self, lane: Any) -> Any:
        return element_at(self.h, self.value, lane, ir.IntType(self.shape[1] * self.shape[2]))

    def part(self, lane: Any, part: int) -> tuple[Any, Any, Any]:
        found = [element_at(self.h, array, lane, kind) for array, kind in zip(self.parts[part], (i64, i32, i32))]
        return found[0], found[1], found[2]

    def put(self, lane: Any, part: int, values: Kept) -> None:
        for array, value in zip(self.parts[part], values):
            self.h.ir.store(value, place_at(self.h, array, lane, value.type), align=value.type.width // 8)

    def put_whole(self, lane: Any, value: Any) -> None:
        self.h.ir.store(value, place_at(self.h, self.value, lane, value.type), align=value.type.width // 8)

    def back(self, reals: list[Any], tiny: float) -> list[Followed]:
        """As vectors again."""
        h, b, found = self.h, self.h.numbers(LANES), []
        for real, arrays in zip(reals, self.parts):
            twin, origin, arose = (
                h.ir.load(h.ir.bitcast(array, lanes_of(kind).as_pointer()), align=16, typ=lanes_of(kind))
                for array, kind in zip(arrays, (double, i32, single))
            )
            found.append(Followed(real, Real(b, twin, 64), b.wrap(origin), Real(b, arose, 32), tiny))
        return found

    def whole(self) -> Bits:
        kind = lanes_of(ir.IntType(self.shape[1] * self.shape[2]))
        return self.h.numbers(LANES).wrap(
            self.h.ir.load(self.h.ir.bitcast(self.value, kind.as_pointer()), align=16, typ=kind)
        )


def _read_cell(h: Handler, cell: Any) -> Kept:
    return tuple(h.load(cell, field, ir.IntType(8 * nbytes)) for field, _, nbytes in CELL)


def _write_cell(h: Handler, cell: Any, values: Kept) -> None:
    for offset, value in zip([field for field, _, _ in CELL], values):
        h.store(value, cell, offset)
