"""Before and behind the gradients of attention on Hopper: what the weights need of a query, and dq in its dtype.

A tile of ``rows`` queries has its states in one piece, as one tensor copy brings them: the logarithms of the sums of
weights, to the base 2, then the sums of gradient times result. Queries that are not there, or see no key, have a
logarithm of infinity: their weights are 0.

The sums of dq lie in parts of 64 queries and 64 columns, two for a tile, as the registers of a warpgroup hold them: of
eight columns after the other, each thread's four numbers, two of a row and two of the eighth behind it.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

from ... import Kernel, Ptr, ScalarType, cdiv, f32, ptx, ptx_kernel, reg, select, u32, u64, warp, when

from .. import arguments, storage

__all__ = ["PART", "Kind", "finish", "finish_kernel", "prepare", "states_kernel"]

THREADS = 128
PART, _PARTS = 64 * 64, 2
"""Numbers of a part of the sums, and the parts of a tile."""
_LANES, _WIDTH = 16, 8
"""Threads of a query, and the neighbouring elements of each."""


class Kind(NamedTuple):
    """What a kernel is made for; ``rows`` are those of a tile."""

    dtype: ScalarType
    dim: int
    rows: int


@cache
def states_kernel(kind: Kind) -> Kernel:
    """``(out, gradient, logarithms, states, sums, queries, tiles)``: eight queries a block, grid y counts heads.

    ``sums``, those of dq, are set to 0.
    """
    dtype, dim, rows = kind
    wide = _PARTS * PART // rows

    @ptx_kernel(name=f"hopper_flash_states_{dtype}_hd{dim}_{rows}", reqntid=THREADS)
    def kernel(
        out: Ptr[dtype], gradient: Ptr[dtype], logarithms: Ptr[f32], states: Ptr[f32], sums: Ptr[f32], queries: u32,
        tiles: u32,
    ) -> None:
        query = ptx.ctaid.x * (THREADS // _LANES) + ptx.tid.x // _LANES
        column, head = ptx.tid.x % _LANES * _WIDTH, ptx.ctaid.y
        at = ptx.mad.wide.u32(head, queries, query.to(u64))
        total, logarithm = reg(f32, 0.0), reg(f32, -math.inf)
        with when((query < queries) & (column < dim)):
            own = at * dim + column.to(u64)
            pairs = zip(*([v.to(f32) for v in storage.load(x + own, 0, _WIDTH)] for x in (out, gradient)))
            for left, right in pairs:
                ptx.fma.rn.f32(left, right, total, out=total)
            logarithm.set(logarithms[at])
        with when(column < wide):
            own = ptx.mad.wide.u32(head, tiles * rows, query.to(u64)) * wide + column.to(u64)
            for part in range(0, _WIDTH, 4):
                (sums + own).store(part, [0.0] * 4)
        total.set(warp.reduce_sum(total.copy(), _LANES))
        with when(column == 0):
            place = states + (ptx.mad.wide.u32(head, tiles, (query // rows).to(u64)) * (2 * rows)) + query % rows
            place[0] = select(logarithm == -math.inf, math.inf, logarithm * math.log2(math.e))
            place[rows] = total

    return kernel


@cache
def finish_kernel(kind: Kind) -> Kernel:
    """``(sums, dq, queries, tiles, scale)``: eight queries a block, grid y counts heads."""
    dtype, dim, rows = kind

    @ptx_kernel(name=f"hopper_flash_queries_{dtype}_hd{dim}_{rows}", reqntid=THREADS)
    def kernel(sums: Ptr[f32], dq: Ptr[dtype], queries: u32, tiles: u32, scale: f32) -> None:
        query = ptx.ctaid.x * (THREADS // _LANES) + ptx.tid.x // _LANES
        column, head = ptx.tid.x % _LANES * _WIDTH, ptx.ctaid.y
        with when((query < queries) & (column < dim)):
            row = query % rows
            part = row // 64 if rows > 64 else column // 64
            # 16 rows are a warp's, of which a lane has one and that eight behind it, and four lanes have eight columns.
            half, first = (row >> 3 & 1) * 2, (row >> 4 & 3) * 32 + (row & 7) * 4
            within = part * PART + ((column & 63) // _WIDTH * 128 + first) * 4 + half
            place = sums + (ptx.mad.wide.u32(head, tiles, (query // rows).to(u64)) * (_PARTS * PART) + within.to(u64))
            found = [value for lane in range(4) for value in place.load(4 * lane, width=2)]
            own = ptx.mad.wide.u32(head, queries, query.to(u64)) * dim
            storage.store(dq + own, column, [(value * scale).to(dtype) for value in found])

    return kernel


def prepare(out: Any, gradient: Any, logarithms: Any, states: Any, sums: Any, rows: int, **options: Any) -> None:
    """Fill ``states``, of tiles of so many ``rows``, and set ``sums`` to 0."""
    batch, heads, queries, dim = out.shape
    count = cdiv(queries, rows)
    kernel = states_kernel(Kind(arguments.floating("out", out), dim, rows))
    grid = cdiv(count * rows * _LANES, THREADS), batch * heads
    kernel.configure(grid, THREADS, **options)(out, gradient, logarithms, states, sums, queries, count)


def finish(sums: Any, dq: Any, rows: int, scale: float, **options: Any) -> None:
    """Round the sums, of tiles of so many ``rows``, times the factor, to dq."""
    batch, heads, queries, dim = dq.shape
    kernel = finish_kernel(Kind(arguments.floating("dq", dq), dim, rows))
    grid = cdiv(queries * _LANES, THREADS), batch * heads
    kernel.configure(grid, THREADS, **options)(sums, dq, queries, cdiv(queries, rows), scale)
