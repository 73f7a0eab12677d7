"""Streams, events and graphs, on either backend.

A stream orders launches; on the emulator each launch has run when it comes back, and so a stream has nothing to wait
for. A graph records launches without making them, and replays them as often as one likes, on a GPU for the price of
one.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn

from .. import config
from ..errors import DriverError, LaunchError, caller
from ..launch import stream_handle
from ..launch.captures import captures
from .backends import choose

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..gpu.device import Driver

__all__ = ["Event", "Graph", "Stream", "graph", "synchronize"]

_emulated_handles = itertools.count(1 << 48)
_DISABLE_TIMING = 2
_NON_BLOCKING = 1


class _OfOneProcess:
    """Something of CUDA's that means nothing in another process."""

    def __reduce__(self) -> NoReturn:
        from pickle import PicklingError

        raise PicklingError(str(LaunchError(
            f"{self!r} cannot be pickled or copied: it is of one process", loc=caller(),
            hint="make one in the process that uses it",
        )))


class Stream(_OfOneProcess):
    """A queue of work on a GPU: what is on it is done in order, beside what is on other streams.

    ``device`` is the GPU's ordinal, that of :func:`~ptxdsl.device` if it is None; ``priority`` a number that is less
    for what is more urgent (CUDA's range is 0 to -5). It does not wait for the default stream. As a context manager it
    is where launches of its block go that name none, with arrays of whichever library. ``k[grid, block, stream]`` takes
    it, and so does what knows ``__cuda_stream__``.

    >>> from ptxdsl import Ptr, ptx, ptx_kernel, u32, zeros
    >>> @ptx_kernel
    ... def fill(x: Ptr[u32], value: u32):
    ...     x[ptx.tid.x] = value
    >>> stream, x = Stream(backend="emulator"), zeros(4, u32, backend="emulator")
    >>> with stream:
    ...     fill.configure(1, 4, backend="emulator")(x, 7)
    >>> stream.synchronize()
    >>> x.numpy().tolist()
    [7, 7, 7, 7]
    """

    def __init__(self, device: int | None = None, *, priority: int = 0, backend: str | None = None) -> None:
        self.device, self._gpu = _device(backend, device)
        self.owner = None
        if self._gpu is None:
            self.handle = next(_emulated_handles)
        else:
            with self._gpu.uncaptured():
                self.handle = int(self._gpu.call("cuStreamCreateWithPriority", _NON_BLOCKING, priority))
            self._gpu.memory.adopt(self.handle)
            weakref.finalize(self, self._gpu.memory.end, self.handle).atexit = False
        self._entered: list[config.override] = []

    @classmethod
    def of(cls, stream: Any, device: int | None = None) -> Stream:
        """A stream of torch, CuPy, Numba or cuda.core, or a handle, which stays its owner's; LaunchError for others.

        The driver knows the GPU of each; the default streams are on ``device``, that of :func:`~ptxdsl.device` if None.
        """
        if isinstance(stream, Stream):
            return stream
        handle = stream_handle(stream)
        if handle is None:
            raise LaunchError("None is no stream", loc=caller(), hint="0 is the default stream")
        self = cls.__new__(cls)
        self.device, self._gpu = _device(None, device)
        if self._gpu is not None:
            self._gpu = self._gpu.of_stream(handle)
            self.device = self._gpu.device
        self.owner, self.handle, self._entered = stream, handle, []
        return self

    @property
    def backend(self) -> str:
        """``"gpu"`` or ``"emulator"``."""
        return "emulator" if self._gpu is None else "gpu"

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def synchronize(self) -> None:
        """Wait until all that is on the stream is done; DriverError if a kernel has failed."""
        if self._gpu is not None:
            self._gpu.synchronize_stream(self.handle)

    @property
    def done(self) -> bool:
        """Whether all that is on the stream is done."""
        return self._gpu is None or _ready(self._gpu, "cuStreamQuery", self.handle)

    def wait(self, other: Any) -> None:
        """What is put on this stream from now on waits for an event, or for what is on another stream now."""
        event = other if isinstance(other, Event) else Stream.of(other, self.device).record()
        if self._gpu is not None and event._handle is not None:
            with self._gpu.current():
                self._gpu.call("cuStreamWaitEvent", self.handle, event._handle, 0)

    def record(self, *, timing: bool = False) -> Event:
        """An event behind what is on the stream now."""
        event = Event(timing=timing)
        event.record(self)
        return event

    def __enter__(self) -> Self:
        self._entered.append(config.override(stream=(self.device, self.handle)))
        return self

    def __exit__(self, *exception: object) -> None:
        self._entered.pop().__exit__()

    def __repr__(self) -> str:
        return f"Stream(device={self.device}, handle={self.handle:#x}, backend={self.backend!r})"


class Event(_OfOneProcess):
    """A mark between pieces of work on a stream; with ``timing`` it notes when it is reached.

    >>> start, end = Event(timing=True), Event(timing=True)
    >>> stream = Stream(backend="emulator")
    >>> start.record(stream)
    >>> end.record(stream)
    >>> end.since(start) >= 0
    True
    """

    def __init__(self, *, timing: bool = False) -> None:
        self.timing = timing
        self._gpu: Driver | None = None
        self._handle: Any = None
        self._time: float | None = None

    def record(self, stream: Any) -> None:
        """Put the mark behind what is on a stream now."""
        stream = Stream.of(stream)
        if stream._gpu is None:
            self._time = perf_counter()
            return
        if self._gpu is not stream._gpu:
            self._gpu = stream._gpu
            with self._gpu.uncaptured():
                self._handle = self._gpu.call("cuEventCreate", 0 if self.timing else _DISABLE_TIMING)
            weakref.finalize(self, self._gpu.discard, "cuEventDestroy", self._handle).atexit = False
        with self._gpu.current():
            self._gpu.call("cuEventRecord", self._handle, stream.handle)

    def __repr__(self) -> str:
        return f"Event(timing={self.timing})"

    def synchronize(self) -> None:
        """Wait until the mark is reached."""
        if self._gpu is not None:
            with self._gpu.current():
                self._gpu.call("cuEventSynchronize", self._handle)

    @property
    def done(self) -> bool:
        """Whether the mark is reached; so is one that was never recorded."""
        return self._gpu is None or _ready(self._gpu, "cuEventQuery", self._handle)

    def since(self, start: Event) -> float:
        """Milliseconds from another event to this one; waits for both."""
        for event, name in ((start, "the first"), (self, "the second")):
            if not event.timing or (event._gpu is None and event._time is None):
                what = "was made without `timing=True`" if not event.timing else "was never recorded"
                raise LaunchError(f"no time between two events: {name} {what}", loc=caller())
        if self._gpu is None or start._gpu is None:
            assert self._time is not None
            assert start._time is not None
            return (self._time - start._time) * 1e3
        start.synchronize()
        self.synchronize()
        with self._gpu.current():
            return float(self._gpu.call("cuEventElapsedTime", start._handle, self._handle))


class Graph(_OfOneProcess):
    """Launches that are made together, as often as one likes; made by :func:`graph`.

    It keeps the arrays that they were given; a replay works on what these hold then.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream, self._gpu = stream, stream._gpu
        self._executable: Any = None
        self._recorded: list[Callable[[], object]] = []
        self._kept: list[object] = []
        self._nodes = 0

    def __repr__(self) -> str:
        return f"<graph of {self._nodes} launch{'es' * (self._nodes != 1)} on {self.stream!r}>"

    def __enter__(self) -> Self:
        if self._gpu is not None:
            mode = self._gpu.cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
            with self._gpu.current():
                self._gpu.call("cuStreamBeginCapture", self.stream.handle, mode)
        captures[self.stream.handle] = self
        self.stream.__enter__()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.stream.__exit__()
        del captures[self.stream.handle]
        gpu = self._gpu
        if gpu is None:
            self._nodes = len(self._recorded)
            return
        with gpu.current():
            with contextlib.suppress(*(() if kind is None else (DriverError,))):  # the block's own error is the cause
                made = gpu.call("cuStreamEndCapture", self.stream.handle)
                try:
                    if kind is None:
                        self._nodes = int(gpu.call("cuGraphGetNodes", made, 0)[1])
                        self._executable = gpu.call("cuGraphInstantiate", made, 0)
                finally:
                    gpu.call("cuGraphDestroy", made)
        if self._executable is not None:
            release = partial(_release, gpu, self._executable, self._kept)
            weakref.finalize(self, gpu.retire, release).atexit = False

    def keep(self, arguments: object) -> None:
        """Keep what a launch was given for as long as the graph may make it."""
        self._kept.append(arguments)

    def record(self, launch: Callable[[], object]) -> None:
        """Note a launch on the emulator."""
        self._recorded.append(launch)

    def replay(self, stream: Any = None) -> None:
        """Make the launches, in their order, on a stream; on its own if none is given."""
        where = self.stream if stream is None else Stream.of(stream, self.stream.device)
        if where.handle in captures:
            raise LaunchError("a graph is replayed while its stream is captured", loc=caller())
        if self._gpu is None:
            for launch in self._recorded:
                launch()
            return
        if self._executable is None:
            raise LaunchError("a graph is replayed whose block has not ended well", loc=caller())
        with self._gpu.current():
            self._gpu.memory.uses(where.handle)
            self._gpu.call("cuGraphLaunch", self._executable, where.handle)

    def __len__(self) -> int:
        """The number of nodes: launches, and on a GPU what else was put on the stream."""
        return self._nodes


def graph(*, stream: Any = None, device: int | None = None, backend: str | None = None) -> Graph:
    """Capture launches into a graph: those of the block that name no stream, or the graph's.

    Without a ``stream`` it is captured on a new one of GPU ``device``, that of :func:`~ptxdsl.device` if it is None.

    Nothing runs in the block, on either backend. Host arrays are refused, since a graph would copy from them and to
    them whenever it is replayed: LaunchError says so, and how to mend it.

    >>> from ptxdsl import Ptr, ptx, ptx_kernel, u32, zeros
    >>> @ptx_kernel
    ... def count(x: Ptr[u32]):
    ...     x[ptx.tid.x] += 1
    >>> launch, x = count.configure(1, 4, backend="emulator"), zeros(4, u32, backend="emulator")
    >>> with graph(backend="emulator") as g:
    ...     launch(x)
    ...     launch(x)
    >>> len(g), x.numpy().tolist()
    (2, [0, 0, 0, 0])
    >>> for _ in range(3):
    ...     g.replay()
    >>> x.numpy().tolist()
    [6, 6, 6, 6]
    """
    return Graph(Stream(device, backend=backend) if stream is None else Stream.of(stream, device))


def synchronize(device: int | None = None) -> None:
    """Wait until a GPU has done all that it was asked to; without a ``device`` all that this process uses.

    DriverError if a kernel has failed. On the emulator there is nothing to wait for.
    """
    from ..gpu.device import driver, known

    for gpu in known() if device is None else [driver(device)]:
        gpu.synchronize()


def _device(backend: str | None, device: int | None) -> tuple[int, Driver | None]:
    """The ordinal that a caller means, and the GPU; None of the emulator."""
    ordinal = config.current().device if device is None else device
    if isinstance(ordinal, bool) or not isinstance(ordinal, int) or ordinal < 0:
        raise LaunchError(f"device is the number of a GPU, not {device!r}", loc=caller(), hint="0 is the first")
    if choose(backend) == "emulator":
        return ordinal, None
    from ..gpu.device import driver

    return ordinal, driver(ordinal)


def _release(gpu: Driver, executable: Any, kept: list[object]) -> None:
    """Give a graph back, and only then what its launches were given."""
    gpu.discard("cuGraphExecDestroy", executable)
    kept.clear()


def _ready(gpu: Driver, query: str, handle: Any) -> bool:
    try:
        with gpu.current():
            gpu.call(query, handle)
    except DriverError as error:
        if error.name == "CUDA_ERROR_NOT_READY":
            return False
        raise
    return True
