"""A timeline as a page that needs no other file: a row a warp, the time from left to right, waits in pale colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .events import WarpKey
from .model import WAITS, Interval, Operation
from .result import LaunchTimeline, WarpTimeline, short

__all__ = ["page"]

_ROW, _BAR = 18, 13
"""Pixels from row to row, and of a bar."""
_LANE = 7
"""Pixels of one of several copies at a time."""
_LANES = 12
_FINEST = 2500
"""Parts of a picture below which intervals are drawn together."""
_LINKS = 80
"""Lines from a warp to one that it has let go on, of the longest waits."""
_COLORS = {
    "run": ("#3b6ea8", "executes"), "matrix": ("#1f9d61", "matrix products"), "product": ("#1f9d61", ""),
    "barrier": ("#f7d9a0", "waits at a barrier"), "mbarrier": ("#f5b5ab", "waits at an mbarrier"),
    "copies": ("#d6c3ee", "waits for its copies"), "products": ("#bfe6cf", "waits for its products"),
    "memory": ("#d5d9e0", "waits for memory"), "copy": ("#8559c4", "copy under way"),
}
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --dim: #6b7484; --paper: #fff; --rule: #e2e6ee; --line: #b3261e }
@media (prefers-color-scheme: dark) { :root { --ink: #d9dee8; --dim: #8c96a8; --paper: #14181f; --rule: #2a313d;
  --line: #ff8a80 } }
body { margin: 0; padding: 1.25rem; font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
h1 { font-size: 1.25rem; margin: 0 0 .25rem } h2 { font-size: 1.05rem; margin: 1.25rem 0 .35rem }
p { color: var(--dim); margin: 0 0 .5rem }
.legend span { display: inline-block; margin-right: 1rem; white-space: nowrap }
.legend i { display: inline-block; width: 14px; height: 11px; margin-right: 5px; border-radius: 2px }
.block { display: grid; grid-template-columns: max-content minmax(0, 1fr); column-gap: .6rem; margin-bottom: 1rem }
.names { padding-top: 20px; font-size: 12px; text-align: right }
.names div { white-space: nowrap; overflow: hidden }
.names em { color: var(--dim); font-style: normal; display: inline-block; min-width: 4.5em }
.view { overflow-x: auto; overflow-y: hidden }
.time { position: relative; height: 20px; font-size: 11px; color: var(--dim); border-bottom: 1px solid var(--rule) }
.time span { position: absolute; border-left: 1px solid var(--rule); padding-left: 3px; height: 20px }
.inner { width: calc(100% * var(--zoom, 1)) } svg { display: block; width: 100% }
rect:hover { stroke: var(--ink); stroke-width: 1.5; vector-effect: non-scaling-stroke }
line { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; opacity: .55; pointer-events: none }
.tables { display: flex; flex-wrap: wrap; gap: 2rem } table { border-collapse: collapse; font-size: 12px }
th { color: var(--dim); font-weight: 500; text-align: left } td, th { padding: .1rem .7rem .1rem 0 }
td.n { text-align: right; font-variant-numeric: tabular-nums } code { font: 11px ui-monospace, Menlo, monospace }
""" + "\n".join(f".{kind} {{ fill: {color}; background: {color} }}" for kind, (color, _) in _COLORS.items())
_SCRIPT = """
const zoom = document.getElementById('zoom');
zoom.addEventListener('input', () => document.documentElement.style.setProperty('--zoom', 2 ** zoom.value));
const views = [...document.querySelectorAll('.view')];
for (const view of views) view.addEventListener('scroll', () => {
  for (const other of views) if (other.scrollLeft !== view.scrollLeft) other.scrollLeft = view.scrollLeft; });
"""


def page(launches: Sequence[LaunchTimeline]) -> str:
    """An HTML page that needs nothing from elsewhere."""
    names = escape(", ".join(dict.fromkeys(launch.name for launch in launches)))
    used = {each.kind for launch in launches for warp in launch.schedule.warps.values() for each in warp}
    used |= {op.kind for launch in launches for ops in launch.schedule.operations.values() for op in ops}
    legend = "".join(
        f'<span><i class="{kind}"></i>{text}</span>' for kind, (_, text) in _COLORS.items()
        if text and (kind in used or (kind == "matrix" and "product" in used))
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>Timeline of {names}</title>'
        f"<style>{_STYLE.strip()}</style></head><body>\n<h1>Timeline of {names}</h1>\n"
        "<p>Order and waits are the emulator's, lengths a model's, in clocks. A line leads from a warp to one that it "
        "lets go on. Point at a bar to see what it is.</p>\n"
        f'<p class="legend">{legend}<label>zoom <input id="zoom" type="range" min="0" max="7" step="0.25" value="0">'
        f"</label></p>\n{''.join(map(_launch, launches))}<script>{_SCRIPT.strip()}</script></body></html>\n"
    )


def _launch(launch: LaunchTimeline) -> str:
    warps = dict(zip(sorted(launch.schedule.warps), launch.warps))
    picture = _Picture(launch, warps)
    blocks = "".join(picture.block(number) for number in sorted(launch.record.blocks))
    return f"<h2>{escape(launch.name)}</h2>\n<p>{escape(launch.summary)}</p>\n{blocks}{_tables(launch)}"


class _Picture:
    """The picture of a launch: an SVG for each block, all with the same scale."""

    def __init__(self, launch: LaunchTimeline, warps: dict[WarpKey, WarpTimeline]) -> None:
        self.launch, self.warps = launch, warps
        self.clocks = max(1.0, launch.clocks)

    def block(self, number: int) -> str:
        """The rows of a block: its warps, its tensor cores, its copies."""
        mine = [key for key in self.warps if key[0] == number]
        rows = {key: n * _ROW for n, key in enumerate(mine)}
        names = [self._name(key) for key in mine]
        shapes = [self._bar(each, rows[key]) for key in mine for each in _coarse(self.warps[key], self._least)]
        operations, height = self.launch.operations(number), len(mine) * _ROW
        for title, kinds in (("tensor cores", ("product", "matrix")), ("copies", ("copy",))):
            lanes = _packed(_together([op for op in operations if op.kind in kinds], self._least))
            if lanes:
                each = _BAR if len(lanes) == 1 else _LANE
                shapes += [self._operation(op, count, height + n * each, each - 1)
                           for n, lane in enumerate(lanes) for op, count in lane]
                rows_high = max(_ROW, len(lanes) * each + 4)
                names.append(f'<div style="height:{rows_high}px">{title} <em></em></div>')
                height += rows_high
        index = self.launch.record.blocks[number].index
        several = len(self.launch.record.blocks) > 1
        title = f"<p>block {index[0] if not any(index[1:]) else index}</p>" if several else ""
        return (
            f'{title}<div class="block"><div class="names">{"".join(names)}</div>\n<div class="view">'
            f'<div class="inner"><div class="time">{self._axis()}</div>\n'
            f'<svg viewBox="0 0 {self.clocks:.0f} {height}" height="{height}" preserveAspectRatio="none">\n'
            f"{''.join(shapes)}{self._links(rows)}</svg></div></div></div>\n"
        )

    @property
    def _least(self) -> float:
        return self.clocks / _FINEST

    def _name(self, key: WarpKey) -> str:
        warp = self.warps[key]
        share = warp.waiting / (warp.busy + warp.waiting or 1)
        return f'<div style="height:{_ROW}px">warp {key[1]} <em>waits {share:.0%}</em></div>'

    def _axis(self) -> str:
        step = 10.0 ** len(str(int(self.clocks / 10)))
        step = next(step * part for part in (0.1, 0.2, 0.5, 1.0) if self.clocks / (step * part) <= 12)
        ticks = range(int(self.clocks / step) + 1)
        return "".join(
            f'<span style="left:{100 * n * step / self.clocks:.3f}%">{n * step:,.0f}</span>' for n in ticks
            if n * step < 0.97 * self.clocks
        )

    def _bar(self, each: Interval, top: float) -> str:
        what = f"waits at {each.on}" if each.kind.endswith("barrier") else f"waits for {each.on}"
        what = what if each.kind in WAITS else "executes" if each.kind == "run" else "matrix products"
        text = f"{what}, {each.end - each.start:,.0f} clocks from {each.start:,.0f}\n{self._line(each.place)}"
        if each.by is not None:
            text += f"\nlet go on by warp {each.by[1]} of block {each.by[0]}: {self._line(each.cause)}"
        return _rect(each.kind, each.start, each.end, top + 2, _BAR, text)

    def _operation(self, op: Operation, count: int, top: float, height: float) -> str:
        what = "copy" if op.kind == "copy" else "product"
        many = f"{count} " + (what[:-1] + "ies" if what == "copy" else what + "s") if count > 1 else what
        amount = f"{op.amount:,} {'bytes' if op.kind == 'copy' else 'operations'}"
        text = f"{many} of warp {op.by[1]}, {amount}, {op.end - op.start:,.0f} clocks from {op.start:,.0f}"
        start = op.start if op.kind == "copy" else op.begun
        return _rect(op.kind, start, op.end, top + 2, height, f"{text}\n{self._line(op.place)}")

    def _line(self, place: int) -> str:
        loc = self.launch.loc(place)
        return f"{short(loc)}: {loc.source}" if loc is not None else self.launch.text(place)

    def _links(self, rows: dict[WarpKey, int]) -> str:
        """Lines from who lets go on to who has waited, for the longest waits."""
        found = [
            (each.start - each.end, each.end, rows[each.by], rows[key])
            for key in rows for each in self.warps[key].intervals
            if each.by in rows and each.by != key and each.end - each.start > 0.004 * self.clocks
        ]
        return "".join(
            f'<line x1="{end:.1f}" x2="{end:.1f}" y1="{first + _ROW / 2}" y2="{last + _ROW / 2}"/>\n'
            for _, end, first, last in sorted(found)[:_LINKS]
        )


def _rect(kind: str, start: float, end: float, top: float, height: float, text: str) -> str:
    return (
        f'<rect class="{kind}" x="{start:.1f}" y="{top}" width="{end - start:.1f}" height="{height}">'
        f"<title>{escape(text)}</title></rect>\n"
    )


def _coarse(warp: WarpTimeline, least: float) -> Iterable[Interval]:
    """The intervals of a warp; short ones that follow each other as one, of the kind that takes most of it."""
    short_ones: list[Interval] = []
    for each in (*warp.intervals, None):
        if each is not None and each.end - each.start < least and (
            not short_ones or (each.start - short_ones[0].start < 4 * least)
        ):
            short_ones.append(each)
            continue
        if short_ones:
            most = max(short_ones, key=lambda one: one.end - one.start)
            yield most._replace(start=short_ones[0].start, end=short_ones[-1].end)
            short_ones = []
        if each is not None:
            yield each


def _together(operations: list[Operation], least: float) -> list[tuple[Operation, int]]:
    """Operations that a warp begins right after each other, as one with its number."""
    found: list[tuple[Operation, int]] = []
    open_: dict[WarpKey, int] = {}
    for op in operations:
        at = open_.get(op.by)
        if at is not None:
            last, count = found[at]
            near = op.begun - last.end < 4 * least if op.kind != "copy" else op.start - last.start < max(64, 8 * least)
            if near:
                joined = last._replace(end=max(last.end, op.end), amount=last.amount + op.amount)
                found[at] = joined, count + 1
                continue
        open_[op.by] = len(found)
        found.append((op, 1))
    return found


def _packed(operations: list[tuple[Operation, int]]) -> list[list[tuple[Operation, int]]]:
    """Lanes of operations that do not overlap, at most so many; what is more goes into the one that is free first."""
    lanes: list[list[tuple[Operation, int]]] = []
    for op, count in operations:
        start = op.start if op.kind == "copy" else op.begun
        free = next((lane for lane in lanes if lane[-1][0].end <= start), None)
        if free is None and len(lanes) >= _LANES:
            free = min(lanes, key=lambda lane: lane[-1][0].end)
        if free is None:
            lanes.append([(op, count)])
        else:
            free.append((op, count))
    return lanes


def _tables(launch: LaunchTimeline) -> str:
    rows = "".join(
        f"<tr><td>{escape(wait.on)}</td>"
        f'<td class="n">{wait.clocks:,.0f}</td><td class="n">{wait.times:,}</td>'
        f"<td>{escape(short(wait.loc))} <code>{escape((wait.loc.source or '') if wait.loc else wait.text)}</code></td>"
        f"<td>{escape(short(wait.by))} <code>{escape((wait.by.source or '') if wait.by else '')}</code></td></tr>\n"
        for wait in launch.waits[:12]
    )
    head = "<tr><th>waited for</th><th>clocks</th><th>times</th><th>at</th><th>let go on by</th></tr>"
    return f'<div class="tables"><table>{head}\n{rows}</table></div>\n' if rows else ""
