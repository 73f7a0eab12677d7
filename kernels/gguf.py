"""The block formats of GGUF on the host, bit-compatible with llama.cpp's: what a block is, and quantising to it.

A block of the legacy formats has 32 weights with a scale ``d`` (f16), and for the ``_1`` formats a minimum ``m``; byte
j of 4-bit weights holds weight j low and weight j + 16 high, a fifth bit lies in a word of its own. The K formats have
256 weights, of whose sub-blocks the scales are quantised themselves::

    q8_0   34 bytes   d, int8[32]                        d * q
    q4_0   18         d, nibbles[16]                     d * (q - 8)
    q4_1   20         d, m, nibbles[16]                  d * q + m
    q5_0   22         d, high bits (u32), nibbles[16]    d * (q - 16)
    q5_1   24         d, m, high bits (u32), nibbles[16] d * q + m
    q4_k   144        as `q4k` says
    q5_k   176        q4_k's head, high bits[32], nibbles[128]; bit b of high byte l is of weight 32 b + l
    q6_k   210        low nibbles[128], high pairs[64], int8 scales[16], d: d * scale * (q - 32)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .q4k import dequantize_q4k, pack_scales, quantize_q4k, six_bits, unpack_scales

__all__ = ["FORMATS", "Format", "dequantize", "quantize"]

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


class Format(NamedTuple):
    """A format: weights and bytes of a block, and both ways between rows of blocks and of weights."""

    weights: int
    nbytes: int
    decode: Callable[[Bytes], Floats]
    encode: Callable[[Floats], Bytes]


def dequantize(blocks: npt.ArrayLike, k: int, format: str) -> Floats:  # noqa: A002 - the field's word
    """The float32 weights of blocks.

    Args:
        blocks: ``[..., k / weights * bytes]`` of uint8, of the format's weights and bytes a block.
        k: Weights of a row.
        format: ``"q8_0"``, ``"q4_0"``, ``"q4_1"``, ``"q5_0"``, ``"q5_1"``, ``"q4_k"``, ``"q5_k"`` or ``"q6_k"``.

    Raises:
        ValueError: There is no such format, or the shape does not fit.
        TypeError: ``blocks`` is not of uint8.

    >>> w = np.linspace(-1, 1, 64, dtype=np.float32)
    >>> float(abs(dequantize(quantize(w, "q8_0"), 64, "q8_0") - w).max()) < 0.005
    True
    """
    kind, data = _known(format), np.asarray(blocks)
    if data.dtype != np.uint8:
        raise TypeError(f"blocks has dtype {data.dtype}, not uint8")
    if k <= 0 or k % kind.weights:
        raise ValueError(f"k is {k}, not a positive multiple of {kind.weights}")
    wanted = k // kind.weights * kind.nbytes
    if data.ndim == 0 or data.shape[-1] != wanted:
        raise ValueError(f"blocks has shape {data.shape}: {k} weights take a last dimension of {wanted}")
    rows = np.ascontiguousarray(data).reshape(-1, kind.nbytes)
    return kind.decode(rows).astype(np.float32).reshape(*data.shape[:-1], k)


def quantize(w: npt.ArrayLike, format: str) -> Bytes:  # noqa: A002
    """Quantise finite weights ``[..., K]`` to blocks ``[..., K / weights * bytes]`` of uint8.

    Each weight goes to the nearest of the values that its block's scales allow; the scales are those that reach the
    block's largest weight (q4_k: fitted by least squares). Raises ValueError for an unknown format, a K that is no
    multiple of the format's weights, weights that are not finite, and scales beyond f16.

    >>> quantize(np.zeros((3, 512), np.float32), "q6_k").shape
    (3, 420)
    """
    kind, weights = _known(format), np.asarray(w, np.float32)
    if weights.ndim == 0 or weights.shape[-1] == 0 or weights.shape[-1] % kind.weights:
        raise ValueError(f"w has shape {weights.shape}: its last dimension must be a multiple of {kind.weights}")
    if not np.isfinite(weights).all():
        raise ValueError("w has weights that are not finite")
    blocks = kind.encode(weights.reshape(-1, kind.weights))
    return np.ascontiguousarray(blocks).reshape(*weights.shape[:-1], -1)


def _known(name: str) -> Format:
    if name not in FORMATS:
        raise ValueError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


# ---------------------------------------------------------------------------------------------------------------------
# 32 weights


def _half(rows: Bytes, at: int) -> Floats:
    return rows[:, at : at + 2].copy().view(np.float16).astype(np.float32)


def _scale(values: npt.NDArray[np.floating[Any]]) -> tuple[Bytes, Floats]:
    """Scales in f16: their bytes, and what these are."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float16)
    if not np.isfinite(rounded).all():
        raise ValueError(f"w reaches a scale of {np.abs(values).max():g}, which does not fit in the format's f16")
    return rounded.reshape(-1, 1).view(np.uint8), rounded.astype(np.float32).reshape(-1, 1)


def _steps(weights: npt.NDArray[Any], scale: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The weights in units of their scale, rounded; 0 where that is 0."""
    return np.rint(np.divide(weights, scale, out=np.zeros_like(weights), where=scale != 0))


def _nibbles(rows: Bytes, at: int) -> npt.NDArray[np.int32]:
    packed = rows[:, at : at + 16]
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.int32)


def _packed(quants: Bytes) -> Bytes:
    return np.asarray((quants[:, :16] & 15) | (quants[:, 16:] & 15) << 4, np.uint8)


def _fifth_bits(rows: Bytes, at: int) -> npt.NDArray[np.int32]:
    return np.unpackbits(rows[:, at : at + 4], axis=1, bitorder="little").astype(np.int32) << 4


def _decode_q8_0(rows: Bytes) -> Floats:
    return _half(rows, 0) * rows[:, 2:].view(np.int8)


def _encode_q8_0(weights: Floats) -> Bytes:
    d, scale = _scale(np.abs(weights).max(1) / 127)
    return np.hstack([d, _steps(weights, scale).clip(-127, 127).astype(np.int8).view(np.uint8)])


def _symmetric(bits: int) -> tuple[Callable[[Bytes], Floats], Callable[[Floats], Bytes]]:
    """q4_0 and q5_0: the weight of largest magnitude is the least number of the range."""
    middle = 1 << (bits - 1)

    def decode(rows: Bytes) -> Floats:
        high = _fifth_bits(rows, 2) if bits == 5 else 0
        return _half(rows, 0) * ((_nibbles(rows, rows.shape[1] - 16) | high) - middle)

    def encode(weights: Floats) -> Bytes:
        largest = np.take_along_axis(weights, np.abs(weights).argmax(1)[:, None], 1)[:, 0]
        d, scale = _scale(largest / -middle)
        return _with_quants(d, (_steps(weights, scale) + middle).clip(0, 2 * middle - 1), bits)

    return decode, encode


def _with_minimum(bits: int) -> tuple[Callable[[Bytes], Floats], Callable[[Floats], Bytes]]:
    """q4_1 and q5_1: from the least weight to the greatest."""

    def decode(rows: Bytes) -> Floats:
        high = _fifth_bits(rows, 4) if bits == 5 else 0
        return _half(rows, 0) * (_nibbles(rows, rows.shape[1] - 16) | high) + _half(rows, 2)

    def encode(weights: Floats) -> Bytes:
        low = weights.min(1)
        (d, scale), (m, least) = _scale((weights.max(1) - low) / ((1 << bits) - 1)), _scale(low)
        return _with_quants(np.hstack([d, m]), _steps(weights - least, scale).clip(0, (1 << bits) - 1), bits)

    return decode, encode


def _with_quants(head: Bytes, quants: Floats, bits: int) -> Bytes:
    q = quants.astype(np.uint8)
    high = [np.packbits(q >> 4, axis=1, bitorder="little")] if bits == 5 else []
    return np.hstack([head, *high, _packed(q)])


# ---------------------------------------------------------------------------------------------------------------------
# 256 weights


def _decode_q5_k(rows: Bytes) -> Floats:
    scale, minimum = unpack_scales(rows[:, 4:16])
    low = rows[:, 48:].reshape(-1, 4, 1, 32)
    quants = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 8, 32)
    high = (rows[:, 16:48].reshape(-1, 1, 32) >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    weights = (_half(rows, 0) * scale)[..., None] * (quants | high << 4) - (_half(rows, 2) * minimum)[..., None]
    return weights.reshape(-1, 256).astype(np.float32)


def _encode_q5_k(weights: Floats) -> Bytes:
    subs = weights.reshape(-1, 8, 32)
    low = np.minimum(subs.min(-1), 0)
    d, scale = six_bits((np.maximum(subs.max(-1), low) - low) / 31)
    dmin, minimum = six_bits(-low)
    if not (np.isfinite(d).all() and np.isfinite(dmin).all()):
        raise ValueError(f"w reaches {np.abs(weights).max():g}: its scales do not fit in the format's f16")
    step = (d.astype(np.float32)[:, None] * scale)[..., None]
    shift = (dmin.astype(np.float32)[:, None] * minimum)[..., None]
    q = _steps(subs + shift, np.broadcast_to(step, subs.shape)).clip(0, 31).astype(np.uint8)
    high = np.bitwise_or.reduce((q >> 4) << np.arange(8, dtype=np.uint8)[:, None], axis=1)
    pairs = q.reshape(-1, 4, 2, 32) & 15
    nibbles = (pairs[:, :, 0] | pairs[:, :, 1] << 4).reshape(-1, 128)
    heads = [each.view(np.uint8).reshape(-1, 2) for each in (d, dmin)]
    return np.hstack([*heads, pack_scales(scale, minimum), high, nibbles])


def _decode_q6_k(rows: Bytes) -> Floats:
    low = rows[:, :128].reshape(-1, 2, 1, 2, 32)
    nibbles = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    high = (rows[:, 128:192].reshape(-1, 2, 1, 32) >> np.arange(0, 8, 2, dtype=np.uint8)[:, None]) & 3
    quants = (nibbles | high << 4).astype(np.int32).reshape(-1, 16, 16) - 32
    scales = _half(rows, 208) * rows[:, 192:208].view(np.int8)
    return (scales[..., None] * quants).reshape(-1, 256).astype(np.float32)


def _encode_q6_k(weights: Floats) -> Bytes:
    subs = weights.reshape(-1, 16, 16)
    largest = np.take_along_axis(subs, np.abs(subs).argmax(-1)[..., None], -1)[..., 0] / -32
    most = np.take_along_axis(largest, np.abs(largest).argmax(1)[:, None], 1)[:, 0]
    d, unit = _scale(most / -128)
    scales = _steps(largest, np.broadcast_to(unit, largest.shape)).clip(-128, 127).astype(np.int8)
    step = (unit * scales)[..., None]
    q = (_steps(subs, np.broadcast_to(step, subs.shape)) + 32).clip(0, 63).astype(np.uint8).reshape(-1, 2, 4, 32)
    low = (q[:, :, :2] & 15) | (q[:, :, 2:] & 15) << 4
    high = np.bitwise_or.reduce((q >> 4) << np.arange(0, 8, 2, dtype=np.uint8)[:, None], axis=2)
    return np.hstack([low.reshape(-1, 128), high.reshape(-1, 64), scales.view(np.uint8), d])


FORMATS: dict[str, Format] = {
    "q8_0": Format(32, 34, _decode_q8_0, _encode_q8_0),
    "q4_0": Format(32, 18, *_symmetric(4)),
    "q4_1": Format(32, 20, *_with_minimum(4)),
    "q5_0": Format(32, 22, *_symmetric(5)),
    "q5_1": Format(32, 24, *_with_minimum(5)),
    "q4_k": Format(256, 144, lambda rows: dequantize_q4k(rows, 256), quantize_q4k),
    "q5_k": Format(256, 176, _decode_q5_k, _encode_q5_k),
    "q6_k": Format(256, 210, _decode_q6_k, _encode_q6_k),
}
