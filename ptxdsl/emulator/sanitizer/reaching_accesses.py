"""Accesses to the shared memory of any block of a cluster, by addresses that data decide: which of them need no check.

A thread that counts in a histogram which lies spread over the blocks of its cluster computes with ``mapa`` where a bin
is: nobody knows before the launch to which block that is, and to which byte. But between two barriers of the cluster
there mostly are nothing but atomics, which do not race with each other; and if each block has written all of its shared
memory before the first of the two, what they read is written.

The barriers must be those of the whole cluster: no barrier may lie where threads of different blocks may be apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...isa.effects import Access
from ..analysis.barrier_intervals import SAME_IN_CLUSTER, intervals, varying_registers
from ..analysis.block_execution import Stored
from .kernel_facts import KernelFacts

__all__ = ["Reaching", "SharedAccess"]

IN_CLUSTER = 2
"""How strong accesses of different blocks of a cluster must be that do not race."""


class SharedAccess(NamedTuple):
    """An access to shared memory: its place, its variable ("" for any), its strength, whether it reads and writes."""

    place: int
    name: str
    strength: int
    reads: bool
    writes: bool


class Reaching:
    """The accesses of a kernel that may be to shared memory of any block of the cluster."""

    def __init__(self, kernel: KernelFacts) -> None:
        self.kernel = kernel
        self.found: dict[int, SharedAccess] = {}

    @property
    def names(self) -> set[str]:
        """The variables that they are to; "" is among them for any."""
        return {each.name for each in self.found.values()}

    def note(self, place: int, access: Access, strength: int, name: str) -> None:
        """Note an access, to a variable or to any byte."""
        self.found[place] = SharedAccess(place, name, strength, access.reads, access.writes)

    def never_race(self, own: Iterable[SharedAccess]) -> bool:
        """Whether they race neither with each other nor with a block's ``own`` accesses."""
        graph, barriers = self.kernel.graph, self.kernel.cluster_barriers
        if not barriers:
            return False
        every = {each.place: each for each in own} | self.found
        _, apart = varying_registers(graph, lambda s: s.form.space in ("param", "const"), SAME_IN_CLUSTER)
        between = intervals(graph, barriers, apart, set(every))
        return between is not None and all(self._is_safe([every[place] for place in places]) for places in between)

    def _is_safe(self, accesses: list[SharedAccess]) -> bool:
        """Whether what is reached between two barriers of the cluster is only read, or by atomics only."""
        names = {each.name for each in accesses if each.place in self.found}
        near = [each for each in accesses if "" in names or each.name in names]
        return not any(each.writes for each in near) or all(each.strength >= IN_CLUSTER for each in near)

    def find_written(
        self, stored: Iterable[Stored], sizes: dict[str, int], nbytes: int, comes_before: Callable[[int, int], bool]
    ) -> bool:
        """Whether they find written what they read; ``sizes`` are of all variables, ``nbytes`` that of a block."""
        full: dict[str, list[int]] = {name: [] for name in ("", *sizes)}
        """The barriers of the cluster before which each block has written all of a variable, or all of its memory."""
        for barrier, found in stored:
            if barrier in self.kernel.cluster_barriers:
                names = [name for name, size in sizes.items() if name in found and found[name].all()]
                for name in names:
                    full[name].append(barrier)
                if len(names) == len(sizes) and sum(sizes.values()) == nbytes:
                    full[""].append(barrier)
        return all(
            any(comes_before(barrier, place) for barrier in full.get(access.name, ()))
            for place, access in self.found.items() if access.reads
        )
