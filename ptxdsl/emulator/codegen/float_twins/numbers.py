"""Numbers beside their float64 twins: how they are read and kept, compared, and which cases are noted.

The error of a number is its distance from its twin, relative to the larger of the two, and never finer than the least
normal number of its format: what underflows is small, not wrong. Where one of the two is no finite number, and the
other is not the same, it is infinite. The error *arises* at the line at which it grew most on its way here; what grows
again and again at one line, as in a sum, is added up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Union

from llvmlite import ir

from ...machine.float_twins import OPERANDS, Case, Row, part_offsets
from ...machine.layout import LANES, Block, Warp
from ...semantics.formats import FORMATS, widen
from ...semantics.lanes import Bits, Lanes, Real
from ..handler import Handler, i32, i64, lanes_of

__all__ = [
    "ALIGN", "Cases", "Followed", "Sources", "kept_of", "put_twins", "reals_of", "relative", "taken", "tiny_of",
    "traced", "twins_at", "write_thread",
]

double, single = ir.DoubleType(), ir.FloatType()
ALIGN = 32
"""Of what a register's twins are made of."""


class Followed(NamedTuple):
    """A number of some format in f64, its twin, the line at which most of its error arose, and how much."""

    real: Real
    twin: Real
    origin: Bits
    arose: Real
    tiny: float

    @property
    def error(self) -> Real:
        return relative(self.real, self.twin, self.tiny)


Sources = Sequence[Followed]


def relative(real: Real, twin: Real, tiny: float) -> Real:
    """The error of a number whose format has ``tiny`` for its least normal number."""
    size = abs(real).call("maxnum", abs(twin)).call("maxnum", tiny)
    error = abs(real - twin) / size
    error = error.isnan().pick(float("inf"), error)
    alike = real.compare("==", twin) | (real.isnan() & twin.isnan())
    return alike.pick(0.0, error)


def tiny_of(shape: Any) -> float:
    """The least normal number of a layout's format."""
    return float(2.0 ** (1 - FORMATS[shape[0]].bias))


def reals_of(value: Bits, shape: Any) -> list[Real]:
    """The numbers of a register in f64."""
    name, count, slot = shape
    return [widen(value.field(slot * part, slot), FORMATS[name], 64) for part in range(count)]


def exact(b: Lanes, real: Real, shape: Any) -> Followed:
    """A number that is its own twin."""
    return Followed(real, real, b.bits(32, 0), b.number(32, 0.0), tiny_of(shape))


def taken(condition: Bits, one: Followed, other: Followed) -> Followed:
    """One of two where a condition holds."""
    real, twin = condition.pick(one.real, other.real), condition.pick(one.twin, other.twin)
    return Followed(
        real, twin, condition.pick(one.origin, other.origin), condition.pick(one.arose, other.arose), one.tiny
    )


def twins_at(
    h: Handler, value: Bits, shape: Any, slot: Any, moved: Callable[[Any], Any] = lambda found: found
) -> list[Followed]:
    """The numbers in a register and their twins, which lie at a slot, None for none; ``moved`` among the lanes."""
    b, bits = h.numbers(LANES), shape[1] * shape[2]
    value = value.resize(bits, False)
    own = [exact(b, real, shape) for real in reals_of(value, shape)]
    if slot is None:
        return own
    belongs = b.wrap(moved(h.load(slot, 0, lanes_of(ir.IntType(bits)), ALIGN))).eq(value)
    found = []
    for number, mine in enumerate(own):
        places = zip(part_offsets(bits, number), (double, i32, single))
        twin, origin, arose = (moved(h.load(slot, at, lanes_of(kind), ALIGN)) for at, kind in places)
        kept = Followed(mine.real, Real(b, twin, 64), b.wrap(origin), Real(b, arose, 32), mine.tiny)
        found.append(taken(belongs, kept, mine))
    return found


def kept_of(number: Followed) -> tuple[Any, Any, Any]:
    """What is kept of a number, in the order of a cell."""
    return number.twin.value, number.origin.value, number.arose.value


def put_twins(h: Handler, slot: Any, shape: Any, value: Bits, made: Sources, mask: Any) -> None:
    """Keep the twins of a register that holds ``value``, in the lanes of a mask."""
    bits = shape[1] * shape[2]
    where = h.bools(mask)

    def put(number: Any, at: int) -> None:
        old = h.load(slot, at, number.type, ALIGN)
        h.store(h.ir.select(where, number, old), slot, at, ALIGN)

    put(value.resize(bits, False).value, 0)
    for number, each in enumerate(made):
        for at, part in zip(part_offsets(bits, number), kept_of(each)):
            put(part, at)


def traced(error: Real, sources: Sources, line: Bits) -> tuple[Real, Bits, Real]:
    """The largest error of the operands, and at which line most of the result's arose, and how much of it."""
    b = error.b
    inherited, origin, arose = b.number(64, 0.0), b.bits(32, 0), b.number(32, 0.0)
    for source in sources:
        its = source.error
        more = its.compare(">", inherited)
        inherited = more.pick(its, inherited)
        origin, arose = more.pick(source.origin, origin), more.pick(source.arose, arose)
    growth = error - inherited
    growth = growth.isnan().pick(0.0, growth)
    before = arose.to(64).call("minnum", error)
    here = origin.eq(line)
    arises = here | growth.compare(">", before)
    amount = here.pick((before + growth).call("maxnum", 0.0), growth).call("minnum", error)
    amount = arises.pick(amount, before)
    none = error.compare("==", 0.0)
    return inherited, none.pick(0, arises.pick(line, origin)), none.pick(0.0, amount).to(32)


Detail = dict[int, Union[Real, Bits, Callable[[], Real]]]
"""What a case has; functions are asked where it is noted, which is seldom."""


class Cases:
    """What is noted of one instruction, in its row; of the lanes of a mask."""

    def __init__(self, h: Handler, row: Any, line: Any, mask: Any) -> None:
        self.h, self.row, self.mask = h, row, mask
        self.line = h.numbers(LANES).wrap(h.splat(line))

    def count(self) -> None:
        """Count the lanes."""
        self._add(Row.LANES, self.mask)

    def _add(self, field: int, mask: Any) -> Any:
        h = self.h
        before = h.load(self.row, field, i64)
        number = h.ir.zext(h.call("llvm.ctpop.i32", i32, mask), i64)
        h.store(h.ir.add(before, number), self.row, field)
        return before

    def judge(
        self, real: Real, twin: Any, sources: Sources, shape: Any, exactly: Callable[[], Any] | None = None
    ) -> Followed:
        """A result beside its twin, as a number that is followed; ``exactly`` is what it is without rounding."""
        b, tiny = real.b, tiny_of(shape)
        error = relative(real, twin, tiny)
        inherited, origin, arose = traced(error, sources, self.line)
        detail: Detail = {Case.REAL: real, Case.TWIN: twin, Case.INHERITED: inherited}
        if exactly is not None:
            detail[Case.ROUNDING] = lambda: relative(real, exactly(), tiny)
        self._worst(Row.WORST, error, detail, sources)
        self._worst(Row.ARISES, origin.eq(self.line).pick(arose.to(64), 0.0), detail, sources)
        size, infinity = abs(real), float("inf")
        numbers, finite = ~b.bits(1, 0), ~b.bits(1, 0)
        for source in sources:
            numbers, finite = numbers & ~source.real.isnan(), finite & abs(source.real).compare("<", infinity)
        self._first(Row.INFINITIES, Row.INFINITY, finite & size.compare("==", infinity), detail, sources)
        self._first(Row.NANS, Row.NAN, numbers & real.isnan(), detail, sources)
        return Followed(real, twin, origin, arose, tiny)

    def stored(self, number: Followed, addresses: Bits) -> None:
        """A number that is stored in an array."""
        detail: Detail = {
            Case.REAL: number.real, Case.TWIN: number.twin, Case.INHERITED: number.error, Case.ADDRESS: addresses,
            Case.ORIGIN: number.origin.zext(64),
        }
        self._worst(Row.WORST, number.error, detail, ())

    def decided(self, differ: Bits, sources: Sources) -> None:
        """A result that is no float: lanes where it is another one in float64."""
        self._first(Row.DECISIONS, Row.DECISION, differ, {}, sources)

    def _worst(self, case: int, measure: Real, detail: Detail, sources: Sources) -> None:
        h, b = self.h, measure.b
        measure = b.wrap(h.bools(self.mask)).pick(measure, 0.0)
        most = h.call(f"llvm.vector.reduce.fmax.v{LANES}f64", double, measure.value)
        known = h.load(self.row, case + Case.MEASURE, double)
        with h.ir.if_then(h.ir.fcmp_ordered(">", most, known), likely=False):
            there = h.ir.fcmp_ordered("==", measure.value, h.splat(most))
            self._write(case, h.first_lane(h.mask(there)), {Case.MEASURE: measure, **detail}, sources)

    def _first(self, count: int, case: int, where: Bits, detail: Detail, sources: Sources) -> None:
        h = self.h
        mask = h.ir.and_(h.mask(where.value), self.mask)
        with h.ir.if_then(h.nonzero(mask), likely=False):
            before = self._add(count, mask)
            with h.ir.if_then(h.zero(before)):
                self._write(case, h.first_lane(mask), detail, sources)

    def _write(self, case: int, lane: Any, detail: Detail, sources: Sources) -> None:
        h = self.h
        for field, given in detail.items():
            value = given() if callable(given) else given
            h.store(h.ir.extract_element(value.value, lane), self.row, case + field)
        for number, source in enumerate(sources[:OPERANDS]):
            for start, value in ((Case.SOURCES, source.real), (Case.TWINS, source.twin)):
                h.store(h.ir.extract_element(value.value, lane), self.row, case + start + 8 * number)
        h.store(h.i64(min(len(sources), OPERANDS)), self.row, case + Case.COUNT)
        write_thread(h, self.row, case, lane)


def write_thread(h: Handler, row: Any, case: int, lane: Any) -> None:
    """Which thread of which block a case is of."""
    warp = h.ir.mul(h.load(h.warp, Warp.INDEX, i32), h.i32(LANES))
    h.store(h.ir.zext(h.ir.add(warp, lane), i64), row, case + Case.THREAD)
    h.store(h.load(h.block, Block.CTA64, i64), row, case + Case.BLOCK)
