"""The gradients of attention against float64: dtypes, masks, grouped heads, widths, queries without a key, seeds."""

from __future__ import annotations

import os
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sampled import sampled

from ptxdsl import LaunchError, bf16, f16, f32
from ptxdsl.config import override
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.kernels import attention, flash_backward, flash_backward_mma
from ptxdsl.kernels.reference import attention_gradients
from ptxdsl.kernels.reference import causal as causal_mask

BF16 = ml_dtypes.bfloat16
BOUNDS = {
    np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-13, np.dtype(np.float16): 3e-3, np.dtype(BF16): 2.5e-2,
}
"""Relative to the largest gradient, or to 1: of 16 bits, the weights, their gradients and the result are rounded."""


def check(
    rng: np.random.Generator, dtype: Any, sizes: tuple[int, ...], causal: bool = False, scale: float = 0.2
) -> None:
    batch, heads, key_heads, queries, keys, dim = sizes
    g, q = (rng.standard_normal((batch, heads, queries, dim)).astype(dtype) for _ in range(2))
    k, v = (rng.standard_normal((batch, key_heads, keys, dim)).astype(dtype) for _ in range(2))
    found = attention.flash_attention_backward(g, q, k, v, causal=causal, scale=scale)
    visible = causal_mask(queries, keys) if causal else True
    for got, want in zip(found, attention_gradients(g, q, k, v, visible, scale)):
        assert got.dtype == dtype and got.shape == want.shape
        error = np.abs(got.astype(np.float64) - want).max()
        assert error <= BOUNDS[np.dtype(dtype)] * max(1, np.abs(want).max()), error


@pytest.mark.parametrize(
    ("dtype", "causal"), sampled(product([np.float32, np.float64, np.float16, BF16], [False, True]), 4)
)
def test_gradients(rng: np.random.Generator, dtype: Any, causal: bool) -> None:
    for sizes in ((1, 1, 1, 1, 1, 16), (2, 4, 2, 35, 70, 40), (1, 2, 1, 70, 35, 64)):
        check(rng, dtype, sizes, causal)
    check(rng, dtype, (1, 1, 1, 33, 40, 64), causal, -0.1)


@pytest.mark.parametrize("dim", [24, 128, 256])
def test_widths(rng: np.random.Generator, dim: int) -> None:
    check(rng, BF16, (1, 1, 1, 20, 40, dim), True, 0.1)
    check(rng, np.float32, (1, 1, 1, 5, 9, dim), True, 0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_queries_without_a_key(rng: np.random.Generator, dtype: Any) -> None:
    q = rng.standard_normal((1, 1, 80, 16)).astype(dtype)
    k, v = (rng.standard_normal((1, 1, 3, 16)).astype(dtype) for _ in range(2))
    dq, dk, dv = attention.flash_attention_backward(q, q, k, v, causal=True)
    assert (dq[0, 0, :77] == 0).all() and (dq[0, 0, 79] != 0).any()
    assert np.isfinite(dk).all() and np.isfinite(dv).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_agrees_with_differences_of_the_forward_pass(rng: np.random.Generator, dtype: Any) -> None:
    """The slope along a direction, from the float64 kernel of the forward pass."""
    g, q, way = (rng.standard_normal((1, 2, 9, 32)) for _ in range(3))
    k, v = (rng.standard_normal((1, 1, 12, 32)) for _ in range(2))
    step = 1e-5
    ends = [attention.flash_attention(q + sign * step * way, k, v, causal=True) for sign in (1, -1)]
    slope = (g * (ends[0] - ends[1])).sum() / (2 * step)
    dq = attention.flash_attention_backward(*(x.astype(dtype) for x in (g, q, k, v)), causal=True)[0]
    assert abs((dq.astype(np.float64) * way).sum() - slope) < (1e-4 if dtype is np.float32 else 5e-2)


@pytest.mark.parametrize("seed", range(3))
def test_seeds(seed: int) -> None:
    _fuzz(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_seeds(seed: int) -> None:
    _fuzz(100 + seed)


def _fuzz(seed: int) -> None:
    rng = np.random.default_rng([int(os.environ["TEST_SEED"]), seed])
    dtype = (np.float32, np.float16, BF16)[int(rng.integers(3))]
    key_heads, group = (int(rng.integers(1, 3)) for _ in range(2))
    queries, keys = (int(rng.integers(1, 100)) for _ in range(2))
    dim = int(rng.choice([16, 64, 72]))
    check(rng, dtype, (1, key_heads * group, key_heads, queries, keys, dim), bool(rng.integers(2)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_under_the_sanitizer(rng: np.random.Generator, dtype: Any) -> None:
    with override(sanitize="all"):
        check(rng, dtype, (1, 2, 1, 40, 70, 24), True)


@pytest.mark.ptxas
@pytest.mark.parametrize("dim", [64, 128])
def test_nothing_is_spilled(dim: int) -> None:
    kernels = [flash_backward_mma.queries_kernel(bf16, dim, True), flash_backward_mma.keys_kernel(f16, dim, False),
               flash_backward.queries_kernel(f32, dim, True), flash_backward.keys_kernel(f32, dim, True)]
    for kernel in kernels:
        assembled = assemble_module(kernel.ptx(), "sm_80", options=("-v",))
        assert assembled.attributes(kernel.entry).spill_store_bytes == 0


def test_errors() -> None:
    q = np.zeros((1, 2, 3, 16), np.float32)
    with pytest.raises(LaunchError) as caught:
        attention.flash_attention_backward(q[:, :, :2], q, q, q)
    assert caught.value.message == (
        "`gradient` has shape [1, 2, 2, 16] and dtype float32; wanted is [1, 2, 3, 16] of float32"
    )
