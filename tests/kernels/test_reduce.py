"""Reductions against numpy: every dtype, axes, ragged sizes, NaNs and ties, arrays that blocks share, mistakes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from math import inf, nan
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, config, to_device
from ptxdsl.kernels import reduce, reduce_launches, storage

Array = npt.NDArray[Any]
DTYPES = [
    *map(np.dtype, ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
    *map(np.dtype, ("float16", "float32", "float64")), np.dtype(ml_dtypes.bfloat16),
]
NARROW = {np.dtype(np.float16): 2.0**-11, np.dtype(ml_dtypes.bfloat16): 2.0**-8}
NAMES = ["sum", "prod", "mean", "max", "min", "argmax", "argmin", "any", "all", "count_nonzero"]
SHAPES = [
    ((), None), ((1,), 0), ((31,), None), ((33,), -1), ((1000,), 0), ((4097,), None), ((5, 0), 1), ((0, 5), 1),
    ((17, 3), 0), ((40, 32), 0), ((9, 130), 1), ((3, 1, 33), (0, 1)), ((2, 3, 2, 5), (1, 3)), ((2, 3, 4), ()),
    ((300, 9), 1), ((7, 5000), 1), ((129, 2, 64), (0, 1)),
]


def is_float(dtype: Any) -> bool:
    return np.dtype(dtype) in NARROW or np.dtype(dtype).kind == "f"


def random(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Numbers of all sizes that the dtype has, with some zeros and ties."""
    dtype = np.dtype(dtype)
    if is_float(dtype):
        return np.asarray(rng.standard_normal(shape) * (rng.random(shape) > 0.1)).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) > 0.3)
    return np.asarray(rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True))


def poisoned(shape: tuple[int, ...], dtype: Any) -> Array:
    made = np.empty(shape, dtype)
    made.reshape(-1).view(np.uint8)[:] = 0xA5
    return made


def assert_reduced(name: str, x: Array, axis: Any, keepdims: bool = False, got: Array | None = None) -> None:
    """That a reduction is what numpy makes of it: exactly, but for the sums of floats, which have a bound."""
    if name.startswith("arg") and isinstance(axis, tuple):
        return
    wide = x.astype(np.float64) if is_float(x.dtype) else x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = np.asarray(getattr(np, name)(wide, axis, keepdims=keepdims))
        kind = x.dtype if is_float(x.dtype) and want.dtype.kind == "f" else want.dtype
        if got is None:
            got = poisoned(want.shape, kind)
            assert getattr(reduce, name)(x, axis, keepdims=keepdims, out=got) is got
        assert (got.shape, got.dtype) == (want.shape, kind)
        if name not in ("sum", "mean", "prod") or want.dtype.kind != "f":
            assert (np.isnan(want) == np.isnan(got.astype(want.dtype))).all()
            assert np.array_equal(got.astype(want.dtype), want, equal_nan=True)
            return
        assert_close(name, x, axis, keepdims, got.astype(np.float64), want)


def assert_close(name: str, x: Array, axis: Any, keepdims: bool, got: Array, want: Array) -> None:
    unit = 2.0**-53 if x.dtype == np.float64 or not is_float(x.dtype) else 2.0**-24
    count = x.size // max(1, want.size)
    magnitudes = np.abs(x.astype(np.float64))
    around = np.abs(want) if name == "prod" else getattr(np, name)(magnitudes, axis, keepdims=keepdims)
    steps = 2 * count if name == "prod" else count / 8 + 64
    allowed = steps * unit * around + NARROW.get(x.dtype, unit) * np.abs(want) * 1.01 + 2.0**-24 * (x.dtype in NARROW)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    assert (same | (np.abs(got - want) <= allowed)).all(), np.abs(got - want).max()


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_axes(rng: np.random.Generator, name: str) -> None:
    dtype = rng.choice([np.int8, np.uint32, np.float16, np.float32])
    for shape, axis in SHAPES:
        if 0 in shape and name in ("max", "min", "argmax", "argmin") and np.zeros(shape).sum(axis).size:
            continue
        assert_reduced(name, random(rng, dtype, shape), axis, keepdims=bool(rng.integers(2)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(rng: np.random.Generator, dtype: Any) -> None:
    for name, shape in zip(rng.choice(NAMES, 2, replace=False), ((3, 1029), (37, 48))):
        assert_reduced(name, random(rng, dtype, shape), 1)
        assert_reduced(name, random(rng, dtype, shape), 0)


@pytest.mark.parametrize("order", [1, 2, inf])
def test_norms(rng: np.random.Generator, order: float) -> None:
    for dtype in rng.choice([np.float32, np.int16, np.float16], 2, replace=False):
        x = random(rng, dtype, (5, 7, 33))
        got = reduce.norm(x, order, (0, 2))
        want = np.linalg.norm(x.astype(np.float64).transpose(1, 0, 2).reshape(7, -1), order, axis=1)
        assert got.dtype == (dtype if is_float(dtype) else np.float64)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=2e-3 if dtype == np.float16 else 2e-6)


# ---------------------------------------------------------------------------------------------------------------------
# What is shared by blocks


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are split as if they were large."""
    monkeypatch.setattr(reduce_launches, "_CHUNK_BYTES", 512)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", ["sum", "mean", "max", "argmin", "all"])
def test_blocks_share_rows_and_columns(rng: np.random.Generator, name: str) -> None:
    for shape, axis in (((20001,), None), ((2, 9999), 1), ((3001, 3), 0), ((2, 700, 64), 1), ((5, 6, 500), (0, 2))):
        assert_reduced(name, random(rng, np.int16 if name == "all" else np.float32, shape), axis)


@pytest.mark.usefixtures("small_chunks")
def test_the_same_bits_each_time(rng: np.random.Generator) -> None:
    x = random(rng, np.float32, (30000,))
    first = reduce.sum(x).tobytes()
    for seed in range(4):
        with config.override(seed=seed):
            assert reduce.sum(x).tobytes() == first


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(("name", "shape", "axis"), [("sum", (2, 301), 1), ("argmax", (61, 5), 0)])
def test_no_races(rng: np.random.Generator, name: str, shape: tuple[int, ...], axis: int) -> None:
    with config.override(sanitize="all"):
        assert_reduced(name, random(rng, np.float32, shape), axis)


# ---------------------------------------------------------------------------------------------------------------------
# Special values


def test_nans_and_infinities(rng: np.random.Generator) -> None:
    dtype = rng.choice(np.array([np.float16, np.float32, np.float64, ml_dtypes.bfloat16], object))
    x = random(rng, dtype, (6, 200))
    x[0, [77, 150]], x[1, 3], x[1, 199], x[2, 50], x[3], x[4] = nan, inf, -inf, -inf, -inf, inf
    for axis in (0, 1):
        for name in ("max", "min", "argmax", "argmin", "any", "all", "count_nonzero"):
            wide = x.astype(np.float64)
            got = getattr(reduce, name)(x, axis)
            assert np.array_equal(got.astype(np.float64), getattr(np, name)(wide, axis), equal_nan=True), (name, axis)
    assert np.array_equal(np.isnan(reduce.sum(x, 1)), [True, True, False, False, False, False])


def test_ties_go_to_the_first(rng: np.random.Generator) -> None:
    for dtype in (np.float32, np.bool_):
        x = (rng.integers(0, 2, (4, 3000))).astype(dtype)
        x[3] = 0
        assert np.array_equal(reduce.argmax(x, 1), x.argmax(1)) and np.array_equal(reduce.argmin(x, 1), x.argmin(1))
        assert np.array_equal(reduce.argmax(x, 0), x.argmax(0)) and int(reduce.argmin(x)) == x.argmin()
    assert int(reduce.argmax(np.array([-0.0, 0.0], np.float32))) == 0


def test_integers_have_64_bits() -> None:
    x = np.full(100, 2**31 - 1, np.int32)
    assert int(reduce.sum(x)) == 100 * (2**31 - 1) and int(reduce.sum(-x)) == -100 * (2**31 - 1)
    assert int(reduce.prod(np.full(63, 2, np.uint8))) == 2**63
    assert int(reduce.sum(np.full(3, 2**63, np.uint64))) == 2**63  # modulo 2^64, as numpy


def test_parts_that_begin_anywhere(rng: np.random.Generator) -> None:
    whole = random(rng, np.int8, (6000,))
    for start in rng.integers(1, 40, 6):
        part = whole[start : start + int(rng.integers(1, 5000))]
        assert int(reduce.sum(part)) == part.sum() and int(reduce.argmax(part)) == part.argmax()
    x = random(rng, np.float32, (33, 40))
    assert_reduced("sum", x[::2, 1:-2], 1)
    assert_reduced("max", x.T, 0)


def test_nothing_else_is_written(rng: np.random.Generator) -> None:
    whole = np.full(64, nan, np.float32)
    assert_reduced("sum", x := random(rng, np.float32, (40, 9)), 1, got=reduce.sum(x, 1, out=whole[7:47]))
    assert np.isnan(whole[:7]).all() and np.isnan(whole[47:]).all()


def test_device_arrays(rng: np.random.Generator) -> None:
    x = random(rng, np.float32, (3, 100))
    got = reduce.max(to_device(x), 1)
    assert np.array_equal(got.numpy(), x.max(1))
    assert reduce.any(to_device(x > 9)).numpy().dtype == np.bool_


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: reduce.sum([1.0]), f"`x` is [1.0], not an array of {' or '.join([*storage.NUMBERS, 'bool'])}"),
        (lambda x: reduce.sum(x, 2), "axis is 2; it can be -2 to 1"),
        (lambda x: reduce.sum(x, (0, -2)), "axis is (0, -2), which names an axis twice"),
        (lambda x: reduce.argmax(x, (0, 1)), "axis is (0, 1); it can be an int, or None for all"),
        (lambda x: reduce.max(x[:, :0], 1), "`x` has shape [2, 0]; along no elements there is no max"),
        (lambda x: reduce.norm(x[:0], inf), "`x` has shape [0, 3]; along no elements there is no greatest magnitude"),
        (lambda x: reduce.norm(x, 3), "ord is 3; it can be 1, 2 or infinity"),
        (lambda x: reduce.sum(x, keepdims=1), "keepdims is 1; it can be True or False"),
        (lambda x: reduce.sum(x, 0, out=x[0]), "`out` overlaps `x`"),
        (
            lambda x: reduce.sum(x, 0, out=np.zeros(3)),
            "`out` has shape [3] and dtype float64; wanted is [3] of float32",
        ),
    ],
)
def test_mistakes(call: Callable[[Array], object], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call(np.zeros((2, 3), np.float32))
    assert caught.value.message == message


# ---------------------------------------------------------------------------------------------------------------------
# Gradients

SLACK = {"f2": 2.0**-9, "f4": 2.0**-21, "f8": 2.0**-50}


def _pieces(x: Any, axes: tuple[int, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """What is reduced together: its places in x, and the place of the result where reduced axes stay."""
    kept = [1 if at in axes else n for at, n in enumerate(x.shape)]
    for place in np.ndindex(*kept):
        yield tuple(slice(None) if at in axes else i for at, i in enumerate(place)), place


@pytest.mark.parametrize(
    ("dtype", "axis", "keepdims"),
    [("f8", None, False), ("f4", 0, True), ("f2", -1, False), ("f8", (0, 2), True), ("f4", (), True)],
)
def test_gradients(rng: np.random.Generator, dtype: str, axis: Any, keepdims: bool) -> None:
    """Of the definitions, in float64, with ties and zeros."""
    x = rng.integers(-3, 4, (3, 4, 5)).astype(dtype)
    x[0, 0] = 0
    axes = tuple(range(3)) if axis is None else tuple(at % 3 for at in (axis if isinstance(axis, tuple) else (axis,)))
    found, wanted = {}, {}
    for name, order in (("max", None), ("min", None), ("prod", None), ("norm", 1), ("norm", 2), ("norm", inf)):
        given = {"axis": axis} if order is None else {"ord": order, "axis": axis}
        out = getattr(reduce, name)(x, **given, keepdims=keepdims)
        grad = rng.standard_normal(out.shape).astype(dtype)
        results = () if name == "prod" else (out,)
        found[name, order] = getattr(reduce, f"{name}_backward")(grad, x, *results, **given)
        shaped = grad.astype(float).reshape([1 if at in axes else n for at, n in enumerate(x.shape)])
        wanted[name, order] = np.zeros(x.shape)
        for piece, place in _pieces(x, axes):
            wanted[name, order][piece] = shaped[place] * _slope(x[piece].astype(float), name, order)
    for key, got in found.items():
        assert got.dtype == x.dtype and got.shape == x.shape
        np.testing.assert_allclose(got.astype(float), wanted[key], SLACK[dtype], 1e-30, err_msg=str(key))


def _slope(part: Any, name: str, order: float | None) -> Any:
    """How fast the reduction of a part grows with each of its elements."""
    if name in ("max", "min"):
        equal = part == getattr(part, name)()
        return equal / equal.sum()
    if name == "prod":
        flat = part.ravel()
        return np.array([np.prod(np.delete(flat, at)) for at in range(flat.size)]).reshape(part.shape)
    if order == 1:
        return np.sign(part)
    if order == 2:
        return part / (np.linalg.norm(part) or 1)
    equal = abs(part) == abs(part).max()
    return np.sign(part) * equal / equal.sum()


def test_gradients_of_special_values() -> None:
    x = np.array([[1.0, np.nan, 3.0, np.nan], [inf, -inf, inf, 0.0]])
    grad = np.array([1.0, 4.0])
    np.testing.assert_array_equal(
        reduce.max_backward(grad, x, reduce.max(x, 1), 1), [[0, 0.5, 0, 0.5], [2, 0, 2, 0]]
    )
    np.testing.assert_array_equal(reduce.norm_backward(grad, np.zeros((2, 3)), np.zeros(2), axis=1), np.zeros((2, 3)))
    zeros = np.array([[2.0, 0.0, 5.0, 1.0], [0.0, 7.0, 0.0, 1.0]])
    np.testing.assert_array_equal(reduce.prod_backward(grad, zeros, 1), [[0, 10, 0, 0], [0, 0, 0, 0]])
    assert reduce.max_backward(np.zeros(0), np.zeros((0, 4)), np.zeros(0), 1).shape == (0, 4)
    assert reduce.prod_backward(np.ones(3), np.zeros((3, 0)), 1).shape == (3, 0)


def test_a_gradient_that_does_not_fit() -> None:
    x = np.zeros((2, 3))
    with pytest.raises(LaunchError) as caught:
        reduce.max_backward(np.zeros(3), x, np.zeros(2), 1)
    assert caught.value.message == "`grad_out` has shape [3]; wanted is [2] or [2, 1]"
    with pytest.raises(LaunchError) as caught:
        reduce.norm_backward(np.zeros(2, np.float32), x, np.zeros(2), axis=1)
    assert caught.value.message == "`grad_out` has dtype float32; wanted is float64"
    with pytest.raises(LaunchError) as caught:
        reduce.prod_backward(np.zeros(2, int), np.zeros((2, 3), int), 1)
    assert caught.value.message == "`x` has dtype int64; wanted is float16 or bfloat16 or float32 or float64"
