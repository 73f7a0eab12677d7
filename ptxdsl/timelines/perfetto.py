"""A timeline in Chrome's trace-event format: a process a block, a thread a warp, flows from who lets others go on.

The format is that of "Trace Event Format" (Chromium); ui.perfetto.dev and chrome://tracing open it. Its times are in
microseconds, of which a clock takes a thousandth, so that one nanosecond on the screen is one clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .events import WarpKey
from .model import WAITS, Interval, Operation
from .result import LaunchTimeline, WarpTimeline, short

__all__ = ["trace"]

_BESIDE = 1000
"""The number of the first thread for what goes on beside the warps."""
Event = dict[str, Any]


def trace(launches: Sequence[LaunchTimeline]) -> str:
    """The trace of launches, one after the other in time."""
    events: list[Event] = []
    start, process = 0.0, 1
    for launch in launches:
        processes = {number: process + n for n, number in enumerate(sorted(launch.record.blocks))}
        process += len(processes)
        events += _Launch(launch, processes, start, len(events)).events()
        start += launch.clocks
    data = {"displayTimeUnit": "ns", "otherData": {"unit": "a nanosecond is a clock of the model"}}
    return json.dumps({"traceEvents": events, **data})


class _Launch:
    def __init__(self, launch: LaunchTimeline, processes: dict[int, int], start: float, flows: int) -> None:
        self.launch, self.processes, self.start, self.flows = launch, processes, start, flows

    def events(self) -> Iterator[Event]:
        launch = self.launch
        for number, process in self.processes.items():
            name = f"{launch.name} block {launch.record.blocks[number].index}"
            yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}
            yield {"ph": "M", "name": "process_sort_index", "pid": process, "tid": 0, "args": {"sort_index": process}}
            operations = launch.operations(number)
            for place, kind in enumerate(("product", "matrix", "copy")):
                chosen = [op for op in operations if op.kind == kind]
                if chosen:
                    what = {"product": "tensor cores", "matrix": "tensor cores", "copy": "copies"}[kind]
                    yield self._thread(process, _BESIDE + place, what)
                    for one in chosen:
                        yield from self._operation(process, _BESIDE + place, one)
        for key, warp in zip(sorted(launch.schedule.warps), launch.warps):
            yield from self._warp(key, warp)

    def _thread(self, process: int, thread: int, name: str) -> Event:
        return {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}}

    def _warp(self, key: WarpKey, warp: WarpTimeline) -> Iterator[Event]:
        process = self.processes[key[0]]
        yield self._thread(process, key[1], f"warp {key[1]}")
        for each in warp.intervals:
            waits = each.kind in WAITS
            name = f"wait: {each.on}" if waits else each.kind
            yield {
                "ph": "X", "name": name, "cat": "wait" if waits else "run", "ts": self._at(each.start),
                "dur": (each.end - each.start) / 1000, "pid": process, "tid": key[1], "args": self._args(each),
            }
            if each.by is not None and each.by != key:
                self.flows += 1
                flow = {"cat": "release", "name": each.on, "id": self.flows, "ts": self._at(each.end)}
                yield {"ph": "s", **flow, "pid": self.processes[each.by[0]], "tid": each.by[1]}
                yield {"ph": "f", "bp": "e", **flow, "pid": process, "tid": key[1]}

    def _operation(self, process: int, thread: int, one: Operation) -> Iterator[Event]:
        """Several of these go on at a time, so they are asynchronous events."""
        self.flows += 1
        name = f"{one.kind} of warp {one.by[1]}"
        common = {"cat": one.kind, "name": name, "id": self.flows, "pid": process, "tid": thread}
        args = {
            "line": short(self.launch.loc(one.place)), "ptx": self.launch.text(one.place),
            "bytes" if one.kind == "copy" else "operations": one.amount, "queued": one.begun - one.start,
        }
        yield {"ph": "b", "ts": self._at(one.start), "args": args, **common}
        yield {"ph": "e", "ts": self._at(one.end), **common}

    def _args(self, each: Interval) -> dict[str, str]:
        launch, loc = self.launch, self.launch.loc(each.place)
        found = {"line": short(loc), "source": (loc.source or "") if loc else "", "ptx": launch.text(each.place)}
        if each.by is not None:
            block, warp = each.by
            found["let go on by"] = f"block {block} warp {warp}: {short(launch.loc(each.cause))}"
        return found

    def _at(self, clock: float) -> float:
        return (self.start + clock) / 1000
