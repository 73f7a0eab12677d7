"""The helpers ptxdsl.warp, .block and .math, run on the emulator, against numpy and float64."""

from __future__ import annotations

import doctest
import itertools
import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tracing_helpers import refused, said

import ptxdsl.block
import ptxdsl.math
import ptxdsl.warp
from ptxdsl import Ptr, bf16, f16, f32, f64, maximum, ptx, ptx_kernel, s32, s64, u16, u32, u64
from ptxdsl import block, warp

_NUMPY = {
    u16: np.uint16, u32: np.uint32, s32: np.int32, u64: np.uint64, s64: np.int64, f16: np.float16,
    bf16: ml_dtypes.bfloat16, f32: np.float32, f64: np.float64,
}


def _data(rng: np.random.Generator, kind: Any, count: int) -> np.ndarray:
    """Small whole numbers, so that sums are exact in every type."""
    low = -4 if kind in (s32, s64, f16, bf16, f32, f64) else 0
    return rng.integers(low, 5, count).astype(_NUMPY[kind])


def _run(kernel: Any, blocks: int, threads: Any, *arguments: Any, **constants: Any) -> None:
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
}


@pytest.mark.parametrize("function", _MISUSE, ids=lambda function: function.__name__)
def test_misuse(function: Any) -> None:
    assert said(refused(function), function) == ("PtxTypeError", *_MISUSE[function])


# ---------------------------------------------------------------------------------------------------------------------
# All


@pytest.mark.parametrize("module", [ptxdsl.warp, ptxdsl.block], ids=lambda module: module.__name__)
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
    def collective(a: Ptr[u16], b: Ptr[s32], c: Ptr[f16], d: Ptr[bf16], e: Ptr[f32], f: Ptr[u64], g: Ptr[f64]):
        for p in (a, b, c, e, f, g) if arch == "sm_75" else (a, b, c, d, e, f, g):  # bf16 begins with sm_80
            i = ptx.tid.x
            p[i] = warp.reduce_sum(p[i]) + warp.broadcast(p[i], 3)
            p[i] = warp.scan(operator.add, p[i], exclusive=True, initial=0)
            p[i] = block.reduce_sum(p[i]) + block.broadcast(p[i]) + block.reduce_sum(p[i], 96)
            p[i] = block.scan(operator.add, p[i], 64)

    assert collective.cubin(arch=arch)[:4] == b"\x7fELF"
