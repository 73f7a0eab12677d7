"""Kernels in Triton, whose programs are blocks of 128 threads here; two pointers of its own end each launch."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel
from .physics import philox

THREADS = 128
SCRATCH = [0, 0]
"""Triton's scratch memory, global and of its profiler, which none of these kernels needs."""


@kernel("triton_add_relu", compiler="triton")
def add_relu(rng: np.random.Generator, small: bool) -> Case:
    n = 3000 if small else 600_001
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    out = np.full_like(x, np.nan)
    return Case(-(-n // 1024), THREADS, [x, y, out, n, *SCRATCH], {2: np.maximum(x + y, 0)}, native=[x, y, out, n])


@kernel("triton_softmax", compiler="triton")
def softmax(rng: np.random.Generator, small: bool) -> Case:
    rows, columns = (3, 900) if small else (300, 1000)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    powers, out = np.exp(x.astype(np.float64)), np.full_like(x, np.nan)
    expected = powers / powers.sum(1, keepdims=True)
    return Case(rows, THREADS, [x, out, columns, *SCRATCH], {1: expected}, 1e-5, native=[x, out, columns, rows])


@kernel("triton_layer_norm", compiler="triton")
def layer_norm(rng: np.random.Generator, small: bool) -> Case:
    (rows, columns), eps = (3, 900) if small else (300, 1100), np.float32(1e-5)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    weight, bias = rng.standard_normal((2, columns)).astype(np.float32)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + eps) * weight + bias
    arguments = [x, weight, bias, np.full_like(x, np.nan), columns, eps]
    return Case(rows, THREADS, [*arguments, *SCRATCH], {3: expected}, 1e-5, native=[*arguments, rows])


@kernel("triton_matmul", compiler="triton")
def matmul(rng: np.random.Generator, small: bool) -> Case:
    m, n, k = (70, 50, 40) if small else (200, 190, 150)
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((k, n)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    arguments = [a, b, np.full((m, n), np.nan, np.float32), m, n, k]
    return Case((-(-n // 64), -(-m // 64)), THREADS, [*arguments, *SCRATCH], {2: expected}, 1e-5, native=arguments)


@kernel("triton_matmul_f32", compiler="triton")
def matmul_f32(rng: np.random.Generator, small: bool) -> Case:
    n = 64 if small else 160
    a, b = rng.standard_normal((2, n, n)).astype(np.float32)
    arguments = [a, b, np.full_like(a, np.nan), n]
    expected = {2: a.astype(np.float64) @ b}
    return Case((n // 32, n // 32), THREADS, [*arguments, *SCRATCH], expected, 1e-5, native=arguments)


@kernel("triton_attention", compiler="triton")
def attention(rng: np.random.Generator, small: bool) -> Case:
    queries, keys, scale = (64, 64, np.float32(0.125)) if small else (256, 256, np.float32(0.125))
    q = rng.standard_normal((queries, 64)).astype(np.float16)
    k, v = rng.standard_normal((2, keys, 64)).astype(np.float16)
    weights = np.exp(0.125 * (q.astype(np.float64) @ k.T.astype(np.float64)))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    arguments = [q, k, v, np.full((queries, 64), np.nan, np.float32), keys, scale]
    # The weights are halves in the second product.
    return Case(queries // 64, THREADS, [*arguments, *SCRATCH], {3: expected}, 2e-3, native=[*arguments, queries])


@kernel("triton_dropout", compiler="triton")
def dropout(rng: np.random.Generator, small: bool) -> Case:
    n, p, seed = 3000 if small else 100_001, np.float32(0.25), int(rng.integers(1 << 31))
    x = rng.standard_normal(n).astype(np.float32)
    counter = np.zeros((n, 4), np.uint64)
    counter[:, 0] = np.arange(n)
    drawn = philox(counter, seed)[:, 0].astype(np.uint32).view(np.int32)
    uniform = np.where(drawn < 0, -drawn - 1, drawn).astype(np.float32) * np.float32(4.6566127342e-10)
    out = np.full_like(x, np.nan)
    arguments = [x, out, n, p, seed]
    expected = np.where(uniform > p, x / (1 - p), 0)
    return Case(-(-n // 1024), THREADS, [*arguments, *SCRATCH], {1: expected}, 1e-6, native=arguments)


@kernel("triton_cumsum", compiler="triton")
def cumsum(rng: np.random.Generator, small: bool) -> Case:
    rows, columns = (3, 900) if small else (300, 1000)
    x = rng.integers(-100, 100, (rows, columns), np.int32)
    out = np.zeros_like(x)
    return Case(rows, THREADS, [x, out, columns, *SCRATCH], {1: x.cumsum(1)}, native=[x, out, columns, rows])


@kernel("triton_cross_entropy", compiler="triton")
def cross_entropy(rng: np.random.Generator, small: bool) -> Case:
    rows, columns = (3, 900) if small else (100, 3000)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    label, loss = rng.integers(0, columns, rows, np.int32), np.full(rows, np.nan, np.float32)
    expected = np.log(np.exp(x.astype(np.float64)).sum(1)) - x[np.arange(rows), label]
    arguments = [x, label, loss, columns]
    return Case(rows, THREADS, [*arguments, *SCRATCH], {2: expected}, 1e-5, native=[*arguments, rows])
