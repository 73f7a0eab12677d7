"""Kernels that reduce, normalise or scan: a block a row, or all blocks one array."""

from __future__ import annotations

from math import e, inf, log2
from typing import Any

import numpy as np
from ptxdsl import Ptr, const, f32, loop, maximum, ptx, ptx_kernel, reg, shared, u8, u32, when
from ptxdsl import warp
from real.case import Case

from .pair import pair

__all__ = ["dot", "histogram", "layer_norm", "rms_norm", "scan", "softmax"]

WARPS = 8
THREADS = 32 * WARPS


def across_warps(op: Any, value: Any) -> Any:
    """One value a warp becomes one value a block."""
    parts = shared(f32, WARPS)
    with when(ptx.tid.x % 32 == 0):
        parts[ptx.tid.x // 32] = value
    ptx.bar.sync(0)
    total = parts[0]
    for other in range(1, WARPS):
        total = op(total, parts[other])
    return total


def block_sum(value: Any) -> Any:
    return across_warps(lambda a, b: a + b, warp.reduce_sum(value))


def block_max(value: Any) -> Any:
    return across_warps(maximum, warp.reduce_max(value))


@ptx_kernel
def softmax(n: u32, x: Ptr[const[f32]], y: Ptr[f32]) -> None:
    """Three passes over a row."""
    row = ptx.mul.wide.u32(ptx.ctaid.x, n)
    x_row, y_row, top, total = x + row, y + row, reg(f32, -inf), reg(f32, 0.0)
    with loop(ptx.tid.x, n, THREADS, unroll=16) as i:
        top.set(maximum(top, x_row[i]))
    shift = block_max(top) * -log2(e)
    with loop(ptx.tid.x, n, THREADS, unroll=16) as i:
        power = ptx.ex2.approx.f32(x_row[i] * log2(e) + shift)
        y_row[i] = power
        total += power
    scale = ptx.rcp.approx.f32(block_sum(total))
    with loop(ptx.tid.x, n, THREADS, unroll=4) as i:
        y_row[i] = y_row[i] * scale


@ptx_kernel
def layer_norm(
    n: u32, eps: f32, x: Ptr[const[f32]], weight: Ptr[const[f32]], bias: Ptr[const[f32]], y: Ptr[f32]
) -> None:
    """Three passes over a row."""
    row = ptx.mul.wide.u32(ptx.ctaid.x, n)
    x_row, y_row, total, squares = x + row, y + row, reg(f32, 0.0), reg(f32, 0.0)
    with loop(ptx.tid.x, n, THREADS, unroll=16) as i:
        total += x_row[i]
    mean = ptx.div.approx.f32(block_sum(total), n.to(f32))
    with loop(ptx.tid.x, n, THREADS, unroll=16) as i:
        centred = x_row[i] - mean
        squares += centred * centred
    ptx.bar.sync(0)
    scale = ptx.rsqrt.approx.f32(ptx.div.approx.f32(block_sum(squares), n.to(f32)) + eps)
    with loop(ptx.tid.x, n, THREADS, unroll=4) as i:
        y_row[i] = (x_row[i] - mean) * scale * weight[i] + bias[i]


@ptx_kernel
def rms_norm(x: Ptr[const[f32]], weight: Ptr[const[f32]], y: Ptr[f32], eps: f32, *, n: int = 4096) -> None:
    """A row stays in registers, 16 bytes a load."""
    row, first = ptx.mul.wide.u32(ptx.ctaid.x, n), ptx.tid.x * 4
    x_row, y_row, w_row, squares = x + row + first, y + row + first, weight + first, reg(f32, 0.0)
    steps = range(0, n, 4 * THREADS)
    values = [x_row.load(j, width=4) for j in steps]
    for part in values:
        for v in part:
            squares += v * v
    scale = ptx.rsqrt.approx.f32(block_sum(squares) * (1 / n) + eps)
    for j, part in zip(steps, values):
        y_row.store(j, [v * scale * w for v, w in zip(part, w_row.load(j, width=4))])


@ptx_kernel
def dot(n: u32, x: Ptr[const[f32]], y: Ptr[const[f32]], out: Ptr[f32]) -> None:
    """A grid-stride loop, and an atomic a block."""
    total = reg(f32, 0.0)
    with loop(ptx.ctaid.x * ptx.ntid.x + ptx.tid.x, n, ptx.nctaid.x * ptx.ntid.x) as i:
        total += x[i] * y[i]
    whole = block_sum(total)
    with when(ptx.tid.x == 0):
        ptx.red.global_.add.f32(out, whole)


@ptx_kernel
def scan(n: u32, x: Ptr[const[u32]], y: Ptr[u32]) -> None:
    """The running sums of a block."""
    totals, t = shared(u32, WARPS), ptx.tid.x
    i, lane, mine = ptx.ctaid.x * THREADS + t, t % 32, t // 32
    v = reg(u32, 0)
    x.load(i, pred=i < n, out=v)
    for offset in (1, 2, 4, 8, 16):
        other = ptx.shfl.sync.up.b32(v, offset, 0, 0xFFFFFFFF)
        ptx.add.u32(v, other, out=v, pred=lane >= offset)
    with when(lane == 31):
        totals[mine] = v
    ptx.bar.sync(0)
    for warp_before in range(WARPS - 1):
        with when(mine > warp_before):
            v += totals[warp_before]
    with when(i < n):
        y[i] = v


@ptx_kernel
def histogram(n: u32, data: Ptr[const[u8]], counts: Ptr[u32]) -> None:
    """A histogram a block, added up with atomics."""
    mine, t = shared(u32, 256), ptx.tid.x
    mine[t] = 0
    ptx.bar.sync(0)
    with loop(ptx.ctaid.x * 256 + t, n, ptx.nctaid.x * 256) as i:
        ptx.red.shared.add.u32(mine.at(data[i].to(u32)), 1)
    ptx.bar.sync(0)
    ptx.red.global_.add.u32(counts.at(t), mine[t])


@pair(softmax, "LDG")
def _softmax(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((3, 1001)).astype(np.float32)
    powers = np.exp(x.astype(float) - x.max(axis=1, keepdims=True))
    want = powers / powers.sum(axis=1, keepdims=True)
    return Case(3, THREADS, [1001, x, np.full_like(x, np.nan)], {2: want}, 1e-5)


@pair(layer_norm, "LDG")
def _layer_norm(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((3, 1001)).astype(np.float32)
    w, b = rng.standard_normal((2, 1001)).astype(np.float32)
    wide = x.astype(float)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * w + b
    return Case(3, THREADS, [1001, np.float32(1e-5), x, w, b, np.full_like(x, np.nan)], {5: want}, 1e-5)


@pair(rms_norm, "LDG")
def _rms_norm(rng: np.random.Generator) -> Case:
    x, w = rng.standard_normal((3, 4096)).astype(np.float32), rng.standard_normal(4096).astype(np.float32)
    wide = x.astype(float)
    want = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6) * w
    return Case(3, THREADS, [x, w, np.full_like(x, np.nan), np.float32(1e-6)], {2: want}, 1e-5)


@pair(dot, "LDG")
def _dot(rng: np.random.Generator) -> Case:
    x, y = rng.standard_normal((2, 5001)).astype(np.float32)
    return Case(3, THREADS, [5001, x, y, np.zeros(1, np.float32)], {3: [x.astype(float) @ y]}, 1e-3)


@pair(scan, "SHFL")
def _scan(rng: np.random.Generator) -> Case:
    x = rng.integers(0, 1 << 32, 700, np.uint32)
    want = np.concatenate([np.cumsum(part, dtype=np.uint32) for part in np.split(x, [256, 512])])
    return Case(3, THREADS, [700, x, np.zeros_like(x)], {2: want})


@pair(histogram, "LDG")
def _histogram(rng: np.random.Generator) -> Case:
    data = rng.integers(0, 256, 5001, np.uint8)
    return Case(3, THREADS, [5001, data, np.zeros(256, np.uint32)], {2: np.bincount(data, minlength=256)})
