"""Histograms against numpy's: edges decide to the bit, bins of all numbers, weights, special values, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, config, to_device
from ptxdsl.kernels import histogram as module
from ptxdsl.kernels import storage
from ptxdsl.kernels.histogram import bincount, histogram

Array = npt.NDArray[Any]
DTYPES = [np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in storage.NUMBERS]


def random(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(max(info.min, -500), min(info.max, 500), shape, dtype, endpoint=True))
    return (rng.standard_normal(shape) * 20).astype(dtype)


def assert_counted(x: Array, bins: Any, reach: Any = None, weights: Array | None = None) -> None:
    wide = x.astype(np.float64)
    want, edges = np.histogram(wide, bins, reach, weights=None if weights is None else weights.astype(np.float64))
    out = np.full(want.shape, -7, np.int64 if weights is None else np.float64)
    got, at = histogram(x, bins, range=reach, weights=weights, out=out)
    assert got is out and np.array_equal(at, edges)
    if weights is None:
        assert np.array_equal(out, want)
    else:
        np.testing.assert_allclose(out, want, rtol=1e-12, atol=1e-12 * np.abs(weights).astype(np.float64).sum())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(rng: np.random.Generator, dtype: Any) -> None:
    x = random(rng, dtype, 3, 1003)
    assert_counted(x, int(rng.integers(1, 60)), (-10.3, 31))
    assert_counted(x.T, [-4, 0.5, 3, 3, 17])


@pytest.mark.parametrize("bins", [1, 7, 256, 4096, 4097])
def test_bins_and_sizes(rng: np.random.Generator, bins: int) -> None:
    for size in (0, 1, 33, 5000):
        assert_counted(random(rng, np.float32, size), bins)
    assert_counted(random(rng, np.float32, 5000), np.sort(rng.standard_normal(bins + 1) * 20))


def test_edges_decide(rng: np.random.Generator) -> None:
    """Numbers on the edges and right beside them, where a product alone is wrong."""
    for bins in (3, 10, 1000):
        edges = np.linspace(-0.3, 1.7, bins + 1)
        x = np.concatenate([edges, np.nextafter(edges, 9), np.nextafter(edges, -9), [nan, inf, -inf, -0.0]])
        with np.errstate(invalid="ignore"):
            assert_counted(rng.permutation(x), bins, (-0.3, 1.7))
    assert_counted(np.full(5, 3, np.int8), 4)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_integers_of_8_bits(rng: np.random.Generator, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted by their bits first, in several blocks, from any address on and along any strides."""
    monkeypatch.setattr(module, "_CHUNK_BYTES", 1024)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (3, 2001), dtype, endpoint=True)
    for part in (x, x[0, 1:], x[:, ::-3], x[:1, :1], np.full(5000, info.min, dtype), x[:0]):
        assert_counted(part, int(rng.integers(1, 300)))
        assert_counted(part, 6000)
        assert_counted(part, 256, (info.min, info.max + 1))
        assert_counted(part, 7, (-20.5, 300.25))
        assert_counted(part, [-100, -3, 0.5, 90, 255])
    assert_counted(x, 40, None, rng.random(x.shape))
    with config.override(sanitize="all", seed=int(rng.integers(2**31))):
        assert_counted(x[:2], 256)


def test_edges_so_close_that_no_product_finds_them(rng: np.random.Generator) -> None:
    x = rng.random(500) * 1e-310
    assert_counted(x, 13, (0, 1e-310))
    assert_counted(x * 1e12, 13, (0, 1e-298))
    assert_counted(1e16 + rng.integers(0, 64, 500) * 2.0, 50)
    assert_counted(np.append(x, [1e300, -1e300]), 5, (-1e300, 1e300))


def test_many_blocks(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK_BYTES", 2048)
    x = random(rng, np.float32, 9001)
    assert_counted(x[1:], 16, (-30, 30))
    assert_counted(x[1:], 257, (-30, 30))
    assert_counted(x, 300, (-30, 30), rng.random(9001).astype(np.float32))
    assert np.array_equal(bincount(np.abs(x).astype(np.uint8)), np.bincount(np.abs(x).astype(np.uint8)))
    with config.override(sanitize="all"):
        assert_counted(x[:1777], 16, (-30, 30))


def test_weights(rng: np.random.Generator) -> None:
    for dtype in (np.float16, np.float64):
        assert_counted(random(rng, np.int16, 2000), 40, None, rng.standard_normal(2000).astype(dtype))
    x, weights = rng.integers(0, 5000, 3000), rng.random(3000)
    np.testing.assert_allclose(bincount(x, weights), np.bincount(x, weights), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.int32])
def test_bincount(rng: np.random.Generator, dtype: Any) -> None:
    x = rng.integers(0, 120, 3001).astype(dtype)
    assert np.array_equal(bincount(x), np.bincount(x))
    assert np.array_equal(bincount(x, minlength=5000), np.bincount(x, minlength=5000))
    assert np.array_equal(bincount(x[:0], minlength=3), np.zeros(3, np.int64)) and bincount(x[:0]).size == 0
    out = np.full(50, -7)
    assert np.array_equal(bincount(x, out=out), np.bincount(x, minlength=50)[:50])
    if np.iinfo(dtype).min < 0:
        beyond = np.array([-1, 3, 49, 50, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
        assert np.flatnonzero(bincount(beyond, out=out)).tolist() == [3, 49]


def test_device_arrays() -> None:
    counts, edges = histogram(to_device(np.arange(10, dtype=np.float32)), 3)
    assert counts.numpy().tolist() == [3, 3, 4] and edges.tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: histogram(x > 0), f"`x` has dtype bool; wanted is {' or '.join(storage.NUMBERS)}"),
        (lambda x: histogram(x, 0), "bins is 0; it can be 1 to 16777215"),
        (lambda x: histogram(x, [0, 2, 1]), "bins is [0, 2, 1]; edges are two or more finite numbers that ascend"),
        (lambda x: histogram(x, [0, 1], range=(0, 1)), "`range` is given, and the edges of the bins too"),
        (lambda x: histogram(x, 3, range=(1, 0)),
         "range is (1, 0); its first number must not be greater than its second"),
        (lambda x: histogram(x, 3, range=(0, nan)), "range is nan; it can be any finite number"),
        (lambda x: histogram(np.array([1.0, inf]), 3), "`x` reaches from 1.0 to inf"),
        (lambda x: bincount(x), f"`x` has dtype float32; wanted is {' or '.join(storage.NUMBERS[:8])}"),
        (lambda x: bincount(np.array([2, -3])), "`x` has -3; wanted are integers from 0 on"),
        (
            lambda x: histogram(x, 3, weights=x[1:]),
            "`weights` has shape [2] and dtype float32; wanted is [3] of float16 or bfloat16 or float32 or float64",
        ),
    ],
)
def test_mistakes(call: Callable[[Array], object], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call(np.zeros(3, np.float32))
    assert caught.value.message == message
