"""Prints every promised figure beside its peer's, measured in this run: ``python tests/bench/run.py``.

Medians of interleaved rounds, so that a busy machine slows both alike. Tracing and importing are CPU time, the emulator
(one thread, as numba's loops) is wall time. Needs the peers: ``pip install -e '.[bench]'``. ``runtime.py`` beside it
has the figures of several cores, of warps that hand over, of launches and of memory.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import norms
import numpy as np
import peers
import ports
import programs
import ptxdsl
from ptxdsl.bench import error_of, table
from ptxdsl.config import override

__all__ = ["main"]


class Figure(NamedTuple):
    """One line: what ptxdsl takes, what the peer takes (0 for none), and the limit for the ratio, or for ours."""

    what: str
    unit: str
    ours: float
    peer_name: str
    peer: float
    limit: float

    @property
    def measured(self) -> float:
        return self.ours / self.peer if self.peer else self.ours

    def cells(self) -> tuple[str, ...]:
        """As the cells of a table."""
        peer = f"{self.peer:.3g} {self.unit}" if self.peer else ""
        limit = f"{self.limit:g} x" if self.peer else f"{self.limit:g} {self.unit}"
        ratio = f"{self.measured:.2f} x" if self.peer else ""
        verdict = "ok" if self.measured <= self.limit else "OVER"
        return self.what, f"{self.ours:.3g} {self.unit}", self.peer_name, peer, ratio, limit, verdict


def medians(clock: Callable[[], float], rounds: int, *calls: Callable[[], object]) -> list[float]:
    """The median time of each call, in seconds; the calls take turns, of one to warm up and five that count.

    There and back again, so that none always comes after the same other, whose memory it finds in the caches.
    """
    times: list[list[float]] = [[] for _ in calls]
    for number in range(rounds):
        for call, spent in list(zip(calls, times))[:: -1 if number % 2 else 1]:
            call()
            gc.disable()  # as timeit does: nobody pays for the garbage of the others
            for _ in range(5):
                start = clock()
                call()
                spent.append(clock() - start)
            gc.enable()
    return [statistics.median(spent) for spent in times]


def instructions(text: str) -> int:
    """How many instructions PTX text has: the lines that end in a semicolon, less declarations."""
    lines = (line.strip() for line in text.splitlines())
    return sum(line.endswith(";") and not line.startswith(".") for line in lines)


def _to_ptx(build: Callable[[int], Any], n: int) -> str:
    return str(build(n).ptx())


def tracing(rounds: int = 15) -> list[Figure]:
    """From the Python function to PTX text: pyptx's kernels as they are, and as one writes them in ptxdsl."""
    found = []
    builders = zip(
        ("RMSNorm", "softmax"), (ports.build_rms_norm, ports.build_softmax),
        (norms.build_rms_norm, norms.build_softmax), peers.pyptx_examples(),
    )
    for name, *builds in builders:
        for n in (1024, 8192):
            counts = [instructions(build(n).ptx()) for build in builds]
            ported, own, theirs = medians(thread_time, rounds, *(partial(_to_ptx, build, n) for build in builds))
            what = f"trace to PTX, {name} {n}, instruction for instruction: {counts[0]}, pyptx {counts[2]}"
            each = ported / counts[0] * 1e6, theirs / counts[2] * 1e6
            found.append(Figure(what, "us each", each[0], "pyptx", each[1], 0.5))
            what = f"    the whole kernel as one writes it here: {counts[1]} instructions"
            found.append(Figure(what, "ms", own * 1e3, "pyptx", theirs * 1e3, 0.5))
    kernel = norms.build_softmax(8192)
    (cached,) = medians(perf_counter, 200, kernel.ptx)
    found.append(Figure("PTX of a kernel already traced", "us", cached * 1e6, "", 0, 5))
    return found


def importing(rounds: int = 9) -> Figure:
    """What a first script's imports add to numpy's, in the time of their thread: numpy's BLAS has others that spin."""
    names = "Ptr, f32, loop, ptx, ptx_kernel, reg, shared, u32, when"
    code = f"import numpy, time; t = time.thread_time(); import ptxdsl; from ptxdsl import {names}; "
    command = [sys.executable, "-c", code + "print(time.thread_time() - t)"]
    with tempfile.TemporaryDirectory() as cache:  # byte code, which the first run writes
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        variables["PYTHONPYCACHEPREFIX"] = cache
        runs = [subprocess.run(command, capture_output=True, check=True, env=variables) for _ in range(rounds + 1)]
    times = [float(run.stdout) for run in runs[1:]]
    return Figure("import ptxdsl and its language, over numpy", "ms", statistics.median(times) * 1e3, "", 0, 30)


def emulating(rounds: int = 10) -> list[Figure]:
    """The emulator, warm, with its checks on, beside numba's loops; the results are compared too."""
    rng = np.random.default_rng()
    x, y = rng.standard_normal((2, 1_000_000)).astype(np.float32)
    ours, theirs = y.copy(), y.copy()
    jit: Any = peers.numba_saxpy()
    small = programs.saxpy.configure(1, 32, backend="emulator")
    launch = programs.saxpy.configure(-(-x.size // 256), 256, backend="emulator")
    times = medians(
        perf_counter, rounds,
        lambda: launch(x.size, 1.5, x, ours), lambda: jit(np.float32(1.5), x, theirs), lambda: small(32, 1.5, x, y),
    )
    assert error_of(ours, theirs) < 1e-6
    found = [Figure("emulate saxpy, n = 1,000,000", "ms", times[0] * 1e3, "numba", times[1] * 1e3, 10)]
    launching = Figure("a launch of one warp on the emulator", "ms", times[2] * 1e3, "", 0, 0.2)

    a, b = rng.standard_normal((2, 256, 256)).astype(np.float32)
    c, d = np.full_like(a, np.nan), np.full_like(a, np.nan)
    jit = peers.numba_matmul()
    tiled = programs.matmul.configure((16, 16), (16, 16), backend="emulator")
    times = medians(perf_counter, rounds, lambda: tiled(a, b, c, 256), lambda: jit(a, b, d))
    assert error_of(c, a.astype(np.float64) @ b) < 1e-5
    what = "emulate matmul 256 x 256 x 256, tiles 16 x 16"
    return [*found, Figure(what, "ms", times[0] * 1e3, "numba", times[1] * 1e3, 10), launching]


def main() -> int:
    """Print the table; 1 where a figure is over its limit."""
    with override(emulator_threads=1):
        figures = [*tracing(), importing(), *emulating()]
    print(f"ptxdsl {ptxdsl.__version__}, Python {sys.version.split()[0]}, medians")
    print(table(("figure", "ptxdsl", "peer", "", "ratio", "limit", ""), [figure.cells() for figure in figures]))
    return int(any(figure.measured > figure.limit for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
