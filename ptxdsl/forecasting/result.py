"""What a forecast says: times, bounds, lines and caveats, as objects, as a table, as a picture, as JSON."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from ..errors import Loc, PtxError, caller
from ..html_page import Bar, bars, fragment
from ..text_table import bar
from .bounds import Bound
from .calibration import EXPONENT, error_of
from .machines import Machine

__all__ = ["Forecast", "KernelForecast"]

_SHOWN = 0.02
"""Bounds below this share of the binding one are left out of table and picture."""
_LINES = 3


def _launch(machine: Machine) -> Bound:
    return Bound("launch", machine.launch, "until an empty kernel has ended")


@dataclass(frozen=True)
class KernelForecast:
    """One launch: ``seconds`` between ``low`` and ``high``, with the ``bounds`` that they follow from.

    ``occupancy`` is the share of the warps that a multiprocessor has room for, ``registers`` are of a thread, 0 where
    no assembler said it; ``blocks_run`` of the ``blocks`` were run on the emulator. ``caveats`` are sentences.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    machine: Machine
    bounds: tuple[Bound, ...]
    occupancy: float
    registers: int
    spilled: int
    """Bytes that a thread stores to spill registers."""
    blocks: int
    blocks_run: int
    spread: float = 0.0
    """Relative standard error of the counts, where blocks differ and some were run."""
    bytes_in_flight: float = 0.0
    """Bytes of loads that a multiprocessor has asked for at a time, on average, where nothing but latency binds."""
    caveats: tuple[str, ...] = field(default=())

    @property
    def sorted_bounds(self) -> list[Bound]:
        """The bounds and the overhead of the launch, the longest first, without those that are next to nothing."""
        every = sorted([*self.bounds, _launch(self.machine)], key=lambda bound: -bound.seconds)
        return [bound for bound in every if bound.seconds >= _SHOWN * every[0].seconds]

    @property
    def binding(self) -> Bound:
        """The bound that takes the longest; of kind "launch" where the overhead of the launch takes longer."""
        return self.sorted_bounds[0]

    @property
    def seconds(self) -> float:
        """How long the launch takes on the GPU."""
        longest = max(bound.seconds for bound in self.bounds)
        if not longest:
            return self.machine.launch
        shares = (bound.seconds / longest for bound in self.bounds)
        return self.machine.launch + longest * float(sum(share**EXPONENT for share in shares)) ** (1 / EXPONENT)

    @property
    def error(self) -> float:
        """The factor by which the time may be off, by the calibration and by what the blocks differ."""
        return error_of(self.binding.kind) * (1 + 2 * self.spread)

    @property
    def low(self) -> float:
        """The lower end of the error bar, in seconds."""
        return self.seconds / self.error

    @property
    def high(self) -> float:
        """The upper end of the error bar, in seconds."""
        return self.seconds * self.error

    def bound(self, kind: str) -> Bound:
        """The bound of a kind, such as ``"memory"``; PtxError for another one."""
        found = next((bound for bound in self.bounds if bound.kind == kind), None)
        if found is None:
            raise PtxError(
                f"there is no bound {kind!r}", loc=caller(), hint=", ".join(bound.kind for bound in self.bounds)
            )
        return found

    @property
    def lines(self) -> tuple[tuple[Loc, float], ...]:
        """The lines that the binding bound comes from and their shares of it, the largest first."""
        return self.binding.lines

    def table(self) -> str:
        """The launch as text: time, bounds, lines, caveats."""
        binding = self.binding
        grid, block = ("x".join(str(n) for n in shape if n > 1) or "1" for shape in (self.grid, self.block))
        when = f"{micros(self.seconds)} ({micros(self.low)} to {micros(self.high)})"
        parts = [f"{self.kernel}[{grid}, {block}]: {when}, bound by {binding.kind}"]
        for one in self.sorted_bounds:
            drawn = bar(one.seconds / binding.seconds, 12)
            parts.append(f"  {one.kind:<17} {micros(one.seconds):>9}  {drawn}  {one.detail}".rstrip())
        registers = f", {self.registers} registers" if self.registers else ""
        spilled = f", {self.spilled} bytes spilled" if self.spilled else ""
        flight = f", {self.bytes_in_flight / 1000:.3g} kB in flight" if self.bytes_in_flight else ""
        parts.append(f"  occupancy {self.occupancy:.0%}{registers}{spilled}{flight} a multiprocessor")
        for loc, share in self.lines[:_LINES]:
            source = f": {loc.source}" if loc.source else ""
            parts.append(f"  {share:>4.0%} of {binding.kind}: {os.path.basename(loc.file)}:{loc.line}{source}")
        return "\n".join([*parts, *(f"  note: {text}" for text in self.caveats)])

    def to_dict(self) -> dict[str, Any]:
        """All of it as numbers, texts, lists and dictionaries, for JSON; times in seconds."""
        return {
            "kernel": self.kernel, "grid": list(self.grid), "block": list(self.block), "gpu": self.machine.name,
            "clock": self.machine.clock, "seconds": self.seconds, "low": self.low, "high": self.high,
            "bound": self.binding.kind, "launch": self.machine.launch, "occupancy": self.occupancy,
            "registers": self.registers, "spilled": self.spilled, "blocks": self.blocks,
            "blocks_run": self.blocks_run, "spread": self.spread, "bytes_in_flight": self.bytes_in_flight,
            "caveats": list(self.caveats),
            "bounds": [
                {
                    "kind": one.kind, "seconds": one.seconds, "detail": one.detail,
                    "lines": [{"file": loc.file, "line": loc.line, "share": share} for loc, share in one.lines],
                }
                for one in self.bounds
            ],
        }

    def __str__(self) -> str:
        return self.table()


class Forecast:
    """Launches one after the other on one GPU; as text, a table."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.launches: list[KernelForecast] = []

    @property
    def seconds(self) -> float:
        """How long all launches take, one after the other."""
        return sum(one.seconds for one in self.launches)

    @property
    def low(self) -> float:
        """The lower end of the error bar, in seconds: errors of launches are taken to have one cause."""
        return sum(one.low for one in self.launches)

    @property
    def high(self) -> float:
        """The upper end of the error bar, in seconds."""
        return sum(one.high for one in self.launches)

    @property
    def binding(self) -> Bound:
        """The binding bound of the launch that takes the longest; PtxError where nothing was launched."""
        if not self.launches:
            raise PtxError("nothing was launched, so nothing binds", loc=caller())
        return max(self.launches, key=lambda one: one.seconds).binding

    def table(self) -> str:
        """A table for each launch, the GPU above them and the sum below."""
        one = self.machine
        head = f"{one.name} ({one.target}, {one.multiprocessors} multiprocessors, {one.clock} MHz)"
        parts = [head, *(launch.table() for launch in self.launches)]
        if len(self.launches) != 1:
            parts.append(
                f"{len(self.launches)} launches: {micros(self.seconds)} ({micros(self.low)} to {micros(self.high)})"
            )
        return "\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """All of it as numbers, texts, lists and dictionaries, for JSON; times in seconds."""
        return {
            "gpu": self.machine.name, "clock": self.machine.clock, "seconds": self.seconds, "low": self.low,
            "high": self.high, "launches": [one.to_dict() for one in self.launches],
        }

    def plot(self, path: str | Path) -> None:
        """Draw the bounds of each launch as bars, in a format that the name says; needs matplotlib (extra `plot`)."""
        from .plot import Bars, plot

        launches = []
        for one in self.launches:
            bounds = [(bound.kind, bound.seconds) for bound in one.sorted_bounds]
            launches.append(Bars(one.kernel, one.seconds, one.low, one.high, bounds))
        plot(launches, f"microseconds on {self.machine.name} at {self.machine.clock} MHz", Path(path))

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        parts = (
            f"<h3>{escape(title)}</h3>\n{bars(rows)}<p>{escape(notes)}</p>\n"
            for title, rows, notes in (_drawn(one, self.machine) for one in self.launches)
        )
        return fragment("".join(parts) or f"<p>{escape(repr(self))}</p>")

    def __repr__(self) -> str:
        what = ", ".join(f"{one.kernel} {micros(one.seconds)} ({one.binding.kind})" for one in self.launches)
        return f"<forecast on {self.machine.name}: {what or 'nothing launched'}>"


def _drawn(one: KernelForecast, machine: Machine) -> tuple[str, list[Bar], str]:
    """A launch for a notebook: what its table begins with, a bar for each bound, and what its table ends with."""
    title, *lines = one.table().split("\n")
    rows = []
    for bound in one.sorted_bounds:
        kind = "bad" if bound.kind == one.binding.kind else "good"
        rows.append(Bar(bound.kind, [(bound.seconds, kind)], f"{micros(bound.seconds)}  {bound.detail}".rstrip()))
    return f"{title}, on {machine.name}", rows, "; ".join(line.strip() for line in lines[len(rows) :])


def micros(seconds: float) -> str:
    """A time in microseconds, in milliseconds from a thousand on.

    >>> micros(2e-6), micros(0.0123)
    ('2.00 us', '12.3 ms')
    """
    value, unit = (seconds * 1e6, "us") if seconds < 1e-3 else (seconds * 1e3, "ms")
    return f"{value:.3g} {unit}" if value >= 100 else f"{value:.1f} {unit}" if value >= 10 else f"{value:.2f} {unit}"
