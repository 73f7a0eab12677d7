"""``do_bench``: how long something takes, on whichever backend launches take.

On a GPU by events, with a cold L2 cache; on the emulator by the clock of the host. Either way the result is a
:class:`~ptxdsl.bench.measurement.Measurement`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from statistics import median
from time import perf_counter, process_time
from typing import Protocol

from .. import config
from ..collector import paused
from ..errors import LaunchError, caller, did_you_mean, similar
from ..kernel.backends import backend_name, choose
from ..kernel.streams import Stream
from ..launch import stream_handle
from .measurement import Measurement
from .measurements import Measurements

__all__ = ["do_bench", "side_by_side"]

_CLOCKS = {"wall": perf_counter, "cpu": process_time}
_LEAST, _MOST = 5, 1000
"""Runs, where their number is not given."""
_ROUNDS = 5
_ATTEMPTS, _SHORTER = 4, 0.85
"""How often all runs are made, where those of the second half are shorter than this share of those of the first."""


class _Timer(Protocol):
    """Takes the times of runs; ``clock`` is what it is called, ``where`` the machine that runs."""

    clock: str
    where: str

    def __call__(self, run: Callable[[], object], runs: int, before: Callable[[], object] | None) -> list[float]:
        """Seconds of each run."""


class _Host:
    """The host's clock around a call that comes back when all is done."""

    def __init__(self, clock: str, where: str) -> None:
        self.clock, self.where, self._now = {"wall": "wall time", "cpu": "CPU time"}[clock], where, _CLOCKS[clock]

    def __call__(self, run: Callable[[], object], runs: int, before: Callable[[], object] | None) -> list[float]:
        now, found = self._now, []
        with paused():
            for _ in range(runs):
                if before is not None:
                    before()
                start = now()
                run()
                found.append(now() - start)
        return found


class _Gpu:
    """Events on a stream of a GPU."""

    def __init__(self, timer: Callable[..., list[float]], clock: str, where: str) -> None:
        self._timer, self.clock, self.where = timer, clock, where

    def __call__(self, run: Callable[[], object], runs: int, before: Callable[[], object] | None) -> list[float]:
        with paused():
            return self._timer(run, runs, before)


@contextmanager
def _timer(
    *, backend: str | None, device: int | None, stream: object, graph: bool, cold: bool, clock: str
) -> Iterator[_Timer]:
    if clock not in _CLOCKS:
        hint = did_you_mean(similar(str(clock), _CLOCKS), "`clock={!r}`")
        raise LaunchError(f"clock is 'wall' or 'cpu', not {clock!r}", loc=caller(), hint=hint)
    if choose(backend) == "emulator":
        yield _Host(clock, backend_name("emulator"))
        return
    from ..gpu.device import driver
    from ..gpu.timing import Stopwatch

    with ExitStack() as opened:
        entered = config.current().stream
        if stream is None and entered is not None and device in (None, entered[0]):
            device, stream = entered
        elif isinstance(stream, Stream) and device is None:
            device = stream.device
        elif stream is None and graph:
            stream = opened.enter_context(Stream(device, backend="gpu"))
        ordinal = config.current().device if device is None else device
        stopwatch = opened.enter_context(Stopwatch(driver(ordinal), stream_handle(stream) or 0, cold=cold))
        name = f"GPU events{' in a graph' if graph else ''}, {'cold' if cold else 'warm'} L2"
        yield _Gpu(stopwatch.replayed if graph else stopwatch.times, name, stopwatch.gpu.name)


class _Bench:
    """One function, what is called before each of its runs, and how many of them there are to be."""

    def __init__(
        self, timer: _Timer, run: Callable[[], object], reset: Callable[[], object] | None, seconds: float,
        runs: int | None,
    ) -> None:
        self._timer, self._run, self._reset, self._seconds = timer, run, reset, seconds
        self.times(1)  # which traces, assembles and loads
        self.runs = self._warmed() if runs is None else runs

    def times(self, runs: int) -> list[float]:
        """The times of so many runs."""
        return self._timer(self._run, runs, self._reset) if runs else []

    def _warmed(self) -> int:
        """How many runs there are to be, by as many as warm up compiled code, caches and clocks."""
        spent, count, latest = 0.0, 1, 0.0
        while spent < self._seconds / 4 and count < _MOST:
            latest = sum(self.times(count)) / count
            spent += latest * count
            count *= 2
        return self._fitting(latest)

    def _fitting(self, each: float) -> int:
        return min(max(round(self._seconds / max(each, 1e-9)), _LEAST), _MOST)

    def steady(self) -> list[float]:
        """The times of all runs, once they do not get shorter any more: the emulator compiles beside them."""
        for _ in range(_ATTEMPTS):
            found, before = self.times(self.runs), self.runs
            first, latest = median(found[: before // 2]), median(found[before // 2 :])
            self.runs = self._fitting(latest)
            if latest > _SHORTER * first and self.runs <= 2 * before:
                break
        return found


def do_bench(
    function: Callable[[], object], *, name: str | None = None, nbytes: float | None = None, flops: float | None = None,
    at: float | None = None, seconds: float = 0.2, runs: int | None = None,
    reset: Callable[[], object] | None = None, stream: object = None, graph: bool = False, cold: bool = True,
    device: int | None = None, backend: str | None = None, clock: str = "wall",
) -> Measurement:
    """How long ``function()`` takes: a :class:`Measurement` with the median, the quartiles and every time.

    It runs once to be compiled, then for a quarter of ``seconds`` to warm up, then ``seconds`` long, at least 5 and at
    most 1000 times; or once, and then ``runs`` times. ``reset()`` is called before each run and not timed, for
    functions that change what they work on. ``nbytes`` and ``flops`` are what a run moves and computes: the result has
    the rates. ``at`` is the size that was measured, for plots over sizes.

    On a GPU the times are those of events on ``stream``, on which the function must launch; None is the stream of the
    ``with`` block around, or the default one of ``device``, the GPU's ordinal. With ``cold`` a buffer of twice the size
    of the L2 cache is overwritten before each run. ``graph=True`` captures 50 runs into a graph and times its replays,
    for kernels of a few microseconds, which are shorter than their launches; without a ``stream`` it makes one, which
    launches take that name none. On the emulator ``clock`` is ``"wall"``, or ``"cpu"`` for what all threads of the
    process took together: the times of an emulator, which say nothing about those of a GPU.

    LaunchError where nothing can be measured so; what ``function`` raises is passed on.

    >>> from ptxdsl import Ptr, f32, ptx, ptx_kernel, use
    >>> from ptxdsl.bench import do_bench
    >>> @ptx_kernel
    ... def double(x: Ptr[f32]):
    ...     i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ...     x[i] = x[i] + x[i]
    >>> x = np.zeros(1024, np.float32)
    >>> with use("emulator"):
    ...     measured = do_bench(lambda: double[4, 256](x), nbytes=2 * x.nbytes, runs=7)
    >>> measured  # doctest: +ELLIPSIS
    <run: ... (... to ...), n = 7, ...B/s, wall time on emulator>
    """
    _check(seconds, runs)
    with _timer(backend=backend, device=device, stream=stream, graph=graph, cold=cold, clock=clock) as timer:
        bench = _Bench(timer, function, reset, seconds, runs)
        times = bench.steady() if runs is None else bench.times(runs)
    return Measurement(tuple(times), name or _name(function), timer.clock, timer.where, nbytes, flops, at)


def side_by_side(
    functions: Mapping[str, Callable[[], object]], *, nbytes: float | None = None, flops: float | None = None,
    at: float | None = None, seconds: float = 0.2, runs: int | None = None,
    reset: Callable[[], object] | None = None, stream: object = None, graph: bool = False, cold: bool = True,
    device: int | None = None, backend: str | None = None, clock: str = "wall",
) -> Measurements:
    """Several functions measured in turn, by their names: what disturbs the machine disturbs all of them.

    Arguments as for :func:`do_bench`; each function is run in 5 rounds, between which the others have theirs.

    >>> found = side_by_side({"sum": lambda: sum(range(99)), "max": lambda: max(range(99))}, runs=7, backend="emulator")
    >>> found["sum"].n, found["max"].n
    (7, 7)
    """
    _check(seconds, runs)
    with _timer(backend=backend, device=device, stream=stream, graph=graph, cold=cold, clock=clock) as timer:
        benches = {name: _Bench(timer, function, reset, seconds, runs) for name, function in functions.items()}
        if runs is None:
            for bench in benches.values():
                bench.steady()
        times: dict[str, list[float]] = {name: [] for name in functions}
        for turn in range(_ROUNDS):
            for name, bench in benches.items():
                times[name] += bench.times(bench.runs * (turn + 1) // _ROUNDS - bench.runs * turn // _ROUNDS)
    return Measurements(
        Measurement(tuple(found), name, timer.clock, timer.where, nbytes, flops, at) for name, found in times.items()
    )


def _check(seconds: float, runs: int | None) -> None:
    if runs is None:
        if not seconds > 0:
            raise LaunchError(f"seconds is how long to measure, above 0, not {seconds!r}", loc=caller())
    elif isinstance(runs, bool) or not isinstance(runs, int) or operator.index(runs) < 1:
        raise LaunchError(f"runs is an int from 1 on, not {runs!r}", loc=caller())


def _name(function: Callable[[], object]) -> str:
    name = getattr(function, "__name__", "run")
    return "run" if name.startswith("<") else name
