"""The gradients of attention: what queries, keys and values get of a gradient of the result (Dao 2023, section 3.2).

With weights p_ij = exp(s_ij - l_i), where l_i is the logarithm of a query's sum of exponentials, and g the gradient of
the result::

    dv_j = sum_i p_ij g_i
    ds_ij = p_ij (g_i . v_j - d_i)        d_i = sum_j p_ij g_i . v_j
    dq_i = scale sum_j ds_ij k_j
    dk_j = scale sum_i ds_ij q_i

One kernel goes over the keys of its queries twice: for l and d, which it stores, then for dq. Another goes over the
queries of its keys, and of all heads that share them. Nothing is added by atomic operations, so the bits are the same
each time. This module has the kernels for float32 and float64, a query or a key a warp; those for tensor cores are in
`flash_backward_mma`.
"""

from __future__ import annotations

from functools import cache
from math import inf
from typing import Any

from .. import (
    Kernel, Ptr, ScalarType, f64, loop, maximum, minimum, ptx, ptx_kernel, reg, s32, select, u32, warp, when,
)
from .. import math as ptxmath

from .decode import lanes_of
from .online import exp, finite, fma, scaled
from .sequences import length_type, rows_of, side_of

__all__ = ["WARPS", "keys_kernel", "queries_kernel"]

WARPS = 4


def _logarithm(acc: ScalarType, x: Any) -> Any:
    """Of a sum of :func:`exp`: to the base 2 for f32."""
    return ptxmath.log(x) if acc is f64 else ptx.lg2.approx.f32(x)


def _dot(acc: ScalarType, a: list[Any], b: list[Any]) -> Any:
    found = a[0] * b[0]
    for x, y in zip(a[1:], b[1:]):
        found = fma(acc, x, y, found)
    return warp.reduce_sum(found)


@cache
def queries_kernel(dtype: ScalarType, dim: int, causal: bool, packed: bool = False) -> Kernel:
    """``(q, k, v, gradient, dq, states, queries, keys, heads a key head, scale)``: a query a warp.

    Of ``packed`` sequences, `sequences` has what ``queries`` and ``keys`` are.
    """
    length: Any = length_type(packed)

    @ptx_kernel(
        name=f"flash_backward_{'packed_' * packed}queries_{dtype}_hd{dim}{'_causal' * causal}", reqntid=WARPS * 32
    )
    def kernel(
        q: Ptr[dtype], k: Ptr[dtype], v: Ptr[dtype], gradient: Ptr[dtype], dq: Ptr[dtype], states: Ptr[dtype],
        queries: length, keys: length, group: u32, scale: dtype,
    ) -> None:
        lane, query = ptx.laneid, (ptx.ctaid.x * WARPS + (ptx.tid.x >> 5)).bits(s32)
        head, heads = ptx.ctaid.y, ptx.nctaid.y
        queries, keys, begin, key_begin = rows_of(queries, keys, packed)
        with when(query < queries):
            at = side_of(begin, queries, head, heads, packed).at(query)
            others = side_of(key_begin, keys, head // group, heads // group, packed)
            mine, theirs, pitch = at * dim, others.first * dim, others.pitch(dim)
            own, given = lanes_of(q + mine, 0, dim, lane, dtype), lanes_of(gradient + mine, 0, dim, lane, dtype)
            stop = minimum(keys, query + (keys - queries) + 1) if causal else keys
            factor = scaled(dtype, scale)
            largest, total, mean = reg(dtype, -inf), reg(dtype, 0.0), reg(dtype, 0.0)
            with loop(0, stop) as key:
                score = _dot(dtype, own, lanes_of(k + theirs, key.bits(u32) * pitch, dim, lane, dtype)) * factor
                slope = _dot(dtype, given, lanes_of(v + theirs, key.bits(u32) * pitch, dim, lane, dtype))
                top = maximum(largest, score)
                base = finite(top)
                weight, shrink = exp(dtype, score - base), exp(dtype, largest - base)
                largest.set(top)
                fma(dtype, total, shrink, weight, out=total)
                fma(dtype, mean, shrink, weight * slope, out=mean)
            # The weight of a query without a key is 0.
            level = select(total == 0.0, inf, finite(largest) + _logarithm(dtype, total))
            slope_mean = select(total == 0.0, 0.0, mean / total)
            with when(lane == 0):
                states.store(at * 2, [level, slope_mean])
            sums = [reg(dtype, 0.0) for _ in own]
            with loop(0, stop) as key:
                row = lanes_of(k + theirs, key.bits(u32) * pitch, dim, lane, dtype)
                score = _dot(dtype, own, row) * factor
                slope = _dot(dtype, given, lanes_of(v + theirs, key.bits(u32) * pitch, dim, lane, dtype))
                by = exp(dtype, score - level) * (slope - slope_mean) * scale
                for part, element in zip(sums, row):
                    fma(dtype, by, element, part, out=part)
            _store(dq + mine, sums, dim, lane)

    return kernel


@cache
def keys_kernel(dtype: ScalarType, dim: int, causal: bool, packed: bool = False) -> Kernel:
    """``(q, k, v, gradient, states, dk, dv, queries, keys, heads a key head, scale)``: a key a warp."""
    length: Any = length_type(packed)

    @ptx_kernel(
        name=f"flash_backward_{'packed_' * packed}keys_{dtype}_hd{dim}{'_causal' * causal}", reqntid=WARPS * 32
    )
    def kernel(
        q: Ptr[dtype], k: Ptr[dtype], v: Ptr[dtype], gradient: Ptr[dtype], states: Ptr[dtype], dk: Ptr[dtype],
        dv: Ptr[dtype], queries: length, keys: length, group: u32, scale: dtype,
    ) -> None:
        lane, key = ptx.laneid, (ptx.ctaid.x * WARPS + (ptx.tid.x >> 5)).bits(s32)
        key_head, key_heads = ptx.ctaid.y, ptx.nctaid.y
        queries, keys, begin, key_begin = rows_of(queries, keys, packed)
        with when(key < keys):
            mine = side_of(key_begin, keys, key_head, key_heads, packed).at(key) * dim
            own, value = lanes_of(k + mine, 0, dim, lane, dtype), lanes_of(v + mine, 0, dim, lane, dtype)
            start = maximum(0, key - (keys - queries)) if causal else reg(s32, 0)
            factor = scaled(dtype, scale)
            k_sums, v_sums = [reg(dtype, 0.0) for _ in own], [reg(dtype, 0.0) for _ in own]
            with loop(0, group) as member:
                side = side_of(begin, queries, key_head * group + member, key_heads * group, packed)
                rows, pitch = side.first, side.pitch(1)
                with loop(start, queries) as query:
                    at = query.bits(u32) * pitch
                    level, mean = (states + rows * 2).load(at * 2, width=2)
                    row = lanes_of(q + rows * dim, at * dim, dim, lane, dtype)
                    given = lanes_of(gradient + rows * dim, at * dim, dim, lane, dtype)
                    weight = exp(dtype, _dot(dtype, own, row) * factor - level)
                    by = weight * (_dot(dtype, value, given) - mean) * scale
                    for k_part, v_part, x, g in zip(k_sums, v_sums, row, given):
                        fma(dtype, by, x, k_part, out=k_part)
                        fma(dtype, weight, g, v_part, out=v_part)
            _store(dk + mine, k_sums, dim, lane)
            _store(dv + mine, v_sums, dim, lane)

    return kernel


def _store(to: Any, sums: list[Any], dim: int, lane: Any) -> None:
    for number, part in enumerate(sums):
        with when(lane + number * 32 < dim):
            to[lane + number * 32] = part
