"""What the emulator's runtime promises: ``python tests/bench/runtime.py``.

Two workers against one, hand-overs between warps, the cost of a launch, and memory. Walls are the best of interleaved
rounds. Where other processes want the cores too, walls say little of two workers: beside their ratio stands the one of
processor times, what one worker takes over what the busier of two takes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import sqrt
from time import perf_counter, thread_time
from typing import Any
from unittest import mock

import emulator
import numpy as np
import programs
from ptxdsl import Ptr, break_if, loop, otherwise, ptx, ptx_kernel, reg, shared, u32, when
from ptxdsl.bench import table
from ptxdsl.config import override
from ptxdsl.emulator.jit import tier_up
from ptxdsl.emulator.runtime.worker_pool import Returned, WorkerPool

__all__ = ["main"]

MEGA = 1 << 20


# Cores


@contextmanager
def processor_times() -> Iterator[list[float]]:
    """The processor time of each worker of the launches within; that of the caller where none takes a worker pool."""
    times: list[float] = []
    work, begin = WorkerPool._work, thread_time()

    def timed(self: WorkerPool, worker: int, returned: Returned | None = None) -> None:
        start = thread_time()
        work(self, worker, returned)
        times.append(thread_time() - start)

    WorkerPool._work = timed  # type: ignore[method-assign]
    try:
        yield times
        times += [] if times else [thread_time() - begin]
    finally:
        WorkerPool._work = work  # type: ignore[method-assign]


@contextmanager
def first_tier() -> Iterator[None]:
    """Launches within are no reason for a second tier."""
    with mock.patch.object(tier_up, "SECONDS", float("inf")):
        yield


def attention_case(rng: np.random.Generator, n: int = 1024) -> programs.Case:
    """One head, as in the six programs, but for more queries and keys."""
    q, k, v = rng.standard_normal((3, n, 64)).astype(np.float32)
    arguments = [n, np.float32(1 / sqrt(64)), q, k, v, np.full_like(q, np.nan)]
    return programs.Case(programs.attention, n // 64, 64, arguments, 5, q, 0.0)


def scaling(rounds: int = 9) -> list[tuple[str, ...]]:
    """Each program with one worker and with two, in both tiers."""
    cases: dict[str, Callable[[np.random.Generator], programs.Case]] = {
        "matmul 1024^3": lambda rng: programs.matmul_case(rng, 1024), "attention 1024 x 1024 x 64": attention_case,
    }
    cases.update({f"{program.name} {program.size}": program.case for program in programs.PROGRAMS[::-1]})
    rows = []
    for name, make in cases.items():
        case = make(np.random.default_rng()).poisoned()
        with first_tier():
            rows.append((name, "first", *_two_against_one(case, rounds)))
        emulator.tiered_up(case.launcher())
        rows.append((name, "second", *_two_against_one(case, rounds)))
    return rows


def _two_against_one(case: programs.Case, rounds: int) -> tuple[str, ...]:
    launch, result = case.launcher(), case.arguments[case.result]
    found: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    results = {}
    for _ in range(rounds):
        for workers, times in found.items():
            result[...] = 0
            with override(emulator_threads=workers), processor_times() as busy:
                wall = emulator.seconds(launch)
            times.append((wall, max(busy)))
            results[workers] = result.tobytes()
    assert results[1] == results[2], "two workers compute what one does"
    one, two = (min(wall for wall, _ in times) for times in found.values())
    alone, shared_out = (statistics.median(busiest for _, busiest in times) for times in found.values())
    return f"{one * 1e3:.2f}", f"{two * 1e3:.2f}", f"{one / two:.2f}", f"{alone / shared_out:.2f}"


# Hand-overs


@ptx_kernel
def by_barriers(n: u32, out: Ptr[u32], *, stages: int = 4) -> None:
    """One warp fills stages in turn, another empties them; two named barriers a stage."""
    data, lane = shared(u32, stages, 32), ptx.tid.x & 31
    with when(ptx.tid.x < 32):
        with loop(0, n, stages) as i:
            for s in range(stages):
                ptx.bar.sync(1 + stages + s, 64)
                data[s, lane] = i + s
                ptx.bar.arrive(1 + s, 64)
    with otherwise():
        total = reg(u32, 0)
        for s in range(stages):
            ptx.bar.arrive(1 + stages + s, 64)
        with loop(0, n, stages) as i:
            for s in range(stages):
                ptx.bar.sync(1 + s, 64)
                total += data[s, lane]
                ptx.bar.arrive(1 + stages + s, 64)
        out[lane] = total


@ptx_kernel
def by_flags(n: u32, out: Ptr[u32], *, stages: int = 4) -> None:
    """The same with a flag a stage, which all lanes of a warp poll."""
    _ring(n, out, stages, lambda _: True)


@ptx_kernel
def by_flags_of_one_lane(n: u32, out: Ptr[u32], *, stages: int = 4) -> None:
    """The same with a flag a stage, which one lane of a warp polls."""
    _ring(n, out, stages, lambda lane: lane == 0)


def _ring(n: Any, out: Any, stages: int, polls: Callable[[Any], Any]) -> None:
    data, full, lane = shared(u32, stages, 32), shared(u32, stages), ptx.tid.x & 31
    with when(ptx.tid.x < stages):
        full[ptx.tid.x] = 0
    ptx.bar.sync(0)

    def wait(stage: int, filled: bool) -> None:
        with loop():
            flag = ptx.ld.acquire.cta.shared.u32(full + stage)
            break_if((flag != 0) if filled else (flag == 0))

    def mine(act: Callable[[], None]) -> None:
        chosen = polls(lane)
        if chosen is True:
            act()
        else:
            with when(chosen):
                act()

    def hand_over(stage: int, filled: bool) -> None:
        ptx.bar.warp.sync(0xFFFFFFFF)
        mine(lambda: ptx.st.release.cta.shared.u32(full + stage, int(filled)))

    with when(ptx.tid.x < 32):
        with loop(0, n, stages) as i:
            for s in range(stages):
                mine(partial(wait, s, False))
                ptx.bar.warp.sync(0xFFFFFFFF)
                data[s, lane] = i + s
                hand_over(s, True)
    with otherwise():
        total = reg(u32, 0)
        with loop(0, n, stages) as i:
            for s in range(stages):
                mine(partial(wait, s, True))
                ptx.bar.warp.sync(0xFFFFFFFF)
                total += data[s, lane]
                hand_over(s, False)
        out[lane] = total


def hand_overs(rounds: int = 5, n: int = 100_000) -> list[tuple[str, ...]]:
    """Millions of hand-overs a second of processor time."""
    rows: list[tuple[str, ...]] = []
    for what, kernel in (
        ("named barriers", by_barriers), ("flags, polled by the warp", by_flags),
        ("flags, polled by one lane", by_flags_of_one_lane),
    ):
        for stages in (1, 4):
            out = np.zeros(32, np.uint32)
            launch = kernel.configure(1, 64, backend="emulator")
            with first_tier():
                spent = [_processor(lambda: launch(n, out, stages=stages)) for _ in range(rounds)]
            emulator.tiered_up(lambda: launch(n, out, stages=stages))
            compiled = [_processor(lambda: launch(n, out, stages=stages)) for _ in range(rounds)]
            assert (out == n * (n - 1) // 2 % (1 << 32)).all()
            rows.append((what, str(stages), f"{n / min(spent) / 1e6:.1f}", f"{n / min(compiled) / 1e6:.1f}"))
    return rows


def _processor(call: Callable[[], object]) -> float:
    start = thread_time()
    call()
    return thread_time() - start


# Launches


def launches(rounds: int = 2000) -> list[tuple[str, ...]]:
    """The best and the median of small launches, in microseconds."""
    x, y = np.ones((2, 4096), np.float32)
    rows: list[tuple[str, ...]] = []
    for blocks in (1, 8, 64):
        launch = programs.saxpy.configure(blocks, 32, backend="emulator")
        launch(4096, 0.0, x, y)
        times = [emulator.seconds(lambda: launch(4096, 0.0, x, y)) * 1e6 for _ in range(rounds)]
        rows.append((f"saxpy, {blocks} warps", f"{min(times):.0f}", f"{statistics.median(times):.0f}"))
    return rows


# Memory


def memory() -> list[tuple[str, ...]]:
    """What launches add to a process that has its arrays, until both tiers are there; LLVM's own code is apart."""
    rows = []
    for name in ("saxpy", "matmul", "histogram", "attention"):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("no handlers yet", "handlers on disk"):
                command = [sys.executable, __file__, "--memory", name]
                variables = {**os.environ, "PTXDSL_CACHE_DIR": cache}
                run = subprocess.run(command, capture_output=True, check=True, env=variables, text=True)
                arrays, more, code = json.loads(run.stdout)
                allowed = arrays + 64 * MEGA
                verdict = "ok" if more <= allowed else "OVER"
                rows.append((name, state, *(f"{size / MEGA:.0f}" for size in (arrays, more, code, allowed)), verdict))
    return rows


def _child(name: str) -> None:
    rng = np.random.default_rng()
    case = {
        "saxpy": lambda: programs.PROGRAMS[0].case(rng), "matmul": lambda: programs.matmul_case(rng, 1024),
        "histogram": lambda: programs.PROGRAMS[5].case(rng), "attention": lambda: attention_case(rng),
    }[name]()
    arrays = sum(argument.nbytes for argument in case.arguments if isinstance(argument, np.ndarray))
    import llvmlite.binding  # noqa: F401 - a library is no part of a launch

    before = _resident()
    emulator.tiered_up(case.launcher())
    after = _resident()
    print(json.dumps((arrays, after["VmHWM"] - before["VmRSS"], after["RssFile"] - before["RssFile"])))


def _resident() -> dict[str, int]:
    """What Linux says of this process: its bytes now and at most, and those of files that it has mapped."""
    with open("/proc/self/status") as file:
        lines = [line.split() for line in file if line.startswith(("VmRSS", "VmHWM", "RssFile"))]
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines}


def main() -> None:
    """Print the tables."""
    start = perf_counter()
    print(f"two workers against one, {os.cpu_count()} cores; ms, best of rounds")
    print(table(("program", "tier", "one", "two", "ratio", "of processor times"), scaling()))
    print("\nhand-overs from warp to warp, millions a second of processor time (wanted: 10)")
    with override(emulator_threads=1):
        print(table(("by", "stages", "first tier", "second tier"), hand_overs()))
        print("\nlaunches, us (wanted: below 100)")
        print(table(("kernel", "best", "median"), launches()))
    print("\nmemory beside the arrays, MB")
    print(table(("program", "process", "arrays", "more", "of it library code", "allowed", ""), memory()))
    print(f"\n{perf_counter() - start:.0f} s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        _child(sys.argv[2])
    else:
        main()
