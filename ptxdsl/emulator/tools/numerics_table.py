"""What was followed in float64, as text, as records and as a page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from html import escape
from typing import Any, Protocol

from ...errors import Loc
from ...html_page import document, fragment, grid
from .numerics_data import InstructionNumerics, LineNumerics, NumberCase, OutputNumerics
from .profile_table import place

__all__ = ["display", "page", "records", "table", "told"]

MOST_SHOWN = 3
"""Lines whose worst case is told."""
_HEADS = ("reaches arrays", "arises here", "error", "inherited", "decisions", "infinities", "NaNs")


class Results(Protocol):
    """What :class:`.numerics.numerics` has found."""

    outputs: list[OutputNumerics]

    @property
    def launches(self) -> dict[str, int]: ...
    @property
    def instructions(self) -> list[InstructionNumerics]: ...
    @property
    def lines(self) -> list[LineNumerics]: ...


def _error(value: float) -> str:
    return f"{value:.2g}" if value else ""


def told(output: OutputNumerics | NumberCase) -> str:
    """A number beside its twin."""
    return f"{output.real:.9g} where float64 has {output.twin:.9g}: an error of {output.error:.2g}"


def _cells(line: LineNumerics) -> list[str]:
    counts = (f"{count:,}" if count else "" for count in (line.decisions, line.infinities, line.nans))
    return [*map(_error, (line.reaches, line.arises, line.error, line.inherited)), *counts]


def _where(loc: Loc | None, ptx_line: int = 0) -> str:
    return place(loc) if loc is not None else f"PTX line {ptx_line}"


def table(n: Results, limit: int | None) -> str:
    """All as text: a summary of each kernel, its lines, then what else was found."""
    parts = []
    for kernel, launches in n.launches.items():
        lines = [line for line in n.lines if line.kernel == kernel]
        head = f"{kernel}: {launches} launch{'es' * (launches > 1)}, followed in float64"
        parts.append("\n".join([head, *_grid(lines[:limit]), *notes(n, kernel)]))
    return "\n\n".join(parts) or "nothing was launched"


def _grid(lines: list[LineNumerics]) -> Iterator[str]:
    rows = [_cells(line) for line in lines]
    shown = [at for at in range(len(_HEADS)) if any(row[at] for row in rows)]
    if not shown:
        return
    grid_ = [[_HEADS[at] for at in shown], *([row[at] or "-" for at in shown] for row in rows)]
    widths = [max(len(line[at]) for line in grid_) for at in range(len(shown))]
    for cells, what in zip(grid_, ["", *(f"{place(line.loc)}: {line.source}" for line in lines)]):
        yield "  ".join([*(cell.rjust(width) for cell, width in zip(cells, widths)), what]).rstrip()


def notes(n: Results, kernel: str) -> Iterator[str]:
    """Arrays, then infinities, NaNs and other decisions, and what is not followed."""
    for output in n.outputs:
        if output.kernel == kernel:
            yield _output(output)
    rows = [row for row in n.instructions if row.kernel == kernel]
    for line in [line for line in n.lines if line.kernel == kernel and line.reaches][:MOST_SHOWN]:
        row = max(line.instructions, key=lambda row: row.arisen)
        if row.arises is not None:
            yield _arises(row, row.arises)
    for row in rows:
        for what, case in (("infinity", row.infinity), ("NaN", row.nan)):
            if case is not None:
                yield _birth(row, what, case)
    for row in rows:
        if row.decision is not None:
            yield (
                f"another decision in float64: {row.text} at {_where(row.loc, row.ptx_line)}, "
                f"{_threads(row.decisions)}, first {_thread(row.decision)}: {_sources(row.decision)}"
            )
    lost = [row for row in rows if not row.followed]
    if lost:
        yield "not followed, their results count as exact: " + ", ".join(
            f"{row.text.split()[0]} at {_where(row.loc, row.ptx_line)}" for row in lost
        )


def _output(output: OutputNumerics) -> str:
    if not output.error:
        return f"array {output.array}: as in float64"
    arises = f", arises at {place(output.origin)}" if output.origin is not None else ""
    return f"array {output.array}: {output.element} is {told(output)}{arises}"


def _birth(row: InstructionNumerics, what: str, case: NumberCase) -> str:
    count = row.infinities if what == "infinity" else row.nans
    same = case.real == case.twin or (math.isnan(case.real) and math.isnan(case.twin))
    twin = "float64 has it too" if same else f"float64 has {case.twin:.9g}"
    begins = f"{what} begins at {_where(row.loc, row.ptx_line)}: {row.text}"
    return f"{begins}, {_threads(count)}, first {_thread(case)}: of {_sources(case)}; {twin}"


def _arises(row: InstructionNumerics, case: NumberCase) -> str:
    """The worst case of what arises at an instruction, and how it came about."""
    given = f"of {_sources(case)} " if case.sources else ""
    own = f", its own rounding {case.rounding:.2g}" if case.rounding else ""
    return (
        f"arises at {_where(row.loc, row.ptx_line)}: {row.text}, {_thread(case)}: {given}it makes {case.real:.9g} "
        f"where float64 has {case.twin:.9g}; the error of its operands is {case.inherited:.2g}{own}"
    )


def _threads(count: int) -> str:
    return f"{count:,} thread{'s' * (count > 1)}"


def _thread(case: NumberCase) -> str:
    return f"thread {case.thread} of block {case.block}"


def _sources(case: NumberCase) -> str:
    texts = (f"{a:.9g}" if a == b else f"{a:.9g} (float64 {b:.9g})" for a, b in case.sources)
    return ", ".join(texts) or "no floats"


def records(n: Results) -> dict[str, Any]:
    """What JSON has."""
    return {
        "launches": n.launches, "outputs": [_plain(output) for output in n.outputs],
        "lines": [_plain(line) for line in n.lines],
    }


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        names = asdict(value)
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, Loc):
        return {"file": value.file, "line": value.line}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _body(n: Results) -> str:
    parts = []
    for kernel, launches in n.launches.items():
        rows = [
            [*_cells(line), f"{place(line.loc)}: {line.source}"] for line in n.lines if line.kernel == kernel
        ]
        found = "".join(f"<p>{escape(note)}</p>\n" for note in notes(n, kernel))
        head = f"{launches} launch{'es' * (launches > 1)}, followed in float64"
        parts.append(f"<h2>{escape(kernel)}</h2>\n<p>{head}</p>\n{grid((*_HEADS, 'line'), rows)}\n{found}")
    return "".join(parts) or "<p>nothing was launched</p>\n"


def page(n: Results) -> str:
    """An HTML page that needs nothing from elsewhere."""
    title = f"Numbers of {', '.join(n.launches) or 'nothing'}"
    return document(title, f"<h1>{escape(title)}</h1>\n{_body(n)}")


def display(n: Results) -> str:
    """The same for a notebook."""
    return fragment(_body(n))
