"""Products of few rows against float64: ragged shapes, ways of storage, shares that end anywhere, schedules."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import LaunchError, bf16, e4m3, f16, f32
from ptxdsl import math as ptxmath
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.kernels import linalg
from ptxdsl.kernels.hopper import stream

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
UNITS = {np.dtype(np.float16): 2**-11, np.dtype(BF16): 2**-8, np.dtype(np.float32): 2**-24}


def check(
    rng: np.random.Generator, shape: tuple[int, int, int], dtype: Any = np.float16, other: Any = None, *,
    turned: bool = False, kind: Any = None, bias: bool = False, **options: Any,
) -> None:
    """A product into a matrix with surroundings that stay, within the rounding of its dtype and of sums in f32."""
    m, n, k = shape
    a, b = (rng.standard_normal(extents).astype(each) for extents, each in (((m, k), dtype), ((k, n), other or dtype)))
    if turned:
        b = np.ascontiguousarray(b.T).T
    kind = kind or (BF16 if np.dtype(dtype).itemsize == 1 else dtype)
    whole, scale = np.full((m + 2, n), np.nan, kind), -0.5
    added = rng.standard_normal(n).astype(np.float32) if bias else None
    stream.matmul(a, b, bias=added, scale=scale, out=whole[1:-1], backend="emulator", **options)
    a, b = a.astype(np.float64), b.astype(np.float64)
    want, around = scale * (a @ b) + (0 if added is None else added), np.abs(a) @ np.abs(b)
    allowed = 1.2 * (UNITS[np.dtype(kind)] * np.abs(want) + (k // 16 + 4) * 2**-22 * around) + 2**-24
    assert (np.abs(whole[1:-1].astype(np.float64) - want) <= allowed).all()
    assert np.isnan(whole[[0, -1]]).all()


def test_shapes(rng: np.random.Generator) -> None:
    """One block, as many as there are steps, and shares that end within tiles."""
    for m, n, k in ((1, 1, 1), (16, 256, 64), (5, 300, 500), (16, 600, 130)):
        for blocks in (1, 3, None):
            check(rng, (m, n, k), blocks=blocks)


@pytest.mark.parametrize(("rows", "dtype", "turned"), [(17, BF16, True), (32, np.float16, False), (50, BF16, False)])
def test_rows_and_ways(rng: np.random.Generator, rows: int, dtype: Any, turned: bool) -> None:
    for n, k in ((270, 200), (8, 700)):
        check(rng, (rows, n, k), dtype, turned=turned, kind=np.float32, bias=True, blocks=4)


def test_eight_bits(rng: np.random.Generator) -> None:
    check(rng, (13, 300, 400), E4M3, E5M2, blocks=3)
    check(rng, (3, 10, 130), E5M2, turned=True, kind=np.float32)


def test_any_strides(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((2, 300, 40)).astype(np.float16)
    for left in (a.T[:, 1:], a[:40].T, a[::7, ::-1]):
        right = b[: left.shape[1], 1:31]
        got = stream.matmul(left, right, dtype=f32)
        np.testing.assert_allclose(got, left.astype("f8") @ right.astype("f8"), atol=1e-4)


def test_activation(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((3, 70)).astype(np.float16), rng.standard_normal((70, 40)).astype(np.float16)
    got = stream.matmul(a, b, activation=ptxmath.tanh, dtype=f32)
    np.testing.assert_allclose(got, np.tanh(a.astype("f8") @ b.astype("f8")), atol=1e-5)


def test_of_the_library(rng: np.random.Generator) -> None:
    """A batch of rows is one product of them all; the same bits each time."""
    a, b = rng.standard_normal((2, 3, 4, 200)).astype(BF16), rng.standard_normal((200, 30)).astype(BF16)
    found = [linalg.matmul(a, b, activation="relu", tensor_cores="stream") for _ in range(2)]
    want = np.maximum(a.astype("f8") @ b.astype("f8"), 0)
    assert (found[0] == found[1]).all() and found[0].shape == (2, 3, 4, 30)
    np.testing.assert_allclose(found[0].astype("f8"), want, rtol=2**-8, atol=1e-4)


@pytest.mark.parametrize("seed", range(2))
def test_any_schedule(seed: int) -> None:
    _fuzz(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20))
def test_many_schedules(seed: int) -> None:
    _fuzz(100 + seed)


def _fuzz(seed: int) -> None:
    rng = np.random.default_rng([int(os.environ["TEST_SEED"]), seed])
    shape = int(rng.integers(1, 65)), int(rng.integers(1, 700)), int(rng.integers(1, 700))
    turned, blocks = bool(rng.integers(2)), int(rng.integers(1, 20))
    check(rng, shape, turned=turned, blocks=blocks, seed=seed)


def test_under_the_sanitizer(rng: np.random.Generator) -> None:
    check(rng, (17, 260, 70), blocks=3, sanitize="all", seed=1)


def test_errors() -> None:
    for rows, dtype, most in ((65, np.float16, 64), (17, E4M3, 16)):
        with pytest.raises(LaunchError) as caught:
            stream.matmul(np.ones((rows, 16), dtype), np.ones((16, 16), dtype))
        assert caught.value.message == f"a has {rows} rows; it can have {most} at most"


@pytest.mark.ptxas
@pytest.mark.parametrize("kind", [
    stream.Kind(bf16, bf16, bf16, 16, True), stream.Kind(f16, f16, f32, 64, False, f32),
    stream.Kind(f16, f16, f16, 32, True, bf16), stream.Kind(e4m3, e4m3, bf16, 16, False),
])
def test_the_assembler_adds_nothing(kind: stream.Kind) -> None:
    """No spills, no warning of its own, and shared memory for a block."""
    kernel = stream.kernel_of(kind)
    assembled = assemble_module(kernel.ptx(), "sm_90a", options=("-v",))
    found = assembled.attributes(kernel.entry)
    assert "C75" not in assembled.log
    assert (found.spill_store_bytes, found.local_size_bytes) == (0, 0)
    assert kind.stages * kind.nbytes + found.shared_size_bytes <= 232448
