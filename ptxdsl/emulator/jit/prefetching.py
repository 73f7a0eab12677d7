"""Software prefetching: what a loop over tiles loads next is fetched while the warps compute with what is there.

A tile of a matrix is a line or two of each of many rows, which no CPU foresees. Behind a barrier each warp computes for
long and loads little: there it asks for the lines that it will load in the loop's turn after next, if its addresses go
on as far as since the last one: in the time of one turn not all come that lie in memory or the third cache. Asked for
all at once they would only wait for each other. They go to the second cache: rows that lie a power of two apart all
fall on the same few places of the first, and would evict each other.

An address may be none, or not be loaded after all: a prefetch never faults. Only loads whose addresses are known before
the loop over the warps are asked for (:mod:`.block_passes`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from ..codegen.handler import Handler, i64, pointer

__all__ = ["Prefetching", "distance_ahead"]

LINE = 64
"""Bytes of a cache line."""
SECOND_CACHE = 2
"""What LLVM calls it."""
AHEAD = 1024
"""Bytes that are stored before a line is there that was asked for."""


class _Wanted(NamedTuple):
    """Where the next addresses are, one for each warp, and the bytes that are loaded from so many behind these."""

    addresses: Any
    offset: int
    nbytes: int
    straddles: Any
    """Where it is noted whether some of them do not begin with a cache line."""


class Prefetching:
    """What is fetched in which regions of a function; a region is known by the barrier that it begins at."""

    def __init__(self, h: Any) -> None:
        self.h = h
        self.wanted: dict[int, list[_Wanted]] = {}
        self.places: list[tuple[int, ir.Block, ir.Block, Any]] = []
        self.following: dict[Any, tuple[Any, Any]] = {}
        """Where addresses of the next turns are, by those of this one, and whether they are within cache lines."""

    def want(self, start: int, hosts: Any, kept: Any, offset: int, nbytes: int) -> None:
        """Have the region at ``start`` fetch for each warp what comes two turns behind ``hosts``.

        The addresses of the turn before are ``kept``.
        """
        h = self.h
        if hosts not in self.following:
            place, straddles = h.alloca(hosts.type, LINE), h.alloca(i64, 8)
            h.allocas.store(ir.Constant(hosts.type, None), place)
            h.allocas.store(h.i64(0), straddles)
            way = h.ir.sub(hosts, h.ir.load(kept))
            h.ir.store(h.ir.add(hosts, h.ir.add(way, way)), place)
            bits = h.call(f"llvm.vector.reduce.or.v{hosts.type.count}i64", i64, hosts)
            h.ir.store(h.ir.and_(bits, h.i64(LINE - 1)), straddles)
            self.following[hosts] = h.allocas.bitcast(place, pointer), straddles
        place, straddles = self.following[hosts]
        self.wanted.setdefault(start, []).append(_Wanted(place, offset, nbytes, straddles))

    def begin_warp(self, start: int) -> None:
        """Here a warp begins with a region: what it is to fetch may become known later."""
        h = self.h
        block, on = h.block_named("fetch"), h.block_named("fetched")
        h.ir.branch(block)
        self.places.append((start, block, on, h.number))
        h.ir.position_at_end(on)

    def emit(self) -> None:
        """Emit the prefetches, once all regions are there."""
        h = self.h
        for start, block, on, number in self.places:
            h.ir.position_at_end(block)
            apart = list[tuple[Any, Any]]()
            for wanted in self.wanted.get(start, ()):
                place = h.add(wanted.addresses, h.ir.mul(h.ir.zext(number, i64), h.i64(8)))
                first = h.ir.inttoptr(Handler.load(h, place, 0, i64), pointer)
                offsets = sorted({*range(0, wanted.nbytes, LINE), wanted.nbytes - 1})
                if len(offsets) > 1 and not (wanted.offset | wanted.nbytes) % LINE:
                    apart.append((wanted.straddles, h.add(first, wanted.offset + offsets.pop())))
                for offset in offsets:
                    self._fetch(h.add(first, wanted.offset + offset))
            for straddles in dict.fromkeys(each for each, _ in apart):
                with h.ir.if_then(h.nonzero(h.ir.load(straddles))):
                    for at in (at for each, at in apart if each is straddles):
                        self._fetch(at)
            h.ir.branch(on)

    def _fetch(self, place: Any) -> None:
        h = self.h
        h.call("llvm.prefetch.p0", ir.VoidType(), place, h.i32(0), h.i32(SECOND_CACHE), h.i32(1))


def distance_ahead(h: Any, host: Any, nbytes: int) -> Any:
    """How far in front of its stores a loop over blocks, each of which stores so many bytes from ``host`` on, fetches.

    Before a line is stored to it is fetched. CPUs foresee loads better than stores, and neither in the next page. Where
    blocks lie side by side what is stored next does too; else it lies as much further as since the block before.
    """
    before = h.alloca(i64, 8)
    h.allocas.store(h.i64(0), before)
    start = h.ir.load(before)
    h.ir.store(host, before)
    way = h.ir.sub(host, start)
    further = h.ir.mul(way, h.i64(-(-AHEAD // nbytes)))
    further = h.ir.select(h.zero(start), h.i64(0), further)
    return h.ir.select(h.ir.icmp_signed("==", way, h.i64(nbytes)), h.i64(AHEAD), further)
