"""One query a sequence against the keys of a cache: the warps of a block share the keys, and so may blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf
from typing import Any

from .. import (
    Array, Kernel, Ptr, ScalarType, check, f32, f64, loop, maximum, minimum, ptx, ptx_kernel, reg, s32, s64, shared,
    u32, u64, when,
)
from .. import warp

from .online import exp, finite, fma, inverse, merge, scaled

__all__ = ["chunk_kernel", "combine_kernel", "decode_kernel", "lanes_of", "paged_kernel"]


def lanes_of(source: Any, row: Any, dim: int, lane: Any, acc: ScalarType) -> list[Any]:
    """Elements lane, lane + 32, ... of a row, and 0 beyond ``dim``."""
    elements = []
    for offset in range(0, dim, 32):
        if offset + 32 <= dim:
            elements.append(source[row + lane + offset].to(acc))
            continue
        element = reg(acc, 0.0)
        with when(lane + offset < dim):
            element.set(source[row + lane + offset].to(acc))
        elements.append(element)
    return elements


def one_query(
    q: Any, k: Any, v: Any, start: Any, stop: Any, scale: Any, finish: Any, *, acc: ScalarType, dim: int, warps: int,
    row: Callable[[Any, Any], tuple[Any, Any]] | None = None,
) -> None:
    """One query against the keys start to stop, which the warps share; ``finish(i, top, weight, value)`` for each i.

    ``row(source, key)`` is a pointer and the element where the row of a key begins in k or v, if they are not dense.
    """
    row = row or (lambda source, key: (source, key * dim))
    lane, warp_id = ptx.tid.x & 31, ptx.tid.x >> 5
    query = lanes_of(q, 0, dim, lane, acc)
    largest, total = reg(acc, -inf), reg(acc, 0.0)
    sums = [reg(acc, 0.0) for _ in query]
    with loop(start + warp_id, stop, warps) as key:
        dot = None
        for a, b in zip(query, lanes_of(*row(k, key), dim, lane, acc)):
            dot = a * b if dot is None else fma(acc, a, b, dot)
        score = warp.reduce_sum(dot) * scale
        top = maximum(largest, score)
        base = finite(top)
        weight, shrink = exp(acc, score - base), exp(acc, largest - base)
        largest.set(top)
        fma(acc, total, shrink, weight, out=total)
        for part, element in zip(sums, lanes_of(*row(v, key), dim, lane, acc)):
            fma(acc, part, shrink, weight * element, out=part)

    largest_of, total_of, sums_of = shared(acc, warps), shared(acc, warps), shared(acc, warps, dim)
    with when(lane == 0):
        largest_of[warp_id] = largest
        total_of[warp_id] = total
    for at, part in enumerate(sums):
        with when(lane + at * 32 < dim):
            sums_of[warp_id, lane + at * 32] = part
    ptx.bar.sync(0)
    with loop(ptx.tid.x, dim, warps * 32) as i:
        everyone = range(warps)
        finish(i, *merge(
            acc, [largest_of[w] for w in everyone], [total_of[w] for w in everyone], [sums_of[w, i] for w in everyone]
        ))


def _length(lengths: Any, batch: Any, longest: Any, indirect: bool) -> Any:
    """The number of keys of a sequence, at most as many as the cache has; ``lengths`` is a number or a pointer."""
    return minimum(lengths[batch].bits(u32) if indirect else lengths, longest)


def _name(kind: str, dtype: ScalarType, dim: int, warps: int, indirect: bool) -> str:
    return f"{kind}_{dtype}_hd{dim}_warps{warps}{'_indirect' if indirect else ''}"


@cache
def decode_kernel(dtype: ScalarType, dim: int, warps: int, indirect: bool) -> Kernel:
    acc = f64 if dtype is f64 else f32
    lengths_type = Ptr[s32] if indirect else u32

    @ptx_kernel(name=_name("decode_attention", dtype, dim, warps, indirect), reqntid=warps * 32)
    def kernel(
        q: Ptr[dtype], k: Ptr[dtype], v: Ptr[dtype], lengths: lengths_type, out: Ptr[dtype], longest: u32, group: u32,
        scale: acc,
    ) -> None:
        head, batch = ptx.ctaid.x, ptx.ctaid.y
        mine = ptx.mul.wide.u32(batch * ptx.nctaid.x + head, dim)
        theirs = ptx.mul.wide.u32(batch * (ptx.nctaid.x // group) + head // group, longest * dim)
        result = out + mine

        def finish(i: Any, _top: Any, weight: Any, value: Any) -> None:
            result[i] = (value * inverse(acc, weight)).to(dtype)

        one_query(
            q + mine, k + theirs, v + theirs, reg(u32, 0), _length(lengths, batch, longest, indirect),
            scaled(acc, scale), finish, acc=acc, dim=dim, warps=warps,
        )

    return kernel


@cache
def chunk_kernel(dtype: ScalarType, dim: int, warps: int, indirect: bool, tables: bool = False) -> Kernel:
    """The state of one chunk of keys; with ``tables``, k and v are a pointer for each sequence."""
    acc = f64 if dtype is f64 else f32
    lengths_type = Ptr[s32] if indirect else u32
    cache_type = Ptr[Ptr[dtype]] if tables else Ptr[dtype]
    name = _name("flash_decoding_chunk", dtype, dim, warps, indirect) + ("_tables" if tables else "")

    @ptx_kernel(name=name, reqntid=warps * 32)
    def kernel(
        q: Ptr[dtype], k: cache_type, v: cache_type, lengths: lengths_type, sums: Ptr[acc], states: Ptr[acc],
        longest: u32, group: u32, chunk_size: u32, scale: acc,
    ) -> None:
        chunk, head, batch = ptx.ctaid.x, ptx.ctaid.y, ptx.ctaid.z
        row = batch * ptx.nctaid.y + head
        mine = ptx.mul.wide.u32(row, dim)
        key_head = head // group if tables else batch * (ptx.nctaid.y // group) + head // group
        theirs = ptx.mul.wide.u32(key_head, longest * dim)
        caches: tuple[Any, Any] = k, v
        keys, values = (cache[batch] for cache in caches) if tables else caches
        part = row * ptx.nctaid.x + chunk
        my_sums, my_state = sums + ptx.mul.wide.u32(part, dim), states + ptx.mul.wide.u32(part, 2)
        start = chunk * chunk_size
        stop = minimum(start + chunk_size, _length(lengths, batch, longest, indirect))

        def finish(i: Any, top: Any, weight: Any, value: Any) -> None:
            my_sums[i] = value
            with when(i == 0):
                my_state.store(0, [top, weight])

        one_query(
            q + mine, keys + theirs, values + theirs, start, stop, scaled(acc, scale), finish, acc=acc, dim=dim,
            warps=warps,
        )

    return kernel


@cache
def paged_kernel(dtype: ScalarType, index_type: ScalarType, length_type: ScalarType, dim: int, warps: int) -> Kernel:
    """As the kernel of chunks, with caches ``[pages, page, H, D]`` and a table of the pages of each sequence."""
    acc = f64 if dtype is f64 else f32
    cache_type: Any = Array[dtype, 4]
    table_type: Any = Array[index_type, 2]

    name = _name(f"paged_decode_{index_type}_{length_type}", dtype, dim, warps, False)

    @ptx_kernel(name=name, reqntid=warps * 32)
    def kernel(
        q: Ptr[dtype], k: cache_type, v: cache_type, table: table_type, lengths: Ptr[length_type], sums: Ptr[acc],
        states: Ptr[acc], group: u32, chunk_size: u32, scale: acc,
    ) -> None:
        chunk, head, batch = ptx.ctaid.x, ptx.ctaid.y, ptx.ctaid.z
        row = batch * ptx.nctaid.y + head
        part = row * ptx.nctaid.x + chunk
        my_sums, my_state = sums + ptx.mul.wide.u32(part, dim), states + ptx.mul.wide.u32(part, 2)
        pages, page_size = k.shape[0], k.shape[1]
        length = lengths[batch].to(s64)
        most = ptx.mul.wide.u32(table.shape[1], page_size)
        check(length.bits(u64) <= most, "paged_decode: a length beyond the table")
        start = chunk * chunk_size
        stop = minimum(start + chunk_size, length.to(u32))

        def place(source: Any, key: Any) -> tuple[Any, int]:
            entry = table[batch, key // page_size].to(s64)
            check(entry.bits(u64) < pages.to(u64), "paged_decode: a page beyond the cache")
            return source.at(entry.to(u32), key % page_size, head // group, 0), 0

        def finish(i: Any, top: Any, weight: Any, value: Any) -> None:
            my_sums[i] = value
            with when(i == 0):
                my_state.store(0, [top, weight])

        one_query(
            q + ptx.mul.wide.u32(row, dim), k, v, start, stop, scaled(acc, scale), finish, acc=acc, dim=dim,
            warps=warps, row=place,
        )

    return kernel


@cache
def combine_kernel(dtype: ScalarType, dim: int) -> Kernel:
    acc = f64 if dtype is f64 else f32

    @ptx_kernel(name=f"flash_decoding_combine_{dtype}_hd{dim}")
    def kernel(sums: Ptr[acc], states: Ptr[acc], out: Ptr[dtype], chunks: u32) -> None:
        row = ptx.ctaid.x
        result, my_states = out + ptx.mul.wide.u32(row, dim), states + ptx.mul.wide.u32(row, chunks * 2)
        my_sums = sums + ptx.mul.wide.u32(row, chunks * dim)
        with loop(ptx.tid.x, dim, ptx.ntid.x) as i:
            largest, total, value = reg(acc, -inf), reg(acc, 0.0), reg(acc, 0.0)
            with loop(0, chunks) as chunk:
                top, weight = my_states.load(chunk * 2, width=2)
                merged = merge(acc, [largest, top], [total, weight], [value, my_sums[chunk * dim + i]])
                for state, new in zip((largest, total, value), merged):
                    state.set(new)
            result[i] = (value * inverse(acc, total)).to(dtype)

    return kernel
