"""A transpose that finds its tile by trying: the size, the rows that a thread moves, and the padding."""

import numpy as np

from ptxdsl import Array, Config, autotune, cdiv, f32, ptx, ptx_kernel, shared, when
from ptxdsl.bench import Row, compare, report


@autotune(Config.product(TILE=[16, 32], EACH=[1, 4], PAD=[0, 1]), key=["a"])
@ptx_kernel
def transpose(a: Array[f32, 2], b: Array[f32, 2], *, TILE: int, EACH: int, PAD: int) -> None:
    """Sets b = a.T; each thread of a block moves EACH elements of a tile of TILE x TILE."""
    tile = shared(f32, TILE, TILE + PAD)
    x, y = ptx.tid.x, ptx.tid.y
    height, width = a.shape

    row, column = ptx.ctaid.y * TILE + y, ptx.ctaid.x * TILE + x
    for step in range(0, TILE, TILE // EACH):
        with when((row + step < height) & (column < width)):
            tile[y + step, x] = a[row + step, column]
    ptx.bar.sync(0)

    row, column = ptx.ctaid.x * TILE + y, ptx.ctaid.y * TILE + x
    for step in range(0, TILE, TILE // EACH):
        with when((row + step < width) & (column < height)):
            b[row + step, column] = tile[x, y + step]


def main(height: int = 200, width: int = 300) -> Row:
    rng = np.random.default_rng()
    a = rng.standard_normal((height, width)).astype(np.float32)
    b = np.full((width, height), np.nan, np.float32)
    launch = transpose[
        lambda config: (cdiv(width, config.TILE), cdiv(height, config.TILE)),
        lambda config: (config.TILE, config.TILE // config.EACH),
    ]
    return compare(f"tuned transpose, {height} x {width}", lambda: launch(a, b), b, a.T, 0)


if __name__ == "__main__":
    row = main()
    print(*transpose.tuning(), "", sep="\n")
    report(row)
