"""The profiler's picture: the lines of each kernel, and how the work of each kind is spread over them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ...errors import PtxError, caller
from .canvas import ADVANCE, Canvas
from .counters import Counters
from .profile_data import LineProfile, ProfileData, total
from .profile_table import place, summary

__all__ = ["plot"]

INK, DIM, PAPER, RULE = (28, 35, 48), (107, 116, 132), (255, 255, 255), (226, 230, 238)
UNIT, WEIGHT = 1.5, 1.5
LETTER = ADVANCE * UNIT
ROW, MARGIN, BAR = 24, 24, 190
CODE, MOST_LINES = 76, 60


class _Kind(NamedTuple):
    """A kind of work: what it is, how much of it a line does, and what to write at its bar."""

    title: str
    colour: tuple[int, int, int]
    amount: Callable[[Counters], int]
    note: Callable[[Counters], str]


def _lanes(f: Counters) -> str:
    return f"{f.lanes_per_execution or 0:.0f} lanes"


def _divergent(f: Counters) -> str:
    return f"{f.divergent_branches:,} divergent" if f.divergent_branches else ""


_KINDS = (
    _Kind("warp instructions", (219, 84, 52), lambda f: f.executions, lambda f: _divergent(f) or _lanes(f)),
    _Kind("global sectors", (46, 117, 182), lambda f: f.global_sectors, lambda f: f"{f.sectors_per_request:.1f} each"),
    _Kind("shared wavefronts", (52, 143, 92), lambda f: f.shared_wavefronts, lambda f: f"{f.conflict_ways:.1f}-way"),
    _Kind("flops", (130, 88, 170), lambda f: sum(f.flops.values()), lambda _: ""),
)


def plot(p: ProfileData, path: Path) -> None:
    """Write the picture of a profile to a PNG file."""
    if path.suffix.lower() not in ("", ".png"):
        name = path.with_suffix(".png").name
        raise PtxError(f"a profile's picture is PNG, not {path.suffix!r}", loc=caller(), hint=f"`p.plot({name!r})`")
    kernels = [(name, [line for line in p.lines if line.kernel == name]) for name in p.launches]
    kinds = [kind for kind in _KINDS if kind.amount(p.totals)] or [_KINDS[0]]
    sections = [(name, _shown(lines), lines) for name, lines in kernels]
    height = 2 * MARGIN + sum(ROW * (len(shown) + 4) for _, shown, _ in sections) - ROW * bool(sections)
    width = MARGIN + _left(len(kinds))
    canvas = Canvas(width, max(height, 2 * MARGIN + ROW), PAPER)
    y = MARGIN
    for name, shown, lines in sections:
        y = _section(canvas, y, summary(name, p.launches[name], total(lines)), shown, lines, kinds)
    path.write_bytes(canvas.png())


def _shown(lines: list[LineProfile]) -> list[LineProfile]:
    """All lines, or those with the largest share, in the order of the source."""
    least = sorted((line.share for line in lines), reverse=True)[:MOST_LINES]
    return [line for line in lines if line.share >= least[-1]][:MOST_LINES] if least else []


def _section(
    canvas: Canvas, y: int, title: str, shown: list[LineProfile], lines: list[LineProfile], kinds: list[_Kind]
) -> int:
    canvas.text(MARGIN, y, title, INK, UNIT * 1.15, WEIGHT * 1.5)
    y += round(ROW * 1.5)
    counters = total(lines)
    hidden = f" ({len(lines) - len(shown)} lines with less left out)" if len(shown) < len(lines) else ""
    canvas.text(MARGIN, y, f"line{hidden}", DIM, UNIT, WEIGHT)
    for number, kind in enumerate(kinds):
        canvas.text(_left(number), y, kind.title, DIM, UNIT, WEIGHT)
    y += ROW
    canvas.box(MARGIN, y - 4, canvas.pixels.shape[1] - 2 * MARGIN, 1, RULE)
    for line in shown:
        code = f"{place(line.loc)}  {line.source}"
        cut = CODE - 2
        canvas.text(MARGIN, y, code if len(code) <= cut else code[: cut - 3] + "...", INK, UNIT, WEIGHT)
        for number, kind in enumerate(kinds):
            _bar(canvas, _left(number), y, kind, line.counters, kind.amount(counters))
        y += ROW
    return y + round(ROW * 1.5)


def _left(number: int) -> int:
    return MARGIN + round(LETTER * CODE) + number * (BAR + 2 * MARGIN + round(LETTER * 12))


def _bar(canvas: Canvas, x: int, y: int, kind: _Kind, counters: Counters, whole: int) -> None:
    amount = kind.amount(counters)
    if not amount:
        return
    share = amount / whole
    canvas.box(x, y - 1, max(1.0, BAR * share), ROW - 10, kind.colour)
    note = kind.note(counters)
    text = f"{100 * share:.0f} %" + (f"  {note}" if note else "")
    canvas.text(x + BAR * share + 6, y, text, DIM, UNIT, WEIGHT)
