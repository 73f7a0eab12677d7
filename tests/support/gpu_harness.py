"""A kernel for the stand-in of the driver, and what a GPU would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from driver_standin import Launched, Standin

from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32, when


def make_saxpy() -> Any:
    @ptx_kernel
    def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            y[i] = a * x[i] + y[i]

    return saxpy


def run_saxpy(cu: Standin) -> Callable[[Launched], None]:
    """What the GPU would do."""

    def run(launched: Launched) -> None:
        n, a, x, y = cu.numbers(launched)
        assert launched.grid[0] * launched.block[0] >= n
        cu.array(y, n)[:] = np.float32(a) * cu.array(x, n) + cu.array(y, n)

    cu.layout = "IfQQ"
    return run
