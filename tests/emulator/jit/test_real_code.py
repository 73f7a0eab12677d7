"""The kernels of tests/bench/real: each loads, is verified, and gives what numpy does, on little data."""

from __future__ import annotations

import numpy as np
import pytest
from real.case import Kernel, kernels
from real_code import Bench


@pytest.mark.parametrize("kernel", kernels(), ids=lambda kernel: kernel.name)
def test_kernel_of_a_compiler_is_right(kernel: Kernel, rng: np.random.Generator) -> None:
    bench = Bench(kernel, rng, small=True)
    bench.checked("a launch", bench.launcher())


def test_every_family_has_native_loops_and_several_compilers_took_part() -> None:
    found = kernels()
    compilers = [kernel.compiler for kernel in found]
    assert len(found) >= 40
    assert compilers.count("triton") >= 5
    assert compilers.count("numba") >= 5
