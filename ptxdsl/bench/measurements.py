"""Several measurements together: a table of them, bars of text, a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ..text_table import bar, table
from .measurement import Measurement, seconds_text
from .plot import plot

__all__ = ["Measurements"]


class Measurements(Sequence[Measurement]):
    """Several measurements, printed as a table with their ratios to the first.

    >>> Measurements([Measurement((1e-3,) * 5, "ours"), Measurement((2e-3,) * 5, "theirs")])
            median          quartiles  n  of ours
    ours   1.00 ms  1.00 ms - 1.00 ms  5     1.00
    theirs 2.00 ms  2.00 ms - 2.00 ms  5     2.00
    wall time
    """

    def __init__(self, found: Iterable[Measurement]) -> None:
        self._found = tuple(found)

    def __getitem__(self, key: int | str) -> Measurement:  # type: ignore[override]
        if isinstance(key, str):
            return next(each for each in self._found if each.name == key)
        return self._found[key]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self._found)

    def __repr__(self) -> str:
        if not self._found:
            return "no measurements"
        first, alike = self._found[0], len({each.how for each in self._found}) == 1
        sized = any(each.at is not None for each in self._found)
        columns: dict[str, Callable[[Measurement], str]] = {"": lambda each: each.name}
        if sized:
            columns["at"] = lambda each: "" if each.at is None else f"{each.at:g}"
        columns["median"] = lambda each: seconds_text(each.median)
        columns["quartiles"] = lambda each: f"{seconds_text(each.low)} - {seconds_text(each.high)}"
        columns["n"] = lambda each: str(each.n)
        if alike and len(self._found) > 1 and not sized:
            columns[f"of {first.name}"] = lambda each: f"{each / first:.2f}"
        for unit in ("B/s", "flop/s"):
            if any(unit in each.rates for each in self._found):
                columns[unit] = lambda each, unit=unit: each.rates.get(unit, "")  # type: ignore[misc]
        if not alike:
            columns["by"] = lambda each: each.how
        text = table(tuple(columns), [tuple(cell(each) for cell in columns.values()) for each in self._found])
        lines = [line.rstrip() for line in text.splitlines()]
        return "\n".join([*lines, first.how] if alike else lines)

    def bars(self, width: int = 40) -> str:
        """The medians as bars of text, the longest ``width`` letters wide."""
        most = max((each.median for each in self._found), default=0.0) or 1.0
        return "\n".join(
            line.rstrip() for line in table(("", "", ""), [
                (self._label(each), bar(each.median / most, width), seconds_text(each.median)) for each in self._found
            ]).splitlines()[1:]
        )

    @staticmethod
    def _label(each: Measurement) -> str:
        return each.name if each.at is None else f"{each.name} at {each.at:g}"

    def plot(self, path: str | Path) -> None:
        """Draw the medians, with the quartiles, to a file of any kind that matplotlib knows (SVG, PNG, PDF).

        Bars, or where the measurements say what they are ``at``, a line for each name. PtxError without matplotlib;
        ``bars()`` needs none.
        """
        plot(self._found, path)
