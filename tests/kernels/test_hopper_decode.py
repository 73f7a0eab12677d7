"""Decoding on tensor cores against float64: groups of heads, lengths, pages, schedules, and what it leaves alone."""

from __future__ import annotations

import os
from math import inf, sqrt
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import LaunchError, TrapError, bf16, f16, s32, s64
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.kernels import attention, decoding
from ptxdsl.kernels.hopper.decode import attend, decode_kernel
from ptxdsl.kernels.hopper.decode_ring import Kind, plan_of
from ptxdsl.kernels.reference import attention as reference

BF16 = ml_dtypes.bfloat16
Array = np.ndarray[Any, Any]


def made(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def judge(got: Array, q: Array, k: Array, v: Array, factor: float) -> None:
    """One sequence, k and v of its keys: that the result is within its bound, element by element.

    With u the unit roundoff of the dtype: each weight is rounded once, by u of itself (2^-25 at least in f16), and so
    is the result. Scores and sums in f32, and ex2.approx, add some 2^-20 of the largest score.
    """
    if not k.shape[1]:
        assert (got == 0).all()
        return
    want, around = (reference(q[None, :, None], k[None], x[None], scale=factor)[0, :, 0] for x in (v, np.abs(v)))
    unit = 2.0**-11 if q.dtype == np.float16 else 2.0**-8
    length = np.sqrt(np.square(q.astype(np.float64)).sum(-1).max() * np.square(k.astype(np.float64)).sum(-1).max())
    allowed = (unit + (1 + abs(factor) * length) * 2.0**-20) * around + unit * np.abs(want)
    allowed += k.shape[1] * 2.0**-25 * np.abs(v).max().astype(np.float64) + 2.0**-25
    error = np.abs(got.astype(np.float64) - want)
    assert (error <= allowed).all(), f"{np.nanmax(error / allowed)} of what is allowed, {np.isnan(error).sum()} NaN"


def check(
    rng: np.random.Generator, dtype: Any, lengths: Any, heads: tuple[int, int], longest: int, dim: int,
    scale: float | None = None, **options: Any,
) -> None:
    """Dense caches, NaN behind the end of each sequence; rows around the result are left alone."""
    each = [lengths] * 2 if isinstance(lengths, int) else lengths
    q = made(rng, dtype, len(each), heads[0], dim)
    k, v = (made(rng, dtype, len(each), heads[1], longest, dim) for _ in range(2))
    for number, length in enumerate(each):
        k[number, :, length:], v[number, :, length:] = np.nan, np.nan
    whole = np.full((len(each) + 2, *q.shape[1:]), np.nan, dtype)
    factor = 1 / sqrt(dim) if scale is None else scale
    given = lengths if isinstance(lengths, int) else np.array(lengths, np.int32)
    attend(q, k, v, given, whole[1:-1], scale=factor, backend="emulator", **options)
    assert np.isnan(whole[[0, -1]]).all()
    for number, length in enumerate(each):
        judge(whole[number + 1], q[number], k[number, :, :length], v[number, :, :length], factor)


def check_pages(
    rng: np.random.Generator, dtype: Any, lengths: list[int], heads: tuple[int, int], page: int, dim: int,
    heads_first: bool = False, **options: Any,
) -> None:
    """Pages in any order, NaN where no sequence has a key, and a table that leads nowhere behind its end."""
    each = max(1, *(-(-length // page) for length in lengths))
    count = len(lengths) * each + 2
    order = rng.permutation(count)[: len(lengths) * each].reshape(len(lengths), each)
    q, out = made(rng, dtype, len(lengths), heads[0], dim), np.full((len(lengths), heads[0], dim), np.nan, dtype)
    caches = [np.full((count, page, heads[1], dim), np.nan, dtype) for _ in range(2)]
    kept = []
    for number, length in enumerate(lengths):
        places = order[number, np.arange(length) // page], np.arange(length) % page
        for cache in caches:
            cache[places] = made(rng, dtype, length, heads[1], dim)
        kept.append([cache[places].swapaxes(0, 1) for cache in caches])
        order[number, -(-length // page) :] = -1
    table = order.astype(np.int64 if heads_first else np.int32)
    given = [np.ascontiguousarray(cache.swapaxes(1, 2)) if heads_first else cache for cache in caches]
    ends = np.array(lengths, np.int32 if heads_first else np.int64)
    factor = 1 / sqrt(dim)
    attend(
        q, *given, ends, out, scale=factor, table=table, heads_first=heads_first, backend="emulator", **options
    )
    for number, (k, v) in enumerate(kept):
        judge(out[number], q[number], k, v, factor)


@pytest.mark.parametrize(("dim", "dtype"), [(64, np.float16), (128, BF16), (256, np.float16)])
def test_lengths(rng: np.random.Generator, dim: int, dtype: Any) -> None:
    for blocks in (1, 5):
        check(rng, dtype, [0, 200, 1, 17, 65], (4, 2), 200, dim, blocks=blocks)


def test_groups(rng: np.random.Generator) -> None:
    for group in (1, 7, 8, 9, 16, 20):
        check(rng, BF16, [150, 40], (2 * group, 2), 150, 64, blocks=3)


@pytest.mark.parametrize("dim", [16, 72, 136])
def test_other_widths(rng: np.random.Generator, dim: int) -> None:
    check(rng, np.float16, 90, (3, 1), 100, dim, blocks=2)


@pytest.mark.parametrize("scale", [-0.5, 0.0, 3.0, 1e-6])
def test_any_scale(rng: np.random.Generator, scale: float) -> None:
    check(rng, np.float16, 300, (4, 1), 300, 64, scale, blocks=2)


def test_scores_that_rise_and_fall(rng: np.random.Generator) -> None:
    """Rising ones make every tile rescale the sums, falling ones make weights of 0; -inf is no weight."""
    q, v = np.abs(made(rng, np.float16, 1, 2, 64)) + np.float16(0.01), made(rng, np.float16, 1, 1, 500, 64)
    for order in (1, -1):
        k = (np.linspace(-3, 3, 500)[::order, None] * np.ones((1, 1, 1, 64))).astype(np.float16)
        out = np.full_like(q, np.nan)
        attend(q, k, v, 500, out, scale=0.5, blocks=2, backend="emulator")
        judge(out[0], q[0], k[0], v[0], 0.5)
    k[0, 0, 7] = -inf
    attend(q, k, v, 500, out, scale=0.5, backend="emulator")
    judge(out[0], q[0], np.delete(k[0], 7, 1), np.delete(v[0], 7, 1), 0.5)
    k[:] = -inf
    attend(q, k, v, 500, out, scale=0.5, backend="emulator")
    assert (out == 0).all()


@pytest.mark.parametrize(("page", "heads_first"), [(1, True), (5, False), (16, True), (48, False), (128, True)])
def test_pages(rng: np.random.Generator, page: int, heads_first: bool) -> None:
    check_pages(rng, np.float16, [70, 0, 1, 133], (4, 2), page, 64, heads_first, blocks=3)


def test_many_sequences(rng: np.random.Generator) -> None:
    """More than a warp looks at at once, and more blocks than tiles."""
    lengths = rng.integers(0, 3, 70).tolist()
    check(rng, np.float16, lengths, (1, 1), 3, 16)
    check(rng, np.float16, [int(n) * 60 for n in lengths], (2, 2), 120, 16, blocks=9)


def test_lengths_beyond_the_cache_are_all_of_it(rng: np.random.Generator) -> None:
    q, out = made(rng, BF16, 2, 2, 64), np.full((2, 2, 64), np.nan, BF16)
    k, v = made(rng, BF16, 2, 1, 40, 64), made(rng, BF16, 2, 1, 40, 64)
    attend(q, k, v, np.array([-1, 41], np.int32), out, scale=0.125, backend="emulator")
    for number in range(2):
        judge(out[number], q[number], k[number], v[number], 0.125)


def test_the_same_bits_each_time(rng: np.random.Generator) -> None:
    """A launch that is repeated as it is, as a graph does, finds no arrivals of the last time."""
    q = made(rng, np.float16, 1, 4, 64)
    k, v = made(rng, np.float16, 1, 1, 900, 64), made(rng, np.float16, 1, 1, 900, 64)
    found = []
    for seed in range(3):
        found.append(np.full_like(q, np.nan))
        attend(q, k, v, 900, found[-1], scale=0.125, blocks=7, seed=seed, backend="emulator")
    assert all((each == found[0]).all() for each in found)


@pytest.mark.parametrize("seed", range(3))
def test_any_schedule(seed: int) -> None:
    _fuzz(np.random.default_rng([int(os.environ["TEST_SEED"]), seed]), seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20))
def test_many_schedules(seed: int) -> None:
    _fuzz(np.random.default_rng([int(os.environ["TEST_SEED"]), 1, seed]), seed, widths=True)


def _fuzz(rng: np.random.Generator, seed: int, widths: bool = False) -> None:
    dim, dtype = 8 * int(rng.integers(2, 33)) if widths else 64, (np.float16, BF16)[int(rng.integers(2))]
    key_heads = int(rng.integers(1, 4))
    heads = key_heads * int(rng.integers(1, 18)), key_heads
    lengths = rng.integers(0, 260, int(rng.integers(1, 5))).tolist()
    blocks = int(rng.integers(1, 20))
    page = int(rng.integers(1, 40)) if widths else 16
    check(rng, dtype, lengths, heads, 260, dim, blocks=blocks, seed=seed)
    check_pages(rng, dtype, lengths, heads, page, dim, bool(seed % 2), blocks=blocks, seed=seed)


def test_under_the_sanitizer(rng: np.random.Generator) -> None:
    check(rng, np.float16, [140, 0, 33], (9, 1), 140, 64, blocks=2, sanitize="all")
    check_pages(rng, BF16, [140, 1], (1, 1), 12, 64, blocks=2, sanitize="all", seed=1)


@pytest.mark.ptxas
@pytest.mark.parametrize("kind", [
    Kind(f16, 64, 2, None), Kind(bf16, 128, 1, s32), Kind(bf16, 256, 2, s64, s64, 1, True),
])
def test_the_assembler_adds_nothing(kind: Kind) -> None:
    """No spills, no warning of its own, and shared memory for a block."""
    kernel = decode_kernel(kind)
    assembled = assemble_module(kernel.ptx(), "sm_90a", options=("-v",))
    found = assembled.attributes(kernel.entry)
    assert "C75" not in assembled.log
    assert (found.spill_store_bytes, found.local_size_bytes) == (0, 0)
    assert plan_of(kind.dim).shared + found.shared_size_bytes <= 232448


def test_dispatch(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for, or unasked on a GPU that has it; pages of 5 keys and options of the other kernels are left to them."""
    q, k, v = made(rng, np.float16, 2, 4, 64), *(made(rng, np.float16, 2, 2, 80, 64) for _ in range(2))
    ends = np.array([80, 33], np.int32)
    table = np.arange(32, dtype=np.int32).reshape(2, 16)
    pages, odd = ([x.reshape(-1, size, 2, 64) for x in (k, v)] for size in (16, 5))

    def run(**options: Any) -> list[Array]:
        return [
            attention.decode_attention(q, k, v, ends, **options), attention.flash_decoding(q, k, v, ends, **options),
            attention.paged_decode(q, *pages, table[:, :5] % 10, ends, **options),
        ]

    plain, fast = run(), run(tensor_cores=True)
    assert all((a != b).any() for a, b in zip(plain, fast))
    assert all((a == b).all() for a, b in zip(plain, run(tensor_cores=False)))
    monkeypatch.setattr(decoding, "backend_name", lambda: "a GPU")
    for number in (80, 90, 100, 120):
        monkeypatch.setattr(decoding, "capability", lambda number=number: number)
        assert all((a == b).all() for a, b in zip(run(), fast if number in (90, 100) else plain))
    monkeypatch.setattr(decoding, "capability", lambda: 90)
    assert (attention.decode_attention(q, k, v, ends, num_warps=4) == plain[0]).all()
    assert (attention.flash_decoding(q, k, v, ends, chunk_size=256) == plain[1]).all()
    assert (attention.flash_decoding(q, list(k), list(v), ends) == plain[1]).all()
    assert (attention.decode_attention(*(x.astype(np.float32) for x in (q, k, v)), ends) != 0).any()
    counted = [np.full((2, 4, 64), np.nan, np.float16) for _ in range(2)]
    attention.paged_decode(q, *odd, table, ends, out=counted[0])
    attention.paged_decode(q, *odd, table, ends, out=counted[1], tensor_cores=False)
    assert (counted[0] == counted[1]).all()


def test_errors(rng: np.random.Generator) -> None:
    q, k = made(rng, np.float16, 1, 2, 64), made(rng, np.float16, 1, 1, 8, 64)
    hint = "leave `tensor_cores` out"
    wide = [x.astype(np.float32) for x in (q, k)]
    cases: list[tuple[Any, str, str | None]] = [
        (lambda: attention.decode_attention(q, k, k, 8, tensor_cores="wgmma"),  # type: ignore[arg-type]
         "tensor_cores is 'wgmma'; it can be True, False or None", None),
        (lambda: attention.decode_attention(wide[0], wide[1], wide[1], 8, tensor_cores=True),
         "tensor cores take float16 or bfloat16, not float32", hint),
        (lambda: attention.decode_attention(q, k, k, 8, tensor_cores=True, num_warps=2),
         "tensor_cores is True, and num_warps 2, which is for the other kernels", hint),
        (lambda: attention.flash_decoding(q, list(k), list(k), 8, tensor_cores=True),
         "tensor_cores is True, and `k_cache` a list of arrays; wanted is one", hint),
    ]
    for call, message, wanted in cases:
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.message == message
        assert caught.value.hint == wanted
    shifted = np.zeros(k.size + 1, np.float16)[1:].reshape(k.shape)
    with pytest.raises(LaunchError, match="^`k_cache` begins at address .*; wanted is a multiple of 16"):
        attention.decode_attention(q, shifted, k, 8, tensor_cores=True)


@pytest.mark.emulator(reason="a trap loses a GPU's context")
def test_tables_that_lead_nowhere(rng: np.random.Generator) -> None:
    q, pages = made(rng, np.float16, 1, 1, 16), made(rng, np.float16, 3, 8, 1, 16)
    for entry, length, message in ((3, 2, "a page beyond the cache"), (-1, 2, "a page"), (1, 9, "a length beyond")):
        with pytest.raises(TrapError, match=message):
            attention.paged_decode(
                q, pages, pages, np.array([[entry]], np.int32), np.array([length], np.int32), tensor_cores=True
            )
