"""From Python to machine code, beside the assembler alone: ``python tests/bench/cubin.py [--rounds N]``.

For kernels of a few sizes: what ``k.cubin()`` takes of a kernel that was never traced, without a disk cache, and what
``ptxas`` takes of the same text with the same options, one after the other in each round; the last column is the median
of the rounds' ratios. Wall time, since the assembler is a process of its own.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
from collections.abc import Callable
from time import perf_counter
from typing import Any

from ptxdsl import Ptr, f32, loop, ptx, ptx_kernel, reg, shared, u32, when
from ptxdsl.bench import table
from ptxdsl.config import override
from ptxdsl.gpu.tools import find_assembler

ARCH = "sm_90a"


def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


def tile(n: u32, a: Ptr[f32], b: Ptr[f32], c: Ptr[f32]) -> None:
    """A tile of 64 x 64 of a product, 8 x 8 a thread."""
    a_tile, b_tile, t = shared(f32, 1024), shared(f32, 1024), ptx.tid.x
    acc = [[reg(f32, 0.0) for _ in range(8)] for _ in range(8)]
    with loop(0, n, 16) as k:
        for part in range(16):
            a_tile[part * 64 + t] = a[(k + part) * 64 + t]
            b_tile[part * 64 + t] = b[(k + part) * 64 + t]
        ptx.bar.sync(0)
        for step in range(16):
            above, left = step * 64 + t // 8 * 8, step * 64 + t % 8 * 8
            row = [*a_tile.load(above, width=4), *a_tile.load(above + 4, width=4)]
            column = [*b_tile.load(left, width=4), *b_tile.load(left + 4, width=4)]
            for i in range(8):
                for j in range(8):
                    ptx.fma.rn.f32(row[i], column[j], acc[i][j], out=acc[i][j])
        ptx.bar.sync(0)
    for i in range(8):
        for j in range(8):
            c[((t // 8) * 8 + i) * 64 + (t % 8) * 8 + j] = acc[i][j]


def polynomial(n: u32, x: Ptr[f32]) -> None:
    """A long chain: 4,000 multiply-adds on 8 values."""
    values = [reg(f32, x[k]) for k in range(8)]
    for step in range(500):
        for value in values:
            ptx.fma.rn.f32(value, value, 1.0 / (step + 1), out=value)
    for k, value in enumerate(values):
        x[k] = value


KERNELS: dict[str, Callable[..., None]] = {"saxpy": saxpy, "tile of a product": tile, "4,000 fma": polynomial}


def measured(function: Callable[..., None]) -> tuple[float, float, int]:
    """Seconds of ours and of the assembler, and instructions."""
    start = perf_counter()
    kernel: Any = ptx_kernel(function)
    kernel.cubin(arch=ARCH)
    ours = perf_counter() - start
    text = kernel.ptx()
    assembler = find_assembler((9, 0), ARCH)
    command = [assembler.path, f"-arch={ARCH}", "-v", "-lineinfo", "/dev/stdin", "-o", "/dev/stdout"]
    start = perf_counter()
    subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    alone = perf_counter() - start
    return ours, alone, sum(1 for _ in kernel.ir().function(kernel.entry).instructions())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    rows = []
    with override(cache_dir="off"):
        for name, function in KERNELS.items():
            measured(function)
            found = [measured(function) for _ in range(rounds)]
            ours, alone = (statistics.median(each[n] for each in found) * 1e3 for n in (0, 1))
            ratio = statistics.median(each[0] / each[1] for each in found)
            rows.append((name, found[0][2], f"{ours:.1f}", f"{alone:.1f}", f"{ratio:.2f}"))
    print(table(("kernel", "instructions", "ms to a cubin", "ms of ptxas", "ratio"), rows))


if __name__ == "__main__":
    main()
