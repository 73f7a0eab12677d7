"""The profiler's page: source, PTX and counters side by side, in one HTML file that needs no other."""

from __future__ import annotations

import linecache
from html import escape

from ...html_page import cell, document, fragment, sides
from .counters import Counters
from .profile_data import LineProfile, ProfileData, total
from .profile_table import Column, shown_columns, summary

__all__ = ["display", "page"]

def page(p: ProfileData) -> str:
    """An HTML page that needs nothing from elsewhere."""
    title = f"Profile of {', '.join(p.launches) or 'nothing'}"
    return document(
        title,
        f"<h1>{escape(title)}</h1>\n<p>Counted by the emulator, exactly, in units of the PTX. Point at a line to see "
        f"its instructions; click to hold it.</p>\n{_sections(p)}",
    )


def display(p: ProfileData) -> str:
    """The same for a notebook."""
    return fragment(_sections(p))


def _sections(p: ProfileData) -> str:
    """Source, PTX and counters of each kernel."""
    parts = []
    for number, kernel in enumerate(p.launches):
        lines = [line for line in p.lines if line.kernel == kernel]
        parts.append(_section(p, number, kernel, lines))
    return "".join(parts) or "<p>nothing was launched</p>\n"


def _section(p: ProfileData, number: int, kernel: str, lines: list[LineProfile]) -> str:
    counters = total(lines)
    columns = shown_columns(counters)
    most = max((line.share for line in lines), default=0.0) or 1.0
    line = summary(kernel, p.launches[kernel], counters).partition(": ")[2]
    return (
        f"<h2>{escape(kernel)}</h2>\n<p>{escape(line)}</p>\n"
        + sides(_table(columns, rows) for rows in (
            _source_rows(number, lines, columns, most), _ptx_rows(p, number, kernel, columns)
        ))
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
    data = f' data-at="{escape(at)}"' if at else ""
    whole = f' title="{escape(code.strip())}"' if len(code) > 46 else ""
    return (
        f'<tr{data} class="{kind}"><td class="at">{escape(mark)}</td><td class="code"{whole}>{escape(code)}</td>'
        f"{cell(shown, share=heat)}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"
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
