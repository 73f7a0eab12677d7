"""The timeline of a launch as data, and as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ..emulator.machine.unsupported import render
from ..errors import Loc
from ..forecasting.machines import Machine
from ..forecasting.pipes import PARTITIONS
from ..text_table import table
from .events import LaunchRecord, WarpKey
from .model import WAITS, Interval, Operation, Schedule

__all__ = ["LaunchTimeline", "Waiting", "WarpTimeline"]

_LISTED = 12
"""Rows of the table of waits."""


class Waiting(NamedTuple):
    """What warps waited for at one line: ``clocks`` of all warps together, ``times`` how often.

    ``kind`` is barrier, mbarrier, copies, products or memory; ``loc`` where they waited, ``by`` the line that has let
    them go on most often; None where PTX has no lines of Python.
    """

    kind: str
    on: str
    loc: Loc | None
    text: str
    clocks: float
    times: int
    by: Loc | None


@dataclass(frozen=True)
class WarpTimeline:
    """A warp: clocks in which it was ``busy`` and ``waiting``, its instructions, what it waited for, longest first.

    ``block`` is the index of its block. ``idle`` are the clocks from its end to that of the launch.
    """

    block: tuple[int, int, int]
    warp: int
    instructions: int
    busy: float
    waiting: float
    idle: float
    waits: tuple[Waiting, ...] = field(repr=False)
    intervals: tuple[Interval, ...] = field(repr=False)


@dataclass(frozen=True)
class LaunchTimeline:
    """The timeline of one launch; ``clocks`` is its length. Printed, a table."""

    name: str
    record: LaunchRecord = field(repr=False)
    schedule: Schedule = field(repr=False)
    machine: Machine = field(repr=False)
    notes: list[str] = field(repr=False)

    @property
    def clocks(self) -> float:
        """From the begin of the first recorded block to the end of the last."""
        return self.schedule.clocks

    @property
    def warps(self) -> list[WarpTimeline]:
        """The warps, block by block."""
        return [self._warp(key, intervals) for key, intervals in sorted(self.schedule.warps.items())]

    @property
    def waits(self) -> list[Waiting]:
        """What all warps waited for, by kind, name and line, longest first."""
        return self._waits(each for intervals in self.schedule.warps.values() for each in intervals)

    @property
    def waiting(self) -> float:
        """The share of the clocks of all warps in which they wait."""
        warps = self.warps
        total = sum(warp.busy + warp.waiting for warp in warps)
        return sum(warp.waiting for warp in warps) / total if total else 0.0

    @property
    def multiplying(self) -> float:
        """The share of the clocks in which the tensor cores of the recorded blocks multiply."""
        times = [
            (op.end - op.begun) / (1 if op.kind == "product" else PARTITIONS)
            for operations in self.schedule.operations.values() for op in operations if op.kind != "copy"
        ]
        return sum(times) / (self.clocks * len(self.record.blocks)) if times else 0.0

    @property
    def summary(self) -> str:
        """The launch in one line."""
        parts = [f"{self.clocks:,.0f} clocks on {self.machine.name}", f"warps wait {self.waiting:.0%} of their time"]
        if self.multiplying:
            parts.append(f"tensor cores multiply {self.multiplying:.0%} of it")
        return "; ".join([", ".join(parts), *self.notes])

    def operations(self, block: int) -> list[Operation]:
        """The asynchronous copies and the products of a block, by its number, in the order of their begin."""
        return sorted(self.schedule.operations.get(block, ()))

    def loc(self, place: int) -> Loc | None:
        """The Python line of a statement."""
        return self.record.statements[place].loc if place >= 0 else None

    def text(self, place: int) -> str:
        """The PTX of a statement."""
        return render(self.record.statements[place])

    def _warp(self, key: WarpKey, intervals: list[Interval]) -> WarpTimeline:
        waiting = sum(each.end - each.start for each in intervals if each.kind in WAITS)
        busy = sum(each.end - each.start for each in intervals) - waiting
        end = intervals[-1].end if intervals else 0.0
        return WarpTimeline(
            self.record.blocks[key[0]].index, key[1], self.schedule.issued[key], busy, waiting, self.clocks - end,
            tuple(self._waits(iter(intervals))), tuple(intervals),
        )

    def _waits(self, intervals: Iterator[Interval]) -> list[Waiting]:
        groups: dict[tuple[str, str, Loc | None], list[Interval]] = defaultdict(list)
        for each in intervals:
            if each.kind in WAITS:
                groups[each.kind, each.on, self.loc(each.place)].append(each)
        found = []
        for (kind, on, loc), waits in groups.items():
            causes: dict[int, float] = defaultdict(float)
            for wait in waits:
                causes[wait.cause] += wait.end - wait.start
            by = max(causes, key=lambda place: (causes[place], -place))
            clocks = sum(wait.end - wait.start for wait in waits)
            found.append(Waiting(kind, on, loc, self.text(waits[0].place), clocks, len(waits), self.loc(by)))
        return sorted(found, key=lambda wait: -wait.clocks)

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.summary}", table(_HEAD, (self._row(warp) for warp in self.warps))]
        waits = self.waits
        if waits:
            parts.append(table(_WAITED, ((
                wait.on, f"{wait.clocks:,.0f}", f"{wait.times:,}", short(wait.loc) or wait.text, short(wait.by),
            ) for wait in waits[:_LISTED])))
            if len(waits) > _LISTED:
                parts.append(f"and {len(waits) - _LISTED} more in `launches[...].waits`")
        return "\n\n".join(parts)

    def _row(self, warp: WarpTimeline) -> tuple[str, ...]:
        total = warp.busy + warp.waiting
        longest = warp.waits[0] if warp.waits else None
        what = f"{longest.on} {longest.clocks:,.0f} at {short(longest.loc) or longest.text}" if longest else ""
        return (
            f"block {_index(warp.block)} warp {warp.warp}", f"{warp.instructions:,}", f"{warp.busy:,.0f}",
            f"{warp.waiting:,.0f}", f"{warp.waiting / total:.0%}" if total else "", what,
        )


_HEAD = ("warp", "instructions", "busy", "waiting", "share", "longest wait")
_WAITED = ("waited for", "clocks", "times", "at", "let go on by")


def short(loc: Loc | None) -> str:
    """A line without its folder."""
    return f"{loc.file.rpartition('/')[2]}:{loc.line}" if loc is not None else ""


def _index(index: tuple[int, int, int]) -> str:
    x, y, z = index
    return str(x) if not y and not z else str((x, y)) if not z else str(index)
