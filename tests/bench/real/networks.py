"""Layers of networks."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("softmax_rows")
def softmax_rows(rng: np.random.Generator, small: bool) -> Case:
    rows, columns = (3, 333) if small else (200, 1000)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    powers = np.exp(x.astype(np.float64))
    arguments = [x, np.full_like(x, np.nan), columns]
    return Case(rows, 256, arguments, {1: powers / powers.sum(1, keepdims=True)}, 1e-5, native=[*arguments, rows])


@kernel("layer_norm")
def layer_norm(rng: np.random.Generator, small: bool) -> Case:
    rows, columns, eps = (3, 333, 1e-5) if small else (300, 768, 1e-5)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    weight, bias = rng.standard_normal((2, columns)).astype(np.float32)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + eps) * weight + bias
    arguments = [x, weight, bias, np.full_like(x, np.nan), columns, np.float32(eps)]
    return Case(rows, 128, arguments, {3: expected}, 1e-5, native=[*arguments, rows])


@kernel("attention_64")
def attention_64(rng: np.random.Generator, small: bool) -> Case:
    queries, keys = (64, 48) if small else (256, 256)
    q = rng.standard_normal((queries, 32)).astype(np.float32)
    k, v = rng.standard_normal((2, keys, 32)).astype(np.float32)
    scale = np.float32(32**-0.5)
    weights = np.exp(np.float64(scale) * (q.astype(np.float64) @ k.T))
    expected = weights / weights.sum(1, keepdims=True) @ v
    arguments = [q, k, v, np.full_like(q, np.nan), keys, scale]
    return Case(queries // 64, 64, arguments, {3: expected}, 1e-5, native=[*arguments, queries])


@kernel("gelu")
def gelu(rng: np.random.Generator, small: bool) -> Case:
    n = 1000 if small else 200_000
    x = rng.standard_normal(n).astype(np.float32)
    v = x.astype(np.float64)
    expected = 0.5 * v * (1 + np.tanh(0.79788456 * (v + 0.044715 * v**3)))
    return Case(-(-n // 256), 256, [x, np.full_like(x, np.nan), n], {1: expected}, 1e-5)


@kernel("dropout")
def dropout(rng: np.random.Generator, small: bool) -> Case:
    n, seed, threshold, scale = 300 if small else 100_000, np.uint32(rng.integers(1 << 32)), 1 << 30, np.float32(4 / 3)
    x = rng.standard_normal(4 * n).astype(np.float32)
    h = np.arange(4 * n, dtype=np.uint32) + seed
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        h = (h ^ h >> np.uint32(shift)) * np.uint32(factor)
    h ^= h >> np.uint32(16)
    arguments = [x, np.full_like(x, np.nan), seed, np.uint32(threshold), scale, n]
    return Case(-(-n // 128), 128, arguments, {1: np.where(h >= threshold, x * scale, 0)})


@kernel("perceptron")
def perceptron(rng: np.random.Generator, small: bool) -> Case:
    n = 100 if small else 2000
    x = rng.standard_normal((16, n)).astype(np.float32)
    w = rng.standard_normal(16 * 48 + 48 * 48 + 48).astype(np.float32)
    hidden = np.maximum(w[:768].reshape(48, 16).astype(np.float64) @ x, 0)
    expected = w[3072:] @ np.maximum(w[768:3072].reshape(48, 48) @ hidden, 0)
    arguments = [x, np.full(n, np.nan, np.float32), n]
    variables = (("weights", w),)
    return Case(-(-n // 128), 128, arguments, {1: expected}, 1e-5, native=[*arguments, w], variables=variables)


@kernel("adam")
def adam(rng: np.random.Generator, small: bool) -> Case:
    """Old values in the first half of each array, new ones in the second, so that each launch does the same."""
    n, rate, b1, b2, eps = 500 if small else 150_000, *np.array([1e-2, 0.9, 0.99, 1e-4], np.float32)
    p, m, v = (np.tile(rng.random(n, np.float32), (2, 1)) for _ in range(3))
    g = rng.standard_normal(n).astype(np.float32)
    mm = b1.astype(np.float64) * m[0] + (1 - b1.astype(np.float64)) * g
    vv = b2.astype(np.float64) * v[0] + (1 - b2.astype(np.float64)) * g * g
    new = p[0] - rate * mm / (np.sqrt(vv) + eps)
    expected = {0: np.stack([p[0], new]), 2: np.stack([m[0], mm]), 3: np.stack([v[0], vv])}
    return Case(-(-n // 256), 256, [p, g, m, v, rate, b1, b2, eps, n], expected, 1e-5)
