"""The profiler's table of text, and the columns of its table and page.

A column that holds nothing for this kernel is left out: no bank conflicts are listed of a kernel without shared memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Union

from ...errors import Loc, PtxError, caller
from .counters import Counters
from .profile_data import InstructionProfile, LineProfile, ProfileData, total

__all__ = ["Column", "place", "shown_columns", "summary", "table"]

Row = Union[LineProfile, InstructionProfile]


class Column(NamedTuple):
    """A counter: its title, what it means, and its text, empty where a line has none."""

    title: str
    meaning: str
    text: Callable[[Counters], str]


def _number(value: int) -> str:
    return f"{value:,}" if value else ""


def _decimal(value: float | None) -> str:
    return f"{value:.1f}" if value is not None else ""


def nbytes_text(value: int) -> str:
    """3.5 KiB; empty for none."""
    if not value:
        return ""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 10240 or unit == "GiB":
            break
        value /= 1024  # type: ignore[assignment]
    return f"{value:,.0f} {unit}"


def _spaces(moved: Any) -> str:
    return nbytes_text(sum(count for space, count in moved.items() if space in ("global", "shared", "local")))


COLUMNS = (
    Column("executions", "warp instructions", lambda f: _number(f.executions)),
    Column("lanes", "active lanes of 32, on average", lambda f: _decimal(f.lanes_per_execution)),
    Column("divergent", "branches at which the lanes of a warp diverge", lambda f: _number(f.divergent_branches)),
    Column("sectors", "sectors of 32 bytes in global memory", lambda f: _number(f.global_sectors)),
    Column("per request", "sectors a request: 4 for float32 in a row", lambda f: _decimal(f.sectors_per_request)),
    Column("bank ways", "wavefronts for each that is needed without a conflict", lambda f: _decimal(f.conflict_ways)),
    Column("conflicts", "wavefronts beyond those needed", lambda f: _number(f.bank_conflicts)),
    Column("read", "bytes that threads read: global, shared and local", lambda f: _spaces(f.read)),
    Column("written", "bytes that threads write: global, shared and local", lambda f: _spaces(f.written)),
    Column("flops", "floating-point operations, 2 an fma", lambda f: _number(sum(f.flops.values()))),
)


def _wrong(what: str, value: object, known: Sequence[str]) -> PtxError:
    return PtxError(f"{what} of a profile's table is {' or '.join(map(repr, known))}, not {value!r}", loc=caller())


def table(p: ProfileData, by: str, sort: str, limit: int | None) -> str:
    """The counters as text, a summary of each kernel above them."""
    if by not in ("line", "instruction"):
        raise _wrong("by", by, ("line", "instruction"))
    if sort not in ("share", "source"):
        raise _wrong("sort", sort, ("share", "source"))
    everything: list[Any] = list(p.lines if by == "line" else p.instructions)
    parts = []
    for kernel, launches in p.launches.items():
        rows = [row for row in everything if row.kernel == kernel]
        counters = total(rows)
        if sort == "share":
            rows.sort(key=lambda row: -row.share)
        parts.append(summary(kernel, launches, counters) + "\n" + _grid(rows[:limit], counters))
    return "\n\n".join(parts) or "nothing was launched"


def summary(kernel: str, launches: int, counters: Counters) -> str:
    """A kernel in one line."""
    flops = ", ".join(f"{count:,} {name} flops" for name, count in counters.flops.items())
    moved = nbytes_text(counters.global_bytes)
    parts = [
        f"{launches} launch" + "es" * (launches > 1), f"{counters.executions:,} warp instructions",
        f"{_decimal(counters.lanes_per_execution)} lanes active" if counters.executions else "",
        flops, f"{moved} of global sectors" if moved else "",
        f"{counters.intensity:.3g} flops/byte" if counters.intensity else "",
    ]
    return f"{kernel}: {', '.join(part for part in parts if part)}"


def shown_columns(counters: Counters) -> list[Column]:
    """The columns that hold something."""
    return [column for column in COLUMNS if column.text(counters)]


def _grid(rows: Sequence[Row], counters: Counters) -> str:
    columns = shown_columns(counters)
    lines = [["share", *(column.title for column in columns)]]
    lines += [
        [f"{100 * row.share:.1f} %", *(column.text(row.counters) or "-" for column in columns)] for row in rows
    ]
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    texts = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in lines]
    return "\n".join(f"{text}  {what}".rstrip() for text, what in zip(texts, ["", *map(_what, rows)]))


def _what(row: Row) -> str:
    if isinstance(row, LineProfile):
        return f"{place(row.loc)}: {row.source}"
    return f"{place(row.loc)}: {row.text}" if row.loc is not None else f"PTX line {row.ptx_line}: {row.text}"


def place(loc: Loc) -> str:
    """A line without the folder of its file."""
    return f"{os.path.basename(loc.file)}:{loc.line}"
