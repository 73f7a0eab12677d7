"""Pipelines and flags within a block: asynchronous copies, named barriers, volatile memory."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("cp_async_stencil")
def cp_async_stencil(rng: np.random.Generator, small: bool) -> Case:
    n = 1003 if small else 100_003
    x, out = rng.standard_normal(n).astype(np.float32), np.zeros(n, np.float32)
    expected = np.convolve(x.astype(np.float64), 5 - np.abs(np.arange(-4, 5)), "same")
    return Case(-(-n // 1280), 128, [x, out, n, 10], {1: expected}, 1e-4)


@kernel("named_barriers")
def named_barriers(rng: np.random.Generator, small: bool) -> Case:
    blocks, tiles = (2, 7) if small else (50, 60)
    x, out = rng.standard_normal((blocks, tiles, 64)).astype(np.float32), np.zeros((blocks, 64), np.float32)
    expected = 2 * x.sum(1, dtype=np.float64)[:, ::-1]
    return Case(blocks, 128, [x, out, tiles], {1: expected}, 1e-4, native=[x, out, tiles, blocks])


@kernel("volatile_scan")
def volatile_scan(rng: np.random.Generator, small: bool) -> Case:
    blocks = 2 if small else 400
    x = rng.integers(0, 9, (blocks, 256), np.int32)
    out = np.zeros_like(x)
    return Case(blocks, 256, [x, out], {1: np.cumsum(x, 1)}, native=[x, out, blocks])
