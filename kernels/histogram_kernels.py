"""Counting by bins: a block counts in shared memory, in several copies where bins are few, and adds that up at its end.

Of at most 256 bins each lane of a warp has counters of its own, in a bank of its own: whatever the data are, the lanes
of a warp never meet in a bank. A bin is guessed by one product; where that lies next to an edge, the edges on both
sides of it decide, as in numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from .. import (
    Kernel, Ptr, ScalarType, f64, loop, maximum, minimum, ptx, ptx_kernel, reg, s32, s64, select, shared, u8, u32,
    u64, when,
)
from .. import warp

from . import storage

__all__ = ["RESIDENT", "THREADS", "count_kernel", "finder", "place_of", "zero_kernel"]

THREADS = 256
RESIDENT = 4
"""Blocks of a multiprocessor; for more of them ptxas would spill."""
_IN_FLIGHT = 2
"""Loads of a thread: an element takes so many instructions that more of them would only take registers."""
_ROUNDINGS = 2.0**-50
"""Some roundings of float64, relative."""
_SHARED_BYTES = 1 << 15
SHARED_BINS = 4096
"""As many bins are counted in shared memory; more are in global memory at once."""


Finder = Callable[[Any], tuple[Any, Any]]
"""The bin of an element, and whether there is one."""


def finder(kind: str, edges: Any, bins: Any) -> Finder:
    """That of a kind: ``uniform`` edges are equally far apart, others are ``searched``; an ``integer`` is its own bin.

    So are the ``bits`` of one of 8 bits, which all have bins: there it is None whether there is one.
    """
    if kind == "bits":
        return lambda element: (element.bits(u32) & 0xFF, None)
    if kind == "integer":
        return lambda element: (element.to(u32), element.to(s64).bits(u64) < bins.to(u64))
    found = (_uniform if kind == "uniform" else _searched)(edges, bins)
    return lambda element: found(element.to(f64))


def _uniform(edges: Any, bins: Any) -> Finder:
    low, high = edges[0], edges[bins]
    factor = ptx.div.rn.f64(bins.to(f64), high - low)
    # How far off the place may be: some roundings of its own, and one of the edge, of low's or high's magnitude.
    doubt = ptx.fma.rn.f64(maximum(ptx.abs.f64(low), ptx.abs.f64(high)) * _ROUNDINGS, factor, bins.to(f64) * _ROUNDINGS)

    def found(value: Any) -> tuple[Any, Any]:
        inside = (value >= low) & (value <= high)
        place = (value - low) * factor
        guess = ptx.cvt.rzi.s32.f64(place)
        at = reg(u32, maximum(minimum(guess, (bins - 1).bits(s32)), 0).bits(u32))
        rest = place - guess.to(f64)
        with when(inside & ~((rest > doubt) & (rest < 1.0 - doubt))):
            at -= (value < edges[at]).to(u32)
            at += ((value >= edges[at + 1]) & (at < bins - 1)).to(u32)
        return at, inside

    return found


def _searched(edges: Any, bins: Any) -> Finder:
    first, last = edges[0], edges[bins]

    def found(value: Any) -> tuple[Any, Any]:
        low, high = reg(u32, 0), reg(u32, bins)  # edges[low] <= value < edges[high]
        with loop(32 - ptx.clz.b32(bins)):
            middle = (low + high) >> 1
            right = value >= edges[middle]
            low.set(select(right, middle, low))
            high.set(select(right, high, middle))
        return minimum(low, bins - 1), (value >= first) & (value <= last)

    return found


def place_of(bins: int, weight: ScalarType | None) -> str:
    """Where a block counts: each lane by itself, each warp (or some together) by itself, or all in global memory."""
    if bins * 32 <= _SHARED_BYTES // (4 if weight is None else 8):
        return "lanes"
    return "warps" if bins <= SHARED_BINS else "global"


@cache
def count_kernel(kind: str, dtype: ScalarType, weight: ScalarType | None, place: str) -> Kernel:
    """Add to ``counts`` the elements (or their weights) of each bin; ``kind`` is that of :func:`finder`."""
    state = u32 if weight is None else f64
    total = u64 if weight is None else f64
    count_type, weight_type = s64 if weight is None else f64, weight or storage.in_memory(dtype)
    stored = storage.in_memory(dtype)
    label = f"histogram_{kind}_{dtype}_{weight or 'counts'}_{place}"

    @ptx_kernel(name=label, reqntid=THREADS, minnctapersm=RESIDENT)
    def kernel(
        x: Ptr[stored], weights: Ptr[weight_type], edges: Ptr[f64], counts: Ptr[count_type], n: u64, chunk: u32,
        bins: u32,
    ) -> None:
        mine = _Counters(state, place, bins) if place != "global" else None
        start, bin_of = ptx.mul.wide.u32(ptx.ctaid.x, chunk), finder(kind, edges, bins)

        def count(at: Any, index: Any) -> None:
            what: Any = 1
            if weight is not None:
                what = storage.widened((weights + start)[index], weight).to(f64)
            if mine is not None:
                ptx[f"red.shared.add.{state}"](mine.at(at), what)
            else:
                ptx[f"red.global.add.{total}"](counts + at, what)

        def add(element: Any, index: Any) -> None:
            at, inside = bin_of(element)
            if inside is None:
                count(at, index)
            else:
                with when(inside):
                    count(at, index)

        def several(elements: list[Any], index: Any) -> None:
            for number, element in enumerate(elements):
                add(element, index + number)

        held = minimum(n - start, chunk.to(u64)).to(u32)
        storage.along(x + start, held, dtype, ptx.tid.x, THREADS, add, several, _IN_FLIGHT)
        if mine is not None:
            mine.add_to(counts)

    return kernel


class _Counters:
    """Counters in shared memory: of each bin one for each lane, in a bank of its own; or one for a few warps."""

    def __init__(self, state: ScalarType, place: str, bins: Any) -> None:
        self.state, self.bins, self.by_lanes = state, bins, place == "lanes"
        self.counters = shared(state, _SHARED_BYTES // state.bytes if self.by_lanes else SHARED_BINS)
        self.copies: Any = 32 if self.by_lanes else minimum(SHARED_BINS // bins, THREADS // 32)
        with loop(ptx.tid.x, bins * self.copies, THREADS) as i:
            self.counters[i] = 0 if state is u32 else 0.0
        ptx.bar.sync(0)
        first = ptx.tid.x & 31 if self.by_lanes else (ptx.tid.x >> 5) % self.copies * bins
        self.own = self.counters.at(first).cast(u8)

    def at(self, number: Any) -> Any:
        """This thread's counter of a bin."""
        return (self.own + number * (self.state.bytes * (32 if self.by_lanes else 1))).cast(self.state)

    def add_to(self, counts: Any) -> None:
        """Add up what all threads have counted, to the counts in global memory."""
        ptx.bar.sync(0)
        lane, total = ptx.tid.x & 31, u64 if self.state is u32 else f64
        if self.by_lanes:
            with loop(ptx.tid.x >> 5, self.bins, THREADS // 32) as number:
                found = warp.reduce_sum(self.counters[number * 32 + lane])
                with when((lane == 0) & (found != (0 if self.state is u32 else 0.0))):
                    ptx[f"red.global.add.{total}"](counts + number, found.to(total))
            return
        with loop(ptx.tid.x, self.bins, THREADS) as i:
            sum_ = reg(self.state, self.counters[i])
            with loop(1, self.copies) as copy:
                sum_ += self.counters[copy * self.bins + i]
            with when(sum_ != (0 if self.state is u32 else 0.0)):
                ptx[f"red.global.add.{total}"](counts + i, sum_.to(total))


@cache
def zero_kernel(kind: ScalarType) -> Kernel:
    """Zeros of 64 bits."""

    @ptx_kernel(name=f"histogram_zero_{kind}", reqntid=THREADS)
    def kernel(counts: Ptr[kind], bins: u32) -> None:
        i = ptx.ctaid.x * THREADS + ptx.tid.x
        with when(i < bins):
            counts[i] = 0 if kind is s64 else 0.0

    return kernel
