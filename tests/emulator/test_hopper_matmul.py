"""Hopper's matrix product: copies by TMA, mbarriers and wgmma together, in the language."""

from __future__ import annotations

import numpy as np
import pytest
from hopper_matmul import launch
from matrix_harness import check_product

Rng = np.random.Generator


@pytest.mark.parametrize("size", [(1, 1, 8), (128, 128, 192), (200, 136, 328), (129, 257, 577)])
def test_ragged_sizes(rng: Rng, size: tuple[int, int, int]) -> None:
    check_product(launch, rng, *size)


@pytest.mark.parametrize("seed", range(4))
def test_any_schedule(rng: Rng, seed: int) -> None:
    check_product(launch, rng, 130, 120, 400, seed=seed)


@pytest.mark.parametrize("sanitize", ["race", "init"])
def test_under_the_sanitizer(rng: Rng, sanitize: str) -> None:
    check_product(launch, rng, 128, 128, 400, sanitize=sanitize)
