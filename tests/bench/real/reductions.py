"""Reductions of all kinds; the loops in C give the same partial results."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


def _strided(x: np.ndarray, threads: int, blocks: int) -> np.ndarray:
    """The sums that blocks make which go through the data by the size of the grid."""
    padded = np.zeros(-(-x.size // (threads * blocks)) * threads * blocks, x.dtype)
    padded[: x.size] = x
    return padded.reshape(-1, blocks, threads).sum((0, 2))


@kernel("sum_shared")
def sum_shared(rng: np.random.Generator, small: bool) -> Case:
    n = 1300 if small else 600_000
    x = rng.standard_normal(n).astype(np.float32)
    expected = np.add.reduceat(x.astype(np.float64), np.arange(0, n, 512))
    return Case(expected.size, 256, [x, np.full(expected.size, np.nan, np.float32), n], {1: expected}, 1e-5)


@kernel("sum_any_block")
def sum_any_block(rng: np.random.Generator, small: bool) -> Case:
    n, threads, blocks = (3001, 200, 3) if small else (600_001, 200, 60)
    x, out = rng.integers(-1000, 1000, n, np.int32), np.full(blocks, 7, np.int32)
    expected = _strided(x, threads, blocks)
    return Case(blocks, threads, [x, out, n], {1: expected}, native=[x, out, n, threads, blocks], shared=4 * threads)


@kernel("dot_shuffle")
def dot_shuffle(rng: np.random.Generator, small: bool) -> Case:
    n, threads, blocks = (3001, 256, 3) if small else (600_001, 256, 64)
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    out = np.full(blocks, np.nan, np.float32)
    expected = _strided(x.astype(np.float64) * y, threads, blocks)
    return Case(blocks, threads, [x, y, out, n], {2: expected}, 1e-5, native=[x, y, out, n, threads, blocks])


@kernel("argmax_rows")
def argmax_rows(rng: np.random.Generator, small: bool) -> Case:
    rows, columns = (5, 77) if small else (600, 1000)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    top, where = np.full(rows, np.nan, np.float32), np.full(rows, -1, np.int32)
    expected = {1: x.max(1), 2: x.argmax(1)}
    return Case(rows, 32, [x, top, where, columns], expected, native=[x, top, where, columns, rows])


@kernel("cg_reduce")
def cg_reduce(rng: np.random.Generator, small: bool) -> Case:
    n, threads, blocks = (3001, 128, 3) if small else (600_001, 128, 64)
    x, out = rng.integers(-1000, 1000, n, np.int32), np.zeros(blocks, np.int32)
    expected = _strided(x, threads, blocks)
    return Case(blocks, threads, [x, out, n], {1: expected}, native=[x, out, n, threads, blocks])
