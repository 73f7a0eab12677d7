"""Philox against the published vectors and exact integers; distributions by what they are made of; dropout."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, config, f16, to_device
from ptxdsl.kernels import random

Array = npt.NDArray[Any]
MASK = 0xFFFFFFFF


def words(count: int, seed: int = 0, subsequence: int = 0, offset: int = 0) -> Array:
    """Philox-4x32-10 in Python's integers, from the paper."""
    made: list[int] = []
    for number in range(-(-count // 4)):
        at = (number + offset) % 2**64
        c = [at & MASK, at >> 32, subsequence & MASK, subsequence >> 32]
        key = [seed & MASK, seed >> 32]
        for _ in range(10):
            one, two = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(two >> 32) ^ c[1] ^ key[0], two & MASK, (one >> 32) ^ c[3] ^ key[1], one & MASK]
            key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
        made += c
    return np.array(made[:count], np.uint32)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # kat_vectors of Random123
        (0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (2**128 - 1, 2**64 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (0x0370734413198A2E85A308D3243F6A88, 0x299F31D0A4093822, "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_published_vectors(counter: int, key: int, expected: str) -> None:
    got = random.philox(4, key, subsequence=counter >> 64, offset=counter % 2**64)
    assert " ".join(f"{word:08x}" for word in got) == expected


def test_words(rng: np.random.Generator) -> None:
    for size in (0, 1, 31, 32, 33, 1000, 4097):
        key = {name: int(rng.integers(2**64, dtype=np.uint64)) for name in ("seed", "subsequence", "offset")}
        want = words(size, **key)
        whole = np.full(size + 2, 7, np.uint32)
        assert np.array_equal(random.philox(size, **key), want)
        random.philox(out=whole[1:-1], **key)  # not at 16 bytes
        assert np.array_equal(whole[1:-1], want) and whole[[0, -1]].tolist() == [7, 7]
    both = random.philox((3, 50), 5, out=np.empty((3, 50), np.uint64))
    assert np.array_equal(both.reshape(-1).view(np.uint32), words(300, 5))
    assert np.array_equal(random.philox(out=to_device(whole)).numpy(), words(whole.size))


@pytest.mark.parametrize(("dtype", "bits"), [(np.float16, 11), (ml_dtypes.bfloat16, 8), (np.float32, 24)])
def test_uniform(rng: np.random.Generator, dtype: Any, bits: int) -> None:
    seed = int(rng.integers(2**63))
    got = random.uniform(3001, seed, dtype=dtype)
    assert got.dtype == dtype and random.uniform(3, dtype=f16).dtype == np.float16
    assert np.array_equal(got.astype(np.float64), (words(3001, seed) >> (32 - bits)) * 2.0**-bits)
    scaled = random.uniform(3001, seed, low=-3, high=5, dtype=dtype).astype(np.float64)
    np.testing.assert_allclose(scaled, got.astype(np.float64) * 8 - 3, atol=6 * 2.0**-bits)


def test_uniform_of_64_bits() -> None:
    wide = words(2002, 7).view(np.uint64)
    assert np.array_equal(random.uniform(1001, 7, dtype=np.float64), (wide >> 11) * 2.0**-53)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_normal(rng: np.random.Generator, dtype: Any) -> None:
    seed = int(rng.integers(2**63))
    got = random.normal(5001, seed, mean=1.5, std=2, dtype=dtype)
    unit = words(10004, seed).view(np.uint64) * 2.0**-64 if dtype == np.float64 else words(5004, seed) * 2.0**-32
    first, second = unit[::2] + (2.0**-65 if dtype == np.float64 else 2.0**-33), unit[1::2]
    radius = np.sqrt(-2 * np.log(np.minimum(first, 1)))
    angle = 2 * pi * second
    want = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)[:5001] * 2 + 1.5
    allowed = {np.float16: 2e-2, np.float32: 1e-5, np.float64: 1e-13}[dtype]
    # A logarithm of a number near 1 has the error of that number's rounding.
    np.testing.assert_allclose(got.astype(np.float64), want, atol=allowed * 40 if dtype != np.float64 else 1e-7)
    assert np.median(np.abs(got.astype(np.float64) - want)) <= allowed
    assert abs(got.astype(np.float64).mean() - 1.5) < 0.2 and abs(got.astype(np.float64).std() - 2) < 0.2


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (np.int8, -128, 128), (np.uint16, 3, 4), (np.int32, -(2**31), 2**31), (np.uint32, 10, 2**32),
        (np.int64, -5, 2**63), (np.uint64, 0, 2**64 - 1),
    ],
)
def test_integers(rng: np.random.Generator, dtype: Any, low: int, high: int) -> None:
    seed, wide = int(rng.integers(2**63)), np.dtype(dtype).itemsize == 8
    got = random.integers(1003, seed, low=low, high=high, dtype=dtype)
    source = words(2006, seed).view(np.uint64) if wide else words(1003, seed)
    bits = 64 if wide else 32
    assert got.tolist() == [low + (int(word) * (high - low) >> bits) for word in source]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_dropout(rng: np.random.Generator, dtype: Any) -> None:
    x = rng.standard_normal((3, 335)).astype(dtype)
    for p in (0.0, 0.3, 1.0):
        kept = (words(1005, 9, offset=2) >= p * 2**32).reshape(3, 335)
        got = random.dropout(x, p, 9, offset=2)
        want = np.where(kept, x.astype(np.float64) / (1 - min(p, 0.9)), 0)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=8e-3 if np.dtype(dtype).itemsize == 2 else 1e-6)
        part = x.reshape(-1)[1:]
        assert np.array_equal(random.dropout(part, p, 4), random.dropout(part.copy(), p, 4))


def test_no_races() -> None:
    with config.override(sanitize="all"):
        assert np.array_equal(random.philox(777, 3), words(777, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random.philox(4, -1), "seed is -1; it can be 0 to 2**64 - 1"),
        (lambda: random.philox(4, offset=2**64), "offset is 18446744073709551616; it can be 0 to 2**64 - 1"),
        (lambda: random.philox(1.5), "`shape` is 1.5, not an int or a tuple of ints"),
        (lambda: random.normal("ab", out=np.zeros(2)), "`shape` is 'ab', not an int or a tuple of ints"),
        (lambda: random.uniform((3, 1.5)), "an extent of `shape` is 1.5; it can be 0 to 281474976710655"),
        (lambda: random.uniform(4, dtype="single_"),
         "dtype is 'single_'; wanted is float16 or bfloat16 or float32 or float64"),
        (random.philox, "neither `shape` nor `out` is given"),
        (
            lambda: random.philox(4, out=np.zeros(3, np.uint32)),
            "`out` has shape [3] and dtype uint32; wanted is [4] of uint32 or uint64",
        ),
        (lambda: random.uniform(4, dtype=np.int32),
         "dtype is int32; wanted is float16 or bfloat16 or float32 or float64"),
        (lambda: random.normal(4, std=-1), "std is -1; it can be 0 or more"),
        (lambda: random.integers(4, low=3, high=3), "high is 3; it can be 4 to 9223372036854775808"),
        (lambda: random.integers(4, high=300, dtype=np.uint8), "high is 300; it can be 1 to 256"),
        (lambda: random.integers(4, low=0, high=2**64, dtype=np.uint64), "high - low is 2**64; it must be less"),
        (lambda: random.dropout(np.zeros(3, np.float32), 1.5), "p is 1.5; it can be 0 to 1"),
    ],
)
def test_mistakes(call: Callable[[], object], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.message == message
