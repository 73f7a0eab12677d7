"""Kernels that call functions."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("noinline_call")
def noinline_call(rng: np.random.Generator, small: bool) -> Case:
    n, degree = (300, 7) if small else (200_000, 15)
    x = rng.uniform(-1, 1, n).astype(np.float32)
    c = rng.standard_normal(degree + 1).astype(np.float32)
    odd = c.astype(np.float64)
    odd[::2] = 0
    expected = 2 * np.polynomial.polynomial.polyval(x.astype(np.float64), odd)
    return Case(-(-n // 128), 128, [x, np.full(n, np.nan, np.float32), c, degree, n], {1: expected}, 1e-5)


@kernel("function_pointer")
def function_pointer(rng: np.random.Generator, small: bool) -> Case:
    n, steps = (150, 5) if small else (100_000, 16)
    x, which = rng.integers(0, 1 << 32, n, np.uint32), rng.integers(0, 3, steps, np.int32)
    expected = x.copy()
    for k in range(steps):
        kind = which[(np.arange(n) // 64 + k) % steps]
        turn, back = np.uint32(k & 31), np.uint32(-k & 31)
        rotated = (expected << turn) | (expected >> back)
        mixed = (expected ^ np.uint32(k)) * np.uint32(0x9E3779B1)
        expected = np.select([kind == 0, kind == 1], [rotated, mixed], 3 * expected + np.uint32(k))
    return Case(-(-n // 64), 64, [x, which, np.zeros_like(x), n, steps], {2: expected})


@kernel("recursion")
def recursion(rng: np.random.Generator, small: bool) -> Case:
    n = 40 if small else 300
    amounts = rng.integers(0, 14, n, np.int32)
    ways = np.zeros(20, np.int64)
    ways[0] = 1
    for worth in (1, 2, 5, 10):
        for amount in range(worth, 20):
            ways[amount] += ways[amount - worth]
    return Case(-(-n // 32), 32, [amounts, np.zeros(n, np.int32), n], {1: ways[amounts]})


@kernel("asserted")
def asserted(rng: np.random.Generator, small: bool) -> Case:
    n, m = (300, 50) if small else (300_000, 10_000)
    x, index = rng.standard_normal(m).astype(np.float32), rng.integers(0, m, n, np.int32)
    return Case(-(-n // 256), 256, [x, index, np.full(n, np.nan, np.float32), n, m], {2: 2 * x[index]})
