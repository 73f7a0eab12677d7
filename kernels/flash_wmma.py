"""Many queries against many keys on tensor cores: both products by wmma m16n16k16, f16 or bf16 in, f32 sums.

PTX does not say which lane holds which element of a wmma fragment. Scores go through shared memory, where a few lanes
take the softmax of each row and leave the weights as the left factor of the second product. The sums, which are most of
the state, stay in registers: a fragment loaded from a matrix of row numbers tells each lane the row of each of its
registers, and with it the factor that this register is rescaled by.
"""

from __future__ import annotations

from functools import cache
from math import inf
from typing import Any

from .. import (
    Kernel, Ptr, ScalarType, b32, bf16, f32, loop, maximum, minimum, ptx, ptx_kernel, reg, s32, select, shared, u16,
    u32,
)
from .. import warp

from .flash import head_of_block
from .online import exp, finite, inverse, scaled

__all__ = ["ALIGNMENT", "queries_a_block", "wmma_kernel"]

ALIGNMENT = 16
"""Bytes that rows are read and written by."""
WARPS = 4
THREADS = WARPS * 32
KEYS = 32
"""Keys in a tile."""
_UNIT = 8
"""Elements in 16 bytes; as many lie between rows, so that the rows of a fragment lie in different banks."""


def _warps_a_row(dim: int) -> int:
    """Warps that share 16 queries, and the columns of their sums: what keeps these in registers."""
    return 1 if dim <= 128 else 2


def queries_a_block(dim: int) -> int:
    """Queries a block: 16 for each warp, or for two."""
    return WARPS // _warps_a_row(dim) * 16


class _Block:
    """A block of warps, its tiles, and the 16 queries and the columns of the result that are this warp's."""

    def __init__(self, dtype: ScalarType, dim: int, causal: bool) -> None:
        self.dtype, self.dim, self.causal, self.rows = dtype, dim, causal, queries_a_block(dim)
        self.shares = _warps_a_row(dim)
        self.fragments = -(-dim // (16 * self.shares))
        width = self.fragments * 16 * self.shares
        self.queries = shared(dtype, self.rows, width + _UNIT, align=32)
        self.tile = shared(dtype, KEYS, width + _UNIT, align=32)
        self.scores = shared(f32, self.rows, KEYS + 4, align=32)
        self.weights = shared(dtype, self.rows, KEYS + _UNIT, align=32)
        self.factors = shared(f32, self.rows)
        number = ptx.tid.x >> 5
        self.first, self.share = number // self.shares * 16, number % self.shares
        self.lanes = THREADS // self.rows
        self.row, self.part = ptx.tid.x // self.lanes, ptx.tid.x % self.lanes

    def attend(self, q: Any, k: Any, v: Any, out: Any, first: Any, queries: Any, keys: Any, scale: Any) -> None:
        """Compute the block's queries from ``first`` on; ``scale`` is what :func:`scaled` made."""
        self._stage(q, self.queries, self.rows, first, queries)
        numbers = self._numbers()
        sums = [[reg(f32, 0.0) for _ in numbers] for _ in range(self.fragments)]
        largest, total = reg(f32, -inf), reg(f32, 0.0)
        shift = keys - queries
        end = minimum(keys, first + self.rows + shift) if self.causal else keys
        with loop(0, end, KEYS) as start:
            self._stage(k, self.tile, KEYS, start, keys)
            ptx.bar.sync(0)
            self._score()
            ptx.bar.sync(0)
            self._stage(v, self.tile, KEYS, start, keys)
            stop = minimum(keys, first + self.row.bits(s32) + shift + 1) if self.causal else keys
            self._weigh(start, stop, scale, largest, total)
            ptx.bar.sync(0)
            self._rescale(numbers, sums)
            self._add_values(sums)
            ptx.bar.sync(0)
        self.factors[self.row] = inverse(f32, warp.reduce_sum(total, self.lanes))
        ptx.bar.sync(0)
        self._rescale(numbers, sums)
        self._write(out, sums, first, queries)

    # Fragments

    def _load(self, which: str, layout: str, tile: Any, row: Any, column: Any) -> Any:
        mnemonic = f"wmma.load.{which}.sync.aligned.{layout}.m16n16k16.shared.{tile.dtype}"
        return ptx[mnemonic](tile[row] + column, tile.strides[0])

    def _multiply(self, layout: str, a: Any, b: Any, sums: list[Any]) -> None:
        types = "f32.bf16.bf16.f32" if self.dtype is bf16 else "f32.f32"
        ptx[f"wmma.mma.sync.aligned.row.{layout}.m16n16k16.{types}"](a, b, sums, out=sums)

    def _store(self, row: Any, column: Any, d: Any) -> None:
        ptx["wmma.store.d.sync.aligned.row.m16n16k16.shared.f32"](self.scores[row] + column, d, self.scores.strides[0])

    def _numbers(self) -> list[Any]:
        """The row of the block that each register of the warp's sums is in."""
        with loop(ptx.tid.x, self.rows * 16, THREADS) as at:
            self.scores[at // 16, at % 16] = ptx.cvt.rn.f32.u32(at // 16)
        ptx.bar.sync(0)
        numbers = self._load("c", "row", self.scores, self.first, 0)
        return [ptx.cvt.rzi.u32.f32(number) for number in numbers]

    # Tiles

    def _stage(self, source: Any, tile: Any, count: int, start: Any, stop: Any) -> None:
        """Rows from ``start`` of q, k or v; zeros beyond the last, and beyond the head dimension."""
        units = (tile.shape[1] - _UNIT) // _UNIT
        with loop(ptx.tid.x, count * units, THREADS) as at:
            row, unit = start + (at // units).bits(s32), (at % units).bits(s32)
            there = row < stop
            if units * _UNIT > self.dim:
                there = there & (unit * _UNIT < self.dim)
            words = [reg(b32, 0) for _ in range(4)]
            source.cast(b32).load(row * (self.dim // 2) + unit * 4, width=4, pred=there, out=words)
            (tile[at // units] + at % units * _UNIT).cast(b32).store(0, words)

    def _score(self) -> None:
        """The dot products of 16 queries with the tile of keys, by way of the columns of k^T."""
        with loop(self.share * 16, KEYS, 16 * self.shares) as key:
            scores = [reg(f32, 0.0) for _ in range(8)]
            with loop(0, self.dim, 16) as i:
                a, b = self._load("a", "row", self.queries, self.first, i), self._load("b", "col", self.tile, key, i)
                self._multiply("col", a, b, scores)
            self._store(self.first, key, scores)

    def _weigh(self, start: Any, stop: Any, scale: Any, largest: Any, total: Any) -> None:
        """The lane's scores of its row become weights; the state is brought to the row's largest score yet."""
        scores, weights = self.scores[self.row] + self.part, self.weights[self.row] + self.part
        key = start + self.part.bits(s32)
        own = range(0, KEYS, self.lanes)
        masked = [select(key + i < stop, scores[i] * scale, -inf) for i in own]
        top = masked[0]
        for score in masked[1:]:
            top = maximum(top, score)
        top = maximum(largest, warp.reduce_max(top, self.lanes))
        base = finite(top)
        shrink = exp(f32, largest - base)
        largest.set(top)
        total *= shrink
        for i, score in zip(own, masked):
            weight = exp(f32, score - base).to(self.dtype)
            weights[i] = weight
            total += weight.to(f32)  # what the values are multiplied by, so that rounding it cancels
        self.factors[self.row] = shrink

    def _rescale(self, numbers: list[Any], sums: list[list[Any]]) -> None:
        for at, number in enumerate(numbers):
            factor = self.factors[number]
            for fragment in sums:
                fragment[at] *= factor

    def _add_values(self, sums: list[list[Any]]) -> None:
        """The weights times the tile of values, in the warp's columns."""
        with loop(0, KEYS, 16) as key:
            a = self._load("a", "row", self.weights, self.first, key)
            for at, fragment in enumerate(sums):
                b = self._load("b", "row", self.tile, key, (self.share + at * self.shares) * 16)
                self._multiply("row", a, b, fragment)

    def _write(self, out: Any, sums: list[list[Any]], first: Any, queries: Any) -> None:
        """The warp's columns, by way of a corner of the scores of its own; a lane has 8 elements in a row."""
        lane = ptx.tid.x & 31
        row, i = self.first + (lane >> 1), (lane & 1) * _UNIT
        corner = self.scores[row] + (self.share * 16 + i)
        query = first + row.bits(s32)
        for at, fragment in enumerate(sums):
            self._store(self.first, self.share * 16, fragment)
            ptx.bar.warp.sync(0xFFFFFFFF)
            column = (self.share + at * self.shares) * 16 + i
            elements = [corner[step].to(self.dtype).bits(u16) for step in range(_UNIT)]
            words = [ptx.mov.b32(pair) for pair in zip(elements[::2], elements[1::2])]
            there = (query < queries) & (column < self.dim)
            out.cast(b32).store(query * (self.dim // 2) + (column // 2).bits(s32), words, pred=there)
            ptx.bar.warp.sync(0xFFFFFFFF)


@cache
def wmma_kernel(dtype: ScalarType, dim: int, causal: bool) -> Kernel:
    """The kernel for f16 or bf16; the parameters are those of :func:`~ptxdsl.kernels.flash.flash_kernel`."""
    rows = queries_a_block(dim)

    name = f"flash_attention_wmma_{dtype}_hd{dim}{'_causal' if causal else ''}"

    @ptx_kernel(name=name, reqntid=THREADS, minnctapersm=4)  # four blocks: 128 registers a thread
    def kernel(
        q: Ptr[dtype], k: Ptr[dtype], v: Ptr[dtype], out: Ptr[dtype], queries: s32, keys: s32, group: u32, scale: f32,
    ) -> None:
        of_head = head_of_block(q, k, v, out, queries * dim, keys * dim, group)
        first = (ptx.ctaid.x * rows).bits(s32)
        _Block(dtype, dim, causal).attend(*of_head, first, queries, keys, scaled(f32, scale))

    return kernel
