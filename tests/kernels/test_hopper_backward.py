"""The gradients of attention by wgmma against float64: shapes, masks, grouped heads, schedules, what is not there."""

from __future__ import annotations

import os
from math import inf
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import LaunchError, bf16, f16
from ptxdsl.config import override
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.kernels import attention, attention_arguments
from ptxdsl.kernels.hopper import flash_states
from ptxdsl.kernels.hopper.flash_backward import DIMS, Kind, backward_kernel, plan_of
from ptxdsl.kernels.reference import attention_gradients
from ptxdsl.kernels.reference import causal as causal_mask

pytestmark = pytest.mark.usefixtures("poisoned")
BF16 = ml_dtypes.bfloat16
BOUNDS = {np.float16: 1.5e-3, BF16: 1.2e-2}
"""Relative to the largest gradient, or to 1: weights, their gradients and the results are rounded, some three units."""


def check(
    rng: np.random.Generator, dtype: Any, sizes: tuple[int, ...], causal: bool = False, scale: float = 0.2
) -> None:
    batch, heads, key_heads, queries, keys, dim = sizes
    g, q = (rng.standard_normal((batch, heads, queries, dim)).astype(dtype) for _ in range(2))
    k, v = (rng.standard_normal((batch, key_heads, keys, dim)).astype(dtype) for _ in range(2))
    found = attention.flash_attention_backward(g, q, k, v, causal=causal, scale=scale, tensor_cores="wgmma")
    visible = causal_mask(queries, keys) if causal else True
    for got, want in zip(found, attention_gradients(g, q, k, v, visible, scale)):
        assert got.dtype == dtype and got.shape == want.shape
        error = np.abs(got.astype(np.float64) - want).max()
        assert error <= BOUNDS[dtype] * max(1, np.abs(want).max()), error


def test_gradients(rng: np.random.Generator) -> None:
    """Few kernels, as tracing one takes seconds; `test_many_seeds` has the others."""
    check(rng, BF16, (1, 1, 1, 1, 1, 64), True)
    check(rng, BF16, (2, 2, 1, 70, 150, 64), True)
    check(rng, np.float16, (1, 1, 1, 1, 1, 72))
    check(rng, np.float16, (1, 3, 1, 170, 40, 72), scale=-0.1)


def test_queries_without_a_key(rng: np.random.Generator) -> None:
    q = rng.standard_normal((1, 1, 200, 64)).astype(BF16)
    k, v = (rng.standard_normal((1, 1, 3, 64)).astype(BF16) for _ in range(2))
    dq, dk, dv = attention.flash_attention_backward(q, q, k, v, causal=True, tensor_cores="wgmma")
    assert (dq[0, 0, :197] == 0).all() and (dq[0, 0, 199] != 0).any()
    assert np.isfinite(dk.astype(np.float32)).all() and np.isfinite(dv.astype(np.float32)).all()


def test_scores_far_below_zero(rng: np.random.Generator) -> None:
    """The weight of a key that is not there, with a score of 0, would be infinite beside scores of -300.

    The bound is that of gradients whose terms, up to some |scale k dp| = 20 each, cancel.
    """
    q = np.full((1, 1, 5, 72), 4, np.float16)
    k = np.full((1, 1, 3, 72), -6, np.float16) + rng.standard_normal((1, 1, 3, 72)).astype(np.float16)
    g, v = q * 0 + 1, rng.standard_normal((1, 1, 3, 72)).astype(np.float16)
    found = attention.flash_attention_backward(g, q, k, v, tensor_cores="wgmma", scale=0.2)
    for got, want in zip(found, attention_gradients(g, q, k, v, True, 0.2)):
        assert np.abs(got - want).max() <= 20 * 1.5e-3


@pytest.mark.parametrize("seed", range(1))
def test_seeds(seed: int) -> None:
    _fuzz(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_seeds(seed: int) -> None:
    _fuzz(100 + seed)


def _fuzz(seed: int) -> None:
    rng = np.random.default_rng([int(os.environ["TEST_SEED"]), seed])
    queries, keys, key_heads = int(rng.integers(1, 200)), int(rng.integers(1, 300)), int(rng.integers(1, 3))
    heads, any_ = key_heads * int(rng.integers(1, 3)), seed >= 100
    dim, causal = (int(rng.choice([16, 64, 128])), bool(rng.integers(2))) if any_ else (72, False)
    with override(seed=seed, backend="emulator"):
        check(rng, (np.float16, BF16)[seed % 2], (1, heads, key_heads, queries, keys, dim), causal)


@pytest.mark.parametrize("dim", DIMS)
def test_under_the_sanitizer(rng: np.random.Generator, dim: int) -> None:
    with override(sanitize="all", backend="emulator"):
        dtype, queries, wide = (BF16, 140, 64) if dim == 64 else (np.float16, 70, 72)
        check(rng, dtype, (1, 1, 1, queries, 140, wide), dim == 64)


@pytest.mark.ptxas
@pytest.mark.parametrize(("dtype", "dim", "causal"), [(bf16, 64, True), (f16, 128, False)], ids=["64", "128"])
def test_the_assembler_adds_nothing(dtype: Any, dim: int, causal: bool) -> None:
    """No wait, fence or serialisation of its own (C75xx), no spills, and shared memory for a block."""
    kernel, plan = backward_kernel(Kind(dtype, dim, causal)), plan_of(dim)
    assembled = assemble_module(kernel.ptx(), "sm_90a", options=("-v",))
    found = assembled.attributes(kernel.entry)
    assert "C75" not in assembled.log
    assert (found.num_regs, found.spill_store_bytes, found.local_size_bytes) == (168, 0, 0)
    assert plan.shared + found.shared_size_bytes <= 232448


def test_states_of_queries_that_are_not_there() -> None:
    out = np.ones((1, 2, 3, 16), np.float16)
    logarithms = np.array([[[1.0, -inf, 2.0]] * 2], np.float32)
    states, sums = np.full((2, 128), np.nan, np.float32), np.full((2, 8192), np.nan, np.float32)
    shape = flash_states.Shape(sequences=1, heads=2, queries=3, tiles=1, lengths=3)
    flash_states.prepare(out, out * 2, logarithms, states, sums, shape, 64, backend="emulator")
    assert (sums == 0).all()
    tiles = states.reshape(2, 2, 64)
    assert np.allclose(tiles[:, 0, [0, 2]], np.log2(np.e) * np.array([1, 2]))
    assert (tiles[:, 0, [1, *range(3, 64)]] == inf).all()
    assert (tiles[:, 1, :3] == 32).all() and (tiles[:, 1, 3:] == 0).all()


def test_dispatch(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    g, q, k, v = (rng.standard_normal((1, 1, n, 72)).astype(np.float16) for n in (20, 20, 30, 30))
    known = {by: attention.flash_attention_backward(g, q, k, v, tensor_cores=by) for by in ("wgmma", "mma")}
    assert any((a != b).any() for a, b in zip(known["wgmma"], known["mma"]))
    monkeypatch.setattr(attention_arguments, "backend_name", lambda: "a GPU")
    for number, by in ((90, "wgmma"), (80, "mma"), (100, "mma")):
        monkeypatch.setattr(attention_arguments, "capability", lambda number=number: number)
        found = attention.flash_attention_backward(g, q, k, v)
        assert all((a == b).all() for a, b in zip(found, known[by]))


def test_errors() -> None:
    q = np.zeros((1, 1, 3, 16), np.float32)
    messages = {
        "wgmma": "wgmma makes gradients of float16 and bfloat16 with D up to 128, not of float32 and D = 16",
        "wmma": "tensor_cores is 'wmma'; it can be None, \"wgmma\" or \"mma\"",
    }
    for by, message in messages.items():
        with pytest.raises(LaunchError) as caught:
            attention.flash_attention_backward(q, q, q, q, tensor_cores=by)
        assert caught.value.message == message
