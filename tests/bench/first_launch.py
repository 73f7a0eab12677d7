"""The first launch of a kernel in a fresh process: ``python tests/bench/first_launch.py [program ...]``.

Warm is a process that finds on disk what an earlier one has made of the kernel, cold one that finds nothing; both have
imported the language and made their arrays. The best and the median of several processes, in milliseconds of the wall
and of the processor, for each of the six programs; the last line is for all of them at once, each in a thread. Results
are checked.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np
from programs import PROGRAMS, Case
from ptxdsl.bench import error_of, table

__all__ = ["main"]

WANTED = {"warm": 40, "cold": 150}
"""Milliseconds that a first launch may take on a quiet machine of two cores."""
ROUNDS = 7


def _together(calls: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call) for call in calls[1:]]
    for thread in threads:
        thread.start()
    calls[0]()
    for thread in threads:
        thread.join()


def _first(names: list[str]) -> tuple[float, float]:
    """Seconds of the wall and of the processor for the first launches of these programs."""
    rng = np.random.default_rng()
    cases: list[Case] = [program.case(rng) for program in PROGRAMS if program.name in names]
    cases = [case if case.kernel.__name__ == "saxpy" else case.poisoned() for case in cases]
    calls = [case.launcher() for case in cases]
    begin = perf_counter(), process_time()
    _together(calls)
    end = perf_counter(), process_time()
    for case in cases:
        assert error_of(case.arguments[case.result], case.expected) <= case.allowed, case.kernel.__name__
    return end[0] - begin[0], end[1] - begin[1]


def _child(names: list[str], cache: str, bytecode: str) -> tuple[float, float]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PTXDSL_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--child", *names]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    wall, processor = json.loads(out)
    return wall, processor


def _measured(names: list[str], bytecode: str) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {"warm": [], "cold": []}
    with tempfile.TemporaryDirectory() as cache:
        _child(names, cache, bytecode)
        for _ in range(ROUNDS):
            found["warm"].append(_child(names, cache, bytecode))
            with tempfile.TemporaryDirectory() as empty:
                found["cold"].append(_child(names, empty, bytecode))
    return found


def main() -> None:
    """Print the table."""
    names = sys.argv[1:] or [program.name for program in PROGRAMS]
    rows = []
    with tempfile.TemporaryDirectory() as bytecode:
        for group in [*([name] for name in names), *([names] if len(names) > 1 else [])]:
            for kind, times in _measured(group, bytecode).items():
                walls, processors = zip(*((wall * 1e3, processor * 1e3) for wall, processor in times))
                figures = (f"{of(each):.0f}" for each in (walls, processors) for of in (min, statistics.median))
                rows.append((" + ".join(group), kind, *figures, f"{WANTED[kind]}" if len(group) == 1 else ""))
    print(table(("program", "cache", "wall", "median", "processor", "median", "wanted"), rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(_first(sys.argv[2:])))
    else:
        main()
