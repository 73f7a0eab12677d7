"""Q4_K on the host: against the format's own definition, byte by byte, and against what 4 bits can do."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from ptxdsl.kernels.q4k import BLOCK_BYTES, dequantize_q4k, quantize_q4k


def scalar_dequantize(block: bytes) -> list[np.float32]:
    """One super-block as the format's description reads, weight by weight."""
    d, dmin = (np.float32(v) for v in struct.unpack("<2e", block[:4]))
    packed, qs = block[4:16], block[16:]
    weights = []
    for i in range(256):
        group, b = i // 64, i // 32
        byte = qs[32 * group + i % 32]
        q = byte & 15 if b % 2 == 0 else byte >> 4
        if b < 4:
            scale, minimum = packed[b] & 63, packed[b + 4] & 63
        else:
            scale = (packed[b + 4] & 15) | ((packed[b - 4] >> 6) << 4)
            minimum = (packed[b + 4] >> 4) | ((packed[b] >> 6) << 4)
        weights.append(d * np.float32(scale) * np.float32(q) - dmin * np.float32(minimum))
    return weights


def test_dequantize_is_the_format(rng: np.random.Generator) -> None:
    blocks = rng.integers(0, 256, (5, BLOCK_BYTES), np.uint8)
    blocks[:, 1] &= 0x7B  # finite scales
    blocks[:, 3] &= 0x7B
    for block, weights in zip(blocks, dequantize_q4k(blocks, 256)):
        np.testing.assert_array_equal(weights, np.array(scalar_dequantize(block.tobytes()), np.float32))


@pytest.mark.parametrize("shape", [(256,), (3, 512), (2, 2, 768)])
def test_error_is_what_four_bits_allow(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    w = rng.standard_normal(shape).astype(np.float32)
    blocks = quantize_q4k(w)
    assert blocks.shape == (*shape[:-1], shape[-1] // 256 * 144) and blocks.dtype == np.uint8
    error = dequantize_q4k(blocks, shape[-1]) - w
    span = np.ptp(w.reshape(-1, 32), axis=1).max()
    assert abs(error).max() < span / 15 and np.sqrt(np.square(error).mean()) < 0.085


def test_fit_beats_plain_rounding(rng: np.random.Generator) -> None:
    w = rng.standard_normal(256 * 64).astype(np.float32)
    subs = w.reshape(-1, 32)
    low, step = subs.min(-1, keepdims=True), np.ptp(subs, axis=-1, keepdims=True) / 15
    plain = np.square(np.rint((subs - low) / step) * step + low - subs).mean()
    assert np.square(dequantize_q4k(quantize_q4k(w), w.size) - w).mean() < plain


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 1e-6, -1e4])
def test_constant_weights(value: float) -> None:
    restored = dequantize_q4k(quantize_q4k(np.full(256, value, np.float32)), 256)
    np.testing.assert_allclose(restored, value, rtol=2e-2, atol=1e-6)


def test_exactly_representable_weights_come_back_exactly(rng: np.random.Generator) -> None:
    scale, minimum = rng.integers(1, 64, 8), rng.integers(0, 64, 8)
    scale[0], minimum[0] = 63, 63
    q = rng.integers(0, 16, (8, 32))
    q[:, 0], q[:, 1] = 0, 15
    w = (2.0**-6 * scale[:, None] * q - 2.0**-3 * minimum[:, None]).astype(np.float32).reshape(-1)
    np.testing.assert_allclose(dequantize_q4k(quantize_q4k(w), 256), w, atol=2.0**-6)


@pytest.mark.parametrize(
    ("w", "message"),
    [
        (np.zeros(255, np.float32), "w has shape (255,): its last dimension must be a multiple of 256"),
        (np.zeros((4, 0), np.float32), "w has shape (4, 0): its last dimension must be a multiple of 256"),
        (np.full(256, np.nan, np.float32), "w has weights that are not finite"),
        (np.full(256, -1e9, np.float32), "w reaches 1e+09: its scales do not fit in the format's f16"),
    ],
)
def test_quantize_refuses(w: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        quantize_q4k(w)
    assert str(caught.value) == message


def test_dequantize_refuses() -> None:
    with pytest.raises(TypeError, match=r"^blocks has dtype int8, not uint8$"):
        dequantize_q4k(np.zeros(144, np.int8), 256)
    with pytest.raises(ValueError, match=r"^k is 100, not a positive multiple of 256$"):
        dequantize_q4k(np.zeros(144, np.uint8), 100)
    with pytest.raises(ValueError, match=r"^blocks has shape \(145,\): 256 weights take a last dimension of 144$"):
        dequantize_q4k(np.zeros(145, np.uint8), 256)
