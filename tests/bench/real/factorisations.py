"""Factorisations and eigenvalues: small matrices a block or a thread each, tridiagonal systems."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("lud_perimeter")
def lud_perimeter(rng: np.random.Generator, small: bool) -> Case:
    blocks = 3 if small else 100
    n = 16 * (blocks + 1)
    m = rng.standard_normal((n, n)).astype(np.float32)
    m[:16, :16] += 8 * np.eye(16, dtype=np.float32)
    expected = m.astype(np.float64)
    diagonal, rows, columns = expected[:16, :16], expected[:16, 16:], expected[16:, :16]
    for i in range(16):
        for j in range(i):
            rows[i] -= diagonal[i, j] * rows[j]
            columns[:, i] -= columns[:, j] * diagonal[j, i]
        columns[:, i] /= diagonal[i, i]
    return Case(blocks, 32, [m, n, 0], {0: expected}, 1e-3, native=[m, n, 0, blocks])


@kernel("cholesky_24")
def cholesky_24(rng: np.random.Generator, small: bool) -> Case:
    blocks = 2 if small else 120
    a = rng.standard_normal((blocks, 24, 24))
    a = a @ a.transpose(0, 2, 1) + 24 * np.eye(24)
    out = np.full_like(a, np.nan)
    return Case(blocks, (24, 7), [a, out], {1: np.linalg.cholesky(a)}, 1e-10, native=[a, out, blocks])


@kernel("thomas")
def thomas(rng: np.random.Generator, small: bool) -> Case:
    n, systems = (9, 70) if small else (128, 1000)
    a, c, d = (rng.standard_normal((n, systems)).astype(np.float32) for _ in range(3))
    b = np.abs(a) + np.abs(c) + 1
    after, expected = np.zeros((n, systems)), np.zeros((n, systems))
    after[0], expected[0] = c[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        w = 1 / (b[i] - after[i - 1] * a[i])
        after[i], expected[i] = c[i] * w, (d[i] - expected[i - 1] * a[i]) * w
    for i in range(n - 2, -1, -1):
        expected[i] -= after[i] * expected[i + 1]
    x, cp = np.zeros_like(a), np.zeros_like(a)
    return Case(-(-systems // 128), 128, [a, b, c, d, x, cp, n, systems], {4: expected}, 1e-4)


@kernel("jacobi_eigen4")
def jacobi_eigen4(rng: np.random.Generator, small: bool) -> Case:
    n = 70 if small else 3001
    a = rng.standard_normal((n, 4, 4)).astype(np.float32)
    a = a + a.transpose(0, 2, 1)
    turned = a.astype(np.float64)
    for _ in range(6):
        for p, q in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
            off = np.where(np.abs(turned[:, p, q]) < 1e-20, 1e-20, turned[:, p, q])
            theta = (turned[:, q, q] - turned[:, p, p]) / (2 * off)
            t = np.where(theta >= 0, 1, -1) / (np.abs(theta) + np.sqrt(theta * theta + 1))
            c = 1 / np.sqrt(t * t + 1)
            rotation = np.tile(np.eye(4), (n, 1, 1))
            rotation[:, p, p] = rotation[:, q, q] = c
            rotation[:, p, q], rotation[:, q, p] = t * c, -t * c
            turned = rotation.transpose(0, 2, 1) @ turned @ rotation
    expected = np.diagonal(turned, axis1=1, axis2=2)
    return Case(-(-n // 64), 64, [a, np.zeros((n, 4), np.float32), n], {1: expected}, 1e-3)
