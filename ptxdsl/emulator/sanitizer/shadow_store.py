"""Shadow memory that is kept from launch to launch, so that a launch need not begin with clearing it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import locks
from ..codegen.library import library
from ..instructions.instrumentation import (
    BarrierFollowing, MbarrierFollowing, OrderLookup, OrderSearch, ShadowInspection, SyncFollowing,
)
from ...machine_code.once import once
from ..instructions.proxy_checks import ProxyFencing, ProxyJudgement, ProxyObservation, ProxySettlement
from ..machine.allocation import address_of, allocate
from ..machine.proxy_shadow import GROUP_RECORDS, GroupRecord
from ..machine.shadow import EPOCH_BITS, ORDER_CACHE_BITS, UNWRITTEN, Plane, Shadow
from .sync_log import SyncLog

__all__ = ["GROUPED_LAYOUT", "Marked", "ShadowState", "Store", "mark", "routines", "store"]

GROUPED_LAYOUT = 16
_STATES = 16
"""Shadow states that are kept."""
_ROUTINES = {
    Shadow.INSPECT: ShadowInspection(), Shadow.ARRIVE: MbarrierFollowing(), Shadow.PRECEDE: OrderLookup(),
    Shadow.FOLLOW_BARRIER: BarrierFollowing(), Shadow.FOLLOW: SyncFollowing(), Shadow.SEARCH: OrderSearch(),
}
_OF_PROXIES = {
    Shadow.OBSERVE: ProxyObservation(), Shadow.SETTLED: ProxySettlement(), Shadow.JUDGE: ProxyJudgement(),
    Shadow.FENCED_BY: ProxyFencing(),
}


@functools.cache
def routines(proxies: bool = False) -> dict[int, int]:
    """The addresses of the functions that checks call, by their fields of a shadow state."""
    wanted = _OF_PROXIES if proxies else _ROUTINES
    found = library().need(list(wanted.values()))
    return {field: found[key] for field, key in wanted.items()}


class ShadowState:
    """The shadow state of a block, and its cache of answers about the order of accesses."""

    def __init__(self) -> None:
        self.memory, self.address, self.view = allocate(Shadow.nbytes)
        self.cache = np.zeros(1 << ORDER_CACHE_BITS, np.uint64)
        self.cache_address = self.cache.ctypes.data

    def forget(self) -> None:
        """Forget the answers about the order of accesses."""
        if any(self.view[Shadow.CACHE_USED : Shadow.CACHE_USED + 4]):
            self.cache[:] = 0

    def reset(self) -> None:
        """Make it as new again."""
        self.forget()
        self.memory[:] = 0


class Marked:
    """What an array keeps from launch to launch of which of its bytes were never written: the shadow words say it.

    So a launch need not mark its memory again, and an array that it leaves alone costs it nothing. ``low`` is the
    address where the words begin, ``resets`` the number of the numbering of epochs that they are of.
    """

    def __init__(self, words: np.ndarray[Any, Any], low: int, granule: int, nbytes: int, resets: int) -> None:
        self.words, self.low, self.granule, self.nbytes, self.resets = words, low, granule, nbytes, resets

    def mask(self) -> np.ndarray[Any, Any]:
        """Which bytes are unwritten."""
        granules = -(-self.nbytes >> self.granule)
        return np.repeat(self.words[:granules] == UNWRITTEN, 1 << self.granule)[: self.nbytes]


def mark(words: np.ndarray[Any, Any], mask: Any, nbytes: int, granule: int) -> None:
    """Mark the bytes of a mask, or with True all of so many, in words of last writers."""
    granules = -(-nbytes >> granule)
    if mask is True:
        words[:granules] = UNWRITTEN
        return
    unwritten = np.zeros(granules << granule, bool)
    unwritten[:nbytes] = mask
    words[:granules] = np.where(unwritten.reshape(granules, -1).any(1), UNWRITTEN, 0)


def _start(first: int) -> int:
    return (1 << EPOCH_BITS) - (first & (1 << EPOCH_BITS) - 1)


class Store:
    """The number of the last epoch, the blocks of epochs, and free memory for shadow words.

    Old words need no clearing: their epochs precede the launch, so they are ordered before all of it.
    """

    def __init__(self, log: SyncLog | None = None) -> None:
        self.lock = locks.rlock()
        self.counter = np.ones(1, np.uint64)
        self.tickets = np.ones(1, np.uint64)
        """The last ticket of an asynchronous copy."""
        self.groups = np.zeros((GROUP_RECORDS, GroupRecord.nbytes // 8), np.uint64)
        """Bulk groups: :class:`.proxy_shadow.GroupRecord`."""
        self.resets = 0
        self.counter_address = self.counter.ctypes.data
        self.table = np.zeros(2 << EPOCH_BITS, np.uint32)
        self.table_address = address_of(self.table)
        self.log = log or SyncLog()
        self.states: list[ShadowState] = []
        self.free: list[tuple[np.ndarray[Any, Any], int]] = []

    def blocks_of(self, first: int) -> np.ndarray[Any, Any]:
        """The blocks of the epochs of a launch, by the low bits of their numbers.

        Those of its ``first`` ones lie where those of the last launch did: the system has given that memory already.
        """
        start = _start(first)
        return self.table[start : start + (1 << EPOCH_BITS)]

    def address_of_blocks(self, first: int) -> int:
        """Where they lie, which numpy takes long to say."""
        return self.table_address + self.table.itemsize * _start(first)

    def renumber(self) -> None:
        """Begin with small numbers again: no words of before may be used any more."""
        self.counter[0], self.tickets[0], self.free = 1, 1, []
        self.groups[:] = 0
        self.log.forget()
        self.resets += 1

    def follow(self, other: Store) -> None:
        """Number epochs and tickets as another store does from now on."""
        if self.resets != other.resets:
            self.free, self.resets = [], other.resets
            self.log.forget()
        self.counter[0], self.tickets[0] = other.counter[0], other.tickets[0]

    def take(self, words: int, layout: int) -> np.ndarray[Any, Any]:
        """Memory for so many shadow words in a number of planes, and with GROUPED_LAYOUT more for those of bulk groups.

        Words of epochs, of tickets and of groups are not mixed: only the first say nothing in a later launch.
        """
        loose = layout % GROUPED_LAYOUT == Plane.COPY
        fitting = [
            array for array, other in self.free
            if other == layout and words <= array.size <= (2 * words + 4096 if loose else words)
        ]
        if not fitting:
            return np.zeros(words, np.uint64)
        best = min(fitting, key=lambda array: array.size)
        self.free = [each for each in self.free if each[0] is not best]
        return best

    def take_again(self, wanted: list[tuple[Any, int]]) -> list[tuple[np.ndarray[Any, Any], int]]:
        """The arrays that these weak references are of, if all of them are free; else none."""
        numbers = {id(reference()) for reference, _ in wanted}
        found = [each for each in self.free if id(each[0]) in numbers]
        if len(found) != len(wanted):
            return []
        self.free = [each for each in self.free if id(each[0]) not in numbers]
        return found

    def state(self) -> ShadowState:
        """Memory for the shadow state of a block, all zeros."""
        return self.states.pop() if self.states else ShadowState()

    def return_states(self, states: list[ShadowState]) -> None:
        """Keep the memory of the last launch for the next one."""
        for state in states[: _STATES - len(self.states)]:
            state.reset()
            self.states.append(state)

    def give(self, arrays: list[tuple[np.ndarray[Any, Any], int]]) -> None:
        """Keep the memory of the last launch for the next one."""
        self.free = [*arrays, *self.free][:64]
        while sum(array.nbytes for array, _ in self.free[1:]) > 256 << 20:
            self.free.pop()


@once
def store() -> Store:
    """The store of this process."""
    return Store()
