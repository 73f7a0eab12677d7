"""The cache of keys and values against numpy's indexing: exact, for every dtype and order of axes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import LaunchError, TrapError, to_device
from ptxdsl.kernels import kv_cache

DTYPES = ["f2", "f4", "f8", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, "i1"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("tokens", "heads", "dim"), [(1, 1, 1), (5, 3, 16), (7, 2, 33), (3, 5, 128), (0, 2, 8)])
def test_scatter(rng: np.random.Generator, dtype: Any, tokens: int, heads: int, dim: int) -> None:
    k, v = rng.integers(-4, 5, (2, tokens, heads, dim)).astype(dtype)
    slots = rng.permutation(12)[:tokens]
    slots[1:2] = -1
    expected = rng.integers(-4, 5, (2, 12, heads, dim)).astype(dtype)
    flat, paged = expected.copy(), expected.copy().reshape(2, 3, 4, heads, dim)
    first = paged.swapaxes(2, 3).copy()
    for each, source in zip(expected, (k, v)):
        each[slots[slots >= 0]] = source[slots >= 0]
    assert kv_cache.scatter(k, v, *flat, slots)[0].base is flat
    kv_cache.scatter(k, v, *paged, slots.astype(np.int32))
    kv_cache.scatter(k, v, *first, slots, heads_first=True)
    for got in (flat, paged.reshape(flat.shape), first.swapaxes(2, 3).reshape(flat.shape)):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("heads_first", [False, True])
def test_gather(rng: np.random.Generator, dtype: Any, heads_first: bool) -> None:
    for heads, dim in ((1, 1), (3, 16), (2, 33)):
        caches = rng.integers(-4, 5, (2, 6, 4, heads, dim)).astype(dtype)
        table, lengths = rng.integers(0, 6, (3, 2), np.int32), np.array([8, 3, 0])
        table[1, 1], table[2] = -7, 99  # beyond the ends of their sequences
        expected = caches[:, table.clip(0, 5)].reshape(2, 3, 8, heads, dim)
        expected = np.where((np.arange(8) < lengths[:, None])[..., None, None], expected, np.zeros((), dtype))
        given = [each.swapaxes(1, 2).copy() if heads_first else each for each in caches]
        out = np.full_like(expected, 5)
        found = kv_cache.gather(*given, table, lengths, heads_first=heads_first, out=list(out))
        np.testing.assert_array_equal(found, expected)
        short = kv_cache.gather(*given, table, lengths.astype(np.int32), heads_first=heads_first, max_len=5)
        np.testing.assert_array_equal(short, expected[:, :, :5])


def test_device_arrays(rng: np.random.Generator) -> None:
    k = rng.standard_normal((2, 3, 16)).astype(np.float32)
    caches = [to_device(np.zeros((2, 3, 4, 16), np.float32), backend="emulator") for _ in range(2)]
    kv_cache.scatter(
        *(to_device(k, backend="emulator") for _ in range(2)), *caches,
        to_device(np.array([5, 2]), backend="emulator"), heads_first=True,
    )
    np.testing.assert_array_equal(caches[1].numpy()[1, :, 1], k[0])
    np.testing.assert_array_equal(caches[0].numpy()[0, :, 2], k[1])


@pytest.mark.emulator  # a GPU loses its context
def test_what_lies_beyond() -> None:
    k, cache, table = np.zeros((1, 1, 2)), np.zeros((2, 3, 1, 2)), np.array([[2]])
    with pytest.raises(TrapError, match="kv_cache.scatter: a slot beyond the cache"):
        kv_cache.scatter(k, k.copy(), cache, cache.copy(), np.array([6]))
    with pytest.raises(TrapError, match="kv_cache.gather: no such page"):
        kv_cache.gather(cache, cache, table, np.array([1]))


@pytest.mark.usefixtures("sanitized")
def test_sanitized(rng: np.random.Generator) -> None:
    k, v = rng.standard_normal((2, 3, 2, 7))
    caches = np.zeros((2, 2, 3, 2, 7))
    kv_cache.scatter(k, v, *caches, np.array([4, 0, 2]))
    kv_cache.gather(*caches, np.array([[1, 0]]), np.array([5]))


K, CACHE, SLOTS = np.zeros((2, 3, 4), np.float32), np.zeros((5, 3, 4), np.float32), np.zeros(2, np.int64)
TABLE = np.zeros((2, 1), np.int64)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kv_cache.scatter(K, K[:1], CACHE, CACHE.copy(), SLOTS),
         "`v` has shape [1, 3, 4] and dtype float32; wanted is [2, 3, 4] of float32"),
        (lambda: kv_cache.scatter(K, K, CACHE[:, :2], CACHE.copy(), SLOTS),
         "`k_cache` has shape [5, 2, 4]; k has 3 heads of 4, and both caches have one shape"),
        (lambda: kv_cache.scatter(K, K, CACHE, CACHE[:4].copy(), SLOTS),
         "`v_cache` has shape [4, 3, 4]; k has 3 heads of 4, and both caches have one shape"),
        (lambda: kv_cache.scatter(K, K, CACHE, CACHE, SLOTS), "`k_cache` overlaps `v_cache`"),
        (lambda: kv_cache.scatter(K, K, CACHE, CACHE.copy(), SLOTS[:1]),
         "`slots` has shape [1] and dtype int64; wanted is [2] of int32 or int64"),
        (lambda: kv_cache.scatter(K, K, CACHE, CACHE.copy(), SLOTS, heads_first=True),
         "`k_cache` has shape [5, 3, 4]; wanted is [pages, H, page, D]"),
        (lambda: kv_cache.gather(CACHE[None], CACHE[None, :4], TABLE, SLOTS),
         "`v_cache` has shape [1, 4, 3, 4]; `k_cache` has [1, 5, 3, 4]"),
        (lambda: kv_cache.gather(CACHE[None], CACHE[None], TABLE, SLOTS[:1]),
         "`seq_lens` has shape [1] and dtype int64; wanted is [2] of int32 or int64"),
        (lambda: kv_cache.gather(CACHE[None], CACHE[None], TABLE, SLOTS, max_len=6), "max_len is 6; it can be 0 to 5"),
        (lambda: kv_cache.gather(CACHE[None], CACHE[None], TABLE, SLOTS, out=CACHE),
         "`out` is not a pair of arrays, for k and v"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__
