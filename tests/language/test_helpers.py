"""The helpers ptxdsl.warp, .block and .math, run on the emulator, against numpy and float64."""

from __future__ import annotations

import doctest
import itertools
import math as pymath
import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tracing_helpers import refused, said

import ptxdsl.block
import ptxdsl.math
import ptxdsl.warp
from ptxdsl import Ptr, bf16, f16, f32, f64, maximum, minimum, ptx, ptx_kernel, s32, s64, u16, u32, u64, use, when
from ptxdsl import block, math, warp

_NUMPY = {
    u16: np.uint16, u32: np.uint32, s32: np.int32, u64: np.uint64, s64: np.int64, f16: np.float16,
    bf16: ml_dtypes.bfloat16, f32: np.float32, f64: np.float64,
}


def _data(rng: np.random.Generator, kind: Any, count: int) -> np.ndarray:
    """Small whole numbers, so that sums are exact in every type."""
    low = -4 if kind in (s32, s64, f16, bf16, f32, f64) else 0
    return rng.integers(low, 5, count).astype(_NUMPY[kind])


def _run(kernel: Any, blocks: int, threads: Any, *arguments: Any, **constants: Any) -> None:
    with use("emulator"):
        kernel[blocks, threads](*arguments, **constants)


# ---------------------------------------------------------------------------------------------------------------------
# Warp


@pytest.mark.parametrize("kind", _NUMPY, ids=str)
@pytest.mark.parametrize("width", [2, 4, 8, 16, 32])
def test_warp_reduce(kind: Any, width: int, rng: np.random.Generator) -> None:
    @ptx_kernel
    def kernel(x: Ptr[kind], total: Ptr[kind], most: Ptr[kind], least: Ptr[kind]):
        i = ptx.tid.x
        total[i] = warp.reduce_sum(x[i], width)
        most[i] = warp.reduce(maximum, x[i], width)
        least[i] = warp.reduce_min(x[i], width)

    x = _data(rng, kind, 64)
    got = [np.full(64, 99, x.dtype) for _ in range(3)]
    _run(kernel, 1, 64, x, *got)
    rows = x.astype(np.float64).reshape(-1, width)
    for found, expected in zip(got, (rows.sum(1), rows.max(1), rows.min(1))):
        np.testing.assert_array_equal(found.astype(np.float64), np.repeat(expected, width))


@pytest.mark.parametrize("kind", [u16, u32, s64, f32, f64, bf16], ids=str)
@pytest.mark.parametrize("width", [4, 32])
def test_warp_scan(kind: Any, width: int, rng: np.random.Generator) -> None:
    @ptx_kernel
    def kernel(x: Ptr[kind], inclusive: Ptr[kind], exclusive: Ptr[kind]):
        i = ptx.tid.x
        inclusive[i] = warp.scan(operator.add, x[i], width=width)
        exclusive[i] = warp.scan(operator.add, x[i], exclusive=True, initial=0, width=width)

    x = _data(rng, kind, 32)
    inclusive, exclusive = np.full(32, 99, x.dtype), np.full(32, 99, x.dtype)
    _run(kernel, 1, 32, x, inclusive, exclusive)
    rows = x.astype(np.float64).reshape(-1, width)
    np.testing.assert_array_equal(inclusive.astype(np.float64).reshape(-1, width), rows.cumsum(1))
    np.testing.assert_array_equal(exclusive.astype(np.float64).reshape(-1, width), rows.cumsum(1) - rows)


def test_scan_keeps_the_order_of_the_lanes(rng: np.random.Generator) -> None:
    """An operation that does not commute: of two numbers take the first that is not 0, in 8 bits each."""

    def first(a: Any, b: Any) -> Any:
        return ptx.selp.b32(a, b, a != 0)

    @ptx_kernel
    def kernel(x: Ptr[u32], y: Ptr[u32], z: Ptr[u32]):
        i = ptx.tid.x
        y[i] = warp.scan(first, x[i])
        z[i] = block.scan(first, x[i])

    x = (rng.integers(0, 3, 96) * rng.integers(0, 2, 96) * np.arange(96)).astype(np.uint32)
    y, z = np.full(96, 99, np.uint32), np.full(96, 99, np.uint32)
    _run(kernel, 1, 96, x, y, z)
    expected = [list(itertools.accumulate(row, lambda a, b: a or b)) for row in x.reshape(-1, 32).tolist()]
    assert y.reshape(-1, 32).tolist() == expected
    assert z.tolist() == list(itertools.accumulate(x.tolist(), lambda a, b: a or b))


@pytest.mark.parametrize("kind", [u16, f16, f32, f64, u64], ids=str)
def test_warp_shuffles(kind: Any, rng: np.random.Generator) -> None:
    @ptx_kernel
    def kernel(x: Ptr[kind], y: Ptr[kind], source: Ptr[u32]):
        i = ptx.tid.x
        v = x[i]
        results = (
            warp.shuffle(v, source[i]), warp.shuffle_xor(v, 5), warp.shuffle_up(v, 3), warp.shuffle_down(v, 3, 16),
            warp.broadcast(v, 9), warp.broadcast(v, 1, width=8),
        )
        for row, result in enumerate(results):
            y[i + 32 * row] = result

    lanes = np.arange(32)
    x, source = rng.integers(0, 2**15, 32).astype(_NUMPY[kind]), rng.permutation(32).astype(np.uint32)
    y = np.full(6 * 32, 99, x.dtype)
    _run(kernel, 1, 32, x, y, source)
    sources = (
        source, lanes ^ 5, np.where(lanes < 3, lanes, lanes - 3), np.where(lanes % 16 > 12, lanes, lanes + 3),
        np.full(32, 9), lanes // 8 * 8 + 1,
    )
    np.testing.assert_array_equal(y.reshape(6, 32), np.stack([x[where] for where in sources]))


def test_shuffle_of_a_predicate_and_lane() -> None:
    @ptx_kernel
    def kernel(y: Ptr[u32]):
        swapped = warp.shuffle_xor(ptx.tid.x > 7, 31)
        y[ptx.tid.x] = swapped.to(u32) * 100 + warp.lane()

    y = np.full(32, 99, np.uint32)
    _run(kernel, 1, 32, y)
    assert y.tolist() == [100 * (31 - lane > 7) + lane for lane in range(32)]


def test_32_bits_are_one_shuffle() -> None:
    from tracing_helpers import ptx as lines

    def kernel(x: Ptr[f32]):
        x[0] = warp.reduce(operator.add, x[0])

    text = lines(kernel)
    assert sum(line.startswith("shfl.sync.bfly.b32") for line in text) == 5
    assert sum(line.startswith("add.f32") for line in text) == 5
    assert len(text) == 2 + 10 + 1


# ---------------------------------------------------------------------------------------------------------------------
# Block


@pytest.mark.parametrize("shape", [32, 64, 96, 160, 256, 1024, (8, 8, 1), (4, 6, 4)], ids=str)
@pytest.mark.parametrize("known", [True, False])
def test_block_reduce(shape: Any, known: bool, rng: np.random.Generator) -> None:
    threads = int(np.prod(shape))

    @ptx_kernel
    def kernel(x: Ptr[f32], total: Ptr[f32], most: Ptr[f32], chosen: Ptr[f32], index: Ptr[u32]):
        i = block.thread()
        at = ptx.ctaid.x * block.size() + i
        size = threads if known else None
        total[at] = block.reduce_sum(x[at], size)
        most[at] = block.reduce(maximum, x[at], size)
        chosen[at] = block.broadcast(x[at], threads // 2)
        index[at] = i

    x = _data(rng, f32, 2 * threads) + rng.permutation(2 * threads).astype(np.float32)
    total, most, chosen = (np.full(2 * threads, np.nan, np.float32) for _ in range(3))
    index = np.full(2 * threads, 9999, np.uint32)
    _run(kernel, 2, shape, x, total, most, chosen, index)
    rows = x.reshape(2, threads)
    np.testing.assert_array_equal(total, np.repeat(rows.sum(1, dtype=np.float64), threads).astype(np.float32))
    np.testing.assert_array_equal(most, np.repeat(rows.max(1), threads))
    np.testing.assert_array_equal(chosen, np.repeat(rows[:, threads // 2], threads))
    assert sorted(index[:threads].tolist()) == list(range(threads))


@pytest.mark.parametrize("kind", _NUMPY, ids=str)
def test_block_types(kind: Any, rng: np.random.Generator) -> None:
    @ptx_kernel
    def kernel(x: Ptr[kind], total: Ptr[kind], least: Ptr[kind], running: Ptr[kind], before: Ptr[kind]):
        i = ptx.tid.x
        total[i] = block.reduce_sum(x[i], 96)
        least[i] = block.reduce_min(x[i], 96)
        running[i] = block.scan(operator.add, x[i], 96)
        before[i] = block.scan(operator.add, x[i], 96, exclusive=True, initial=0)

    x = _data(rng, kind, 96)
    if kind is bf16:
        x = np.ones(96, x.dtype)
    got = [np.full(96, 99, x.dtype) for _ in range(4)]
    _run(kernel, 1, 96, x, *got)
    exact = x.astype(np.float64)
    expected = (np.full(96, exact.sum()), np.full(96, exact.min()), exact.cumsum(), exact.cumsum() - exact)
    for found, wanted in zip(got, expected):
        np.testing.assert_array_equal(found.astype(np.float64), wanted)


@pytest.mark.parametrize("threads", [32, 96, 1024])
def test_block_scan_of_maxima(threads: int, rng: np.random.Generator) -> None:
    @ptx_kernel
    def kernel(x: Ptr[s32], y: Ptr[s32]):
        y[ptx.tid.x] = block.scan(maximum, x[ptx.tid.x])

    x, y = rng.integers(-(2**31), 2**31, threads).astype(np.int32), np.zeros(threads, np.int32)
    _run(kernel, 1, threads, x, y)
    np.testing.assert_array_equal(y, np.maximum.accumulate(x))


def test_block_helpers_in_a_loop(rng: np.random.Generator) -> None:
    """Shared memory is used again in each iteration: the barriers keep the iterations apart."""
    from ptxdsl import loop

    @ptx_kernel
    def kernel(x: Ptr[f32], y: Ptr[f32], rows: u32):
        with loop(rows) as row:
            y[row * 128 + ptx.tid.x] = block.reduce_sum(x[row * 128 + ptx.tid.x], 128)

    x = _data(rng, f32, 5 * 128)
    y = np.full(5 * 128, np.nan, np.float32)
    _run(kernel, 1, 128, x, y, 5)
    np.testing.assert_array_equal(y, np.repeat(x.reshape(5, 128).sum(1), 128))


def _no_function(x: Ptr[f32]):
    warp.reduce(x[0], maximum)


def _no_value(x: Ptr[f32]):
    warp.reduce(maximum, 1.0)


def _wrong_width(x: Ptr[f32]):
    warp.reduce(maximum, x[0], 12)


def _no_initial(x: Ptr[f32]):
    warp.scan(maximum, x[0], exclusive=True)


def _odd_block(x: Ptr[f32]):
    block.reduce(maximum, x[0], threads=100)


def _large_block(x: Ptr[f32]):
    block.scan(maximum, x[0], 2048)


def _predicate(x: Ptr[f32]):
    block.broadcast(x[0] < 1.0)


def _number(x: Ptr[f32]):
    math.exp(2.0)


def _integer(n: u32, x: Ptr[f32]):
    math.exp(n)


def _wide(x: Ptr[f64]):
    math.tanh(x[0])


_THREADS = "a multiple of 32 up to 1024, known while tracing: `threads=256`; leave it out if the launch decides"
_MISUSE = {
    _no_function: (
        "the operation is a run-time f32, no function", "warp.reduce(x[0], maximum)", "`reduce(maximum, v)`",
    ),
    _no_value: ("the lanes' value is the float 1.0", "warp.reduce(maximum, 1.0)", "give a Value: `reduce(maximum, v)`"),
    _wrong_width: (
        "the int 12 is no segment of a warp", "warp.reduce(maximum, x[0], 12)", "2, 4, 8, 16 or 32 lanes",
    ),
    _no_initial: (
        "an exclusive scan has no first value", "warp.scan(maximum, x[0], exclusive=True)",
        "give the neutral element: `initial=0`",
    ),
    _odd_block: ("a block of the int 100 threads", "block.reduce(maximum, x[0], threads=100)", _THREADS),
    _large_block: ("a block of the int 2048 threads", "block.scan(maximum, x[0], 2048)", _THREADS),
    _predicate: (
        "the threads' value is a predicate", "block.broadcast(x[0] < 1.0)",
        "give a number: `select(p, 1, 0)`, `p.to(u32)`",
    ),
    _number: ("`exp` of the float 2.0", "math.exp(2.0)", "of Python numbers Python's `math` has it"),
    _integer: ("`exp` of u32, and it is of f32 and f64", "math.exp(n)", "`v.to(f32)`"),
    _wide: ("`tanh` of f64, and it is of f32", "math.tanh(x[0])", "`v.to(f32)`"),
}


@pytest.mark.parametrize("function", _MISUSE, ids=lambda function: function.__name__)
def test_misuse(function: Any) -> None:
    assert said(refused(function), function) == ("PtxTypeError", *_MISUSE[function])


# ---------------------------------------------------------------------------------------------------------------------
# Mathematics

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
    _run(one if len(arguments) == 1 else two, (count + 255) // 256, 256, count, *arguments, result)
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


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_circular_functions_far_out(name: str, rng: np.random.Generator) -> None:
    near = (np.arange(1, _COUNT) * (np.pi / 2)).astype(np.float32)
    x = np.concatenate([near, rng.uniform(-(2.0**30), 2.0**30, _COUNT).astype(np.float32), rng.uniform(1e5, 1e12, 999)])
    x = x.astype(np.float32)
    exact = getattr(np, name)(x.astype(np.longdouble))
    assert _error(_apply(getattr(math, name), f32, x), exact) <= 2
    beyond = np.array([2.0**40, -(2.0**60), np.inf, -np.inf, np.nan, 3e38], np.float32)
    assert np.isnan(_apply(getattr(math, name), f32, beyond)).all()


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


@pytest.mark.parametrize("module", [ptxdsl.warp, ptxdsl.block, ptxdsl.math], ids=lambda module: module.__name__)
def test_doctests_and_exports(module: Any) -> None:
    outcome = doctest.testmod(module)
    assert outcome.failed == 0
    assert outcome.attempted
    assert sorted(module.__all__) == module.__all__
    assert all(getattr(module, name).__doc__ for name in module.__all__ if callable(getattr(module, name)))


@pytest.mark.ptxas
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100a"])
def test_ptxas_takes_everything(arch: str) -> None:
    @ptx_kernel
    def functions(x: Ptr[f32], h: Ptr[f16], d: Ptr[f64]):
        for at, name in enumerate(math.__all__):
            function, i = getattr(math, name), ptx.tid.x + 64 * at
            count = {"fma": 3, "clamp": 3, "pow": 2, "pow_approx": 2}.get(name, 1)
            x[i] = function(*[x[i + k] for k in range(count)])
            if name not in ("fma", "clamp"):
                h[i] = function(*[h[i + k] for k in range(count)])
            if name in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sigmoid", "silu"):
                d[i] = function(d[i])

    @ptx_kernel
    def collective(a: Ptr[u16], b: Ptr[s32], c: Ptr[f16], d: Ptr[bf16], e: Ptr[f32], f: Ptr[u64], g: Ptr[f64]):
        for p in (a, b, c, e, f, g) if arch == "sm_75" else (a, b, c, d, e, f, g):  # bf16 begins with sm_80
            i = ptx.tid.x
            p[i] = warp.reduce_sum(p[i]) + warp.broadcast(p[i], 3)
            p[i] = warp.scan(operator.add, p[i], exclusive=True, initial=0)
            p[i] = block.reduce_sum(p[i]) + block.broadcast(p[i]) + block.reduce_sum(p[i], 96)
            p[i] = block.scan(operator.add, p[i], 64)

    for kernel in (functions, collective):
        assert kernel.cubin(arch=arch)[:4] == b"\x7fELF"
