"""The gradients of attention on tensor cores: f16 and bf16, products by mma.sync, sums in f32. See `flash_backward`.

A block has 64 queries, or keys, 16 a warp, and goes over the others in tiles. The second kernel makes the scores
transposed, a row a key, so that the weights lie in registers as the left factor of the products with queries and
gradients in either.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cache
from math import inf
from typing import Any

from .. import (
    Array, Kernel, ScalarType, dynamic_shared, f32, loop, maximum, minimum, mma, ptx, ptx_kernel, reg, s32, select,
    shared, tiles, u32, when,
)

from .online import finite, scaled
from .sequences import length_type, rows_of

__all__ = ["ROWS", "THREADS", "keys_kernel", "queries_kernel", "shared_bytes"]

ROWS, STEP, THREADS = 64, 32, 128
"""Queries or keys of a block, those of a tile that it goes over, threads."""
_GAP = 8
"""Elements between rows, so that rows lie in different banks."""


def _wide(dim: int) -> int:
    """The columns of a tile, which are copied 16 bytes a thread."""
    return -(-dim // 32) * 32


def shared_bytes(dim: int) -> int:
    """Bytes of dynamic shared memory of a block."""
    return 2 * (ROWS + STEP) * (_wide(dim) + _GAP) * 2


class _Tiles:
    """Two tiles of the block's own rows, and two of those that it goes over."""

    def __init__(self, dtype: ScalarType, dim: int) -> None:
        wide = _wide(dim)
        place, self.tiles = dynamic_shared(dtype, align=16), []
        for rows in (ROWS, ROWS, STEP, STEP):
            self.tiles.append(tiles.Tile(place, rows, wide, 0, pitch=wide + _GAP))
            place = place + rows * (wide + _GAP)
        self.own, self.wide = (ptx.tid.x >> 5) * 16, wide

    def mine(self, number: int) -> Any:
        """The 16 rows of this warp."""
        return self.tiles[number].part(16, self.wide, self.own)

    def load(self, first: int, sources: Sequence[Any], row: Any) -> None:
        """Fill two tiles with rows of two matrices, and 0 beyond their edges; all threads meet before and behind."""
        ptx.bar.sync(0)
        for tile, source in zip(self.tiles[first : first + 2], sources):
            tiles.copy(tile, source, row, 0, threads=THREADS)
        ptx.cp.async_.wait_all()
        ptx.bar.sync(0)


def _products(left: tuple[Any, Any], right: tuple[Any, Any]) -> list[Any]:
    """The scores, and the products of gradients and values."""
    found = []
    for a, b in zip(left, right):
        sums = mma.zeros(16, STEP)
        mma.multiply(sums, a, b.T)
        found.append(sums)
    return found


def _plus(row: Any, begin: Any) -> Any:
    """The place of a row in arrays where those of its sequence begin at ``begin``."""
    return row if isinstance(begin, int) else row + begin.bits(u32)


def _of_head(head: Any, begin: Any, count: Any, packed: bool, *matrices: Any) -> list[Any]:
    """The rows of a head, of packed sequences up to the end of this one."""
    found = [matrix[head] for matrix in matrices]
    if packed:
        for matrix in found:
            matrix.shape = (begin + count).bits(u32), matrix.shape[1]
    return found


@cache
def queries_kernel(dtype: ScalarType, dim: int, causal: bool, packed: bool = False) -> Kernel:
    """``(q, k, v, gradient, dq, states, queries, keys, heads a key head, scale)``, matrices of (heads, rows, dim).

    Of ``packed`` sequences, `sequences` has what ``queries`` and ``keys`` are.
    """
    matrix: Any = Array[dtype, 3]
    length: Any = length_type(packed)

    @ptx_kernel(
        name=f"flash_backward_{'packed_' * packed}queries_mma_{dtype}_hd{dim}{'_causal' * causal}", reqntid=THREADS
    )
    def kernel(
        q: matrix, k: matrix, v: matrix, gradient: matrix, dq: matrix, states: Array[f32, 3], queries: length,
        keys: length, group: u32, scale: f32,
    ) -> None:
        first, head = ptx.ctaid.x * ROWS, ptx.ctaid.y
        queries, keys, begin, key_begin = rows_of(queries, keys, packed)
        if packed:
            ptx.ret(pred=first.bits(s32) >= queries)
        held, factor = _Tiles(dtype, dim), scaled(f32, scale)
        others = _of_head(head // group, key_begin, keys, packed, k, v)
        mine = _of_head(head, begin, queries, packed, q, gradient, dq)
        own_first = _plus(first, begin)
        held.load(0, mine[:2], own_first)
        own = held.mine(0), held.mine(1)
        row = first.bits(s32) + held.own.bits(s32)
        shift = keys - queries
        end = maximum(0, minimum(keys, first.bits(s32) + ROWS + shift)) if causal else keys

        def visible(start: Any, y: Any, x: Any) -> Any:
            key = start.bits(s32) + x.bits(s32)
            seen = key < keys
            return seen & (key <= row + y.bits(s32) + shift) if causal else seen

        largest, total, mean = ([reg(f32, 0.0) for _ in range(2)] for _ in range(3))
        for each in largest:
            each.set(-inf)
        with loop(0, end.bits(u32), STEP) as start:
            held.load(2, others, _plus(start, key_begin))
            scores, slopes = _products(own, (held.tiles[2], held.tiles[3]))
            scores.map_at(lambda y, x, s: select(visible(start, y, x), s * factor, -inf))
            tops = [maximum(old, new) for old, new in zip(largest, scores.reduce_rows(maximum))]
            bases = [finite(top) for top in tops]
            shrink = [ptx.ex2.approx.f32(old - base) for old, base in zip(largest, bases)]
            scores.map_rows(lambda s, base: ptx.ex2.approx.f32(s - base), bases)
            sums = scores.reduce_rows(operator.add)
            for p, slope in zip(scores.registers, slopes.registers):
                slope *= p
            means = slopes.reduce_rows(operator.add)
            for old, top, whole, new, part, by, less in zip(largest, tops, total, sums, mean, means, shrink):
                old.set(top)
                whole.set(whole * less + new)
                part.set(part * less + by)
        # The weight of a query without a key is 0.
        levels = [
            select(whole == 0.0, inf, finite(top) + ptx.lg2.approx.f32(whole)) for top, whole in zip(largest, total)
        ]
        averages = [select(whole == 0.0, 0.0, part / whole) for part, whole in zip(mean, total)]
        for half, pair in enumerate(zip(levels, averages)):
            y = row + (ptx.laneid >> 2).bits(s32) + 8 * half
            with when((y < queries) & ((ptx.laneid & 3) == 0)):
                states.at(head, _plus(y.bits(u32), begin), 0).store(0, list(pair))
        sums = mma.zeros(16, held.wide)
        with loop(0, end.bits(u32), STEP) as start:
            held.load(2, others, _plus(start, key_begin))
            scores, slopes = _products(own, (held.tiles[2], held.tiles[3]))
            scores.map_at(lambda y, x, s: select(visible(start, y, x), s * factor, -inf))
            scores.map_rows(lambda s, level: ptx.ex2.approx.f32(s - level), levels)
            slopes.map_rows(lambda d, average: d - average, averages)
            for p, slope in zip(scores.registers, slopes.registers):
                p *= slope * scale
            mma.multiply(sums, scores.fragment(dtype), held.tiles[2])
        sums.store(mine[2], own_first + held.own, 0)

    return kernel


@cache
def keys_kernel(dtype: ScalarType, dim: int, causal: bool, packed: bool = False) -> Kernel:
    """``(q, k, v, gradient, states, dk, dv, queries, keys, heads a key head, scale)``, as of :func:`queries_kernel`."""
    matrix: Any = Array[dtype, 3]
    length: Any = length_type(packed)

    @ptx_kernel(
        name=f"flash_backward_{'packed_' * packed}keys_mma_{dtype}_hd{dim}{'_causal' * causal}", reqntid=THREADS
    )
    def kernel(
        q: matrix, k: matrix, v: matrix, gradient: matrix, states: Array[f32, 3], dk: matrix, dv: matrix,
        queries: length, keys: length, group: u32, scale: f32,
    ) -> None:
        first, head = ptx.ctaid.x * ROWS, ptx.ctaid.y
        queries, keys, begin, key_begin = rows_of(queries, keys, packed)
        if packed:
            ptx.ret(pred=first.bits(s32) >= keys)
        held, factor = _Tiles(dtype, dim), scaled(f32, scale)
        state = shared(f32, STEP, 2)
        mine, own_first = _of_head(head, key_begin, keys, packed, k, v, dk, dv), _plus(first, key_begin)
        held.load(0, mine[:2], own_first)
        own = held.mine(0), held.mine(1)
        row = first.bits(s32) + held.own.bits(s32)
        shift = keys - queries
        seen = maximum(0, first.bits(s32) - shift).bits(u32) // STEP * STEP if causal else reg(u32, 0)
        k_sums, v_sums = mma.zeros(16, held.wide), mma.zeros(16, held.wide)
        with loop(0, group) as member:
            other = head * group + member
            rows = _of_head(other, begin, queries, packed, q, gradient)
            with loop(seen, queries.bits(u32), STEP) as start:
                held.load(2, rows, _plus(start, begin))
                with when(ptx.tid.x < STEP):
                    # The weight of a query that is not there is 0.
                    level, mean = reg(f32, inf), reg(f32, 0.0)
                    query = start + ptx.tid.x
                    here, at = query.bits(s32) < queries, _plus(query, begin)
                    states.at(other, at, 0).load(0, width=2, pred=here, out=[level, mean])
                    state.at(ptx.tid.x, 0).store(0, [level, mean])
                ptx.bar.sync(0)
                scores, slopes = _products(own, (held.tiles[2], held.tiles[3]))

                def weight(y: Any, x: Any, s: Any, start: Any = start) -> Any:
                    found = ptx.ex2.approx.f32(s * factor - state[x, 0])
                    if not causal:
                        return found
                    return select(row + y.bits(s32) <= start.bits(s32) + x.bits(s32) + shift, found, 0.0)

                scores.map_at(weight)
                slopes.map_at(lambda _, x, d: d - state[x, 1])
                mma.multiply(v_sums, scores.fragment(dtype), held.tiles[3])
                for p, slope in zip(scores.registers, slopes.registers):
                    p *= slope * scale
                mma.multiply(k_sums, scores.fragment(dtype), held.tiles[2])
        k_sums.store(mine[2], own_first + held.own, 0)
        v_sums.store(mine[3], own_first + held.own, 0)

    return kernel
