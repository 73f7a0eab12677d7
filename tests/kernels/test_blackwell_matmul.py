"""Products by tcgen05 against float64: ragged shapes, ways of storing, pairs, types, epilogues, schedules."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np
import product_checks
import pytest
from product_checks import made

from ptxdsl import bf16, e4m3, f16, f32, math, maximum
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.kernels.blackwell.matmul import Kind, Plan, kernel_of, matmul

E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16
PLANS = [Plan(128, 2, True), Plan(128, 2, False), Plan(256, 3, True), Plan(256, 3, False)]


def check(*arrays: Any, **options: Any) -> None:
    product_checks.check(matmul, *arrays, **options)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_ragged_shapes(rng: np.random.Generator, dtype: Any, turned: tuple[bool, bool]) -> None:
    for m, n, k in ((1, 8, 1), (136, 264, 72), (264, 24, 200)):
        a, b = made(rng, dtype, m, k, turned[0]), made(rng, dtype, k, n, turned[1])
        check(a, b, np.empty((m, n), dtype), plan=PLANS[0], processors=2)


@pytest.mark.parametrize("plan", PLANS)
def test_plans(rng: np.random.Generator, plan: Plan) -> None:
    """Several tiles a block, so that both buffers of sums are used again."""
    m, n = 520, plan.columns + 40
    check(made(rng, BF16, m, 136), made(rng, BF16, 136, n, True), np.empty((m, n), BF16), plan=plan, processors=2)
    a, b = made(rng, np.float16, 77, 9), made(rng, np.float16, 9, n)
    check(a, b, np.empty((77, n), np.float32), plan=plan)
    check(a, b, np.empty((77, n + 3), np.float32)[:, :n], plan=plan)
    out = np.full((77, n - 1), np.nan, np.float16)  # which tensor copies cannot store
    assert matmul(a, b[:, 1:], out=out, plan=plan, backend="emulator") is out
    assert np.allclose(out.astype(np.float64), a.astype(np.float64) @ b[:, 1:].astype(np.float64), rtol=2e-3, atol=4e-3)


@pytest.mark.parametrize("kinds", [(E4M3, E4M3), (E5M2, E4M3)])
def test_eight_bits(rng: np.random.Generator, kinds: tuple[Any, Any]) -> None:
    for n, k, turned in ((48, 336, True), (33, 129, True), (80, 96, False)):
        a, b = made(rng, kinds[0], 144, k, not turned), made(rng, kinds[1], k, n, turned)
        check(a, b, np.empty((144, n), np.float32), plan=PLANS[2], scale=0.37)


def test_epilogues(rng: np.random.Generator) -> None:
    a, b, bias = made(rng, np.float16, 72, 88), made(rng, np.float16, 88, 136), rng.standard_normal(136).astype(BF16)
    for out in (np.empty((72, 136), np.float32), np.empty((72, 136), np.float16)):
        relu = {"activation": _relu, "reference": lambda x: np.maximum(x, 0)}
        check(a, b, out, plan=PLANS[1], bias=bias, scale=-0.5, **relu)
    check(a, b[:, :131], np.empty((72, 131), np.float32), plan=PLANS[0], bias=bias[:131].copy(), **relu)


def _relu(x: Any) -> Any:
    return maximum(x, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_any_schedule(seed: int) -> None:
    _fuzz(np.random.default_rng([int(os.environ["TEST_SEED"]), seed]), seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20))
def test_many_schedules(seed: int) -> None:
    _fuzz(np.random.default_rng([int(os.environ["TEST_SEED"]), 1, seed]), seed)


def _fuzz(rng: np.random.Generator, seed: int) -> None:
    plan = PLANS[int(rng.integers(len(PLANS)))]
    m, n, k = (int(rng.integers(1, most)) for most in (300, 300, 150))
    a, b = (made(rng, BF16, *shape, bool(rng.integers(2))) for shape in ((m, k), (k, n)))
    check(a, b, np.empty((m, n), BF16), plan=plan, processors=int(rng.integers(2, 5)), seed=seed)


@pytest.mark.parametrize("plan", PLANS[:2])
def test_under_the_sanitizer(rng: np.random.Generator, plan: Plan) -> None:
    a, b = made(rng, BF16, 264, 200), made(rng, BF16, 200, 72, True)
    check(a, b, np.empty((264, 72), BF16), plan=plan, processors=2, sanitize="all", seed=3)


@pytest.mark.ptxas
@pytest.mark.parametrize("kind", [
    Kind(bf16, bf16, bf16, (False, False), Plan()), Kind(f16, f16, f32, (True, True), Plan(256, 4, False)),
    Kind(e4m3, e4m3, bf16, (False, True), Plan(), f32, math.silu_approx),
])
def test_the_assembler_adds_nothing(kind: Kind) -> None:
    """No advice (C75xx), no spills, and shared memory for a block."""
    kernel = kernel_of(kind)
    assembled = assemble_module(kernel.ptx(), "sm_100a", options=("-v",))
    found = assembled.attributes(kernel.entry)
    assert "C75" not in assembled.log
    assert (found.spill_store_bytes, found.local_size_bytes) == (0, 0)
    assert kind.plan.shared + found.shared_size_bytes <= 232448
