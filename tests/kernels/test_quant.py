"""The Q4_K products against a float64 reference on the dequantised weights."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError
from ptxdsl.kernels import quant
from ptxdsl.kernels.reference import rms_norm

Array = npt.NDArray[Any]
# Relative to the sum of the magnitudes that are added up: f32 sums, and the rounding of y.
BOUNDS = {np.dtype(np.float32): 2e-6, np.dtype(np.float16): 1e-3, np.dtype(ml_dtypes.bfloat16): 8e-3}


def check(got: Array, x: Array, w: Array, dtype: Any) -> None:
    """``got`` is x w^T within the bound of its dtype."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    bound = BOUNDS[np.dtype(dtype)] * (np.abs(x) @ np.abs(w).T).max()
    assert got.dtype == dtype
    assert np.abs(got.astype(np.float64) - x @ w.T).max() <= bound


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 256), (1, 7, 512), (3, 5, 768), (4, 4, 256), (6, 3, 256)])
def test_gemv(rng: np.random.Generator, dtype: Any, m: int, n: int, k: int) -> None:
    blocks = quant.quantize_q4k(rng.standard_normal((n, k)))
    x = rng.standard_normal((m, k)).astype(dtype)
    out = np.full((m, n), np.nan, dtype)
    assert quant.q4k_gemv(x, blocks, n, out=out) is out
    check(out, x, quant.dequantize_q4k(blocks, k), dtype)


def test_every_bit_of_the_format(rng: np.random.Generator) -> None:
    """Random bytes, where every scale, minimum and nibble occurs; unit vectors pick single weights."""
    blocks = rng.integers(0, 256, (2, 288), np.uint8)
    for half in (0, 144):
        blocks[:, half : half + 4] = rng.uniform(0.01, 1, (2, 2)).astype(np.float16).view(np.uint8)
    got = quant.q4k_gemv(np.eye(512, dtype=np.float32), blocks, 2)
    np.testing.assert_allclose(got, quant.dequantize_q4k(blocks, 512).T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("m", "k", "eps"), [(1, 256, 1e-5), (5, 512, 0.0), (2, 1024, 1.0)])
def test_rmsnorm_gemv(rng: np.random.Generator, m: int, k: int, eps: float) -> None:
    n = 6
    blocks = quant.quantize_q4k(rng.standard_normal((n, k)))
    x, gamma = (rng.standard_normal((m, k)) * 3).astype(np.float32), rng.standard_normal(k).astype(np.float32)
    before = x.copy()
    got = quant.rmsnorm_q4k_gemv(x, gamma, blocks, n, eps=eps)
    assert (x == before).all()
    check(got, rms_norm(x, gamma, eps), quant.dequantize_q4k(blocks, k), np.float32)


@pytest.mark.parametrize("x_type", BOUNDS, ids=str)
@pytest.mark.parametrize("gamma_type", BOUNDS, ids=str)
def test_rmsnorm_gemv_of_mixed_types(rng: np.random.Generator, x_type: Any, gamma_type: Any) -> None:
    blocks = quant.quantize_q4k(rng.standard_normal((3, 256)))
    x, gamma = rng.standard_normal((2, 256)).astype(x_type), rng.standard_normal(256).astype(gamma_type)
    got = quant.rmsnorm_q4k_gemv(x, gamma, blocks, 3)
    check(got, rms_norm(x, gamma, 1e-5), quant.dequantize_q4k(blocks, 256), x_type)


@pytest.mark.slow
def test_the_longest_row(rng: np.random.Generator) -> None:
    k = 28_672
    blocks = quant.quantize_q4k(rng.standard_normal((3, k)))
    x, gamma = rng.standard_normal((1, k)).astype(np.float32), rng.standard_normal(k).astype(np.float32)
    weights = quant.dequantize_q4k(blocks, k)
    check(quant.q4k_gemv(x, blocks, 3), x, weights, np.float32)
    check(quant.rmsnorm_q4k_gemv(x, gamma, blocks, 3), rms_norm(x, gamma, 1e-5), weights, np.float32)


def test_the_first_element_survives(rng: np.random.Generator) -> None:
    """A known kernel overwrites x[0] with the norm: here x is nothing but x[0]."""
    blocks = quant.quantize_q4k(rng.standard_normal((4, 256)))
    x = np.zeros((1, 256), np.float32)
    x[0, 0] = 5
    got = quant.rmsnorm_q4k_gemv(x, np.ones(256, np.float32), blocks, 4, eps=0.0)
    np.testing.assert_allclose(got[0], 16 * quant.dequantize_q4k(blocks, 256)[:, 0], rtol=1e-5, atol=1e-5)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def packed(n: int) -> Array:
    return np.zeros((n, 144), np.uint8)


@pytest.mark.parametrize(
    ("x", "w", "n", "message"),
    [
        (zeros(1, 255), packed(1), 1, "`x` has shape [1, 255]; M is 1 or more and K a positive multiple of 256"),
        (zeros(0, 256), packed(1), 1, "`x` has shape [0, 256]; M is 1 or more and K a positive multiple of 256"),
        (
            zeros(256), packed(1), 1,
            "`x` has shape [256] and dtype float32; wanted is [M, K] of float16 or bfloat16 or float32",
        ),
        (zeros(1, 256), packed(2), 1, "`w_q4k` has shape [2, 144] and dtype uint8; wanted is [1, 144] of uint8"),
        (zeros(1, 256), zeros(1, 144), 1, "`w_q4k` has shape [1, 144] and dtype float32; wanted is [1, 144] of uint8"),
        (zeros(1, 256), packed(1), 0, "n is 0; it can be 1 to 2147483647"),
    ],
)
def test_wrong_arguments(x: Array, w: Array, n: int, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        quant.q4k_gemv(x, w, n)
    assert caught.value.message == message


@pytest.mark.parametrize("offset", [1, 4, 8])
def test_arrays_that_are_not_aligned(offset: int, rng: np.random.Generator) -> None:
    x, gamma = rng.standard_normal((1, 256), np.float32), rng.standard_normal(256, np.float32)
    w = quant.quantize_q4k(rng.standard_normal((7, 256)))
    moved = [unaligned(array, offset) for array in (x, gamma, w)]
    assert [array.ctypes.data % 16 for array in moved] == [offset] * 3
    np.testing.assert_array_equal(quant.rmsnorm_q4k_gemv(*moved, 7), quant.rmsnorm_q4k_gemv(x, gamma, w, 7))


def unaligned(array: Array, offset: int) -> Array:
    """A copy that begins so many bytes behind a multiple of 16."""
    memory = np.zeros(array.nbytes + 32, np.uint8)
    start = -memory.ctypes.data % 16 + offset
    found = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def test_misaligned_weights_elsewhere() -> None:
    class Weights:
        shape, dtype, itemsize = (1, 144), np.dtype(np.uint8), 1

        def data_ptr(self) -> int:
            return 0x1004

        def element_size(self) -> int:
            return 1

    with pytest.raises(LaunchError, match=r"^`w_q4k` begins at address 0x1004; wanted is a multiple of 16\n"):
        quant.q4k_gemv(zeros(1, 256), Weights(), 1)


def test_eps_below_zero() -> None:
    with pytest.raises(LaunchError, match=r"^eps is -1; it can be 0 or more\n  at .*test_quant.py:"):
        quant.rmsnorm_q4k_gemv(zeros(1, 256), zeros(256), packed(1), 1, eps=-1)


def test_output_that_overlaps_an_input() -> None:
    x = zeros(1, 256)
    with pytest.raises(LaunchError) as caught:
        quant.q4k_gemv(x, packed(256), 256, out=x)
    assert caught.value.message == "`out` overlaps `x`"
