"""Kernels that read what lies around an element, or what belongs to all others: filters, stencils, particles, keys."""

from __future__ import annotations

from math import inf, log2, e

import numpy as np
from ptxdsl import Ptr, break_if, const, f32, loop, maximum, ptx, ptx_kernel, reg, s32, shared, u32, when
from ptxdsl import warp
from real.case import Case

from .pair import pair

__all__ = ["conv1d", "decode", "heat3d", "n_body", "stencil5"]


@ptx_kernel
def conv1d(n: u32, x: Ptr[const[f32]], taps: Ptr[f32], y: Ptr[f32]) -> None:
    """Nine taps; a block's part goes through shared memory."""
    part, t = shared(f32, 128 + 8), ptx.tid.x
    i = ptx.ctaid.x * 128 + t
    with loop(t, 128 + 8, 128) as j:
        at, v = (ptx.ctaid.x * 128 + j - 4).bits(s32), reg(f32, 0.0)
        x.load(at, pred=(at >= 0) & (at < n.bits(s32)), out=v)
        part[j] = v
    ptx.bar.sync(0)
    with when(i < n):
        acc = reg(f32, 0.0)
        for k in range(9):
            acc += (part + t)[k] * taps[k]
        y[i] = acc


@ptx_kernel
def stencil5(h: u32, w: u32, rate: f32, x: Ptr[const[f32]], y: Ptr[f32]) -> None:
    """Five points of a plane."""
    j, i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x, ptx.ctaid.y * ptx.ntid.y + ptx.tid.y
    with when((i >= 1) & (i < h - 1) & (j >= 1) & (j < w - 1)):
        at = x + (i * w + j)
        y[i * w + j] = at[0] + rate * (at[-1] + at[1] + (at - w)[0] + at[w] - 4.0 * at[0])


@ptx_kernel
def heat3d(n: u32, rate: f32, x: Ptr[const[f32]], y: Ptr[f32]) -> None:
    """Seven points of a cube; a thread goes through it, and keeps what is below it."""
    k, j = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x, ptx.ctaid.y * ptx.ntid.y + ptx.tid.y
    with when((k >= 1) & (k < n - 1) & (j >= 1) & (j < n - 1)):
        at = x + (j * n + k)
        below, here = reg(f32, at[0]), reg(f32, at[n * n])
        p, result = reg(at + n * n), reg(y + (n * n + j * n + k))
        with loop(1, n - 1) as _:
            above = p[n * n]
            sides = below + above + p[-1] + p[1] + (p - n)[0] + p[n]
            result[0] = here + rate * (sides - 6.0 * here)
            below.set(here)
            here.set(above)
            p += n * n
            result += n * n


@ptx_kernel
def n_body(n: u32, eps: f32, bodies: Ptr[const[f32]], out: Ptr[f32]) -> None:
    """Accelerations; tiles of 128 bodies go through shared memory."""
    tile, t, acc = shared(f32, 128, 4), ptx.tid.x, [reg(f32, 0.0) for _ in range(3)]
    i = ptx.ctaid.x * 128 + t
    x, y, z, mass = bodies.load(i * 4, width=4)
    with loop(0, n, 128) as start:
        tile.store((t, 0), bodies.load((start + t) * 4, width=4))
        ptx.bar.sync(0)
        row, end = reg(tile.at(0, 0)), tile.at(0, 0) + 128 * 4
        with loop():
            for j in range(8):
                ox, oy, oz, other_mass = row.load(j * 4, width=4)
                d = ox - x, oy - y, oz - z
                inverse = ptx.rsqrt.approx.f32(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + eps)
                s = other_mass * inverse * inverse * inverse
                for a, part in zip(acc, d):
                    a += part * s
            row += 8 * 4
            break_if(row == end)
        ptx.bar.sync(0)
    out.store(i * 4, [*acc, mass])


@ptx_kernel
def decode(keys: u32, scale: f32, q: Ptr[const[f32]], k: Ptr[const[f32]], v: Ptr[const[f32]], out: Ptr[f32]) -> None:
    """One query against all keys, a warp a head of 128."""
    lane, head = ptx.tid.x, ptx.ctaid.x * ptx.ntid.y + ptx.tid.y
    steps = range(0, 128, 32)
    query_row, result = q + (head * 128 + lane), out + (head * 128 + lane)
    query = [query_row[j] for j in steps]
    sums, top, total = [reg(f32, 0.0) for _ in steps], reg(f32, -inf), reg(f32, 0.0)
    mine = ptx.mul.wide.u32(head, keys * 128)
    keys_of, values_of = k + mine, v + mine
    with loop(keys) as key:
        dot, at = reg(f32, 0.0), key * 128 + lane
        key_row, value_row = keys_of + at, values_of + at
        for a, j in zip(query, steps):
            dot += a * key_row[j]
        score = warp.reduce_sum(dot) * scale
        higher = maximum(top, score)
        weight, shrink = ptx.ex2.approx.f32(score - higher), ptx.ex2.approx.f32(top - higher)
        top.set(higher)
        total.set(total * shrink + weight)
        for part, j in zip(sums, steps):
            part.set(part * shrink + weight * value_row[j])
    inverse = ptx.rcp.approx.f32(total)
    for part, j in zip(sums, steps):
        result[j] = part * inverse


@pair(conv1d, "FFMA")
def _conv1d(rng: np.random.Generator) -> Case:
    x, taps = rng.standard_normal(301).astype(np.float32), rng.standard_normal(9).astype(np.float32)
    want = np.convolve(x.astype(float), taps[::-1].astype(float), "same")
    return Case(3, 128, [301, x, taps, np.full_like(x, np.nan)], {3: want}, 1e-5)


@pair(stencil5, "LDG")
def _stencil5(rng: np.random.Generator) -> Case:
    x, y = rng.standard_normal((30, 45)).astype(np.float32), np.zeros((30, 45), np.float32)
    wide, want = x.astype(float), np.zeros((30, 45))
    sides = wide[1:-1, :-2] + wide[1:-1, 2:] + wide[:-2, 1:-1] + wide[2:, 1:-1]
    want[1:-1, 1:-1] = wide[1:-1, 1:-1] + 0.1 * (sides - 4 * wide[1:-1, 1:-1])
    return Case((2, 4), (32, 8), [30, 45, np.float32(0.1), x, y], {4: want}, 1e-6)


@pair(heat3d, "LDG")
def _heat3d(rng: np.random.Generator) -> Case:
    n = 13
    x, y = rng.standard_normal((n, n, n)).astype(np.float32), np.zeros((n, n, n), np.float32)
    wide, want, inner = x.astype(float), np.zeros((n, n, n)), slice(1, -1)
    sides = sum(np.roll(wide, shift, axis) for axis in range(3) for shift in (1, -1))
    want[inner, inner, inner] = (wide + 0.1 * (sides - 6 * wide))[inner, inner, inner]
    return Case((2, 2), (8, 8), [n, np.float32(0.1), x, y], {3: want}, 1e-6)


@pair(n_body, "MUFU")
def _n_body(rng: np.random.Generator) -> Case:
    bodies = rng.uniform(0.5, 1.5, (256, 4)).astype(np.float32)
    at, mass = bodies[:, :3].astype(float), bodies[:, 3].astype(float)
    d = at[None] - at[:, None]
    pull = mass[None, :, None] * d * ((d**2).sum(2) + 0.01)[:, :, None] ** -1.5
    want = np.concatenate([pull.sum(1), mass[:, None]], 1)
    return Case(2, 128, [256, np.float32(0.01), bodies, np.full_like(bodies, np.nan)], {3: want}, 1e-3)


@pair(decode, "LDG")
def _decode(rng: np.random.Generator) -> Case:
    heads, keys = 4, 37
    q, out = rng.standard_normal((heads, 128)).astype(np.float32), np.full((heads, 128), np.nan, np.float32)
    k, v = rng.standard_normal((2, heads, keys, 128)).astype(np.float32)
    scale = np.float32(log2(e) / 128**0.5)
    powers = np.exp2(float(scale) * np.einsum("hd,hkd->hk", q.astype(float), k))
    want = np.einsum("hk,hkd->hd", powers / powers.sum(1, keepdims=True), v)
    return Case(2, (32, 2), [keys, scale, q, k, v, out], {5: want}, 1e-5)
