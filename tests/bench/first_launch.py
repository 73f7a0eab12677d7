"""The first launches of a kernel in a fresh process: ``python tests/bench/first_launch.py [program ...]``.

It takes a minute on a quiet machine; ``--rounds N`` for more processes than three.

Warm is a process that finds on disk what an earlier one has made of the kernel, cold one that finds nothing; both have
imported the language and made their arrays. The best and the median of several processes, in milliseconds of the wall
and of the processor, for each of the six programs; the last lines are for all of them, each in a thread, and one after
the other.

The second table is for the launches while the second tier is built beside them, of the kernel itself and of another
that has its second tier: their median and the longest, beside those of a process in which nothing is compiled, in
milliseconds of the wall. Results are checked.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from math import inf
from time import perf_counter, process_time, sleep

import numpy as np
from programs import PROGRAMS, Case
from ptxdsl.bench import error_of, table
from ptxdsl.emulator.jit import tier_up

__all__ = ["main"]

WANTED = {"warm": 40, "cold": 150}
"""Milliseconds that a first launch may take on a quiet machine of two cores."""
ROUNDS = 3
ALONE, PATIENCE = 0.3, 20.0
"""Seconds for which a program is launched where nothing is compiled, and at most until its second tier is there."""
OTHER = "attention"
"""The program whose second tier is built beside the launches of another."""


def _together(calls: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call) for call in calls[1:]]
    for thread in threads:
        thread.start()
    calls[0]()
    for thread in threads:
        thread.join()


def _cases(names: list[str]) -> list[Case]:
    rng = np.random.default_rng()
    cases: list[Case] = [program.case(rng) for program in PROGRAMS if program.name in names]
    return [_fresh(case) for case in cases]


def _fresh(case: Case) -> Case:
    """The case as before its first launch."""
    return case if case.kernel.__name__ == "saxpy" else case.poisoned()


def _check(case: Case) -> None:
    assert error_of(case.arguments[case.result], case.expected) <= case.allowed, case.kernel.__name__


def _first(how: str, names: list[str]) -> list[float]:
    """Seconds of the wall and of the processor for the first launches of these programs."""
    cases = _cases(names)
    calls = [case.launcher() for case in cases]
    begin = perf_counter(), process_time()
    if how == "together":
        _together(calls)
    else:
        for call in calls:
            call()
    end = perf_counter(), process_time()
    for case in cases:
        _check(case)
    return [end[0] - begin[0], end[1] - begin[1]]


def _launches(how: str, names: list[str]) -> list[float]:
    """Milliseconds of the launches of the first of some programs, the others are launched only to be compiled.

    With "first" nothing is compiled, "own" are those while its second tier is built; "second" those when it has that,
    and "other" while the second tier of the others is built.
    """
    cases = _cases(names)
    call, *others = (case.launcher() for case in sorted(cases, key=lambda case: names.index(case.kernel.__name__)))
    usual, tier_up.SECONDS = tier_up.SECONDS, inf
    for each in (call, *others) * 5:
        each()
    if how != "first":
        tier_up.SECONDS = usual
        _until(call, _compiles)
    if how in ("second", "other"):
        _until(lambda: sleep(0.01), lambda: not _compiles())
    if how == "other":
        for other in others:
            _until(other, _compiles)
    times = _until(call, lambda: not _compiles()) if how in ("own", "other") else _until(call, _later(ALONE))
    for case in map(_fresh, cases):  # a histogram grows with each launch
        case.launcher()()
        _check(case)
    return times


def _until(call: Callable[[], None], over: Callable[[], bool]) -> list[float]:
    """Call until something is so, a while at most: milliseconds of each call."""
    late, times = _later(PATIENCE), []
    while not over() and not late():
        begin = perf_counter()
        call()
        times.append((perf_counter() - begin) * 1e3)
    return times


def _later(seconds: float) -> Callable[[], bool]:
    end = perf_counter() + seconds
    return lambda: perf_counter() > end


def _compiles() -> bool:
    return any(thread.name == tier_up.THREAD for thread in threading.enumerate())


def _child(how: str, names: list[str], cache: str, bytecode: str) -> list[float]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PTXDSL_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--child", how, *names]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found: list[float] = json.loads(out)
    return found


def _measured(how: str, names: list[str], bytecode: str, rounds: int) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {"warm": [], "cold": []}
    with tempfile.TemporaryDirectory() as cache:
        _child(how, names, cache, bytecode)
        for _ in range(rounds):
            found["warm"].append(_child(how, names, cache, bytecode))
            with tempfile.TemporaryDirectory() as empty:
                found["cold"].append(_child(how, names, empty, bytecode))
    return found


def _beside(name: str, bytecode: str, rounds: int) -> list[tuple[str, ...]]:
    """The rows for a program: while its own second tier is built, and while that of another is."""
    other = OTHER if name != OTHER else PROGRAMS[0].name
    rows = []
    for alone, how, names in (("first", "own", [name]), ("second", "other", [name, other])):
        found: dict[str, list[float]] = {alone: [], how: []}
        with tempfile.TemporaryDirectory() as handlers:
            _child("first", names, handlers, bytecode)  # compiles them, and no second tier
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as cache:
                    shutil.copytree(handlers, cache, dirs_exist_ok=True)
                    found[how] += _child(how, names, cache, bytecode)
                    found[alone] += _child(alone, names, cache, bytecode)
        figures = (f"{of(each):.2f}" for each in found.values() for of in (statistics.median, max) if each)
        rows.append((name, names[-1], f"{len(found[how]) / rounds:.0f}", *figures))
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=[program.name for program in PROGRAMS])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes of a kind, and a third of it beside")
    asked = parser.parse_args()
    names: list[str] = asked.programs
    rows, beside = [], []
    groups = [("together", [name]) for name in names]
    groups += [("together", names), ("in turn", names)] if len(names) > 1 else []
    with tempfile.TemporaryDirectory() as bytecode:
        for how, group in groups:
            for kind, times in _measured(how, group, bytecode, asked.rounds).items():
                walls, processors = zip(*((wall * 1e3, processor * 1e3) for wall, processor in times))
                figures = (f"{of(each):.0f}" for each in (walls, processors) for of in (min, statistics.median))
                what = group[0] if len(group) == 1 else f"all, {how}"
                rows.append((what, kind, *figures, f"{WANTED[kind]}" if len(group) == 1 else ""))
        for name in names:
            beside += _beside(name, bytecode, max(1, asked.rounds // 3))
    print(table(("program", "cache", "wall", "median", "processor", "median", "wanted"), rows))
    head = ("launches", "beside the second tier of", "count", "median alone", "longest", "beside", "longest")
    print(table(head, beside))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        run = _first if sys.argv[2] in ("together", "in turn") else _launches
        print(json.dumps(run(sys.argv[2], sys.argv[3:])))
    else:
        main()
