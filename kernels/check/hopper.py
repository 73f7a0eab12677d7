"""Checks of the kernels for Hopper, and of Blackwell's beside them: both have the same arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import bf16, dtype_of, e2m1x2, e4m3, f16, f32, s32, ue8m0
from ...bench import Row, compare
from .. import attention, linalg, reference
from ..blackwell import matmul as blackwell_matmul
from ..blackwell import scaled
from ..hopper import decode, decode_ring, flash, flash_backward, flash_fp8, matmul, stream
from ..tensor_products import Kind
from .attention import packed, packed_gradients
from .entry import Entry

__all__ = ["ENTRIES"]

E4M3 = dtype_of(e4m3)
_FALSE, _TRUE = (False, False), (True, True)


def _product(name: str, function: Callable[..., Any], rows: int = 140) -> Row:
    rng = np.random.default_rng()
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((rows, 200), (200, 72)))
    bias, out = rng.standard_normal(72).astype(np.float32), np.full((rows, 72), np.nan, np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64) + bias
    return compare(f"{name}, {rows} x 200 x 72, bias", lambda: function(a, b, bias=bias, out=out), out, expected, 1e-5)


def _flash() -> Row:
    rng = np.random.default_rng()
    q, out = rng.standard_normal((1, 2, 150, 128)).astype(np.float16), np.full((1, 2, 150, 128), np.nan, np.float16)
    k, v = rng.standard_normal((2, 1, 1, 200, 128)).astype(np.float16)
    return compare(
        "hopper.flash, 2 heads, 150 x 200 x 128, causal",
        lambda: flash.attend(q, k, v, out, causal=True, scale=128**-0.5),
        out, reference.attention(q, k, v, reference.causal(150, 200)), 1.2e-3,
    )


def _decode() -> Row:
    rng = np.random.default_rng()
    q, out = rng.standard_normal((2, 4, 128)).astype(np.float16), np.full((2, 4, 128), np.nan, np.float16)
    k, v = rng.standard_normal((2, 2, 1, 300, 128)).astype(np.float16)
    lengths = np.array([300, 123], np.int32)
    visible = np.arange(300) < lengths[:, None, None, None]
    return compare(
        "hopper.decode, 4 heads, 300 and 123 keys x 128",
        lambda: decode.attend(q, k, v, lengths, out, scale=128**-0.5),
        out, reference.attention(q[:, :, None], k, v, visible)[:, :, 0], 1.2e-3,
    )


def _backward() -> Row:
    rng = np.random.default_rng()
    q, g = rng.standard_normal((2, 1, 2, 70, 128)).astype(np.float16)
    k, v = rng.standard_normal((2, 1, 1, 150, 128)).astype(np.float16)
    found = np.full(q.size + k.size + v.size, np.nan, np.float16)

    def run() -> None:
        parts = attention.flash_attention_backward(g, q, k, v, causal=True, tensor_cores="wgmma")
        found[:] = np.concatenate([part.ravel() for part in parts])

    expected = reference.attention_gradients(g, q, k, v, reference.causal(70, 150))
    whole = np.concatenate([part.ravel() for part in expected])
    return compare("hopper.flash_backward, 2 heads, 70 x 150 x 128, causal", run, found, whole, 1.5e-3)


def _flash_fp8() -> Row:
    rng = np.random.default_rng()
    q, out = rng.standard_normal((1, 2, 150, 128)).astype(E4M3), np.full((1, 2, 150, 128), np.nan, np.float16)
    k, v = rng.standard_normal((2, 1, 1, 200, 128)).astype(E4M3)
    return compare(
        "hopper.flash_fp8, 2 heads, 150 x 200 x 128, causal",
        lambda: attention.fp8_attention(q, k, v, v_scale=0.5, causal=True, out=out),
        out, reference.attention(q, k, v, reference.causal(150, 200)) / 2, 2.0**-4,
    )


def _scaled() -> Row:
    """NVFP4, by codes of which 7 is the largest, 6."""
    rng, numbers = np.random.default_rng(), np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    codes = [rng.integers(0, 8, (rows, 256)).astype(np.uint8) for rows in (140, 72)]
    scales = [rng.uniform(0.1, 2, (rows, 16)).astype(E4M3) for rows in (140, 72)]
    (a, b), out = (each[:, ::2] | each[:, 1::2] << 4 for each in codes), np.full((140, 72), np.nan, np.float32)
    left, right = (numbers[code] * scale.astype(np.float64).repeat(16, 1) for code, scale in zip(codes, scales))
    return compare(
        "blackwell.scaled, e2m1, 140 x 256 x 72",
        lambda: linalg.scaled_matmul(a, b.T, scales[0], scales[1].T, out=out), out, left @ right.T, 1e-6,
    )


ENTRIES: dict[str, Entry] = {
    "matmul": Entry(lambda: _product("hopper.matmul", matmul.matmul), lambda: [
        matmul.kernel_of(kind) for kind in (
            matmul.Kind(bf16, bf16, bf16, _FALSE, matmul.Plan(128, 256, 4, 2)),
            matmul.Kind(f16, f16, f32, _TRUE, matmul.Plan(128, 128, 6, 2)),
            matmul.Kind(e4m3, e4m3, bf16, _FALSE, matmul.Plan(256, 128, 4, 1)),
        )
    ], lowest="sm_90a", registers=168),
    "stream": Entry(lambda: _product("hopper.stream", stream.matmul, 20), lambda: [
        stream.kernel_of(kind) for kind in (
            stream.Kind(bf16, bf16, bf16, 16, True), stream.Kind(f16, f16, f32, 64, False),
            stream.Kind(e4m3, e4m3, bf16, 16, False),
        )
    ], lowest="sm_90", registers=255),
    "flash": Entry(_flash, lambda: [
        flash.flash_kernel(flash.Kind(bf16, dim, True)) for dim in flash.DIMS
    ], lowest="sm_90a", registers=168),
    "varlen": Entry(lambda: packed("hopper.flash", np.float16, (70, 130), 128, 1.2e-3, tensor_cores="wgmma"), lambda: [
        flash.packed_kernel(flash.Kind(bf16, dim, True, packed=True)) for dim in flash.DIMS
    ], lowest="sm_90a", registers=168),
    "decode": Entry(_decode, lambda: [
        decode.decode_kernel(kind) for kind in (
            decode_ring.Kind(bf16, 64, 1, s32), decode_ring.Kind(f16, 128, 1, s32),
            decode_ring.Kind(bf16, 128, 2, s32, s32, 16), decode_ring.Kind(bf16, 256, 2, s32),
        )
    ], lowest="sm_90", registers=255),
    "flash_backward": Entry(_backward, lambda: [
        flash_backward.backward_kernel(flash_backward.Kind(bf16, dim, True)) for dim in flash_backward.DIMS
    ], lowest="sm_90a", registers=168),
    "varlen_backward": Entry(
        lambda: packed_gradients("hopper.flash_backward", np.float16, (70, 130), 64, 1.5e-3, tensor_cores="wgmma"),
        lambda: [
            flash_backward.backward_kernel(flash_backward.Kind(bf16, dim, True, packed=True))
            for dim in flash_backward.DIMS
        ], lowest="sm_90a", registers=168,
    ),
    "flash_fp8": Entry(_flash_fp8, lambda: [
        flash_fp8.eight_kernel(flash_fp8.EightBits(flash.Kind(e4m3, dim, True), bf16)) for dim in (64, 128, 256)
    ], lowest="sm_90a", registers=168),
    "blackwell_scaled": Entry(_scaled, lambda: [
        scaled.kernel_of(Kind(kind, kind, bf16, _FALSE, scaled.choose(4096, kind, block)), block, scale_type)
        for kind, block, scale_type in ((e4m3, 32, ue8m0), (e2m1x2, 16, e4m3))
    ], lowest="sm_100f", registers=255),
    "blackwell_matmul": Entry(lambda: _product("blackwell.matmul", blackwell_matmul.matmul), lambda: [
        blackwell_matmul.kernel_of(kind) for kind in (
            blackwell_matmul.Kind(bf16, bf16, bf16, _FALSE, blackwell_matmul.Plan()),
            blackwell_matmul.Kind(e4m3, e4m3, bf16, _TRUE, blackwell_matmul.Plan(256, 4, False)),
        )
    ], lowest="sm_100f", registers=255),
}
