"""Kernels whose threads do not speak to each other: a number, or a few, in and out."""

from __future__ import annotations

import numpy as np
from ptxdsl import Ptr, const, f32, loop, ptx, ptx_kernel, u32, when
from real.case import Case

from .pair import pair

__all__ = ["adamw", "copy", "embedding", "gelu", "rope", "saxpy"]

THREADS = 128


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[const[f32]], y: Ptr[f32]) -> None:
    """A thread an element."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


@ptx_kernel
def copy(n: u32, x: Ptr[const[f32]], y: Ptr[f32]) -> None:
    """A thread 16 bytes."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n // 4):
        y.store(i * 4, x.load(i * 4, width=4))


@ptx_kernel
def gelu(n: u32, x: Ptr[const[f32]], y: Ptr[f32]) -> None:
    """A grid-stride loop."""
    threads = ptx.ntid.x
    with loop(ptx.ctaid.x * threads + ptx.tid.x, n, ptx.nctaid.x * threads) as i:
        v = x[i]
        t = ptx.tanh.approx.f32(v * (0.7978845608 + 0.0356774081 * (v * v)))
        y[i] = 0.5 * v * (1.0 + t)


@ptx_kernel
def adamw(
    n: u32, rate: f32, beta1: f32, beta2: f32, eps: f32, decay: f32, gradient: Ptr[const[f32]], weight: Ptr[f32],
    first: Ptr[f32], second: Ptr[f32],
) -> None:
    """A step of AdamW, a thread a weight."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        g, w = gradient[i], weight[i]
        m = beta1 * first[i] + (1.0 - beta1) * g
        v = beta2 * second[i] + (1.0 - beta2) * g * g
        first[i] = m
        second[i] = v
        weight[i] = w - rate * (ptx.div.approx.f32(m, ptx.sqrt.rn.f32(v) + eps) + decay * w)


@ptx_kernel
def rope(heads: u32, half: u32, cosines: Ptr[const[f32]], sines: Ptr[const[f32]], x: Ptr[f32]) -> None:
    """Rotary embedding, a block a token."""
    token = ptx.ctaid.x
    with loop(ptx.tid.x, heads * half, ptx.ntid.x) as i:
        head, at = i // half, i % half
        c, s = cosines[token * half + at], sines[token * half + at]
        row = x + (token * heads + head) * half * 2
        a, b = row[at], row[at + half]
        row[at] = a * c - b * s
        row[at + half] = a * s + b * c


@ptx_kernel
def embedding(dim: u32, tokens: Ptr[const[u32]], table: Ptr[const[f32]], out: Ptr[f32]) -> None:
    """The rows of a table that tokens name, a block a row."""
    token, row = ptx.ctaid.x, ptx.mul.wide.u32
    source, target = table + row(tokens[token], dim), out + row(token, dim)
    with loop(ptx.tid.x, dim // 4, ptx.ntid.x) as i:
        target.store(i * 4, source.load(i * 4, width=4))


@pair(saxpy, "LDG")
def _saxpy(rng: np.random.Generator) -> Case:
    n = 1001
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    return Case(-(-n // THREADS), THREADS, [n, np.float32(1.5), x, y], {3: 1.5 * x.astype(float) + y}, 1e-6)


@pair(copy, "LDG")
def _copy(rng: np.random.Generator) -> Case:
    n = 1004
    x = rng.standard_normal(n).astype(np.float32)
    return Case(-(-n // (4 * THREADS)), THREADS, [n, x, np.full_like(x, np.nan)], {2: x})


@pair(gelu, "LDG")
def _gelu(rng: np.random.Generator) -> Case:
    n = 1001
    x = rng.standard_normal(n).astype(np.float32)
    wide = x.astype(float)
    want = 0.5 * wide * (1 + np.tanh(wide * (0.7978845608 + 0.0356774081 * wide**2)))
    return Case(3, THREADS, [n, x, np.full_like(x, np.nan)], {2: want}, 1e-3)


@pair(adamw, "LDG")
def _adamw(rng: np.random.Generator) -> Case:
    n = 1001
    g, w, m, v = rng.standard_normal((4, n)).astype(np.float32)
    v = abs(v)
    rate, beta1, beta2, eps, decay = (np.float32(s) for s in (1e-2, 0.9, 0.999, 1e-8, 0.01))
    new_m = float(beta1) * m + (1 - float(beta1)) * g
    new_v = float(beta2) * v + (1 - float(beta2)) * g.astype(float) ** 2
    new_w = w - float(rate) * (new_m / (np.sqrt(new_v) + float(eps)) + float(decay) * w)
    arguments = [n, rate, beta1, beta2, eps, decay, g, w, m, v]
    return Case(-(-n // THREADS), THREADS, arguments, {7: new_w, 8: new_m, 9: new_v}, 1e-5)


@pair(rope, "LDG")
def _rope(rng: np.random.Generator) -> Case:
    tokens, heads, half = 5, 3, 40
    x = rng.standard_normal((tokens, heads, 2, half)).astype(np.float32)
    angles = rng.uniform(0, 6, (tokens, half))
    c, s = (f(angles).astype(np.float32) for f in (np.cos, np.sin))
    a, b, wide_c, wide_s = x[:, :, 0].astype(float), x[:, :, 1].astype(float), c[:, None], s[:, None]
    want = np.stack([a * wide_c - b * wide_s, a * wide_s + b * wide_c], 2)
    return Case(tokens, 64, [heads, half, c, s, x], {4: want}, 1e-6)


@pair(embedding, "LDG")
def _embedding(rng: np.random.Generator) -> Case:
    rows, dim = 20, 260
    table = rng.standard_normal((rows, dim)).astype(np.float32)
    tokens = rng.integers(0, rows, 7, np.uint32)
    return Case(7, 32, [dim, tokens, table, np.full((7, dim), np.nan, np.float32)], {3: table[tokens]})
