"""Copies of memory in pages, which share what has not changed, and of all that the blocks of a unit have."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..machine.allocation import address_of
from ..machine.heap import Heap
from ..runtime.block_state import BlockState
from ..runtime.clusters import Clusters

__all__ = ["HeapImage", "MemoryImage", "Region", "UnitImage", "region_of"]

PAGE = 64 << 10
_KEPT = ("left", "code", "stride", "warps_memory", "warps", "_warps_view", "is_small", "_queue")
"""What a state has beside its memory, that changes as it runs."""


class Region(NamedTuple):
    """A piece of memory; ``owner`` keeps it alive, where that is ours to do."""

    address: int
    nbytes: int
    owner: Any = None


def region_of(array: Any) -> Region:
    """All of an array of bytes."""
    return Region(address_of(array), array.nbytes, array)


class MemoryImage:
    """What was in some regions; ``before`` is an earlier image, whose pages serve where they are the same."""

    def __init__(self, regions: Iterable[Region], before: MemoryImage | None = None) -> None:
        known = before.pages if before is not None else {}
        self.regions = list(regions)
        self.pages: dict[int, bytes] = {}
        for address, nbytes in self._pieces():
            page = ctypes.string_at(address, nbytes)
            old = known.get(address)
            self.pages[address] = old if old == page else page

    def _pieces(self) -> Iterator[tuple[int, int]]:
        for address, nbytes, _ in self.regions:
            for at in range(address, address + nbytes, PAGE):
                yield at, min(PAGE, address + nbytes - at)

    def restore(self) -> None:
        """Make memory what it was."""
        for address, page in self.pages.items():
            ctypes.memmove(address, page, len(page))


class HeapImage:
    """What ``malloc`` had given out; the bytes are the memory's."""

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._kept = heap._end, {**heap.given}, {**heap.freed}

    def restore(self) -> None:
        """Make it what it was."""
        self._heap._end = self._kept[0]
        self._heap.given, self._heap.freed = {**self._kept[1]}, {**self._kept[2]}


class UnitImage:
    """What the states of a block, or of a cluster, were."""

    def __init__(
        self, states: list[BlockState], clusters: Clusters | None, tables: list[Any], before: UnitImage | None = None
    ) -> None:
        arrays = {id(array): array for array in self._arrays(states, clusters, tables)}
        old = before.memory if before is not None else None
        self.memory: MemoryImage = MemoryImage(map(region_of, arrays.values()), old)
        self._states = [({name: getattr(s, name) for name in _KEPT}, _copied(s.arrivals)) for s in states]
        self._of = states
        self._clusters = clusters
        self._cluster = (clusters.number, copy.copy(clusters.quiescence)) if clusters is not None else None

    @staticmethod
    def _arrays(states: list[BlockState], clusters: Clusters | None, tables: list[Any]) -> Iterator[Any]:
        for state in states:
            yield from (a for a in (state.memory, state.warps_memory, state.counter, state._queue) if a is not None)
        yield from tables
        if clusters is not None:
            yield clusters.memory

    def restore(self) -> None:
        """Make them what they were."""
        for state, (kept, arrivals) in zip(self._of, self._states):
            for name, value in kept.items():
                setattr(state, name, value)
            state.arrivals = _copied(arrivals)
        self.memory.restore()
        if self._clusters is not None and self._cluster is not None:
            self._clusters.number, quiescence = self._cluster
            self._clusters.quiescence = copy.copy(quiescence)


def _copied(arrivals: dict[int, list[Any]]) -> dict[int, list[Any]]:
    return {warp: [copy.copy(arrival) for arrival in each] for warp, each in arrivals.items()}
