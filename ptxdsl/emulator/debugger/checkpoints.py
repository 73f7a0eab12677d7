"""Copies of all that a launch can change, from which it is run again to an earlier moment.

Where the copies take more than is allowed every second one is dropped, and new ones are made half as often: so any
moment can be reached again, in more time.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...ir import Instruction
from ..runtime.block_state import BlockState, LaunchState
from .execution import Execution, Group, Unit
from .images import HeapImage, MemoryImage, Region, UnitImage, region_of

__all__ = ["History", "launch_memory"]

INTERVAL = 1 << 20
"""Ticks from checkpoint to checkpoint, at first: what is run again in some hundredths of a second."""
MOST = 128
"""Checkpoints."""


class Checkpoint(NamedTuple):
    """What there was at a tick."""

    tick: int
    memory: MemoryImage
    units: dict[Unit, UnitImage]
    groups: list[tuple[int, Unit, list[BlockState]]]
    free: list[Unit]
    next: int
    state: BlockState | None
    stopped: bool
    quiescence: Any
    stamps: int
    heap: HeapImage


def launch_memory(launch: LaunchState) -> Iterator[Region]:
    """The memory outside of block states that a launch may write: arrays, variables of the module, the heap."""
    seen = set()
    for area in launch.ranges:
        if area is None or area.shared or not area.writable or area.nbytes <= 0:
            continue
        if area.heap:
            heap = launch.spaces.memory.heap
            yield from map(region_of, (heap._memory, heap.valid))
        elif (area.place, area.nbytes) not in seen:
            seen.add((area.place, area.nbytes))
            yield Region(area.place, area.nbytes)


class History:
    """The checkpoints of one launch, whose pages take at most ``limit`` bytes.

    ``missing`` says why the launch cannot be taken back, "" where it can.
    """

    def __init__(self, execution: Execution, limit: int) -> None:
        self.execution, self.limit = execution, limit
        self.checkpoints: list[Checkpoint] = []
        self.interval = INTERVAL
        self.full = False
        """Whether the copies have come to take more than is allowed, and some were dropped."""
        self.missing = self._refusal()
        if not self.missing:
            self.take()

    def _refusal(self) -> str:
        launch = self.execution.launch
        body = launch.spaces.function.body or ()
        accesses = (access for s in body if isinstance(s, Instruction) for access in s.form.effects.accesses)
        if any(access.writes and access.space == "surface" for access in accesses):
            return "the kernel writes surfaces, of which no copies are kept"
        needed = sum(region.nbytes for region in launch_memory(launch))
        if needed > self.limit // 2:
            return (
                f"the launch may write {needed >> 20} MiB, and {self.limit >> 20} MiB are allowed for copies "
                f"(history={(needed >> 19) + 1})"
            )
        return ""

    @property
    def due(self) -> int:
        """The tick at which to take the next checkpoint."""
        return self.checkpoints[-1].tick + self.interval if self.checkpoints else (1 << 64) - 1

    def take(self) -> None:
        """Keep what there is now."""
        run, launch = self.execution, self.execution.launch
        before = self.checkpoints[-1] if self.checkpoints else None
        memory = [region_of(launch.memory), *launch_memory(launch)]
        units = {u: u.image(before.units.get(u) if before else None) for u in run.units if u not in run.spare}
        groups = [(group.number, group.unit, list(group.active)) for group in run.groups]
        self.checkpoints.append(Checkpoint(
            run.control["TICK"], MemoryImage(memory, before.memory if before is not None else None), units, groups,
            list(run.free), run.next, run.state, run.stopped, copy.copy(run.quiescence), run.control["STAMPS"],
            HeapImage(launch.spaces.memory.heap),
        ))
        while len(self.checkpoints) > MOST or (len(self.checkpoints) > 2 and self._is_full()):
            self.interval *= 2
            self.checkpoints[1:] = self.checkpoints[2::2]

    def _is_full(self) -> bool:
        full = self.nbytes > self.limit
        self.full |= full
        return full

    @property
    def nbytes(self) -> int:
        """What the pages take."""
        pages: dict[int, int] = {}
        for checkpoint in self.checkpoints:
            for memory in (checkpoint.memory, *(image.memory for image in checkpoint.units.values())):
                pages.update((id(page), len(page)) for page in memory.pages.values())
        return sum(pages.values())

    def before(self, tick: int) -> list[Checkpoint]:
        """The checkpoints before a tick, the last one first."""
        return [checkpoint for checkpoint in reversed(self.checkpoints) if checkpoint.tick < tick]

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take the launch back."""
        run = self.execution
        run.control["TICK"], run.control["STAMPS"] = checkpoint.tick, checkpoint.stamps
        checkpoint.memory.restore()
        for image in checkpoint.units.values():
            image.restore()
        run.spare = [unit for unit in run.units if unit not in checkpoint.units]
        for unit in run.spare:
            unit.renew()
        run.groups = deque(Group(number, unit, deque(active)) for number, unit, active in checkpoint.groups)
        run.free, run.next = list(checkpoint.free), checkpoint.next
        run.state, run.stopped = checkpoint.state, checkpoint.stopped
        run.quiescence = copy.copy(checkpoint.quiescence)
        if run.pool is not None and run.groups:
            run.pool.running[0] = run.groups[0].number
        checkpoint.heap.restore()
