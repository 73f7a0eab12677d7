"""Attention of one query a sequence: the query heads that share keys are the rows of one product by mma.sync.

The keys of all sequences are shared evenly among persistent blocks, one a multiprocessor (`shares`). A warp of a
block brings tiles of k and v by tensor copies to a ring of stages; four warps take 16 rows of keys each: the product of
the heads with them, the online softmax, and the product of the weights, which stay in registers, with the values. Where
a piece of a sequence ends, the four states are merged by way of shared memory.

What is a whole sequence is stored. Else the state goes to global memory, and the block that ends the sequence merges
the states in their order.

It takes sm_90: tensor copies and mbarriers; no instruction of one generation alone.
"""

from __future__ import annotations

from functools import cache, reduce
from math import e, inf, log2
from operator import add
from typing import Any

import numpy as np

from ... import (
    Array, Kernel, Ptr, TensorMap, b32, cdiv, check, f32, loop, maximum, minimum, mma, otherwise, processors, ptx,
    ptx_kernel, reg, s64, select, shared, tensor_map, tiles, tma, u32, u64, warp, when,
)

from .. import arguments
from ..attention_arguments import check_size
from ..online import finite, inverse
from .decode_ring import SLAB, WARPS, Heads, Kind, Ring, place_of, plan_of
from .decode_state import KEYS, ROWS, Partials, State
from .shares import Arrivals, Lengths, Piece, Share, arrival

__all__ = ["CAPABILITIES", "attend", "decode_kernel"]

CAPABILITIES = (90, 100, 103)
"""Compute capabilities that it is for: those with tensor copies whose shared memory holds its ring."""

THREADS = (WARPS + 1) * 32
_HELD = 128
"""Columns of queries that are held in registers; more are loaded from shared memory each time."""
_BARRIER = 1


class _Consumer:
    """The four warps that multiply."""

    def __init__(
        self, ring: Ring, share: Share, heads: Heads, partials: Partials, arrivals: Arrivals, q: Any, out: Any,
        factor: Any,
    ) -> None:
        self.ring, self.kind, self.plan = ring, ring.kind, ring.plan
        self.share, self.heads, self.partials, self.q, self.out = share, heads, partials, q, out
        self.arrivals = arrivals
        self.state = State(self.kind.dtype, self.plan.dim, self.kind.halves, factor)
        self.warp, self.lane = ptx.tid.x >> 5, ptx.laneid
        self.row, self.column = self.lane >> 2, (self.lane & 3) << 1
        self.rows = 8 * self.kind.halves
        self.tops, self.totals = (shared(f32, WARPS + 1, ROWS) for _ in range(2))
        """Of each warp and, behind them, of all: what is in the rows."""
        self.merged = shared(f32, WARPS, self.rows, SLAB + 8)
        place = shared(self.kind.dtype, ROWS * self.plan.dim, align=1024)
        self.queries = tiles.Tile(place, ROWS, self.plan.dim)

    def meet(self) -> None:
        ptx.barrier.cta.sync(_BARRIER, WARPS * 32)

    def run(self) -> None:
        """All pieces of the block, and the sequence that it ends and others began."""
        first, share = self.share.first(), self.share
        side = self.ring.pipe.consumer()

        def work(piece: Piece) -> None:
            self.state.reset()
            queries = self.load(piece)
            with loop(piece.tile, piece.tile + piece.count) as tile:
                slot = side.wait()
                self.multiply(slot, queries, piece.length - minimum(piece.length, tile * self.plan.keys))
                ptx.bar.warp.sync(warp.MASK)
                slot.release(pred=self.lane == 0)
            begins = piece.tile == 0
            part = ptx.ctaid.x * 2 + begins.to(u32)
            self.finish(piece, part, begins & (piece.count == piece.tiles))

        share.pieces(first, work)
        with when((first.tile > 0) & (first.tile + first.count == first.tiles)):
            self.combine(first)

    def load(self, piece: Piece) -> Any:
        """The queries of a unit as the left factor, by way of shared memory; what there is none of is 0."""
        head, rows = self.heads.rows(piece.unit)
        dim, chunks = self.kind.dim, self.plan.dim // 8
        start = self.q + ptx.mul.wide.u32(piece.sequence * self.heads.count + head, dim)
        for first in range(0, ROWS * chunks, WARPS * 32):
            at = ptx.tid.x + first
            row, column = at // chunks, at % chunks * 8
            words = [reg(b32, 0) for _ in range(4)]
            (start + (row * dim + column)).cast(b32).load(0, width=4, pred=(row < rows) & (column < dim), out=words)
            self.queries.at(row, column).cast(b32).store(0, words)
        self.meet()
        return mma.load_a(self.queries) if self.plan.dim <= _HELD else self.queries

    def multiply(self, slot: Any, queries: Any, left: Any) -> None:
        """The keys of the warp in a tile, of which ``left`` are keys of the sequence."""
        k, v = self.ring.k[slot], self.ring.v[slot]
        for first in range(0, self.plan.keys, WARPS * KEYS):
            row = self.warp * KEYS + first
            scores = mma.zeros(ROWS, KEYS)
            mma.multiply(scores, queries, k.part(KEYS, self.plan.dim, row).T)
            self.state.scale(scores)
            with when(left < row + KEYS):
                self.mask(scores, v, row, left)
            weights = self.state.weigh(scores)
            mma.multiply(self.state.sums, weights, v.part(KEYS, self.plan.dim, row))

    def mask(self, scores: Any, v: Any, row: Any, left: Any) -> None:
        """No weight for what is behind the last key, and no values there, which might be NaN."""
        column = row + self.column
        for i, register in enumerate(scores.registers):
            register.set(select(column + (i // 4 * 8 + i % 2) < left, register.copy(), -inf))
        mine = row + (self.lane >> 1)
        with when(mine >= left):
            for slab in range(self.plan.dim // SLAB):
                place = v.place + (mine * SLAB + (self.lane & 1) * (SLAB // 2) + slab * SLAB * self.plan.keys)
                for at in range(0, SLAB // 2, 8):
                    place.cast(b32).store(at // 2, [0, 0, 0, 0])
            tma.fence()  # the next copy to this stage is behind these stores
        ptx.bar.warp.sync(warp.MASK)

    def finish(self, piece: Piece, part: Any = None, whole: Any = None) -> None:
        """Merge the states of the warps. Store the result; with ``part``, where not ``whole``, the state as this."""
        state, own = self.state, [self.row + 8 * half for half in self.state.halves]
        totals = [warp.reduce_sum(total, 4) for total in state.total]
        with when(self.column == 0):
            for row, top, total in zip(own, state.top, totals):
                self.tops[self.warp, row] = top
                self.totals[self.warp, row] = total
        self.meet()
        factors = []
        for row, top in zip(own, state.top):
            tops = [self.tops[other, row] for other in range(WARPS)]
            most = reduce(maximum, tops)
            base = finite(most)
            weights = [ptx.ex2.approx.ftz.f32(other - base) for other in tops]
            total = reduce(add, [self.totals[other, row] * weight for other, weight in enumerate(weights)])
            factors.append(ptx.ex2.approx.ftz.f32(top - base))
            with when((self.warp == 0) & (self.column == 0)):
                self.tops[WARPS, row] = most
                self.totals[WARPS, row] = total
        state.rescale(factors)
        for first in range(0, self.plan.dim, SLAB):
            for half, at, left, right in state.pairs(state.sums.registers):
                if first <= at < first + SLAB:
                    self.merged.at(self.warp, own[half], self.column + (at - first)).store(0, [left, right])
            self.meet()
            self.store(piece, first, part, whole)
            self.meet()
        if part is not None:
            with when(~whole & (ptx.tid.x == 0)):
                self.arrivals.publish(part)

    def store(self, piece: Piece, first: int, part: Any, whole: Any) -> None:
        """Add up what the warps have in ``merged``, the columns from ``first`` on, and store it."""
        each = self.rows // 2
        row, own = ptx.tid.x // (SLAB // each), ptx.tid.x % (SLAB // each) * each
        column = own + first
        found = [
            [value for at in range(0, each, 4) for value in self.merged.at(other, row, own + at).load(0, width=4)]
            for other in range(WARPS)
        ]
        values = [a + b + (c + d) for a, b, c, d in zip(*found)]
        (head, rows), dim = self.heads.rows(piece.unit), self.kind.dim

        def result() -> None:
            factor = inverse(f32, self.totals[WARPS, row])
            place = self.out + ptx.mul.wide.u32(piece.sequence * self.heads.count + head, dim) + (row * dim + column)
            words = [
                ptx[f"cvt.rn.{self.kind.dtype}x2.f32"](right * factor, left * factor).bits(b32)
                for left, right in zip(values[::2], values[1::2])
            ]
            place.cast(b32).store(0, words, pred=(row < rows) & (column < dim))

        if part is None:
            result()
            return
        with when(whole):
            result()
        with otherwise():
            sums, states = self.partials.of(part)
            for at in range(0, each, 4):
                sums.store(row * self.plan.dim + column + at, values[at : at + 4])
            if not first:
                states.store(row * 2, [self.tops[WARPS, row], self.totals[WARPS, row]], pred=own == 0)

    def combine(self, piece: Piece) -> None:
        """Merge the states of all pieces of a sequence, of which this block has the last one: a warp each fourth."""
        first, parts = self.share.parts(piece)
        self.arrivals.take(first, parts, WARPS * 32)
        self.meet()
        self.state.reset()
        with loop(self.warp, parts, WARPS) as number:
            sums, states = self.partials.of(self.arrivals.part(first, number))
            rows = [self.row + 8 * half for half in self.state.halves]
            found = [states.load(row * 2, width=2) for row in rows]
            loaded = [
                tuple(sums.load(rows[half] * self.plan.dim + self.column + at, width=2))
                for half, at, *_ in self.state.pairs(self.state.sums.registers)
            ]
            totals = [select(self.column == 0, total, 0.0) for _, total in found]
            self.state.add([top for top, _ in found], totals, loaded)
        self.finish(piece)


@cache
def decode_kernel(kind: Kind) -> Kernel:
    """``(q, k, v, lengths, out, sums, arrived, number, batch, heads, group, parts, longest, factor[, table, pages])``.

    k and v are maps of (sequences and heads, keys, D), or of the pages.
    """
    plan, dtype = plan_of(kind.dim), kind.dtype
    each, index = kind.lengths, kind.table
    lengths_type: Any = u32 if each is None else Ptr[each]
    table_type: Any = None if index is None else Array[index, 2]

    def run(
        q: Any, k: Any, v: Any, lengths: Any, out: Any, sums: Any, arrived: Any, number: Any, batch: Any, count: Any,
        group: Any, parts: Any, longest: Any, factor: Any, table: Any = None, pages: Any = None,
    ) -> None:
        def length(sequence: Any) -> Any:
            if kind.lengths is None:
                return lengths
            if kind.table is None:
                return minimum(lengths[sequence].bits(u32), longest)
            wide = lengths[sequence].to(s64)
            check(wide.bits(u64) <= longest.to(u64), "paged_decode: a length beyond the table")
            return wide.to(u32)

        heads = Heads(count, group, parts)
        ring = Ring(kind, plan)
        share = Share(Lengths(length, kind.lengths is None, batch, ptx.div.u32(count, group) * parts, plan.keys))
        with when(share.start < share.stop):
            with when(ptx.tid.x >= WARPS * 32):
                ring.produce(share, k, v, heads, place_of(kind, heads, table, pages))
            with otherwise():
                partials, arrivals = Partials.behind(sums, plan.dim), Arrivals(arrived, number)
                _Consumer(ring, share, heads, partials, arrivals, q, out, factor).run()

    options: dict[str, Any] = {"name": kind.name, "maxntid": THREADS, "minnctapersm": 1}
    if kind.table is None:
        @ptx_kernel(**options)
        def dense(
            q: Ptr[dtype], k: TensorMap, v: TensorMap, lengths: lengths_type, out: Ptr[dtype], sums: Ptr[f32],
            arrived: Ptr[u64], number: u64, batch: u32, heads: u32, group: u32, parts: u32, longest: u32, factor: f32,
        ) -> None:
            run(q, k, v, lengths, out, sums, arrived, number, batch, heads, group, parts, longest, factor)

        return dense

    @ptx_kernel(**options)
    def paged(
        q: Ptr[dtype], k: TensorMap, v: TensorMap, lengths: lengths_type, out: Ptr[dtype], sums: Ptr[f32],
        arrived: Ptr[u64], number: u64, batch: u32, heads: u32, group: u32, parts: u32, longest: u32, factor: f32,
        table: table_type, pages: u32,
    ) -> None:
        run(q, k, v, lengths, out, sums, arrived, number, batch, heads, group, parts, longest, factor, table, pages)

    return paged


def attend(
    q: Any, k: Any, v: Any, lengths: Any, out: Any, *, scale: float, table: Any = None, heads_first: bool = False,
    blocks: int | None = None, **options: Any,
) -> Any:
    """Launch the kernel for arrays that `decoding` has checked: f16 or bf16, at multiples of 16 bytes.

    ``blocks`` is how many share the keys, one for each multiprocessor by default.
    """
    batch, heads, dim = q.shape
    if table is None:
        _, key_heads, longest, _ = k.shape
        page, pages = 0, 0
    else:
        pages, key_heads, page = (k.shape[axis] for axis in ((0, 1, 2) if heads_first else (0, 2, 1)))
        longest = table.shape[1] * page
    group = heads // key_heads
    plan, parts = plan_of(dim), cdiv(group, ROWS)
    uniform = isinstance(lengths, (int, np.integer))
    kind = Kind(
        arguments.floating("q", q), dim, 1 if group <= ROWS // 2 else 2,
        None if uniform else arguments.scalar_type("seq_lens", lengths),
        None if table is None else arguments.scalar_type("block_table", table), page, heads_first,
    )
    most = batch * key_heads * parts * cdiv(longest, plan.keys)
    check_size("the number of tiles of keys", most)
    blocks = min(processors() if blocks is None else blocks, most)
    if table is None:
        box: tuple[int, ...] = (1, kind.box, SLAB)
        k, v = (x.reshape(-1, *x.shape[2:]) for x in (k, v))
    else:
        box = (1, 1, kind.box, SLAB) if heads_first else (1, kind.box, 1, SLAB)
    maps = [tensor_map(x, box, swizzle=2 * SLAB) for x in (k, v)]
    sums = arguments.empty_like(q, (2 * blocks * ROWS * (plan.dim + 2),), f32)
    arrived = arguments.empty_like(q, (2 * blocks,), u64)
    launch = decode_kernel(kind).configure(blocks, THREADS, shared=plan.shared, **options)
    launch(
        q, *maps, lengths, out, sums, arrived, arrival(), batch, heads, group, parts, longest, scale * log2(e),
        *(() if table is None else (table, pages)),
    )
    return out
