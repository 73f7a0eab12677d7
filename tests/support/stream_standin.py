"""The part of the stand-in driver that orders work: streams, events, captures and graphs.

A piece of work waits for the one before it on its stream, for the events that the stream waits for, and, between the
default stream and blocking ones, for each other. It is done when something waits for it, and not before.
"""

from __future__ import annotations

import ctypes
import enum
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

__all__ = ["CAPTURE_MODES", "Fault", "Result", "Streams"]


class Result(enum.IntEnum):
    """The results that the tests need."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_DEINITIALIZED = 4
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_DEVICE = 101
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_INVALID_HANDLE = 400
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_NOT_SUPPORTED = 801
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906
    CUDA_ERROR_UNKNOWN = 999


class Fault(Exception):
    """What a function gives instead of success; one of a kernel is given by all functions from then on."""

    def __init__(self, result: int, *, sticky: bool = False) -> None:
        super().__init__(result)
        self.result, self.sticky = result, sticky


CAPTURE_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}
_LEGACY, _PER_THREAD = (0, 1), 2


@dataclass(eq=False)
class Work:
    """A piece of work, and what it waits for."""

    run: Callable[[], object]
    after: list[Work]
    done: bool = False


@dataclass(eq=False)
class Capture:
    """What is captured into a graph."""

    origin: int
    mode: int
    thread: int
    streams: set[int] = field(default_factory=set)
    work: list[Callable[[], object]] = field(default_factory=list)
    invalid: bool = False


@dataclass(eq=False)
class Stream:
    """A stream; ``last`` is what was submitted last."""

    blocking: bool = True
    priority: int = 0
    last: Work | None = None
    capture: Capture | None = None
    device: int = 0


@dataclass(eq=False)
class Event:
    """An event; it was recorded behind ``work``, in a capture or at a time."""

    timed: bool
    work: Work | None = None
    capture: Capture | None = None
    time: float = 0.0
    recorded: int | None = None


class Streams:
    """Streams, events, captures and graphs of a stand-in."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {0: Stream(), _PER_THREAD: Stream()}
        self.events: dict[int, Event] = {}
        self.graphs: dict[int, list[Callable[[], object]]] = {}
        self.executables: dict[int, list[Callable[[], object]]] = {}
        self.waits: list[tuple[int | None, int]] = []
        """Where the events that a stream waits for were recorded, and the stream."""
        self.lazy = True
        """Whether work waits until something asks for it; else it is done when it is submitted."""
        self.sticky = 0
        self.last_handle = 0x1000
        self._capture_mode = threading.local()
        self._lock = threading.RLock()

    def here(self) -> int:
        """The GPU whose context is current; the first where none is."""
        return 0

    def fresh(self) -> int:
        """A handle that was not given out before."""
        self.last_handle += 0x10
        return self.last_handle

    def stream(self, handle: int) -> Stream:
        """The stream of a handle; small ones that the tests make up are made when they are first seen."""
        handle = 0 if handle in _LEGACY else handle
        if handle not in self.streams:
            if handle > 0xFF:
                raise Fault(Result.CUDA_ERROR_INVALID_HANDLE)
            self.streams[handle] = Stream(device=self.here())
        return self.streams[handle]

    def submit(self, handle: int, run: Callable[[], object]) -> None:
        """Put work on a stream."""
        stream = self.stream(handle)
        if stream.capture is not None:
            self._usable(stream.capture).work.append(run)
            return
        with self._lock:
            work = Work(run, [last for last in self._before(stream) if last is not None and not last.done])
            stream.last = work
        if not self.lazy:
            self.finish(work)

    def _before(self, stream: Stream) -> list[Work | None]:
        legacy = self.streams[0]
        if stream is legacy:
            if any(other.capture is not None and other.blocking for other in self.streams.values()):
                self._invalidate()
            return [other.last for other in self.streams.values() if other.blocking]
        return [stream.last, legacy.last] if stream.blocking else [stream.last]

    def finish(self, work: Work | None) -> None:
        """Do a piece of work, and first what it waits for."""
        with self._lock:
            waiting = [work] if work is not None else []
            while waiting:
                now = waiting[-1]
                before = [other for other in now.after if not other.done]
                if before and not now.done:
                    waiting += before
                    continue
                waiting.pop()
                if not now.done:
                    now.done, now.after = True, []
                    if not self.sticky:
                        now.run()

    def finish_stream(self, handle: int) -> None:
        """Do all that was submitted to a stream."""
        stream = self.stream(handle)
        for work in self._before(stream) if stream is self.streams[0] else [stream.last]:
            self.finish(work)

    def finish_all(self) -> None:
        """Do everything."""
        for stream in list(self.streams.values()):
            self.finish(stream.last)

    # -- streams

    def cuStreamCreateWithPriority(self, out: int, flags: int, priority: int) -> None:
        assert flags in (0, 1)
        handle = self.fresh()
        self.streams[handle] = Stream(flags == 0, ctypes.c_int(priority & 0xFFFFFFFF).value, device=self.here())
        ctypes.c_uint64.from_address(out).value = handle

    def cuStreamGetDevice(self, handle: int, out: int) -> None:
        ctypes.c_int.from_address(out).value = self.stream(handle).device

    def cuStreamCreate(self, out: int, flags: int) -> None:
        self.cuStreamCreateWithPriority(out, flags, 0)

    def cuStreamDestroy(self, handle: int) -> None:
        self.finish_stream(handle)
        del self.streams[handle]

    def cuStreamGetFlags(self, handle: int, out: int) -> None:
        ctypes.c_uint32.from_address(out).value = 0 if self.stream(handle).blocking else 1

    def cuStreamGetPriority(self, handle: int, out: int) -> None:
        ctypes.c_int.from_address(out).value = self.stream(handle).priority

    def cuCtxGetStreamPriorityRange(self, least: int, greatest: int) -> None:
        ctypes.c_int.from_address(least).value, ctypes.c_int.from_address(greatest).value = 0, -5

    def cuStreamSynchronize(self, handle: int) -> None:
        if self.stream(handle).capture is not None:
            self._invalidate()
        self.finish_stream(handle)

    def cuStreamQuery(self, handle: int) -> None:
        last = self.stream(handle).last
        if last is not None and not last.done:
            raise Fault(Result.CUDA_ERROR_NOT_READY)

    # -- events

    def cuEventCreate(self, out: int, flags: int) -> None:
        assert flags & ~3 == 0
        handle = self.fresh()
        self.events[handle] = Event(timed=not flags & 2)
        ctypes.c_uint64.from_address(out).value = handle

    def cuEventRecord(self, handle: int, stream: int) -> None:
        event, where = self.events[handle], self.stream(stream)
        event.recorded, event.capture = stream, where.capture
        if where.capture is None:
            def mark() -> None:
                event.time = perf_counter()

            self.submit(stream, mark)
            event.work = where.last

    def cuEventRecordWithFlags(self, handle: int, stream: int, flags: int) -> None:
        """With flag 1 a capture has a node that records the event whenever the graph comes to it."""
        assert flags & ~1 == 0
        event, where = self.events[handle], self.stream(stream)
        if where.capture is None or not flags:
            self.cuEventRecord(handle, stream)
            return

        def mark() -> None:
            event.time, event.work = perf_counter(), Work(lambda: None, [], done=True)

        event.recorded = stream
        self._usable(where.capture).work.append(mark)

    def cuStreamWaitEvent(self, stream: int, handle: int, flags: int) -> None:
        assert flags == 0
        event, where = self.events[handle], self.stream(stream)
        self.waits.append((event.recorded, stream))
        if event.capture is not None:
            where.capture = event.capture
            event.capture.streams.add(stream)
        elif event.work is not None:
            with self._lock:
                before = [last for last in (*self._before(where), event.work) if last is not None]
                where.last = Work(lambda: None, before)

    def cuEventSynchronize(self, handle: int) -> None:
        if self.events[handle].capture is not None:
            self._invalidate()
        self.finish(self.events[handle].work)

    def cuEventQuery(self, handle: int) -> None:
        work = self.events[handle].work
        if work is not None and not work.done:
            raise Fault(Result.CUDA_ERROR_NOT_READY)

    def cuEventElapsedTime(self, out: int, start: int, end: int) -> None:
        first, last = self.events[start], self.events[end]
        if not (first.timed and last.timed and first.work and last.work):
            raise Fault(Result.CUDA_ERROR_INVALID_HANDLE)
        if not (first.work.done and last.work.done):
            raise Fault(Result.CUDA_ERROR_NOT_READY)
        ctypes.c_float.from_address(out).value = (last.time - first.time) * 1e3

    def cuEventDestroy(self, handle: int) -> None:
        del self.events[handle]

    # -- captures and graphs

    def _captures(self) -> set[Capture]:
        return {stream.capture for stream in self.streams.values() if stream.capture is not None}

    def _usable(self, capture: Capture) -> Capture:
        if capture.invalid:
            raise Fault(Result.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
        return capture

    def _invalidate(self) -> None:
        for capture in self._captures():
            capture.invalid = True
        raise Fault(Result.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)

    def unsafe(self) -> None:
        """A call that a capture forbids, except where its thread has allowed it."""
        mine = getattr(self._capture_mode, "mode", 0)
        here = threading.get_ident()
        for capture in self._captures():
            relaxed = CAPTURE_MODES["relaxed"] in (capture.mode, mine)
            elsewhere = capture.thread != here and CAPTURE_MODES["thread_local"] in (capture.mode, mine)
            if not (relaxed or elsewhere):
                self._invalidate()

    def cuThreadExchangeStreamCaptureMode(self, mode: int) -> None:
        known = ctypes.c_int.from_address(mode)
        before = getattr(self._capture_mode, "mode", 0)
        self._capture_mode.mode, known.value = known.value, before

    def cuStreamBeginCapture(self, handle: int, mode: int) -> None:
        stream = self.stream(handle)
        if stream is self.streams[0] or stream.capture is not None:
            raise Fault(Result.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
        stream.capture = Capture(handle, mode, threading.get_ident(), {handle})

    def cuStreamEndCapture(self, handle: int, out: int) -> None:
        stream = self.stream(handle)
        capture = stream.capture
        if capture is None or capture.origin != handle:
            raise Fault(Result.CUDA_ERROR_INVALID_VALUE)
        for each in capture.streams:
            self.stream(each).capture = None
        ctypes.c_uint64.from_address(out).value = 0
        graph = self.fresh()
        self.graphs[graph] = self._usable(capture).work
        ctypes.c_uint64.from_address(out).value = graph

    def cuStreamIsCapturing(self, handle: int, out: int) -> None:
        """On the default stream it is an error to ask while a blocking stream is captured."""
        stream = self.stream(handle)
        if stream is self.streams[0] and any(o.blocking and o.capture is not None for o in self.streams.values()):
            raise Fault(Result.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        capture = stream.capture
        ctypes.c_int.from_address(out).value = 0 if capture is None else 2 if capture.invalid else 1

    def cuGraphInstantiate(self, out: int, graph: int, flags: int) -> None:
        handle = self.fresh()
        self.executables[handle] = list(self.graphs[graph])
        ctypes.c_uint64.from_address(out).value = handle

    def cuGraphInstantiateWithFlags(self, out: int, graph: int, flags: int) -> None:
        self.cuGraphInstantiate(out, graph, flags)

    def cuGraphLaunch(self, executable: int, stream: int) -> None:
        def run() -> None:
            for each in self.executables[executable]:
                each()

        assert executable in self.executables
        self.submit(stream, run)

    def cuGraphDestroy(self, graph: int) -> None:
        del self.graphs[graph]

    def cuGraphExecDestroy(self, executable: int) -> None:
        self.finish_all()
        del self.executables[executable]

    def cuGraphGetNodes(self, graph: int, nodes: int, count: int) -> None:
        assert nodes == 0
        ctypes.c_uint64.from_address(count).value = len(self.graphs[graph])

    @contextmanager
    def capture(self, handle: int, mode: str = "global") -> Iterator[Capture]:
        """A capture of a stream that another library makes; it must stay valid."""
        self.cuStreamBeginCapture(handle, CAPTURE_MODES[mode])
        found = self.stream(handle).capture
        assert found is not None
        yield found
        graph = ctypes.c_uint64()
        self.cuStreamEndCapture(handle, ctypes.addressof(graph))
        self.cuGraphDestroy(graph.value)
