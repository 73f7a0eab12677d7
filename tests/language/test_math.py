"""ptxdsl.math, run on the emulator: errors against mpmath and numpy, special values against the C library."""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import math as pymath
from collections.abc import Callable
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest
from tracing_helpers import refused, said

from ptxdsl import Ptr, bf16, f16, f32, f64, math, minimum, pred, ptx, ptx_kernel, s32, u32, when

_NUMPY = {s32: np.int32, f16: np.float16, bf16: ml_dtypes.bfloat16, f32: np.float32, f64: np.float64}
_COUNT = 40_000


def _apply(function: Callable[..., Any], kind: Any, *arguments: np.ndarray) -> np.ndarray:
    """The function over arrays, one thread an element."""

    @ptx_kernel
    def one(n: u32, x: Ptr[kind], y: Ptr[kind]):
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            y[i] = function(x[i])

    @ptx_kernel
    def two(n: u32, x: Ptr[kind], z: Ptr[kind], y: Ptr[kind]):
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            y[i] = function(x[i], z[i])

    result = np.full_like(arguments[0], 123)
    count = len(result)
    (one if len(arguments) == 1 else two)[(count + 255) // 256, 256](count, *arguments, result)
    return result


def _bits(rng: np.random.Generator, kind: Any) -> np.ndarray:
    """Any float at all: subnormal, infinite and NaN ones too."""
    size = np.dtype(_NUMPY[kind]).itemsize
    return rng.integers(0, 256, (_COUNT, size), dtype=np.uint8).view(_NUMPY[kind])[:, 0]


def _spread(rng: np.random.Generator, kind: Any, low: float, high: float) -> np.ndarray:
    values = [rng.uniform(low, high, _COUNT), rng.standard_normal(_COUNT), [low, high, 0.0, -0.0, 1.0, -1.0]]
    return np.concatenate(values).astype(_NUMPY[kind])


def _error(got: np.ndarray, exact: np.ndarray) -> float:
    """The greatest error in units of the last place; infinities and NaNs must agree."""
    largest = float(np.finfo(got.dtype).max)
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = exact.astype(got.dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    ends = np.isinf(nearest) & (np.abs(exact) > largest * (1 + 2.0**-20))
    np.testing.assert_array_equal(got[ends], nearest[ends])
    zeros = exact == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros]))
    fine = np.isfinite(nearest) & np.isfinite(got)
    assert np.all(fine | ends | np.isnan(exact) | (np.abs(exact) >= largest * (1 - 2.0**-20)))
    return float(np.max(np.abs(got[fine].astype(exact.dtype) - exact[fine]) / np.spacing(np.abs(nearest[fine]))))


def _logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


_erf = np.vectorize(pymath.erf)

_ACCURATE = [
    ("exp", f32, -110, 95, np.exp, 1), ("exp2", f32, -155, 135, np.exp2, 1), ("log", f32, 1e-3, 50, np.log, 1),
    ("log2", f32, 1e-3, 50, np.log2, 2), ("sqrt", f32, 0, 50, np.sqrt, 0.5001),
    ("rsqrt", f32, 1e-3, 50, lambda x: 1 / np.sqrt(x), 2), ("sigmoid", f32, -87, 100, _logistic, 3),
    ("silu", f32, -80, 100, lambda x: x * _logistic(x), 4), ("tanh", f32, -10, 10, np.tanh, 2),
    ("erf", f32, -4.5, 4.5, _erf, 2),
    ("sin", f32, -99_000, 99_000, np.sin, 2), ("cos", f32, -99_000, 99_000, np.cos, 2),
    ("exp", f64, -750, 711, np.exp, 1), ("exp2", f64, -1078, 1026, np.exp2, 1), ("log", f64, 1e-3, 50, np.log, 1),
    ("log2", f64, 1e-3, 50, np.log2, 2), ("sqrt", f64, 0, 50, np.sqrt, 0.5001),
    ("rsqrt", f64, 1e-3, 50, lambda x: 1 / np.sqrt(x), 2), ("sigmoid", f64, -700, 100, _logistic, 3),
    ("silu", f64, -700, 100, lambda x: x * _logistic(x), 4),
]


@pytest.mark.parametrize(("name", "kind", "low", "high", "exact", "bound"), _ACCURATE, ids=lambda v: str(v)[:8])
def test_accuracy(
    name: str, kind: Any, low: float, high: float, exact: Any, bound: float, rng: np.random.Generator
) -> None:
    """Within the units of the last place that the docstring promises; numpy in the next larger float decides."""
    x = _spread(rng, kind, low, high)
    if name in ("exp", "exp2", "log", "log2", "sqrt", "tanh", "erf"):
        x = np.concatenate([x, _bits(rng, kind)])
    got = _apply(getattr(math, name), kind, x)
    with np.errstate(all="ignore"):
        wanted = exact(x.astype(np.float64 if kind is f32 else np.longdouble))
    assert _error(got, wanted) <= bound


def test_pow(rng: np.random.Generator) -> None:
    special = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, np.inf, -np.inf, np.nan, 2.0**24 + 2, 1e30]
    pairs = np.array(list(itertools.product(special, special)))
    bases = np.exp(rng.uniform(-60, 60, _COUNT)), -np.exp(rng.uniform(-9, 9, _COUNT)), pairs[:, 0]
    powers = rng.uniform(-2, 2, _COUNT), rng.integers(-12, 13, _COUNT), pairs[:, 1]
    x, y = (
        np.concatenate([np.concatenate(parts).astype(np.float32), _bits(rng, f32)]) for parts in (bases, powers)
    )
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    got = _apply(math.pow, f32, x, y)
    assert _error(got, exact) <= 1


def test_pow_with_a_number() -> None:
    x = np.array([1.0, 2.0, 3.0], np.float32)
    np.testing.assert_array_equal(_apply(lambda v: math.pow(v, 3.0), f32, x), x**3)
    np.testing.assert_array_equal(_apply(lambda v: math.pow(2.0, v), f32, x), np.float32(2) ** x)


_APPROXIMATE = [
    ("exp_approx", -80, 80, np.exp, lambda x: 2.0**-22 + np.abs(x) * 2.0**-23),
    ("exp2_approx", -120, 120, np.exp2, lambda x: 2.0**-22),
    ("log_approx", 2, 1e6, np.log, lambda x: 2.0**-21), ("log2_approx", 2, 1e6, np.log2, lambda x: 2.0**-22),
    ("sqrt_approx", 1e-3, 1e6, np.sqrt, lambda x: 2.0**-23),
    ("rsqrt_approx", 1e-3, 1e6, lambda x: 1 / np.sqrt(x), lambda x: 2.0**-22.9),
    ("sigmoid_approx", -80, 80, _logistic, lambda x: 2.0**-21 + np.abs(x) * 2.0**-23),
    ("silu_approx", -80, 80, lambda x: x * _logistic(x), lambda x: 2.0**-20 + np.abs(x) * 2.0**-23),
    ("tanh_approx", -9, 9, np.tanh, lambda x: 2.0**-10.9),
]


@pytest.mark.parametrize(("name", "low", "high", "exact", "bound"), _APPROXIMATE, ids=lambda v: str(v)[:14])
def test_approximations(name: str, low: float, high: float, exact: Any, bound: Any, rng: np.random.Generator) -> None:
    x = rng.uniform(low, high, _COUNT).astype(np.float32)
    wide = x.astype(np.float64)
    error = np.abs(_apply(getattr(math, name), f32, x) / exact(wide) - 1)
    assert np.all(error <= bound(wide))


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_approximate_circular_functions(name: str, rng: np.random.Generator) -> None:
    x = rng.uniform(-2 * np.pi, 2 * np.pi, _COUNT).astype(np.float32)
    got = _apply(getattr(math, f"{name}_approx"), f32, x)
    assert np.max(np.abs(got - getattr(np, name)(x.astype(np.float64)))) <= 2.0**-20.5


def test_gelu(rng: np.random.Generator) -> None:
    x = _spread(rng, f32, -12, 12)
    wide = x.astype(np.float64)
    exact = wide / 2 * (1 + _erf(wide / np.sqrt(2)))
    assert np.all(np.abs(_apply(math.gelu, f32, x) - exact) <= 2.0**-23 * np.maximum(1, np.abs(wide)))
    exact = wide / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    assert np.all(np.abs(_apply(math.gelu_tanh, f32, x) - exact) <= 2.0**-21 * np.maximum(1, np.abs(wide)))


@pytest.mark.parametrize("kind", [f16, bf16], ids=str)
def test_half_precision_exhaustively(kind: Any) -> None:
    """Every f16 and bf16: computed in f32 and rounded, so within half a unit and a little."""
    x = np.arange(65536, dtype=np.uint16).view(_NUMPY[kind])
    for name, exact in (("exp", np.exp), ("tanh", np.tanh), ("log", np.log)):
        got = _apply(getattr(math, name), kind, x)
        with np.errstate(all="ignore"):
            wanted = exact(x.astype(np.float64)).astype(np.float32).astype(_NUMPY[kind])
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
        number = ~np.isnan(wanted)
        steps = np.abs(got[number].view(np.int16).astype(np.int32) - wanted[number].view(np.int16))
        assert steps.max() <= 1
        assert np.mean(steps) < 0.01


def test_fma_and_clamp(rng: np.random.Generator) -> None:
    x = rng.standard_normal(1000).astype(np.float32)
    got = _apply(lambda v: math.fma(v, v, -1.0), f32, x)
    exact = x.astype(np.float64) ** 2 - 1
    np.testing.assert_array_equal(got, exact.astype(np.float32))
    np.testing.assert_array_equal(_apply(lambda v: math.clamp(v, -0.5, 0.25), f32, x), np.clip(x, -0.5, 0.25))
    counts = rng.integers(-9, 9, 1000).astype(np.int32)
    np.testing.assert_array_equal(_apply(lambda v: math.clamp(v, -3, 4), s32, counts), np.clip(counts, -3, 4))
    np.testing.assert_array_equal(_apply(lambda v: minimum(v, 0), s32, counts), np.minimum(counts, 0))


# ---------------------------------------------------------------------------------------------------------------------
# Every function of C's math.h, in f32 and f64

_EXPONENT = {f32: 127, f64: 1023}


def _uniform(low: float, high: float) -> Any:
    return lambda rng, kind: rng.uniform(low, high, 300)


def _powers(low: float, high: float, *, signed: bool = True) -> Any:
    """Numbers of all sizes from 2**low to 2**high."""

    def numbers(rng: np.random.Generator, kind: Any) -> np.ndarray:
        sizes = np.exp2(rng.uniform(max(low, -_EXPONENT[kind]), min(high, _EXPONENT[kind]), 300))
        return sizes * rng.choice([-1, 1], 300) if signed else sizes

    return numbers


def _limited(single: float, double: float, *, low: float | None = None) -> Any:
    """Up to the ends of a function's range, which differ between f32 and f64."""

    def numbers(rng: np.random.Generator, kind: Any) -> np.ndarray:
        end = single if kind is f32 else double
        return rng.uniform(-end if low is None else low, end, 300)

    return numbers


def _multiples(rng: np.random.Generator, kind: Any) -> np.ndarray:
    """Multiples of pi/2, to which no float is equal and some are very close."""
    return rng.integers(1, 1 << 20, 300) * (np.pi / 2) * rng.choice([1, 2.0**30, 2.0**60], 300)


def _log_gamma(x: Any) -> Any:
    return mpmath.loggamma(x) if x > 0 else mpmath.log(abs(mpmath.gamma(x)))


_ANGLES = (_uniform(-10, 10), _powers(-30, 1023), _uniform(-1e6, 1e6), _multiples)
_FUNCTIONS: dict[str, tuple[Any, tuple[float, float], tuple[Any, ...]]] = {
    "acos": (mpmath.acos, (2, 2), (_uniform(-1, 1), _powers(-40, 0))),
    "acosh": (mpmath.acosh, (4, 4), (_uniform(1, 1.1), _uniform(1, 9), _powers(0, 1023, signed=False))),
    "asin": (mpmath.asin, (2, 2), (_uniform(-1, 1), _powers(-40, 0))),
    "asinh": (mpmath.asinh, (4, 4), (_uniform(-5, 5), _powers(-60, 1023))),
    "atan": (mpmath.atan, (2, 2), (_uniform(-3, 3), _powers(-99, 99))),
    "atanh": (mpmath.atanh, (4, 4), (_uniform(-1, 1), _powers(-60, 0))),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), (1, 1), (_powers(-1023, 1023), _uniform(-9, 9))),
    "cos": (mpmath.cos, (2, 2), _ANGLES),
    "cosh": (mpmath.cosh, (2, 2), (_uniform(-5, 5), _limited(89, 710.4))),
    "cospi": (mpmath.cospi, (2, 2), (_uniform(-4, 4), _powers(-20, 30))),
    "erf": (mpmath.erf, (2, 2), (_uniform(-4, 4), _powers(-60, 4))),
    "erfc": (mpmath.erfc, (4, 6), (_uniform(-4, 4), _limited(9, 26, low=0), _powers(-60, 2))),
    "exp10": (lambda x: mpmath.power(10, x), (2, 2), (_limited(37, 307), _uniform(-1, 1))),
    "expm1": (mpmath.expm1, (2, 2), (_limited(88, 709), _uniform(-2, 2), _powers(-60, 0))),
    "lgamma": (_log_gamma, (1, 6), (_uniform(0, 14), _powers(-99, 99, signed=False))),
    "log10": (mpmath.log10, (2, 2), (_powers(-1023, 1023, signed=False), _uniform(0.5, 2))),
    "log1p": (mpmath.log1p, (2, 2), (_powers(-60, 1023, signed=False), _uniform(-0.999, 3), _powers(-60, -1))),
    "sin": (mpmath.sin, (2, 2), _ANGLES),
    "sinh": (mpmath.sinh, (2, 2), (_uniform(-5, 5), _limited(89, 710.4), _powers(-60, 3))),
    "sinpi": (mpmath.sinpi, (2, 2), (_uniform(-4, 4), _powers(-20, 30))),
    "tan": (mpmath.tan, (3, 3), _ANGLES),
    "tanh": (mpmath.tanh, (2, 3), (_uniform(-5, 5), _powers(-60, 5))),
    "tgamma": (mpmath.gamma, (1, 12), (_uniform(-5, 12), _limited(34, 171), _uniform(-184, -165), _powers(-99, 2))),
}
"""The exact function, the bound in ulp that the docstrings give for f32 and for f64, and arguments."""
_FUNCTIONS_OF_TWO: dict[str, tuple[Any, tuple[float, float], tuple[tuple[Any, Any], ...]]] = {
    "atan2": (
        mpmath.atan2, (2, 2), ((_uniform(-9, 9), _uniform(-9, 9)), (_powers(-60, 60), _powers(-60, 60))),
    ),
    "hypot": (
        mpmath.hypot, (1.1, 1.1), ((_uniform(-9, 9), _uniform(-9, 9)), (_powers(-1023, 1022), _powers(-1023, 1022))),
    ),
    "pow": (
        mpmath.power, (1, 1),
        (
            (_uniform(0, 9), _uniform(-20, 20)), (_powers(-1021, 1022, signed=False), _uniform(-1, 1)),
            (_uniform(0.9, 1.1), _limited(800, 6000)),
        ),
    ),
}


def _worst(got: np.ndarray, exact: list[Any], kind: Any) -> float:
    """The greatest error in ulp, of what is no overflow."""
    precision, worst = kind.bits - (8 if kind is f32 else 11), 0.0
    for found, wanted in zip(got.tolist(), exact):
        if not mpmath.isfinite(wanted) or abs(wanted) >= mpmath.ldexp(1, _EXPONENT[kind] + 1):
            continue
        assert pymath.isfinite(found), wanted
        exponent = max(mpmath.frexp(wanted)[1] if wanted else 0, 2 - _EXPONENT[kind])
        worst = max(worst, float(abs(mpmath.mpf(found) - wanted) / mpmath.ldexp(1, exponent - precision)))
    return worst


@pytest.mark.parametrize("kind", [f32, f64], ids=str)
@pytest.mark.parametrize("name", [*_FUNCTIONS, *_FUNCTIONS_OF_TWO])
def test_bounds(name: str, kind: Any, rng: np.random.Generator) -> None:
    exact, bounds, sources = (_FUNCTIONS | _FUNCTIONS_OF_TWO)[name]
    with np.errstate(over="ignore"):
        arguments = [
            np.concatenate([make(rng, kind) for make in column]).astype(_NUMPY[kind])
            for column in (zip(*sources) if name in _FUNCTIONS_OF_TWO else [sources])
        ]
    got = _apply(getattr(math, name), kind, *arguments)
    # Enough digits for the largest angle and its distance to a multiple of pi/2.
    with mpmath.workprec(1300 if name in ("sin", "cos", "tan") and kind is f64 else 300):
        wanted = [exact(*map(mpmath.mpf, map(float, row))) for row in zip(*arguments)]
        assert _worst(got, wanted, kind) <= bounds[kind is f64]


def test_lgamma_of_negative_numbers(rng: np.random.Generator) -> None:
    x = rng.uniform(-40, 0, 500)
    got = _apply(math.lgamma, f64, x)
    exact = np.array([float(_log_gamma(mpmath.mpf(v))) for v in x])
    assert np.all(np.abs(got - exact) <= 2.0**-48 * np.maximum(1, np.abs(exact)))


_LIBRARY = ctypes.CDLL(ctypes.util.find_library("m"))
_ONE = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor ilogb lgamma log log10 "
    "log1p log2 logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc"
)
_TWO = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"
_EXACT = "ceil fabs floor ilogb logb nearbyint rint round sqrt trunc copysign fdim fmax fmin fmod nextafter remainder"
_SPECIAL = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.0, -2.0, 3.0, -3.0, 4.0, 1e-40, -1e-40,
    1e-45, 5e-324, -5e-324, 1e-310, 3e38, -3e38, 1.7e308, -1.7e308, 1e10, -1e10, 1e22, 88.7, -103.9, 709.7, -745.1,
    171.6, -170.5, 10.0, 0.1, 1 - 2.0**-24, 1 + 2.0**-23,
]


@pytest.mark.parametrize("kind", [f32, f64], ids=str)
@pytest.mark.parametrize("name", [*_ONE.split(), *_TWO.split()])
def test_special_values(name: str, kind: Any, rng: np.random.Generator) -> None:
    """Zeros with their signs, infinities, NaNs, subnormal and the largest numbers, as the C library has them."""
    dtype = _NUMPY[kind]
    with np.errstate(all="ignore"):
        special = np.array(_SPECIAL).astype(dtype)
        sizes = np.exp2(rng.uniform(-126, 127, 400)) * rng.choice([-1, 1], 400)
        numbers = np.concatenate([special, rng.standard_normal(400) * 100, sizes]).astype(dtype)
    if name in _ONE.split():
        arguments = [numbers]
    else:
        pairs = np.array(list(itertools.product(special, special)), dtype)
        arguments = [
            np.concatenate([pairs[:, 0], numbers, numbers]),
            np.concatenate([pairs[:, 1], rng.permutation(numbers), numbers * dtype(0.25)]),
        ]
    reference = getattr(_LIBRARY, name + "f" * (kind is f32))
    reference.argtypes = [ctypes.c_float if kind is f32 else ctypes.c_double] * len(arguments)
    reference.restype = ctypes.c_int if name == "ilogb" else reference.argtypes[0]
    function = getattr(math, name)
    got = _apply((lambda v: function(v).to(v.type)) if name == "ilogb" else function, kind, *arguments)
    wanted = np.array([reference(*map(float, row)) for row in zip(*arguments)]).astype(dtype)
    same = (got == wanted) & ((np.signbit(got) == np.signbit(wanted)) | (name in ("fmax", "fmin")))
    same |= np.isnan(got) & np.isnan(wanted)
    if name not in _EXACT.split():
        with np.errstate(all="ignore"):
            error = np.abs(got.astype(np.longdouble) - wanted) / np.spacing(np.abs(wanted))
            same |= (error <= 24) & (np.signbit(got) == np.signbit(wanted))
            if name == "lgamma":
                same |= np.abs(got - wanted) <= 2.0**-48 * np.maximum(1, np.abs(wanted))
    assert [tuple(map(float, row)) for row in zip(*arguments, got, wanted, same) if not row[-1]] == []


def _compositions(x: Any) -> dict[str, Any]:
    """What must give back ``x``, or 0, through functions of more than one result."""
    fraction, exponent = math.frexp(x)
    part, whole = math.modf(x)
    rest, count = math.remquo(x, 0.75)
    sine, cosine = math.sincos(x)
    return {
        "frexp": math.ldexp(fraction, exponent), "scalbn": math.scalbn(math.ldexp(x, -70), 70), "modf": part + whole,
        "remquo": math.fma(count.to(x.type), 0.75, rest), "sincos": math.sin(x) - sine + (math.cos(x) - cosine) + x,
        "lround": x + (math.lround(x).to(x.type) - math.round(x)),
        "lrint": x + (math.lrint(x).to(x.type) - math.rint(x)),
    }


@pytest.mark.parametrize("kind", [f32, f64], ids=str)
@pytest.mark.parametrize("name", ["frexp", "scalbn", "modf", "remquo", "sincos", "lround", "lrint"])
def test_functions_of_several_results(name: str, kind: Any, rng: np.random.Generator) -> None:
    x = (rng.standard_normal(2000) * 1000).astype(_NUMPY[kind])
    np.testing.assert_array_equal(_apply(lambda v: _compositions(v)[name], kind, x), x)


def test_ldexp_rounds_once(rng: np.random.Generator) -> None:
    x = rng.standard_normal(2000)
    for n in (-1060, -1074, -1075, 1023, 1024, 2000, -3000):
        np.testing.assert_array_equal(
            _apply(lambda v, n=n: math.ldexp(v, n), f64, x), np.array([_ldexp(v, n) for v in x])
        )


def _ldexp(x: float, n: int) -> float:
    try:
        return pymath.ldexp(x, n)
    except OverflowError:
        return pymath.copysign(pymath.inf, x)


def test_predicates() -> None:
    x = np.array(_SPECIAL)
    for name, exact in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite), ("signbit", np.signbit)):
        got = _apply(lambda v, name=name: getattr(math, name)(v).to(f64), f64, x)
        np.testing.assert_array_equal(got, exact(x))


# ---------------------------------------------------------------------------------------------------------------------
# Mistakes, exports, the assembler


def _number(x: Ptr[f32]):
    math.exp(2.0)


def _integer(n: u32, x: Ptr[f32]):
    math.exp(n)


def _wide(x: Ptr[f64]):
    math.tanh_approx(x[0])


def _unsigned_exponent(n: u32, x: Ptr[f64]):
    math.ldexp(x[0], n)


_MISUSE = {
    _number: (
        "`exp` of the float 2.0", "math.exp(2.0)",
        "of Python numbers Python's `math` has it, of others `reg(f32, 1.5)`",
    ),
    _integer: ("`exp` of u32, and it is of f32 and f64", "math.exp(n)", "`n.to(f64)`"),
    _wide: ("`tanh_approx` of f64, and it is of f32", "math.tanh_approx(x[0])", "`tanh(v)` takes f64"),
    _unsigned_exponent: ("`ldexp` by an exponent of u32", "math.ldexp(x[0], n)", "`n.to(s32)`"),
}


@pytest.mark.parametrize("function", _MISUSE, ids=lambda function: function.__name__)
def test_misuse(function: Any) -> None:
    assert said(refused(function), function) == ("PtxTypeError", *_MISUSE[function])


def test_exports() -> None:
    assert len(set(math.__all__)) == len(math.__all__)
    assert all(getattr(math, name).__doc__ for name in math.__all__)
    c_has = {*_ONE.split(), *_TWO.split(), "fma", "frexp", "ldexp", "lrint", "lround", "modf", "remquo", "scalbn"}
    assert c_has <= set(math.__all__)


_ARGUMENTS = {"fma": 3, "clamp": 3, "pow_approx": 2, "remquo": 2, **dict.fromkeys(_TWO.split(), 2)}


@pytest.mark.ptxas
@pytest.mark.parametrize("arch", ["sm_75", "sm_100a"])
@pytest.mark.parametrize("kind", [f16, f32, f64], ids=str)
def test_ptxas_takes_everything(arch: str, kind: Any) -> None:
    @ptx_kernel
    def functions(x: Ptr[kind]):
        for at, name in enumerate(math.__all__):
            if (kind is f64 and name.endswith("_approx")) or (kind is f16 and name in ("fma", "clamp")):
                continue
            i = ptx.tid.x + 64 * at
            given = [x[i + k] for k in range(_ARGUMENTS.get(name, 1))]
            result = getattr(math, name)(*given, *([3] if name in ("ldexp", "scalbn") else []))
            for each in result if isinstance(result, tuple) else [result]:
                x[i] = (each.to(u32) if each.type is pred else each).to(kind)

    assert functions.cubin(arch=arch)[:4] == b"\x7fELF"
