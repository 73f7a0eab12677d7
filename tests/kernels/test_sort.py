"""Sorting against numpy's stable sort: dtypes, orders, values, rows, segments, many tiles in many orders, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf, nan
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, config, to_device
from ptxdsl.kernels import sort, storage

Array = npt.NDArray[Any]
DTYPES = [np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in storage.NUMBERS]


def random(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    """All numbers of a dtype, some of them often; of floats also zeros of both signs, infinities and NaNs."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = np.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True))
        return np.where(rng.random(shape) < 0.2, dtype.type(7), x)
    x = rng.standard_normal(shape).astype(dtype)
    special = np.array([0.0, -0.0, inf, -inf, nan, -nan, 1e-7], np.float32).astype(dtype)
    return np.where(rng.random(shape) < 0.3, rng.choice(special, shape), x).astype(dtype)


def places(x: Array, descending: bool) -> Array:
    """Where the elements in order are, along the last axis; a stable sort both ways."""
    wide = x.astype(np.float64) if x.dtype.kind in "fV" else x
    if not descending:
        return np.argsort(wide, -1, kind="stable")
    return x.shape[-1] - 1 - np.argsort(wide[..., ::-1], -1, kind="stable")[..., ::-1]


def assert_sorted(x: Array, values: Array, descending: bool = False) -> None:
    order = places(x, descending)
    out, values_out = np.full_like(x, 99), np.full_like(values, 99)
    assert sort.radix_sort(x, values, descending=descending, out=out, values_out=values_out)[0] is out
    assert out.tobytes() == np.take_along_axis(x, order, -1).tobytes()  # -0 and NaNs keep their bits
    assert np.array_equal(values_out, np.take_along_axis(values, order, -1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(rng: np.random.Generator, dtype: Any) -> None:
    x, descending = random(rng, dtype, 5003), bool(rng.integers(2))
    assert_sorted(x, np.arange(5003, dtype=rng.choice(np.array([np.int16, np.uint32, np.float64], object))), descending)


@pytest.mark.parametrize("descending", [False, True])
def test_sizes(rng: np.random.Generator, descending: bool) -> None:
    for size in (0, 1, 31, 32, 33, 1000, 4096, 4097):
        x = random(rng, np.float32, size)
        assert np.array_equal(sort.argsort(x, descending=descending), places(x, descending))
        assert sort.radix_sort(x, descending=descending).tobytes() == x[places(x, descending)].tobytes()


def test_rows(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in ((5, 0), (0, 5), (7, 1), (3, 2, 300), (2, 4500)):
        x = random(rng, np.int16, *shape)
        assert_sorted(x, rng.random(shape) < 0.5)
        assert np.array_equal(sort.argsort(x), places(x, False))
    monkeypatch.setattr(sort, "_ROW", 100)
    assert_sorted(x, np.arange(9000, dtype=np.int32).reshape(2, 4500))
    assert_sorted(x[:, ::3], np.arange(9000, dtype=np.int32).reshape(2, 4500)[:, ::3])


def test_segments(rng: np.random.Generator) -> None:
    x, values = random(rng, np.uint32, 9000), np.arange(9000, dtype=np.int32)
    offsets = np.concatenate([[0, 0], np.sort(rng.integers(0, 9000, 7)), [9000]])
    for descending in (False, True):
        got, moved = sort.segmented_sort(x, offsets, values, descending=descending)
        for start, stop in pairwise(offsets):
            order = start + places(x[start:stop], descending)
            assert np.array_equal(got[start:stop], x[order]) and np.array_equal(moved[start:stop], order)
    assert sort.segmented_sort(x[:0], np.zeros(1, np.int64)).size == 0


def test_any_order_of_blocks(rng: np.random.Generator) -> None:
    x = random(rng, np.uint16, 12 * 4096 + 3)
    for seed in rng.integers(0, 2**31, 4):
        with config.override(seed=int(seed)):
            assert np.array_equal(sort.radix_sort(x), np.sort(x))


def test_no_races(rng: np.random.Generator) -> None:
    with config.override(sanitize="all"):
        x = random(rng, np.int8, 2 * 4096 + 5)
        assert_sorted(x, np.arange(x.size, dtype=np.int16))
        assert_sorted(x[:300].reshape(3, 100), np.arange(300, dtype=np.int16).reshape(3, 100))


def test_device_arrays(rng: np.random.Generator) -> None:
    x = random(rng, np.int32, 100)
    assert np.array_equal(sort.radix_sort(to_device(x)).numpy(), np.sort(x))
    assert np.array_equal(sort.argsort(to_device(x)).numpy(), np.argsort(x, kind="stable"))


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (lambda x: sort.radix_sort(x > 0), f"`keys` has dtype bool; wanted is {' or '.join(storage.NUMBERS)}", None),
        (lambda x: sort.argsort(x[:1].reshape(())), "`keys` has no axis to sort along", "`keys.reshape(1)`"),
        (
            lambda x: sort.radix_sort(x, x[:2]),
            f"`values` has shape [2] and dtype float32; wanted is [3] of {' or '.join(sort.VALUES)}", None,
        ),
        (
            lambda x: sort.radix_sort(x, values_out=x),
            "`values_out` is given, and there are no `values`", None,
        ),
        (
            lambda x: sort.radix_sort(x, out=x), "`out` overlaps `keys`",
            "give an array of its own, or leave `out` out",
        ),
        (lambda x: sort.radix_sort(x, descending=None), "descending is None; it can be True or False", None),
        (
            lambda x: sort.segmented_sort(x, np.array([0, 2, 1, 3])),
            "`offsets` must ascend from 0 to 3, the number of keys", None,
        ),
        (
            lambda x: sort.segmented_sort(x, np.zeros(0, np.int64)),
            "`offsets` is empty; it has a number more than there are segments", None,
        ),
    ],
)
def test_mistakes(call: Callable[[Array], object], message: str, hint: str | None) -> None:
    with pytest.raises(LaunchError) as caught:
        call(np.zeros(3, np.float32))
    assert (caught.value.message, caught.value.hint) == (message, hint)
