"""Products with scales of blocks against float64: formats, ragged shapes, ways of storing, epilogues, schedules."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import LaunchError, bf16, e2m1x2, e4m3, e5m2, f16, f32, ue8m0
from ptxdsl.config import override
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.kernels import linalg
from ptxdsl.kernels.blackwell import scaled
from ptxdsl.kernels.blackwell.matmul import Kind, Plan

E8M0, E4M3, E5M2 = ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
FP4 = np.concatenate([FP4, -FP4])
"""What the codes of e2m1 stand for."""
MX, NV = 32, 16


def elements(rng: np.random.Generator, kind: Any, rows: int, depth: int) -> tuple[Any, Any]:
    """Random elements, rows of them packed where ``kind`` is None, and what they stand for."""
    if kind is not None:
        made = rng.standard_normal((rows, depth)).astype(kind)
        return made, made.astype(np.float64)
    codes = rng.integers(0, 16, (rows, depth)).astype(np.uint8)
    return codes[:, ::2] | codes[:, 1::2] << 4, FP4[codes]


def factors(rng: np.random.Generator, block: int, rows: int, depth: int) -> tuple[Any, Any]:
    """Random scales, of e8m0 or e4m3, and the number that each element of a row is multiplied by."""
    shape = rows, -(-depth // block)
    codes = rng.integers(118, 136, shape).astype(np.uint8)
    made = codes.view(E8M0) if block == MX else np.abs(rng.standard_normal(shape)).astype(E4M3)
    values = 2.0 ** (codes - 127.0) if block == MX else made.astype(np.float64)
    return made, values.repeat(block, 1)[:, :depth]


def check(
    rng: np.random.Generator, size: tuple[int, int, int], kinds: tuple[Any, Any] = (E4M3, E4M3), block: int = MX,
    *, dtype: Any = np.float32, bias: Any = None, blocked: bool = False, turned: tuple[bool, bool] = (False, False),
    alpha: float = 1.0, **options: Any,
) -> None:
    """Sums of f32 of products that are exact; ``turned`` stores a with contiguous columns, b with contiguous rows.

    tcgen05 cuts terms of an instruction below 2^-24 of the largest (of packed elements less); a result is rounded once.
    """
    m, n, k = size
    (a, left), (b, right) = elements(rng, kinds[0], m, k), elements(rng, kinds[1], n, k)
    (scale_a, by_a), (scale_b, by_b) = factors(rng, block, m, k), factors(rng, block, n, k)
    left, right = left * by_a * alpha, right * by_b
    expected, around = left @ right.T, np.abs(left) @ np.abs(right.T)
    if bias is not None:
        expected = expected + bias.astype(np.float64)
    scales = [linalg.to_blocked(scale_a), linalg.to_blocked(scale_b).reshape(-1)] if blocked else [scale_a, scale_b.T]
    out = np.full((m, n), np.nan, dtype)
    a = np.asfortranarray(a) if turned[0] else a
    b = np.ascontiguousarray(b.T) if turned[1] else b.T
    assert linalg.scaled_matmul(a, b, *scales, bias=bias, alpha=alpha, out=out, **options) is out
    unit = {np.dtype(np.float32): 0.0, np.dtype(np.float16): 2.0**-11}.get(np.dtype(dtype), 2.0**-8)
    bound = (k / 16 + 4) * 2.0**-23 * around + 2 * unit * np.abs(expected) + 2.0 ** (-25 if unit == 2.0**-11 else -40)
    assert (np.abs(out.astype(np.float64) - expected) <= bound).all()


def test_formats(rng: np.random.Generator) -> None:
    check(rng, (140, 136, 200))
    check(rng, (140, 300, 544), (None, None), NV)
    check(rng, (3, 5, 70), (None, None))


def test_ragged_shapes(rng: np.random.Generator) -> None:
    """One kernel; with scales as they are given, and in pieces."""
    plan = Plan(128, 2, True)
    for size in ((1, 1, 1), (257, 8, 31), (129, 130, 129), (300, 200, 288)):
        check(rng, size, plan=plan, blocked=size[0] > 256, processors=2)


def test_ways_of_storing(rng: np.random.Generator) -> None:
    check(rng, (140, 48, 160), (E5M2, E4M3), turned=(True, True))


def test_epilogues(rng: np.random.Generator) -> None:
    bias = rng.standard_normal(72).astype(ml_dtypes.bfloat16)
    check(rng, (40, 72, 64), dtype=ml_dtypes.bfloat16, bias=bias, alpha=-0.5)
    check(rng, (40, 71, 64), dtype=np.float16, alpha=2.0**-9)  # which tensor copies cannot store


def test_without_an_array_for_the_result(rng: np.random.Generator) -> None:
    a, scales = np.ones((3, 32), np.uint8) * 0x22, np.full((3, 4), 0x38, np.uint8).view(E4M3)
    made = linalg.scaled_matmul(a, a[:2].T, scales, scales[:2].T, dtype=bf16)
    assert made.dtype == ml_dtypes.bfloat16 and (made == 64).all()


@pytest.mark.parametrize("seed", range(2))
def test_any_schedule(seed: int) -> None:
    _fuzz(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20))
def test_many_schedules(seed: int) -> None:
    _fuzz(100 + seed)


def _fuzz(seed: int) -> None:
    rng = np.random.default_rng([int(os.environ["TEST_SEED"]), seed])
    four = bool(seed % 2)
    plan = Plan(128, 2, True, 1) if four else Plan(128, 2, True)
    m, n, k = (int(rng.integers(1, most)) for most in (400, 300, 500))
    kinds, block = ((None, None), NV) if four else ((E4M3, E4M3), MX)
    with override(seed=seed, backend="emulator"):
        check(rng, (m, n, k + k % 2), kinds, block, plan=plan, processors=int(rng.integers(2, 5)))


@pytest.mark.parametrize("block", [MX, NV])
def test_under_the_sanitizer(rng: np.random.Generator, block: int) -> None:
    kinds, plan = ((E4M3, E4M3), Plan(128, 2, True)) if block == MX else ((None, None), Plan(128, 2, True, 1))
    with override(sanitize="all", backend="emulator"):
        check(rng, (260, 140, 300), kinds, block, plan=plan, processors=2)


@pytest.mark.ptxas
@pytest.mark.parametrize(("types", "block", "scale_type", "rows", "turned"), [
    ((e4m3, e4m3, bf16), MX, ue8m0, 4096, False), ((e2m1x2, e2m1x2, bf16), NV, e4m3, 4096, False),
    ((e2m1x2, e2m1x2, f16), MX, ue8m0, 9, False), ((e5m2, e4m3, f32), MX, ue8m0, 9, True),
], ids=["mxfp8", "nvfp4", "mxfp4", "turned"])
def test_the_assembler_adds_nothing(types: Any, block: int, scale_type: Any, rows: int, turned: bool) -> None:
    """No advice (C75xx), no spills, and shared memory for a block."""
    plan, groups = scaled.choose(rows, types[0], block, turned), scaled.groups_of(types[0], block)
    kernel = scaled.kernel_of(Kind(*types, (turned, turned), plan, f32 if rows == 9 else None), block, scale_type)
    for arch in ("sm_100a", "sm_103a"):
        assembled = assemble_module(kernel.ptx(), arch, options=("-v",))
        found = assembled.attributes(kernel.entry)
        assert "C75" not in assembled.log
        assert (found.spill_store_bytes, found.local_size_bytes) == (0, 0)
        assert scaled.shared_bytes(plan, groups) + found.shared_size_bytes <= 232448
    assert plan.stages >= 3


def test_scales_in_pieces(rng: np.random.Generator) -> None:
    """The order of torch's SWIZZLE_32_4_4, written with views as torchao has it."""
    scales = rng.integers(0, 256, (130, 6)).astype(np.uint8)
    padded = np.zeros((256, 8), np.uint8)
    padded[:130, :6] = scales
    pieces = padded.reshape(2, 128, 2, 4).transpose(0, 2, 1, 3).reshape(-1, 4, 32, 4).swapaxes(1, 2)
    found = linalg.to_blocked(scales, np.full((2, 2, 512), 9, np.uint8))
    assert (found.reshape(-1) == pieces.reshape(-1)).all()
    assert (linalg.to_blocked(np.asfortranarray(scales)) == found).all()


def test_errors(rng: np.random.Generator) -> None:
    a, ones, four = np.ones((4, 64), E4M3), np.ones((4, 2), E8M0), np.ones((4, 32), np.uint8)
    cases: list[tuple[tuple[Any, ...], str]] = [
        ((a, four.T, ones, ones.T),
         "`a` has dtype float8_e4m3fn and `b` uint8; wanted are both of 8 bits or both of 4"),
        ((a, a.T, ones, ones),
         "`scale_b` has shape [4, 2] and dtype float8_e8m0fnu; wanted is [2, 4] of float8_e8m0fnu"),
        ((a, a.T, ones[0], ones.T),
         "`scale_a` has shape [2]; wanted is [4, 2], or [1, 1, 512] as `to_blocked` gives"),
        ((a, a.T, np.ones((4, 4), E4M3), ones.T),
         "the dtype of `scale_a` is 'float8_e4m3fn'; it can be 'float8_e8m0fnu' or 'uint8'"),
        ((four, four.T, np.ones((4, 4), E4M3), ones.T),
         "`scale_a` has dtype float8_e4m3fn and `scale_b` float8_e8m0fnu; wanted are scales of one kind"),
        ((a.astype(np.float16), a.T, ones, ones.T),
         "the dtype of `a` is 'float16'; it can be 'float8_e4m3fn' or 'float8_e5m2' or 'float4_e2m1fn_x2' or 'uint8'"),
    ]
    for given, message in cases:
        with pytest.raises(LaunchError) as caught:
            linalg.scaled_matmul(*given)
        assert caught.value.message == message


def test_other_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxdsl.kernels.linalg.scaled.capability", lambda backend: 0 if backend else 90)
    a, ones = np.ones((4, 64), E4M3), np.ones((4, 2), E8M0)
    with pytest.raises(LaunchError) as caught:
        linalg.scaled_matmul(a, a.T, ones, ones.T)
    assert caught.value.message == "scales of blocks need compute capability 10.0 or 10.3, and the GPU has 9.0"
    assert (linalg.scaled_matmul(a, a.T, ones, ones.T, backend="emulator") == 64).all()
