"""Products of matrices and vectors, and a transpose."""

from __future__ import annotations

from typing import Any

import numpy as np
from ptxdsl import Ptr, bf16, const, dtype_of, f16, f32, loop, otherwise, ptx, ptx_kernel, reg, shared, u8, u32, when
from ptxdsl import warp
from real.case import Case

from ptxdsl.kernels.quant import dequantize_q4k, quantize_q4k

from .pair import pair

__all__ = [
    "gemv", "gemv_q4k", "matmul_blocked", "matmul_mma", "matmul_naive", "matmul_tiled", "transpose",
]


@ptx_kernel
def matmul_naive(n: u32, a: Ptr[const[f32]], b: Ptr[const[f32]], c: Ptr[f32]) -> None:
    """A thread an element, straight from global memory."""
    row, col = ptx.ctaid.y * ptx.ntid.y + ptx.tid.y, ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when((row < n) & (col < n)):
        acc, a_at, b_at = reg(f32, 0.0), reg(a + row * n), reg(b + col)
        with loop(n, unroll=4):
            acc += a_at[0] * b_at[0]
            a_at += 1
            b_at += n
        c[row * n + col] = acc


@ptx_kernel
def matmul_tiled(n: u32, a: Ptr[const[f32]], b: Ptr[const[f32]], c: Ptr[f32]) -> None:
    """A thread an element; tiles of 16 by 16 go through shared memory."""
    at, bt, tx, ty = shared(f32, 16, 16), shared(f32, 16, 16), ptx.tid.x, ptx.tid.y
    row, col, acc = ptx.ctaid.y * 16 + ty, ptx.ctaid.x * 16 + tx, reg(f32, 0.0)
    a_row, b_at = a + (row * n + tx), reg(b + (ty * n + col))
    with loop(0, n, 16, unroll=4) as k:
        at[ty, tx] = a_row[k]
        bt[ty, tx] = b_at[0]
        b_at += n * 16
        ptx.bar.sync(0)
        for kk in range(16):
            acc += at[ty, kk] * bt[kk, tx]
        ptx.bar.sync(0)
    c[row * n + col] = acc


@ptx_kernel
def matmul_blocked(n: u32, a: Ptr[const[f32]], b: Ptr[const[f32]], c: Ptr[f32]) -> None:
    """A thread 4 by 4 elements of a tile of 64 by 64."""
    at, bt, t = shared(f32, 16, 64), shared(f32, 16, 64), ptx.tid.x
    tx, ty, row, col = t % 16, t // 16, ptx.ctaid.y * 64, ptx.ctaid.x * 64
    acc = [[reg(f32, 0.0) for _ in range(4)] for _ in range(4)]
    a_row, b_at = a + ((row + t // 4) * n + t % 4 * 4), reg(b + (t // 16 * n + col + t % 16 * 4))
    a_to, b_to = at.at(t % 4 * 4, t // 4), bt.at(t // 16, t % 16 * 4)
    lefts, rights = at.at(0, ty * 4), bt.at(0, tx * 4)
    with loop(0, n, 16) as k:
        for i, part in enumerate(a_row.load(k, width=4)):
            a_to[64 * i] = part
        b_to.store(0, b_at.load(width=4))
        b_at += n * 16
        ptx.bar.sync(0)
        for kk in range(16):
            left, right = lefts.load(kk * 64, width=4), rights.load(kk * 64, width=4)
            for i in range(4):
                for j in range(4):
                    acc[i][j] += left[i] * right[j]
        ptx.bar.sync(0)
    for i in range(4):
        c.store((row + ty * 4 + i) * n + col + tx * 4, acc[i])


@ptx_kernel
def matmul_mma(n: u32, a: Ptr[const[bf16]], b: Ptr[const[bf16]], c: Ptr[f32]) -> None:
    """A warp 16 rows by 8 columns, straight from global memory; b has its columns as rows."""
    lane, mine = ptx.tid.x % 32, ptx.tid.x // 32
    group, pair = lane // 4, lane % 4 * 2
    row, col = ptx.ctaid.y * 16 + group, (ptx.ctaid.x * 4 + mine) * 8
    acc = [reg(f32, 0.0) for _ in range(4)]

    a_rows = [a + ((row + i) * n + pair) for i in (0, 8)]
    b_row = b + ((col + group) * n + pair)

    def two(row: Any, k: Any) -> Any:
        return row.at(k).cast(u32)[0]

    with loop(0, n, 16, unroll=4) as k:
        left = [two(a_rows[i % 2] + i // 2 * 8, k) for i in range(4)]
        right = [two(b_row + i * 8, k) for i in range(2)]
        ptx["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"](left, right, acc, out=acc)
    c.store(row * n + col + pair, acc[:2])
    c.store((row + 8) * n + col + pair, acc[2:])


@ptx_kernel
def transpose(rows: u32, cols: u32, x: Ptr[const[f32]], y: Ptr[f32]) -> None:
    """Tiles of 32 by 32 go through shared memory."""
    tile, tx, ty = shared(f32, 32, 33), ptx.tid.x, ptx.tid.y
    col, row = ptx.ctaid.x * 32, ptx.ctaid.y * 32
    put, get = tile.at(ty, tx), tile.at(tx, ty)
    sources = [x + ((row + ty) * cols + col + tx) + cols * j for j in range(0, 32, 8)]
    targets = [y + ((col + ty) * rows + row + tx) + rows * j for j in range(0, 32, 8)]
    for j, source in zip(range(0, 32, 8), sources):
        with when((row + ty + j < rows) & (col + tx < cols)):
            put[j * 33] = source[0]
    ptx.bar.sync(0)
    for j, target in zip(range(0, 32, 8), targets):
        with when((col + ty + j < cols) & (row + tx < rows)):
            target[0] = get[j]


@ptx_kernel
def gemv(rows: u32, cols: u32, a: Ptr[const[f32]], x: Ptr[const[f32]], y: Ptr[f32]) -> None:
    """A warp a row, 16 bytes a load."""
    row, acc = ptx.ctaid.x * ptx.ntid.y + ptx.tid.y, reg(f32, 0.0)
    with when(row < rows):
        mine = a + ptx.mul.wide.u32(row, cols)
        with loop(ptx.tid.x * 4, cols, 128, unroll=16) as i:
            for u, v in zip(mine.load(i, width=4), x.load(i, width=4)):
                acc += u * v
        total = warp.reduce_sum(acc)
        with when(ptx.tid.x == 0):
            y[row] = total


@ptx_kernel
def gemv_q4k(rows: u32, blocks: u32, w: Ptr[const[u32]], x: Ptr[const[f32]], y: Ptr[f32]) -> None:
    """A warp a row; of each super-block of 36 words a lane takes the word 4 + lane: 8 weights in two sub-blocks."""
    lane, row, acc = ptx.tid.x, ptx.ctaid.x * ptx.ntid.y + ptx.tid.y, reg(f32, 0.0)
    with when(row < rows):
        group = lane // 8
        low, mine = group * 2, w + ptx.mul.wide.u32(row, blocks * 36)
        with loop(blocks) as block:
            supers = mine + block * 36
            quants, d = supers[lane + 4], supers.cast(f16).load(0, width=2)
            packed = supers.cast(u8) + 4 + low
            s0, s1, m0, m1 = scales = [reg(u32) for _ in range(4)]

            def byte(index: Any) -> Any:
                return packed[index].to(u32)

            with when(low < 4):
                s0.set(byte(0) & 63)
                m0.set(byte(4) & 63)
                s1.set(byte(1) & 63)
                m1.set(byte(5) & 63)
            with otherwise():
                s0.set((byte(4) & 15) | (byte(-4) >> 6) << 4)
                m0.set((byte(4) >> 4) | (byte(0) >> 6) << 4)
                s1.set((byte(5) & 15) | (byte(-3) >> 6) << 4)
                m1.set((byte(5) >> 4) | (byte(1) >> 6) << 4)
            s0, s1, m0, m1 = (scale.to(f32) for scale in scales)
            part = x + (block * 256 + group * 64 + lane % 8 * 4)
            u, v = part.load(0, width=4), part.load(32, width=4)
            q0, q1 = (quants & 15).to(f32) * u[0], ((quants >> 4) & 15).to(f32) * v[0]
            for i in range(1, 4):
                q0 += ((quants >> (8 * i)) & 15).to(f32) * u[i]
                q1 += ((quants >> (8 * i + 4)) & 15).to(f32) * v[i]
            t0, t1 = u[0] + u[1] + u[2] + u[3], v[0] + v[1] + v[2] + v[3]
            acc += d[0].to(f32) * (s0 * q0 + s1 * q1) - d[1].to(f32) * (m0 * t0 + m1 * t1)
        total = warp.reduce_sum(acc)
        with when(lane == 0):
            y[row] = total


def _product(rng: np.random.Generator, n: int, grid: Any, block: Any) -> Case:
    a, b = rng.standard_normal((2, n, n)).astype(np.float32)
    return Case(grid, block, [n, a, b, np.full_like(a, np.nan)], {3: a.astype(float) @ b}, 1e-5)


@pair(matmul_naive, "FFMA")
def _matmul_naive(rng: np.random.Generator) -> Case:
    return _product(rng, 37, (5, 5), (8, 8))


@pair(matmul_tiled, "FFMA")
def _matmul_tiled(rng: np.random.Generator) -> Case:
    return _product(rng, 48, (3, 3), (16, 16))


@pair(matmul_blocked, "FFMA")
def _matmul_blocked(rng: np.random.Generator) -> Case:
    return _product(rng, 128, (2, 2), 256)


@pair(matmul_mma, "HMMA")
def _matmul_mma(rng: np.random.Generator) -> Case:
    a, b = rng.standard_normal((2, 64, 64)).astype(dtype_of(bf16))
    c = np.full((64, 64), np.nan, np.float32)
    return Case((2, 4), 128, [64, a, b, c], {3: a.astype(float) @ b.astype(float).T}, 1e-5)


@pair(transpose, "LDG")
def _transpose(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((45, 70)).astype(np.float32)
    return Case((3, 2), (32, 8), [45, 70, x, np.full((70, 45), np.nan, np.float32)], {3: x.T})


@pair(gemv, "LDG")
def _gemv(rng: np.random.Generator) -> Case:
    a, x = rng.standard_normal((7, 300)).astype(np.float32), rng.standard_normal(300).astype(np.float32)
    return Case(2, (32, 4), [7, 300, a, x, np.full(7, np.nan, np.float32)], {4: a.astype(float) @ x}, 1e-4)


@pair(gemv_q4k, "FFMA")
def _gemv_q4k(rng: np.random.Generator) -> Case:
    blocks, x = quantize_q4k(rng.standard_normal((5, 512))), rng.standard_normal(512).astype(np.float32)
    want = dequantize_q4k(blocks, 512).astype(float) @ x
    return Case(2, (32, 4), [5, 2, blocks.view(np.uint32), x, np.full(5, np.nan, np.float32)], {4: want}, 1e-4)
