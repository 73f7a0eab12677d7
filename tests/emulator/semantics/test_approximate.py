"""The approximate functions: within the manual's bounds, and its tables of special values to the bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from semantics_harness import Case, run
from semantics_samples import generator

INF = math.inf
NAN32 = 0x7FFFFFFF


def _f32(codes: np.ndarray) -> np.ndarray:
    return codes.astype(np.uint32).view(np.float32).astype(np.float64)


def _codes(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32).view(np.uint32)


def _numbers(salt: str, low: float, high: float, count: int = 1 << 14) -> np.ndarray:
    """f32 codes, half of them uniform, half logarithmic, between two positive or any two numbers."""
    rng = generator(salt)
    flat = rng.uniform(low, high, count // 2)
    tiny = np.exp2(rng.uniform(-30, math.log2(max(abs(low), abs(high))), count // 2))
    spread = np.clip(tiny * (rng.choice([-1, 1], count // 2) if low < 0 else 1), low, high)
    return _codes(np.concatenate([flat, spread]))


def _positive(salt: str, count: int = 1 << 14) -> np.ndarray:
    """Positive finite f32 codes of every exponent, subnormal ones too."""
    return generator(salt).integers(1, 0x7F800000, count, dtype=np.uint32)


def _ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The error in units of the last place of the exact value, in f32; overflow of both alike is none."""
    with np.errstate(over="ignore"):
        unit = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-140))), -126) - 23)
        limit = 2.0**128 - 2.0**103
        both = np.isinf(got) & (np.abs(exact) >= limit)
        return np.where(both, 0.0, np.abs(np.where(both, 0.0, got) - np.where(both, 0.0, exact)) / unit)


def _relative(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return np.abs(got - exact) / np.abs(exact)


def _absolute(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return np.abs(got - exact)


def _log_error(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Absolute between 1/2 and 2, relative elsewhere."""
    return _absolute(got, exact) / np.maximum(1.0, np.abs(exact))


Bound = tuple[str, Callable[[], tuple[np.ndarray, ...]], Callable[..., np.ndarray], Callable[..., np.ndarray], float]
BOUNDS: list[Bound] = [
    ("rcp.approx.f32", lambda: (_positive("rcp"),), lambda a: 1 / a, _ulps, 1),
    ("sqrt.approx.f32", lambda: (_positive("sqrt"),), np.sqrt, _relative, 2**-23),
    ("rsqrt.approx.f32", lambda: (_positive("rsqrt"),), lambda a: 1 / np.sqrt(a), _relative, 2**-22.9),
    ("div.approx.f32", lambda: (_positive("diva"), _numbers("divb", 2.0**-126, 2.0**126)), np.divide, _ulps, 2),
    ("div.full.f32", lambda: (_positive("diva"), _positive("divb")), np.divide, _ulps, 2),
    ("sin.approx.f32", lambda: (_numbers("sin", -2 * math.pi, 2 * math.pi),), np.sin, _absolute, 2**-20.5),
    ("sin.approx.f32", lambda: (_numbers("sin", -314, 314),), np.sin, _absolute, 2**-14.7),
    ("cos.approx.f32", lambda: (_numbers("cos", -2 * math.pi, 2 * math.pi),), np.cos, _absolute, 2**-20.5),
    ("cos.approx.f32", lambda: (_numbers("cos", -314, 314),), np.cos, _absolute, 2**-14.7),
    ("lg2.approx.f32", lambda: (_positive("lg2"),), np.log2, _log_error, 2**-22),
    ("lg2.approx.f32", lambda: (_numbers("lg2", 0.5, 2),), np.log2, _log_error, 2**-22),
    ("ex2.approx.f32", lambda: (_numbers("ex2", -150, 128),), np.exp2, _ulps, 2),
    ("ex2.approx.f32", lambda: (_numbers("ex2", -1, 1),), np.exp2, _ulps, 2),
    ("tanh.approx.f32", lambda: (_numbers("tanh", -9, 9),), np.tanh, _relative, 2**-11),
]


@pytest.mark.parametrize("bound", BOUNDS, ids=[f"{bound[0]}-{at}" for at, bound in enumerate(BOUNDS)])
def test_bound(bound: Bound) -> None:
    mnemonic, sources, function, error, most = bound
    codes = sources()
    ((got,),) = run([Case(mnemonic, codes)])
    numbers = [_f32(code) for code in codes]
    with np.errstate(over="ignore"):
        exact = function(*numbers)
    errors = error(_f32(got), exact)
    worst = int(np.nanargmax(errors))
    source = tuple(number[worst] for number in numbers)
    assert errors[worst] <= most, f"{mnemonic}{source} gave {_f32(got)[worst]}, {errors[worst]} off"


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
    ((got,),) = run([Case(mnemonic, (_codes([source] * 32),))])
    code = NAN32 if math.isnan(wanted) else int(_codes([wanted])[0])
    assert hex(got[0]) == hex(code), f"{mnemonic} of {source}"


def test_div_approx_of_huge_divisors() -> None:
    """2**126 < |b| < 2**128 gives a zero with the sign of the quotient, NaN for an infinite a."""
    a = _codes([1.0, -1.0, 3e38, INF, -INF, 0.0, math.nan, 1.0] * 4)
    b = _codes([1e38, 1e38, -1.7e38, 2e38, 2e38, 3e38, 2e38, 2.0**126] * 4)
    ((got,),) = run([Case("div.approx.f32", (a, b))])
    wanted = [0, 0x80000000, 0x80000000, NAN32, NAN32, 0, NAN32, int(_codes([2.0**-126])[0])]
    assert [hex(code) for code in got[:8]] == [hex(code) for code in wanted]


@pytest.mark.parametrize(("mnemonic", "kind", "function", "error", "most"), [
    ("ex2.approx.f16", "f16", np.exp2, "relative", 2**-9.9),
    ("ex2.approx.ftz.bf16", "bf16", np.exp2, "relative", 2**-7),
    ("tanh.approx.f16", "f16", np.tanh, "absolute", 2**-10.987),
    ("tanh.approx.bf16", "bf16", np.tanh, "absolute", 2**-8),
])
def test_half_on_every_pattern(mnemonic: str, kind: str, function: Any, error: str, most: float) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    pairs = codes.astype(np.uint32) | codes[::-1].astype(np.uint32) << np.uint32(16)
    (got,), (packed,) = run([Case(mnemonic, (codes,)), Case(f"{mnemonic}x2", (pairs,))])
    assert (packed & 0xFFFF == got).all()
    assert (packed >> 16 == got[::-1]).all()

    def numbers(half: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            if kind == "f16":
                return half.view(np.float16).astype(np.float64)
            return (half.astype(np.uint32) << 16).view(np.float32).astype(np.float64)

    source, result = numbers(codes), numbers(got)
    assert (got[np.isnan(source)] == 0x7FFF).all()
    least, top = (2.0**-14, 65504.0) if kind == "f16" else (2.0**-126, 3.39e38)
    with np.errstate(over="ignore", under="ignore"):
        exact = function(np.where(np.isnan(source), 0, source))
    if "ftz" in mnemonic:
        assert (result[~np.isnan(source) & (exact < least)] == 0).all()
    normal = ~np.isnan(source) & (np.abs(exact) < top) & ((np.abs(exact) >= least) | (error == "absolute"))
    assert (_relative if error == "relative" else _absolute)(result[normal], exact[normal]).max() <= most
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
