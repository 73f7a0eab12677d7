"""The sum of an array: butterfly shuffles within a warp, shared memory between the warps, two launches in all."""

import numpy as np

from ptxdsl import Ptr, f32, loop, ptx, ptx_kernel, reg, shared, u32, when
from ptxdsl.bench import Row, compare, report


def warp_sum(v: f32) -> f32:
    """The sum over the warp, in every lane: a plain Python function, traced in place."""
    for distance in (16, 8, 4, 2, 1):
        v = v + ptx.shfl.sync.bfly.b32(v, distance, 31, 0xFFFFFFFF)
    return v


@ptx_kernel
def block_sum(n: u32, x: Ptr[f32], sums: Ptr[f32], *, threads: int = 256) -> None:
    """sums[b] = the sum of the elements that block b visits."""
    warps = threads // 32
    partial = shared(f32, warps)
    lane, warp = ptx.tid.x & 31, ptx.tid.x >> 5

    acc = reg(f32, 0.0)
    with loop(ptx.ctaid.x * threads + ptx.tid.x, n, ptx.nctaid.x * threads) as i:
        acc += x[i]
    mine = warp_sum(acc)
    with when(lane == 0):
        partial[warp] = mine
    ptx.bar.sync(0)

    with when(ptx.tid.x == 0):
        total = partial[0]
        for other in range(1, warps):
            total = total + partial[other]
        sums[ptx.ctaid.x] = total


def main(n: int = 1_000_003, blocks: int = 64) -> Row:
    rng = np.random.default_rng()
    x = rng.random(n, np.float32)
    partial, total = np.full(blocks, np.nan, np.float32), np.full(1, np.nan, np.float32)

    def launch() -> None:
        block_sum[blocks, 256](n, x, partial)
        block_sum[1, 64](blocks, partial, total, threads=64)

    return compare(f"block sum, n = {n:,}", launch, total, x.sum(dtype=np.float64), 1e-6)


if __name__ == "__main__":
    report(main())
