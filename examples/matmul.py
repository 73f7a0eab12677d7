"""c = a @ b for matrices of any shape: a tile of c a block, tiles of a and b in shared memory."""

import numpy as np

from ptxdsl import Array, f32, loop, ptx, ptx_kernel, reg, shared, u32, when
from ptxdsl.bench import Row, compare, report


def load_or_zero(matrix: Array[f32, 2], i: u32, j: u32) -> f32:
    """matrix[i, j], and 0 outside of it."""
    value = reg(f32, 0.0)
    with when((i < matrix.shape[0]) & (j < matrix.shape[1])):
        value.set(matrix[i, j])
    return value


@ptx_kernel
def matmul(a: Array[f32, 2], b: Array[f32, 2], c: Array[f32, 2], *, tile: int = 16) -> None:
    a_tile, b_tile = shared(f32, tile, tile), shared(f32, tile, tile)
    x, y = ptx.tid.x, ptx.tid.y
    row, column = ptx.ctaid.y * tile + y, ptx.ctaid.x * tile + x

    acc = reg(f32, 0.0)
    with loop(0, a.shape[1], tile) as k:
        a_tile[y, x] = load_or_zero(a, row, k + x)
        b_tile[y, x] = load_or_zero(b, k + y, column)
        ptx.bar.sync(0)
        for kk in range(tile):
            ptx.fma.rn.f32(a_tile[y, kk], b_tile[kk, x], acc, out=acc)
        ptx.bar.sync(0)
    with when((row < c.shape[0]) & (column < c.shape[1])):
        c[row, column] = acc


def main(m: int = 250, n: int = 190, k: int = 130, tile: int = 16) -> Row:
    rng = np.random.default_rng()
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)
    grid = (-(-n // tile), -(-m // tile))
    expected = a.astype(np.float64) @ b
    return compare(
        f"matmul, {m} x {k} x {n}", lambda: matmul[grid, (tile, tile)](a, b, c, tile=tile), c, expected, 1e-5
    )


if __name__ == "__main__":
    report(main())
