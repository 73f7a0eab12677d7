"""Kernels under joblib, which starts processes and gives them large arrays as files that are mapped into memory."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pickled_kernels
import pytest

import ptxdsl
from ptxdsl import Kernel
from ptxdsl.machine_code.host import cores
from ptxdsl.kernels import attention

joblib = pytest.importorskip("joblib", reason="needs pip install 'ptxdsl[distributed]'")


@pytest.fixture(autouse=True)
def modules_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find what the tests import."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def scaled(kernel: Kernel, x: Any) -> tuple[Any, str, bool]:
    y = np.array(x, subok=False)
    kernel[1, 32](x.size, y, times=2)
    return y, type(x).__name__, x.flags.writeable


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_kernel_without_a_name(backend: str, rng: np.random.Generator) -> None:
    arrays, kernel = [rng.standard_normal(n, np.float32) for n in (1, 33, 400_000)], pickled_kernels.scaled_by(1.5)
    results = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(scaled)(kernel, x) for x in arrays)
    for (result, kind, writeable), x in zip(results, arrays):
        np.testing.assert_array_equal(result, x * np.float32(1.5) * np.float32(1.5))
        mapped = backend == "loky" and x.size > 33
        assert (kind, writeable) == (("memmap", False) if mapped else ("ndarray", True))


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_a_kernel_reads_files_that_are_mapped(backend: str, rng: np.random.Generator) -> None:
    arrays = [rng.standard_normal(n, np.float32) for n in (1, 33, 5000)]
    work = joblib.Parallel(n_jobs=2, backend=backend, max_nbytes=100)
    for result, x in zip(work(joblib.delayed(pickled_kernels.saxpy_of)(2.0, x, x) for x in arrays), arrays):
        np.testing.assert_array_equal(result, np.float32(2) * x + x)


def test_functions_of_the_library_do(rng: np.random.Generator) -> None:
    given = [rng.standard_normal((3, 1, 2, length, 64), np.float32) for length in (20, 101)]
    work = joblib.Parallel(n_jobs=2, max_nbytes=100)
    results = work(joblib.delayed(attention.flash_attention)(*qkv) for qkv in given)
    for result, qkv in zip(results, given):
        np.testing.assert_array_equal(result, attention.flash_attention(*qkv))


def test_errors_come_back() -> None:
    with pytest.raises(ptxdsl.LaunchError) as caught:
        joblib.Parallel(n_jobs=2)(joblib.delayed(pickled_kernels.failing)(0) for _ in range(2))
    assert str(caught.value) == str(pickled_kernels.caught(0))


def test_processes_share_the_cores() -> None:
    def threads() -> int:
        return cores()

    assert set(joblib.Parallel(n_jobs=2)(joblib.delayed(threads)() for _ in range(4))) == {max(1, cores() // 2)}
