"""Random arrays of any dtype, with special values, and distances in units of the last place."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl.testing import random_array, special_values
from ptxdsl.testing.random_arrays import ulps

DTYPES = [
    "bool", "int8", "uint8", "int32", "uint64", "float16", "float32", "float64", ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1000,), (3, 0, 2), (7, 50)])
def test_shape_and_dtype(dtype: Any, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    made = random_array(rng, shape, dtype, special=0.2)
    assert made.shape == shape and made.dtype == np.dtype(dtype)
    assert made.flags.writeable and made.flags.c_contiguous


@pytest.mark.parametrize("dtype", DTYPES[3:], ids=str)
def test_special_values_are_there_when_they_are_asked_for(dtype: Any, rng: np.random.Generator) -> None:
    wanted = {value.tobytes() for value in special_values(dtype)}
    made = {value.tobytes() for value in random_array(rng, 3000, dtype, special=0.5)}
    assert wanted <= made


@pytest.mark.parametrize("dtype", DTYPES[5:], ids=str)
def test_without_special_values_floats_are_finite_and_of_all_magnitudes(dtype: Any, rng: np.random.Generator) -> None:
    made = random_array(rng, 5000, dtype).astype(np.float64)
    assert np.isfinite(made).all()
    largest = float(special_values(dtype)[6])
    assert (np.abs(made) > np.sqrt(largest)).any() and (np.abs(made) < 0.1).any()
    assert (made > 0).any() and (made < 0).any()


def test_integers_have_the_whole_range(rng: np.random.Generator) -> None:
    made = random_array(rng, 20_000, "int8")
    assert (made.min(), made.max()) == (-128, 127)


def test_what_has_no_values() -> None:
    with pytest.raises(TypeError, match="^no random <U3: it is no boolean, integer or floating-point dtype$"):
        random_array(np.random.default_rng(), 3, "U3")
    with pytest.raises(TypeError, match="^complex64 has no special values: "):
        special_values("complex64")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ml_dtypes.bfloat16], ids=str)
def test_ulps_count_the_numbers_between(dtype: Any, rng: np.random.Generator) -> None:
    kind = np.dtype(dtype)
    bits = np.dtype(f"u{kind.itemsize}")
    steps = rng.integers(1, 100, 200)
    start = rng.integers(200, np.iinfo(bits).max // 4, 200)
    a, b = start.astype(bits).view(kind), (start + steps).astype(bits).view(kind)
    assert (ulps(a, b) == steps).all() and (ulps(b, a) == steps).all()
    assert (ulps(-a, -b) == steps).all()
    assert ulps(np.array([0.0], kind), np.array([-0.0], kind)) == 0
    smallest = np.array([1], bits).view(kind)
    assert ulps(smallest, -smallest) == 2
    nan = np.array([np.nan], kind)
    assert ulps(nan, nan) == 0 and np.isinf(ulps(nan, smallest)).all()
