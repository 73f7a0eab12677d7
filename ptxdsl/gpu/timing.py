"""Times on a GPU: by events around each run, with its L2 cache overwritten before, launched one by one or as a graph.

An event is a time that the GPU itself takes when it comes to it, so neither Python nor the launch is timed, as long as
work waits for the GPU. Where the runs are shorter than their launches it does not; then a graph of many runs, with the
events in it, is launched at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ..errors import DriverError, LaunchError, caller
from .device import Driver

__all__ = ["Stopwatch"]

Run = Callable[[], object]
_IN_GRAPH = 50
"""Runs in a graph: a replay takes long enough that launching it does not count."""
_CACHES = 2
"""How many times the L2 cache's size is overwritten."""


class Stopwatch:
    """Times runs on a stream, as a context manager that gives back what it takes of the GPU.

    With ``cold`` each run finds an L2 cache in which nothing of the run before is left.
    """

    def __init__(self, gpu: Driver, stream: int, *, cold: bool) -> None:
        self.gpu, self.stream, self.cold = gpu, gpu.cu.CUstream(stream), cold
        self._number = stream
        self._scratch = self._size = 0
        self._events: list[Any] = []

    def __enter__(self) -> Stopwatch:
        if self.cold:
            self._size = _CACHES * self.gpu.ask("L2_CACHE_SIZE")
            self._scratch = self.gpu.memory.allocate(self._size)
        return self

    def __exit__(self, *exception: object) -> None:
        while self._events:
            self.gpu.discard("cuEventDestroy", self._events.pop())
        self.gpu.memory.free(self._scratch)
        self._scratch = 0

    def times(self, run: Run, runs: int, before: Run | None = None) -> list[float]:
        """Seconds of each of so many runs; ``before`` is called before each, and not timed."""
        pairs = self._pairs(runs)
        with self.gpu.current():
            for start, end in pairs:
                self._prepare(before)
                self.gpu.call("cuEventRecord", start, self.stream)
                run()
                self.gpu.call("cuEventRecord", end, self.stream)
            self.gpu.call("cuEventSynchronize", pairs[-1][1])
            self.gpu.in_flight.clear(self._number)
            return self._elapsed(pairs)

    def replayed(self, run: Run, runs: int, before: Run | None = None) -> list[float]:
        """The same of runs that are captured into a graph, which is launched as often as it takes."""
        if self._number in (0, 1):
            raise LaunchError(
                "a graph is captured on a stream, and the default one cannot be captured", loc=caller(),
                hint="leave out `stream=`, or pass a `ptxdsl.Stream()` on which the function launches",
            )
        found: list[float] = []
        pairs = self._pairs(min(runs, _IN_GRAPH))
        with self.gpu.current(), self._graph(run, before, pairs) as graph:
            while len(found) < runs:
                self.gpu.call("cuGraphLaunch", graph, self.stream)
                self.gpu.call("cuStreamSynchronize", self.stream)
                found += self._elapsed(pairs)
        return found[:runs]

    def _pairs(self, count: int) -> list[tuple[Any, Any]]:
        with self.gpu.uncaptured():
            while len(self._events) < 2 * count:
                self._events.append(self.gpu.call("cuEventCreate", self.gpu.cu.CUevent_flags.CU_EVENT_DEFAULT))
        return list(zip(self._events[0 : 2 * count : 2], self._events[1 : 2 * count : 2]))

    def _prepare(self, before: Run | None) -> None:
        if before is not None:
            before()
        if self.cold:
            self.gpu.call("cuMemsetD8Async", self._scratch, 0, self._size, self.stream)

    def _elapsed(self, pairs: list[tuple[Any, Any]]) -> list[float]:
        return [float(self.gpu.call("cuEventElapsedTime", start, end)) * 1e-3 for start, end in pairs]

    @contextmanager
    def _graph(self, run: Run, before: Run | None, pairs: list[tuple[Any, Any]]) -> Iterator[Any]:
        """Runs with the events around them, ready to be launched."""
        call, external = self.gpu.call, self.gpu.cu.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        call("cuStreamBeginCapture", self.stream, self.gpu.cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        try:
            for start, end in pairs:
                self._prepare(before)
                call("cuEventRecordWithFlags", start, self.stream, external)
                run()
                call("cuEventRecordWithFlags", end, self.stream, external)
            captured = call("cuStreamEndCapture", self.stream)
        except BaseException as error:
            with suppress(DriverError):  # where the capture has ended, or is invalid by now
                self.gpu.discard("cuGraphDestroy", call("cuStreamEndCapture", self.stream))
            if not isinstance(error, DriverError):
                raise
            raise LaunchError(
                f"what is measured cannot be captured into a graph: {error.message}", loc=caller(),
                hint="launch on the stream given as `stream=`, with arrays on the GPU; or leave out `graph=True`",
            ) from error
        try:
            graph = call("cuGraphInstantiate", captured, 0)
        finally:
            self.gpu.discard("cuGraphDestroy", captured)
        try:
            yield graph
        finally:
            self.gpu.discard("cuGraphExecDestroy", graph)
