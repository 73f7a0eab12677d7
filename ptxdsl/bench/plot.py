"""The picture of measurements, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import PtxError, caller
from .measurement import Measurement

__all__ = ["plot"]


def plot(found: Sequence[Measurement], path: str | Path) -> None:
    """Write the picture to a file."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PtxError(
            "a plot is drawn by matplotlib, which is not installed", loc=caller(),
            hint="pip install matplotlib; `bars()` draws with text",
        ) from None
    if not found:
        raise PtxError("there is no measurement to plot", loc=caller())
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    if all(each.at is not None for each in found):
        _lines(axes, found)
    else:
        _bars(axes, found)
    axes.set_title(", ".join(sorted({each.clock + (f" on {each.where}" if each.where else "") for each in found})))
    axes.grid(alpha=0.3)
    try:
        figure.savefig(path)
    except ValueError as error:  # a kind of file that it does not know
        raise PtxError(f"matplotlib says: {error}", loc=caller()) from None


def _lines(axes: Any, found: Sequence[Measurement]) -> None:
    for name in dict.fromkeys(each.name for each in found):
        line = sorted((each for each in found if each.name == name), key=lambda each: each.at or 0.0)
        at = [each.at for each in line]
        (drawn,) = axes.plot(at, [each.median for each in line], marker="o", label=name)
        lows, highs = [each.low for each in line], [each.high for each in line]
        axes.fill_between(at, lows, highs, alpha=0.2, color=drawn.get_color())
    axes.set_yscale("log")
    axes.set_ylabel("seconds")
    axes.legend()


def _bars(axes: Any, found: Sequence[Measurement]) -> None:
    places = range(len(found))
    medians = [each.median for each in found]
    errors = [[each.median - each.low for each in found], [each.high - each.median for each in found]]
    axes.barh(places, medians, xerr=errors, alpha=0.8)
    axes.set_yticks(places, [each.name for each in found])
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
