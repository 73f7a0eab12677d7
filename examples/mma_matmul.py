"""c = a @ b of f16 on tensor cores: mma.sync, ldmatrix from swizzled tiles, a ring of cp.async copies. sm_80 and later.

A block makes 128 x 64 of c with four warps, each 32 rows of it. Rows of a and b begin at multiples of 16 bytes.
"""

import numpy as np

from ptxdsl import Array, cdiv, dynamic_shared, f16, f32, loop, mma, ptx, ptx_kernel, tiles
from ptxdsl.bench import Row, compare, report

M, N, K, STAGES, THREADS = 128, 64, 64, 3, 128
SHARED = STAGES * (M + N) * K * 2


@ptx_kernel
def matmul(a: Array[f16, 2], b: Array[f16, 2], c: Array[f32, 2]) -> None:
    a_tiles = tiles.Ring(dynamic_shared(f16, align=1024), STAGES, M, K)
    b_tiles = tiles.Ring(a_tiles.end, STAGES, K, N)
    row, column, depth = ptx.ctaid.y * M, ptx.ctaid.x * N, cdiv(a.shape[1], K)
    mine = (ptx.tid.x >> 5) * 32

    def fetch(step: int) -> None:
        """Begin the copies of a step along k; beyond the edges of the matrices they bring zeros."""
        tiles.copy(a_tiles[step % STAGES], a, row, step * K, threads=THREADS)
        tiles.copy(b_tiles[step % STAGES], b, step * K, column, threads=THREADS)
        ptx.cp.async_.commit_group()

    for stage in range(STAGES - 1):
        fetch(stage)
    sums = mma.zeros(32, N)
    with loop(depth) as step:
        ptx.cp.async_.wait_group(STAGES - 2)
        ptx.bar.sync(0)  # the copies of all threads are there, and all are done with the stage before
        fetch(step + (STAGES - 1))
        stage = step % STAGES
        mma.multiply(sums, a_tiles[stage].part(32, K, mine), b_tiles[stage])
    ptx.cp.async_.wait_all()
    sums.store(c, row + mine, column)


def padded(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A random matrix whose rows begin at multiples of 16 bytes."""
    return rng.standard_normal((rows, -(-columns // 8) * 8)).astype(np.float16)[:, :columns]


def main(m: int = 300, n: int = 200, k: int = 500) -> Row:
    rng = np.random.default_rng()
    a, b, c = padded(rng, m, k), padded(rng, k, n), np.full((m, n), np.nan, np.float32)
    launch = matmul.configure((cdiv(n, N), cdiv(m, M)), THREADS, shared=SHARED)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return compare(f"mma.sync matmul, {m} x {k} x {n}", lambda: launch(a, b, c), c, expected, 1e-5)


if __name__ == "__main__":
    report(main())
