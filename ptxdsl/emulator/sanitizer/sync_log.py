"""Events that may order threads, as compiled code has noted them: followed when somebody asks for an order.

Most kernels never do. Accesses that are decided by barriers, by strength or by the thread need no vector clock, so what
fences, flags and atomics would have put there is not computed. Python follows the log, in the order of execution,
before it answers a question, at an event that it must see at once, and where the log is full. At the end of the launch
only what the ``order`` tool might find is left. A thread that polls is noted when it begins to, and when there was a
strong write since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..machine.layout import LANES
from ..machine.shadow import EPOCH_SHIFT, LANE, WARP_SHIFT, SyncRecord

__all__ = ["SyncLog", "unordered"]

_MOST = 16384
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

    def clear(self) -> None:
        """Forget all events."""
        self.cursor[0] = self._start

    def __bool__(self) -> bool:
        return int(self.cursor[0]) != self._start

    @property
    def records(self) -> np.ndarray[Any, Any]:
        """The events, in their order."""
        return self._records[: (int(self.cursor[0]) - self._start) // SyncRecord.nbytes]

    def take(self) -> Iterator[Any]:
        """The events, in their order; they are gone then."""
        found = self.records.copy()
        self.clear()
        return iter(found)


def unordered(records: np.ndarray[Any, Any], writes: np.ndarray[Any, Any], reads: np.ndarray[Any, Any]) -> bool:
    """Whether barriers, or the thread itself, leave one of the reads unordered with the last write before it."""
    chosen = np.flatnonzero(writes | reads)
    records, writes = records[chosen], writes[chosen]
    active = (records["mask"][:, None] >> np.arange(LANES, dtype=np.uint32) & 1).astype(bool)
    rows, lanes = np.nonzero(active)
    hosts, is_write = records["hosts"][active], writes[rows]
    order = np.argsort(hosts, kind="stable")
    hosts, is_write, rows, lanes = hosts[order], is_write[order], rows[order], lanes[order]
    numbers = np.arange(len(hosts))
    first = np.r_[True, hosts[1:] != hosts[:-1]]
    start = np.maximum.accumulate(np.where(first, numbers, 0))
    last = np.maximum.accumulate(np.where(is_write, numbers, -1))
    pairs = ~is_write & (last >= start)
    reader, writer = rows[pairs], rows[last[pairs]]
    warps = records["epoch"] >> WARP_SHIFT & LANE
    same_block = records["block"][reader] == records["block"][writer]
    same_warp = warps[reader] == warps[writer]
    epoch = records["epoch"][writer] >> EPOCH_SHIFT
    before = epoch < records["block_floor"][reader] >> EPOCH_SHIFT
    before |= same_warp & (epoch < records["warp_floor"][reader] >> EPOCH_SHIFT)
    before |= same_warp & (lanes[pairs] == lanes[last[pairs]])
    return not bool((same_block & before).all())
