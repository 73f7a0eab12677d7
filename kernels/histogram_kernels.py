"""Counting by bins: a block counts in shared memory, in several copies where bins are few, and adds that up at its end.

A bin is guessed by one product and put right by the edges on both sides of it, so that the edges decide, as in numpy.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import (
    Kernel, Ptr, ScalarType, f64, loop, maximum, minimum, ptx, ptx_kernel, reg, s32, s64, select, shared, u32, u64,
    when,
)

from . import storage

__all__ = ["SHARED_BINS", "THREADS", "count_kernel", "zero_kernel"]

THREADS = 256
_IN_FLIGHT = 2
"""Loads of a thread: an element takes so many instructions that more of them would only take registers."""
SHARED_BINS = 4096
"""As many bins are counted in shared memory; more are in global memory at once."""


def _uniform(value: Any, edges: Any, bins: Any) -> tuple[Any, Any]:
    """The bin of a number between edges that are equally far apart, and whether there is one."""
    low, high = edges[0], edges[bins]
    inside = (value >= low) & (value <= high)
    guess = ptx.cvt.rzi.s32.f64(ptx.div.rn.f64((value - low) * bins.to(f64), high - low))
    at = reg(u32, maximum(minimum(guess, (bins - 1).bits(s32)), 0).bits(u32))
    at -= (inside & (value < edges[at])).to(u32)
    at += (inside & (value >= edges[at + 1]) & (at < bins - 1)).to(u32)
    return at, inside


def _searched(value: Any, edges: Any, bins: Any) -> tuple[Any, Any]:
    """The same between any edges."""
    low, high = reg(u32, 0), reg(u32, bins)  # edges[low] <= value < edges[high]
    with loop(32 - ptx.clz.b32(bins)):
        middle = (low + high) >> 1
        right = value >= edges[middle]
        low.set(select(right, middle, low))
        high.set(select(right, high, middle))
    return minimum(low, bins - 1), (value >= edges[0]) & (value <= edges[bins])


@cache
def count_kernel(kind: str, dtype: ScalarType, weight: ScalarType | None, in_shared: bool) -> Kernel:
    """Add to ``counts`` the elements (or their weights) of each bin; ``kind`` is uniform, searched or integer."""
    state = u32 if weight is None else f64
    total = u64 if weight is None else f64
    count_type, weight_type = s64 if weight is None else f64, weight or storage.in_memory(dtype)
    stored = storage.in_memory(dtype)
    label = f"histogram_{kind}_{dtype}_{weight or 'counts'}_{'shared' if in_shared else 'global'}"

    @ptx_kernel(name=label, reqntid=THREADS)
    def kernel(
        x: Ptr[stored], weights: Ptr[weight_type], edges: Ptr[f64], counts: Ptr[count_type], n: u64, chunk: u32,
        bins: u32,
    ) -> None:
        mine = shared(state, SHARED_BINS) if in_shared else None
        copies = minimum(SHARED_BINS // bins, THREADS // 32) if in_shared else None
        if mine is not None:
            with loop(ptx.tid.x, bins * copies, THREADS) as i:
                mine[i] = 0 if state is u32 else 0.0
            ptx.bar.sync(0)
        own = (ptx.tid.x >> 5) % copies * bins if mine is not None else None
        start = ptx.mul.wide.u32(ptx.ctaid.x, chunk)

        def add(element: Any, index: Any) -> None:
            if kind == "integer":
                at, inside = element.to(u32), element.to(s64).bits(u64) < bins.to(u64)
            else:
                at, inside = (_uniform if kind == "uniform" else _searched)(element.to(f64), edges, bins)
            with when(inside):
                what: Any = 1
                if weight is not None:
                    what = storage.widened((weights + start)[index], weight).to(f64)
                if mine is not None:
                    ptx[f"red.shared.add.{state}"](mine + (own + at), what)
                else:
                    ptx[f"red.global.add.{total}"](counts + at, what)

        def several(elements: list[Any], index: Any) -> None:
            for number, element in enumerate(elements):
                add(element, index + number)

        count = minimum(n - start, chunk.to(u64)).to(u32)
        storage.along(x + start, count, dtype, ptx.tid.x, THREADS, add, several, _IN_FLIGHT)
        if mine is not None:
            ptx.bar.sync(0)
            with loop(ptx.tid.x, bins, THREADS) as i:
                sum_ = reg(state, mine[i])
                with loop(1, copies) as copy:
                    sum_ += mine[copy * bins + i]
                with when(sum_ != 0 if state is u32 else sum_ != 0.0):
                    ptx[f"red.global.add.{total}"](counts + i, sum_.to(total))

    return kernel


@cache
def zero_kernel(kind: ScalarType) -> Kernel:
    """Zeros of 64 bits."""

    @ptx_kernel(name=f"histogram_zero_{kind}", reqntid=THREADS)
    def kernel(counts: Ptr[kind], bins: u32) -> None:
        i = ptx.ctaid.x * THREADS + ptx.tid.x
        with when(i < bins):
            counts[i] = 0 if kind is s64 else 0.0

    return kernel
