"""Histograms and sums by key; what they write grows with each launch."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("histogram_global")
def histogram_global(rng: np.random.Generator, small: bool) -> Case:
    n, blocks = (1000, 2) if small else (300_000, 64)
    x, bins = rng.integers(0, 256, n, np.uint8), np.zeros(256, np.uint32)
    return Case(blocks, 256, [x, bins, n], {1: np.bincount(x, minlength=256)})


@kernel("histogram_shared")
def histogram_shared(rng: np.random.Generator, small: bool) -> Case:
    n, blocks = (1000, 2) if small else (200_000, 40)
    x, bins = rng.integers(0, 1 << 32, n, np.uint32), np.zeros(256, np.uint32)
    return Case(blocks, 256, [x, bins, n], {1: np.bincount(x.view(np.uint8), minlength=256)})


@kernel("histogram_warps")
def histogram_warps(rng: np.random.Generator, small: bool) -> Case:
    n, blocks = (1000, 2) if small else (400_000, 40)
    x, bins = rng.standard_normal(n).astype(np.float32), np.zeros(64, np.uint32)
    low, scale = np.float32(-2), np.float32(16)  # exact, so that the bins are
    found = np.trunc((x - low) * scale).astype(np.int64)
    expected = np.bincount(found[(found >= 0) & (found < 64)], minlength=64)
    return Case(blocks, 256, [x, bins, n, low, scale], {1: expected})


@kernel("group_by")
def group_by(rng: np.random.Generator, small: bool) -> Case:
    n, groups = (1000, 11) if small else (200_000, 500)
    keys, values = rng.integers(0, groups, n, np.int32), rng.standard_normal(n).astype(np.float32)
    largest = np.full(groups, -(1 << 31), np.int64)
    np.maximum.at(largest, keys, np.trunc(values * np.float32(1024)).astype(np.int64))
    sums, top = np.zeros(groups, np.float32), np.full(groups, -(1 << 31), np.int32)
    expected = {2: np.bincount(keys, values.astype(np.float64), groups), 3: largest}
    return Case(-(-n // 128), 128, [keys, values, sums, top, n], expected, 1e-4)


@kernel("matched_sums")
def matched_sums(rng: np.random.Generator, small: bool) -> Case:
    n = 1000 if small else 60_000
    keys, values = rng.integers(0, 256, n, np.uint8), rng.integers(-100, 100, n, np.int32)
    expected = np.bincount(keys & 31, values, 32)
    return Case(-(-n // 256), 256, [keys, values, np.zeros(32, np.int32), n], {2: expected})
