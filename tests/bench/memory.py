"""Memory over thousands of modules, half of whose launches fault: ``python tests/bench/memory.py [modules]``.

Each module is loaded or traced, launched once with a new array of 1 MiB, and dropped. What nobody holds is freed at
once, so the process stays as large as it is after the first few hundred (the last 64 programs are kept), also where
Python's collector never runs. Prints the resident memory as it grows, and ends with an error where it is not flat.
"""

from __future__ import annotations

import gc
import os
import sys
from time import perf_counter

import numpy as np
import ptxdsl
from ptxdsl import MemoryFault, Ptr, ptx, ptx_kernel, u32
from ptxdsl.bench import table
from ptxdsl.kernel.kernel import Kernel

MEGA = 1 << 20
MODULES, STEPS, WARM, ALLOWED = 5000, 20, 0.1, 32 * MEGA
"""Modules, samples of the memory, the part of the run before the first of them, and how much may be added since."""
TEXT = """.version 8.0
.target sm_80
.address_size 64
// {number}
.visible .entry k(.param .u64 x, .param .u32 n)
{{
.reg .b64 %rd<4>; .reg .b32 %r<4>;
ld.param.u64 %rd0, [x];
ld.param.u32 %r0, [n];
mul.wide.u32 %rd1, %r0, 4;
add.u64 %rd0, %rd0, %rd1;
st.global.u32 [%rd0], %r0;
ret;
}}
"""


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def traced() -> Kernel:
    """A new kernel."""
    @ptx_kernel
    def store(x: Ptr[u32], n: u32) -> None:
        x[n + ptx.tid.x] = n

    return store


def launch(number: int) -> bool:
    """Make a module, launch it, and drop it; whether the launch faulted."""
    x, index = np.ones(MEGA // 4, np.uint32), MEGA if number % 2 else number
    kernel = ptxdsl.load(TEXT.format(number=number))["k"] if number % 4 < 2 else traced()
    try:
        kernel[1, 1](x, index)
    except MemoryFault:
        return True
    return False


def sparkline(values: list[int]) -> str:
    """A line of bars, the tallest for the largest."""
    return "".join("▁▂▃▄▅▆▇█"[min(7, 8 * value // (max(values) + 1))] for value in values)


def main(modules: int = MODULES) -> int:
    """Print the table; 1 where memory grew."""
    gc.disable()
    rows, samples, faults, start = [], [], 0, perf_counter()
    marks = {int(modules * (WARM + (1 - WARM) * step / STEPS)) for step in range(STEPS + 1)}
    with ptxdsl.use("emulator"):
        for number in range(modules + 1):
            if number in marks:
                samples.append(resident())
                grown = f"{(samples[-1] - samples[0]) / MEGA:+.1f}"
                rows.append((f"{number}", f"{faults}", f"{samples[-1] / MEGA:.0f}", grown))
            faults += launch(number)
    flat = max(samples) - samples[0] <= ALLOWED
    print(table(("modules", "faults", "MB", "grown"), rows))
    print(f"{sparkline(samples)}  {perf_counter() - start:.0f} s: {'flat' if flat else 'GROWS'}")
    return not flat


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
