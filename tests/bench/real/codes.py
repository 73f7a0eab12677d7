"""Transforms, ciphers, sketches and codes, exact but for the filter."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .case import Case, kernel

PRIME = 998244353


@kernel("chacha20")
def chacha20(rng: np.random.Generator, small: bool) -> Case:
    n = 40 if small else 4000
    key, text = rng.integers(0, 1 << 32, 11, np.uint32), rng.integers(0, 1 << 32, (n, 16), np.uint32)
    start = np.zeros((16, n), np.uint32)
    start[:4] = np.frombuffer(b"expand 32-byte k", np.uint32)[:, None]
    start[4:12], start[12], start[13:] = key[:8, None], np.arange(n), key[8:, None]
    x = start.copy()

    def mixed(to: int, of: int, turned: int, by: int) -> None:
        x[to] += x[of]
        x[turned] ^= x[to]
        x[turned] = x[turned] << np.uint32(by) | x[turned] >> np.uint32(32 - by)

    for step in range(20):
        for column in range(4):
            a, b, c, d = (4 * row + (column + row * (step % 2)) % 4 for row in range(4))
            for way in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                mixed(*way)
    return Case(-(-n // 128), 128, [key, text, np.zeros_like(text), n], {2: text ^ (x + start).T})


@kernel("walsh_hadamard")
def walsh_hadamard(rng: np.random.Generator, small: bool) -> Case:
    rows = 2 if small else 300
    x = rng.integers(-1000, 1000, (rows, 512), np.int32)
    signs = 1 - 2 * (np.array([[(a & b).bit_count() for b in range(512)] for a in range(512)]) & 1)
    out = np.zeros_like(x)
    return Case(rows, 256, [x, out], {1: x @ signs}, native=[x, out, rows])


@kernel("ntt")
def ntt(rng: np.random.Generator, small: bool) -> Case:
    rows, root = 2 if small else 300, pow(3, (PRIME - 1) // 256, PRIME)
    x = rng.integers(0, PRIME, (rows, 256), np.uint32)
    all_powers = np.array([pow(root, k, PRIME) for k in range(256)], np.uint64)
    expected = np.zeros((rows, 256), np.uint64)
    for k in range(256):
        expected += x[:, k, None].astype(np.uint64) * all_powers[k * np.arange(256) % 256] % PRIME
    powers, out = all_powers[:128].astype(np.uint32), np.zeros_like(x)
    return Case(rows, 128, [x, powers, out], {2: expected % PRIME}, native=[x, powers, out, rows])


def _parts(rng: np.random.Generator, parts: int, most: int) -> np.ndarray:
    return np.append(0, np.cumsum(rng.integers(0, most, parts))).astype(np.int32)


@kernel("minhash")
def minhash(rng: np.random.Generator, small: bool) -> Case:
    documents, most = (40, 9) if small else (2000, 60)
    first = _parts(rng, documents, most)
    word = rng.integers(0, 1 << 32, int(first[-1]) + 1, np.uint32)
    h = np.arange(16, dtype=np.uint32) * np.uint32(0x9E3779B9)
    x = (word[:, None] ^ h) * np.uint32(0x85EBCA6B)
    x = (x ^ x >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    whole = np.uint32(0xFFFFFFFF)
    least = np.array([x[a:b].min(0, initial=whole) for a, b in pairwise(first)], np.uint32)
    return Case(-(-documents // 128), 128, [first, word, np.zeros_like(least), documents], {2: least})


@kernel("bloom")
def bloom(rng: np.random.Generator, small: bool) -> Case:
    n, size = (200, 999) if small else (50_000, 300_007)
    key = rng.integers(0, 1 << 32, n, np.uint32)
    x = (key[:, None] + np.arange(4, dtype=np.uint32)) * np.uint32(0x9E3779B1)
    x = (x ^ x >> np.uint32(15)) % np.uint32(size)
    bits = np.zeros(size // 32 + 1, np.uint32)
    expected = bits.copy()
    np.bitwise_or.at(expected, x // 32, np.uint32(1) << x % np.uint32(32))
    return Case(16, 256, [key, bits, n, np.uint32(size)], {1: expected})


@kernel("varint_sum")
def varint_sum(rng: np.random.Generator, small: bool) -> Case:
    parts, most = (70, 5) if small else (3000, 40)
    text, first, sums = bytearray(), [0], []
    for _ in range(parts):
        numbers = [int(rng.integers(0, 1 << int(rng.integers(1, 63)))) for _ in range(rng.integers(0, most))]
        for number in numbers:
            while number > 127:
                text.append(number & 127 | 128)
                number >>= 7
            text.append(number)
        first.append(len(text))
        sums.append(sum(numbers) % (1 << 64))
    arguments = [np.frombuffer(text, np.uint8).copy(), np.array(first, np.int32), np.zeros(parts, np.uint64), parts]
    return Case(-(-parts // 64), 64, arguments, {2: np.array(sums, np.uint64)})


@kernel("sieve")
def sieve(rng: np.random.Generator, small: bool) -> Case:
    segments = 2 if small else 60
    first = int(rng.integers(2000, 90_000)) * 2
    bound = int((first + segments * 4096) ** 0.5) + 1
    primes = np.array([p for p in range(2, bound + 1) if all(p % q for q in range(2, int(p**0.5) + 1))], np.int32)
    numbers = np.arange(first, first + segments * 4096)
    prime = np.ones(numbers.size, bool)
    for p in primes:
        prime &= numbers % p != 0
    arguments = [primes, primes.size, np.zeros(segments, np.int32), first]
    expected = {2: prime.reshape(segments, 4096).sum(1)}
    return Case(segments, 128, arguments, expected, native=[*arguments, segments])


@kernel("biquad")
def biquad(rng: np.random.Generator, small: bool) -> Case:
    channels, length = (40, 20) if small else (500, 400)
    x = rng.standard_normal((channels, length)).astype(np.float32)
    factors = [np.float32(each) for each in (0.2, 0.4, 0.2, -0.7, 0.3)]
    b0, b1, b2, a1, a2 = map(float, factors)
    s1, s2, expected = np.zeros(channels), np.zeros(channels), np.zeros((channels, length))
    for t in range(length):
        now = x[:, t].astype(np.float64)
        y = expected[:, t] = b0 * now + s1
        s1, s2 = b1 * now - a1 * y + s2, b2 * now - a2 * y
    return Case(-(-channels // 64), 64, [x, np.zeros_like(x), channels, length, *factors], {1: expected}, 1e-5)


@kernel("sobel")
def sobel(rng: np.random.Generator, small: bool) -> Case:
    w, h = (50, 21) if small else (500, 300)
    picture = rng.integers(0, 256, (h, w), np.uint8)
    p = picture.astype(int)
    rows, columns = p[:-2] + 2 * p[1:-1] + p[2:], p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
    expected = np.zeros((h, w), int)
    expected[1:-1, 1:-1] = np.minimum(255, abs(rows[:, 2:] - rows[:, :-2]) + abs(columns[2:] - columns[:-2]))
    return Case((-(-w // 16), -(-h // 16)), (16, 16), [picture, np.full_like(picture, 7), w, h], {1: expected})
