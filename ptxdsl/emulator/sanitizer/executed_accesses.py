"""The accesses of a kernel as :mod:`..analysis.block_execution` finds them, for the proofs of one launch."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Address
from ...isa.effects import Access
from ..analysis.block_cases import execute_by_cases
from ..analysis.block_execution import Execution
from ..analysis.disjointness import Footprint
from ..analysis.linear_values import Part, Value
from ..analysis.static_values import Known
from ..analysis.thread_accesses import Accessed, Asked
from ..machine.address_spaces import AddressSpaces

__all__ = ["ExecutedAccesses"]

MOST = 6400
"""Executions of the accesses to one array that are compared."""


class ExecutedAccesses:
    """What is executed is asked for before anything is looked up."""

    def __init__(
        self, graph: ControlFlowGraph, known: Known, barriers: set[int], spaces: AddressSpaces, dynamic: int,
        effort: int,
    ) -> None:
        self.graph, self.known, self.barriers, self.spaces, self.dynamic = graph, known, barriers, spaces, dynamic
        self.asked: dict[int, Asked] = {}
        self.effort = effort

    def ask(self, place: int, address: Address, access: Access, array: str) -> None:
        """Ask for an access to an array, or to "" where that is not known."""
        self.asked[place] = Asked(address, access.nbytes, array, access.reads, access.writes)

    @cached_property
    def execution(self) -> Execution:
        """The kernel, executed for the threads of a block."""
        sizes, starts = self.size, self.start
        return execute_by_cases(self.graph, self.known, self.barriers, self.asked, sizes, starts, self.effort)

    @property
    def begun(self) -> bool:
        """Whether the kernel has been executed, since something was looked up."""
        return "execution" in self.__dict__

    @property
    def stopped(self) -> bool:
        """Whether execution ended before all was known, since it took too long."""
        return self.begun and self.execution.stopped

    @property
    def complete(self) -> bool:
        """Whether all accesses are known."""
        return self.execution.intervals is not None

    def arrays_of(self, place: int) -> set[str]:
        """The arrays in shared or local memory that an access is certainly in, and within; "" where none is known."""
        if self.execution.intervals is None:
            return {""}
        return {each.array if self._is_inside(each) else "" for each in self._by_place.get(place, ())}

    @cached_property
    def _by_place(self) -> dict[int, list[Accessed]]:
        found: dict[int, list[Accessed]] = {}
        for interval in self.execution.intervals or ():
            for each in interval:
                found.setdefault(each.place, []).append(each)
        return found

    def _is_inside(self, accessed: Accessed) -> bool:
        if accessed.numbers is None or accessed.block != (0, 0, 0):
            return False
        low, high = _ends(accessed)
        return low >= 0 and high + self.asked[accessed.place].nbytes <= self.size(accessed.array)

    def between_barriers(self, footprints: dict[int, Footprint], array: str) -> list[dict[int, list[Footprint]]] | None:
        """The accesses to an array from one barrier to the next; None where threads may pass other barriers."""
        if not self.execution.aligned:
            return None
        return [self._executed(footprints, array, interval) for interval in self.execution.intervals or ()]

    def within_warps(self, footprints: dict[int, Footprint], array: str) -> list[dict[int, list[Footprint]]]:
        """The accesses to an array from one barrier of all warps to the next."""
        return [self._executed(footprints, array, phase) for phase in self.execution.phases]

    def all(self, footprints: dict[int, Footprint], array: str) -> list[tuple[int, Footprint]] | None:
        """All accesses to an array, and their places; None where they are not known."""
        found = [
            (place, footprint) for interval in self.execution.intervals or ()
            for place, each in self._executed(footprints, array, interval).items() for footprint in each
        ]
        return found if self.complete and len(found) <= MOST else None

    def _executed(
        self, footprints: dict[int, Footprint], array: str, interval: list[Accessed]
    ) -> dict[int, list[Footprint]]:
        found: dict[int, list[Footprint]] = {}
        for each in interval:
            footprint = footprints.get(each.place)
            if footprint is not None:
                if each.numbers is not None and each.array == array:
                    threads = footprint.threads if each.threads is None else each.threads
                    footprint = footprint._replace(value=self._value(each), threads=threads)
                found.setdefault(each.place, []).append(footprint)
        return found

    def _value(self, executed: Accessed) -> Value:
        numbers, threads = executed.numbers, executed.threads
        if threads is not None and not isinstance(numbers, int):  # what the others have is anything
            executed = executed._replace(numbers=np.where(threads, numbers, numbers[threads][0]))
        low, high = _ends(executed)
        extent = max(abs(low), abs(high))
        plain = isinstance(executed.numbers, int)
        const, vector = (executed.numbers, None) if plain else (0, executed.numbers)
        ends = [each * (count - 1) for each, count in zip(executed.block, self.known.grid)]
        low, high = low + sum(min(0, end) for end in ends), high + sum(max(0, end) for end in ends)
        return Value({None: Part(const, vector, executed.block, 0, low, high, (), extent)}, origin=executed.array)

    def size(self, name: str) -> int:
        """The bytes of an array in shared or local memory, 0 of others."""
        entry = self.spaces.entries.get(name, 0)
        area = self.spaces.locals.get(entry) or self.spaces.ranges[entry]
        if area is None or not (area.shared or entry in self.spaces.locals):
            return 0
        return area.nbytes if area.nbytes >= 0 else self.dynamic

    def start(self, name: str) -> int:
        """The address of an array in shared memory, 0 of others."""
        area = self.spaces.ranges[self.spaces.entries.get(name, 0)]
        return area.address - area.window if area is not None and area.shared else 0


def _ends(accessed: Accessed) -> tuple[int, int]:
    """The least and the largest number of the threads that make an access."""
    numbers = accessed.numbers
    if accessed.threads is not None and not isinstance(numbers, int):
        numbers = numbers[accessed.threads]
    return (numbers, numbers) if isinstance(numbers, int) else (int(numbers.min()), int(numbers.max()))
