"""GGUF's formats on the host, against their definitions weight by weight, and against what their bits can do."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from gguf_blocks import random_blocks

from ptxdsl.kernels import quant
from ptxdsl.kernels.gguf import FORMATS


def halves(block: bytes, *places: int) -> list[float]:
    return [struct.unpack_from("<e", block, place)[0] for place in places]


def legacy(block: bytes, bits: int, minimum: bool) -> list[float]:
    d, m = halves(block, 0, 2 if minimum else 0)
    at = 4 if minimum else 2
    (high,) = struct.unpack_from("<I", block, at) if bits == 5 else (0,)
    nibbles = block[at + (4 if bits == 5 else 0) :]
    weights = []
    for i in range(32):
        q = (nibbles[i] & 15 if i < 16 else nibbles[i - 16] >> 4) | (((high >> i) & 1) << 4)
        weights.append(d * q + m if minimum else d * (q - (1 << (bits - 1))))
    return weights


def q8_0(block: bytes) -> list[float]:
    return [halves(block, 0)[0] * q for q in struct.unpack_from("<32b", block, 2)]


def q5_k(block: bytes) -> list[float]:
    d, dmin = halves(block, 0, 2)
    packed, high, low = block[4:16], block[16:48], block[48:]
    weights = []
    for i in range(256):
        b = i // 32
        byte = low[32 * (i // 64) + i % 32]
        q = (byte & 15 if b % 2 == 0 else byte >> 4) | (((high[i % 32] >> b) & 1) << 4)
        if b < 4:
            scale, minimum = packed[b] & 63, packed[b + 4] & 63
        else:
            scale = (packed[b + 4] & 15) | ((packed[b - 4] >> 6) << 4)
            minimum = (packed[b + 4] >> 4) | ((packed[b] >> 6) << 4)
        weights.append(d * scale * q - dmin * minimum)
    return weights


def q6_k(block: bytes) -> list[float]:
    (d,) = halves(block, 208)
    low, high, scales = block[:128], block[128:192], struct.unpack_from("<16b", block, 192)
    weights = []
    for i in range(256):
        half, within = divmod(i, 128)
        quarter, lane = divmod(within, 32)
        byte = low[64 * half + 32 * (quarter % 2) + lane]
        nibble = byte & 15 if quarter < 2 else byte >> 4
        q = (nibble | (((high[32 * half + lane] >> (2 * quarter)) & 3) << 4)) - 32
        weights.append(d * scales[i // 16] * q)
    return weights


DEFINITIONS: dict[str, Any] = {
    "q8_0": q8_0, "q5_k": q5_k, "q6_k": q6_k,
    "q4_0": lambda block: legacy(block, 4, False), "q4_1": lambda block: legacy(block, 4, True),
    "q5_0": lambda block: legacy(block, 5, False), "q5_1": lambda block: legacy(block, 5, True),
}
@pytest.mark.parametrize("name", DEFINITIONS)
def test_dequantize_is_the_format(name: str, rng: np.random.Generator) -> None:
    weights, nbytes = FORMATS[name].weights, FORMATS[name].nbytes
    blocks = random_blocks(rng, 4, 3, name)
    got = quant.dequantize(blocks, 3 * weights, name)
    expected = [DEFINITIONS[name](block.tobytes()) for block in blocks.reshape(-1, nbytes)]
    np.testing.assert_allclose(got.reshape(-1, weights), expected, rtol=1e-6)


WORST = {
    "q8_0": 1 / 200, "q4_0": 1 / 6, "q4_1": 1 / 12, "q5_0": 1 / 14, "q5_1": 1 / 28, "q4_k": 1 / 7, "q5_k": 1 / 20,
    "q6_k": 1 / 25,
}
"""The largest error, in parts of the largest weight; half a step and what the rounding of the scales adds."""


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", [(256,), (3, 512), (2, 2, 768)])
def test_error_is_what_the_bits_allow(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    w = rng.uniform(-1, 1, shape).astype(np.float32)
    blocks = quant.quantize(w, name)
    kind = FORMATS[name]
    assert blocks.shape == (*shape[:-1], shape[-1] // kind.weights * kind.nbytes) and blocks.dtype == np.uint8
    assert np.abs(quant.dequantize(blocks, shape[-1], name) - w).max() < WORST[name]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 1e-3])
def test_constant_weights(name: str, value: float) -> None:
    restored = quant.dequantize(quant.quantize(np.full(256, value, np.float32), name), 256, name)
    np.testing.assert_allclose(restored, value, rtol=3e-2, atol=1e-6)


@pytest.mark.parametrize("name", FORMATS)
def test_quantising_again_gives_the_same(name: str, rng: np.random.Generator) -> None:
    """Of what is on the grid already the scales may be others, the weights are near."""
    w = quant.dequantize(quant.quantize(rng.standard_normal(512), name), 512, name)
    again = quant.dequantize(quant.quantize(w, name), 512, name)
    assert np.abs(again - w).max() <= WORST[name] * np.abs(w).max()


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"^there is no format 'q3_k'; there are q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, "):
        quant.quantize(np.zeros(256), "q3_k")
    with pytest.raises(ValueError, match=r"^w has shape \(33,\): its last dimension must be a multiple of 32$"):
        quant.quantize(np.zeros(33), "q8_0")
    with pytest.raises(ValueError, match="^w has weights that are not finite$"):
        quant.quantize(np.full(32, np.inf), "q5_1")
    with pytest.raises(ValueError, match="which does not fit in the format's f16$"):
        quant.quantize(np.full(256, 1e30), "q6_k")
    with pytest.raises(TypeError, match="^blocks has dtype int8, not uint8$"):
        quant.dequantize(np.zeros(34, np.int8), 32, "q8_0")
    with pytest.raises(ValueError, match=r"^blocks has shape \(35,\): 32 weights take a last dimension of 34$"):
        quant.dequantize(np.zeros(35, np.uint8), 32, "q8_0")
    with pytest.raises(ValueError, match="^k is 31, not a positive multiple of 32$"):
        quant.dequantize(np.zeros(34, np.uint8), 31, "q8_0")
