"""Many queries against many keys: a block of warps shares tiles of k and v (Dao et al. 2022)."""

from __future__ import annotations

from functools import cache
from math import inf
from typing import Any

from .. import (
    Kernel, Ptr, ScalarType, f32, f64, loop, maximum, minimum, ptx, ptx_kernel, reg, s32, select, shared, u32, u64,
    when,
)
from .. import warp

from .online import exp, finite, fma, inverse, scaled

__all__ = ["flash_kernel", "head_of_block", "queries_a_warp", "template_kernel", "varlen_kernel"]

KEYS = 32
"""Keys in a tile: each lane of a warp scores one."""
CHUNK = 64
"""Elements of the head dimension in a tile."""


def queries_a_warp(acc: ScalarType, dim: int) -> int:
    """Queries a warp: what keeps the tiles in 48 KiB and the sums in registers."""
    return 1 if dim * acc.bytes > 1024 else 2 if dim * acc.bytes > 512 else 4


class _Block:
    """A block of warps with its queries first to first + warps * rows of one head, and the tiles that it shares.

    While scores are made each lane holds one key of the tile; while values are added up each lane holds the elements
    lane, lane + 32, ... of the head.
    """

    def __init__(
        self, dtype: ScalarType, dim: int, causal: bool, warps: int, rows: int, pitches: tuple[Any, Any] | None = None
    ) -> None:
        self.q_pitch: Any
        self.k_pitch: Any
        self.q_pitch, self.k_pitch = pitches or (dim, dim)
        self.dtype, self.dim, self.causal, self.warps, self.rows = dtype, dim, causal, warps, rows
        self.acc = f64 if dtype is f64 else f32
        self.chunks = [(start, min(CHUNK, dim - start)) for start in range(0, dim, CHUNK)]
        self.q_tile = shared(self.acc, warps * rows, dim)
        self.tile = shared(self.acc, KEYS, CHUNK + 1)
        self.weights = shared(self.acc, warps * rows, KEYS)
        self.lane = (ptx.tid.x & 31).bits(s32)
        self.mine = (ptx.tid.x >> 5).bits(s32) * rows

    def attend(self, q: Any, k: Any, v: Any, out: Any, first: Any, queries: Any, keys: Any, scale: Any) -> None:
        """Compute the block's queries from ``first`` on; ``scale`` is what :func:`scaled` made."""
        mine, shift = first + self.mine, keys - queries
        self._load_queries(q, mine, queries)
        largest = [reg(self.acc, -inf) for _ in range(self.rows)]
        total = [reg(self.acc, 0.0) for _ in range(self.rows)]
        sums = [[reg(self.acc, 0.0) for _ in range(0, self.dim, 32)] for _ in range(self.rows)]
        end = minimum(keys, first + self.warps * self.rows + shift) if self.causal else keys
        with loop(0, end, KEYS) as start:
            scores = self._scores(k, start, keys)
            key = start + self.lane
            for row, score in enumerate(scores):
                visible = key < keys
                if self.causal:
                    visible = visible & (key <= mine + row + shift)
                masked = select(visible, score * scale, -inf)
                self._rescale(row, masked, largest[row], total[row], sums[row])
            self._add_values(v, start, keys, sums)
        for row, state in enumerate(zip(total, sums)):
            self._store(out, mine + row, queries, *state)

    def _load_queries(self, q: Any, mine: Any, queries: Any) -> None:
        for row in range(self.rows):
            with loop(self.lane, self.dim, 32) as i:
                element = reg(self.acc, 0.0)
                with when(mine + row < queries):
                    element.set(q[(mine + row) * self.q_pitch + i].to(self.acc))
                self.q_tile[self.mine + row, i] = element

    def _stage(self, source: Any, start: Any, keys: Any, column: int, width: int) -> None:
        """A tile of k or v: rows from ``start``, ``width`` columns from ``column``; zeros beyond the last key."""
        padded = -(-width // 32) * 32
        ptx.bar.sync(0)
        with loop(ptx.tid.x, KEYS * padded, self.warps * 32) as at:
            row, i = (at // padded).bits(s32), (at % padded).bits(s32)
            element = reg(self.acc, 0.0)
            with when((start + row < keys) & (i < width)):
                element.set(source[(start + row) * self.k_pitch + i + column].to(self.acc))
            self.tile[row, i] = element
        ptx.bar.sync(0)

    def _scores(self, k: Any, start: Any, keys: Any) -> list[Any]:
        """The dot products of the lane's key with the warp's queries."""
        scores = [reg(self.acc, 0.0) for _ in range(self.rows)]
        for column, width in self.chunks:
            self._stage(k, start, keys, column, width)
            unrolled = min(8, width)
            with loop(0, width, unrolled) as i:
                for step in range(unrolled):
                    element = self.tile[self.lane, i + step]
                    for row, score in enumerate(scores):
                        fma(self.acc, self.q_tile[self.mine + row, i + (column + step)], element, score, out=score)
        return scores

    def _rescale(self, row: int, score: Any, largest: Any, total: Any, sums: list[Any]) -> None:
        """Bring a query's state to the largest score yet, and store the weights of the tile's keys."""
        top = maximum(largest, warp.reduce_max(score))
        base = finite(top)
        weight, shrink = exp(self.acc, score - base), exp(self.acc, largest - base)
        largest.set(top)
        fma(self.acc, total, shrink, weight, out=total)
        for part in sums:
            part *= shrink
        self.weights[self.mine + row, self.lane] = weight

    def _add_values(self, v: Any, start: Any, keys: Any, sums: list[list[Any]]) -> None:
        for column, width in self.chunks:
            self._stage(v, start, keys, column, width)
            with loop(0, KEYS, 4) as j:
                for step in range(4):
                    for offset in range(0, width, 32):
                        element = self.tile[j + step, self.lane + offset]
                        for row in range(self.rows):
                            part = sums[row][(column + offset) // 32]
                            fma(self.acc, self.weights[self.mine + row, j + step], element, part, out=part)

    def _store(self, out: Any, query: Any, queries: Any, total: Any, sums: list[Any]) -> None:
        factor = inverse(self.acc, warp.reduce_sum(total))
        for at, part in enumerate(sums):
            i = self.lane + at * 32
            with when((query < queries) & (i < self.dim)):
                out[query * self.q_pitch + i] = (part * factor).to(self.dtype)


def head_of_block(q: Any, k: Any, v: Any, out: Any, q_size: Any, k_size: Any, group: Any) -> tuple[Any, Any, Any, Any]:
    """q, k, v and out of the head that the block works on: grid y counts the heads of q, grid z the sequences."""
    head, batch = ptx.ctaid.y, ptx.ctaid.z
    mine = ptx.mul.wide.u32(batch * ptx.nctaid.y + head, q_size.bits(u32))
    theirs = ptx.mul.wide.u32(batch * (ptx.nctaid.y // group) + head // group, k_size.bits(u32))
    return q + mine, k + theirs, v + theirs, out + mine


@cache
def flash_kernel(dtype: ScalarType, dim: int, causal: bool, warps: int = 4) -> Kernel:
    acc = f64 if dtype is f64 else f32
    rows = queries_a_warp(acc, dim)

    @ptx_kernel(name=f"flash_attention_{dtype}_hd{dim}{'_causal' if causal else ''}", reqntid=warps * 32)
    def kernel(
        q: Ptr[dtype], k: Ptr[dtype], v: Ptr[dtype], out: Ptr[dtype], queries: s32, keys: s32, group: u32, scale: acc,
    ) -> None:
        of_head = head_of_block(q, k, v, out, queries * dim, keys * dim, group)
        first = (ptx.ctaid.x * (warps * rows)).bits(s32)
        _Block(dtype, dim, causal, warps, rows).attend(*of_head, first, queries, keys, scaled(acc, scale))

    return kernel


@cache
def varlen_kernel(dtype: ScalarType, dim: int, causal: bool, warps: int = 4) -> Kernel:
    """Sequences one behind the other, ``[rows, heads, dim]``: where each begins stands in two tables."""
    acc = f64 if dtype is f64 else f32
    rows = queries_a_warp(acc, dim)

    @ptx_kernel(name=f"varlen_attention_{dtype}_hd{dim}{'_causal' if causal else ''}", reqntid=warps * 32)
    def kernel(
        q: Ptr[dtype], k: Ptr[dtype], v: Ptr[dtype], out: Ptr[dtype], q_starts: Ptr[s32], k_starts: Ptr[s32],
        group: u32, scale: acc,
    ) -> None:
        heads, head, sequence = ptx.nctaid.y, ptx.ctaid.y, ptx.ctaid.z
        pitches = heads * dim, heads // group * dim
        begin, key_begin = q_starts[sequence], k_starts[sequence]
        queries, keys = q_starts[sequence + 1] - begin, k_starts[sequence + 1] - key_begin
        first = (ptx.ctaid.x * (warps * rows)).bits(s32)
        mine = ptx.mad.wide.u32(begin.bits(u32), pitches[0], (head * dim).to(u64))
        theirs = ptx.mad.wide.u32(key_begin.bits(u32), pitches[1], (head // group * dim).to(u64))
        with when(first < queries):
            strides = pitches[0].bits(s32), pitches[1].bits(s32)
            block = _Block(dtype, dim, causal, warps, rows, strides)
            block.attend(q + mine, k + theirs, v + theirs, out + mine, first, queries, keys, scaled(acc, scale))

    return kernel


@cache
def template_kernel(dtype: ScalarType, head_dim: int, block_seq: int, causal: bool, arch: str | None) -> Kernel:
    """One head; a block of ``block_seq`` threads, one warp at least, computes ``block_seq`` queries, some at a time."""
    warps = max(1, block_seq // 32)
    rows = min(2, block_seq, queries_a_warp(dtype, head_dim))

    name = f"attention_{dtype}_hd{head_dim}_bs{block_seq}{'_causal' if causal else ''}"

    @ptx_kernel(name=name, arch=arch, reqntid=warps * 32)
    def kernel(
        q: Ptr[dtype], k: Ptr[dtype], v: Ptr[dtype], out: Ptr[dtype], seq_len: s32, scale: dtype,
    ) -> None:
        block, start = _Block(dtype, head_dim, causal, warps, rows), (ptx.ctaid.x * block_seq).bits(s32)
        with loop(start, start + block_seq, warps * rows) as first:
            block.attend(q, k, v, out, first, seq_len, seq_len, scaled(dtype, scale))

    return kernel
