"""Products of matrices in blocks of many shapes; the loops in C are in the order that vectorises."""

from __future__ import annotations

from functools import partial

import numpy as np

from .case import Case, kernel


def _product(height: int, width: int, full: int, rng: np.random.Generator, small: bool) -> Case:
    n = 45 if small else full
    a, b = rng.standard_normal((2, n, n)).astype(np.float32)
    grid = (-(-n // width), -(-n // height))
    arguments = [a, b, np.full_like(a, np.nan), n]
    return Case(grid, (width, height), arguments, {2: a.astype(np.float64) @ b}, 1e-5)


kernel("matmul_naive_16x16", "matmul_naive")(partial(_product, 16, 16, 200))
kernel("matmul_naive_8x8", "matmul_naive")(partial(_product, 8, 8, 160))
kernel("matmul_naive_4x4", "matmul_naive")(partial(_product, 4, 4, 100))
kernel("matmul_naive_1d", "matmul_naive")(partial(_product, 1, 128, 180))
kernel("matmul_8x8")(partial(_product, 8, 8, 160))
kernel("matmul_24")(partial(_product, 4, 6, 120))
kernel("matmul_48")(partial(_product, 6, 8, 120))
kernel("matmul_1000")(partial(_product, 25, 40, 200))


@kernel("matvec")
def matvec(rng: np.random.Generator, small: bool) -> Case:
    n = 77 if small else 700
    a, x = rng.standard_normal((n, n)).astype(np.float32), rng.standard_normal(n).astype(np.float32)
    return Case(n, 128, [a, x, np.full_like(x, np.nan), n], {2: a.astype(np.float64) @ x}, 1e-5)
