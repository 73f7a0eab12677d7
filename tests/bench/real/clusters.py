"""Kernels in clusters of blocks."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("cluster_sum")
def cluster_sum(rng: np.random.Generator, small: bool) -> Case:
    rows, columns = (2, 700) if small else (60, 4000)
    x, out = rng.standard_normal((rows, columns)).astype(np.float32), np.full(rows, np.nan, np.float32)
    native = [x, out, columns, rows]
    return Case(4 * rows, 128, [x, out, columns], {1: x.sum(1, dtype=np.float64)}, 1e-5, native=native, cluster=4)


@kernel("cluster_histogram")
def cluster_histogram(rng: np.random.Generator, small: bool) -> Case:
    n, blocks = (2000, 4) if small else (200_000, 16)
    x, bins = rng.integers(0, 1024, n, np.int32), np.zeros(1024, np.int32)
    return Case(blocks, 256, [x, bins, n], {1: np.bincount(x, minlength=1024)}, cluster=2)
