"""Which elements are wanted, packed side by side in one pass: blocks count theirs and look back, as in a scan.

A warp goes over neighbouring elements 32 at a time, and votes; where in the tile an element goes is kept in shared
memory, so that what is stored lies side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .. import (
    Kernel, Ptr, ScalarType, loop, minimum, ptx, ptx_kernel, reg, s64, select, shared, u8, u32, u64, when,
)
from .. import warp

from . import storage
from .functions import asked
from .scan_kernels import COMPLETE, PARTIAL, LookBack, Sums, next_tile
from .sort_kernels import POINTED

__all__ = ["EXAMPLE", "THREADS", "TILE", "lengths_kernel", "pack_kernel", "runs_kernel"]

THREADS = 256
_WARPS, _STEPS = THREADS // 32, 16
TILE = THREADS * _STEPS
EXAMPLE = "`lambda v: v > 0`"
"""Of a function that says which elements are wanted."""
Wanted = Callable[[Any], Any]
"""Whether an element is wanted, by its place (u64)."""


class _Packing:
    """The places of the wanted elements of a tile that begins at ``start``, and how many are wanted before it."""

    def __init__(self, words: Any, n: Any, wanted: Wanted) -> None:
        self.tile = next_tile(words)
        self.start = ptx.mul.wide.u32(self.tile, TILE)
        self.held = minimum(n - self.start, TILE).to(u32)
        self.places, self.bases = shared(u32, TILE), shared(u32, 2)
        self.ranks: list[tuple[Any, Any, Any]] = []
        """Of this thread's elements their places in the tile, how many are wanted before them, and whether they are."""
        self._pack(LookBack(Sums("add", u32, False), words + 1, None), wanted)

    def _pack(self, tiles: LookBack, wanted: Wanted) -> None:
        lane, number = ptx.laneid, ptx.tid.x >> 5
        mine, counts = number * (32 * _STEPS) + lane, shared(u32, _WARPS)
        votes, running = [], reg(u32, 0)
        for step in range(_STEPS):
            mark, at = reg(u32, 0), mine + 32 * step
            with when(at < self.held):
                mark.set(wanted(self.start + at.to(u64)).to(u32))
            votes.append(ptx.vote.sync.ballot.b32(mark != 0, warp.MASK))
        for vote in votes:
            running += ptx.popc.b32(vote)
        with when(lane == 0):
            counts[number] = running
        ptx.bar.sync(0)
        before, total = reg(u32, 0), reg(u32, 0)
        for other in range(_WARPS):
            before += select(number > other, counts[other], 0)
            total += counts[other]
        with when(number == 0):
            self._look_back(tiles, total)
        for step, vote in enumerate(votes):
            rank, mark = before + ptx.popc.b32(vote & ptx.lanemask_lt), vote >> lane & 1
            self.ranks.append((mine + 32 * step, rank, mark))
            with when(mark != 0):
                self.places[rank] = mine + 32 * step
            before += ptx.popc.b32(vote)
        ptx.bar.sync(0)

    def _look_back(self, tiles: LookBack, total: Any) -> None:
        earlier = [reg(u32, 0)]
        with when(self.tile != 0):
            with when(ptx.laneid == 0):
                tiles.publish(self.tile, PARTIAL, [total])
            ptx.bar.warp.sync(warp.MASK)
            tiles.before(self.tile, reg(u32, 0), earlier)
        with when(ptx.laneid == 0):
            tiles.publish(self.tile, COMPLETE, [earlier[0] + total])
            self.bases[0] = earlier[0]
            self.bases[1] = total

    def store(self, put: Callable[[Any, Any], None], count: Any, last: Any) -> None:
        """Call ``put(number, place)`` for each wanted element; the block of the last tile stores how many are."""
        base, total = self.bases[0], self.bases[1]
        with loop(ptx.tid.x, total, THREADS) as i:
            put(base + i, self.start + self.places[i].to(u64))
        if count is not None:
            with when((ptx.tid.x == 0) & (self.tile + 1 == last)):
                count[0] = (base + total).to(s64)


def _wanted(which: str | Wanted, x: Any, mask: Any, dtype: ScalarType) -> Wanted:
    """By a mask, by not being 0, by being unlike the element before, or by a function of an element."""
    def element(at: Any) -> Any:
        return storage.widened(x[at], dtype)

    if which == "run":
        def begins(at: Any) -> Any:
            here, before = element(at), element(select(at == 0, at, at - 1))
            differs = here != before
            if storage.working(dtype).is_float:  # NaNs are alike
                differs = ptx[f"setp.neu.{here.type}"](here, before) & ((here == here) | (before == before))
            return (at == 0) | differs

        return begins
    if callable(which):
        return lambda at: asked("predicate", which, element(at), EXAMPLE)
    return (lambda at: mask[at] != 0) if which == "mask" else (lambda at: mask[at] == 0)


@lru_cache(256)
def pack_kernel(which: str | Wanted, dtype: ScalarType, places: bool) -> Kernel:
    """Store the wanted elements, or their places, side by side, and how many there are.

    ``which`` is ``"mask"``, ``"run"``, a function of an element that gives a predicate, or ``"unmasked"``: what the
    mask does not take, behind as many elements as ``count`` says, which stays as it is.
    """
    masked = which in ("mask", "unmasked")
    stored = storage.in_memory(dtype) if not masked else POINTED[8 * dtype.bytes]
    mask_type, out_type = u8 if masked else stored, s64 if places else stored
    label = f"select_{'where' if callable(which) else which}_{'places' if places else dtype}"
    if not masked and places:
        label = f"{label}_{dtype}"

    @ptx_kernel(name=label, reqntid=THREADS)
    def kernel(
        x: Ptr[stored], mask: Ptr[mask_type], out: Ptr[out_type], words: Ptr[u64], count: Ptr[s64], n: u64, tiles: u32
    ) -> None:
        packing = _Packing(words, n, _wanted(which, x, mask, dtype))
        first = count[0].bits(u64) if which == "unmasked" else None

        def put(number: Any, place: Any) -> None:
            at = number.to(u64) if first is None else first + number.to(u64)
            if places:
                out[at] = place.bits(s64)
            elif masked:
                kind = storage.UNSIGNED[8 * dtype.bytes]
                out.cast(kind)[at] = x.cast(kind)[place]
            else:
                out[at] = x[place]

        packing.store(put, count if first is None else None, tiles)

    return kernel


@lru_cache(256)
def runs_kernel(dtype: ScalarType, inverse: bool) -> Kernel:
    """Store the first element of each run, and where the run begins; with ``inverse`` for each element its run."""
    stored = storage.in_memory(dtype)

    @ptx_kernel(name=f"select_runs_{'inverse_' * inverse}{dtype}", reqntid=THREADS)
    def kernel(
        x: Ptr[stored], out: Ptr[stored], starts: Ptr[s64], runs: Ptr[s64], words: Ptr[u64], count: Ptr[s64], n: u64,
        tiles: u32,
    ) -> None:
        packing = _Packing(words, n, _wanted("run", x, None, dtype))

        def put(number: Any, place: Any) -> None:
            out[number] = x[place]
            starts[number] = place.bits(s64)

        packing.store(put, count, tiles)
        if not inverse:
            return
        before = packing.bases[0] - 1  # the first element begins a run
        for at, rank, mark in packing.ranks:
            with when(at < packing.held):
                runs[packing.start + at.to(u64)] = (before + rank + mark).to(s64)

    return kernel


@lru_cache
def lengths_kernel() -> Kernel:
    """lengths[i] = starts[i + 1] - starts[i], of ``count[0]`` parts of n."""

    @ptx_kernel(name="select_lengths", reqntid=THREADS)
    def kernel(starts: Ptr[s64], count: Ptr[s64], lengths: Ptr[s64], n: s64) -> None:
        i, runs = (ptx.ctaid.x * THREADS + ptx.tid.x).to(s64), count[0]
        with when(i < runs):
            end = reg(s64, n)
            with when(i + 1 < runs):
                end.set(starts[i + 1])
            lengths[i] = end - starts[i]

    return kernel
