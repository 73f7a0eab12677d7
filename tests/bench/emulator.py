"""The emulator's speed over six programs, beside its peers', measured in this run: ``python tests/bench/emulator.py``.

Medians of interleaved rounds on one thread, every result checked against numpy. Peers that are installed take part;
each ``peers_*.py`` says how to install it. gpuocelot cannot be installed from a package index: its figures are those
recorded on another machine beside numba's loops, scaled by what numba's loops take here.

``--rounds N`` for fewer or more rounds, ``--only NAME`` for some of the programs, ``--cpu`` for the processor's time
instead of the wall's: the same on an idle machine, and no matter of luck on a busy one.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter, thread_time
from types import ModuleType
from typing import NamedTuple

import numpy as np
import programs
import ptxdsl
from programs import PROGRAMS, Case, Program, matmul_case
from ptxdsl.bench import error_of, table
from ptxdsl.emulator.jit.tier_up import THREAD

__all__ = ["main"]

COLD, HOT, ALL = "default, first launches", "default", "all sanitizer tools"
OURS = (COLD, HOT, ALL)
NJIT, OCELOT = "numba.njit loops", "gpuocelot (recorded)"
RECORDED = {"saxpy": 323 / 0.12, "matmul": 1268 / 0.675, "softmax": 151 / 0.654, "attention": 658 / 0.566,
            "collatz": 1464 / 5.44, "histogram": 226 / 0.52}
"""gpuocelot's time in times of numba's loops, one thread, October 2026 (Zen 5); it had no shuffles for two of them."""
WARM_UP = 1.5
"""Seconds of launches after which a kernel is in the second tier, less the compilation."""

CLOCK = thread_time if "--cpu" in sys.argv else perf_counter
SLOW, TOO_SLOW = 0.05, 20.0
"""Seconds from which on a peer is run once more only, or not again."""
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "PTXDSL_EMULATOR_THREADS")


class Limit(NamedTuple):
    """A promise: the geometric mean of one column over that of another is at most (or, times faster, at least) so."""

    ours: str
    peer: str
    bound: float
    faster: bool = False


LIMITS = (
    Limit(HOT, OCELOT, 100, True), Limit(HOT, "Triton's interpreter, same tile", 300, True),
    Limit(HOT, "Warp's CPU blocks", 12, True), Limit(HOT, "Warp's CPU, simt", 3, True), Limit(HOT, NJIT, 1.1),
    Limit(ALL, HOT, 3),
)


def peers() -> dict[str, dict[str, Callable[..., None]]]:
    """What each peer that is installed runs, by its name and the program's."""
    found: dict[str, dict[str, Callable[..., None]]] = {}
    for name in ("numba", "warp", "triton"):
        try:
            module: ModuleType = importlib.import_module(f"peers_{name}")
        except ImportError as error:
            print(f"without {name}: {error}", file=sys.stderr)
            continue
        found[module.NAME] = module.RUNS
        if hasattr(module, "BLOCKS"):
            found[module.NAME_BLOCKS] = module.BLOCKS
    return found


def seconds(call: Callable[[], object]) -> float:
    """The time of one call."""
    start = CLOCK()
    call()
    return CLOCK() - start


def checked(case: Case, call: Callable[[], object]) -> float:
    """Run once on a fresh result, which must be right; how long that took."""
    array = case.arguments[case.result]
    before = array.copy()
    if case.kernel is programs.histogram:
        array[:] = 0
    elif case.kernel is not programs.saxpy:
        array.view(np.uint8)[:] = 0xA5
    spent = seconds(call)
    error = error_of(array, case.expected)
    if not error <= case.allowed:
        raise SystemExit(f"{case.kernel.__name__}: error {error} > {case.allowed}")
    array[:] = before
    return spent


def tiered_up(call: Callable[[], object]) -> None:
    """Launch until the second tier has had time to be ready."""
    start = perf_counter()
    while perf_counter() - start < WARM_UP:
        call()
        for thread in threading.enumerate():
            if thread.name == THREAD:
                thread.join()
    call()


def measure(program: Program, others: dict[str, dict[str, Callable[..., None]]], rounds: int) -> dict[str, float]:
    """The median time of each column, in milliseconds."""
    case = program.case(np.random.default_rng())
    launch, all_tools = case.launcher(), case.launcher(sanitize="all")
    checked(case, launch)
    found = {COLD: statistics.median(seconds(launch) for _ in range(3))}
    for call in (launch, all_tools):
        tiered_up(call)
    calls: dict[str, Callable[[], object]] = {HOT: launch, ALL: all_tools}
    slow: dict[str, Callable[[], object]] = {}
    for name, runs in others.items():
        if program.name in runs:
            peer = partial(runs[program.name], *case.arguments)
            first = checked(case, peer)
            if first > TOO_SLOW:  # more than compiling takes
                found[name] = first
            else:
                (slow if seconds(peer) > SLOW else calls)[name] = peer
    for each in calls.values():
        checked(case, each)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, each in calls.items():
            each()
            times[name] += [seconds(each) for _ in range(3)]
    found |= {name: statistics.median(spent) for name, spent in times.items()}
    found |= {name: seconds(each) for name, each in slow.items()}
    if NJIT in found:
        found[OCELOT] = RECORDED[program.name] * found[NJIT]
    return {name: value * 1e3 for name, value in found.items()}


def mean_ratio(results: dict[str, dict[str, float]], column: str, other: str) -> tuple[float, int]:
    """The geometric mean of one column over another, and over how many programs."""
    ratios = [row[column] / row[other] for row in results.values() if column in row and other in row]
    return (math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.nan), len(ratios)


Verdict = tuple[str, str, str, str, str, str]


def large_matmul(rounds: int) -> Verdict:
    """1024 x 1024 x 1024 beside one-thread BLAS."""
    case = matmul_case(np.random.default_rng(), 1024)
    launch = case.launcher()
    checked(case, launch)
    tiered_up(launch)
    a, b = case.arguments[:2]
    ours: list[float] = []
    blas: list[float] = []
    for _ in range(max(5, rounds)):
        ours.append(seconds(launch))
        blas.append(seconds(partial(np.matmul, a, b)))
    x, y = (statistics.median(spent) * 1e3 for spent in (ours, blas))
    good = "ok" if x <= 2 * y else "OVER"
    return "matmul 1024^3 and numpy's BLAS", f"{x:.1f} ms", f"{y:.1f} ms", f"{x / y:.2f}", "<= 2", good


def verdicts(results: dict[str, dict[str, float]]) -> list[Verdict]:
    """What was promised, and what was measured."""
    found: list[Verdict] = []
    for limit in LIMITS:
        mean, count = mean_ratio(results, limit.ours, limit.peer)
        if count:
            value = 1 / mean if limit.faster else mean
            good = value >= limit.bound if limit.faster else value <= limit.bound
            what = f"{limit.ours}: times {'faster than' if limit.faster else 'the time of'} {limit.peer}"
            sign = ">=" if limit.faster else "<="
            found.append((what, "", "", f"{value:.3g}", f"{sign} {limit.bound:g}", "ok" if good else "OVER"))
    row = results.get("matmul", {})
    if NJIT in row:
        ratio = row[HOT] / row[NJIT]
        good_ = "ok" if ratio <= 1 else "OVER"
        what = f"tiled matmul: times the time of {NJIT}"
        found.append((what, f"{row[HOT]:.3g} ms", f"{row[NJIT]:.3g} ms", f"{ratio:.2f}", "<= 1", good_))
    return found


def report(results: dict[str, dict[str, float]], names: list[str]) -> None:
    """Print the times."""
    columns = [name for name in names if any(name in row for row in results.values())]
    print(f"ptxdsl {ptxdsl.__version__}, one thread, medians in ms; in brackets: times of the default\n")
    rows = []
    for name in columns:
        cells = [
            f"{row[name]:.3g} ({row[name] / row[HOT]:.3g})" if name in row else "-" for row in results.values()
        ]
        mean, count = mean_ratio(results, name, HOT)
        rows.append((name, *cells, f"{mean:.3g} ({count})"))
    sizes = [f"{p.name} {p.size}" for p in PROGRAMS if p.name in results]
    print(table(("", *sizes, "geometric mean"), rows))


def main() -> int:
    """Print the tables; 1 where a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    if any(os.environ.get(name) != "1" for name in ONE_THREAD):  # libraries read these when they are loaded
        return subprocess.call([sys.executable, *sys.argv], env={**os.environ, **dict.fromkeys(ONE_THREAD, "1")})
    others = peers()
    results = {}
    for program in PROGRAMS:
        if not options.only or program.name in options.only:
            results[program.name] = measure(program, others, options.rounds)
            print(f"{program.name} measured", file=sys.stderr)
    report(results, [*OURS, *others, OCELOT])
    lines = verdicts(results)
    if not options.only or "matmul" in options.only:
        lines.append(large_matmul(options.rounds))
    print()
    print(table(("promise", "ptxdsl", "peer", "measured", "limit", ""), lines))
    return int(any(line[-1] == "OVER" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
