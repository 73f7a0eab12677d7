"""Attention of e4m3 by wgmma against float64: ragged shapes, masks, grouped heads, scales, schedules."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import LaunchError, bf16, e4m3, f16, f32
from ptxdsl.config import override
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.kernels import attention
from ptxdsl.kernels.hopper.flash_fp8 import EightBits, eight_kernel, plan_of, shared_bytes
from ptxdsl.kernels.hopper.flash_plans import Kind
from ptxdsl.kernels.reference import attention as reference
from ptxdsl.kernels.reference import causal as causal_mask

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
Sizes = tuple[int, int, int, int, int, int]


def check(
    rng: np.random.Generator, sizes: Sizes, causal: bool = False, scale: float | None = None, out_dtype: Any = BF16,
    by_head: bool = False,
) -> None:
    """That the result is within its bound, element by element, and what surrounds it is left alone.

    e4m3 has 4 bits: a weight is rounded by 2^-4 of itself, by 2^-18 of the largest at least. Scores and sums in f32 and
    ex2.approx add some 2^-20 of the largest score, and the result is rounded.
    """
    batch, heads, key_heads, queries, keys, dim = sizes
    q = rng.standard_normal((batch, heads, queries, dim)).astype(E4M3)
    k, v = (rng.standard_normal((batch, key_heads, keys, dim)).astype(E4M3) for _ in range(2))
    counts = {"q_scale": heads, "k_scale": key_heads, "v_scale": key_heads}
    scales: dict[str, Any] = {name: float(rng.uniform(0.5, 2)) for name in counts}
    if by_head:
        scales = {name: rng.uniform(0.5, 2, (batch, count)).astype(np.float32) for name, count in counts.items()}
    whole = np.full((batch + 2, heads, queries, dim), np.nan, out_dtype)
    out = whole[1:-1]
    assert attention.fp8_attention(q, k, v, causal=causal, scale=scale, out=out, **scales) is out
    each = [x[..., None, None] if by_head else x for x in scales.values()]
    exact = [x.astype(np.float64) * by for x, by in zip((q, k, v), each)]
    visible, factor = causal_mask(queries, keys) if causal else True, dim**-0.5 if scale is None else scale
    want, around = (reference(*exact[:2], x, visible, factor) for x in (exact[2], np.abs(exact[2])))
    length = np.sqrt(np.square(exact[0]).sum(-1).max() * np.square(exact[1]).sum(-1).max())
    allowed = (2.0**-4 + (1 + abs(factor) * length) * 2.0**-20) * around + keys * 2.0**-18 * np.abs(exact[2]).max()
    allowed += 2.0 ** (-8 if out_dtype is BF16 else -11) * np.abs(want)
    error = np.abs(out.astype(np.float64) - want)
    assert (error <= allowed).all(), f"{np.nanmax(error / allowed)} of what is allowed, {np.isnan(error).sum()} NaN"
    assert np.isnan(whole[[0, -1]].astype(np.float32)).all()


def test_ragged_shapes(rng: np.random.Generator) -> None:
    check(rng, (1, 1, 1, 1, 1, 64))
    check(rng, (1, 1, 1, 70, 200, 64))
    check(rng, (2, 2, 1, 33, 300, 128), True, by_head=True)


def test_other_widths(rng: np.random.Generator) -> None:
    check(rng, (1, 3, 1, 40, 90, 80), True, -0.1, np.float16)
    check(rng, (1, 1, 1, 130, 110, 256))


def test_weights_add_up(rng: np.random.Generator) -> None:
    """Of values that are all the same, the result is that value, but for the rounding of weights."""
    q, k = (rng.standard_normal((1, 1, n, 64)).astype(E4M3) for n in (20, 300))
    v = np.full((1, 1, 300, 64), 2, E4M3)
    assert np.abs(attention.fp8_attention(q, k, v, dtype=f16) - 2.0).max() <= 2 * 2.0**-4
    v[...] = np.arange(64)  # and each column its own one
    found = attention.fp8_attention(q, k, v)
    assert np.abs(found.astype(np.float64) - v[:, :, :1].astype(np.float64)).max() <= 64 * (2.0**-4 + 2.0**-8)


@pytest.mark.parametrize("seed", range(1))
def test_seeds(seed: int) -> None:
    _fuzz(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_seeds(seed: int) -> None:
    _fuzz(100 + seed)


def _fuzz(seed: int) -> None:
    rng = np.random.default_rng([int(os.environ["TEST_SEED"]), seed])
    queries, keys, key_heads = int(rng.integers(1, 300)), int(rng.integers(1, 500)), int(rng.integers(1, 3))
    dim, causal = (int(rng.choice([16, 64, 128, 256])), bool(rng.integers(2))) if seed >= 100 else (64, False)
    with override(seed=seed, backend="emulator"):
        check(rng, (1, key_heads * int(rng.integers(1, 3)), key_heads, queries, keys, dim), causal)


def test_under_the_sanitizer(rng: np.random.Generator) -> None:
    with override(sanitize="all", backend="emulator", seed=2):
        check(rng, (1, 1, 1, 70, 300, 64))


@pytest.mark.ptxas
@pytest.mark.parametrize(("dim", "causal"), [(64, False), (128, False), (256, True)])
def test_the_assembler_adds_nothing(dim: int, causal: bool) -> None:
    """No wait, fence or serialisation of its own (C75xx), no spills, and shared memory for a block."""
    kernel, plan = eight_kernel(EightBits(Kind(e4m3, dim, causal), bf16)), plan_of(dim, causal)
    assembled = assemble_module(kernel.ptx(), "sm_90a", options=("-v",))
    found = assembled.attributes(kernel.entry)
    assert "C75" not in assembled.log
    assert (found.spill_store_bytes, found.local_size_bytes) == (0, 0)
    assert found.num_regs == (128 if dim == 64 else 168)
    assert shared_bytes(plan) + found.shared_size_bytes <= 232448


def test_errors() -> None:
    q, scales = np.zeros((1, 2, 3, 16), E4M3), np.ones((1, 2), np.float32)
    for given, message in (
        ({"q_scale": scales}, "`k_scale` is 1.0, not an array [1, 2] of float32"),
        ({"q_scale": 0.0}, "q_scale is 0.0; it can be 7.88861e-31 or more"),
        ({"dtype": f32}, "dtype is f32; it can be bf16 or f16"),
        ({"out": np.zeros(q.shape, np.float32)}, "`out` has dtype float32; wanted is bfloat16 or float16"),
    ):
        with pytest.raises(LaunchError) as caught:
            attention.fp8_attention(q, q, q, **given)
        assert caught.value.message == message
    with pytest.raises(LaunchError) as caught:
        attention.fp8_attention(*[np.zeros((1, 1, 3, 24), E4M3)] * 3)
    assert caught.value.message == "the head dimension D is 24; it can be 16 to 256 in steps of 16"
