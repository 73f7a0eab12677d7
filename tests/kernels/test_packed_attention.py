"""Attention of sequences of various lengths, and to keys in pages, against float64."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import LaunchError, TrapError
from ptxdsl.config import override
from ptxdsl.kernels import attention
from ptxdsl.kernels.reference import attention as reference
from ptxdsl.kernels.reference import causal as causal_mask

BF16 = ml_dtypes.bfloat16
BOUNDS = {np.dtype(np.float32): 4e-6, np.dtype(np.float64): 1e-13, np.dtype(np.float16): 1.2e-3, np.dtype(BF16): 9e-3}
DTYPES = [np.float32, np.float64, np.float16, BF16]


def made(rng: np.random.Generator, dtype: Any, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(dtype)


def close(got: Any, want: Any, dtype: Any) -> None:
    assert np.abs(got.astype(np.float64) - want).max(initial=0) <= BOUNDS[np.dtype(dtype)] * max(
        1e-3, np.abs(want).max(initial=0)
    )


def check_varlen(
    rng: np.random.Generator, dtype: Any, lengths: Any, heads: tuple[int, int], dim: int, causal: bool, **options: Any
) -> None:
    """Each sequence as if it were alone; rows of no sequence, before the first and behind the last, are left alone."""
    pairs = np.array(lengths, np.int32)
    q_starts, k_starts = (np.concatenate([[2], 2 + np.cumsum(pairs[:, i])]).astype(np.int32) for i in range(2))
    q = made(rng, dtype, int(q_starts[-1]) + 3, heads[0], dim)
    k, v = (made(rng, dtype, int(k_starts[-1]) + 3, heads[1], dim) for _ in range(2))
    for array, starts in ((q, q_starts), (k, k_starts), (v, k_starts)):
        array[:2], array[starts[-1] :] = np.nan, np.nan
    out = np.full_like(q, np.inf)
    assert attention.varlen_attention(q, k, v, q_starts, k_starts, causal=causal, out=out, **options) is out
    assert (out[:2] == np.inf).all() and (out[q_starts[-1] :] == np.inf).all()
    for number, (queries, keys) in enumerate(pairs):
        own, others = slice(q_starts[number], q_starts[number + 1]), slice(k_starts[number], k_starts[number + 1])
        if not queries:
            continue
        if not keys:
            assert (out[own] == 0).all()
            continue
        one = (x.swapaxes(0, 1)[None] for x in (q[own], k[others], v[others]))
        want = reference(*one, causal_mask(queries, keys) if causal else True)[0].swapaxes(0, 1)
        close(out[own], want, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_lengths(rng: np.random.Generator, dtype: Any, causal: bool) -> None:
    check_varlen(rng, dtype, [(1, 1), (33, 70), (0, 5), (20, 0), (40, 17)], (4, 2), 24, causal)
    check_varlen(rng, dtype, [(5, 9)], (1, 1), 128, causal, max_seqlen_q=100)


def check_paged(
    rng: np.random.Generator, dtype: Any, lengths: list[int], page: int, heads: tuple[int, int], dim: int,
    first: bool = False, **options: Any,
) -> None:
    pages = max(1, *(-(-length // page) for length in lengths))
    order = rng.permutation(len(lengths) * pages + 3)[: len(lengths) * pages].reshape(len(lengths), pages)
    q = made(rng, dtype, len(lengths), heads[0], dim)
    k, v = (made(rng, dtype, len(lengths) * pages + 3, page, heads[1], dim) for _ in range(2))
    used = [(order[b, at // page], at % page) for b, length in enumerate(lengths) for at in range(length)]
    for cache in (k, v):  # what no sequence has is NaN, and pages behind its end are nowhere
        kept = np.full_like(cache, np.nan)
        for place in used:
            kept[place] = cache[place]
        cache[:] = kept
    table = order.astype((np.int32, np.int64)[first])
    for b, length in enumerate(lengths):
        table[b, -(-length // page) :] = -1
    caches = [np.ascontiguousarray(x.swapaxes(1, 2)) if first else x for x in (k, v)]
    out = np.full_like(q, np.nan)
    got = attention.paged_decode(
        q, *caches, table, np.array(lengths, np.int32), heads_first=first, out=out, **options
    )
    assert got is out
    for b, length in enumerate(lengths):
        rows = [x[order[b]].reshape(-1, heads[1], dim)[:length].swapaxes(0, 1)[None] for x in (k, v)]
        want = reference(q[b : b + 1, :, None], *rows)[0, :, 0] if length else np.zeros((heads[0], dim))
        close(got[b], want, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("first", [False, True])
def test_pages(rng: np.random.Generator, dtype: Any, first: bool) -> None:
    check_paged(rng, dtype, [1, 0, 70, 33], 16, (4, 2), 40, first)
    check_paged(rng, dtype, [100, 7], 5, (3, 1), 64, first, chunk_size=30)


@pytest.mark.parametrize("seed", range(3))
def test_seeds(seed: int) -> None:
    _fuzz(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_seeds(seed: int) -> None:
    _fuzz(100 + seed)


def _fuzz(seed: int) -> None:
    rng = np.random.default_rng([int(os.environ["TEST_SEED"]), seed])
    dtype, dim, key_heads = DTYPES[int(rng.integers(4))], 8 * int(rng.integers(2, 12)), int(rng.integers(1, 3))
    heads = key_heads * int(rng.integers(1, 4)), key_heads
    lengths = [tuple(int(n) for n in rng.integers(0, 60, 2)) for _ in range(int(rng.integers(1, 5)))]
    check_varlen(rng, dtype, lengths, heads, dim, bool(rng.integers(2)))
    check_paged(rng, dtype, [keys for _, keys in lengths], int(rng.integers(1, 20)), heads, dim, bool(rng.integers(2)))


def test_under_the_sanitizer(rng: np.random.Generator) -> None:
    with override(sanitize="all"):
        check_varlen(rng, np.float16, [(3, 5), (20, 40)], (2, 1), 24, True)
        check_paged(rng, np.float16, [40, 3], 16, (2, 1), 24)


def test_errors(rng: np.random.Generator) -> None:
    q, starts = made(rng, np.float32, 5, 2, 16), np.array([0, 2, 5], np.int32)
    for wrong, wanted in (([0, 3, 2], 5), ([-1, 2, 5], 5), ([0, 2, 6], 5)):
        with pytest.raises(LaunchError) as caught:
            attention.varlen_attention(q, q, q, np.array(wrong, np.int32), starts)
        assert caught.value.message == f"`cu_seqlens_q` is {wrong}; wanted are ascending numbers from 0 to {wanted}"
    with pytest.raises(LaunchError, match="^`cu_seqlens_k` has shape"):
        attention.varlen_attention(q, q, q, starts, starts[:2])


@pytest.mark.emulator(reason="a trap loses a GPU's context")
def test_tables_that_lead_nowhere(rng: np.random.Generator) -> None:
    q, pages = made(rng, np.float32, 1, 1, 16), made(rng, np.float32, 3, 4, 1, 16)
    for table, length, message in ((3, 2, "a page beyond the cache"), (-1, 2, "a page"), (1, 5, "a length beyond")):
        with pytest.raises(TrapError, match=message):
            attention.paged_decode(q, pages, pages, np.array([[table]], np.int32), np.array([length], np.int32))
