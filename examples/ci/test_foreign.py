"""Tests of what other compilers made, build/*.ptx: the same test for each, as if it were a kernel of ptxdsl."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import ptxdsl
import pytest

BUILT = sorted(Path(__file__).with_name("build").glob("*.ptx"))


@pytest.mark.parametrize("path", BUILT, ids=[path.stem for path in BUILT])
@pytest.mark.parametrize("n", [0, 1, 31, 32, 127, 128, 129, 1000])
def test_scale(path: Path, n: int) -> None:
    (kernel,) = ptxdsl.load(path).values()
    x = np.random.default_rng(n).standard_normal(1001).astype(np.float32)
    expected = np.concatenate([x[:n] * np.float32(3), x[n:]])
    scratch = [0] * (len(kernel.parameters) - 3)  # Triton's kernels take pointers to memory that this one does not use
    kernel[8, 128](x, 3.0, n, *scratch)
    np.testing.assert_array_equal(x, expected)
