"""The times of the native loops as bars: in the terminal, or as a picture by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

__all__ = ["bars", "draw"]

WIDTH = 60


def bars(ratios: Mapping[str, float], mean: float, worst: float) -> str:
    """A bar a kernel on a logarithmic scale; ``|`` marks 1, ``:`` the promised mean, ``!`` the worst allowed."""
    if not ratios:
        return ""
    low = min(0.25, *ratios.values(), 1.0)
    scale = WIDTH / math.log(max(2 * worst, *ratios.values(), 1.0) / low)

    def place(value: float) -> int:
        return round(math.log(value / low) * scale)

    longest = max(map(len, ratios))
    lines = []
    for name, ratio in sorted(ratios.items(), key=lambda item: -item[1]):
        line = list(("#" * place(ratio)).ljust(WIDTH + 1))
        for mark, value in (("|", 1.0), (":", mean), ("!", worst)):
            line[place(value)] = mark
        lines.append(f"{name.ljust(longest)}  {''.join(line).rstrip()}  {ratio:.2f}")
    return "\n".join(lines)


def draw(ratios: Mapping[str, float], costs: Mapping[str, float], file: Path) -> None:
    """A picture of the same, with the sanitizer's cost beside it."""
    from matplotlib.figure import Figure

    names = sorted(ratios, key=lambda name: ratios[name])
    figure = Figure(figsize=(12, 1.5 + 0.2 * len(names)))
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, values, what in ((left, ratios, "native loops"), (right, costs, "the default")):
        axes.barh(names, [values[name] for name in names])
        axes.set_xscale("log")
        axes.axvline(1.0, color="black", linewidth=0.8)
        axes.margins(y=0.01)
        axes.set_xlabel(f"times {what}")
    left.set_title("default")
    right.set_title("all sanitizer tools")
    figure.tight_layout()
    figure.savefig(file)
