"""Before and behind the gradients of attention on Hopper: what the weights need of a query, and dq in its dtype.

A tile of ``rows`` queries has its states in one piece, as one tensor copy brings them: the logarithms of the sums of
weights, to the base 2, then the sums of gradient times result. Queries that are not there, or see no key, have a
logarithm of infinity: their weights are 0.

Of packed sequences, a head's tiles are those of all sequences: one begins at the first tile that holds none of the one
before, which is its first query, of all, divided by ``rows``, plus its number.

The sums of dq lie in parts of 64 queries and 64 columns, two for a tile, as the registers of a warpgroup hold them: of
eight columns after the other, each thread's four numbers, two of a row and two of the eighth behind it.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

from ... import Kernel, Ptr, ScalarType, cdiv, f32, ptx, ptx_kernel, reg, s32, select, u32, u64, warp, when

from .. import arguments, storage
from ..sequences import length_type, rows_of, side_of

__all__ = ["PART", "Kind", "Shape", "finish", "finish_kernel", "first_tile", "prepare", "states_kernel"]

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
    packed: bool = False

    def named(self, what: str) -> str:
        return f"hopper_{'packed_' * self.packed}flash_{what}_{self.dtype}_hd{self.dim}_{self.rows}"


class Shape(NamedTuple):
    """Of a launch: ``sequences`` of ``heads``, the most queries of one, the ``tiles`` of a head; ``lengths``, a table
    for packed ones, are given to the kernels.
    """

    sequences: int
    heads: int
    queries: int
    tiles: int
    lengths: Any


def first_tile(rows: int, begin: Any, packed: bool) -> Any:
    """The tile that a sequence begins with, among those of a head: a u32, or 0."""
    return begin.bits(u32) // rows + ptx.ctaid.z if packed else 0


class _Query:
    """What a thread works on: a query, of which it has eight neighbouring elements, from ``column`` on."""

    def __init__(self, kind: Kind, queries: Any, tiles: Any) -> None:
        rows = rows_of(queries, queries, kind.packed)
        self.query, self.column = ptx.ctaid.x * (THREADS // _LANES) + ptx.tid.x // _LANES, ptx.tid.x % _LANES * _WIDTH
        head, heads = ptx.ctaid.y, ptx.nctaid.y
        count = rows.queries.bits(u32)
        self.there = self.query < count
        if kind.packed:
            ptx.ret(pred=self.query >= cdiv(count, kind.rows) * kind.rows)
        self.at = side_of(rows.begin, rows.queries, head, heads, kind.packed).at(self.query.bits(s32))
        """Its row in the arrays."""
        whole = head if kind.packed else ptx.ctaid.z * heads + head
        tile = self.query // kind.rows + first_tile(kind.rows, rows.begin, kind.packed)
        self.tile = ptx.mad.wide.u32(whole, tiles, tile.to(u64))
        self.row = self.query % kind.rows


@cache
def states_kernel(kind: Kind) -> Kernel:
    """``(out, gradient, logarithms, states, sums, queries, tiles of a head)``: eight queries a block, of head y.

    ``sums``, those of dq, are set to 0.
    """
    dtype, dim, rows, packed = kind
    wide = _PARTS * PART // rows
    length: Any = length_type(packed)

    @ptx_kernel(name=kind.named("states"), reqntid=THREADS)
    def kernel(
        out: Ptr[dtype], gradient: Ptr[dtype], logarithms: Ptr[f32], states: Ptr[f32], sums: Ptr[f32], queries: length,
        tiles: u32,
    ) -> None:
        mine = _Query(kind, queries, tiles)
        column, total, logarithm = mine.column, reg(f32, 0.0), reg(f32, -math.inf)
        with when(mine.there & (column < dim)):
            own = mine.at * dim + column.to(u64)
            pairs = zip(*([v.to(f32) for v in storage.load(x + own, 0, _WIDTH)] for x in (out, gradient)))
            for left, right in pairs:
                ptx.fma.rn.f32(left, right, total, out=total)
            logarithm.set(logarithms[mine.at])
        with when(column < wide):
            own = (mine.tile * rows + mine.row.to(u64)) * wide + column.to(u64)
            for part in range(0, _WIDTH, 4):
                (sums + own).store(part, [0.0] * 4)
        total.set(warp.reduce_sum(total.copy(), _LANES))
        with when(column == 0):
            place = states + mine.tile * (2 * rows) + mine.row
            place[0] = select(logarithm == -math.inf, math.inf, logarithm * math.log2(math.e))
            place[rows] = total

    return kernel


@cache
def finish_kernel(kind: Kind) -> Kernel:
    """``(sums, dq, queries, tiles of a head, scale)``: eight queries a block, of head y."""
    dtype, dim, rows, packed = kind
    length: Any = length_type(packed)

    @ptx_kernel(name=kind.named("queries"), reqntid=THREADS)
    def kernel(sums: Ptr[f32], dq: Ptr[dtype], queries: length, tiles: u32, scale: f32) -> None:
        mine = _Query(kind, queries, tiles)
        row, column = mine.row, mine.column
        with when(mine.there & (column < dim)):
            part = row // 64 if rows > 64 else column // 64
            # 16 rows are a warp's, of which a lane has one and that eight behind it, and four lanes have eight columns.
            half, first = (row >> 3 & 1) * 2, (row >> 4 & 3) * 32 + (row & 7) * 4
            within = part * PART + ((column & 63) // _WIDTH * 128 + first) * 4 + half
            place = sums + (mine.tile * (_PARTS * PART) + within.to(u64))
            found = [value for lane in range(4) for value in place.load(4 * lane, width=2)]
            storage.store(dq + mine.at * dim, column, [(value * scale).to(dtype) for value in found])

    return kernel


def prepare(
    out: Any, gradient: Any, logarithms: Any, states: Any, sums: Any, shape: Shape, rows: int, **options: Any
) -> None:
    """Fill ``states``, of tiles of so many ``rows``, and set ``sums`` to 0."""
    packed = not isinstance(shape.lengths, int)
    kernel = states_kernel(Kind(arguments.floating("out", out), out.shape[-1], rows, packed))
    grid = cdiv(cdiv(shape.queries, rows) * rows * _LANES, THREADS), shape.heads, shape.sequences
    kernel.configure(grid, THREADS, **options)(out, gradient, logarithms, states, sums, shape.lengths, shape.tiles)


def finish(sums: Any, dq: Any, shape: Shape, rows: int, scale: float, **options: Any) -> None:
    """Round the sums, of tiles of so many ``rows``, times the factor, to dq."""
    packed = not isinstance(shape.lengths, int)
    kernel = finish_kernel(Kind(arguments.floating("dq", dq), dq.shape[-1], rows, packed))
    grid = cdiv(shape.queries * _LANES, THREADS), shape.heads, shape.sequences
    kernel.configure(grid, THREADS, **options)(sums, dq, shape.lengths, shape.tiles, scale)
