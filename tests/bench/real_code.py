"""The emulator's speed on kernels of the shapes that people write, beside the same loops in C: a table and a plot.

``python tests/bench/real_code.py`` launches every kernel of ``tests/bench/real``: PTX of nvcc, Triton and Numba, kept
there. Beside each run the same loops, compiled by gcc (``--native-flags``), on the same data; all results are checked
against numpy. Medians of interleaved rounds on one thread; ``--cpu`` for the processor's time instead of the wall's.
``--only NAME ...`` for some of the kernels, families or compilers, ``--rounds N``, ``--plot FILE`` for a picture
(matplotlib), ``--compile [FAMILY ...]`` to make the PTX again where the compilers are.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import ptxdsl
from emulator import ONE_THREAD, WARM_UP, seconds
from ptxdsl.bench import table
from ptxdsl.emulator.codegen.code import Code
from ptxdsl.emulator.jit.tier_up import THREAD
from ptxdsl.emulator.program import BOUNDS
from real import corpus, native
from real.case import Case, Kernel, kernels
from real.plot import bars, draw

__all__ = ["main"]

MEAN, WORST, SANITIZED_MEAN, SANITIZED_WORST = 1.5, 6.0, 2.0, 3.0
"""The promises: times of the native loops, and of the default."""
BUDGET = 1.0
"""Seconds of rounds for a kernel, if three take less."""
SLOW = 0.2
"""Seconds from which on a launch is not repeated."""


class Measured(NamedTuple):
    """A kernel's times in ms: the first launches, the default, native loops, sanitized; and the tiers that ran."""

    kernel: Kernel
    first: float = math.nan
    default: float = math.nan
    native: float = math.nan
    sanitized: float = math.nan
    tier: str = "-"
    why: str = ""
    """Why it, or its sanitized code, is not in the second tier."""
    failure: str = ""

    @property
    def ratio(self) -> float:
        """Times of the native loops."""
        return self.default / self.native

    @property
    def cost(self) -> float:
        """The sanitized launch in times of the default."""
        return self.sanitized / self.default


class Bench:
    """A kernel on its data: what runs it, and the check of what they write."""

    def __init__(self, kernel: Kernel, rng: np.random.Generator, *, small: bool = False) -> None:
        self.kernel = kernel
        self.case: Case = kernel.case(rng, small)
        self.before = {place: self.case.arguments[place].copy() for place in self.case.expected}
        module = corpus.module(kernel.unit)
        for name, value in self.case.variables:
            module.variables[name] = value
        self.entry = module[kernel.entry]

    def launcher(self, **options: Any) -> Callable[[], None]:
        """A warm launch on the emulator."""
        case = self.case
        shared = case.shared or corpus.shared(self.kernel)
        configured = self.entry.configure(
            case.grid, case.block, shared=shared, cluster=case.cluster, backend="emulator", **options
        )
        return lambda: configured(*case.arguments)

    def checked(self, what: str, call: Callable[[], object]) -> float:
        """Run once from the data as it was at first: the result must be right; how long that took."""
        for place, before in self.before.items():
            self.case.arguments[place][...] = before
        spent = seconds(call)
        for place in self.case.expected:
            error = self.case.error(place)
            if not error <= self.case.allowed:
                raise WrongResult(f"{what}: argument {place} has error {error:.3g} > {self.case.allowed:.3g}")
        return spent

    def results(self) -> dict[int, bytes]:
        """What was written, to the bit."""
        return {place: self.case.arguments[place].tobytes() for place in self.case.expected}

    def codes(self, sanitized: bool) -> list[Code]:
        """What was made of the kernel for launches of either kind."""
        codes = self.entry.compiled({}).program.codes(self.entry.entry)
        return [code for _, tools, code in codes if (tools not in (None, BOUNDS)) == sanitized]

    def warm_up(self, call: Callable[[], object], sanitized: bool) -> None:
        """Launch until the second tier is ready, or should be."""
        start = perf_counter()
        while perf_counter() - start < WARM_UP and not all(code.tiered_up for code in self.codes(sanitized)):
            call()
        for thread in threading.enumerate():
            if thread.name == THREAD:
                thread.join()
        call()

    def tier(self, sanitized: bool) -> str:
        """Which engine runs it: 2, a block function; 1, threaded code and superinstructions; 1c, conservative code."""
        mine = self.codes(sanitized)
        if any(code.conservative for code in mine):
            return "1c"
        return "2" if any(code.block_function for code in mine) else "1"


    def why(self) -> str:
        """Why there is no block function, of either kind of launch."""
        found = {code.refusal: None for sanitized in (False, True) for code in self.codes(sanitized) if code.refusal}
        return "; ".join(found)


class WrongResult(Exception):
    """A result that numpy does not agree with."""


def measure(kernel: Kernel, rounds: int, flags: str) -> Measured:
    """The median times of a kernel."""
    bench = Bench(kernel, np.random.default_rng())
    launch, sanitized = bench.launcher(), bench.launcher(sanitize="all")
    bench.checked("the first launch", launch)
    first = bench.results()
    found = Measured(kernel, statistics.median(seconds(launch) for _ in range(3)) * 1e3)
    bench.checked("the first sanitized launch", sanitized)
    calls: dict[str, Callable[[], object]] = {"default": launch, "sanitized": sanitized}
    for name, call in calls.items():
        bench.warm_up(call, name == "sanitized")
    if native.available():
        calls["native"] = native.native(kernel, bench.case, flags)
    times = {}
    for name, call in calls.items():
        times[name] = [bench.checked(name, call)]
        if name != "native" and bench.results() != first:
            raise WrongResult(f"{name}: other bits than in the first tier")
    quick = {name: call for name, call in calls.items() if times[name][0] < SLOW}
    budget = BUDGET / (1e-9 + 4 * sum(times[name][0] for name in quick))
    for _ in range(max(3, min(rounds, int(budget)))):
        for name, call in quick.items():
            call()
            times[name] += [seconds(call) for _ in range(3)]
    for name, call in calls.items():
        times[name].append(bench.checked(f"{name}, at the end", call))
    default, loops, asked = (
        statistics.median(times.get(name, [math.nan])) * 1e3 for name in ("default", "native", "sanitized")
    )
    tiers = f"{bench.tier(False)}/{bench.tier(True)}"
    return found._replace(tier=tiers, why=bench.why(), default=default, native=loops, sanitized=asked)


def mean(ratios: list[float]) -> float:
    """The geometric mean of those that were measured."""
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    return math.exp(statistics.fmean(map(math.log, known))) if known else math.nan


def verdicts(measured: list[Measured]) -> list[tuple[str, ...]]:
    """What was promised, and what was measured."""
    found: list[tuple[str, ...]] = []

    def add(what: str, value: float, bound: float) -> None:
        if not math.isnan(value):
            found.append((what, f"{value:.2f}", f"<= {bound:g}", "ok" if value <= bound else "OVER"))

    for key, what, average, worst in (
        ("ratio", "default in times of the native loops", MEAN, WORST),
        ("cost", "sanitized in times of the default", SANITIZED_MEAN, SANITIZED_WORST),
    ):
        ratios = {each.kernel.name: getattr(each, key) for each in measured}
        add(f"{what}, geometric mean", mean(list(ratios.values())), average)
        known = {name: ratio for name, ratio in ratios.items() if not math.isnan(ratio)}
        if known:
            name = max(known, key=lambda each: known[each])
            over = sum(ratio > worst for ratio in known.values())
            add(f"{what}, worst ({name}; {over} over)", known[name], worst)
    failed = [each.kernel.name for each in measured if each.failure]
    if failed:
        found.append((f"kernels that do not run: {', '.join(failed)}", str(len(failed)), "0", "OVER"))
    return found


def report(measured: list[Measured]) -> None:
    """Print the times, the slowest beside the native loops first."""
    rows = []
    for m in sorted(measured, key=lambda m: -1.0 if math.isnan(m.ratio) else m.ratio, reverse=True):
        times = [f"{each:.3g}" for each in (m.first, m.default, m.native)]
        rows.append((m.kernel.name, m.kernel.compiler, m.tier, *times, f"{m.ratio:.2f}",
                     f"{m.sanitized:.3g}", f"{m.cost:.2f}"))
    ratio, cost = mean([m.ratio for m in measured]), mean([m.cost for m in measured])
    rows.append((f"geometric mean of {len(measured)}", "", "", "", "", "", f"{ratio:.2f}", "", f"{cost:.2f}"))
    header = ("kernel", "compiler", "tier", "first", "default", "native", "times native", "sanitized", "times default")
    print(table(header, rows))
    for what, of in (("not in the second tier", "why"), ("failed", "failure")):
        told = [f"  {m.kernel.name} ({m.tier}): {getattr(m, of)}" for m in measured if getattr(m, of)]
        if told:
            print("\n".join([f"\n{what}:", *told]))


def chosen(names: list[str]) -> list[Kernel]:
    """The kernels of these names, or of these families or compilers; all if none is given."""
    return [k for k in kernels() if not names or not {k.name, k.family, k.compiler}.isdisjoint(names)]


def options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--native-flags", default=native.FLAGS)
    parser.add_argument("--compile", nargs="*")
    return parser.parse_args()


def main() -> int:
    """Print the table, the promises and the plot; 1 where a promise is not kept."""
    asked = options()
    if asked.compile is not None:
        print("\n".join(corpus.compile_again(asked.compile)))
        return 0
    if any(os.environ.get(name) != "1" for name in ONE_THREAD):  # libraries read these when they are loaded
        return subprocess.call([sys.executable, *sys.argv], env={**os.environ, **dict.fromkeys(ONE_THREAD, "1")})
    measured = []
    for kernel in chosen(asked.only):
        try:
            measured.append(measure(kernel, asked.rounds, asked.native_flags))
        except (ptxdsl.PtxError, WrongResult) as error:
            measured.append(Measured(kernel, failure=f"{type(error).__name__}: {error}"))
        last = measured[-1]
        print(f"{kernel.name}: {last.failure or f'{last.ratio:.2f}, {last.cost:.2f}'}", file=sys.stderr)
    print(f"ptxdsl {ptxdsl.__version__}, one thread, medians in ms; native: gcc {asked.native_flags}\n")
    report(measured)
    print()
    lines = verdicts(measured)
    print(table(("promise", "measured", "limit", ""), lines))
    ratios = {m.kernel.name: m.ratio for m in measured if not math.isnan(m.ratio)}
    print(f"\n{bars(ratios, MEAN, WORST)}")
    if asked.plot:
        try:
            draw(ratios, {m.kernel.name: m.cost for m in measured}, asked.plot)
        except ImportError as error:
            print(f"no picture: {error}", file=sys.stderr)
    return int(any(line[-1] == "OVER" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
