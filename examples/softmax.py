"""Softmax of each row of a matrix: one block a row, any number of columns."""

from math import e, inf, log2

import numpy as np

from ptxdsl import Ptr, f32, loop, maximum, ptx, ptx_kernel, reg, u32
from ptxdsl import block
from ptxdsl.bench import Row, compare, report


@ptx_kernel
def softmax(columns: u32, x: Ptr[f32], y: Ptr[f32], *, threads: int = 128) -> None:
    row, first = ptx.ctaid.x * columns, ptx.tid.x

    largest = reg(f32, -inf)
    with loop(first, columns, threads) as j:
        largest.set(maximum(largest, x[row + j]))
    shift = block.reduce_max(largest, threads) * -log2(e)

    def power(j: u32) -> f32:
        """exp(x[row, j] - the largest of the row), as a power of two."""
        return ptx.ex2.approx.f32(ptx.fma.rn.f32(x[row + j], log2(e), shift))

    total = reg(f32, 0.0)
    with loop(first, columns, threads) as j:
        total += power(j)
    scale = ptx.rcp.approx.f32(block.reduce_sum(total, threads))

    with loop(first, columns, threads) as j:
        y[row + j] = power(j) * scale


def main(rows: int = 256, columns: int = 1000) -> Row:
    rng = np.random.default_rng()
    x = (rng.standard_normal((rows, columns)) * 10).astype(np.float32)
    y = np.full_like(x, np.nan)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    return compare(f"softmax, {rows} x {columns}", lambda: softmax[rows, 128](columns, x, y), y, expected, 1e-5)


if __name__ == "__main__":
    report(main())
