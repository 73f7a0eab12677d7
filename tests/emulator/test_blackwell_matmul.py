"""Blackwell's matrix product: copies by TMA, mbarriers, tcgen05.mma and tensor memory together, in the language."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from blackwell_matmul import launch, matmul

Rng = np.random.Generator


def _check(rng: Rng, m: int, n: int, k: int, **options: Any) -> None:
    a, b = (rng.standard_normal((rows, -(-k // 8) * 8)).astype(ml_dtypes.bfloat16)[:, :k] for rows in (m, n))
    c = np.full((m, n), np.nan, np.float32)
    launch(a, b, c, **options)
    x, y = a.astype(np.float64), b.astype(np.float64)
    assert (abs(c - x @ y.T) <= (k + 192) * 2.0**-24 * (abs(x) @ abs(y).T)).all()


@pytest.mark.parametrize("size", [(1, 1, 8), (128, 256, 192), (200, 136, 328), (129, 257, 577)])
def test_ragged_sizes(rng: Rng, size: tuple[int, int, int]) -> None:
    _check(rng, *size)


@pytest.mark.parametrize("seed", range(4))
def test_any_schedule(rng: Rng, seed: int) -> None:
    _check(rng, 130, 120, 400, seed=seed)


@pytest.mark.ptxas
def test_it_assembles() -> None:
    assert matmul.cubin(arch="sm_100a")[:4] == b"\x7fELF"


@pytest.mark.parametrize("sanitize", ["race", "init"])
def test_under_the_sanitizer(rng: Rng, sanitize: str) -> None:
    _check(rng, 128, 128, 400, sanitize=sanitize)
