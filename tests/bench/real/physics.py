"""Simulations: bodies, waves, chance and prices."""

from __future__ import annotations

import math

import numpy as np

from .case import Case, kernel


@kernel("nbody")
def nbody(rng: np.random.Generator, small: bool) -> Case:
    n, softening = 100 if small else 1000, np.float32(0.01)
    bodies = rng.standard_normal((n, 4)).astype(np.float32)
    bodies[:, 3] = np.abs(bodies[:, 3])
    p = bodies.astype(np.float64)
    d = p[None, :, :3] - p[:, None, :3]
    s = p[None, :, 3] * ((d**2).sum(-1) + softening) ** -1.5
    expected = np.zeros((n, 4))
    expected[:, :3] = (d * s[..., None]).sum(1)
    return Case(-(-n // 64), 64, [bodies, np.full_like(bodies, np.nan), n, softening], {1: expected}, 1e-5)


@kernel("fft_radix2")
def fft_radix2(rng: np.random.Generator, small: bool) -> Case:
    blocks = 2 if small else 300
    x = rng.standard_normal((blocks, 256, 2)).astype(np.float32)
    wave = np.exp(-2j * np.pi * np.arange(128) / 256)
    twiddle = np.stack([wave.real, wave.imag], 1).astype(np.float32)
    found = np.fft.fft(x[..., 0].astype(np.float64) + 1j * x[..., 1])
    out = np.full_like(x, np.nan)
    expected = np.stack([found.real, found.imag], -1)
    return Case(blocks, 128, [x, out, twiddle], {1: expected}, 1e-5, native=[x, out, twiddle, blocks])


def philox(counter: np.ndarray, seed: int) -> np.ndarray:
    """Philox 4x32 of ten rounds, of counters in rows of four."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b, c, d = counter.astype(np.uint64).T
    for step in range(10):
        first, second = (np.uint64(seed + step * 0x9E3779B9) & low), np.uint64(step * 0xBB67AE85) & low
        p, q = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b, c, d = (q >> shift) ^ b ^ first, q & low, (p >> shift) ^ d ^ second, p & low
    return np.stack([a, b, c, d], 1)


@kernel("monte_carlo_pi")
def monte_carlo_pi(rng: np.random.Generator, small: bool) -> Case:
    blocks, steps = (2, 3) if small else (40, 30)
    seed = np.uint32(rng.integers(1 << 32))
    threads = blocks * 128
    counter = np.zeros((threads * steps, 4), np.uint64)
    counter[:, 0], counter[:, 1] = np.repeat(np.arange(threads), steps), np.tile(np.arange(steps), threads)
    r = philox(counter, int(seed)) >> np.uint64(1)
    squares = r * r
    count = sum(int(((squares[:, k] + squares[:, k + 1]) >> np.uint64(62) == 0).sum()) for k in (0, 2))
    inside = np.zeros(1, np.uint64)
    return Case(blocks, 128, [inside, seed, steps], {0: [count]}, native=[inside, seed, steps, threads])


@kernel("black_scholes")
def black_scholes(rng: np.random.Generator, small: bool) -> Case:
    n, rate, sigma = 300 if small else 60_000, np.float32(0.02), np.float32(0.3)
    price, strike = rng.uniform(5, 30, (2, n)).astype(np.float32)
    years = rng.uniform(0.25, 10, n).astype(np.float32)
    s, k, t, r, v = (np.asarray(each, np.float64) for each in (price, strike, years, rate, sigma))
    cdf = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))
    d1 = (np.log(s / k) + (r + v * v / 2) * t) / (v * np.sqrt(t))
    call = s * cdf(d1) - k * np.exp(-r * t) * cdf(d1 - v * np.sqrt(t))
    out = [np.full(n, np.nan, np.float32) for _ in range(2)]
    arguments = [price, strike, years, *out, rate, sigma, n]
    return Case(-(-n // 128), 128, arguments, {3: call, 4: call + k * np.exp(-r * t) - s}, 1e-5)


@kernel("rotations")
def rotations(rng: np.random.Generator, small: bool) -> Case:
    n = 300 if small else 100_000
    angle, points = rng.uniform(-100, 100, n).astype(np.float32), rng.standard_normal((2, n, 2)).astype(np.float32)
    s, c, p = np.sin(angle.astype(np.float64)), np.cos(angle.astype(np.float64)), points[1].astype(np.float64)
    expected = np.stack([np.stack([c * p[:, 0] - s * p[:, 1], s * p[:, 0] + c * p[:, 1]], 1), p])
    points[0] = np.nan
    return Case(-(-n // 256), 256, [angle, points, n], {1: expected}, 1e-5)
