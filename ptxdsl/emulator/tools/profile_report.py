"""The profiler's figures for people: a table of text, and a page of source, PTX and figures side by side.

A column that holds nothing for this kernel is left out: no bank conflicts are listed of a kernel without shared memory.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from ...errors import Loc, PtxError, caller
from .profile import Figures, InstructionProfile, LineProfile, total

if TYPE_CHECKING:
    from .profile import profile

__all__ = ["page", "summary", "table"]

Row = Union[LineProfile, InstructionProfile]


class Column(NamedTuple):
    """A figure: its title, what it means, and its text, empty where a line has none."""

    title: str
    meaning: str
    text: Callable[[Figures], str]


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
    Column("parted", "branches at which the lanes of a warp parted", lambda f: _number(f.divergent_branches)),
    Column("sectors", "sectors of 32 bytes in global memory", lambda f: _number(f.global_sectors)),
    Column("per request", "sectors a request: 4 for float32 in a row", lambda f: _decimal(f.sectors_per_request)),
    Column("bank ways", "turns of shared memory's banks for one without conflict", lambda f: _decimal(f.conflict_ways)),
    Column("conflicts", "turns beyond those needed", lambda f: _number(f.bank_conflicts)),
    Column("read", "bytes that threads read: global, shared and local", lambda f: _spaces(f.read)),
    Column("written", "bytes that threads write: global, shared and local", lambda f: _spaces(f.written)),
    Column("flops", "floating-point operations, 2 an fma", lambda f: _number(sum(f.flops.values()))),
)


def _wrong(what: str, value: object, known: Sequence[str]) -> PtxError:
    return PtxError(f"{what} of a profile's table is {' or '.join(map(repr, known))}, not {value!r}", loc=caller())


def table(p: profile, by: str, sort: str, limit: int | None) -> str:
    """The figures as text, a summary of each kernel above them."""
    if by not in ("line", "instruction"):
        raise _wrong("by", by, ("line", "instruction"))
    if sort not in ("share", "source"):
        raise _wrong("sort", sort, ("share", "source"))
    everything: list[Any] = list(p.lines if by == "line" else p.instructions)
    parts = []
    for kernel, launches in p.launches.items():
        rows = [row for row in everything if row.kernel == kernel]
        figures = total(rows)
        if sort == "share":
            rows.sort(key=lambda row: -row.share)
        parts.append(summary(kernel, launches, figures) + "\n" + _grid(rows[:limit], figures))
    return "\n\n".join(parts) or "nothing was launched"


def summary(kernel: str, launches: int, figures: Figures) -> str:
    """A kernel in one line."""
    flops = ", ".join(f"{count:,} {name} flops" for name, count in figures.flops.items())
    moved = nbytes_text(figures.global_bytes)
    parts = [
        f"{launches} launch" + "es" * (launches > 1), f"{figures.executions:,} warp instructions",
        f"{_decimal(figures.lanes_per_execution)} lanes active" if figures.executions else "",
        flops, f"{moved} of global sectors" if moved else "",
        f"{figures.intensity:.3g} flops/byte" if figures.intensity else "",
    ]
    return f"{kernel}: {', '.join(part for part in parts if part)}"


def shown_columns(figures: Figures) -> list[Column]:
    """The columns that hold something."""
    return [column for column in COLUMNS if column.text(figures)]


def _grid(rows: Sequence[Row], figures: Figures) -> str:
    columns = shown_columns(figures)
    lines = [["share", *(column.title for column in columns)]]
    lines += [
        [f"{100 * row.share:.1f} %", *(column.text(row.figures) or "-" for column in columns)] for row in rows
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


# ---------------------------------------------------------------------------------------------------------------------
# The page

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --dim: #6b7484; --paper: #fff; --rule: #e2e6ee; --mark: #fff1c2;
  --heat: 219, 84, 52; --head: #f6f8fb; }
@media (prefers-color-scheme: dark) { :root { --ink: #d9dee8; --dim: #8c96a8; --paper: #14181f; --rule: #2a313d;
  --mark: #4a3f16; --heat: 236, 110, 70; --head: #1b212b; } }
* { box-sizing: border-box }
body { margin: 0; padding: 1.5rem; font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
h1 { font-size: 1.25rem; margin: 0 0 .25rem } h2 { font-size: 1.05rem; margin: 2rem 0 .25rem }
p { color: var(--dim); margin: 0 0 .75rem }
.sides { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem }
@media (max-width: 70rem) { .sides { grid-template-columns: minmax(0, 1fr) } }
.side { overflow: auto; max-height: 80vh; border: 1px solid var(--rule); border-radius: 6px }
table { border-collapse: collapse; width: 100%; font: 12px/1.5 ui-monospace, Menlo, Consolas, monospace }
th { position: sticky; top: 0; background: var(--head); color: var(--dim); font-weight: 500; vertical-align: bottom }
th, td { padding: 0 .4rem; white-space: pre; text-align: right; font-variant-numeric: tabular-nums }
th.code, td.code { text-align: left; width: 99%; max-width: 46ch; overflow: hidden; text-overflow: ellipsis }
td.at { color: var(--dim); user-select: none }
th { white-space: normal; font-size: 11px }
tr.idle td { color: var(--dim) } tr.label td { color: var(--dim) } tr.on td { background: var(--mark) }
tr[data-at] { cursor: pointer }
"""
_SCRIPT = """
const rows = [...document.querySelectorAll('tr[data-at]')];
let held = false;
function mark(row, scroll) {
  for (const other of rows) other.classList.toggle('on', row !== null && other.dataset.at === row.dataset.at);
  if (!scroll) return;
  const there = rows.find(r => r.dataset.at === row.dataset.at && r.closest('.side') !== row.closest('.side'));
  if (there) there.scrollIntoView({block: 'nearest'});
}
for (const row of rows) {
  row.addEventListener('mouseenter', () => held || mark(row, false));
  row.addEventListener('click', () => { held = !held; mark(row, true); });
}
"""


def page(p: profile) -> str:
    """An HTML page that needs nothing from elsewhere."""
    sections = []
    for number, kernel in enumerate(p.launches):
        lines = [line for line in p.lines if line.kernel == kernel]
        sections.append(_section(p, number, kernel, lines))
    style, names = _STYLE.strip(), ", ".join(p.launches)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>Profile of {escape(names)}</title>'
        f"<style>{style}</style></head><body>\n<h1>Profile of {escape(names) or 'nothing'}</h1>\n"
        "<p>Counted by the emulator, exactly, in units of the PTX. Point at a line to see its instructions; click to "
        f"hold it.</p>\n{''.join(sections)}<script>{_SCRIPT.strip()}</script></body></html>\n"
    )


def _section(p: profile, number: int, kernel: str, lines: list[LineProfile]) -> str:
    figures = total(lines)
    columns = shown_columns(figures)
    most = max((line.share for line in lines), default=0.0) or 1.0
    return (
        f"<h2>{escape(kernel)}</h2>\n<p>{escape(summary(kernel, p.launches[kernel], figures).partition(': ')[2])}</p>\n"
        f'<div class="sides">\n<div class="side">{_table(columns, _source_rows(number, lines, columns, most))}</div>\n'
        f'<div class="side">{_table(columns, _ptx_rows(p, number, kernel, columns))}</div>\n</div>\n'
    )


def _table(columns: list[Column], rows: list[str]) -> str:
    heads = "".join(f'<th title="{escape(column.meaning)}">{escape(column.title)}</th>' for column in columns)
    return (
        f'<table><thead><tr><th></th><th class="code"></th><th>share</th>{heads}</tr></thead>\n'
        f"<tbody>\n{''.join(rows)}</tbody></table>"
    )


def _row(at: str, mark: str, code: str, share: float | None, figures: Figures | None, columns: list[Column],
         heat: float, kind: str = "") -> str:
    cells = ["" if figures is None else column.text(figures) for column in columns]
    shown = f"{100 * share:.1f} %" if share is not None else ""
    color = f' style="background: rgba(var(--heat), {0.5 * heat:.3f})"' if heat else ""
    data = f' data-at="{escape(at)}"' if at else ""
    whole = f' title="{escape(code.strip())}"' if len(code) > 46 else ""
    return (
        f'<tr{data} class="{kind}"><td class="at">{escape(mark)}</td><td class="code"{whole}>{escape(code)}</td>'
        f"<td{color}>{shown}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"
    )


def _source_rows(number: int, lines: list[LineProfile], columns: list[Column], most: float) -> list[str]:
    rows = []
    for file in dict.fromkeys(line.loc.file for line in lines):
        mine = {line.loc.line: line for line in lines if line.loc.file == file}
        rows.append(_row("", "", file, None, None, columns, 0, "label"))
        for at in range(min(mine), max(mine) + 1):
            line, code = mine.get(at), linecache.getline(file, at).rstrip("\n")
            if line is None:
                rows.append(_row("", str(at), code, None, None, columns, 0, "idle"))
                continue
            key = f"{number}:{file}:{at}"
            rows.append(_row(key, str(at), code or line.source, line.share, line.figures, columns, line.share / most))
    return rows


def _ptx_rows(p: profile, number: int, kernel: str, columns: list[Column]) -> list[str]:
    rows = []
    instructions = [row for row in p.instructions if row.kernel == kernel]
    most = max((row.share for row in instructions), default=0.0) or 1.0
    for label, row in p.listing(kernel):
        if row is None:
            rows.append(_row("", "", label, None, None, columns, 0, "label"))
            continue
        key = f"{number}:{row.loc.file}:{row.loc.line}" if row.loc else f"{number}:<ptx>:{row.ptx_line}"
        code, heat = f"    {row.text}", row.share / most
        rows.append(_row(key, str(row.ptx_line or ""), code, row.share, row.figures, columns, heat))
    return rows
