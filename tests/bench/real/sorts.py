"""Sorts of the numbers of each block, a merge, and the largest of each row."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("bitonic_sort")
def bitonic_sort(rng: np.random.Generator, small: bool) -> Case:
    blocks = 2 if small else 100
    x = rng.integers(0, 1 << 32, (blocks, 512), np.uint32)
    out = np.zeros_like(x)
    return Case(blocks, 256, [x, out], {1: np.sort(x, axis=1)}, native=[x, out, blocks])


@kernel("odd_even_sort")
def odd_even_sort(rng: np.random.Generator, small: bool) -> Case:
    blocks = 2 if small else 100
    x = rng.standard_normal((blocks, 128)).astype(np.float32)
    out = np.full_like(x, np.nan)
    return Case(blocks, 64, [x, out], {1: np.sort(x, axis=1)}, native=[x, out, blocks])


@kernel("radix_pass")
def radix_pass(rng: np.random.Generator, small: bool) -> Case:
    blocks, shift = (1, 8) if small else (100, 8)
    x = rng.integers(0, 1 << 32, (blocks, 1024), np.uint32)
    out = np.zeros_like(x)
    order = np.argsort(x >> np.uint32(shift) & np.uint32(15), axis=1, kind="stable")
    expected = np.take_along_axis(x, order, 1)
    return Case(blocks, 128, [x, out, shift], {1: expected}, native=[x, out, shift, blocks])


@kernel("merge_path")
def merge_path(rng: np.random.Generator, small: bool) -> Case:
    na, nb = (300, 177) if small else (150_000, 100_001)
    a, b = np.sort(rng.integers(0, 1 << 20, na, np.int32)), np.sort(rng.integers(0, 1 << 20, nb, np.int32))
    out = np.full(na + nb, -1, np.int32)
    expected = np.sort(np.concatenate([a, b]))
    grid = -(-(na + nb) // (16 * 128))
    return Case(grid, 128, [a, b, out, na, nb, 16], {2: expected}, native=[a, b, out, na, nb])


@kernel("top_k")
def top_k(rng: np.random.Generator, small: bool) -> Case:
    rows, columns = (4, 100) if small else (200, 1000)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    order = np.argsort(-x, axis=1, kind="stable")[:, :8]
    out, where = np.full((rows, 8), np.nan, np.float32), np.full((rows, 8), -1, np.int32)
    expected = {1: np.take_along_axis(x, order, 1), 2: order}
    return Case(rows // 4, (32, 4), [x, out, where, columns], expected, native=[x, out, where, columns, rows])
