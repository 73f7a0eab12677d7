"""Before and behind the gradients of attention on Hopper: what the weights need of a query, and dq in its dtype.

A tile of ``rows`` queries has its states in one piece, as one tensor copy brings them: the logarithms of the sums of
weights, to the base 2, then the sums of gradient times result. Queries that are not there, or see no key, have a
logarithm of infinity: their weights are 0.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

from ... import Kernel, Ptr, ScalarType, cdiv, f32, ptx, ptx_kernel, reg, select, u32, u64, warp, when

from .. import arguments, vectors

__all__ = ["Kind", "finish", "finish_kernel", "prepare", "states_kernel"]

THREADS = 128
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
            pairs = zip(*(vectors.widened(vectors.load(x + own, 0, _WIDTH)) for x in (out, gradient)))
            for left, right in pairs:
                ptx.fma.rn.f32(left, right, total, out=total)
            for part in range(0, _WIDTH, 4):
                (sums + own).store(part, [0.0] * 4)
            logarithm.set(logarithms[at])
        total.set(warp.reduce_sum(total.copy(), _LANES))
        with when(column == 0):
            place = states + (ptx.mad.wide.u32(head, tiles, (query // rows).to(u64)) * (2 * rows)) + query % rows
            place[0] = select(logarithm == -math.inf, math.inf, logarithm * math.log2(math.e))
            place[rows] = total

    return kernel


@cache
def finish_kernel(dtype: ScalarType) -> Kernel:
    """``(sums, dq, count, scale)``: eight numbers a thread."""

    @ptx_kernel(name=f"hopper_flash_queries_{dtype}", reqntid=THREADS)
    def kernel(sums: Ptr[f32], dq: Ptr[dtype], count: u64, scale: f32) -> None:
        first = ptx.mad.wide.u32(ptx.ctaid.x, THREADS, ptx.tid.x.to(u64)) * _WIDTH
        with when(first < count):
            found = vectors.load(sums + first, 0, _WIDTH)
            vectors.store(dq + first, 0, [(value * scale).to(dtype) for value in found])

    return kernel


def prepare(out: Any, gradient: Any, logarithms: Any, states: Any, sums: Any, rows: int, **options: Any) -> None:
    """Fill ``states``, of tiles of so many ``rows``, and set ``sums`` to 0."""
    batch, heads, queries, dim = out.shape
    count = cdiv(queries, rows)
    kernel = states_kernel(Kind(arguments.floating("out", out), dim, rows))
    grid = cdiv(count * rows * _LANES, THREADS), batch * heads
    kernel.configure(grid, THREADS, **options)(out, gradient, logarithms, states, sums, queries, count)


def finish(sums: Any, dq: Any, scale: float, **options: Any) -> None:
    """Round the sums, times the factor, to dq."""
    count = math.prod(dq.shape)
    kernel = finish_kernel(arguments.floating("dq", dq))
    kernel.configure(cdiv(count, THREADS * _WIDTH), THREADS, **options)(sums, dq, count, scale)
