"""What a launch that is followed in float64 shows: cases, by instruction, by line and by array."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


from ...errors import Loc
from ...ir import Instruction
from ...launch import LaunchConfig
from ...types import ScalarType
from ..analysis.float_layouts import layout_of
from ..machine.element_names import element_text
from ..machine.float_twins import OPERANDS, Case, Row
from ..machine.unsupported import render
from ..runtime.faults import index_in
from ..semantics.float64 import element_of
from ..semantics.formats import FORMATS

__all__ = [
    "Decoder", "InstructionNumerics", "LineNumerics", "NamedArray", "NumberCase", "OutputNumerics", "line_of",
    "ulps",
]


@dataclass(frozen=True)
class NumberCase:
    """What one thread computed, beside what it would be in float64.

    ``real`` and ``twin`` are the result, ``sources`` the operands that are floats, each a pair of such. ``error`` is
    their distance relative to the larger, never finer than the least normal number of the type, and infinite where one
    is no finite number; ``ulps`` the same in units in the last place of the type. ``inherited`` is the largest error of
    an operand, ``rounding`` what the instruction adds with operands that have none. Of a store ``element`` is what it
    wrote, and ``origin`` the line at which most of the error arose.
    """

    real: float
    twin: float
    error: float
    ulps: float
    inherited: float
    rounding: float
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    sources: tuple[tuple[float, float], ...] = ()
    element: str = ""
    origin: Loc | None = None


@dataclass(frozen=True)
class InstructionNumerics:
    """An instruction whose floats are followed, over all threads that executed it.

    ``worst`` is the largest error of its results (of a store: of what it leaves in an array), ``arises`` the largest
    that arises at its line. ``decisions`` are the threads for which a comparison, or a conversion to an integer, has
    another result in float64; ``infinities`` and ``nans`` those that made one of operands without any; beside each is
    the first of them. ``followed`` is False of those whose results count as exact, since they are not followed.
    """

    kernel: str
    ptx_line: int
    loc: Loc | None
    text: str
    threads: int
    worst: NumberCase | None
    arises: NumberCase | None
    arisen: float
    decisions: int
    decision: NumberCase | None
    infinities: int
    infinity: NumberCase | None
    nans: int
    nan: NumberCase | None
    followed: bool = True


@dataclass(frozen=True)
class LineNumerics:
    """A Python line (a line of the PTX where that is all there is): the largest of its instructions.

    ``reaches`` is the largest error in an array after the last launch of which most arose at this line.
    """

    kernel: str
    loc: Loc
    source: str
    reaches: float
    arises: float
    error: float
    inherited: float
    decisions: int
    infinities: int
    nans: int
    instructions: tuple[InstructionNumerics, ...] = field(repr=False)


@dataclass(frozen=True)
class OutputNumerics:
    """An array that a kernel has written, after the launch: the element with the largest error.

    ``origin`` is the line at which most of its error arose, None where there is none.
    """

    kernel: str
    array: str
    element: str
    real: float
    twin: float
    error: float
    origin: Loc | None


def ulps(real: float, twin: float, form: Any) -> float:
    """The distance of a number of a format from its twin, in units in the last place there."""
    if real == twin or (math.isnan(real) and math.isnan(twin)):
        return 0.0
    if not (math.isfinite(real) and math.isfinite(twin)):
        return math.inf
    exponent = max(math.frexp(twin)[1] - 1 if twin else -2000, 1 - form.bias)
    return abs(real - twin) / math.ldexp(1.0, exponent - form.mantissa)


def line_of(kernel: str, loc: Loc, reaches: float, rows: list[InstructionNumerics]) -> LineNumerics:
    """A line of its instructions."""
    worst = max((row.worst for row in rows if row.worst is not None), key=lambda case: case.error, default=None)
    return LineNumerics(
        kernel, loc, loc.source or rows[0].text, reaches, max(row.arisen for row in rows),
        worst.error if worst is not None else 0.0, worst.inherited if worst is not None else 0.0,
        sum(row.decisions for row in rows), sum(row.infinities for row in rows), sum(row.nans for row in rows),
        tuple(rows),
    )


class Decoder:
    """Reads the rows of a kernel that one configuration of launches has filled."""

    def __init__(self, kernel: str, config: LaunchConfig, arrays: Iterable[Any], lines: list[Loc]) -> None:
        """``arrays`` name the elements of arrays by address, ``lines`` are those that origins number from 1."""
        self.kernel, self.config, self.arrays, self.lines = kernel, config, list(arrays), lines

    def instruction(self, statement: Instruction, row: bytes, followed: bool) -> InstructionNumerics | None:
        """What is noted of an instruction; None where it was not executed, or has no floats."""
        form = _format_of(statement)
        threads, decisions, infinities, nans = (
            struct.unpack_from("<q", row, at)[0] for at in (Row.LANES, Row.DECISIONS, Row.INFINITIES, Row.NANS)
        )
        if not threads and followed:
            return None
        worst, arises = self._case(row, Row.WORST, form), self._case(row, Row.ARISES, form)
        arisen, = struct.unpack_from("<d", row, Row.ARISES + Case.MEASURE)
        decision, infinity, nan = (
            self._case(row, at, form) if count else None
            for at, count in ((Row.DECISION, decisions), (Row.INFINITY, infinities), (Row.NAN, nans))
        )
        return InstructionNumerics(
            self.kernel, statement.line, statement.loc, render(statement), threads,
            worst if worst.error > 0 else None, arises if arisen > 0 else None, arisen, decisions, decision,
            infinities, infinity, nans, nan, followed,
        )

    def _case(self, row: bytes, at: int, form: Any) -> NumberCase:
        error, real, twin, inherited, rounding, block, thread, address, origin, count, *numbers = Case.span(
            "MEASURE"
        ).unpack_from(row, at)
        sources = tuple(zip(numbers[:OPERANDS], numbers[OPERANDS:]))[:count]
        return NumberCase(
            real, twin, error, ulps(real, twin, form), inherited, rounding,
            index_in(self.config.grid, block), index_in(self.config.block, thread), sources,
            next((name for name in (each.element(address) for each in self.arrays) if name), "") if address else "",
            self.lines[origin - 1] if origin else None,
        )

def _format_of(statement: Instruction) -> Any:
    """The format of what an instruction computes or stores; f32 where it has none."""
    written = [spec.type for spec in statement.form.operands if spec.written]
    found = next((layout for kind in (*written, statement.form.type) if (layout := layout_of(kind))), None)
    return found.format if found is not None else FORMATS["f32"]


class NamedArray:
    """An array or a variable of a launch, by address; ``kind`` is the type of its elements, None where PTX has none."""

    def __init__(
        self, name: str, address: int, nbytes: int, kind: ScalarType | None, itemsize: int, shape: tuple[int, ...],
        writable: bool,
    ) -> None:
        self.name, self.address, self.nbytes, self.kind = name, address, nbytes, kind
        self.itemsize, self.shape, self.writable = itemsize, shape, writable

    def holds(self, form: tuple[str, int]) -> bool:
        """Whether its elements are numbers of a format, or may be."""
        if self.kind is not None and self.kind.is_float:
            return element_of(self.kind) == form[0]
        return 8 * self.itemsize == form[1]

    def element(self, address: int) -> str:
        """``y[3, 1]``; "" for what lies elsewhere."""
        if not self.address <= address < self.address + self.nbytes:
            return ""
        return element_text(self.name, (address - self.address) // self.itemsize, self.shape)
