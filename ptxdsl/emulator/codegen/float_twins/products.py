"""Code of the micro-op that follows products of fragments, mma and wmma.mma: in f64, k ascending."""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from ....isa.fragments import held
from ...instructions.float_twins import TwinMatrix
from ...machine.layout import LANES
from ...semantics.lanes import Real
from ..data import guard_mask, source
from ..handler import Handler, lanes_of, pointer
from ..registry import emits
from ..tensor_cores.matrix_operands import Elements, accumulator
from .numbers import ALIGN, Cases, Followed, put_twins, reals_of, taken, twins_at

__all__: list[str] = []

double = ir.DoubleType()


class _Product(NamedTuple):
    """What the layouts of fragments depend on, as MatrixProduct has it."""

    shape: str
    types: tuple[str, str]
    bits: int
    result: str
    addend: str
    orders: tuple[str, ...]


class _Twins(Elements):
    """The elements of the fragments in f64."""

    def __init__(self, h: Handler, op: _Product, fragments: dict[str, list[list[Followed]]]) -> None:
        super().__init__(h, op, [], [], [])  # type: ignore[arg-type]
        self.twins = fragments

    def _part(self, name: str, register: int, part: int) -> Any:
        return self.twins[name][register][part].twin.value


@emits(TwinMatrix)
def twin_matrix(h: Handler, op: TwinMatrix) -> None:
    mask, b = guard_mask(h, op.guard, True), h.numbers(LANES)
    if op.guard:
        h.skip_unless_any(mask)
    cases = Cases(h, h.ir.inttoptr(h.field("q"), pointer), h.field(), mask)
    product = _Product(*op.product)
    values = [b.wrap(source(h, kind, LANES)) for kind in op.dests]
    slots = [h.slot() if shape else None for shape in op.d]
    fragments = {
        name: [_held(h, shape) for shape in shapes] for name, shapes in zip("abc", (op.a, op.b, op.c))
    }
    elements, alike = _Twins(h, product, fragments), product.result == product.addend
    worst = [_worst(h, fragments[name]) for name in ("ab" if alike else "abc")]
    cases.count()
    made: dict[int, dict[int, Followed]] = {}
    for (register, part), places in held(accumulator(product, product.result)).items():  # type: ignore[arg-type]
        if slots[register] is None:
            continue
        start = elements.element("c", list(places))
        total = start
        for k in elements.steps:
            x, y = elements.term(k, [row for row, _ in places], [column for _, column in places])
            total = h.call(f"llvm.fma.v{LANES}f64", lanes_of(double), x, y, total)
        real = reals_of(values[register], op.d[register])[part]
        added = [fragments["c"][register][part]] if alike else []
        found = cases.judge(real, Real(b, total, 64), [*added, *worst], op.d[register])
        made.setdefault(register, {})[part] = found
    for register, parts in made.items():
        ordered = [parts[part] for part in sorted(parts)]
        put_twins(h, slots[register], op.d[register], values[register], ordered, mask)
    h.next()


def _held(h: Handler, shape: Any) -> list[Followed]:
    """The numbers of a register that is its own copy."""
    slot = h.slot()
    value = h.load(slot, 0, lanes_of(ir.IntType(shape[1] * shape[2])), ALIGN)
    return twins_at(h, h.numbers(LANES).wrap(value), shape, slot)


def _worst(h: Handler, registers: list[list[Followed]]) -> Followed:
    """Of all numbers of a fragment, in all lanes, the one with the largest error."""
    first, *others = [each for parts in registers for each in parts]
    for other in others:
        first = taken(other.error.compare(">", first.error), other, first)
    error = first.error.value
    most = h.call(f"llvm.vector.reduce.fmax.v{LANES}f64", double, error)
    lane = h.first_lane(h.mask(h.ir.fcmp_ordered("==", error, h.splat(most))))

    def everywhere(number: Any) -> Any:
        return type(number)(number.b, h.splat(h.ir.extract_element(number.value, lane)), number.bits)

    real, twin, origin, arose = (everywhere(number) for number in first[:4])
    return Followed(real, twin, origin, arose, first.tiny)
