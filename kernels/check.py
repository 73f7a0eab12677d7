"""One check of each kernel of the library, at a size that takes no time: ``python -m ptxdsl kernels``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxdsl.bench import Row, compare

from . import attention, quant, reference

__all__ = ["CHECKS"]


def _flash_attention() -> Row:
    rng = np.random.default_rng()
    q = rng.standard_normal((1, 4, 100, 64)).astype(np.float32)
    k, v = rng.standard_normal((2, 1, 2, 120, 64)).astype(np.float32)
    out = np.full_like(q, np.nan)
    return compare(
        "flash_attention, 4 heads, 100 x 120 x 64, causal",
        lambda: attention.flash_attention(q, k, v, causal=True, out=out),
        out, reference.attention(q, k, v, reference.causal(100, 120)), 4e-6,
    )


def _decoding(name: str, kernel: Callable[..., object]) -> Row:
    rng = np.random.default_rng()
    q = rng.standard_normal((2, 4, 64)).astype(np.float32)
    k, v = rng.standard_normal((2, 2, 2, 500, 64)).astype(np.float32)
    lengths, out = np.array([500, 123], np.int32), np.full_like(q, np.nan)
    visible = np.arange(500) < lengths[:, None, None, None]
    expected = reference.attention(q[:, :, None], k, v, visible)[:, :, 0]
    return compare(
        f"{name}, 4 heads, 500 and 123 keys x 64", lambda: kernel(q, k, v, lengths, out=out), out, expected, 4e-6
    )


def _decode_attention() -> Row:
    return _decoding("decode_attention", attention.decode_attention)


def _flash_decoding() -> Row:
    return _decoding("flash_decoding", attention.flash_decoding)


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


CHECKS: dict[str, Callable[[], Row]] = {
    "flash_attention": _flash_attention,
    "decode_attention": _decode_attention,
    "flash_decoding": _flash_decoding,
    "q4k_gemv": _q4k_gemv,
    "rmsnorm_q4k_gemv": _rmsnorm_q4k_gemv,
}
