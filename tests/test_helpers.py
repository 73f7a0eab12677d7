"""ptxdsl.warp and ptxdsl.block against numpy, for every type that they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxdsl import (
    Kernel, Ptr, bf16, block, dtype_of, f16, f32, f64, minimum, ptx, ptx_kernel, s32, s64, u16,
    u32, u64, use, warp,
)

TYPES = [u32, s32, f32, u64, s64, f64, u16, f16, bf16]


def add(a: Any, b: Any) -> Any:
    return a + b


def run(kind: Any, threads: int, helper: Callable[[Any], Any], x: Any, out_kind: Any = None) -> Any:
    """What each thread of one block gets of ``helper`` applied to its element of x."""

    @ptx_kernel
    def kernel(x: Ptr[kind], out: Ptr[kind]) -> None:
        out[ptx.tid.x] = helper(x[ptx.tid.x])

    assert isinstance(kernel, Kernel)
    out = np.full_like(x, 77)
    kernel.configure(1, threads, backend="emulator")(x, out)
    return out


def numbers(rng: np.random.Generator, kind: Any, count: int) -> Any:
    """Small integers: their sums are exact in every type."""
    low = 0 if kind.kind == "u" else -3
    return rng.integers(low, 4, count).astype(dtype_of(kind))


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_shuffles(rng: np.random.Generator, kind: Any) -> None:
    x = numbers(rng, kind, 32)
    lanes = np.arange(32)
    assert (run(kind, 32, lambda v: warp.shuffle(v, 31 - ptx.laneid), x) == x[::-1]).all()
    assert (run(kind, 32, lambda v: warp.shuffle_xor(v, 5), x) == x[lanes ^ 5]).all()
    assert (run(kind, 32, lambda v: warp.shuffle_up(v, 3), x) == x[np.where(lanes < 3, lanes, lanes - 3)]).all()
    assert (run(kind, 32, lambda v: warp.shuffle_down(v, 3), x) == x[np.where(lanes > 28, lanes, lanes + 3)]).all()
    assert (run(kind, 32, lambda v: warp.broadcast(v, 17), x) == x[17]).all()


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("threads", [32, 96, 256])
def test_reductions_and_scans(rng: np.random.Generator, kind: Any, threads: int) -> None:
    x = numbers(rng, kind, threads)
    exact = x.astype(np.float64)
    bf16_fits = kind is not bf16 or np.abs(exact.cumsum()).max() < 256
    if bf16_fits:
        assert (run(kind, threads, lambda v: block.reduce_sum(v, threads), x).astype(np.float64) == exact.sum()).all()
        got = run(kind, threads, lambda v: block.scan(add, v, threads), x)
        assert (got.astype(np.float64) == exact.cumsum()).all()
        got = run(kind, threads, lambda v: block.scan(add, v, threads, exclusive=True, initial=0), x)
        assert (got.astype(np.float64) == exact.cumsum() - exact).all()
    if kind is not bf16 and kind is not f16:
        assert (run(kind, threads, lambda v: block.reduce_max(v, threads), x) == x.max()).all()
        assert (run(kind, threads, lambda v: block.reduce_min(v, threads), x) == x.min()).all()
    assert (run(kind, threads, lambda v: block.broadcast(v, threads - 1), x) == x[-1]).all()


@pytest.mark.parametrize("width", [2, 4, 8, 16, 32])
def test_groups_of_lanes(rng: np.random.Generator, width: int) -> None:
    x = rng.integers(0, 1000, 32).astype(np.uint32)
    groups = x.reshape(-1, width)
    assert (run(u32, 32, lambda v: warp.reduce_sum(v, width), x) == groups.sum(1).repeat(width)).all()
    assert (run(u32, 32, lambda v: warp.reduce(minimum, v, width), x) == groups.min(1).repeat(width)).all()


def test_a_scan_keeps_the_order(rng: np.random.Generator) -> None:
    """x -> a x + b composed: associative, not commutative; a and b in the halves of a word, modulo 2^16."""
    x = rng.integers(0, 2**32, 128, np.uint32)

    def compose(first: Any, second: Any) -> Any:
        a, b = (first & 0xFFFF) * (second & 0xFFFF), (first >> 16) * (second & 0xFFFF) + (second >> 16)
        return (a & 0xFFFF) | (b << 16)

    expected, state = [], np.uint32(1)
    with np.errstate(over="ignore"):
        for element in x:
            state = compose(state, element)
            expected.append(state)
    assert (run(u32, 128, lambda v: block.scan(compose, v, 128), x) == np.array(expected)).all()
    shifted = np.array([np.uint32(1), *expected[:-1]])
    assert (run(u32, 128, lambda v: block.scan(compose, v, 128, exclusive=True, initial=1), x) == shifted).all()


def test_the_scratch_memory_may_be_used_again() -> None:
    """The same call in a loop: a thread ahead must not overwrite what one behind still reads."""

    @ptx_kernel
    def kernel(out: Ptr[u32]) -> None:
        total = ptx.tid.x
        for _ in range(3):
            total = block.reduce_sum(total, 64) & 0xFFF
        out[ptx.tid.x] = total

    out = np.zeros(64, np.uint32)
    with use("emulator"):
        kernel[1, 64](out)
    expected = np.arange(64)
    for _ in range(3):
        expected = np.full(64, expected.sum() & 0xFFF)
    assert (out == expected).all()
