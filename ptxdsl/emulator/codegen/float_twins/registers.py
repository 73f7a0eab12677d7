"""Code of the micro-ops that follow floats in float64 (:mod:`...instructions.float_twins`): of registers."""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir

from ....isa import Form, lookup
from ... import semantics
from ...instructions.float_twins import (
    TwinCompute, TwinForget, TwinMove, TwinRenew, TwinSelect, TwinShuffle,
)
from ...machine.layout import LANES
from ...semantics.float64 import Number, Part, compute, element_of, parts_of
from ...semantics.lanes import Bits, Lanes, join
from ..data import cut, guard_mask, source
from ..handler import Handler, i32, lanes_of, pointer
from ..registry import emits
from .numbers import Cases, Followed, Sources, put_twins, reals_of, taken, twins_at
from ..warp import permuted, sources_of

__all__: list[str] = []


def _lanes(h: Handler, guard: Any) -> Any:
    """The lanes that execute it; it is left where there are none."""
    mask = guard_mask(h, guard, True)
    if guard:
        h.skip_unless_any(mask)
    return mask


@emits(TwinCompute)
def twin_compute(h: Handler, op: TwinCompute) -> None:
    form = lookup(op.mnemonic)[op.number]
    mask = _lanes(h, op.guard)
    cases = Cases(h, h.ir.inttoptr(h.field("q"), pointer), h.field(), mask)
    given: list[Any] = []
    numbers: dict[tuple[int, int], list[Followed]] = {}
    slots: dict[int, Any] = {}
    for n, (spec, kinds, shapes, kept) in enumerate(zip(form.operands, op.kinds, op.shapes, op.kept)):
        if spec.written:
            slots.update({n: h.slot()} if kept[0] else {})
            continue
        items = []
        for item, (kind, shape, has) in enumerate(zip(kinds, shapes, kept)):
            if kind.shaping:
                items.append(kind.bits)
                continue
            items.append(cut(h, source(h, kind, LANES), spec))
            slot = h.slot() if has else None
            if shape:
                numbers[n, item] = twins_at(h, h.numbers(LANES).wrap(items[-1]), shape, slot)
        given.append(tuple(items) if spec.count else items[0])
    found = semantics.lookup(form)(h.numbers(LANES), form, *given)
    written = [n for n, spec in enumerate(form.operands) if spec.written]
    results = dict(zip(written, found if isinstance(found, tuple) else (found,)))
    reads = dict(zip([n for n, spec in enumerate(form.operands) if not spec.written], given))
    cases.count()
    _compare(h, form, cases, _Operands(h, reads, numbers), results, op.shapes, slots)
    h.next()


class _Operands:
    """What the elements of an instruction are computed of."""

    def __init__(self, h: Handler, values: dict[int, Any], numbers: dict[tuple[int, int], list[Followed]]) -> None:
        self.h, self.values, self.numbers = h, values, numbers

    def floats(self, part: Part) -> Sources:
        return [self.numbers[n, item][at] for n, item, at in part.reads if (n, item) in self.numbers]

    def given(self, part: Part, twins: bool) -> list[Any]:
        """The sources, the floats among them as they are or their twins."""
        found: list[Any] = []
        for n, item, at in part.reads:
            if (n, item) in self.numbers:
                followed = self.numbers[n, item][at]
                found.append(followed.twin if twins else followed.real)
            else:
                found.append(self.h.numbers(LANES).wrap(self.values[n]))
        return found


def _compare(
    h: Handler, form: Form, cases: Cases, operands: _Operands, results: dict[int, Any],
    shapes: tuple[tuple[Any, ...], ...], slots: dict[int, Any],
) -> None:
    """Compare the results of each element with those in float64, and keep their twins."""
    b, dest = h.numbers(LANES), next(iter(results))
    made: list[Followed] = []
    floats = bool(element_of(form.operands[dest].type))
    whole = b.wrap(results[dest])
    reals = reals_of(whole, shapes[dest][0]) if floats else []
    for part in parts_of(form):
        twin, sources = compute(b, part, operands.given(part, twins=True)), operands.floats(part)
        if floats:
            exactly = partial(_first, b, part, operands)
            made.append(cases.judge(reals[part.writes[0][1]], twin[0], sources, shapes[dest][0], exactly))
            continue
        differ: Any = None
        for (n, _), other in zip(part.writes, twin):
            assert isinstance(other, Bits)
            unlike = b.wrap(results[n]).ne(other)
            differ = unlike if differ is None else differ | unlike
        cases.decided(differ, sources)
    if dest in slots and floats:
        put_twins(h, slots[dest], shapes[dest][0], whole, made, cases.mask)


def _first(b: Lanes, part: Part, operands: _Operands) -> Number:
    """The result of the operands as they are."""
    return compute(b, part, operands.given(part, twins=False))[0]


@emits(TwinMove)
def twin_move(h: Handler, op: TwinMove) -> None:
    mask = _lanes(h, op.guard)
    slots = [h.slot() if has else None for has in op.kept[0]]
    bits, made = [], []
    for kind, shape, has in zip(op.kinds, op.shapes[1], op.kept[1]):
        value = h.numbers(LANES).wrap(source(h, kind, LANES)).resize(shape[1] * shape[2], False)
        bits.append(value)
        made += twins_at(h, value, shape, h.slot() if has else None)
    whole = join(bits)
    parts = whole.parts(whole.bits // len(slots))
    each = len(made) // len(slots)
    for n, (slot, shape, part) in enumerate(zip(slots, op.shapes[0], parts)):
        if slot is not None:
            put_twins(h, slot, shape, part, made[n * each : (n + 1) * each], mask)
    h.next()


@emits(TwinSelect)
def twin_select(h: Handler, op: TwinSelect) -> None:
    form, b = lookup(op.mnemonic)[op.number], h.numbers(LANES)
    mask, slot = _lanes(h, op.guard), h.slot()
    values, twins = [], []
    for kind, has, spec in zip(op.kinds, op.kept, form.operands[1:]):
        values.append(b.wrap(cut(h, source(h, kind, LANES), spec)))
        twins.append(twins_at(h, values[-1], op.shape, h.slot() if has else None))
    choice = cut(h, source(h, op.kinds[2], LANES), form.operands[3])
    select = semantics.lookup(form)
    second = b.wrap(select(b, form, *(b.const(values[0].bits, number) for number in (0, 1)), choice)).ne(0)
    whole = b.wrap(select(b, form, *(value.value for value in values), choice))
    put_twins(h, slot, op.shape, whole, [taken(second, two, one) for one, two in zip(*twins)], mask)
    h.next()


@emits(TwinForget)
def twin_forget(h: Handler, op: TwinForget) -> None:
    mask = _lanes(h, op.guard)
    value = h.numbers(LANES).wrap(source(h, op.register, LANES))
    put_twins(h, h.slot(), op.shape, value, twins_at(h, value, op.shape, None), mask)
    h.next()


@emits(TwinRenew)
def twin_renew(h: Handler, op: TwinRenew) -> None:
    mask = _lanes(h, op.guard)
    value, slot = h.numbers(LANES).wrap(source(h, op.register, LANES)), h.slot()
    put_twins(h, slot, op.shape, value, twins_at(h, value, op.shape, slot), mask)
    h.next()


@emits(TwinShuffle)
def twin_shuffle(h: Handler, op: TwinShuffle) -> None:
    mask, b = _lanes(h, op.guard), h.numbers(LANES)
    value = b.wrap(source(h, op.dest, LANES))
    lanes, _ = sources_of(h, op.mode, op.constant, op.b, op.c)
    slot, place = h.slot(), h.slot()

    def moved(found: Any) -> Any:
        if isinstance(lanes, ir.Constant):
            return h.ir.shuffle_vector(found, found, lanes)
        number = found.type.element
        if isinstance(number, ir.IntType):
            return permuted(h, found, lanes)
        word = lanes_of(i32 if isinstance(number, ir.FloatType) else ir.IntType(64))
        return h.ir.bitcast(permuted(h, h.ir.bitcast(found, word), lanes), found.type)

    put_twins(h, slot, op.shape, value, twins_at(h, value, op.shape, place, moved), mask)
    h.next()
