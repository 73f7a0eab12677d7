"""y = x W^T with W in any block format of GGUF: a warp an output, the weights unpacked in registers."""

from __future__ import annotations

from functools import cache

from .. import Kernel, Ptr, ScalarType, f32, loop, ptx, ptx_kernel, reg, u8, u32, warp, when

from .gguf import FORMATS
from .gguf_unpack import UNPACKERS

__all__ = ["WARPS", "gemv_kernel"]

WARPS = 4
"""Outputs a block computes."""


@cache
def gemv_kernel(format: str, dtype: ScalarType, tokens: int) -> Kernel:  # noqa: A002 - the field's word
    """The product for ``tokens`` rows of x at a time, from row ``start`` on; ``blocks`` are those of a row of W."""
    lanes, runs_of = UNPACKERS[format]
    weights, nbytes = FORMATS[format].weights, FORMATS[format].nbytes

    @ptx_kernel(name=f"{format}_gemv_{dtype}_{tokens}", reqntid=WARPS * 32)
    def kernel(x: Ptr[dtype], w: Ptr[u8], y: Ptr[dtype], n: u32, blocks: u32, start: u32) -> None:
        lane, output = ptx.tid.x & 31, ptx.ctaid.x * WARPS + (ptx.tid.x >> 5)
        first = start + ptx.ctaid.y * tokens
        rows = [x + ptx.mul.wide.u32(first + t, blocks * weights) for t in range(tokens)]
        with when(output < n):
            own = w + ptx.mul.wide.u32(output, blocks * nbytes)
            dots = [reg(f32, 0.0) for _ in rows]
            with loop(lane // lanes, blocks, 32 // lanes) as block:
                runs = runs_of(own + block * nbytes, lane % lanes)
                for row, dot in zip(rows, dots):
                    for place, values in runs:
                        for v, weight in zip(row.load(block * weights + place, width=len(values)), values):
                            ptx.fma.rn.f32(v.to(f32), weight, dot, out=dot)
            for t, dot in enumerate(dots):
                total = warp.reduce_sum(dot)
                with when(lane == 0):
                    (y + ptx.mul.wide.u32(first + t, n))[output] = total.to(dtype)

    return kernel
