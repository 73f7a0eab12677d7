"""What a second core is worth: ``python tests/bench/cores.py``.

Each launch with one host thread and with two, beside what the machine gives to two processes that make the launch with
one host thread each at the same time: where that is less than 2, cores share memory's bandwidth, their clock, or are
busy with something else. All three alternate. Where other processes want the cores too, only quiet rounds count, those
in which threads were ready and had no core (Linux counts it: ``schedstat``) for less than a fiftieth of the time; the
table has the best of them, or, marked by ``~``, the best of all where there was none in ``--seconds``. ``work`` is the
processor time of one host thread over half of that of two: what two threads' work costs more, and no wait.

The six programs at sizes that take more than 2 ms, the kernels of ``tests/bench/real`` that do, as default, profiled
and sanitized launches. ``--only NAME ...`` for some of them, ``--modes MODE ...``, ``--rounds N``, ``--least MS`` for
launches of less. A speed-up that is less than 0.9 of the processes', or a second thread that makes a launch slower
(``--slower``), is marked.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, sleep, thread_time
from typing import NamedTuple

import numpy as np
import programs
from emulator import ONE_THREAD, checked, tiered_up
from ptxdsl import profile
from ptxdsl.bench import table
from ptxdsl.config import override
from ptxdsl.emulator.runtime import host_threads
from real.case import Case, kernels
from real_code import Bench
from runtime import attention_case

__all__ = ["main"]

MODES = ("default", "profiled", "sanitized")
TURN = 0.01
"""Seconds that one of the three takes in a round, in launches one after the other."""
QUIET, ENOUGH = 0.02, 3
"""The share of a turn that threads may wait for a core, and how many such turns are enough."""
GOOD, SAME = 0.9, 1.05
"""The share of the processes' speed-up that is wanted; a second thread that costs no more makes nothing slower."""


class Measured(NamedTuple):
    """The best times of a launch in ms, with one host thread and with two, and for each of two processes."""

    name: str
    mode: str
    one: float
    two: float
    processes: float
    work: float
    quiet: bool

    @property
    def speedup(self) -> float:
        return self.one / self.two

    @property
    def reference(self) -> float:
        """How many times as many launches two processes make as one."""
        return 2 * self.one / self.processes


def _saxpy(rng: np.random.Generator) -> programs.Case:
    x, y = rng.standard_normal((2, 1 << 24)).astype(np.float32)
    return programs.Case(programs.saxpy, x.size // 256, 256, [x.size, np.float32(0), x, y], 3, y.copy(), 0.0)


def _softmax(rng: np.random.Generator) -> programs.Case:
    x = rng.standard_normal((8192, 1024)).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    return programs.Case(programs.softmax, 2048, (32, 4), [x, np.full_like(x, np.nan)], 1, expected, 1e-5)


def _attention(rng: np.random.Generator) -> programs.Case:
    case = attention_case(rng)
    _, scale, q, k, v, _ = case.arguments
    scores = np.float64(scale) * (q.astype(np.float64) @ k.T)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return case._replace(expected=weights / weights.sum(axis=1, keepdims=True) @ v, allowed=1e-5)


def _histogram(rng: np.random.Generator) -> programs.Case:
    data = rng.integers(0, 256, 8_000_000, np.uint32)
    arguments = [data.size, data, np.zeros(256, np.uint32)]
    return programs.Case(programs.histogram, 64, 256, arguments, 2, np.bincount(data, minlength=256), 0.0)


SIX: dict[str, Callable[[np.random.Generator], programs.Case]] = {
    "saxpy 2^24": _saxpy, "matmul 512^3": partial(programs.matmul_case, n=512), "softmax 8192 x 1024": _softmax,
    "attention 1024 x 1024 x 64": _attention, "collatz 65,536": programs.PROGRAMS[4].case,
    "histogram 8e6": _histogram,
}


def _cluster_sum(rng: np.random.Generator, small: bool) -> Case:
    del small
    rows, columns = 480, 4000
    x, out = rng.standard_normal((rows, columns)).astype(np.float32), np.full(rows, np.nan, np.float32)
    return Case(4 * rows, 128, [x, out, columns], {1: x.sum(1, dtype=np.float64)}, 1e-5, cluster=4)


LARGER = {"cluster_sum": _cluster_sum}
"""Kernels of the corpus that take less than 2 ms there, on more data."""

SHORT: dict[str, Callable[[np.random.Generator], programs.Case]] = {
    f"{program.name} {program.size}": program.case for program in programs.PROGRAMS
}
"""The six as they are in the other tables: some take less than is worth a second thread."""


def launcher(name: str, mode: str) -> tuple[Callable[[], None], Callable[[], object]]:
    """A warm launch of a case, and what checks it."""
    options = {"sanitize": "all"} if mode == "sanitized" else {}
    rng = np.random.default_rng(1)
    make = SIX.get(name) or SHORT.get(name)
    if make is not None:
        case = make(rng)
        launch = case.launcher(**options)
        return _profiled(launch) if mode == "profiled" else launch, lambda: checked(case, launch)
    kernel = next(kernel for kernel in kernels() if kernel.name == name)
    bench = Bench(kernel._replace(case=LARGER.get(name, kernel.case)), rng)
    launch = bench.launcher(**options)
    return _profiled(launch) if mode == "profiled" else launch, lambda: bench.checked(mode, launch)


def _profiled(launch: Callable[[], None]) -> Callable[[], None]:
    observer = profile()

    def run() -> None:
        with observer:
            launch()

    return run


def turn(launch: Callable[[], None], count: int) -> float:
    """Seconds that so many launches take."""
    start = perf_counter()
    for _ in range(count):
        launch()
    return perf_counter() - start


@contextmanager
def processor_times() -> Iterator[dict[int, float]]:
    """The processor time of the caller (0), and of the host threads that its launches start (1), when it has ended."""
    start, begin, spent = host_threads.start, thread_time(), {0: 0.0, 1: 0.0}

    def timed(work: Callable[[], object]) -> None:
        def run() -> None:
            before = thread_time()
            work()
            spent[1] += thread_time() - before

        start(run)

    host_threads.start = timed
    try:
        yield spent
    finally:
        host_threads.start = start
        spent[0] = thread_time() - begin


SETTLED = 0.005
"""Seconds after which a thread that was woken has had a core, so that Linux has counted its wait."""


def delayed(settle: bool = False) -> float:
    """Seconds for which the threads of this process that live were ready and had no core.

    ``settle``: also those that still wait for one, but not the caller from now on.
    """
    mine, total = Path("/proc/thread-self/schedstat"), 0
    own = int(mine.read_text().split()[1])
    if settle:
        sleep(SETTLED)
    others = Path("/proc/self/task").glob("*/schedstat")
    total = sum(int(file.read_text().split()[1]) for file in others) - int(mine.read_text().split()[1])
    return (total + own) / 1e9


class Turns:
    """The times of turns of one kind, a launch, and those of them that were quiet."""

    def __init__(self) -> None:
        self.all: list[float] = []
        self.quiet: list[float] = []

    def add(self, seconds: float, waited: float, count: int) -> None:
        self.all.append(seconds / count)
        if waited < QUIET * seconds:
            self.quiet.append(seconds / count)

    @property
    def enough(self) -> bool:
        return len(self.quiet) >= ENOUGH

    @property
    def best(self) -> float:
        """The least in ms."""
        return min(self.quiet or self.all or [math.nan]) * 1e3


class Other:
    """Another process with the same launch, one host thread, which makes it as often as it is told."""

    def __init__(self, name: str, mode: str) -> None:
        command = [sys.executable, __file__, "--child", name, mode]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()

    def _answer(self) -> list[float]:
        assert self.process.stdout is not None
        found: list[float] = json.loads(self.process.stdout.readline())
        return found

    def beside(self, turns: Turns, launch: Callable[[], None], count: int) -> None:
        """A turn of both at the same time."""
        assert self.process.stdin is not None
        before = delayed()
        print(count, file=self.process.stdin, flush=True)
        mine = turn(launch, count)
        theirs, waited = self._answer()
        turns.add((mine + theirs) / 2, delayed() - before + waited, count)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def child(name: str, mode: str) -> None:
    """What the other process does."""
    launch, _ = launcher(name, mode)
    tiered_up(launch)
    print("[]", flush=True)
    for line in sys.stdin:
        before = delayed()
        seconds = turn(launch, int(line))
        print(json.dumps((seconds, delayed() - before)), flush=True)


def measure(name: str, mode: str, rounds: int, least: float, seconds: float, processes: bool) -> Measured | None:
    """The times of a launch; None of one that takes less than ``least`` ms."""
    launch, check = launcher(name, mode)
    with override(emulator_threads=1):
        check()
        tiered_up(launch)
        once = min(turn(launch, 1) for _ in range(3))
    if once * 1e3 < least:
        return None
    other = Other(name, mode) if processes else None
    with override(emulator_threads=2):
        check()
        tiered_up(launch)
    count, start, ratios = max(1, int(TURN / once)), perf_counter(), []
    one, two, both = Turns(), Turns(), Turns()
    while len(one.all) < rounds or not (one.enough and two.enough and (both.enough or not other)):
        with override(emulator_threads=1):
            before, waited = thread_time(), delayed()
            one.add(turn(launch, count), delayed() - waited, count)
            alone = thread_time() - before
            if other is not None:
                other.beside(both, launch, count)
        with override(emulator_threads=2), processor_times() as spent:
            waited = delayed()
            two.add(turn(launch, count), delayed(settle=True) - waited, count)
        ratios.append(2 * alone / sum(spent.values()))
        if perf_counter() - start > seconds:
            break
    if other is not None:
        other.end()
    with override(emulator_threads=2):
        check()
    quiet = bool(one.quiet and two.quiet and (both.quiet or not other))
    return Measured(name, mode, one.best, two.best, both.best, statistics.median(ratios), quiet)


def row(m: Measured, slower: bool) -> tuple[str, ...]:
    verdict = m.two > SAME * m.one if slower else m.speedup < min(1.8, GOOD * m.reference)
    times = tuple(f"{number:.2f}" for number in (m.one, m.two, m.speedup, m.reference, m.work))
    return m.name, m.mode, *times, "" if m.quiet else "~", ("SLOWER" if slower else "LOW") if verdict else ""


def options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--modes", nargs="*", default=MODES)
    parser.add_argument("--least", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=6.0, help="for a launch, to find quiet rounds in")
    parser.add_argument("--slower", action="store_true", help="launches of less than 2 ms, which must not take longer")
    parser.add_argument("--child", nargs=2)
    return parser.parse_args()


def main() -> int:
    """Print the table; 1 where a launch is marked."""
    asked = options()
    if any(os.environ.get(name) != "1" for name in ONE_THREAD):  # libraries read these when they are loaded
        return subprocess.call([sys.executable, *sys.argv], env={**os.environ, **dict.fromkeys(ONE_THREAD, "1")})
    if asked.child:
        child(*asked.child)
        return 0
    every = {**(SHORT if asked.slower else SIX), **{kernel.name: "" for kernel in kernels()}}
    names = [name for name in every if not asked.only or {name, name.split()[0]} & set(asked.only)]
    rows = []
    for name in names:
        for mode in asked.modes:
            least = 0.0 if asked.slower else asked.least
            found = measure(name, mode, asked.rounds, least, asked.seconds, not asked.slower)
            if found is not None and not (asked.slower and found.one >= asked.least):
                rows.append(row(found, asked.slower))
                print(*rows[-1], sep="  ", file=sys.stderr)
    header = ("launch", "mode", "one", "two", "speed-up", "two processes", "work", "", "")
    print(f"{os.cpu_count()} cores, ms, best of {asked.rounds} rounds and more\n\n{table(header, rows)}")
    return int(any(each[-1] for each in rows))


if __name__ == "__main__":
    sys.exit(main())
