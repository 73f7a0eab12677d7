"""Checks of attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import bf16, f16, f32, f64, s32, s64
from ...bench import Row, compare
from .. import attention, decode, flash, flash_backward, flash_backward_mma, flash_wmma, reference
from .entry import Entry

__all__ = ["ENTRIES", "packed", "packed_gradients"]


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


def _backward() -> Row:
    return _gradients("flash_attention_backward", np.float32, 4e-6)


def _backward_mma() -> Row:
    return _gradients("flash_attention_backward on tensor cores", np.float16, 3e-3)


def _gradients(name: str, dtype: type, allowed: float) -> Row:
    rng = np.random.default_rng()
    q, g = rng.standard_normal((2, 1, 2, 40, 64)).astype(dtype)
    k, v = rng.standard_normal((2, 1, 1, 50, 64)).astype(dtype)
    found = np.full(q.size + k.size + v.size, np.nan, dtype)

    def run() -> None:
        parts = attention.flash_attention_backward(g, q, k, v, causal=True)
        found[:] = np.concatenate([part.ravel() for part in parts])

    expected = reference.attention_gradients(g, q, k, v, reference.causal(40, 50))
    whole = np.concatenate([part.ravel() for part in expected])
    return compare(f"{name}, 2 heads, 40 x 50 x 64, causal", run, found, whole, allowed)


def packed(what: str, dtype: Any, lengths: tuple[int, int], dim: int, bound: float, **options: Any) -> Row:
    """Two packed sequences of 4 heads, of which 2 share one of keys, each as many queries as keys."""
    rng, total = np.random.default_rng(), sum(lengths)
    q, k, v = (rng.standard_normal((total, heads, dim)).astype(dtype) for heads in (4, 2, 2))
    starts, out = np.array([0, lengths[0], total], np.int32), np.full_like(q, np.nan)
    expected = reference.varlen_attention(q, k, v, starts)
    return compare(
        f"{what}, 4 heads, {lengths[0]} and {lengths[1]} x {dim}",
        lambda: attention.varlen_attention(q, k, v, starts, starts, out=out, **options), out, expected, bound,
    )


def packed_gradients(what: str, dtype: Any, lengths: tuple[int, int], dim: int, bound: float, **options: Any) -> Row:
    """The gradients of :func:`packed`."""
    rng, total = np.random.default_rng(), sum(lengths)
    g, q, k, v = (rng.standard_normal((total, heads, dim)).astype(dtype) for heads in (4, 4, 2, 2))
    starts, found = np.array([0, lengths[0], total], np.int32), np.full(q.size + k.size + v.size, np.nan, dtype)

    def run() -> None:
        parts = attention.varlen_attention_backward(g, q, k, v, starts, starts, **options)
        found[:] = np.concatenate([part.ravel() for part in parts])

    each = [
        reference.attention_gradients(*(x[None, part].swapaxes(1, 2) for x in (g, q, k, v)))
        for part in (slice(0, lengths[0]), slice(lengths[0], total))
    ]
    whole = np.concatenate([x[0].swapaxes(0, 1).ravel() for parts in zip(*each) for x in parts])
    return compare(f"{what}, 4 heads, {lengths[0]} and {lengths[1]} x {dim}", run, found, whole, bound)


def _paged() -> Row:
    rng = np.random.default_rng()
    q, out = rng.standard_normal((1, 4, 64)).astype(np.float32), np.full((1, 4, 64), np.nan, np.float32)
    k, v = rng.standard_normal((2, 9, 16, 2, 64)).astype(np.float32)
    table = rng.permutation(9)[None].astype(np.int32)
    rows = (x[table[0]].reshape(-1, 2, 64)[:140].swapaxes(0, 1)[None] for x in (k, v))
    expected = reference.attention(q[:, :, None], *rows)[:, :, 0]
    return compare(
        "paged_decode, 4 heads, 140 keys x 64",
        lambda: attention.paged_decode(q, k, v, table, np.array([140]), out=out), out, expected, 4e-6,
    )


ENTRIES: dict[str, Entry] = {
    "flash_attention": Entry(
        _flash_attention,
        lambda: [flash.flash_kernel(t, d, True) for t in (f32, f16, bf16, f64) for d in (64, 128, 256)],
    ),
    "flash_attention_wmma": Entry(
        _flash_attention_wmma,
        lambda: [flash_wmma.wmma_kernel(t, d, True) for t in (f16, bf16) for d in (64, 128, 256)],
    ),
    "flash_attention_backward": Entry(_backward, lambda: [
        make(t, 128, True) for t in (f32, f64) for make in (flash_backward.queries_kernel, flash_backward.keys_kernel)
    ], registers=168),
    "flash_attention_backward_mma": Entry(_backward_mma, lambda: [
        make(t, d, True) for t in (f16, bf16) for d in (64, 128)
        for make in (flash_backward_mma.queries_kernel, flash_backward_mma.keys_kernel)
    ], lowest="sm_80", registers=255),
    "varlen_attention": Entry(
        lambda: packed("varlen_attention", np.float32, (30, 60), 64, 4e-6),
        lambda: [flash.varlen_kernel(t, d, True) for t in (f32, f16, bf16, f64) for d in (64, 128)],
    ),
    "varlen_attention_backward": Entry(
        lambda: packed_gradients("varlen_attention_backward", np.float32, (30, 60), 64, 4e-6), lambda: [
            make(f32, 128, True, True) for make in (flash_backward.queries_kernel, flash_backward.keys_kernel)
        ], registers=168,
    ),
    "varlen_attention_backward_mma": Entry(
        lambda: packed_gradients("varlen_attention_backward, mma.sync", np.float16, (30, 60), 64, 3e-3), lambda: [
            make(bf16, d, True, True) for d in (64, 128)
            for make in (flash_backward_mma.queries_kernel, flash_backward_mma.keys_kernel)
        ], lowest="sm_80", registers=255,
    ),
    "paged_decode": Entry(
        _paged, lambda: [decode.paged_kernel(t, s32, s64, 128, 4) for t in (f32, f16, bf16, f64)]
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
