"""pyptx's own RMSNorm and softmax as one writes them in ptxdsl: the same algorithm, block size, loads and unrolling.

`ports` has them instruction for instruction.
"""

from __future__ import annotations

from math import e, inf, log2
from typing import Any

from ptxdsl import Kernel, Ptr, f32, maximum, ptx, ptx_kernel, reg, shared, when
from ptxdsl import warp

__all__ = ["build_rms_norm", "build_softmax"]

BLOCKS = (512, 256, 128, 64, 32)


def across_warps(op: Any, value: Any, start: float, block: int) -> Any:
    """One value a warp becomes one value a block, by way of thread 0, as pyptx does it."""
    warps = block // 32
    partials, result = shared(f32, warps), shared(f32, 1)
    tid = ptx.tid.x
    with when((tid & 31) == 0):
        partials[tid >> 5] = value
    ptx.bar.sync(0)
    with when(tid == 0):
        total = reg(f32, start)
        for other in range(warps):
            total.set(op(total, partials[other]))
        result[0] = total
    ptx.bar.sync(0)
    return result[0]


def add(a: Any, b: Any) -> Any:
    return a + b


def build_rms_norm(n: int, eps: float = 1e-6) -> Kernel:
    """The kernel for rows of ``n``; ``n`` is a multiple of 4 times the block."""
    block = next((b for b in reversed(BLOCKS) if b >= 128 and n % (4 * b) == 0), 0)

    @ptx_kernel
    def rms_norm(x: Ptr[f32], w: Ptr[f32], y: Ptr[f32]) -> None:
        row, first = ptx.ctaid.x * n, ptx.tid.x << 2
        x_row, y_row, w_row = x + row + first, y + row + first, w + first
        squares = reg(f32, 0.0)
        values = []
        for j in range(0, n, block * 4):
            values.append(x_row.load(j, width=4))
            for v in values[-1]:
                ptx.fma.rn.f32(v, v, squares, out=squares)
        total = across_warps(add, warp.reduce_sum(squares), 0.0, block)
        scale = ptx.rsqrt.approx.f32(total * (1 / n) + eps)
        for j, part in zip(range(0, n, block * 4), values):
            weights = w_row.load(j, width=4)
            y_row.store(j, [v * scale * weight for v, weight in zip(part, weights)])

    return rms_norm


def build_softmax(n: int) -> Kernel:
    """The kernel for rows of ``n``, a multiple of 32; vector loads where 4 times the block divides ``n``."""
    block = next(b for b in BLOCKS if n % b == 0)
    width = 4 if n // block % 4 == 0 else 1
    steps = range(0, n, block * width)

    @ptx_kernel
    def softmax(x: Ptr[f32], y: Ptr[f32]) -> None:
        row, first = ptx.ctaid.x * n, ptx.tid.x * width
        x_row, y_row = x + row + first, y + row + first
        largest = reg(f32, -inf)
        values = []
        for j in steps:
            for v in x_row.load(j, width=4) if width == 4 else [x_row[j]]:
                ptx.max.f32(largest, v, out=largest)
                values.append(v)
        shift = across_warps(maximum, warp.reduce_max(largest), -inf, block) * -log2(e)
        powers = []
        total = reg(f32, 0.0)
        for v in values:
            powers.append(ptx.ex2.approx.f32(ptx.fma.rn.f32(v, log2(e), shift)))
            total += powers[-1]
        scale = ptx.rcp.approx.f32(across_warps(add, warp.reduce_sum(total), 0.0, block))
        for i, j in enumerate(steps):
            part = [v * scale for v in powers[i * width : (i + 1) * width]]
            if width == 4:
                y_row.store(j, part)
            else:
                y_row[j] = part[0]

    return softmax
