"""Scans against numpy: operations, dtypes, axes, segments, many tiles in many orders, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from ptxdsl import LaunchError, config, f32, s64, to_device
from ptxdsl.kernels import scan, scan_kernels

Array = npt.NDArray[Any]
OPERATIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
UNITS = {
    np.dtype(np.float16): 2.0**-11, np.dtype(ml_dtypes.bfloat16): 2.0**-8, np.dtype(np.float32): 2.0**-24,
    np.dtype(np.float64): 2.0**-53,
}
DTYPES = [*map(np.dtype, ("int32", "int64", "uint32", "uint64")), *UNITS]


def random(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    if np.dtype(dtype) in UNITS:
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return np.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True))


def neutral(op: str, dtype: Any) -> Any:
    if op in ("add", "mul"):
        return int(op == "mul")
    low, high = (-inf, inf) if np.dtype(dtype) in UNITS else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return low if op == "max" else high


def expected(x: Array, op: str, exclusive: bool, axis: int, flags: Array | None) -> Array:
    """The scan in the dtype of integers, in float64 else."""
    wide = x.astype(np.float64) if x.dtype in UNITS else x
    rows, out = np.moveaxis(wide, axis, 0), np.empty(np.moveaxis(wide, axis, 0).shape, wide.dtype)
    begins = np.zeros(rows.shape, bool) if flags is None else np.moveaxis(flags, axis, 0)
    none = np.full(rows.shape[1:], neutral(op, x.dtype), wide.dtype)
    so_far = none
    for i, row in enumerate(rows):
        before = np.where(begins[i], none, so_far)
        so_far = OPERATIONS[op](before, row)
        out[i] = before if exclusive else so_far
    return np.moveaxis(out, 0, axis)


def assert_scanned(
    x: Array, op: str = "add", *, exclusive: bool = False, axis: int = -1, flags: Array | None = None
) -> Array:
    out = np.full_like(x, neutral("max", x.dtype) if op == "min" else 77, order="C")
    function = scan.exclusive if exclusive else scan.inclusive
    assert function(x, op, axis=axis, flags=flags, out=out) is out
    with np.errstate(all="ignore"):
        want = expected(x, op, exclusive, axis, flags)
        if x.dtype not in UNITS or (op in ("max", "min") and x.dtype in UNITS):
            assert np.array_equal(out.astype(want.dtype), want, equal_nan=True)
            return out
        around = np.abs(want) if op == "mul" else expected(np.abs(x), op, exclusive, axis, flags)
        sums = max(UNITS[x.dtype], 2.0**-53) if x.dtype == np.float64 else 2.0**-24
        steps = 2 * x.shape[axis] if op == "mul" or x.ndim > 1 else x.size / 2048 + 40
        allowed = steps * sums * around + UNITS[x.dtype] * np.abs(want) * 1.01 + 2.0**-25
        got = out.astype(np.float64)
        fits = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) <= allowed)
        if op == "mul":
            fits |= np.abs(want) > 1e4
    assert fits.all(), np.abs(got - want)[~fits].max()
    return out


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("exclusive", [False, True])
def test_sizes(rng: np.random.Generator, op: str, exclusive: bool) -> None:
    dtype = rng.choice(np.array([np.float32, np.int32], object))
    for size in (0, 1, 31, 32, 33, 1000, 4096, 4097, 20001):
        assert_scanned(random(rng, dtype, size), op, exclusive=exclusive)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(rng: np.random.Generator, dtype: Any) -> None:
    op = str(rng.choice(list(OPERATIONS)))
    assert_scanned(random(rng, dtype, 3, 5000), op, exclusive=bool(rng.integers(2)))
    assert_scanned(random(rng, dtype, 9000), "add")


def test_axes(rng: np.random.Generator) -> None:
    for shape, axis in (((5, 1, 33), 0), ((5, 7, 33), 1), ((2, 3, 2, 40), -2), ((300, 2), 0), ((3, 0, 2), 1)):
        assert_scanned(random(rng, np.int32, *shape), axis=axis)
        flags = rng.random(shape) < 0.1
        assert_scanned(random(rng, np.int32, *shape), axis=axis, flags=flags, exclusive=True)


@pytest.mark.parametrize(("dtype", "op"), [(np.float32, "add"), (np.int64, "add"), (np.int32, "max")])
def test_segments(rng: np.random.Generator, dtype: Any, op: str) -> None:
    for often in (0.0, 0.0003, 0.1, 1.0):
        flags = rng.random((2, 9001)) < often
        assert_scanned(random(rng, dtype, 2, 9001), op, flags=flags, exclusive=often == 0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_in_any_order_of_blocks(rng: np.random.Generator, dtype: Any) -> None:
    """With more tiles than a block looks at together, and seeds that have blocks wait at any place."""
    x = random(rng, dtype, 80 * 4096 // np.dtype(dtype).itemsize + 5)
    size = scan_kernels.tile_size(f32 if dtype == np.float32 else s64)
    assert x.size // size >= 10
    first = assert_scanned(x)
    for seed in rng.integers(0, 2**31, 6):
        with config.override(seed=int(seed)):
            assert scan.inclusive(x).tobytes() == first.tobytes()


@pytest.mark.parametrize(("dtype", "segmented"), [(np.float32, True), (np.int64, False)])
def test_no_races(rng: np.random.Generator, dtype: Any, segmented: bool) -> None:
    x = random(rng, dtype, 3 * 4096 + 17)
    with config.override(sanitize="all", seed=int(rng.integers(2**31))):
        assert_scanned(x, flags=rng.random(x.size) < 0.001 if segmented else None)


def test_nans_stay() -> None:
    x = np.ones(6000, np.float32)
    x[[40, 5000]] = nan, inf
    for op in OPERATIONS:
        got = scan.inclusive(x, op)
        assert np.isnan(got[40:]).all() and not np.isnan(got[:40]).any()


def test_in_place_and_parts(rng: np.random.Generator) -> None:
    whole = random(rng, np.float32, 9003)
    part = whole[1:-1]
    want = np.add.accumulate(part.astype(np.float64))
    ends = whole[[0, -1]].tolist()
    scan.inclusive(part, out=part)
    np.testing.assert_allclose(part, want, atol=1e-2)
    assert whole[[0, -1]].tolist() == ends
    assert_scanned(random(rng, np.int32, 6, 50).T, axis=-1)
    device = scan.exclusive(to_device(np.arange(5, dtype=np.int64)))
    assert device.numpy().tolist() == [0, 0, 1, 3, 6]


FLOATS = " or ".join(scan.DTYPES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: scan.inclusive(x.astype(np.int8)), f"`x` has dtype int8; wanted is {FLOATS}"),
        (lambda x: scan.inclusive(x, "sub"), "op is 'sub'; it can be 'add' or 'mul' or 'max' or 'min'"),
        (lambda x: scan.exclusive(x, axis=2), "axis is 2; it can be -2 to 1"),
        (
            lambda x: scan.inclusive(x, flags=x > 0, out=np.zeros((2, 2), np.float32)),
            "`out` has shape [2, 2] and dtype float32; wanted is [2, 3] of float32",
        ),
        (
            lambda x: scan.inclusive(x, flags=x),
            "`flags` has shape [2, 3] and dtype float32; wanted is [2, 3] of bool",
        ),
    ],
)
def test_mistakes(call: Callable[[Array], object], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call(np.zeros((2, 3), np.float32))
    assert caught.value.message == message
