"""What is looked up at computed places: sparse blocks, hashes, buckets, texels."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel
from .sparse import _rows


@kernel("bsr4")
def bsr4(rng: np.random.Generator, small: bool) -> Case:
    rows = 50 if small else 4000
    start, column = _rows(rng, rows, rows, 6)
    value = rng.standard_normal((column.size, 4, 4)).astype(np.float32)
    x, expected = rng.standard_normal((rows, 4)).astype(np.float32), np.zeros((rows, 4))
    products = np.einsum("kij,kj->ki", value.astype(np.float64), x[column])
    np.add.at(expected, np.repeat(np.arange(rows), np.diff(start)), products)
    arguments = [start, column, value, x, np.full((rows, 4), np.nan, np.float32), rows]
    return Case(-(-rows * 4 // 128), 128, arguments, {4: expected}, 1e-5)


@kernel("hash_probe")
def hash_probe(rng: np.random.Generator, small: bool) -> Case:
    bits, n = (8, 300) if small else (16, 200_001)
    size = 1 << bits
    keys, values = np.full(size, 0xFFFFFFFF, np.uint32), np.zeros(size, np.int32)
    inside = np.unique(rng.integers(0, 1 << 31, size // 2, np.uint32))
    for number, key in enumerate(inside):
        at = (int(key) * 2654435761 & 0xFFFFFFFF) >> 7 & size - 1
        while keys[at] != 0xFFFFFFFF:
            at = at + 1 & size - 1
        keys[at], values[at] = key, number
    which = rng.integers(0, inside.size, n)
    asked = np.where(rng.random(n) < 0.7, inside[which], inside[which] | np.uint32(1 << 31)).astype(np.uint32)
    expected = np.where(asked >> 31, -1, which)
    return Case(-(-n // 128), 128, [keys, values, asked, np.full(n, -7, np.int32), size - 1, n], {3: expected})


@kernel("bucket_fill")
def bucket_fill(rng: np.random.Generator, small: bool) -> Case:
    n, shift = (700, 8) if small else (200_001, 8)
    keys, blocks = rng.integers(0, 1 << 32, n, np.uint32), -(-n // 256)
    bucket = keys >> np.uint32(shift) & np.uint32(255)
    counts = np.zeros((blocks, 256), np.int64)
    np.add.at(counts, (np.arange(n) // 256, bucket), 1)
    flat = counts.T.ravel()
    places = (np.cumsum(flat) - flat).reshape(256, blocks).T.astype(np.uint32).copy()
    return Case(blocks, 256, [keys, places, np.full(n, 7, np.uint32), shift, n], {2: np.sort(bucket)})


@kernel("bilinear")
def bilinear(rng: np.random.Generator, small: bool) -> Case:
    n, w, h = (300, 20, 13) if small else (200_001, 640, 480)
    image = rng.integers(0, 256, (h, w), np.uint8)
    u, v = rng.integers(0, w * 256, n, np.int32), rng.integers(0, h * 256, n, np.int32)
    x, y, fx, fy = u >> 8, v >> 8, u & 255, v & 255
    x1, y1, wide = np.minimum(x + 1, w - 1), np.minimum(y + 1, h - 1), image.astype(np.int64)
    top, low = wide[y, x] * (256 - fx) + wide[y, x1] * fx, wide[y1, x] * (256 - fx) + wide[y1, x1] * fx
    expected = (top * (256 - fy) + low * fy + 32768) >> 16
    return Case(-(-n // 256), 256, [image, u, v, np.zeros(n, np.uint8), w, h, n], {3: expected})
