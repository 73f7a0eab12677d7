"""The approximate functions: within the manual's bounds, and its tables of special values to the bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from approximate_bounds import BOUNDS, HALVES, UNITS, Bound, codes_of, numbers_of
from semantics_harness import Case, run
from semantics_samples import generator

INF = math.inf
NAN32 = 0x7FFFFFFF


def _f32(codes: np.ndarray) -> np.ndarray:
    return numbers_of(codes)


def _relative(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return np.abs(got - exact) / np.abs(exact)


def _errors(bound: Bound, got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The errors in the unit of the bound; overflow of both alike is none."""
    with np.errstate(over="ignore"):
        both = np.isinf(got) & (np.abs(exact) >= 2.0**128 - 2.0**103)
        off = np.abs(np.where(both, 0.0, got) - np.where(both, 0.0, exact))
        return np.where(both, 0.0, off / UNITS[bound.unit](exact))


@pytest.mark.parametrize("bound", BOUNDS, ids=[f"{bound.mnemonic}-{at}" for at, bound in enumerate(BOUNDS)])
def test_bound(bound: Bound) -> None:
    codes = bound.sample()
    ((got,),) = run([Case(bound.mnemonic, codes)])
    numbers = [_f32(code) for code in codes]
    with np.errstate(over="ignore"):
        exact = bound.exact(*numbers)
    errors = _errors(bound, _f32(got), exact)
    worst = int(np.nanargmax(errors))
    source = tuple(number[worst] for number in numbers)
    assert errors[worst] <= bound.most, f"{bound.mnemonic}{source} gave {_f32(got)[worst]}, {errors[worst]} off"


TINY = 2.0**-149
SPECIAL: list[tuple[str, float, float]] = [
    *[("rcp.approx.f32", *pair) for pair in ((-INF, -0.0), (-0.0, -INF), (0.0, INF), (INF, 0.0), (math.nan, math.nan))],
    ("rcp.approx.ftz.f32", TINY, INF), ("rcp.approx.ftz.f32", -TINY, -INF),
    *[("sqrt.approx.f32", *pair) for pair in (
        (-INF, math.nan), (-1.0, math.nan), (-0.0, -0.0), (0.0, 0.0), (INF, INF), (math.nan, math.nan))],
    ("sqrt.approx.ftz.f32", -TINY, -0.0), ("sqrt.approx.ftz.f32", TINY, 0.0),
    *[("rsqrt.approx.f32", *pair) for pair in (
        (-INF, math.nan), (-1.0, math.nan), (-0.0, -INF), (0.0, INF), (INF, 0.0), (math.nan, math.nan))],
    ("rsqrt.approx.ftz.f32", TINY, INF),
    *[("sin.approx.f32", *pair) for pair in (
        (-INF, math.nan), (-0.0, -0.0), (0.0, 0.0), (INF, math.nan), (math.nan, math.nan), (TINY, TINY))],
    ("sin.approx.ftz.f32", -TINY, -0.0),
    *[("cos.approx.f32", *pair) for pair in ((-INF, math.nan), (-0.0, 1.0), (0.0, 1.0), (INF, math.nan), (TINY, 1.0))],
    *[("lg2.approx.f32", *pair) for pair in (
        (-INF, math.nan), (-1.0, math.nan), (-0.0, -INF), (0.0, -INF), (INF, INF), (math.nan, math.nan), (TINY, -149.0),
        (1.0, 0.0), (8.0, 3.0), (2.0**-126, -126.0))],
    ("lg2.approx.ftz.f32", TINY, -INF),
    *[("ex2.approx.f32", *pair) for pair in (
        (-INF, 0.0), (-0.0, 1.0), (0.0, 1.0), (INF, INF), (math.nan, math.nan), (5.0, 32.0), (-149.0, TINY),
        (128.0, INF), (-3e38, 0.0), (3e38, INF))],
    ("ex2.approx.ftz.f32", -149.0, 0.0), ("ex2.approx.ftz.f32", -126.0, 2.0**-126),
    *[("tanh.approx.f32", *pair) for pair in (
        (-INF, -1.0), (-0.0, -0.0), (0.0, 0.0), (INF, 1.0), (math.nan, math.nan), (TINY, TINY), (-TINY, -TINY))],
]


@pytest.mark.parametrize(("mnemonic", "source", "wanted"), SPECIAL)
def test_special_value(mnemonic: str, source: float, wanted: float) -> None:
    ((got,),) = run([Case(mnemonic, (codes_of([source] * 32),))])
    code = NAN32 if math.isnan(wanted) else int(codes_of([wanted])[0])
    assert hex(got[0]) == hex(code), f"{mnemonic} of {source}"


def test_div_approx_of_huge_divisors() -> None:
    """2**126 < |b| < 2**128 gives a zero with the sign of the quotient, NaN for an infinite a."""
    a = codes_of([1.0, -1.0, 3e38, INF, -INF, 0.0, math.nan, 1.0] * 4)
    b = codes_of([1e38, 1e38, -1.7e38, 2e38, 2e38, 3e38, 2e38, 2.0**126] * 4)
    ((got,),) = run([Case("div.approx.f32", (a, b))])
    wanted = [0, 0x80000000, 0x80000000, NAN32, NAN32, 0, NAN32, int(codes_of([2.0**-126])[0])]
    assert [hex(code) for code in got[:8]] == [hex(code) for code in wanted]


@pytest.mark.parametrize("bound", HALVES, ids=[bound.mnemonic for bound in HALVES])
def test_half_on_every_pattern(bound: Bound) -> None:
    mnemonic, function = bound.mnemonic, bound.exact
    kind = mnemonic.rpartition(".")[2]
    (codes,) = bound.sample()
    pairs = codes.astype(np.uint32) | codes[::-1].astype(np.uint32) << np.uint32(16)
    (got,), (packed,) = run([Case(mnemonic, (codes,)), Case(f"{mnemonic}x2", (pairs,))])
    assert (packed & 0xFFFF == got).all()
    assert (packed >> 16 == got[::-1]).all()

    source, result = numbers_of(codes, kind), numbers_of(got, kind)
    assert (got[np.isnan(source)] == 0x7FFF).all()
    least, top = (2.0**-14, 65504.0) if kind == "f16" else (2.0**-126, 3.39e38)
    with np.errstate(over="ignore", under="ignore"):
        exact = function(np.where(np.isnan(source), 0, source))
    if "ftz" in mnemonic:
        assert (result[~np.isnan(source) & (exact < least)] == 0).all()
    normal = ~np.isnan(source) & (np.abs(exact) < top) & ((np.abs(exact) >= least) | (bound.unit == "absolute"))
    off = np.abs(result[normal] - exact[normal]) / UNITS[bound.unit](exact[normal])
    assert off.max() <= bound.most
    if function is np.exp2:
        assert (result[exact >= 1.01 * top] == INF).all()


@pytest.mark.parametrize(("mnemonic", "function"), [
    ("rcp.approx.ftz.f64", lambda a: 1 / a), ("rsqrt.approx.ftz.f64", lambda a: 1 / np.sqrt(a)),
])
def test_rough_f64(mnemonic: str, function: Any) -> None:
    """20 bits of the mantissa in and out, the lower word zero, subnormals flushed."""
    source = generator(mnemonic).integers(0x0020 << 48, 0x7FD0 << 48, 1 << 12, dtype=np.uint64)
    ((got,),) = run([Case(mnemonic, (source,))])
    upper = (source & np.uint64(0xFFFFFFFF << 32)).view(np.float64)
    assert (got & np.uint64(0xFFFFFFFF) == 0).all()
    assert _relative(got.view(np.float64), function(upper)).max() <= 2**-19
    upper_words = (0xFFF00000, 0x80000100, 0x80000000, 0, 0x100, 0x7FF00000, 0x7FF80000, 0xBFF00000)
    special = np.array([word << 32 for word in upper_words] * 4, np.uint64)
    ((got,),) = run([Case(mnemonic, (special,))])
    nan = 0x7FFFFFFF00000000
    wanted = [1 << 63, 0xFFF0 << 48, 0xFFF0 << 48, 0x7FF0 << 48, 0x7FF0 << 48, 0, nan, 0xBFF0 << 48]
    if mnemonic.startswith("rsqrt"):
        wanted[0], wanted[7] = nan, nan
    assert [hex(code) for code in got[:8]] == [hex(code) for code in wanted]


def test_rsqrt_f64() -> None:
    source = generator("rsqrt.f64").integers(1, 0x7FF0 << 48, 1 << 12, dtype=np.uint64)
    ((got,),) = run([Case("rsqrt.approx.f64", (source,))])
    assert _relative(got.view(np.float64), 1 / np.sqrt(source.view(np.float64))).max() <= 2**-51
