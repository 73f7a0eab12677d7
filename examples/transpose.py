"""Transpose through shared memory: both global accesses are contiguous, the padding avoids bank conflicts."""

import numpy as np

from ptxdsl import Array, f32, ptx, ptx_kernel, shared, when
from ptxdsl.bench import Row, compare, report

TILE, ROWS = 32, 8


@ptx_kernel
def transpose(a: Array[f32, 2], b: Array[f32, 2]) -> None:
    """Sets b = a.T; a block of 32 x 8 threads moves a tile of 32 x 32."""
    tile = shared(f32, TILE, TILE + 1)  # one column more: the elements of a column lie in different banks
    x, y = ptx.tid.x, ptx.tid.y
    height, width = a.shape

    row, column = ptx.ctaid.y * TILE + y, ptx.ctaid.x * TILE + x
    for step in range(0, TILE, ROWS):
        with when((row + step < height) & (column < width)):
            tile[y + step, x] = a[row + step, column]
    ptx.bar.sync(0)

    row, column = ptx.ctaid.x * TILE + y, ptx.ctaid.y * TILE + x
    for step in range(0, TILE, ROWS):
        with when((row + step < width) & (column < height)):
            b[row + step, column] = tile[x, y + step]


def main(height: int = 500, width: int = 700) -> Row:
    rng = np.random.default_rng()
    a = rng.standard_normal((height, width)).astype(np.float32)
    b = np.full((width, height), np.nan, np.float32)
    grid = (-(-width // TILE), -(-height // TILE))
    return compare(f"transpose, {height} x {width}", lambda: transpose[grid, (TILE, ROWS)](a, b), b, a.T, 0)


if __name__ == "__main__":
    report(main())
