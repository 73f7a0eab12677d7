"""Sweeps that take long: a run tries some of the cases, drawn by its seed, and `pytest -m exhaustive` the others."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

__all__ = ["sampled"]


def sampled(cases: Iterable[Any], count: int) -> list[Any]:
    """The cases as parameters of a test; tuples are several of them. A run tries ``count`` of them."""
    given = list(cases)
    rng = np.random.default_rng([int(os.environ["TEST_SEED"]), *repr(given[0]).encode()])
    picked = set(rng.permutation(len(given))[:count].tolist())
    values = [case if isinstance(case, tuple) else (case,) for case in given]
    return [pytest.param(*each, marks=[pytest.mark.exhaustive] * (at not in picked)) for at, each in enumerate(values)]
