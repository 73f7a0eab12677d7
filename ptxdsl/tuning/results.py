"""What came of trying configurations: a time for each, or why it has none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..bench.measurement import Measurement, seconds_text
from ..text_table import table
from .config import Config

__all__ = ["Trial", "Tuning", "of_bytes", "to_bytes"]


@dataclass(frozen=True)
class Trial:
    """A configuration that was tried: how it did, or the ``reason`` why it was not measured.

    ``cost`` is what is compared: seconds on a GPU, and on the emulator the work that it counts. ``low`` and ``high``
    are the quartiles of ``runs`` runs. ``kept`` says that another process measured it.
    """

    config: Config
    cost: float = float("inf")
    low: float = float("inf")
    high: float = float("inf")
    runs: int = 0
    reason: str | None = None
    kept: bool = False

    @classmethod
    def measured(cls, config: Config, found: Measurement) -> Trial:
        """A trial on a GPU."""
        return cls(config, found.median, found.low, found.high, found.n)

    @classmethod
    def failed(cls, config: Config, reason: str) -> Trial:
        """A trial that could not be made."""
        return cls(config, reason=reason)

    @classmethod
    def counted(cls, config: Config, cost: float) -> Trial:
        """A trial whose cost is the same each time."""
        return cls(config, cost, cost, cost, 1)


def to_bytes(trial: Trial) -> bytes:
    """What is kept of a trial on disk."""
    return json.dumps([trial.cost, trial.low, trial.high, trial.runs]).encode()


def of_bytes(config: Config, data: bytes | None) -> Trial | None:
    """A trial from what is kept; None if that is none."""
    try:
        if data is None:
            return None
        cost, low, high, runs = json.loads(data)
        return Trial(config, float(cost), float(low), float(high), int(runs), kept=True)
    except (ValueError, TypeError):
        return None


class Tuning(Sequence[Trial]):
    """The trials of a kernel for one key, in the order of its configurations; printed as a table, the best first.

    ``key`` has the values that they are for, ``where`` the GPU or the emulator, ``unit`` is ``"s"`` or ``"work"``.
    """

    def __init__(self, kernel: str, key: dict[str, Any], where: str, unit: str, trials: Sequence[Trial]) -> None:
        self.kernel, self.key, self.where, self.unit = kernel, key, where, unit
        self._trials = tuple(trials)

    @property
    def best(self) -> Config:
        """The configuration with the lowest cost, the first of equals."""
        return self._ranked[0].config

    @property
    def _ranked(self) -> list[Trial]:
        """The best first; those that failed last, behind one that was not measured."""
        return sorted(self._trials, key=lambda trial: (trial.reason is not None, trial.cost))

    @property
    def failed(self) -> list[Trial]:
        """Those that could not be measured."""
        return [trial for trial in self._trials if trial.reason is not None]

    def __getitem__(self, index: int) -> Trial:  # type: ignore[override]
        return self._trials[index]

    def __len__(self) -> int:
        return len(self._trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._trials)

    def __repr__(self) -> str:
        ranked = self._ranked
        least = ranked[0].cost
        columns = ["time", "quartiles"] if self.unit == "s" else ["work"]
        rows = [self._row(trial, least) for trial in ranked if trial.reason is None]
        lines = [line.rstrip() for line in table((self.title, *columns, "of best", ""), rows).splitlines()]
        return "\n".join([*lines, *(f"{trial.config}: {trial.reason}" for trial in ranked if trial.reason is not None)])

    def _row(self, trial: Trial, least: float) -> tuple[str, ...]:
        if not trial.runs:
            return str(trial.config), *[""] * (2 if self.unit == "s" else 1), "", "not measured"
        shown = [f"{trial.cost:,.0f}"]
        if self.unit == "s":
            shown = [seconds_text(trial.cost), f"{seconds_text(trial.low)} - {seconds_text(trial.high)}"]
        return str(trial.config), *shown, f"{trial.cost / least:.2f}" if least else "", "kept" if trial.kept else ""

    @property
    def title(self) -> str:
        """The kernel, the key and the place, in one line."""
        key = "".join(f", {name} = {value!r}" for name, value in self.key.items())
        return f"{self.kernel}{key}, on {self.where}"

