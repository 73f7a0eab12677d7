"""Many queries against many keys on tensor cores: both products by wmma m16n16k16, f16 or bf16 in, f32 sums.

Each warp has 16 queries. PTX does not say which lane holds which element of a wmma fragment, so what happens to single
elements (scale, mask, softmax, rescaling the sums) happens in shared memory: scores and sums are stored there, two
lanes work on each row, and the weights come back as the left factor of the second product.
"""

from __future__ import annotations

from functools import cache
from math import inf
from typing import Any

from ptxdsl import (
    Kernel, Ptr, ScalarType, bf16, f32, loop, maximum, minimum, ptx, ptx_kernel, reg, s32, select, shared, u32, warp,
    when,
)

from .online import exp, finite, inverse, scaled

__all__ = ["QUERIES", "wmma_kernel", "wmma_warps"]

QUERIES = 16
"""Queries of a warp: the rows of a fragment."""
KEYS = 32
"""Keys in a tile."""
_PAD = 8
"""Elements between rows, so that the rows of a fragment lie in different banks."""


def wmma_warps(dim: int) -> int:
    """Warps a block: what keeps the tiles in 48 KiB."""
    return 4 if dim <= 64 else 2 if dim <= 128 else 1


class _Block:
    """A block of warps, its tiles, and what a lane has of them: half of the row ``row`` of its warp."""

    def __init__(self, dtype: ScalarType, dim: int, causal: bool, warps: int) -> None:
        self.dtype, self.dim, self.causal, self.threads = dtype, dim, causal, warps * 32
        self.width = -(-dim // 16) * 16
        self.queries = shared(dtype, warps * QUERIES, self.width + _PAD, align=32)
        self.tile = shared(dtype, KEYS, self.width + _PAD, align=32)
        self.scores = shared(f32, warps * QUERIES, KEYS + _PAD, align=32)
        self.weights = shared(dtype, warps * QUERIES, KEYS + _PAD, align=32)
        self.sums = shared(f32, warps * QUERIES, self.width + _PAD, align=32)
        lane = ptx.tid.x & 31
        self.first_row = (ptx.tid.x >> 5) * QUERIES
        self.row, self.half = self.first_row + (lane >> 1), lane & 1

    def _load(self, which: str, layout: str, tile: Any, row: Any, column: int) -> Any:
        kind = "f32" if which == "c" else str(self.dtype)
        mnemonic = f"wmma.load.{which}.sync.aligned.{layout}.m16n16k16.shared.{kind}"
        return ptx[mnemonic](tile[row] + column, tile.strides[0])

    def _multiply(self, layout: str, a: Any, b: Any, c: Any) -> Any:
        types = "f32.bf16.bf16.f32" if self.dtype is bf16 else "f32.f32"
        return ptx[f"wmma.mma.sync.aligned.row.{layout}.m16n16k16.{types}"](a, b, c)

    def _store(self, tile: Any, row: Any, column: int, d: Any) -> None:
        ptx["wmma.store.d.sync.aligned.row.m16n16k16.shared.f32"](tile[row] + column, d, tile.strides[0])

    def attend(self, q: Any, k: Any, v: Any, out: Any, first: Any, queries: Any, keys: Any, scale: Any) -> None:
        """Compute the block's queries from ``first`` on; ``scale`` is what :func:`scaled` made."""
        rows = self.threads // 32 * QUERIES
        query, shift = first + self.row.bits(s32), keys - queries
        self._stage(q, self.queries, rows, first, queries)
        with loop(ptx.tid.x, rows * self.width, self.threads) as at:
            self.sums[at // self.width, at % self.width] = 0.0
        largest, total = reg(f32, -inf), reg(f32, 0.0)
        end = minimum(keys, first + rows + shift) if self.causal else keys
        with loop(0, end, KEYS) as start:
            ptx.bar.sync(0)
            self._stage(k, self.tile, KEYS, start, keys)
            ptx.bar.sync(0)
            self._score()
            last = minimum(keys - 1, query + shift) if self.causal else keys - 1
            self._weigh(start, last, scale, largest, total)
            ptx.bar.sync(0)
            self._stage(v, self.tile, KEYS, start, keys)
            ptx.bar.sync(0)
            self._add_values()
        ptx.bar.sync(0)
        self._write(out, query, queries, inverse(f32, total + warp.shuffle_xor(total, 1)))

    def _stage(self, source: Any, tile: Any, count: int, start: Any, stop: Any) -> None:
        """Rows from ``start`` of q, k or v; zeros beyond the last, and beyond the head dimension."""
        with loop(ptx.tid.x, count * self.width, self.threads) as at:
            row, i = (at // self.width).bits(s32), (at % self.width).bits(s32)
            element = reg(self.dtype, 0.0)
            with when((start + row < stop) & (i < self.dim)):
                element.set(source[(start + row) * self.dim + i])
            tile[row, i] = element

    def _score(self) -> None:
        """The dot products of the warp's queries with the tile of keys, by way of the columns of k^T."""
        for key in range(0, KEYS, 16):
            d: Any = [reg(f32, 0.0) for _ in range(8)]
            for i in range(0, self.width, 16):
                a = self._load("a", "row", self.queries, self.first_row, i)
                b = self._load("b", "col", self.tile, key, i)
                d = self._multiply("col", a, b, d)
            self._store(self.scores, self.first_row, key, d)
        ptx.bar.warp.sync(0xFFFFFFFF)

    def _weigh(self, start: Any, last: Any, scale: Any, largest: Any, total: Any) -> None:
        """Scores become weights; the state of the row and its sums are brought to the largest score yet."""
        mine = self.half * (KEYS // 2)
        scores, weights = self.scores[self.row] + mine, self.weights[self.row] + mine
        key = start + mine.bits(s32)
        masked = [select(key + i <= last, scores[i] * scale, -inf) for i in range(KEYS // 2)]
        top = largest.copy()
        for score in masked:
            top = maximum(top, score)
        top = maximum(top, warp.shuffle_xor(top, 1))
        base = finite(top)
        shrink = exp(f32, largest - base)
        largest.set(top)
        total *= shrink
        for i, score in enumerate(masked):
            weight = exp(f32, score - base)
            total += weight
            weights[i] = weight.to(self.dtype)
        sums = self.sums[self.row] + self.half * (self.width // 2)
        with loop(0, self.width // 2, 8) as i:
            for step in range(8):
                at = sums + i + step
                at[0] = at[0] * shrink
        ptx.bar.warp.sync(0xFFFFFFFF)

    def _add_values(self) -> None:
        """The warp's sums plus its weights times the tile of values."""
        for i in range(0, self.width, 16):
            d = self._load("c", "row", self.sums, self.first_row, i)
            for key in range(0, KEYS, 16):
                a = self._load("a", "row", self.weights, self.first_row, key)
                d = self._multiply("row", a, self._load("b", "row", self.tile, key, i), d)
            self._store(self.sums, self.first_row, i, d)
        ptx.bar.warp.sync(0xFFFFFFFF)

    def _write(self, out: Any, query: Any, queries: Any, factor: Any) -> None:
        """The lane's half of its row, where there is such a query."""
        with when(query < queries):
            with loop(self.half, self.dim, 2) as i:
                out[query * self.dim + i.bits(s32)] = (self.sums[self.row, i] * factor).to(self.dtype)


@cache
def wmma_kernel(dtype: ScalarType, dim: int, causal: bool) -> Kernel:
    """The kernel for f16 or bf16; the parameters are those of :func:`~ptxdsl.kernels.flash.flash_kernel`."""
    warps = wmma_warps(dim)

    @ptx_kernel(name=f"flash_attention_wmma_{dtype}_hd{dim}{'_causal' if causal else ''}", reqntid=warps * 32)
    def kernel(
        q: Ptr[dtype], k: Ptr[dtype], v: Ptr[dtype], out: Ptr[dtype], queries: s32, keys: s32, group: u32, scale: f32,
    ) -> None:
        head, batch = ptx.ctaid.y, ptx.ctaid.z
        mine = ptx.mul.wide.u32(batch * ptx.nctaid.y + head, (queries * dim).bits(u32))
        theirs = ptx.mul.wide.u32(batch * (ptx.nctaid.y // group) + head // group, (keys * dim).bits(u32))
        _Block(dtype, dim, causal, warps).attend(
            q + mine, k + theirs, v + theirs, out + mine, (ptx.ctaid.x * (warps * QUERIES)).bits(s32), queries, keys,
            scaled(f32, scale),
        )

    return kernel
