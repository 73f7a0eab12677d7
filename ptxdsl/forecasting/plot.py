"""The picture of a forecast: for each launch its time with the error bar, and the bounds below it as bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import PtxError, caller

__all__ = ["Bars", "plot"]

_BINDS, _OTHER, _TIME, _ERROR = "#db5434", "#9db7d4", "#1c2330", "#777777"


class Bars(NamedTuple):
    """A launch: its time and the ends of its error bar, and the times of its bounds, the binding one first."""

    name: str
    seconds: float
    low: float
    high: float
    bounds: Sequence[tuple[str, float]]


def plot(launches: Sequence[Bars], title: str, path: Path) -> None:
    """Write it; PtxError where matplotlib is not installed or does not know the format."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PtxError(
            "the picture of a forecast is drawn by matplotlib, which is not installed", loc=caller(),
            hint="pip install 'ptxdsl[plot]'; `table()` draws with text",
        ) from None
    names: list[str] = []
    times, colours, errors = [], [], []
    for launch in launches:
        errors.append((len(names), launch))
        names += [launch.name, *(kind for kind, _ in launch.bounds)]
        times += [launch.seconds * 1e6, *(seconds * 1e6 for _, seconds in launch.bounds)]
        colours += [_TIME, *(_OTHER if at else _BINDS for at in range(len(launch.bounds)))]
    figure = Figure(figsize=(9, 1.4 + 0.28 * len(names)), layout="constrained")
    axes = figure.subplots()
    axes.barh(range(len(names)), times, color=colours)
    for row, launch in errors:
        down, up = launch.seconds - launch.low, launch.high - launch.seconds
        axes.errorbar([launch.seconds * 1e6], [row], xerr=[[down * 1e6], [up * 1e6]], color=_ERROR, capsize=3)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel(title)
    try:
        figure.savefig(path)
    except ValueError as error:
        raise PtxError(f"matplotlib says: {error}", loc=caller()) from None
