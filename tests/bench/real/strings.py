"""Bytes: search, case, words, checksums, codes and hashes, exact."""

from __future__ import annotations

import base64 as base64_of_python
import hashlib
import itertools
import zlib

import numpy as np

from .case import Case, kernel


@kernel("substring")
def substring(rng: np.random.Generator, small: bool) -> Case:
    n, needle = (1000, b"abca") if small else (300_000, b"abcabb")
    text = rng.choice(np.frombuffer(b"abc", np.uint8), n)
    text[n // 2 : n // 2 + len(needle)] = np.frombuffer(needle, np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(text, len(needle))
    places = np.flatnonzero((windows == np.frombuffer(needle, np.uint8)).all(1))
    count, first = np.zeros(1, np.int32), np.full(1, 1 << 30, np.int32)
    arguments = [text, n, np.frombuffer(needle, np.uint8).copy(), len(needle), count, first]
    return Case(-(-n // 256), 256, arguments, {4: [places.size], 5: [places[0]]})


@kernel("to_upper")
def to_upper(rng: np.random.Generator, small: bool) -> Case:
    n = 1000 if small else 600_000
    text = rng.integers(0, 256, n, np.uint8)
    expected = np.frombuffer(text.tobytes().upper(), np.uint8)
    return Case(-(-n // 256), 256, [text, np.zeros_like(text), n], {1: expected})


@kernel("count_words")
def count_words(rng: np.random.Generator, small: bool) -> Case:
    lines = 100 if small else 5000
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 80, lines))]).astype(np.int32)
    text = rng.choice(np.frombuffer(b"abcd \t", np.uint8), start[-1])
    raw = text.tobytes()
    expected = [len(raw[a:b].split()) for a, b in itertools.pairwise(start)]
    return Case(-(-lines // 128), 128, [text, start, np.full(lines, -1, np.int32), lines], {2: expected})


@kernel("crc32")
def crc32(rng: np.random.Generator, small: bool) -> Case:
    n, length = (100, 9) if small else (5000, 100)
    data = rng.integers(0, 256, (n, length), np.uint8)
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, np.uint32(0xEDB88320) ^ table >> np.uint32(1), table >> np.uint32(1))
    expected = [zlib.crc32(row.tobytes()) for row in data]
    arguments = [data, np.zeros(n, np.uint32), n, length]
    variables = (("crc_table", table),)
    return Case(-(-n // 64), 64, arguments, {1: expected}, native=[*arguments, table], variables=variables)


@kernel("base64")
def base64(rng: np.random.Generator, small: bool) -> Case:
    groups = 100 if small else 100_000
    data = rng.integers(0, 256, 3 * groups, np.uint8)
    expected = np.frombuffer(base64_of_python.b64encode(data.tobytes()), np.uint8)
    return Case(-(-groups // 128), 128, [data, np.zeros(4 * groups, np.uint8), groups], {1: expected})


def _sha_constants() -> np.ndarray:
    """The first 32 bits of the fractions of the cube roots of the first 64 primes."""
    primes = [p for p in range(2, 312) if all(p % q for q in range(2, p))][:64]
    found = []
    for p in primes:
        root = round((p << 96) ** (1 / 3))
        while root**3 > p << 96:
            root -= 1
        while (root + 1) ** 3 <= p << 96:
            root += 1
        found.append(root & 0xFFFFFFFF)
    return np.array(found, np.uint32)


@kernel("sha256_twice")
def sha256_twice(rng: np.random.Generator, small: bool) -> Case:
    n = 40 if small else 6000
    data = [rng.bytes(55) for _ in range(n)]
    padded = b"".join(each + b"\x80" + (440).to_bytes(8, "big") for each in data)
    messages = np.frombuffer(padded, ">u4").astype(np.uint32)
    hashes = b"".join(hashlib.sha256(hashlib.sha256(each).digest()).digest() for each in data)
    arguments = [messages, np.zeros(8 * n, np.uint32), n]
    constants = _sha_constants()
    variables = (("sha_k", constants),)
    return Case(
        -(-n // 128), 128, arguments, {1: np.frombuffer(hashes, ">u4")}, native=[*arguments, constants],
        variables=variables,
    )
