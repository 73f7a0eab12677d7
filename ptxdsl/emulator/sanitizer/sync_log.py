"""Events that may order threads, as compiled code has noted them: followed when somebody asks for an order.

Most kernels never do. Accesses that are decided by barriers, by strength or by the thread need no vector clock, so what
fences, flags and atomics would have put there is not computed. Python follows the log, in the order of execution,
before it answers a question that the synchronisation graph leaves open, and at an event that it must see at once. At
the end of the launch only what the ``order`` tool might find is left. Where the log is full, what nobody has asked for
is lost: from there on an order that is not found may be there, and the launch ends with a warning. A thread that polls
is noted when it begins to, and when there was a strong write since.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..machine.layout import LANES
from ..machine.allocation import address_of, allocate, number_at
from ..machine.shadow import ALIKE, SYNC_RECORD_OF_ONE, WRITES, SyncRecord
from ..machine.sync_graph import CELL, MOST_VISITS, PLACE_BITS, Place, Release, SyncGraph

__all__ = ["Event", "SyncLog"]

_BYTES = 96 << 20
"""Of all events; memory that no launch has filled is never touched."""
_FEW = 16 << 20
"""Bytes of events that Python follows where there is no room for more."""
_CELLS = 2 << 20
"""What releases and acquires of a launch have room for: a release takes three."""
_GRAPH = SyncGraph.span("NEXT", "UNORDERED")
_CLOCK, _ONE, _ROWS = SyncRecord.span("PC", "MASK"), struct.Struct("<3Q"), struct.Struct(f"<{3 * LANES}Q")


class Event(NamedTuple):
    """An event, as a :class:`SyncRecord` has it; the last three by lane."""

    pc: int
    warp_floor: int
    state: int
    block_floor: int
    barriers: int
    epoch: int
    block: int
    mask: int
    hosts: Any
    before: Any
    stored: Any


class SyncLog:
    """The events of a launch that nobody has followed yet. One launch after the other has the same memory for it."""

    def __init__(self) -> None:
        self._records = np.empty(_BYTES, np.uint8)
        self._start = self._records.ctypes.data
        self.cursor = np.array([self._start, self._start, *[0] * (WRITES // 2)], np.uint64)
        """The address of the next record, that of the end, and how many strong writes there were."""
        self.address = self.cursor.ctypes.data
        self._places = np.zeros(Place.nbytes << PLACE_BITS, np.uint8)
        self._stack, self._cells = np.zeros(MOST_VISITS + 1, np.uint64), np.empty(_CELLS * CELL, np.uint8)
        self._graph, self.graph_address, _ = allocate(SyncGraph.nbytes)
        cells = address_of(self._cells)
        first = cells + -cells % CELL
        end, places, stack = first + _CELLS * CELL - Release.nbytes, address_of(self._places), address_of(self._stack)
        self._fresh = _GRAPH.pack(first, end, places, stack, 0, 0)
        """The graph when a launch begins."""

    def forget(self) -> None:
        """Epochs are numbered anew, so the places of the graph are of no launch."""
        self._places[:] = 0

    def begin(self) -> None:
        """A launch begins, of which there are no events."""
        self.clear()
        self.cursor[1] = self._start + _BYTES - SyncRecord.nbytes
        ctypes.memmove(self.graph_address, self._fresh, _GRAPH.size)

    def suspicious(self) -> bool:
        """Whether a load that counts on an order may have missed a store before it."""
        return bool(number_at(self.graph_address + SyncGraph.UNORDERED, 4))

    def clear(self) -> None:
        """Forget all events that Python has not followed."""
        self.cursor[0] = self._start

    def __bool__(self) -> bool:
        return int(self.cursor[0]) != self._start

    def too_long(self) -> bool:
        """Whether there is no more room, and more to follow than Python can."""
        return int(self.cursor[0]) >= int(self.cursor[1]) and int(self.cursor[0]) - self._start > _FEW

    def take(self) -> Iterator[Event]:
        """The events, in their order; they are gone then."""
        found, at = ctypes.string_at(self._start, int(self.cursor[0]) - self._start), 0
        self.clear()
        while at < len(found):
            pc, *clock = _CLOCK.unpack_from(found, at)
            mask, numbers = clock[-1], at + SyncRecord.HOSTS
            if pc & ALIKE or (pc and not mask & (mask - 1)):
                ones = ([number] * LANES for number in _ONE.unpack_from(found, numbers))
                yield Event._make((pc & ~ALIKE, *clock, *ones))
                at += SYNC_RECORD_OF_ONE
            else:
                rows = _ROWS.unpack_from(found, numbers)
                yield Event._make((pc, *clock, rows[:LANES], rows[LANES : 2 * LANES], rows[2 * LANES :]))
                at += SyncRecord.nbytes
