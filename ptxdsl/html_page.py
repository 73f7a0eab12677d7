"""HTML that needs nothing from elsewhere: the style and the script of every page and of every display in a notebook.

What is shown is a ``div`` of the class ``ptxdsl``, to which the style is confined, since a notebook is one document.
Rows that have the same ``data-at`` belong to the same line of source; the script marks them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

__all__ = ["Bar", "bars", "cell", "document", "fragment", "grid", "heat", "sides"]

_STYLE = """
.ptxdsl { color-scheme: light dark; --ink: #1c2330; --dim: #5d6675; --paper: #fff; --rule: #e2e6ee; --mark: #fff1c2;
  --heat: 219, 84, 52; --head: #f6f8fb; --good: #2e75b6; --bad: #db5434; font: 14px/1.45 system-ui, sans-serif;
  color: var(--ink); background: var(--paper) }
@media (prefers-color-scheme: dark) { .ptxdsl { --ink: #d9dee8; --dim: #8c96a8; --paper: #14181f; --rule: #2a313d;
  --mark: #4a3f16; --heat: 236, 110, 70; --head: #1b212b; --good: #5b9bd5; --bad: #ec6e46 } }
.ptxdsl * { box-sizing: border-box }
.ptxdsl.page { min-height: 100vh; padding: 1.5rem }
.ptxdsl h1 { font-size: 1.25rem; margin: 0 0 .25rem } .ptxdsl h2 { font-size: 1.05rem; margin: 2rem 0 .25rem }
.ptxdsl h3 { font-size: .95rem; margin: 1.25rem 0 .25rem } .ptxdsl p { color: var(--dim); margin: 0 0 .75rem }
.ptxdsl .sides { display: flex; flex-wrap: wrap; gap: 1rem }
.ptxdsl .side { flex: 1 1 24rem; min-width: 0; overflow: auto; max-height: 80vh; border: 1px solid var(--rule);
  border-radius: 6px }
.ptxdsl table { border-collapse: collapse; font: 12px/1.5 ui-monospace, Menlo, Consolas, monospace; margin: 0 }
.ptxdsl .side table { width: 100% }
.ptxdsl th { position: sticky; top: 0; background: var(--head); color: var(--dim); font-weight: 500; font-size: 11px;
  vertical-align: bottom; white-space: normal }
.ptxdsl th, .ptxdsl td { padding: 0 .4rem; text-align: right; font-variant-numeric: tabular-nums; border: 0;
  vertical-align: top }
.ptxdsl td { white-space: pre; background: none } .ptxdsl .text { text-align: left; white-space: pre-wrap }
.ptxdsl th.code, .ptxdsl td.code { text-align: left; width: 99%; max-width: 46ch; overflow: hidden;
  text-overflow: ellipsis }
.ptxdsl td.at { color: var(--dim); user-select: none }
.ptxdsl tr.idle td, .ptxdsl tr.label td { color: var(--dim) } .ptxdsl tr.on td { background: var(--mark) }
.ptxdsl [data-at] { cursor: pointer } .ptxdsl .on > rect.back { fill: var(--mark) }
.ptxdsl svg { display: block; max-width: 100%; font: 12px ui-monospace, Menlo, Consolas, monospace }
.ptxdsl svg text { fill: var(--ink) } .ptxdsl svg .dim { fill: var(--dim) } .ptxdsl svg .back { fill: none }
.ptxdsl svg .good { fill: var(--good) } .ptxdsl svg .bad { fill: var(--bad) } .ptxdsl svg .rest { fill: var(--rule) }
"""
_SCRIPT = """
for (const root of document.querySelectorAll('.ptxdsl:not([data-linked])')) {
  root.dataset.linked = '';
  const rows = [...root.querySelectorAll('[data-at]')];
  let held = false;
  const mark = (row, scroll) => {
    for (const other of rows) other.classList.toggle('on', other.dataset.at === row.dataset.at);
    if (!scroll) return;
    for (const side of root.querySelectorAll('.side')) {
      const there = rows.find(r => r.dataset.at === row.dataset.at && side.contains(r));
      if (there && !side.contains(row)) side.scrollTop = there.offsetTop - side.clientHeight / 3;
    }
  };
  for (const row of rows) {
    row.addEventListener('mouseenter', () => held || mark(row, false));
    row.addEventListener('click', () => { held = !held; mark(row, true); });
  }
}
"""


def fragment(body: str, kind: str = "") -> str:
    """A display for a notebook."""
    return (
        f'<div class="{f"ptxdsl {kind}".strip()}"><style>{_STYLE.strip()}</style>\n{body}'
        f"<script>{_SCRIPT.strip()}</script></div>"
    )


def document(title: str, body: str) -> str:
    """A file."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f'</head><body style="margin: 0">\n{fragment(body, "page")}</body></html>\n'
    )


def heat(share: float) -> str:
    """The attribute that colours a cell, by its share of the hottest one."""
    return f' style="background: rgba(var(--heat), {0.5 * share:.3f})"' if share else ""


def cell(text: object, kind: str = "", share: float = 0.0) -> str:
    """A cell of a table."""
    return f"<td{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}{heat(share)}>{escape(str(text))}</td>"


def grid(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of texts."""
    head = "".join(f'<th class="text">{escape(each)}</th>' for each in heads)
    body = "".join(f"<tr>{''.join(cell(each, 'text') for each in row)}</tr>\n" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>\n"


def sides(tables: Iterable[str]) -> str:
    """Tables side by side, each in a frame of its own."""
    return '<div class="sides">\n' + "".join(f'<div class="side">{table}</div>\n' for table in tables) + "</div>\n"


class Bar(NamedTuple):
    """A bar of a picture: its name, its parts with their colours (good, bad, rest), what stands behind it, its line."""

    name: str
    parts: Sequence[tuple[float, str]]
    note: str
    at: str = ""


_ROW, _LETTER, _BAR = 22, 7.3, 260


def bars(rows: Sequence[Bar], most: float | None = None) -> str:
    """A picture of bars, as long as ``most`` at most: SVG."""
    if not rows:
        return ""
    longest = max(sum(amount for amount, _ in row.parts) for row in rows) if most is None else most
    left = 12 + _LETTER * max(len(row.name) for row in rows)
    width = left + _BAR + 12 + _LETTER * max(len(row.note) for row in rows)
    drawn = "".join(_bar(row, number * _ROW, left, width, _BAR / (longest or 1)) for number, row in enumerate(rows))
    height = _ROW * len(rows)
    return f'<svg viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" role="img">{drawn}</svg>\n'


def _bar(row: Bar, y: int, left: float, width: float, unit: float) -> str:
    data = f' data-at="{escape(row.at)}"' if row.at else ""
    drawn, x = "", left
    for amount, kind in row.parts:
        drawn += f'<rect class="{kind}" x="{x:.1f}" y="{y + 4}" width="{amount * unit:.1f}" height="{_ROW - 8}"/>'
        x += amount * unit
    base = y + _ROW - 7
    return (
        f'<g{data}><rect class="back" x="0" y="{y}" width="{width:.0f}" height="{_ROW}"/>'
        f'<text x="4" y="{base}">{escape(row.name)}</text>{drawn}'
        f'<text class="dim" x="{x + 6:.1f}" y="{base}">{escape(row.note)}</text></g>'
    )
