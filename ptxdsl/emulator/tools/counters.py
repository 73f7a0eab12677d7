"""The profiler's counters: what they count, and how they follow from what compiled code counts of an instruction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ...ir import Call, Instruction
from ...isa import Form
from ...isa.arithmetic import flops
from ...isa.effects import Access
from ..machine.status import Count

__all__ = ["Counters", "counted_access", "counters_of"]

SECTOR = 32


@dataclass(frozen=True)
class Counters:
    """What was counted, in sums over all launches, blocks and warps.

    ``executions`` are warp instructions; ``lanes`` the threads that took part, at most 32 an execution, those for
    which a guard does not hold left out. A request is a warp's access to global or shared memory, a sector 32 aligned
    bytes, a wavefront what the banks of shared memory give at once. Bytes are what the threads ask for, by state space;
    ``flops`` are by type, a fused multiply-add has two.
    """

    executions: int = 0
    lanes: int = 0
    divergent_branches: int = 0
    global_requests: int = 0
    global_sectors: int = 0
    shared_requests: int = 0
    shared_wavefronts: int = 0
    bank_conflicts: int = 0
    """Wavefronts beyond those that the accesses need without a conflict."""
    read: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[str, int] = field(default_factory=dict)
    flops: Mapping[str, int] = field(default_factory=dict)

    @property
    def lanes_per_execution(self) -> float | None:
        """Active lanes, on average; None if it was not executed."""
        return _ratio(self.lanes, self.executions)

    @property
    def sectors_per_request(self) -> float | None:
        """Sectors of a request to global memory: 4 for contiguous 4-byte elements, 32 at worst."""
        return _ratio(self.global_sectors, self.global_requests)

    @property
    def conflict_ways(self) -> float | None:
        """Wavefronts for each that the access needs without a conflict: 1, and 32 at worst."""
        return _ratio(self.shared_wavefronts, self.shared_wavefronts - self.bank_conflicts)

    @property
    def global_bytes(self) -> int:
        """Bytes that the sectors have, which is what the memory system moves if no cache helps."""
        return SECTOR * self.global_sectors

    @property
    def intensity(self) -> float | None:
        """Arithmetic intensity: flops for each byte of the sectors; None where no global memory is touched."""
        return _ratio(sum(self.flops.values()), self.global_bytes)

    def __add__(self, other: Counters) -> Counters:
        values: dict[str, Any] = {}
        for f in fields(Counters):
            mine, theirs = getattr(self, f.name), getattr(other, f.name)
            values[f.name] = _merged(mine, theirs) if isinstance(mine, Mapping) else mine + theirs
        return Counters(**values)


def _ratio(a: int, b: int) -> float | None:
    return a / b if b else None


def _merged(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in dict.fromkeys((*a, *b))}


# ---------------------------------------------------------------------------------------------------------------------
# Counters of an instruction


def counted_access(form: Form) -> Access | None:
    """The access of an instruction whose lanes access elements at an address each."""
    return form.effects.access if not form.effects.completes else None


def counters_of(statement: Instruction | Call, counts: list[int]) -> Counters:
    """Counters from the columns (:class:`~..machine.status.Count`) of a statement."""
    lanes, executions = counts[Count.LANES], counts[Count.EXECUTIONS]
    common: dict[str, Any] = {"executions": executions, "lanes": lanes, "divergent_branches": counts[Count.DIVERGENT]}
    if isinstance(statement, Call):
        return Counters(**common)
    operations = flops(statement.form)
    if done := operations.lane * lanes + operations.warp * executions:
        common["flops"] = {operations.type: done}
    access = counted_access(statement.form)
    if access is not None:
        moved = {access.space: lanes} if access.space in ("param", "const") else {
            "global": counts[Count.GLOBAL_LANES], "shared": counts[Count.SHARED_LANES],
            "local": counts[Count.LOCAL_LANES],
        }
        nbytes = {space: access.nbytes * count for space, count in moved.items() if count}
        common |= {"read": nbytes if access.reads else {}, "written": nbytes if access.writes else {}}
    return Counters(
        **common, global_requests=counts[Count.GLOBAL_REQUESTS], global_sectors=counts[Count.SECTORS],
        shared_requests=counts[Count.SHARED_REQUESTS], shared_wavefronts=counts[Count.WAVEFRONTS],
        bank_conflicts=counts[Count.WAVEFRONTS] - counts[Count.LEAST],
    )
