"""Products by wgmma against float64: ragged shapes, ways of storing, tiles, types, epilogues, schedules, errors."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np
import product_checks
import pytest
from product_checks import made

from ptxdsl import LaunchError, bf16, e4m3, f16, f32, math
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.kernels.hopper.matmul import TILES, Kind, Plan, choose, kernel_of, matmul

E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16
SMALL = Plan(128, 128, 2, 2)


def check(*arrays: Any, **options: Any) -> None:
    product_checks.check(matmul, *arrays, **options)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 8, 1), (136, 264, 72), (264, 24, 200)])
def test_ragged_shapes(
    rng: np.random.Generator, dtype: Any, turned: tuple[bool, bool], m: int, n: int, k: int
) -> None:
    a, b = made(rng, dtype, m, k, turned[0]), made(rng, dtype, k, n, turned[1])
    check(a, b, np.empty((m, n), dtype), plan=SMALL, processors=2)


@pytest.mark.parametrize("shape", [(1, 1, 1), (130, 37, 77), (3, 129, 9), (65, 7, 64)])
@pytest.mark.parametrize("result", [np.float16, np.float32])
def test_rows_at_any_address(rng: np.random.Generator, shape: tuple[int, int, int], result: Any) -> None:
    """Where tensor copies take neither a nor b, and cannot store c."""
    m, n, k = shape
    wide = np.empty((m, n + 3), result)[:, :n]
    check(made(rng, np.float16, m, k), made(rng, np.float16, k, n), wide, plan=SMALL)
    out = np.full((m, n), np.nan, result)
    a, b = made(rng, np.float16, m, k, True), made(rng, np.float16, k, n, True)
    assert matmul(a, b, out=out, plan=SMALL, backend="emulator") is out
    assert np.allclose(out.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=4e-3)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("blocks", [1, 2])
def test_tiles(rng: np.random.Generator, tile: tuple[int, int], blocks: int) -> None:
    """Several tiles a block, some beyond the edge, and fewer steps than stages."""
    plan = Plan(*tile, 3, blocks)
    m, n = 2 * tile[0] + 8, tile[1] + 40
    check(made(rng, BF16, m, 136), made(rng, BF16, 136, n, True), np.empty((m, n), BF16), plan=plan, processors=2)
    check(made(rng, np.float16, m, 8), made(rng, np.float16, 8, n), np.empty((m, n), np.float32), plan=plan)


@pytest.mark.parametrize("kinds", [(E4M3, E4M3), (E5M2, E5M2), (E4M3, E5M2)])
def test_eight_bits(rng: np.random.Generator, kinds: tuple[Any, Any]) -> None:
    for n, k, turned in ((40, 336, True), (33, 129, True), (72, 96, False)):
        a, b = made(rng, kinds[0], 70, k), made(rng, kinds[1], k, n, turned)
        for result in (BF16, np.float32):
            check(a, b, np.empty((70, n), result), plan=Plan(64, 256, 2), scale=0.37)
    assert matmul(a, b, plan=SMALL, backend="emulator").dtype == BF16


@pytest.mark.parametrize("kind", [np.float16, np.float32, BF16])
def test_epilogues(rng: np.random.Generator, kind: Any) -> None:
    a, b, bias = made(rng, np.float16, 72, 88), made(rng, np.float16, 88, 136), rng.standard_normal(136).astype(kind)
    out = np.empty((72, 136), np.float32)
    check(a, b, out, plan=SMALL, bias=bias)
    relu = {"activation": _relu, "reference": lambda x: np.maximum(x, 0)}
    check(a, b, out, plan=SMALL, bias=bias, scale=-0.5, **relu)
    check(a, b[:, :131], np.empty((72, 131), np.float32), plan=SMALL, bias=bias[:131].copy(), **relu)
    got = matmul(a, b, bias=bias, activation=math.silu, dtype=f32, plan=SMALL, backend="emulator").astype(np.float64)
    want = a.astype(np.float64) @ b.astype(np.float64) + bias.astype(np.float64)
    assert np.abs(got - want / (1 + np.exp(-want))).max() < 1e-4


def _relu(x: Any) -> Any:
    from ptxdsl import maximum

    return maximum(x, 0.0)


def test_special_values(rng: np.random.Generator) -> None:
    """What lies beyond k is 0 times what is there: infinities must not come near it."""
    a, b = np.full((9, 8), np.inf, np.float16), np.ones((8, 24), np.float16)
    assert (matmul(a, b, plan=SMALL, backend="emulator") == np.inf).all()
    a[3, 2] = np.nan
    got = matmul(a, b, plan=SMALL, backend="emulator")
    assert np.isnan(got[3]).all() and (np.delete(got, 3, 0) == np.inf).all()


@pytest.mark.parametrize("seed", range(3))
def test_any_schedule(rng: np.random.Generator, seed: int) -> None:
    _fuzz(np.random.default_rng([int(os.environ["TEST_SEED"]), seed]), seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20))
def test_many_schedules(seed: int) -> None:
    _fuzz(np.random.default_rng([int(os.environ["TEST_SEED"]), 1, seed]), seed)


def _fuzz(rng: np.random.Generator, seed: int) -> None:
    tile = list(TILES)[int(rng.integers(len(TILES)))]
    plan = Plan(*tile, int(rng.integers(2, 4)), int(rng.integers(1, 3)))
    m, n, k = (int(rng.integers(1, most)) for most in (300, 300, 150))
    a, b = (made(rng, BF16, *shape, bool(rng.integers(2))) for shape in ((m, k), (k, n)))
    check(a, b, np.empty((m, n), BF16), plan=plan, processors=int(rng.integers(2, 5)), seed=seed)


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("turned", [False, True])
def test_under_the_sanitizer(rng: np.random.Generator, blocks: int, turned: bool) -> None:
    a, b = made(rng, BF16, 264, 136, turned), made(rng, BF16, 136, 24, not turned)
    check(a, b, np.empty((264, 24), BF16), plan=Plan(64, 256, 2, blocks), processors=2, sanitize="all", seed=blocks)


@pytest.mark.ptxas
@pytest.mark.parametrize("kind", [
    Kind(bf16, bf16, bf16, (False, False), Plan(blocks=2)), Kind(f16, f16, f32, (True, True), Plan(256, 128, 4, 2)),
    Kind(e4m3, e4m3, bf16, (False, False), Plan(), f32, math.silu_approx),
    Kind(f16, f16, f16, (False, True), Plan(64, 256, 4)),
    Kind(bf16, bf16, bf16, (False, False), Plan(128, 128, 6, 2), bf16, None, False),
])
def test_the_assembler_adds_nothing(kind: Kind) -> None:
    """No wait, fence or serialisation of its own (C75xx), no spills, and shared memory for a block."""
    kernel = kernel_of(kind)
    assembled = assemble_module(kernel.ptx(), "sm_90a", options=("-v",))
    found = assembled.attributes(kernel.entry)
    assert "C75" not in assembled.log
    assert (found.num_regs, found.spill_store_bytes, found.local_size_bytes) == (168, 0, 0)
    assert kind.plan.shared + found.shared_size_bytes <= 232448


def test_the_plan_takes_the_fewest_clocks() -> None:
    assert choose(8192, 8192, 132) == Plan(128, 256, 4, 2)
    assert choose(64, 33792, 132) == Plan(64, 256, 4, 1)
    assert choose(1024, 1024, 132) == Plan(128, 128, 6, 2)
    assert choose(1, 1, 1).blocks == 1


@pytest.mark.parametrize(("arguments", "options", "message"), [
    (((3, 8), (9, 4)), {}, "`b` has shape [9, 4] and dtype float16; wanted is [8, N] of float16"),
    (((3, 0), (0, 4)), {}, "a has shape [3, 0] and b [0, 4]; every extent must be 1 or more"),
    (((3, 8), (8, 4)), {"dtype": e4m3}, "dtype is e4m3; it can be f16, bf16 or f32"),
    (((3, 8), (8, 4)), {"processors": 0}, "processors is 0; it can be 1 to 65535"),
])
def test_errors(arguments: Any, options: Any, message: str) -> None:
    a, b = (np.zeros(shape, np.float16) for shape in arguments)
    with pytest.raises(LaunchError) as caught:
        matmul(a, b, **options)
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__


def test_errors_of_memory() -> None:
    a, whole = np.zeros((8, 8), np.float16), np.zeros((16, 8), np.float16)
    with pytest.raises(LaunchError, match="^`out` overlaps `b`"):
        matmul(a, whole[4:12], out=whole[:8])
