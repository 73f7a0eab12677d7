"""Products with weights in GGUF's formats, and with activations of 8 bits, against float64."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gguf_blocks import random_blocks

import ptxdsl
from ptxdsl import LaunchError, bf16, f16, f32
from ptxdsl.kernels import q4k_int8, quant
from ptxdsl.kernels.gguf import FORMATS
from ptxdsl.kernels.q4k_int8 import quantize_kernel

BOUNDS = {np.dtype(np.float32): 1e-6, np.dtype(np.float16): 1e-3, np.dtype(ml_dtypes.bfloat16): 8e-3}
"""Relative to the sum of the magnitudes that are added up."""


def error(got: Any, x: Any, w: Any) -> float:
    x, w = x.astype(np.float64), w.astype(np.float64)
    return float(np.abs(got.astype(np.float64) - x @ w.T).max() / (np.abs(x) @ np.abs(w).T).max())


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("m", "n", "blocks"), [(1, 1, 1), (1, 5, 3), (6, 3, 9)])
def test_gemv(name: str, m: int, n: int, blocks: int, rng: np.random.Generator) -> None:
    k = blocks * FORMATS[name].weights
    w = quant.quantize(rng.standard_normal((n, k)), name)
    x, out = rng.standard_normal((m, k)).astype(np.float32), np.full((m, n), np.nan, np.float32)
    assert quant.gemv(x, w, n, name, out=out) is out
    assert error(out, x, quant.dequantize(w, k, name)) < 1e-6


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("name", ["q5_0", "q6_k"])
def test_gemv_of_other_types(name: str, dtype: Any, rng: np.random.Generator) -> None:
    w = quant.quantize(rng.standard_normal((5, 512)), name)
    x = rng.standard_normal((2, 512)).astype(dtype)
    got = quant.gemv(x, w, 5, name)
    assert got.dtype == dtype and error(got, x, quant.dequantize(w, 512, name)) < BOUNDS[np.dtype(dtype)]


@pytest.mark.parametrize("name", FORMATS)
def test_every_bit_of_the_format(name: str, rng: np.random.Generator) -> None:
    """Random bytes, where every scale and quant occurs; unit vectors pick single weights."""
    k = 2 * FORMATS[name].weights
    blocks = random_blocks(rng, 3, 2, name)
    got = quant.gemv(np.eye(k, dtype=np.float32), blocks, 3, name)
    np.testing.assert_allclose(got, quant.dequantize(blocks, k, name).T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["q8_0", "q5_k"])
def test_gemv_under_the_sanitizer(name: str, rng: np.random.Generator) -> None:
    k = 3 * FORMATS[name].weights
    w, x = quant.quantize(rng.standard_normal((5, k)), name), rng.standard_normal((5, k)).astype(np.float32)
    with ptxdsl.config.override(backend="emulator", sanitize="all"):
        assert error(quant.gemv(x, w, 5, name), x, quant.dequantize(w, k, name)) < 1e-6


def test_arrays_that_begin_anywhere(rng: np.random.Generator) -> None:
    w = quant.quantize(rng.standard_normal((2, 256)), "q6_k")
    held = np.zeros(w.size + 1, np.uint8)
    held[1:] = w.ravel()
    x = np.zeros(257, np.float32)
    x[1:] = rng.standard_normal(256)
    got = quant.gemv(x[1:].reshape(1, 256), held[1:].reshape(2, -1), 2, "q6_k")
    assert error(got, x[1:].reshape(1, 256), quant.dequantize(w, 256, "q6_k")) < 1e-6


@pytest.mark.parametrize(("message", "arguments"), [
    ("format is 'q3_k'; it can be q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k",
     (np.zeros((1, 32), np.float32), np.zeros((1, 34), np.uint8), 1, "q3_k")),
    ("`x` has shape [1, 33]; M is 1 or more and K a positive multiple of 32",
     (np.zeros((1, 33), np.float32), np.zeros((1, 34), np.uint8), 1, "q8_0")),
    ("`w` has shape [2, 34] and dtype uint8; wanted is [1, 34] of uint8",
     (np.zeros((1, 32), np.float32), np.zeros((2, 34), np.uint8), 1, "q8_0")),
])
def test_errors(message: str, arguments: Any) -> None:
    with pytest.raises(LaunchError) as caught:
        quant.gemv(*arguments)
    assert caught.value.message == message
    assert caught.value.loc is not None and caught.value.loc.file == __file__


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 256), (3, 5, 1280), (2, 9, 2048)])
def test_activations_of_8_bits(m: int, n: int, k: int, dtype: Any, rng: np.random.Generator) -> None:
    w, x = quant.quantize_q4k(rng.standard_normal((n, k))), rng.standard_normal((m, k)).astype(dtype)
    out = np.full((m, n), np.nan, dtype)
    assert quant.q4k_gemv(x, w, n, activations="int8", out=out) is out
    weights = quant.dequantize_q4k(w, k).astype(np.float64)
    wide = x.astype(np.float64)
    steps = np.abs(wide).reshape(m, -1, 32).max(-1) / 127
    worst = (steps[:, None, :, None] / 2 * np.abs(weights).reshape(1, n, -1, 32)).sum((2, 3))
    rounding = BOUNDS[np.dtype(dtype)] * (np.abs(wide) @ np.abs(weights).T).max()
    assert (np.abs(out.astype(np.float64) - wide @ weights.T) <= worst * 1.001 + rounding).all()


@pytest.mark.parametrize(("rows", "k", "normed"), [
    (4, 256, False), (4, 1280, True), (2, 1280, False), (2, 256, True), (1, 16_640, True), (2, 16_640, False),
])
def test_several_rows_of_weights_a_warp(
    rows: int, k: int, normed: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks that go over the rows in several rounds, with rows left over, and x quantised in parts."""
    monkeypatch.setattr(q4k_int8, "_ROWS", (rows, 1))
    monkeypatch.setattr(q4k_int8, "_RESIDENT", 2)
    monkeypatch.setattr(q4k_int8, "processors", lambda: 1)
    n = rows * 8 * 3 - 5
    w, x = quant.quantize_q4k(rng.standard_normal((n, k))), rng.standard_normal((2, k)).astype(np.float32)
    gamma, out = rng.uniform(0.5, 2, k).astype(np.float32), np.full((2, n), np.nan, np.float32)
    if normed:
        quant.rmsnorm_q4k_gemv(x, gamma, w, n, eps=1e-3, activations="int8", out=out)
    else:
        quant.q4k_gemv(x, w, n, activations="int8", out=out)
    scaled, weights = x.astype(np.float64) * (gamma if normed else 1), quant.dequantize_q4k(w, k).astype(np.float64)
    root = np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-3) if normed else np.ones((2, 1))
    quants, steps, _ = quant.quantize_activations(scaled.astype(np.float32))
    taken = (quants.reshape(2, -1, 32) * steps.astype(np.float64)[..., None]).reshape(2, k)
    assert np.abs(out - taken @ weights.T / root).max() <= 2e-6 * (np.abs(taken) @ np.abs(weights).T / root).max()


def test_quantised_activations_are_what_is_said(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 512)).astype(np.float32)
    x[1, 32:64] = 0
    quants, steps, sums = quant.quantize_activations(x)
    expected = np.abs(x).reshape(3, -1, 32).max(-1) * np.float32(1 / 127)
    np.testing.assert_allclose(steps, expected, rtol=1e-6)
    restored = quants.reshape(3, -1, 32) * steps[..., None]
    assert np.abs(restored.reshape(3, -1) - x).max() <= steps.max() * 0.5001
    assert np.abs(quants.astype(int)).max() == 127 and not quants[1, 32:64].any()
    totals = quants.astype(np.float64).reshape(3, -1, 16).sum(-1) * np.repeat(steps, 2, axis=1)
    np.testing.assert_allclose(sums, totals, rtol=1e-6, atol=1e-6)


def test_activations_of_8_bits_under_the_sanitizer(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    w, x = quant.quantize_q4k(rng.standard_normal((3, 768))), rng.standard_normal((2, 768)).astype(np.float32)
    plain = quant.q4k_gemv(x, w, 3, activations="int8")
    with ptxdsl.config.override(backend="emulator", sanitize="all"):
        assert (quant.q4k_gemv(x, w, 3, activations="int8") == plain).all()
        monkeypatch.setattr(q4k_int8, "PART", 2)
        q4k_int8.int8_kernel.cache_clear()
        np.testing.assert_allclose(quant.q4k_gemv(x, w, 3, activations="int8"), plain, rtol=1e-4, atol=1e-4)
    q4k_int8.int8_kernel.cache_clear()


def test_no_such_activations() -> None:
    with pytest.raises(LaunchError, match="^activations is 'int4'; it can be 'float' or 'int8'\n"):
        quant.q4k_gemv(np.zeros((1, 256), np.float32), np.zeros((1, 144), np.uint8), 1, activations="int4")


@pytest.mark.ptxas
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_no_spills(arch: str) -> None:
    kernels = [quant.gguf_kernel(name, f32, 4) for name in FORMATS]
    kernels += [make(dtype) for make in (quant.int8_kernel, quantize_kernel) for dtype in (f16, bf16, f32)]
    kernels += [
        quant.int8_kernel(dtype, gamma, rows, whole)
        for dtype, gamma in ((f16, None), (f32, f32)) for rows in (1, 2, 4) for whole in (True, False)
    ]
    for kernel in kernels:
        taken = kernel.attributes(arch=arch)
        assert taken.spill_store_bytes == taken.spill_load_bytes == taken.local_size_bytes == 0, kernel.entry


@pytest.mark.ptxas
def test_a_super_block_takes_at_most_20_instructions() -> None:
    """Of a warp; the loop takes four super-blocks of four rows at once."""
    sass = quant.int8_kernel(f32).sass(arch="sm_90a")
    code = re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?);", sass, re.MULTILINE)
    places = [int(place, 16) for place, text in code if "IDP" in text]
    labels = re.findall(r"^\.L_x_\d+:\s*\n\s+/\*([0-9a-f]+)\*/", sass, re.MULTILINE)
    begin = max(int(label, 16) for label in labels if int(label, 16) <= min(places))
    back = min(int(place, 16) for place, text in code if "BRA" in text and int(place, 16) >= max(places))
    assert len(places) == 4 * 8
    assert (back - begin) // 16 + 1 <= 4 * 4 * 20


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(
    ("rows", "k", "n", "gamma_type"), [(1, 256, 1, np.float32), (3, 2304, 9, np.float16), (2, 1280, 5, np.float32)]
)
def test_rmsnorm_with_activations_of_8_bits(
    rng: np.random.Generator, dtype: Any, rows: int, k: int, n: int, gamma_type: Any
) -> None:
    """gamma x is off by half a step at most, the root is that of x's own mean square."""
    x, gamma = (5 * rng.standard_normal((rows, k))).astype(dtype), rng.uniform(0.5, 2, k).astype(gamma_type)
    w = quant.quantize_q4k(rng.standard_normal((n, k)).astype(np.float32))
    out = np.full((rows, n), np.nan, dtype)
    assert quant.rmsnorm_q4k_gemv(x, gamma, w, n, eps=1e-3, activations="int8", out=out) is out
    scaled, weights = x.astype(np.float64) * gamma.astype(np.float64), quant.dequantize_q4k(w, k).astype(np.float64)
    root = np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-3)
    steps = np.abs(scaled).reshape(rows, -1, 32).max(-1) / 127
    worst = (steps[:, None, :, None] / 2 * np.abs(weights).reshape(1, n, -1, 32)).sum((2, 3)) / root
    rounding = BOUNDS[np.dtype(dtype)] * (np.abs(scaled / root) @ np.abs(weights).T).max()
    assert (np.abs(out.astype(np.float64) - scaled @ weights.T / root) <= worst * 1.001 + rounding).all()


def test_rmsnorm_of_zeros_in_8_bits() -> None:
    w = quant.quantize_q4k(np.ones((3, 256), np.float32))
    got = quant.rmsnorm_q4k_gemv(np.zeros((2, 256), np.float32), np.ones(256, np.float32), w, 3, activations="int8")
    assert not got.any()
    with pytest.raises(LaunchError, match="^activations is 'int4'; it can be 'float' or 'int8'\n"):
        quant.rmsnorm_q4k_gemv(np.zeros((1, 256), np.float32), np.ones(256, np.float32), w, 3, activations="int4")


def test_nans_spoil_products_of_8_bits() -> None:
    w, x = quant.quantize_q4k(np.ones((2, 512), np.float32)), np.ones((2, 512), np.float32)
    x[1, 300] = np.nan
    got = quant.q4k_gemv(x, w, 2, activations="int8")
    assert np.isfinite(got[0]).all() and np.isnan(got[1]).all()
