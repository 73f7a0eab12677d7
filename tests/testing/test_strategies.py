"""The strategies of hypothesis: what they make, and that they find what they are for."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from ptxdsl import Array, f32, ptx, ptx_kernel, use, when
from ptxdsl.testing import strategies

quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(strategies.arrays(strategies.dtypes(), strategies.shapes((0, 3), most=40)))
def test_arrays(array: Any) -> None:
    assert array.dtype in (np.float16, np.float32, np.float64, np.dtype(ml_dtypes.bfloat16))
    assert array.ndim <= 3 and array.size <= 20_000 and all(extent <= 40 for extent in array.shape)


@quick
@given(strategies.arrays("float16", 200, special=1.0, nan=False, infinity=False))
def test_arrays_without_what_is_not_wanted(array: Any) -> None:
    assert np.isfinite(array).all()


def test_special_values_are_found() -> None:
    wanted = strategies.arrays(np.float32, 50, special=0.5)
    for what in (np.isnan, np.isinf, lambda a: (a == 0) & np.signbit(a)):
        find(wanted, lambda array, what=what: bool(what(array).any()), settings=settings(max_examples=500))


@quick
@given(strategies.strided(strategies.arrays(np.float32, strategies.shapes(2, most=20, least=2))))
def test_strided(array: Any) -> None:
    assert array.strides[-1] == 4 and array.strides[0] >= 4 * array.shape[1]


def test_some_strided_arrays_are_not_contiguous() -> None:
    wanted = strategies.strided(strategies.arrays(np.float32, (3, 4)))
    find(wanted, lambda array: not array.flags.c_contiguous)


@quick
@given(strategies.extents(100, 5), strategies.blocks(128, multiple=32))
def test_extents_and_blocks(extent: int, block: int) -> None:
    assert 5 <= extent <= 100 and 32 <= block <= 128 and block % 32 == 0


def test_boundaries_are_likely() -> None:
    for wanted in (0, 1, 31, 32, 33, 64, 127, 129, 257):
        assert find(strategies.extents(300), lambda n, wanted=wanted: n == wanted) == wanted
    with pytest.raises(NoSuchExample):
        find(strategies.extents(300), lambda n: n > 300, settings=settings(max_examples=200))


@ptx_kernel
def doubled(a: Array[f32, 2], b: Array[f32, 2]) -> None:
    with when(ptx.tid.x < a.shape[1]):
        b[ptx.ctaid.x, ptx.tid.x] = a[ptx.ctaid.x, ptx.tid.x] * 2.0


@quick
@given(st.data())
def test_a_kernel(data: Any) -> None:
    shape = data.draw(strategies.shapes(2, most=40, least=1))
    a = data.draw(strategies.strided(strategies.arrays(np.float32, shape)))
    b = np.full(a.shape, np.nan, np.float32)
    with use("emulator"):
        doubled[a.shape[0], 64](a, b)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(b, a * np.float32(2))
