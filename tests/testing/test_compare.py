"""`ptxdsl.compare`: two kernels on the same random arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Array, LaunchError, MemoryFault, Ptr, compare, f16, f32, ptx, ptx_kernel, u32, use, when
from ptxdsl.testing.comparing import Difference

pytestmark = pytest.mark.emulator


@pytest.fixture(autouse=True)
def on_the_emulator() -> Any:
    with use("emulator"):
        yield


@ptx_kernel
def scaled(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = x[i] * 3.0 + 1.0


@ptx_kernel
def fused(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = ptx.fma.rn.f32(x[i], 3.0, 1.0)


@ptx_kernel
def wrong_at_the_end(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i + 1 < n):
        y[i] = x[i] * 3.0 + 1.0


def arguments(n: int = 100) -> tuple[int, Any, Any]:
    return n, np.zeros(n, np.float32), np.zeros(n, np.float32)


def test_other_geometries_of_the_same() -> None:
    found = compare(scaled[4, 32], scaled[1, 128], *arguments())
    assert found and str(found) == "scaled and scaled compute the same in 10 rounds"


def test_foreign_ptx_beside_its_source() -> None:
    assert compare(scaled[4, 32], ptxdsl.load(scaled.ptx())["scaled"][4, 32], *arguments(), rounds=3).rounds == 3


def test_roundings_differ_and_a_tolerance_allows_them() -> None:
    found = compare(scaled[4, 32], fused[4, 32], *arguments(1000), special=0, seed=7)
    assert not found and found.rounds == 1
    (difference,) = found.differences
    assert (difference.argument, difference.name, difference.size) == (2, "y", 1000)
    assert 0 < difference.count < 1000
    x, y = found.arguments[1], np.zeros(1000, np.float32)
    place = difference.index
    scaled[8, 128](1000, x, y)
    assert y[place] == difference.first
    fused[8, 128](1000, x, y)
    assert y[place] == difference.second
    assert str(found).splitlines()[0] == "scaled and fused differ in round 1 of seed 7"
    assert str(difference).startswith(f"y: {difference.count} of 1,000 elements differ; most y[{place[0]}], which was ")
    near = compare(scaled[4, 32], fused[4, 32], *arguments(1000), special=0, rtol=1e-5, atol=1e-6)
    assert near and near.most > 0 and " ulp apart at most" in str(near)


def test_one_element_is_enough() -> None:
    found = compare(scaled[4, 32], wrong_at_the_end[4, 32], *arguments())
    (difference,) = found.differences
    assert (difference.count, difference.index) == (1, (99,))


def test_special_values_and_nan_are_compared() -> None:
    def reference(n: int, x: Any, y: Any) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            y[:n] = x * np.float32(3) + np.float32(1)

    found = compare(scaled[8, 128], reference, *arguments(1000))
    assert found, found


def test_a_fault_of_one_is_a_difference() -> None:
    given = 128, np.zeros(100, np.float32), np.zeros(128, np.float32)
    found = compare(scaled[4, 32], fused[4, 32], *given)
    assert not found and all(isinstance(error, MemoryFault) for error in found.errors)
    found = compare(scaled[4, 32], lambda *_: None, *given)
    assert isinstance(found.errors[0], MemoryFault) and found.errors[1] is None
    assert "  scaled: MemoryFault: " in str(found)


def test_integers_keep_what_they_hold_unless_told() -> None:
    @ptx_kernel
    def gather(index: Ptr[u32], x: Ptr[f16], y: Ptr[f16]) -> None:
        y[ptx.tid.x] = x[index[ptx.tid.x]]

    index = np.random.default_rng().permutation(64).astype(np.uint32)
    given = index, np.zeros(64, np.float16), np.zeros(64, np.float16)
    assert compare(gather[1, 64], gather[1, 64], *given)
    seen = []

    def fill(rng: np.random.Generator, position: int, array: Any) -> Any:
        seen.append(position)
        return rng.integers(0, 64, 64) if position == 0 else rng.standard_normal(array.shape)

    assert compare(gather[1, 64], gather[1, 64], *given, rounds=2, fill=fill)
    assert seen == [0, 1, 2] * 2 and (given[0] == index).all() and not given[1].any()


def test_matrices_are_told_by_their_indices() -> None:
    @ptx_kernel
    def fill(a: Array[f32, 2], *, value: float) -> None:
        a[ptx.ctaid.x, ptx.tid.x] = value

    launch = fill[3, 4]
    found = compare(lambda a: launch(a, value=1.0), lambda a: launch(a, value=2.0), np.zeros((3, 4), np.float32))
    (difference,) = found.differences
    assert difference.count == 12 and len(difference.index) == 2 and (difference.first, difference.second) == (1, 2)


def test_a_seed_repeats() -> None:
    one, two = (compare(scaled[4, 32], fused[4, 32], *arguments(), seed=5, special=0) for _ in range(2))
    assert str(one) == str(two)


def test_nothing_to_compare() -> None:
    with pytest.raises(LaunchError, match="^there is no numpy array among the arguments, so nothing to compare\n"):
        compare(scaled[1, 1], fused[1, 1], 3)


def test_differences_have_the_digits_that_show_them() -> None:
    def told(before: object, first: object, second: object, apart: float) -> str:
        return str(Difference(0, "y", 3, 1000, (3, 5), before, first, second, apart))

    start = "y: 3 of 1,000 elements differ; most y[3, 5], which was "
    close = np.nextafter(np.float64(2 / 3), 1)
    assert told(np.float64(1 / 3), np.float64(2 / 3), close, 1.0) == (
        f"{start}0.3333: 0.6666666666666666 and 0.6666666666666667, 1 ulp apart"
    )
    assert told(np.float64(1 / 3), np.float64(2 / 3), np.float64(0.7), 3e14) == (
        f"{start}0.3333: 0.6667 and 0.7, 3e+14 ulp apart"
    )
    assert told(np.float32(1), np.float32(1.0000001), np.float32(1), 1.0) == f"{start}1: 1.0000001 and 1, 1 ulp apart"
    assert told(np.float32(1), np.float32(0.0), np.float32(-0.0), 0.0) == f"{start}1: 0 and -0, 0 ulp apart"
    assert told(np.float32(1), np.float32("nan"), np.float32(2), np.inf) == f"{start}1: nan and 2.0"
    assert told(np.uint32(7), np.uint32(8), np.uint32(9), 1.0) == f"{start}7: 8 and 9"
