"""Stencils in one, two and three dimensions, and a Jacobi step with shuffles."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("stencil_1d")
def stencil_1d(rng: np.random.Generator, small: bool) -> Case:
    n = 1000 if small else 500_000
    x, w = rng.standard_normal(n).astype(np.float32), rng.standard_normal(9).astype(np.float32)
    expected = np.convolve(np.pad(x.astype(np.float64), 4), w[::-1].astype(np.float64), "valid")
    return Case(-(-n // 256), 256, [x, np.full_like(x, np.nan), w, n], {1: expected}, 1e-5)


@kernel("stencil_2d")
def stencil_2d(rng: np.random.Generator, small: bool) -> Case:
    w, h = (50, 37) if small else (700, 500)
    x = rng.standard_normal((h, w)).astype(np.float32)
    centre, side, corner = rng.standard_normal(3).astype(np.float32)
    p = np.pad(x.astype(np.float64), 1)
    sides = p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1]
    corners = p[:-2, :-2] + p[:-2, 2:] + p[2:, :-2] + p[2:, 2:]
    expected = centre * p[1:-1, 1:-1] + side * sides + corner * corners
    grid = (-(-w // 16), -(-h // 16))
    return Case(grid, (16, 16), [x, np.full_like(x, np.nan), w, h, centre, side, corner], {1: expected}, 1e-5)


@kernel("stencil_3d")
def stencil_3d(rng: np.random.Generator, small: bool) -> Case:
    nx, ny, nz = (33, 13, 5) if small else (128, 100, 40)
    x = rng.standard_normal((nz, ny, nx)).astype(np.float32)
    a, b = rng.standard_normal(2).astype(np.float32)
    p = x.astype(np.float64)
    out = np.zeros_like(x)
    expected = np.zeros_like(p)
    inner = (slice(1, -1),) * 3
    around = [np.roll(p, step, axis)[inner] for axis in range(3) for step in (-1, 1)]
    expected[inner] = a * p[inner] + b * sum(around)
    return Case((-(-nx // 32), -(-ny // 4)), (32, 4), [x, out, nx, ny, nz, a, b], {1: expected}, 1e-5)


@kernel("jacobi_shuffle")
def jacobi_shuffle(rng: np.random.Generator, small: bool) -> Case:
    w, h = (70, 11) if small else (902, 600)
    x = rng.standard_normal((h, w)).astype(np.float32)
    p, expected = x.astype(np.float64), np.zeros((h, w))
    expected[1:-1, 1:-1] = 0.25 * (p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1])
    return Case((-(-(w - 2) // 30), -(-(h - 2) // 8)), (32, 8), [x, np.zeros_like(x), w, h], {1: expected}, 1e-5)
