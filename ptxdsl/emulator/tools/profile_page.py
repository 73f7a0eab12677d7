"""The profiler's page: source, PTX and counters side by side, in one HTML file that needs no other."""

from __future__ import annotations

import linecache
from html import escape

from .counters import Counters
from .profile_data import LineProfile, ProfileData, total
from .profile_table import Column, shown_columns, summary

__all__ = ["page"]

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


def page(p: ProfileData) -> str:
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


def _section(p: ProfileData, number: int, kernel: str, lines: list[LineProfile]) -> str:
    counters = total(lines)
    columns = shown_columns(counters)
    most = max((line.share for line in lines), default=0.0) or 1.0
    line = summary(kernel, p.launches[kernel], counters).partition(": ")[2]
    return (
        f"<h2>{escape(kernel)}</h2>\n<p>{escape(line)}</p>\n"
        f'<div class="sides">\n<div class="side">{_table(columns, _source_rows(number, lines, columns, most))}</div>\n'
        f'<div class="side">{_table(columns, _ptx_rows(p, number, kernel, columns))}</div>\n</div>\n'
    )


def _table(columns: list[Column], rows: list[str]) -> str:
    heads = "".join(f'<th title="{escape(column.meaning)}">{escape(column.title)}</th>' for column in columns)
    return (
        f'<table><thead><tr><th></th><th class="code"></th><th>share</th>{heads}</tr></thead>\n'
        f"<tbody>\n{''.join(rows)}</tbody></table>"
    )


def _row(at: str, mark: str, code: str, share: float | None, counters: Counters | None, columns: list[Column],
         heat: float, kind: str = "") -> str:
    cells = ["" if counters is None else column.text(counters) for column in columns]
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
            rows.append(_row(key, str(at), code or line.source, line.share, line.counters, columns, line.share / most))
    return rows


def _ptx_rows(p: ProfileData, number: int, kernel: str, columns: list[Column]) -> list[str]:
    rows = []
    instructions = [row for row in p.instructions if row.kernel == kernel]
    most = max((row.share for row in instructions), default=0.0) or 1.0
    for label, row in p.listing(kernel):
        if row is None:
            rows.append(_row("", "", label, None, None, columns, 0, "label"))
            continue
        key = f"{number}:{row.loc.file}:{row.loc.line}" if row.loc else f"{number}:<ptx>:{row.ptx_line}"
        code, heat = f"    {row.text}", row.share / most
        rows.append(_row(key, str(row.ptx_line or ""), code, row.share, row.counters, columns, heat))
    return rows
