"""Labelled programs: each race is found at its lines and nothing else is, whatever order a seed draws."""

from __future__ import annotations

import numpy as np
import pytest
from ordered_programs import ORDERED
from race_cases import judge
from racy_programs import RACY


@pytest.mark.parametrize("name", RACY)
def test_racy(name: str, rng: np.random.Generator) -> None:
    for seed in (None, int(rng.integers(1 << 32))):
        assert not judge(RACY[name], seed), seed


@pytest.mark.parametrize("name", ORDERED)
def test_ordered(name: str, rng: np.random.Generator) -> None:
    for seed in (None, int(rng.integers(1 << 32))):
        assert not judge(ORDERED[name], seed), seed


def test_enough() -> None:
    assert len(RACY) >= 60 and len(ORDERED) >= 60
