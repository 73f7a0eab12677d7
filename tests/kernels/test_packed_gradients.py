"""The gradients of attention of packed sequences against float64: lengths, masks, grouped heads, neighbours, seeds."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import LaunchError, bf16, f16
from ptxdsl.config import override
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.kernels import arguments, attention, sequences
from ptxdsl.kernels.hopper.flash_backward import Kind, backward_kernel, plan_of
from ptxdsl.kernels.reference import attention_gradients
from ptxdsl.kernels.reference import causal as causal_mask

pytestmark = pytest.mark.usefixtures("poisoned")
BF16 = ml_dtypes.bfloat16
BOUNDS = {
    np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-13, np.dtype(np.float16): 3e-3, np.dtype(BF16): 2.5e-2,
}
"""Relative to the largest gradient, or to 1, as in `test_flash_backward`."""
Lengths = list[tuple[int, int]]
LENGTHS: Lengths = [(1, 1), (70, 150), (0, 5), (20, 0), (130, 17)]


def check(
    rng: np.random.Generator, dtype: Any, lengths: Lengths, heads: tuple[int, int], dim: int, causal: bool = False,
    lost: int | None = None, **options: Any,
) -> None:
    """Each sequence as if it were alone, also beside one that is NaN (``lost``); 0 for what is no sequence's."""
    tables = [np.cumsum([2, *(pair[side] for pair in lengths)]).astype(np.int32) for side in range(2)]
    sides = tables[0], tables[1], tables[1], tables[0]
    arrays = [
        rng.standard_normal((int(starts[-1]) + 3, count, dim)).astype(dtype)
        for starts, count in zip(sides, (heads[0], heads[1], heads[1], heads[0]))
    ]
    for array, starts in zip(arrays, sides):
        array[:2], array[starts[-1] :] = np.nan, np.nan
        if lost is not None:
            array[starts[lost] : starts[lost + 1]] = np.nan
    q, k, v, g = arrays
    found = attention.varlen_attention_backward(g, q, k, v, *tables, causal=causal, scale=0.2, **options)
    for x, like, starts in zip(found, arrays, sides):
        assert x.dtype == dtype and x.shape == like.shape
        assert (x[:2] == 0).all() and (x[starts[-1] :] == 0).all()
    for number, (queries, keys) in enumerate(lengths):
        if number == lost:
            continue
        parts = [slice(starts[number], starts[number + 1]) for starts in sides]
        if not queries or not keys:
            assert all((x[part] == 0).all() for x, part in zip(found, parts))
            continue
        one = [x[part].swapaxes(0, 1)[None] for x, part in zip(arrays, parts)]
        visible = causal_mask(queries, keys) if causal else True
        for x, part, want in zip(found, parts, attention_gradients(one[3], *one[:3], visible, 0.2)):
            error = np.abs(x[part].swapaxes(0, 1)[None].astype(np.float64) - want).max()
            assert error <= BOUNDS[np.dtype(dtype)] * max(1, np.abs(want).max()), (number, error)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, BF16])
def test_lengths(rng: np.random.Generator, dtype: Any) -> None:
    check(rng, dtype, LENGTHS, (4, 2), 24, True)
    check(rng, dtype, LENGTHS, (1, 1), 40, lost=1)


@pytest.mark.parametrize("lost", [None, 1, 4])
def test_wgmma(rng: np.random.Generator, lost: int | None) -> None:
    """Copies bring the first rows of the next sequence, of which nothing may come through; one kernel for all."""
    check(rng, np.float16, LENGTHS, (4, 2), 64, True, lost, tensor_cores="wgmma")


def test_more_blocks_than_needed(rng: np.random.Generator) -> None:
    for by in ("wgmma", "mma"):
        check(rng, np.float16, [(5, 9)], (2, 1), 64, True, tensor_cores=by, max_seqlen_q=300, max_seqlen_k=300)


def test_more_sequences_than_a_grid_has(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "GRID", 2)
    check(rng, np.float16, LENGTHS, (2, 1), 64, True, tensor_cores="wgmma")
    check(rng, np.float32, LENGTHS, (2, 1), 16, True)


@pytest.mark.parametrize("seed", range(2))
def test_seeds(seed: int) -> None:
    _fuzz(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_seeds(seed: int) -> None:
    _fuzz(100 + seed)


def _fuzz(seed: int) -> None:
    rng = np.random.default_rng([int(os.environ["TEST_SEED"]), seed])
    lengths = [(int(rng.integers(0, 150)), int(rng.integers(0, 200))) for _ in range(int(rng.integers(1, 5)))]
    lengths.append((1, 1))
    key_heads = int(rng.integers(1, 3))
    dim, causal = (int(rng.choice([64, 72])), bool(rng.integers(2))) if seed >= 100 else (64, True)
    heads, dtype = (key_heads * int(rng.integers(1, 3)), key_heads), np.float16 if seed < 100 or causal else BF16
    with override(seed=seed, backend="emulator"):
        check(rng, dtype, lengths, heads, dim, causal, tensor_cores="wgmma")


def test_under_the_sanitizer(rng: np.random.Generator) -> None:
    with override(sanitize="all", backend="emulator"):
        check(rng, np.float16, [(3, 5), (70, 140)], (2, 1), 64, True, tensor_cores="wgmma")
        check(rng, np.float16, [(3, 5), (20, 40)], (2, 1), 24, True)
        check(rng, np.float32, [(3, 5), (2, 4)], (2, 1), 24, True)


@pytest.mark.ptxas
@pytest.mark.parametrize(("dtype", "dim", "causal"), [(f16, 64, True), (bf16, 128, False)], ids=["64", "128"])
def test_the_assembler_adds_nothing(dtype: Any, dim: int, causal: bool) -> None:
    """No wait, fence or serialisation of its own (C75xx), no spills, and shared memory for a block."""
    kernel, plan = backward_kernel(Kind(dtype, dim, causal, packed=True)), plan_of(dim)
    assembled = assemble_module(kernel.ptx(), "sm_90a", options=("-v",))
    found = assembled.attributes(kernel.entry)
    assert "C75" not in assembled.log
    assert (found.num_regs, found.spill_store_bytes, found.local_size_bytes) == (168, 0, 0)
    assert plan.shared + found.shared_size_bytes <= 232448


def test_rows_of_no_sequence() -> None:
    x, starts = np.full((9, 3, 16), np.nan, np.float16), np.array([2, 2, 6], np.int32)
    sequences.clear_outside(x, starts)
    assert (x[:2] == 0).all() and (x[6:] == 0).all() and np.isnan(x[2:6]).all()


def test_errors(rng: np.random.Generator) -> None:
    q, starts = np.zeros((5, 1, 16), np.float32), np.array([0, 2, 5], np.int32)
    with pytest.raises(LaunchError) as caught:
        attention.varlen_attention_backward(q[:4], q, q, q, starts, starts)
    assert caught.value.message == "`gradient` has shape [4, 1, 16] and dtype float32; wanted is [5, 1, 16] of float32"
    with pytest.raises(LaunchError) as caught:
        attention.varlen_attention_backward(q, q, q, q, starts, np.array([0, 6, 5], np.int32))
    assert caught.value.message == "`cu_seqlens_k` is [0, 6, 5]; wanted are ascending numbers from 0 to 5"
    with pytest.raises(LaunchError) as caught:
        attention.varlen_attention_backward(q, q, q, q, starts, starts, max_seqlen_k=0)
    assert caught.value.message == "max_seqlen_k is 0; it can be 1 to 2147483647"
    with pytest.raises(LaunchError, match="^wgmma makes gradients of float16 and bfloat16 with D up to 128"):
        attention.varlen_attention_backward(q, q, q, q, starts, starts, tensor_cores="wgmma")
