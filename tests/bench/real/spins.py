"""Kernels whose threads wait for what others write."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("spin_lock")
def spin_lock(rng: np.random.Generator, small: bool) -> Case:
    n, blocks = (1500, 5) if small else (1_000_000, 200)
    x, total, lock = rng.integers(-100, 100, n, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    return Case(blocks, 128, [x, total, lock, n], {1: x.sum(), 2: 0}, native=[x, total, n])


@kernel("chained_scan")
def chained_scan(rng: np.random.Generator, small: bool) -> Case:
    # Each launch after the first finds the flags set: it is right since the sums that it reads are the same.
    n = 1500 if small else 100_000
    x, blocks = rng.integers(-100, 100, n, np.int32), -(-n // 256)
    sums, flags = np.zeros(blocks, np.int32), np.zeros(blocks, np.int32)
    return Case(blocks, 256, [x, np.zeros_like(x), sums, flags, n, 1], {1: np.cumsum(x), 3: 1})


@kernel("last_block")
def last_block(rng: np.random.Generator, small: bool) -> Case:
    n, blocks = (3000, 5) if small else (400_000, 100)
    x = rng.standard_normal(n).astype(np.float32) + np.float32(1)
    parts, out, count = np.zeros(blocks, np.float32), np.full(1, np.nan, np.float32), np.zeros(1, np.uint32)
    arguments = [x, parts, out, count, n]
    return Case(blocks, 256, arguments, {2: x.sum(dtype=np.float64), 3: 0}, 1e-4, native=[*arguments, blocks])


@kernel("acquire_release")
def acquire_release(rng: np.random.Generator, small: bool) -> Case:
    blocks, rounds = (3, 3) if small else (30, 30)
    x = rng.integers(0, 1 << 32, blocks * 32, np.uint32)
    expected = x.copy()
    for step in range(4 * rounds):
        for k in range(40):
            expected = expected * np.uint32(3) + np.uint32(step % 4 + k)
    out = np.zeros_like(x)
    return Case(blocks, 128, [x, out, rounds], {1: expected}, native=[x, out, rounds, blocks])
