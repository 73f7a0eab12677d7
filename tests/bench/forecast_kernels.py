"""Kernels whose design is that of a kernel with a published time, for ``forecast.py``.

Rows of bf16 come as words of 32 bits, two elements each, so that a thread takes 16 bytes at a time. The products of
matrices are the steps of fast.cu that have no cluster: tile, stages and warpgroups are what its worklog says of each.
"""

from __future__ import annotations

from functools import cache
from math import e, inf, log2
from typing import Any

from ptxdsl import (
    Array, Kernel, Pipeline, Ptr, TensorMap, bf16, block, dynamic_shared, f32, loop, maximum, mbarrier,
    otherwise, ptx, ptx_kernel, reg, tiles, tma, u32, wgmma, when,
)

__all__ = ["add", "layer_norm", "matmul", "rms_norm", "row_sum", "serial_matmul", "softmax", "sum_all", "swiglu"]


def _halves(word: Any) -> tuple[Any, Any]:
    """The two bf16 of a word as f32."""
    return (word << 16).bits(f32), (word & 0xFFFF0000).bits(f32)


def _word(low: Any, high: Any) -> Any:
    return ptx.cvt.rn.bf16x2.f32(high, low).bits(u32)


def _loaded(row: Any, at: Any) -> list[Any]:
    """Eight elements, from the word ``at`` on."""
    return [half for word in row.load(at, width=4) for half in _halves(word)]


def _stored(row: Any, at: Any, values: list[Any]) -> None:
    row.store(at, [_word(*values[n : n + 2]) for n in range(0, 8, 2)])


@cache
def add(kind: Any) -> Kernel:
    """c = a + b, 16 bytes a thread; of bf16 in words (u32), or of f32."""

    @ptx_kernel
    def add_kernel(a: Ptr[kind], b: Ptr[kind], c: Ptr[kind]) -> None:
        i = (ptx.ctaid.x * ptx.ntid.x + ptx.tid.x) * 4
        if kind is u32:
            _stored(c, i, [x + y for x, y in zip(_loaded(a, i), _loaded(b, i))])
        else:
            c.store(i, [x + y for x, y in zip(a.load(i, width=4), b.load(i, width=4))])

    return add_kernel


def _row(x: Any, n: int) -> Any:
    return x + ptx.mul.wide.u32(ptx.ctaid.x, n // 2)


def _threads(n: int) -> int:
    return min(1024, n // 8)


def _places(n: int) -> list[Any]:
    return [ptx.tid.x * 4 + turn * _threads(n) * 4 for turn in range(n // 8 // _threads(n))]


@cache
def rms_norm(n: int, adds: bool = False) -> Kernel:
    """Rows of n: a block each, the row in registers; with ``adds`` x += residual is written too."""

    @ptx_kernel(maxntid=_threads(n))
    def rms_kernel(x: Ptr[u32], w: Ptr[u32], y: Ptr[u32], residual: Ptr[u32]) -> None:
        mine, out, places = _row(x, n), _row(y, n), _places(n)
        rows = [_loaded(mine, at) for at in places]
        if adds:
            rest = _row(residual, n)
            rows = [[a + b for a, b in zip(row, _loaded(rest, at))] for row, at in zip(rows, places)]
            for row, at in zip(rows, places):
                _stored(rest, at, row)
        squares = reg(f32, 0.0)
        for value in (v for row in rows for v in row):
            ptx.fma.rn.f32(value, value, squares, out=squares)
        scale = ptx.rsqrt.approx.f32(block.reduce_sum(squares, threads=_threads(n)) * (1 / n) + 1e-6)
        for row, at in zip(rows, places):
            _stored(out, at, [v * scale * weight for v, weight in zip(row, _loaded(w, at))])

    return rms_kernel


@cache
def layer_norm(n: int) -> Kernel:
    """Rows of n: a block each, the row in registers, mean and variance one after the other."""

    @ptx_kernel(maxntid=_threads(n))
    def layer_kernel(x: Ptr[u32], w: Ptr[u32], b: Ptr[u32], y: Ptr[u32]) -> None:
        mine, out, places = _row(x, n), _row(y, n), _places(n)
        rows = [_loaded(mine, at) for at in places]
        total, squares = reg(f32, 0.0), reg(f32, 0.0)
        for value in (v for row in rows for v in row):
            total += value
        mean = block.reduce_sum(total, threads=_threads(n)) * (1 / n)
        rows = [[v - mean for v in row] for row in rows]
        for value in (v for row in rows for v in row):
            ptx.fma.rn.f32(value, value, squares, out=squares)
        scale = ptx.rsqrt.approx.f32(block.reduce_sum(squares, threads=_threads(n)) * (1 / n) + 1e-5)
        for row, at in zip(rows, places):
            parts = zip(row, _loaded(w, at), _loaded(b, at))
            _stored(out, at, [v * scale * weight + bias for v, weight, bias in parts])

    return layer_kernel


@cache
def softmax(n: int) -> Kernel:
    """Rows of n: a block each, the row in registers."""

    @ptx_kernel(maxntid=_threads(n))
    def softmax_kernel(x: Ptr[u32], y: Ptr[u32]) -> None:
        mine, out, places = _row(x, n), _row(y, n), _places(n)
        rows = [_loaded(mine, at) for at in places]
        largest, total = reg(f32, -inf), reg(f32, 0.0)
        for value in (v for row in rows for v in row):
            largest.set(maximum(largest, value))
        shift = block.reduce_max(largest, threads=_threads(n)) * -log2(e)
        rows = [[ptx.ex2.approx.f32(ptx.fma.rn.f32(v, log2(e), shift)) for v in row] for row in rows]
        for value in (v for row in rows for v in row):
            total += value
        scale = ptx.rcp.approx.f32(block.reduce_sum(total, threads=_threads(n)))
        for row, at in zip(rows, places):
            _stored(out, at, [v * scale for v in row])

    return softmax_kernel


@cache
def swiglu(n: int) -> Kernel:
    """Rows of 2 n to rows of n: silu of the first half times the second, 8 elements a thread."""

    @ptx_kernel
    def swiglu_kernel(x: Ptr[u32], y: Ptr[u32]) -> None:
        at = (ptx.ctaid.x * ptx.ntid.x + ptx.tid.x) * 4
        row = ptx.ctaid.y
        gate, up = x + ptx.mul.wide.u32(row, n), x + ptx.mul.wide.u32(row, n) + n // 2
        with when(at < n // 2):
            silu = [
                v * ptx.rcp.approx.f32(ptx.ex2.approx.f32(v * -log2(e)) + 1.0) for v in _loaded(gate, at)
            ]
            _stored(y + ptx.mul.wide.u32(row, n // 2), at, [a * b for a, b in zip(silu, _loaded(up, at))])

    return swiglu_kernel


@cache
def row_sum(n: int) -> Kernel:
    """The sums of rows of n, a block each."""

    @ptx_kernel(maxntid=_threads(n))
    def row_sum_kernel(x: Ptr[u32], y: Ptr[f32]) -> None:
        mine, total = _row(x, n), reg(f32, 0.0)
        for value in [v for at in _places(n) for v in _loaded(mine, at)]:
            total += value
        whole = block.reduce_sum(total, threads=_threads(n))
        with when(ptx.tid.x == 0):
            y[ptx.ctaid.x] = whole

    return row_sum_kernel


@cache
def sum_all(turns: int, batch: int = 4) -> Kernel:
    """The sum of an array of f32: blocks take pieces one behind the other, ``batch`` loads of 16 bytes at a time."""

    @ptx_kernel(maxntid=1024)
    def sum_kernel(x: Ptr[f32], y: Ptr[f32]) -> None:
        piece = x + ptx.mul.wide.u32(ptx.ctaid.x, turns * 4096) + ptx.tid.x * 4
        total = reg(f32, 0.0)
        with loop(0, turns * 4096, batch * 4096) as at:
            for value in [v for n in range(batch) for v in (piece + at).load(n * 4096, width=4)]:
                total += value
        whole = block.reduce_sum(total, threads=1024)
        with when(ptx.tid.x == 0):
            ptx.red.global_.add.f32(y, whole)

    return sum_kernel


DEPTH = 64


@cache
def serial_matmul(rows: int, columns: int) -> Kernel:
    """c = a @ b.T by one warpgroup that waits for each tile and for each product: steps K2 and K3."""

    @ptx_kernel(maxntid=128)
    def matmul_serial(a: TensorMap, b: TensorMap, c: Array[f32, 2], turns: u32) -> None:
        a_tile = tiles.Tile(dynamic_shared(bf16, align=1024), rows, DEPTH)
        b_tile = tiles.Tile(dynamic_shared(bf16, align=1024) + rows * DEPTH, columns, DEPTH)
        row, column, full = ptx.ctaid.y * rows, ptx.ctaid.x * columns, mbarrier.declare()
        mbarrier.start((full, 1))
        sums = wgmma.zeros(rows, columns)
        parity = reg(u32, 0)
        with loop(0, turns * DEPTH, DEPTH) as k:
            with when(ptx.tid.x == 0):
                mbarrier.arrive(full, expect_tx=a_tile.nbytes + b_tile.nbytes)
                tma.load(a_tile, a, (row, k), full)
                tma.load(b_tile, b, (column, k), full)
            mbarrier.wait(full, parity)
            wgmma.fence()
            wgmma.multiply(sums, a_tile, b_tile.T)
            wgmma.commit()
            wgmma.wait()
            ptx.bar.sync(0)
            parity.set(parity ^ 1)
        sums.store(c, row, column)

    return matmul_serial


@cache
def matmul(rows: int, columns: int, stages: int, consumers: int) -> Kernel:
    """c = a @ b.T of bf16: one warpgroup copies, ``consumers`` multiply, ``stages`` tiles of 64 in a ring."""
    part = rows // consumers

    @ptx_kernel(maxntid=128 * (consumers + 1), minnctapersm=1)
    def matmul_ring(a: TensorMap, b: TensorMap, c: Array[f32, 2], turns: u32) -> None:
        a_tiles = tiles.Ring(dynamic_shared(bf16, align=1024), stages, rows, DEPTH)
        b_tiles = tiles.Ring(a_tiles.end, stages, columns, DEPTH)
        pipe = Pipeline(stages, consumers=consumers, nbytes=a_tiles[0].nbytes + b_tiles[0].nbytes)
        row, column, group = ptx.ctaid.y * rows, ptx.ctaid.x * columns, wgmma.number()
        with when(group == consumers):
            ptx.setmaxnreg.dec.sync.aligned.u32(24 if consumers > 1 else 40)
            with when(ptx.tid.x == 128 * consumers):
                producer = pipe.producer()
                with loop(0, turns * (stages * DEPTH), stages * DEPTH) as k:
                    for stage, slot in enumerate(producer.turn()):
                        tma.load(a_tiles[slot], a, (row, k + stage * DEPTH), slot.full)
                        tma.load(b_tiles[slot], b, (column, k + stage * DEPTH), slot.full)
        with otherwise():
            ptx.setmaxnreg.inc.sync.aligned.u32(240 if consumers > 1 else 232)
            consumer = pipe.consumer()
            sums = wgmma.zeros(part, columns)
            with loop(turns):
                for slot in consumer.turn():
                    wgmma.fence()
                    wgmma.multiply(sums, a_tiles[slot].part(part, DEPTH, group * part), b_tiles[slot].T)
                    wgmma.commit()
                    wgmma.wait()
                    slot.release(pred=(ptx.tid.x & 127) == 0)
            sums.store(c, row + group * part, column)

    return matmul_ring
