"""Attention by wgmma against float64: ragged shapes, masks, grouped heads, scores of any size, schedules."""

from __future__ import annotations

import os
from itertools import product
from math import inf, sqrt
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sampled import sampled

from ptxdsl import bf16, f16
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.kernels import attention, attention_arguments
from ptxdsl.kernels.hopper.flash import DIMS, Kind, attend, flash_kernel, plan_of
from ptxdsl.kernels.reference import attention as reference
from ptxdsl.kernels.reference import causal as causal_mask

BF16 = ml_dtypes.bfloat16


def made(rng: np.random.Generator, dtype: Any, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(dtype)


def check(q: Any, k: Any, v: Any, causal: bool = False, scale: float | None = None, **options: Any) -> None:
    """That the result is within its bound, element by element, and what surrounds it is left alone.

    With u the unit roundoff of the dtype: each weight is rounded once, by u of itself (2^-25 at least in f16), and so
    is the result. Scores and sums in f32, and ex2.approx, add some 2^-20 of the largest score.
    """
    whole = np.full((q.shape[0] + 2, *q.shape[1:]), np.nan, q.dtype)
    out, visible = whole[1:-1], causal_mask(q.shape[2], k.shape[2]) if causal else True
    factor = 1 / sqrt(q.shape[-1]) if scale is None else scale
    state = np.full(q.shape[:3], np.nan, np.float32) if options.pop("state", False) else None
    attend(q, k, v, out, causal=causal, scale=factor, state=state, backend="emulator", **options)
    want, around = (reference(q, k, x, visible, factor) for x in (v, np.abs(v)))
    unit = 2.0**-11 if q.dtype == np.float16 else 2.0**-8
    length = np.sqrt(np.square(q.astype(np.float64)).sum(-1).max() * np.square(k.astype(np.float64)).sum(-1).max())
    allowed = (unit + (1 + abs(factor) * length) * 2.0**-20) * around + unit * np.abs(want)
    allowed += k.shape[2] * 2.0**-25 * np.abs(v).max().astype(np.float64) + 2.0**-25
    error = np.abs(out.astype(np.float64) - want)
    assert (error <= allowed).all(), f"{np.nanmax(error / allowed)} of what is allowed, {np.isnan(error).sum()} NaN"
    assert np.isnan(whole[[0, -1]]).all()
    if state is not None:
        each = k.astype(np.float64).repeat(q.shape[1] // k.shape[1], 1)
        scores = np.where(visible, q.astype(np.float64) @ each.swapaxes(-1, -2) * factor, -inf)
        want = np.logaddexp.reduce(scores, -1)
        empty = want == -inf
        assert (state[empty] == -inf).all()
        assert np.abs(state[~empty] - want[~empty]).max(initial=0) <= (1 + abs(factor) * length) * 2.0**-20


@pytest.mark.parametrize(("dim", "causal"), sampled(product(DIMS, (False, True)), 3))
def test_ragged_shapes(rng: np.random.Generator, dim: int, causal: bool) -> None:
    for queries, keys, dtype in ((1, 1, BF16), (70, 300, np.float16), (260, 190, BF16)):
        q, k, v = (made(rng, dtype, 1, 1, n, dim) for n in (queries, keys, keys))
        check(q, k, v, causal, state=dtype is BF16)


@pytest.mark.parametrize("dim", [16, 72, 168, 248])
def test_other_widths(rng: np.random.Generator, dim: int) -> None:
    q, k, v = (made(rng, np.float16, 1, 1, n, dim) for n in (33, 90, 90))
    check(q, k, v, True)


@pytest.mark.parametrize(("heads", "key_heads"), [(4, 2), (3, 1)])
def test_grouped_heads(rng: np.random.Generator, heads: int, key_heads: int) -> None:
    q = made(rng, BF16, 2, heads, 65, 64)
    k, v = made(rng, BF16, 2, key_heads, 150, 64), made(rng, BF16, 2, key_heads, 150, 64)
    check(q, k, v, True, state=True)


def test_queries_without_a_key(rng: np.random.Generator) -> None:
    q, k, v = (np.abs(made(rng, np.float16, 1, 1, n, 64)) for n in (400, 130, 130))
    check(q, k, v, True, state=True)
    q = np.maximum(q, np.float16(0.01))  # 0 times infinity is no score
    k[0, 0, 7] = -inf
    out = np.empty_like(q)
    attend(q, k, v, out, causal=False, scale=0.125, backend="emulator")
    want = reference(q, np.delete(k, 7, 2), np.delete(v, 7, 2))
    assert np.abs(out - want).max() < 2e-3
    k[:] = -inf
    attend(q, k, v, out, causal=False, scale=0.125, backend="emulator")
    assert (out == 0).all()


@pytest.mark.parametrize("scale", [-0.5, 0.0, 3.0, 1e-6])
def test_any_scale(rng: np.random.Generator, scale: float) -> None:
    q, k, v = (made(rng, np.float16, 1, 1, n, 64) for n in (70, 300, 300))
    check(q, k, v, True, scale)
    # Scores that rise from tile to tile make every tile rescale the sums; falling ones make weights of 0.
    for order in (slice(None), slice(None, None, -1)):
        rising = np.sort(k.astype(np.float64).mean(-1))[..., order, None] * np.ones(64)
        check(np.abs(q), rising.astype(np.float16), v, False, scale)


def test_nothing_beyond_the_arrays_is_used(rng: np.random.Generator) -> None:
    parts = np.full((2, 2, 1, 200, 64), np.nan, np.float16)
    parts[:, :1, :, :] = made(rng, np.float16, 2, 1, 1, 200, 64)
    check(made(rng, np.float16, 1, 1, 70, 64), parts[0, :1], parts[1, :1])


@pytest.mark.parametrize("seed", range(3))
def test_any_schedule(seed: int) -> None:
    _fuzz(np.random.default_rng([int(os.environ["TEST_SEED"]), seed]), seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20))
def test_many_schedules(seed: int) -> None:
    _fuzz(np.random.default_rng([int(os.environ["TEST_SEED"]), 1, seed]), seed)


def _fuzz(rng: np.random.Generator, seed: int) -> None:
    dim, dtype = int(rng.choice(DIMS)), (np.float16, BF16)[int(rng.integers(2))]
    queries, keys = (int(rng.integers(1, 420)) for _ in range(2))
    q, k, v = (made(rng, dtype, 1, 2, n, dim) for n in (queries, keys, keys))
    check(q, k[:, :1], v[:, :1], bool(rng.integers(2)), seed=seed)


@pytest.mark.parametrize("causal", [False, True])
def test_under_the_sanitizer(rng: np.random.Generator, causal: bool) -> None:
    q, k, v = (made(rng, np.float16, 1, 1, n, 64) for n in (150, 300, 300))
    check(q, k, v, causal, sanitize="all", seed=int(causal))


@pytest.mark.ptxas
@pytest.mark.parametrize(("dim", "causal"), [(64, True), (128, False), (128, True), (192, False), (256, True)])
def test_the_assembler_adds_nothing(dim: int, causal: bool) -> None:
    """No wait, fence or serialisation of its own (C75xx), no spills, and shared memory for a block."""
    kernel, plan = flash_kernel(Kind(f16 if causal else bf16, dim, causal, not causal, causal)), plan_of(dim, causal)
    assembled = assemble_module(kernel.ptx(), "sm_90a", options=("-v",))
    found = assembled.attributes(kernel.entry)
    assert "C75" not in assembled.log
    assert (found.spill_store_bytes, found.local_size_bytes) == (0, 0)
    assert found.num_regs == (128 if dim == 64 else 168)
    assert plan.shared + found.shared_size_bytes <= 232448


def test_dispatch(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = (made(rng, np.float16, 1, 1, n, 64) for n in (70, 300, 300))
    forced = {word: attention.flash_attention(q, k, v, tensor_cores=word) for word in ("wgmma", "wmma")}
    assert (forced["wgmma"] != forced["wmma"]).any()
    monkeypatch.setattr(attention_arguments, "backend_name", lambda: "a GPU")
    for number, word in ((90, "wgmma"), (80, "wmma"), (100, "wmma")):
        monkeypatch.setattr(attention_arguments, "capability", lambda number=number: number)
        for wanted in (None, True):
            assert (attention.flash_attention(q, k, v, tensor_cores=wanted) == forced[word]).all()
