"""Checks of the cache of keys and values."""

from __future__ import annotations

import numpy as np

from ... import e4m3, f16, f32, s32, s64
from ...bench import Row, compare
from .. import kv_cache
from .entry import Entry

__all__ = ["ENTRIES"]


def _scatter() -> Row:
    rng = np.random.default_rng()
    k, v = rng.standard_normal((2, 9, 2, 16)).astype(np.float32)
    caches, slots = np.zeros((2, 5, 4, 2, 16), np.float32), rng.permutation(20)[:9]
    expected = np.zeros((2, 20, 2, 16))
    expected[:, slots] = k, v
    return compare(
        "scatter, 9 x 2 x 16", lambda: kv_cache.scatter(k, v, caches[0], caches[1], slots), caches,
        expected.reshape(caches.shape), 0.0,
    )


def _gather() -> Row:
    rng = np.random.default_rng()
    caches = rng.standard_normal((2, 5, 4, 2, 16)).astype(np.float32)
    table, out = np.array([[3, 1], [0, 4]]), np.full((2, 2, 8, 2, 16), np.nan, np.float32)
    expected = caches[:, table].reshape(out.shape) * (np.arange(8) < [[7], [2]])[:, :, None, None]
    lengths = np.array([7, 2])
    return compare(
        "gather, 2 x 8 x 2 x 16",
        lambda: kv_cache.gather(caches[0], caches[1], table, lengths, out=list(out)), out, expected, 0.0,
    )


ENTRIES: dict[str, Entry] = {
    "scatter": Entry(_scatter, lambda: [
        kv_cache.scatter_kernel(f16, s64, 8), kv_cache.scatter_kernel(f32, s32, 1),
        kv_cache.scatter_kernel(e4m3, s64, 16),
    ]),
    "gather": Entry(_gather, lambda: [kv_cache.gather_kernel(f16, s32, s32, 8)]),
}
