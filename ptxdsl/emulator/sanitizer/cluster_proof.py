"""Which accesses of the blocks of a cluster to each other's shared memory need no check.

They are proven where there are but reads or atomics between barriers of the cluster, whatever the addresses
(:mod:`.reaching_accesses`), or where a whole cluster can be executed (:mod:`..analysis.cluster_execution`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ...ir import Address, Instruction
from ...isa.effects import Access
from ..analysis.cluster_execution import execute_cluster
from ..analysis.disjointness import Footprint
from ..analysis.linear_values import Value, flat
from ..analysis.static_values import StaticValues
from ..analysis.thread_accesses import Asked
from ..machine.layout import CLUSTER_ORIGIN
from ..runtime.block_state import LaunchState
from .accesses import checked_access, strength
from .cluster_ends import asks_at_ends
from .executed_accesses import ExecutedAccesses
from .kernel_facts import KernelFacts
from .reaching_accesses import Reaching, SharedAccess

__all__ = ["SPACES", "ArrayAccess", "ClusterProof"]

SPACES = ("local", "shared", "global", "generic")
_FAR = 1 << 48
"""Bytes from one window of generic addresses to the next, and more than any array is from it."""


class ArrayAccess(NamedTuple):
    """An access to an array: its place, its footprint, how strong it is."""

    place: int
    array: str
    footprint: Footprint
    strength: int
    reads: bool
    stored: int | None = None
    """What all threads of the launch store, if it is one number."""


class ClusterProof:
    """What the proof of a launch knows of the accesses of its kernel, and what it says of those between blocks."""

    values: StaticValues
    executed: ExecutedAccesses

    def __init__(self, kernel: KernelFacts, launch: LaunchState) -> None:
        self.kernel, self.spaces, self.shared_bytes = kernel, launch.spaces, launch.shared_bytes
        self.accesses: dict[str, list[ArrayAccess]] = defaultdict(list)
        """Those of a block to its own arrays and to global ones."""
        self.excluded: set[str] = set()
        """Arrays, or the space of all of them, that may be accessed in ways that are not understood."""
        self.reach: set[int] = set()
        """Accesses to the shared memory of some block of the cluster."""
        self.reaching = Reaching(kernel)
        self.far: dict[int, Asked] = {}
        """The same, as they are asked for."""
        self.loose: list[tuple[int, Value, Access, int]] = []
        """Those of them that may be to another variable than their address is from."""
        self.copied = False
        """Whether asynchronous copies write to shared memory, which is complete later."""
        self.stopped = False
        """Whether a longer proof may find more."""

    def _collect_far(self, place: int, statement: Instruction, access: Access, value: Value) -> None:
        """Note an access to the shared memory of any block of the cluster."""
        strong, name = strength(statement.form), value.origin.removeprefix(CLUSTER_ORIGIN)
        address = statement.operands[access.operand]
        if access is not checked_access(statement.form) or not isinstance(address, Address):
            self._reach(place, value, None, strong)
            return
        self.far[place] = Asked(address, access.nbytes, name, access.reads, access.writes)
        if not self._reach(place, value, access, strong, certainly=True):
            self.loose.append((place, value, access, strong))

    def _reach(self, place: int, value: Value, access: Access | None, strong: int, certainly: bool = False) -> bool:
        """Note what an access to the shared memory of any block of the cluster may be to; None is one of many bytes.

        ``certainly``: only where it certainly is to its variable; whether it is noted.
        """
        name, part = value.origin.removeprefix(CLUSTER_ORIGIN), flat(value)
        generic = access is None or access.space == "generic"
        known = not part.symbols and value.bits >= (64 if generic else 32)
        inside = near = False
        if known and part.low is not None and part.high is not None:
            end = part.high + (access.nbytes if access is not None else _FAR)
            inside = part.low >= 0 and end <= self.executed.size(name)
            near = not self.spaces.memory.narrow and part.low > -_FAR and end < _FAR
        if certainly and not inside:
            return False
        if access is None or not (inside or near or not generic):
            self.excluded.update((name,) if inside else ("shared",) if near or not generic else SPACES)
            return True
        self.reaching.note(place, access, strong, name if inside else "")
        if near or not generic:
            self.reach.add(place)
        return True

    def _reached(self) -> tuple[set[int], set[int]]:
        """The accesses to any block's shared memory, and those that find written what they read, if they never race.

        If they may, they are checked, and with them all accesses that they may meet.
        """
        if not self.far and not self.reaching.found:
            return set(), set()
        found = None if self.loose else self._never_racing()
        if found is None and not self._is_odd():
            found = self._ordered_in_cluster()
        if found is None:
            for place, value, access, strong in self.loose:
                self._reach(place, value, access, strong)
            found = self._never_racing() if self.loose else None
        if found is None:
            self.excluded |= {name or "shared" for name in self.reaching.names}
        return found or (set(), set())

    def _is_odd(self) -> bool:
        """Whether shared memory is accessed in ways that no proof of clusters knows."""
        shared = (name for name in self.spaces.entries if self.spaces.is_shared(name))
        return self.copied or asks_at_ends(self.spaces) or not self.excluded.isdisjoint(("shared", *shared))

    def _never_racing(self) -> tuple[set[int], set[int]] | None:
        """The accesses to any block's shared memory, as in _reached, if there are but reads or atomics meanwhile."""
        if self._is_odd():
            return None
        sizes = {name: self.executed.size(name) for name in self.spaces.entries if self.spaces.is_shared(name)}
        own = (
            SharedAccess(each.place, name, each.strength, each.reads, each.footprint.writes)
            for name in sizes for each in self.accesses.get(name, ())
        )
        if not self.reaching.never_race(own):
            return None
        stored, before = self.executed.execution.stored, self.values.definitions.comes_before
        found = set(self.reaching.found)
        return (found, found) if self.reaching.find_written(stored, sizes, self.shared_bytes, before) else None

    def _ordered_in_cluster(self) -> tuple[set[int], set[int]] | None:
        """All accesses to the variables that other blocks reach, as in _reached, if barriers order them."""
        names, barriers = {each.array for each in self.far.values()}, self.kernel.cluster_barriers
        accesses: list[ArrayAccess] = [access for name in names for access in self.accesses.get(name, ())]
        own = {place: each for place, each in self.executed.asked.items() if each.array in names}
        strengths = [each.strength for each in accesses] + [each.strength for each in self.reaching.found.values()]
        strong = any(strengths) or any(strong for *_, strong in self.loose)
        known = self.far.keys() >= self.reaching.found.keys() and own.keys() >= {each.place for each in accesses}
        if strong or not known or not barriers:
            return None
        found, self.stopped = execute_cluster(
            self.kernel.graph, self.values.known, barriers, own, self.far, self.executed.size, self.executed.effort
        )
        if found is None or not found.racing.isdisjoint(names):
            return None
        self.reach |= self.far.keys()
        every = own | self.far
        readers = {place for place, each in every.items() if each.reads}
        return set(every), readers - found.early if readers & found.early else set(every)
