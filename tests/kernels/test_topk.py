"""topk against numpy's stable sort: dtypes, sizes, ties, split rows, many elements, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, config, to_device
from ptxdsl.kernels import storage, topk
from ptxdsl.kernels.topk import topk as chosen

Array = npt.NDArray[Any]
DTYPES = [np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in storage.NUMBERS]


def random(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    """Numbers with many ties; NaNs and zeros of both signs among floats."""
    x = rng.integers(0, 90, shape) if np.dtype(dtype).kind in "iu" else rng.integers(-40, 40, shape) / 8
    if np.dtype(dtype).kind not in "iu":
        x = np.where(rng.random(shape) < 0.02, nan, np.where(rng.random(shape) < 0.1, -0.0, x))
    return x.astype(dtype)


def assert_chosen(x: Array, k: int, largest: bool = True, ordered: bool = True) -> None:
    wide = x.astype(np.float64) if x.dtype.kind in "fV" else x.astype(np.int64)
    order = np.argsort(wide, -1, kind="stable")
    if largest:
        order = x.shape[-1] - 1 - np.argsort(wide[..., ::-1], -1, kind="stable")[..., ::-1]
    places = order[..., :k] if ordered else np.sort(order[..., :k], -1)
    out, indices = np.full(places.shape, 99, x.dtype), np.full(places.shape, -5)
    got = chosen(x, k, largest=largest, sorted=ordered, out=out, indices_out=indices)
    assert got[0] is out and got[1] is indices
    assert np.array_equal(indices, places)
    assert out.tobytes() == np.take_along_axis(x, places, -1).tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(rng: np.random.Generator, dtype: Any) -> None:
    assert_chosen(random(rng, dtype, 2, 1500), 30, largest=bool(rng.integers(2)))


def test_sizes(rng: np.random.Generator) -> None:
    sizes = [((1,), 1), ((5, 31), 3), ((33,), 33), ((2, 3, 1000), 32), ((4097,), 1024), ((3, 7), 0), ((0, 7), 2)]
    for shape, k in sizes:
        assert_chosen(random(rng, np.float32, *shape), k, largest=bool(rng.integers(2)))


def test_the_order_of_places(rng: np.random.Generator) -> None:
    assert_chosen(random(rng, np.int16, 3, 5000), 77, ordered=False)


def test_more_than_shared_memory_orders(rng: np.random.Generator) -> None:
    assert_chosen(random(rng, np.uint8, 2, 3000), 1500)
    assert_chosen(random(rng, np.uint8, 3000), 1025, largest=False)


def test_blocks_share_rows(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topk, "_CHUNK", 500)
    for k in (1, 40, 300):
        assert_chosen(random(rng, np.float32, 2, 9001), k)
    assert_chosen(random(rng, np.float32, 9001), 40, ordered=False)


def test_no_races(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topk, "_CHUNK", 500)
    with config.override(sanitize="all"):
        assert_chosen(random(rng, np.int16, 1033), 33)


def test_device_arrays_and_views(rng: np.random.Generator) -> None:
    x = random(rng, np.int32, 4, 50)
    values, places = chosen(to_device(x), 3)
    assert np.array_equal(np.take_along_axis(x, places.numpy(), 1), values.numpy())
    assert_chosen(x[:, ::2], 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: chosen(x, 4), "k is 4; it can be 0 to 3"),
        (lambda x: chosen(x[0, 0, ...], 1), "`x` has no axis to choose along"),
        (lambda x: chosen(x > 0, 1), f"`x` has dtype bool; wanted is {' or '.join(storage.NUMBERS)}"),
        (lambda x: chosen(x, 1, sorted=0), "sorted is 0; it can be True or False"),
        (
            lambda x: chosen(x, 1, indices_out=np.zeros((2, 1), np.int32)),
            "`indices_out` has shape [2, 1] and dtype int32; wanted is [2, 1] of int64",
        ),
    ],
)
def test_mistakes(call: Callable[[Array], object], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call(np.zeros((2, 3), np.float32))
    assert caught.value.message == message
