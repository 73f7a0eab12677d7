"""Checks of attention."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import bf16, f16, f32, f64
from ...bench import Row, compare
from .. import attention, decode, flash, flash_wmma, reference
from .entry import Entry

__all__ = ["ENTRIES"]


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


def _flash_attention_wmma() -> Row:
    rng = np.random.default_rng()
    q = rng.standard_normal((1, 4, 100, 64)).astype(np.float16)
    k, v = rng.standard_normal((2, 1, 2, 120, 64)).astype(np.float16)
    out = np.full_like(q, np.nan)
    return compare(
        "flash_attention on tensor cores, 4 heads, 100 x 120 x 64, causal",
        lambda: attention.flash_attention(q, k, v, causal=True, out=out, tensor_cores=True),
        out, reference.attention(q, k, v, reference.causal(100, 120)), 1.2e-3,
    )


def _template() -> Row:
    rng = np.random.default_rng()
    q, k, v = rng.standard_normal((3, 100, 64)).astype(np.float32)
    out, kernel = np.full_like(q, np.nan), attention.template(f32, 64, 64, causal=True)
    expected = reference.attention(q[None, None], k[None, None], v[None, None], reference.causal(100, 100))[0, 0]
    return compare(kernel.entry, lambda: kernel[2, 64](q, k, v, out, 100, 0.125), out, expected, 4e-6)


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


ENTRIES: dict[str, Entry] = {
    "flash_attention": Entry(
        _flash_attention,
        lambda: [flash.flash_kernel(t, d, True) for t in (f32, f16, bf16, f64) for d in (64, 128, 256)],
    ),
    "flash_attention_wmma": Entry(
        _flash_attention_wmma,
        lambda: [flash_wmma.wmma_kernel(t, d, True) for t in (f16, bf16) for d in (64, 128, 256)],
    ),
    "template": Entry(_template, lambda: [attention.template(t, 64, 64, True) for t in (f32, f64)]),
    "decode_attention": Entry(
        _decode_attention, lambda: [decode.decode_kernel(t, 128, 4, True) for t in (f32, f16, bf16, f64)]
    ),
    "flash_decoding": Entry(
        _flash_decoding,
        lambda: [
            kernel for t in (f32, f16, bf16, f64)
            for kernel in (decode.chunk_kernel(t, 128, 4, True), decode.combine_kernel(t, 128))
        ],
    ),
}
