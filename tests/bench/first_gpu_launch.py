"""What the first launch on a GPU takes of a fresh process, its cubin on disk: `python tests/bench/first_gpu_launch.py`.

Above a driver that does nothing, so what a real one takes to start and to load a module is not in it. The median of the
processes, in milliseconds of the wall and of the thread's processor, which a busy machine changes less: the imports
(numpy, ptxdsl with its language, cuda-bindings), and from there to the end of the first launch, with the kernel defined
and its arrays made in between, and to the end of the second.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from ptxdsl.bench import table

_PROGRAM = """
import sys, time
def now():
    return time.perf_counter(), time.thread_time()
start = now()
import idle_driver
idle_driver.load()
import numpy as np
import cuda.bindings.driver
import ptxdsl
from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32, when
imported = now()

@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]

x, y = ptxdsl.empty(1000, f32), ptxdsl.empty(1000, f32)
made = now()
saxpy[4, 256](1000, 2.0, x, y)
first = now()
saxpy[4, 256](1000, 2.0, x, y)
times = start, imported, made, first, now()
print(*(after[n] - before[n] for before, after in zip(times, times[1:]) for n in (0, 1)))
"""
_ROUNDS = 11


def main() -> None:
    rows: list[list[float]] = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(_PROGRAM)
        environment = {"PTXDSL_BACKEND": "gpu", "PTXDSL_CACHE_DIR": f"{folder}/cache", "PATH": "/usr/bin:/bin"}
        environment["PYTHONPATH"] = ":".join(filter(None, sys.path))
        for _ in range(_ROUNDS + 1):
            done = subprocess.run(
                [sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True
            )
            rows.append([float(word) * 1e3 for word in done.stdout.split()])
    stages = ("imports", "kernel and arrays", "first launch", "second launch")
    medians = [f"{statistics.median(row[n] for row in rows[1:]):.2f}" for n in range(2 * len(stages))]
    print(table(("stage", "ms", "ms of the processor"), list(zip(stages, medians[::2], medians[1::2]))))


if __name__ == "__main__":
    main()
