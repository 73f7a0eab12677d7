"""Picking elements against numpy: masks, conditions, runs, partitions, many tiles in many orders, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, config, to_device
from ptxdsl.kernels import select, storage

Array = npt.NDArray[Any]
DTYPES = [np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in [*storage.NUMBERS, "bool"]]


def random(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    return (rng.integers(0, 5, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(rng: np.random.Generator, dtype: Any) -> None:
    x, mask = random(rng, dtype, 3, 1700), rng.random((3, 1700)) < 0.3
    assert select.compact(x, mask).tobytes() == x[mask].tobytes()
    assert np.array_equal(select.nonzero(x), np.flatnonzero(x.astype(np.float32)))
    flat = np.sort(x.reshape(-1).astype(np.float32)).astype(dtype)
    assert np.array_equal(select.unique(flat), np.unique(flat.astype(np.float32)).astype(dtype))


def test_sizes_and_shares(rng: np.random.Generator) -> None:
    for size in (0, 1, 31, 32, 33, 1000, 4096, 4097, 13001):
        x, mask = random(rng, np.float32, size), rng.random(size) < rng.choice([0.0, 0.01, 0.5, 1.0])
        assert np.array_equal(select.compact(x, mask), x[mask])
        out, count = select.partition(x, mask)
        assert np.array_equal(out, np.concatenate([x[mask], x[~mask]])) and count.tolist() == [mask.sum()]


def test_nothing_waits_with_a_count(rng: np.random.Generator) -> None:
    x, mask = random(rng, np.int16, 5000), rng.random(5000) < 0.4
    out, count = np.full(5000, -7, np.int16), np.full(1, -7)
    assert select.compact(x, mask, out=out, count=count) is out
    taken = mask.sum()
    assert count.tolist() == [taken] and np.array_equal(out[:taken], x[mask]) and (out[taken:] == -7).all()
    device = select.compact(to_device(x), to_device(mask))
    assert device.shape == (taken,) and np.array_equal(device.numpy(), x[mask])


def above_one(value: Any) -> Any:
    return value > 1


def test_conditions(rng: np.random.Generator) -> None:
    for dtype in (np.int8, np.float32, np.uint64):
        x = random(rng, dtype, 4500)
        condition = (lambda v: v > 1.0) if dtype == np.float32 else above_one
        assert np.array_equal(select.where(x, condition), x[x > 1])


def test_runs_of_nans() -> None:
    x = np.array([nan, nan, 1, 1, -0.0, 0.0, nan, 2, nan, -nan], np.float32)
    assert np.array_equal(select.unique(x), np.array([nan, 1, -0.0, nan, 2, nan], np.float32), equal_nan=True)
    assert select.nonzero(x).tolist() == np.flatnonzero(x).tolist()


def test_any_order_of_blocks(rng: np.random.Generator) -> None:
    x, mask = random(rng, np.int32, 45 * 4096 + 1), rng.random(45 * 4096 + 1) < 0.1
    for seed in rng.integers(0, 2**31, 3):
        with config.override(seed=int(seed)):
            assert np.array_equal(select.compact(x, mask), x[mask])


@dataclass
class Unhashable:
    """A function by which no kernel can be kept."""

    def __call__(self, value: Any) -> Any:
        return value > 0


def test_no_races(rng: np.random.Generator) -> None:
    x = random(rng, np.int32, 3 * 4096 + 9)
    with config.override(sanitize="all", seed=int(rng.integers(2**31))):
        assert np.array_equal(select.compact(x, x > 2), x[x > 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: select.compact(x, x), "`mask` has shape [3] and dtype float32; wanted is [3] of bool"),
        (lambda x: select.compact(x, x[1:] > 0), "`mask` has shape [2] and dtype bool; wanted is [3] of bool"),
        (lambda x: select.where(x, 3), "predicate is 3, not a function"),
        (
            lambda x: select.where(x, lambda: x),
            "predicate cannot be called with 1 operand: too many positional arguments",
        ),
        (
            lambda x: select.where(x, lambda v, w: v > w),
            "predicate cannot be called with 1 operand: missing a required argument: 'w'",
        ),
        (lambda x: select.where(x, lambda v: True), "predicate returned True, not a predicate"),
        (lambda x: select.where(x, lambda v: None), "predicate returned None, not a predicate"),
        (lambda x: select.where(x, lambda v: v + 1.0), "predicate returned a value of f32, not a predicate"),
        (lambda x: select.where(x, Unhashable()), "predicate is Unhashable(), which has no hash to keep its kernel by"),
        (
            lambda x: select.unique(x, count=np.zeros(1, np.int32)),
            "`count` has shape [1] and dtype int32; wanted is [1] of int64",
        ),
        (
            lambda x: select.nonzero(x, out=np.zeros(2, np.int64)),
            "`out` has shape [2] and dtype int64; wanted is [3] of int64",
        ),
        (lambda x: select.compact(x, x > 0, out=x), "`out` overlaps `x`"),
    ],
)
def test_mistakes(call: Callable[[Array], object], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call(np.zeros(3, np.float32))
    assert caught.value.message == message


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f2", "f4", "f8", "?"])
def test_runs_with_their_numbers_and_lengths(rng: np.random.Generator, dtype: str) -> None:
    for n in (0, 1, 31, 4096, 9001):
        x = np.repeat(rng.integers(0, 2 if dtype == "?" else 100, n), rng.integers(1, 9, n))[:n].astype(dtype)
        starts = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]])[:n])
        lengths = np.diff(np.append(starts, n))
        values, inverse, counts = select.unique(x, return_inverse=True, return_counts=True)
        np.testing.assert_array_equal(values, x[starts])
        np.testing.assert_array_equal(inverse, np.repeat(np.arange(starts.size), lengths))
        np.testing.assert_array_equal(counts, lengths)
        assert inverse.dtype == counts.dtype == np.int64 and values.dtype == x.dtype


def test_runs_of_nans_and_matrices() -> None:
    x = np.array([[np.nan, np.nan, 1.0], [1.0, -0.0, 0.0]])
    values, inverse = select.unique(x, return_inverse=True)
    np.testing.assert_array_equal(values, [np.nan, 1, 0])
    np.testing.assert_array_equal(inverse, [[0, 0, 1], [1, 2, 2]])
    count, out = np.zeros(1, np.int64), np.full(6, 7.0)
    found, counts = select.unique(x.T, return_counts=True, out=out, count=count)  # nan 1 nan 0 1 0
    assert found is out or found.base is out
    assert count[0] == 6 and counts.tolist() == [1] * 6
    with pytest.raises(LaunchError) as caught:
        select.unique(x, return_counts=1)  # type: ignore[arg-type]
    assert caught.value.message == "return_counts is 1; it can be True or False"


@pytest.mark.usefixtures("sanitized")
def test_runs_have_no_races(rng: np.random.Generator) -> None:
    x = np.sort(rng.integers(0, 500, 9000))
    values, inverse, counts = select.unique(x, return_inverse=True, return_counts=True)
    for got, want in zip((values, inverse, counts), np.unique(x, return_inverse=True, return_counts=True)):
        np.testing.assert_array_equal(got, want)
