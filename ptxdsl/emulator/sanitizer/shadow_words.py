"""The shadow words of a launch: which memory has some, and what they say of arrays that the host left unwritten."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...launch import Buffer, TracksWrites, buffers_of
from ..machine.allocation import address_of
from ..machine.shadow import UNWRITTEN, WORD_SHIFT, Kind, Plane
from ..runtime.block_state import LaunchState
from .accesses import granularity
from .regions import Region, global_spans
from .shadow_store import GROUPED_LAYOUT, Marked, Store, mark

__all__ = ["WORD_BYTES", "ShadowWords"]

WORD_BYTES = 1 << WORD_SHIFT
LINE = 64
"""Bytes of a cache line: checks compare so many of shadow words at once."""


class ShadowWords:
    """``init``: the words also say what has been written, from the memory that the host left unwritten on.

    ``copies`` are the rows that a warp has to follow asynchronous copies (:class:`CopyClock`), 0 for not at all.
    """

    store: Store

    def __init__(self, launch: LaunchState, init: bool) -> None:
        self.launch, self.init = launch, init
        self.granule, copies, self.orders, self.uses_proxies, self.proxies = granularity(launch.spaces)
        self.copies = copies if init else 0
        self.arrays: list[tuple[np.ndarray[Any, Any], int]] = []
        self.kept: list[Any] = []
        self.regions: list[Region] = []
        self.unwritten_buffers = self._unwritten_buffers() if init else []
        self.heap = init and any(guarded is not None and guarded.heap for guarded in launch.ranges)
        self.has_unwritten = self.heap or bool(self.unwritten_buffers)
        self.spans, self.overlap = global_spans(launch, self.granule)
        """As :func:`.global_spans` has them."""

    def _region(self, low: int, nbytes: int, kind: int, owner: int = 0) -> Region:
        stride = self._stride(nbytes)
        planes = len(Plane) if kind == Kind.SHARED and self.copies else Plane.COPY
        layout = planes + GROUPED_LAYOUT * (self.uses_proxies and kind == Kind.GLOBAL)
        array = self.store.take(planes * stride + 16, layout)
        self.arrays.append((array, layout))
        address = address_of(array)
        return Region(low, nbytes, address + -address % LINE, stride * WORD_BYTES, kind, owner)

    def _stride(self, nbytes: int) -> int:
        granules = (nbytes >> self.granule) + 9
        return granules + (24 - granules % 16)  # odd cache lines between planes, so that they do not evict each other

    def _kept_region(self, low: int, nbytes: int, owner: TracksWrites) -> Region:
        """The region of an array that is apart from all others, with the words of the last launch if it has them."""
        marked, stride = owner.unwritten, self._stride(nbytes)
        fits = isinstance(marked, Marked) and marked.granule == self.granule and marked.low == low
        if not fits or marked.resets != self.store.resets:
            words = np.zeros(Plane.COPY * stride + 16, np.uint64)
            mask = marked.mask() if isinstance(marked, Marked) else marked
            mark(words, mask, nbytes, self.granule)
            marked = owner.unwritten = Marked(words, low, self.granule, nbytes, self.store.resets)
        self.kept.append(marked)
        return Region(low, nbytes, marked.words.ctypes.data, stride * WORD_BYTES, Kind.GLOBAL)

    def _unwritten_buffers(self) -> list[tuple[Buffer, TracksWrites]]:
        buffers = buffers_of(self.launch.arguments)
        tracked = [(buffer, buffer.owner) for buffer in buffers if isinstance(buffer.owner, TracksWrites)]
        return [(buffer, owner) for buffer, owner in tracked if owner.unwritten is not None]

    def _add_global_memory(self) -> None:
        """Add a region for each range of global memory."""
        alone = {(b.address, b.nbytes): owner for b, owner in self.unwritten_buffers if self._can_keep(owner)}
        apart = set()
        for low, high, members in self.spans:
            owner = alone.get((low, high - low)) if members == 1 else None
            if owner is None:
                self.regions.append(self._region(low, high - low, Kind.GLOBAL))
            else:
                apart.add((low, high - low))
                self.regions.append(self._kept_region(low, high - low, owner))
        self.unwritten_buffers = [
            (buffer, owner) for buffer, owner in self.unwritten_buffers if (buffer.address, buffer.nbytes) not in apart
        ]
        for buffer, owner in self.unwritten_buffers:
            unwritten = owner.unwritten.mask() if isinstance(owner.unwritten, Marked) else owner.unwritten
            lead = self._lead(buffer)
            if lead and unwritten is not True:
                unwritten = np.concatenate([np.zeros(lead, bool), unwritten])
            mark(self._last_writers(buffer), unwritten, lead + buffer.nbytes, self.granule)

    def _can_keep(self, owner: TracksWrites) -> bool:
        """Whether an array can keep its words: it is no part of one, and they say of each byte what is known."""
        marked = owner.unwritten
        if owner.is_part or marked is True or (isinstance(marked, Marked) and marked.granule == self.granule):
            return not owner.is_part
        mask = marked.mask() if isinstance(marked, Marked) else marked
        starts = np.arange(0, len(mask), 1 << self.granule)
        return bool((np.logical_or.reduceat(mask, starts) == np.logical_and.reduceat(mask, starts)).all())

    def _lead(self, buffer: Buffer) -> int:
        """The bytes of the first granule that are before an array, which may be a part of another one."""
        return buffer.address & (1 << self.granule) - 1

    def words(self, region: Region, host: int, granules: int, plane: int = Plane.WRITER) -> np.ndarray[Any, Any]:
        """The shadow words in a plane of so many granules from a host address on."""
        start = region.words + plane * region.stride + (host - region.low >> self.granule) * WORD_BYTES
        return np.ctypeslib.as_array((ctypes.c_uint64 * granules).from_address(start))

    def _last_writers(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        region = next(region for region in self.regions if region.holds(buffer.address))
        nbytes = self._lead(buffer) + buffer.nbytes
        return self.words(region, buffer.address, (nbytes + (1 << self.granule) - 1) >> self.granule)

    def allocated(self, address: int, nbytes: int) -> None:
        """Clear the words of memory that ``malloc`` has given."""
        region = next(region for region in self.regions if region.holds(address))
        self._clear(region, address, -(-nbytes >> self.granule), self.has_unwritten)

    def _clear(self, region: Region, host: int, granules: int, unwritten: bool) -> None:
        for plane in (Plane.WRITER, Plane.READER, Plane.EARLIER_READER):
            self.words(region, host, granules, plane)[:] = UNWRITTEN if plane is Plane.WRITER and unwritten else 0

    def _keep_unwritten(self) -> None:
        """Tell arrays what of them is still unwritten."""
        for buffer, owner in self.unwritten_buffers:
            lead, found = self._lead(buffer), self._last_writers(buffer) == UNWRITTEN
            unwritten = np.repeat(found, 1 << self.granule)[lead : lead + buffer.nbytes]
            before = owner.unwritten
            if before is not None and before is not True:  # of a granule that was written in part it says all
                unwritten = unwritten & (before.mask() if isinstance(before, Marked) else before)
            owner.unwritten = unwritten if unwritten.any() else None
