"""Kernels for Numba's CUDA target, whose arrays come as seven and more parameters each."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, kernel


def _passed(*arguments: Any) -> tuple[list[Any], list[int]]:
    """What Numba passes for arguments, and the places of the arrays' data."""
    found: list[Any] = []
    places = []
    for each in arguments:
        if isinstance(each, np.ndarray):
            places.append(len(found) + 4)
            found += [0, 0, each.size, each.itemsize, each, *each.shape, *each.strides]
        else:
            found.append(each)
    return found, places


@kernel("numba_saxpy", compiler="numba")
def saxpy(rng: np.random.Generator, small: bool) -> Case:
    n, a = 1000 if small else 600_000, np.float32(rng.standard_normal())
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    out = np.full_like(x, np.nan)
    arguments, places = _passed(a, x, y, out)
    expected = {places[2]: np.float64(a) * x + y}
    return Case(-(-n // 128), 128, arguments, expected, 1e-6, native=[a, x, y, out, n])


@kernel("numba_matmul", compiler="numba")
def matmul(rng: np.random.Generator, small: bool) -> Case:
    m, k, n = (45, 35, 25) if small else (150, 170, 160)
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)
    arguments, places = _passed(a, b, c)
    grid = (-(-n // 16), -(-m // 16))
    return Case(grid, (16, 16), arguments, {places[2]: a.astype(np.float64) @ b}, 1e-5, native=[a, b, c, m, k, n])


@kernel("numba_mandelbrot", compiler="numba")
def mandelbrot(rng: np.random.Generator, small: bool) -> Case:
    (w, h), limit = (33, 17) if small else (200, 150), np.int64(20 if small else 60)
    low_x, low_y, step, out = -2.0, -1.25, 2.5 / h, np.full((h, w), -1, np.int32)
    arguments, places = _passed(low_x, low_y, step, limit, out)
    cx, cy = np.meshgrid(low_x + np.arange(w) * step, low_y + np.arange(h) * step)
    z, c, expected = np.zeros((h, w), complex), cx + 1j * cy, np.zeros((h, w), np.int32)
    for _ in range(limit):
        going = z.real * z.real + z.imag * z.imag <= 4
        expected += going
        z = np.where(going, z * z + c, z)
    native = [low_x, low_y, step, limit, out, w, h]
    return Case((8, 8), (32, 4), arguments, {places[0]: expected}, outliers=0.02, native=native)


@kernel("numba_sum", compiler="numba")
def sum_(rng: np.random.Generator, small: bool) -> Case:
    n, blocks = (3000, 3) if small else (500_000, 60)
    x, out = rng.random(n), np.zeros(1)
    arguments, places = _passed(x, out)
    return Case(blocks, 128, arguments, {places[1]: [x.sum()]}, 1e-12, native=[x, out, n])


@kernel("numba_stencil", compiler="numba")
def stencil(rng: np.random.Generator, small: bool) -> Case:
    w, h = (50, 37) if small else (600, 400)
    x = rng.standard_normal((h, w)).astype(np.float32)
    out, expected, p = np.zeros_like(x), np.zeros((h, w)), x.astype(np.float64)
    expected[1:-1, 1:-1] = 0.25 * (p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1])
    arguments, places = _passed(x, out)
    grid = (-(-w // 32), -(-h // 8))
    return Case(grid, (32, 8), arguments, {places[1]: expected}, 1e-5, native=[x, out, w, h])


@kernel("numba_histogram", compiler="numba")
def histogram(rng: np.random.Generator, small: bool) -> Case:
    n, blocks, count = (3000, 3, 64) if small else (300_000, 60, 64)
    x, bins = rng.standard_normal(n).astype(np.float32), np.zeros(count, np.int32)
    low, high = np.float32(-2), np.float32(2)  # widths of a power of two: the bins are exact
    number = np.trunc((x - low) / np.float32(1 / 16)).astype(np.int64)
    expected = np.bincount(number[(number >= 0) & (number < count)], minlength=count)
    arguments, places = _passed(x, low, high, bins)
    return Case(blocks, 128, arguments, {places[1]: expected}, native=[x, low, high, bins, n, count])


@kernel("numba_median", compiler="numba")
def median(rng: np.random.Generator, small: bool) -> Case:
    w, h = (50, 37) if small else (200, 150)
    x, out = rng.integers(0, 256, (h, w), np.int32), np.zeros((h, w), np.int32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3)).reshape(h - 2, w - 2, 9)
    expected = np.pad(np.sort(windows, axis=2)[..., 4], 1)
    arguments, places = _passed(x, out)
    grid = (-(-w // 16), -(-h // 8))
    return Case(grid, (16, 8), arguments, {places[1]: expected}, native=[x, out, w, h])


@kernel("numba_collatz", compiler="numba")
def collatz(rng: np.random.Generator, small: bool) -> Case:
    n = int(rng.integers(300, 400)) if small else 20_000
    value, expected = np.arange(1, n + 1, dtype=np.int64), np.zeros(n, np.int32)
    while (going := value != 1).any():
        value = np.where(going, np.where(value % 2 == 0, value // 2, 3 * value + 1), value)
        expected += going
    out = np.full(n, -1, np.int32)
    arguments, places = _passed(out)
    return Case(-(-n // 96), 96, arguments, {places[0]: expected}, native=[out, n])
