"""Asynchronous copies to shared memory (``cp.async``) that may be incomplete, while a kernel is executed for a block.

A thread puts its copies in a group when it commits, and has those of a group complete when it has waited for it. What
one thread has waited for, the others find there from the next barrier of the block on: until then a copy is pending.
Threads may commit and wait apart from each other as long as it is known which do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PendingCopies"]


@dataclass
class _Copy:
    """A copy of some threads: where it writes, in which of its groups each thread counts it, who has not waited yet,
    and who had not at the last barrier.
    """

    array: str
    starts: Any
    nbytes: int
    groups: Any
    open: Any
    pending: Any


class PendingCopies:
    """The copies of all threads of a block, ``threads`` of them."""

    def __init__(self, threads: int) -> None:
        self.committed = np.zeros(threads, np.int64)
        """The groups that each thread has committed."""
        self.copies: list[_Copy] = []
        self.lost = False
        """Whether it is no longer known which copies are complete."""
        self._bytes: dict[str, Any] = {}

    def lose(self) -> None:
        """Take all memory that copies write to be incomplete for ever."""
        self.lost = True

    def begin(self, array: str, starts: Any, nbytes: int, size: int, mask: Any) -> None:
        """Threads begin a copy of so many bytes to an array of ``size``."""
        starts = np.broadcast_to(starts, mask.shape)
        if not size or int(starts[mask].min()) < 0 or int(starts[mask].max()) + nbytes > size:
            self.lose()
            return
        self.copies.append(_Copy(array, starts, nbytes, self.committed.copy(), mask, mask))
        table = self._bytes.setdefault(array, np.zeros(size, bool))
        table[(starts[mask][:, None] + np.arange(nbytes)).ravel()] = True

    def commit(self, mask: Any) -> None:
        """Threads close the group of the copies since their last one."""
        self.committed = self.committed + mask

    def wait(self, mask: Any, left: int) -> None:
        """Threads wait until at most so many of their last groups are incomplete; -1 for all copies."""
        for copy in self.copies:
            done = mask if left < 0 else mask & (copy.groups < self.committed - left)
            copy.open = copy.open & ~done
        if left < 0:
            self.commit(mask)

    def barrier(self) -> None:
        """All threads of the block pass a barrier: what they have waited for is complete for the others too."""
        changed = {copy.array for copy in self.copies if not np.array_equal(copy.open, copy.pending)}
        for copy in self.copies:
            copy.pending = copy.open
        self.copies = [copy for copy in self.copies if copy.pending.any()]
        for name in changed:
            table = self._bytes[name] = np.zeros_like(self._bytes[name])
            for copy in self.copies:
                if copy.array == name:
                    starts = copy.starts[copy.pending]
                    table[(starts[:, None] + np.arange(copy.nbytes)).ravel()] = True

    def touch(self, array: str, where: Any = None) -> bool:
        """Whether bytes of an array (None for any) may be those of a copy that is pending."""
        table = self._bytes.get(array)
        if self.lost or table is None:
            return self.lost
        return bool((table if where is None else table[where]).any())

    def state(self) -> object:
        """What decides which copies are pending from here on."""
        return self.lost, tuple(
            (copy.array, copy.starts.tobytes(), copy.nbytes, (self.committed - copy.groups)[copy.open].tobytes(),
             copy.open.tobytes(), copy.pending.tobytes())
            for copy in self.copies
        )
