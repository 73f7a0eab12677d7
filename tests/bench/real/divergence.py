"""Loops with an end of its own for each lane; exact but for the square root, and for points at the set's edge."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("mandelbrot")
def mandelbrot(rng: np.random.Generator, small: bool) -> Case:
    w, h, limit = (33, 17, 20) if small else (400, 300, 100)
    x0, y0, step = np.float32(-2.0), np.float32(-1.25), np.float32(2.5 / h)
    out = np.full((h, w), -1, np.int32)
    expected = _escape(w, h, x0, y0, step, limit)
    return Case((-(-w // 16), -(-h // 16)), (16, 16), [out, w, h, x0, y0, step, limit], {0: expected}, outliers=0.02)


def _escape(w: int, h: int, x0: np.float32, y0: np.float32, step: np.float32, limit: int) -> np.ndarray:
    """How many steps each point takes, in float64."""
    cx, cy = np.meshgrid(x0 + np.arange(w) * np.float64(step), y0 + np.arange(h) * np.float64(step))
    x, y, n = np.zeros((h, w)), np.zeros((h, w)), np.zeros((h, w), np.int32)
    for _ in range(limit):
        going = x * x + y * y <= 4.0
        n += going
        x, y = np.where(going, x * x - y * y + cx, x), np.where(going, 2 * x * y + cy, y)
    return n


@kernel("gcd_pairs")
def gcd_pairs(rng: np.random.Generator, small: bool) -> Case:
    n = 300 if small else 40_000
    a, b = rng.integers(1, 1 << 30, (2, n), np.uint32)
    return Case(-(-n // 128), 128, [a, b, np.zeros(n, np.uint32), n], {2: np.gcd(a, b)})


@kernel("binary_search")
def binary_search(rng: np.random.Generator, small: bool) -> Case:
    size, n = (100, 300) if small else (50_000, 100_000)
    table, keys = np.sort(rng.standard_normal(size).astype(np.float32)), rng.standard_normal(n).astype(np.float32)
    out = np.full(n, -1, np.int32)
    return Case(-(-n // 256), 256, [table, size, keys, out, n], {3: np.searchsorted(table, keys)})


@kernel("early_return")
def early_return(rng: np.random.Generator, small: bool) -> Case:
    n = 500 if small else 400_000
    x, low = np.abs(rng.standard_normal(n)).astype(np.float32), np.float32(1)
    v = x.astype(np.float64)
    expected = np.where(v < low, 0.0, np.where(v > 2 * low, v - low, np.sqrt(v)))
    return Case(-(-n // 192), 192, [x, np.full(n, np.nan, np.float32), n, low], {1: expected}, 1e-5)
