"""Kernels on the other types: doubles, 64-bit integers, halves, bfloat16."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .case import Case, kernel


def _rounded(exact: Fraction, up: bool) -> float:
    """The next double in a direction."""
    near = float(exact)
    if up and near < exact:
        return float(np.nextafter(near, np.inf))
    return float(np.nextafter(near, -np.inf)) if not up and near > exact else near


def _product(x: np.ndarray, y: np.ndarray) -> list[float]:
    """The product of two intervals plus the first, each bound as the kernel rounds it."""
    exact = [Fraction(float(p)) * Fraction(float(q)) for p in x for q in y]
    low, high = min(_rounded(e, False) for e in exact), max(_rounded(e, True) for e in exact)
    first, last = Fraction(float(x[0])), Fraction(float(x[1]))
    return [_rounded(Fraction(low) + first, False), _rounded(Fraction(high) + last, True)]


@kernel("intervals")
def intervals(rng: np.random.Generator, small: bool) -> Case:
    n = 70 if small else 100_000
    a, b = np.sort(rng.standard_normal((2, n, 2)), axis=2)
    out = np.full_like(a, np.nan)
    # All within an ulp or so by numpy; the first rows exactly.
    products = a[:, :, None] * b[:, None, :]
    expected = np.stack([products.min((1, 2)) + a[:, 0], products.max((1, 2)) + a[:, 1]], 1)
    for i in range(min(n, 200)):
        expected[i] = _product(a[i], b[i])
    return Case(-(-n // 128), 128, [a, b, out, n], {2: expected}, 0.0 if small else 1e-15)


@kernel("heat_double")
def heat_double(rng: np.random.Generator, small: bool) -> Case:
    blocks, steps, r = (2, 7, 0.2) if small else (60, 100, 0.2)
    x = rng.standard_normal((blocks, 256))
    t = x.copy()
    for _ in range(steps):
        t[:, 1:-1] = t[:, 1:-1] + r * (t[:, :-2] - 2 * t[:, 1:-1] + t[:, 2:])
    arguments = [x, np.full_like(x, np.nan), steps, r]
    return Case(blocks, 256, arguments, {1: t}, 1e-13, native=[*arguments, blocks])


@kernel("kahan_sum")
def kahan_sum(rng: np.random.Generator, small: bool) -> Case:
    n, chunk = (1000, 30) if small else (400_000, 100)
    x = rng.standard_normal(n)
    out = np.full(-(-n // chunk), np.nan)
    expected = np.add.reduceat(x.astype(np.longdouble), np.arange(0, n, chunk)).astype(np.float64)
    return Case(-(-out.size // 64), 64, [x, out, chunk, n], {1: expected}, 1e-15)


@kernel("modular_power")
def modular_power(rng: np.random.Generator, small: bool) -> Case:
    n, p = 200 if small else 8000, (1 << 31) - 1
    base, exponent = rng.integers(0, 1 << 63, n, np.uint64), rng.integers(0, 1 << 32, n, np.uint32)
    expected = np.array([pow(int(x), int(e), p) for x, e in zip(base, exponent)], np.uint64)
    return Case(-(-n // 128), 128, [base, exponent, np.zeros(n, np.uint64), np.uint64(p), n], {2: expected})


@kernel("hash64")
def hash64(rng: np.random.Generator, small: bool) -> Case:
    n, rounds = (200, 3) if small else (60_000, 16)
    x = rng.integers(0, 1 << 64, n, np.uint64)
    v, factor, mask = x.copy(), 0x9E3779B97F4A7C15, np.uint64(0xFFFFFFFF)
    a, b = np.uint64(factor >> 32), np.uint64(factor & 0xFFFFFFFF)
    for _ in range(rounds):
        v ^= v >> np.uint64(32)
        h, low = v >> np.uint64(32), v & mask
        middle = h * b + (low * b >> np.uint64(32))
        other = low * a + (middle & mask)
        high = h * a + (middle >> np.uint64(32)) + (other >> np.uint64(32))
        v = v * np.uint64(factor) ^ high ^ (v << np.uint64(23) | v >> np.uint64(41))
    return Case(-(-n // 256), 256, [x, np.zeros_like(x), rounds, n], {1: v})


@kernel("axpy_half2")
def axpy_half2(rng: np.random.Generator, small: bool) -> Case:
    n, a = 200 if small else 150_000, np.float32(1.5)
    x, y = rng.standard_normal((2, 2 * n)).astype(np.float16)
    expected = (x.astype(np.float64) * 1.5 + y).astype(np.float16)
    return Case(-(-n // 256), 256, [x, y, np.full_like(x, np.nan), a, n], {2: expected})


@kernel("bf16_scale")
def bf16_scale(rng: np.random.Generator, small: bool) -> Case:
    rows, columns = (3, 77) if small else (100, 3000)
    x = (rng.standard_normal((rows, columns)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    scale = rng.random(rows, np.float32) + np.float32(0.5)
    product = ((x.astype(np.uint32) << 16).view(np.float32) * scale[:, None]).view(np.uint32)
    expected = (product + 0x7FFF + (product >> 16 & 1)) >> 16
    arguments = [x, scale, np.zeros_like(x), columns]
    return Case(rows, 96, arguments, {2: expected}, native=[*arguments, rows])


@kernel("wmma_half")
def wmma_half(rng: np.random.Generator, small: bool) -> Case:
    n = 64 if small else 192
    a, b = rng.standard_normal((2, n, n)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return Case((n // 64, n // 16), (32, 4), [a, b, np.full((n, n), np.nan, np.float32), n], {2: expected}, 1e-5)
