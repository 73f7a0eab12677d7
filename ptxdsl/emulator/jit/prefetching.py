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

from ...machine_code.host import second_cache
from ..codegen.handler import Handler, i32, i64, pointer
from ..machine.layout import Block, Entry

__all__ = ["Prefetching", "distance_ahead"]

LINE = 64
"""Bytes of a cache line."""
SECOND_CACHE = 2
"""What LLVM calls it."""
FEW = 4
"""Blocks of a row of the grid, of which the first fetches too much of what they all load to do without."""
AHEAD = 1024
"""Bytes that are stored before a line is there that was asked for."""


class _Wanted(NamedTuple):
    """Where the next addresses are, one for each warp, and the bytes that are loaded from so many behind these."""

    addresses: Any
    offset: int
    nbytes: int


class _Group:
    """What a region fetches where ``needed`` holds.

    ``straddles``: where it is noted whether some addresses do not begin with a cache line.
    """

    def __init__(self, h: Any, needed: Any) -> None:
        self.needed, self.wanted = needed, list[_Wanted]()
        self.straddles = h.alloca(i64, 8)
        h.allocas.store(h.i64(0), self.straddles)


class Prefetching:
    """What is fetched in which regions of a function; a region is known by the barrier that it begins at."""

    def __init__(self, h: Any) -> None:
        self.h = h
        self.groups: dict[tuple[int, int, bool], _Group] = {}
        """By the region, by the array's entry, and by whether each block of a row of the grid has other addresses."""
        self.places: list[tuple[int, ir.Block, ir.Block, Any]] = []
        self.following: dict[Any, Any] = {}
        """Where addresses of the next turns are, by those of this one."""

    def want(self, start: int, hosts: Any, kept: Any, wanted: tuple[int, int], entry: int, moves: bool) -> None:
        """Have the region at ``start`` fetch for each warp what comes two turns behind ``hosts``.

        The addresses of the turn before are ``kept``; ``wanted`` are the offset from there and the bytes.
        """
        h, key = self.h, (start, entry, moves)
        if key not in self.groups:
            self.groups[key] = _Group(h, self._needed(entry, moves))
        group = self.groups[key]
        if hosts not in self.following:
            place = h.alloca(hosts.type, LINE)
            h.allocas.store(ir.Constant(hosts.type, None), place)
            way = h.ir.sub(hosts, h.ir.load(kept))
            h.ir.store(h.ir.add(hosts, h.ir.add(way, way)), place)
            bits = h.ir.and_(h.call(f"llvm.vector.reduce.or.v{hosts.type.count}i64", i64, hosts), h.i64(LINE - 1))
            if group.wanted:
                bits = h.ir.or_(bits, h.ir.load(group.straddles))
            h.ir.store(bits, group.straddles)
            self.following[hosts] = h.allocas.bitcast(place, pointer)
        group.wanted.append(_Wanted(self.following[hosts], *wanted))

    def _needed(self, entry: int, moves: bool) -> Any:
        """Whether an array is larger than what stays in the second cache.

        What all blocks of a row of the grid load alike stays there too, but for the first of them.
        """
        h = self.h
        here, h.ir = h.ir, h.preheader
        place = h.add(h.load(h.block, Block.TABLE, pointer), entry)
        size = Handler.load(h, place, Entry.SIZE, i64, fixed=True)
        needed = h.ir.icmp_unsigned(">", size, h.i64(second_cache() // 2))
        if not moves:
            blocks = Handler.load(h, h.block, Block.NCTAID, i32, fixed=True)
            needed = h.ir.and_(needed, h.ir.icmp_unsigned("<", blocks, h.i32(FEW)))
        h.ir = here
        return needed

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
            for (region, *_), group in self.groups.items():
                if region == start:
                    with h.ir.if_then(group.needed):
                        self._fetch_all(group, number)
            h.ir.branch(on)

    def _fetch_all(self, group: _Group, number: Any) -> None:
        """Fetch what a warp is to fetch of a group; the second lines where there are such."""
        h, apart = self.h, []
        for wanted in group.wanted:
            place = h.add(wanted.addresses, h.ir.mul(h.ir.zext(number, i64), h.i64(8)))
            first = h.ir.inttoptr(Handler.load(h, place, 0, i64), pointer)
            offsets = sorted({*range(0, wanted.nbytes, LINE), wanted.nbytes - 1})
            if len(offsets) > 1 and not (wanted.offset | wanted.nbytes) % LINE:
                apart.append(h.add(first, wanted.offset + offsets.pop()))
            for offset in offsets:
                self._fetch(h.add(first, wanted.offset + offset))
        if apart:
            with h.ir.if_then(h.nonzero(h.ir.load(group.straddles))):
                for at in apart:
                    self._fetch(at)

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
