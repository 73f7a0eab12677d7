"""Tests of the kernels: sizes around warp and block, the rest of the array untouched, numpy as the reference."""

from __future__ import annotations

import numpy as np
import pytest
from my_kernels import scale


@pytest.mark.parametrize("n", [0, 1, 31, 32, 127, 128, 129, 1000])
def test_scale(n: int) -> None:
    x = np.random.default_rng(n).standard_normal(1001).astype(np.float32)
    expected = np.concatenate([x[:n] * np.float32(3), x[n:]])
    scale[8, 128](n, 3.0, x)
    np.testing.assert_array_equal(x, expected)
