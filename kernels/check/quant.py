"""Checks of products with quantised weights."""

from __future__ import annotations

import numpy as np

from ... import bf16, f16, f32
from ...bench import Row, compare
from .. import quant, reference
from ..gguf import FORMATS
from ..q4k_int8 import quantize_kernel
from .entry import Entry

__all__ = ["ENTRIES"]


def _q4k_gemv() -> Row:
    rng = np.random.default_rng()
    x = rng.standard_normal((1, 1024)).astype(np.float32)
    w, y = quant.quantize_q4k(rng.standard_normal((256, 1024))), np.full((1, 256), np.nan, np.float32)
    expected = x.astype(np.float64) @ quant.dequantize_q4k(w, 1024).T
    return compare("q4k_gemv, 256 x 1024", lambda: quant.q4k_gemv(x, w, 256, out=y), y, expected, 1e-5)


def _rmsnorm_q4k_gemv() -> Row:
    rng = np.random.default_rng()
    x, gamma = rng.standard_normal((1, 1024)).astype(np.float32), rng.standard_normal(1024).astype(np.float32)
    w, y = quant.quantize_q4k(rng.standard_normal((256, 1024))), np.full((1, 256), np.nan, np.float32)
    expected = reference.rms_norm(x, gamma) @ quant.dequantize_q4k(w, 1024).T
    return compare(
        "rmsnorm_q4k_gemv, 256 x 1024", lambda: quant.rmsnorm_q4k_gemv(x, gamma, w, 256, out=y), y, expected, 1e-5
    )


def _gemv(name: str) -> Row:
    rng = np.random.default_rng()
    x = rng.standard_normal((1, 1024)).astype(np.float32)
    w, y = quant.quantize(rng.standard_normal((64, 1024)), name), np.full((1, 64), np.nan, np.float32)
    expected = x.astype(np.float64) @ quant.dequantize(w, 1024, name).T
    return compare(f"gemv, {name}, 64 x 1024", lambda: quant.gemv(x, w, 64, name, out=y), y, expected, 1e-5)


def _entry(name: str) -> Entry:
    return Entry(lambda: _gemv(name), lambda: [quant.gguf_kernel(name, f32, 1)])


def _q4k_int8() -> Row:
    rng = np.random.default_rng()
    x = rng.standard_normal((1, 1024)).astype(np.float32)
    w, y = quant.quantize_q4k(rng.standard_normal((256, 1024))), np.full((1, 256), np.nan, np.float32)
    expected = x.astype(np.float64) @ quant.dequantize_q4k(w, 1024).T
    return compare(
        "q4k_gemv, int8 activations, 256 x 1024", lambda: quant.q4k_gemv(x, w, 256, activations="int8", out=y), y,
        expected, 3e-2,
    )


def _rmsnorm_q4k_int8() -> Row:
    rng = np.random.default_rng()
    x, gamma = rng.standard_normal((1, 1024)).astype(np.float32), rng.standard_normal(1024).astype(np.float32)
    w, y = quant.quantize_q4k(rng.standard_normal((256, 1024))), np.full((1, 256), np.nan, np.float32)
    expected = reference.rms_norm(x, gamma) @ quant.dequantize_q4k(w, 1024).T
    return compare(
        "rmsnorm_q4k_gemv, int8 activations, 256 x 1024",
        lambda: quant.rmsnorm_q4k_gemv(x, gamma, w, 256, activations="int8", out=y), y, expected, 3e-2,
    )


ENTRIES: dict[str, Entry] = {
    **{f"gemv_{name}": _entry(name) for name in FORMATS},
    "q4k_gemv_int8": Entry(_q4k_int8, lambda: [
        *(quant.int8_kernel(f32, None, rows) for rows in (4, 1)), quant.int8_kernel(f16, None, 4, False),
        quantize_kernel(f32),
    ]),
    "q4k_gemv": Entry(_q4k_gemv, lambda: [quant.gemv_kernel(t, None, 1) for t in (f32, f16, bf16)]),
    "rmsnorm_q4k_gemv_int8": Entry(
        _rmsnorm_q4k_int8,
        lambda: [quant.int8_kernel(f32, f32), quant.int8_kernel(f16, f16, 2), quant.int8_kernel(f32, f32, 4, False)],
    ),
    "rmsnorm_q4k_gemv": Entry(_rmsnorm_q4k_gemv, lambda: [quant.gemv_kernel(t, f32, 1) for t in (f32, f16, bf16)]),
}
