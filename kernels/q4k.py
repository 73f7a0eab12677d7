"""GGUF Q4_K on the host: 256 weights in a super-block of 144 bytes, bit-compatible with the format of llama.cpp.

A super-block is 8 sub-blocks of 32 weights, each weight 4 bits::

    bytes 0-1     d      f16    scale of the sub-blocks' scales
    bytes 2-3     dmin   f16    scale of the sub-blocks' minimums
    bytes 4-15           u8     eight 6-bit scales and eight 6-bit minimums, packed
    bytes 16-143         u8     two weights each: byte 32*g + l holds weight 64*g + l low, 64*g + 32 + l high

A weight is ``d * scale[b] * q - dmin * minimum[b]``, in float32, with q from 0 to 15 and b its sub-block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "BLOCK_BYTES", "BLOCK_WEIGHTS", "dequantize_q4k", "pack_scales", "quantize_q4k", "six_bits", "unpack_scales",
]

BLOCK_WEIGHTS = 256
"""Weights in a super-block."""
BLOCK_BYTES = 144
"""Bytes of a super-block."""

_SUB = 32
_STEPS = np.linspace(14.0, 16.0, 21, dtype=np.float32)
"""Numbers of steps tried between the least and greatest weight of a sub-block; a little off 15 often fits better."""

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def quantize_q4k(w: npt.ArrayLike) -> Bytes:
    """Quantise weights to Q4_K.

    ``w`` has shape ``[..., K]``, finite, K a multiple of 256; the result has shape ``[..., K // 256 * 144]`` and dtype
    uint8. For each sub-block the scale and minimum are fitted by least squares over several roundings, as the format's
    users do; ValueError for a wrong shape or weights that are not finite.

    >>> w = np.linspace(-1, 1, 512, dtype=np.float32)
    >>> blocks = quantize_q4k(w)
    >>> blocks.shape, float(abs(dequantize_q4k(blocks, 512) - w).max()) < 0.04
    ((288,), True)
    """
    weights = np.asarray(w, np.float32)
    if weights.ndim == 0 or weights.shape[-1] == 0 or weights.shape[-1] % BLOCK_WEIGHTS:
        raise ValueError(f"w has shape {weights.shape}: its last dimension must be a multiple of {BLOCK_WEIGHTS}")
    if not np.isfinite(weights).all():
        raise ValueError("w has weights that are not finite")
    subs = weights.reshape(-1, 8, _SUB)
    scales, minimums = _fit(subs)
    d, scale = six_bits(scales)
    dmin, minimum = six_bits(minimums)
    if not (np.isfinite(d).all() and np.isfinite(dmin).all()):
        raise ValueError(f"w reaches {abs(weights).max():g}: its scales do not fit in the format's f16")
    step = (d.astype(np.float32)[:, None] * scale)[..., None]
    shift = (dmin.astype(np.float32)[:, None] * minimum)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        quants = np.where(step > 0, np.rint((subs + shift) / step), 0).clip(0, 15).astype(np.uint8)
    blocks = np.empty((len(subs), BLOCK_BYTES), np.uint8)
    blocks[:, 0:2] = d.view(np.uint8).reshape(-1, 2)
    blocks[:, 2:4] = dmin.view(np.uint8).reshape(-1, 2)
    blocks[:, 4:16] = pack_scales(scale, minimum)
    pairs = quants.reshape(-1, 4, 2, _SUB)
    blocks[:, 16:] = (pairs[:, :, 0] | pairs[:, :, 1] << 4).reshape(-1, 128)
    return blocks.reshape(*weights.shape[:-1], -1)


def dequantize_q4k(blocks: npt.ArrayLike, k: int) -> Floats:
    """The float32 weights of Q4_K blocks.

    ``blocks`` has shape ``[..., k // 256 * 144]`` and dtype uint8; the result has shape ``[..., k]``. ValueError for a
    k that is no multiple of 256, TypeError for another dtype.

    >>> zeros = np.zeros((3, 144), np.uint8)
    >>> dequantize_q4k(zeros, 256).shape
    (3, 256)
    """
    data: Any = np.asarray(blocks)
    if data.dtype != np.uint8:
        raise TypeError(f"blocks has dtype {data.dtype}, not uint8")
    if k <= 0 or k % BLOCK_WEIGHTS:
        raise ValueError(f"k is {k}, not a positive multiple of {BLOCK_WEIGHTS}")
    wanted = k // BLOCK_WEIGHTS * BLOCK_BYTES
    if data.ndim == 0 or data.shape[-1] != wanted:
        raise ValueError(f"blocks has shape {data.shape}: {k} weights take a last dimension of {wanted}")
    rows = np.ascontiguousarray(data).reshape(-1, BLOCK_BYTES)
    d, dmin = (rows[:, i : i + 2].copy().view(np.float16).astype(np.float32) for i in (0, 2))
    scale, minimum = unpack_scales(rows[:, 4:16])
    packed = rows[:, 16:].reshape(-1, 4, 1, _SUB)
    quants = np.concatenate([packed & 15, packed >> 4], axis=2).reshape(-1, 8, _SUB)
    weights = (d * scale)[..., None] * quants - (dmin * minimum)[..., None]
    return weights.astype(np.float32).reshape(*data.shape[:-1], k)


def _fit(subs: Floats) -> tuple[Floats, Floats]:
    """The scale and the (positive) minimum of each sub-block, by least squares over several roundings."""
    low = np.minimum(subs.min(-1, keepdims=True), 0)
    span = np.maximum(subs.max(-1, keepdims=True), low) - low
    best_scale, best_minimum = span[..., 0] / 15, -low[..., 0]
    best_error = np.full(best_scale.shape, np.inf, np.float32)
    for steps in _STEPS:
        with np.errstate(divide="ignore", invalid="ignore"):
            quants = np.where(span > 0, np.rint((subs - low) * (steps / span)), 0).clip(0, 15).astype(np.float32)
        scale, minimum = _least_squares(subs, quants)
        error = np.square(scale[..., None] * quants - minimum[..., None] - subs).sum(-1)
        better = error < best_error
        best_scale = np.where(better, scale, best_scale)
        best_minimum = np.where(better, minimum, best_minimum)
        best_error = np.where(better, error, best_error)
    return best_scale, best_minimum


def _least_squares(subs: Floats, quants: Floats) -> tuple[Floats, Floats]:
    """scale and minimum >= 0 that minimise the sum of (scale * q - minimum - w)^2 of each sub-block."""
    q, w = quants.astype(np.float64), subs.astype(np.float64)
    mean_q, mean_w = q.mean(-1), w.mean(-1)
    variance = np.square(q).mean(-1) - np.square(mean_q)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(variance > 0, ((q * w).mean(-1) - mean_q * mean_w) / variance, 0)
        through_zero = np.where(np.square(q).sum(-1) > 0, (q * w).sum(-1) / np.square(q).sum(-1), 0)
    minimum = scale * mean_q - mean_w
    scale = np.where(minimum >= 0, scale, through_zero)
    return np.maximum(scale, 0).astype(np.float32), np.maximum(minimum, 0).astype(np.float32)


def six_bits(values: Floats) -> tuple[npt.NDArray[np.float16], Bytes]:
    """Each super-block's eight values as an f16 scale times six bits."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        unit = (values.max(-1) / 63).astype(np.float16)
        bits = np.where(unit[:, None] > 0, np.rint(values / unit.astype(np.float32)[:, None]), 0)
    return unit, bits.clip(0, 63).astype(np.uint8)


def pack_scales(scale: Bytes, minimum: Bytes) -> Bytes:
    """Eight 6-bit scales and minimums in 12 bytes: the upper two bits of the last four ride on the first four."""
    packed = np.empty((len(scale), 12), np.uint8)
    packed[:, 0:4] = scale[:, :4] | (scale[:, 4:] >> 4) << 6
    packed[:, 4:8] = minimum[:, :4] | (minimum[:, 4:] >> 4) << 6
    packed[:, 8:12] = (scale[:, 4:] & 15) | (minimum[:, 4:] & 15) << 4
    return packed


def unpack_scales(packed: Bytes) -> tuple[Bytes, Bytes]:
    """The scales and the minimums of 12 bytes."""
    first, second, last = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scale = np.concatenate([first & 63, last & 15 | (first >> 6) << 4], axis=1)
    minimum = np.concatenate([second & 63, last >> 4 | (second >> 6) << 4], axis=1)
    return scale, minimum
