"""Decoding with a small transformer layer in Q4_K: RMSNorm, projections, RoPE, KV cache, grouped attention, SwiGLU."""

import numpy as np

from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32
from ptxdsl.bench import Row, compare, report
from ptxdsl.kernels import reference
from ptxdsl.kernels.attention import decode_attention
from ptxdsl.kernels.quant import dequantize_q4k, q4k_gemv, quantize_q4k, rmsnorm_q4k_gemv

WIDTH, HEADS, KEY_HEADS, DIM, INNER, LONGEST = 256, 4, 2, 64, 512, 16
SHAPES = {
    "q": (HEADS * DIM, WIDTH), "k": (KEY_HEADS * DIM, WIDTH), "v": (KEY_HEADS * DIM, WIDTH), "o": (WIDTH, HEADS * DIM),
    "gate": (INNER, WIDTH), "up": (INNER, WIDTH), "down": (WIDTH, INNER),
}


@ptx_kernel
def rope(x: Ptr[f32], turns: Ptr[f32], out: Ptr[f32], stride: u32, *, dim: int = DIM) -> None:
    """Turn the pairs (i, i + dim / 2) of each head; head h of the result begins at out[h * stride]."""
    i, head = ptx.tid.x, ptx.ctaid.x
    cos, sin = turns.load(i * 2, width=2)
    a, b = x[head * dim + i], x[head * dim + i + dim // 2]
    out[head * stride + i] = a * cos - b * sin
    out[head * stride + i + dim // 2] = a * sin + b * cos


def angles(position: int) -> np.ndarray:
    return position * 10000.0 ** (-np.arange(DIM // 2) / (DIM // 2))


def step(x: np.ndarray, w: dict[str, np.ndarray], g: np.ndarray, k: np.ndarray, v: np.ndarray, at: int) -> np.ndarray:
    """The layer's output for one token at position ``at``; its key and value go to the caches."""
    turns = np.stack([np.cos(angles(at)), np.sin(angles(at))], -1).astype(np.float32)
    q, key, value = (rmsnorm_q4k_gemv(x, g[0], w[name], SHAPES[name][0]) for name in "qkv")
    turned = np.empty((1, HEADS, DIM), np.float32)
    rope[HEADS, DIM // 2](q, turns, turned, DIM)
    rope[KEY_HEADS, DIM // 2](key, turns, k.reshape(-1)[at * DIM :], LONGEST * DIM)
    v[0, :, at] = value.reshape(KEY_HEADS, DIM)
    x = x + q4k_gemv(decode_attention(turned, k, v, at + 1).reshape(1, -1), w["o"], WIDTH)
    gate, up = (rmsnorm_q4k_gemv(x, g[1], w[name], INNER) for name in ("gate", "up"))
    y: np.ndarray = x + q4k_gemv(gate / (1 + np.exp(-gate)) * up, w["down"], WIDTH)
    return y


def expected_outputs(tokens: np.ndarray, w: dict[str, np.ndarray], g: np.ndarray) -> np.ndarray:
    """The same for all tokens at once, in float64 with unpacked weights."""
    w = {name: dequantize_q4k(blocks, SHAPES[name][1]).astype(np.float64) for name, blocks in w.items()}
    x, count = tokens.astype(np.float64), len(tokens)
    q, k, v = ((reference.rms_norm(x, g[0]) @ w[name].T).reshape(count, -1, DIM).swapaxes(0, 1)[None] for name in "qkv")
    turn = np.exp(1j * np.array([angles(at) for at in range(count)]))
    q, k = (((z[..., : DIM // 2] + 1j * z[..., DIM // 2 :]) * turn) for z in (q, k))
    q, k = (np.concatenate([z.real, z.imag], -1) for z in (q, k))
    heads = reference.attention(q, k, v, reference.causal(count, count))
    x = x + heads[0].swapaxes(0, 1).reshape(count, -1) @ w["o"].T
    gate, up = (reference.rms_norm(x, g[1]) @ w[name].T for name in ("gate", "up"))
    y: np.ndarray = x + (gate / (1 + np.exp(-gate)) * up) @ w["down"].T
    return y


def main(count: int = 4) -> Row:
    rng = np.random.default_rng()
    w = {name: quantize_q4k(rng.standard_normal(shape) * shape[1] ** -0.5) for name, shape in SHAPES.items()}
    g, tokens = 1 + 0.1 * rng.standard_normal((2, WIDTH)), rng.standard_normal((count, WIDTH)).astype(np.float32)
    g, out = g.astype(np.float32), np.full_like(tokens, np.nan)
    k, v = np.full((2, 1, KEY_HEADS, LONGEST, DIM), np.nan, np.float32)

    def launch() -> None:
        for at in range(count):
            out[at] = step(tokens[at : at + 1], w, g, k, v, at)

    return compare(f"decode step, {count} tokens", launch, out, expected_outputs(tokens, w, g), 1e-5)


if __name__ == "__main__":
    report(main())
