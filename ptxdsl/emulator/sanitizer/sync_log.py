"""Events that may order threads, as compiled code has noted them: followed when somebody asks for an order.

Most kernels never do. Accesses that are decided by barriers, by strength or by the thread need no vector clock, so what
fences, flags and atomics would have put there is not computed. Python follows the log, in the order of execution,
before it answers a question, at an event that it must see at once, and where the log is full. At the end of the launch
only what the ``order`` tool might find is left. A thread that polls is noted when it begins to, and when there was a
strong write since.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..machine.layout import LANES
from ..machine.allocation import address_of, allocate, number_at
from ..machine.shadow import SyncRecord
from ..machine.sync_graph import CELL, MOST_VISITS, PLACE_BITS, Place, SyncGraph

__all__ = ["SyncLog"]

_MOST = 16384
_CELLS = 1 << 20
_GRAPH = SyncGraph.span("NEXT", "UNORDERED")
_RECORD = np.dtype([
    ("pc", "u8"), ("state", "u8"), ("epoch", "u8"), ("block_floor", "u8"), ("warp_floor", "u8"), ("barriers", "u8"),
    ("block", "u4"), ("mask", "u4"), ("hosts", "u8", LANES), ("before", "u8", LANES), ("stored", "u8", LANES),
])
assert _RECORD.itemsize == SyncRecord.nbytes


class SyncLog:
    """The events of a launch that nobody has followed yet. One launch after the other has the same memory for it."""

    def __init__(self) -> None:
        self._records = np.empty(_MOST, _RECORD)
        self._start = self._records.ctypes.data
        self.cursor = np.array([self._start, self._start + self._records.nbytes, 0], np.uint64)
        """The address of the next record, that of the end, and how many strong writes there were."""
        self.address = self.cursor.ctypes.data
        self._places = np.zeros(Place.nbytes << PLACE_BITS, np.uint8)
        self._stack, self._cells = np.zeros(MOST_VISITS + 1, np.uint64), np.empty(_CELLS * CELL, np.uint8)
        self._graph, self.graph_address, _ = allocate(SyncGraph.nbytes)

    def forget(self) -> None:
        """Epochs are numbered anew, so the places of the graph are of no launch."""
        self._places[:] = 0

    def begin(self) -> None:
        """A launch begins, of which there are no events."""
        self.clear()
        cells = address_of(self._cells)
        first = cells + -cells % CELL
        end = first + (_CELLS - 1) * CELL
        places, stack = address_of(self._places), address_of(self._stack)
        ctypes.memmove(self.graph_address, _GRAPH.pack(first, end, places, stack, 0, 0), _GRAPH.size)

    def suspicious(self) -> bool:
        """Whether a load that counts on an order may have missed a store before it."""
        return bool(number_at(self.graph_address + SyncGraph.UNORDERED, 4))

    def clear(self) -> None:
        """Forget all events that Python has not followed."""
        self.cursor[0] = self._start

    def __bool__(self) -> bool:
        return int(self.cursor[0]) != self._start

    def take(self) -> Iterator[Any]:
        """The events, in their order; they are gone then."""
        found = self._records[: (int(self.cursor[0]) - self._start) // SyncRecord.nbytes].copy()
        self.clear()
        return iter(found)
