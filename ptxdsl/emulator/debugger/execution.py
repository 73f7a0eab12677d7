"""Runs a launch on one host thread, a block (a cluster) after the other, up to where compiled code stops.

What happens depends on nothing but the memory that it begins with, so that it can be run again from a checkpoint, to
any moment: blocks and warps have their turns in a fixed order, and clocks show the tick. Block states that were made
stay until the launch ends, so that what lies in them keeps its address.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


from ..codegen.code import Code
from ..machine.allocation import allocate
from ..machine.debug_control import EXECUTED
from ..machine.layout import Block
from ..machine.status import Fault, Status
from ..runtime.block_state import TIME_SLICE, BlockState, LaunchState, scheduler
from ..runtime.cluster_pool import ClusterPool
from ..runtime.clusters import Clusters
from ..runtime.events import complete, deadlock, handle, livelock
from ..runtime.faults import index_in
from ..runtime.quiescence import Quiescence, digest
from .images import UnitImage
from .probe import Control

__all__ = ["Execution", "Group", "Unit"]

RESIDENT_BYTES = 64 << 20
"""Memory that the states of blocks may take that wait for others."""


class Unit:
    """The states in which a block, or the blocks of a cluster, run; their tables of what has been executed."""

    def __init__(self, states: list[BlockState], clusters: Clusters | None, statements: int) -> None:
        self.states, self.clusters = states, clusters
        tables = [allocate(max(1, statements) * EXECUTED) for _ in states]
        self.tables = [memory for memory, _, _ in tables]
        self._views = [view for _, _, view in tables]
        self._nothing = bytes(max(1, statements) * EXECUTED)
        for state, (_, address, _) in zip(states, tables):
            state.put(Block.COUNTERS, "Q", address)
        self._birth = self.image()

    def image(self, before: UnitImage | None = None) -> UnitImage:
        """What it is now."""
        return UnitImage(self.states, self.clusters, self.tables, before)

    def renew(self) -> None:
        """Be as it was when it was made."""
        self._birth.restore()

    def clear(self) -> None:
        """Nothing has been executed of the blocks that begin."""
        for view in self._views:
            view[: len(self._nothing)] = self._nothing

    def executed(self, state: BlockState, place: int, warp: int) -> int:
        """The lanes of a warp that have executed a statement."""
        at = place * EXECUTED + 4 * warp
        return int.from_bytes(self._views[self.states.index(state)][at : at + 4], "little")


@dataclass
class Group:
    """A block, or the blocks of a cluster, that run: in turns, where they wait for others."""

    number: int
    unit: Unit
    active: deque[BlockState] = field(default_factory=deque)


class Execution:
    """One launch, from its begin. ``state`` is the block that ran last."""

    def __init__(self, launch: LaunchState, code: Code, control: Control) -> None:
        self.launch, self.code, self.control = launch, code, control
        self.pool: ClusterPool | None = None
        self.count = launch.blocks
        if launch.spaces.cluster is not None:
            self.pool = ClusterPool(launch, code, lambda _: code, True)
            self.pool.schedule = None  # a seed draws the warps, and blocks have their turns in order
            x, y, z = self.pool.grid
            self.count = x * y * z
        self.groups: deque[Group] = deque()
        self.units: list[Unit] = []
        """All that were made so far, also after the moment that the launch has been taken back to."""
        self.free: list[Unit] = []
        """Those whose blocks have ended, in an order,"""
        self.spare: list[Unit] = []
        """and those that are as new."""
        self.next = 0
        self.quiescence = Quiescence(False)
        self.state: BlockState | None = None
        self.stopped = False
        """Whether it has stopped where it may run through another time, so that its warp goes on first."""
        launch.stop_clocks(True)  # compiled code sets them

    def advance(self) -> BlockState | None:
        """Run on to the next stop: the state that has stopped, None where the launch has ended. Raises faults."""
        while self.groups or self.next < self.count:
            if not self.groups:
                self._admit()
            group = self.groups[0]
            state = self.state = group.active[0]
            if self.stopped:
                state.put(Block.RESUMED, "Q", scheduler("resumed"))
            status = state.run(TIME_SLICE)
            self.stopped = status == Status.CALLBACK or _once(state, status)
            if status == Status.CALLBACK:
                return state
            if group.unit.clusters is None:
                self._answer(group, state, status)
            else:
                self._answer_cluster(group, group.unit.clusters, status)
        return None

    def _new_unit(self) -> Unit:
        """States for another block, or cluster."""
        if self.spare:
            return self.spare.pop(0)  # so that each block runs where it ran before
        if self.pool is None:
            state = BlockState(self.launch, self.code)
            state.own_blocks()
            unit = Unit([state], None, self.control.statements)
        else:
            clusters = Clusters(self.pool, 0)
            unit = Unit(clusters.states, clusters, self.control.statements)
        self.units.append(unit)
        return unit

    def _admit(self) -> None:
        """The next block, or cluster, begins."""
        unit = self.free.pop() if self.free else self._new_unit()
        number, self.next = self.next, self.next + 1
        unit.clear()
        if unit.clusters is None:
            unit.states[0].assign(number)
            unit.states[0].put(Block.BUDGET, "i", 0)  # what the block before has left of its slice
        else:
            assert self.pool is not None
            unit.clusters.number = self.pool.running[0] = number
            unit.clusters._begin(index_in(self.pool.grid, number))
            unit.clusters.quiescence = Quiescence(False)
        for state in unit.states:
            state.left = TIME_SLICE
        self.groups.appendleft(Group(number, unit, deque(unit.states)))

    def _answer(self, group: Group, state: BlockState, status: int) -> None:
        if status == Status.DONE:
            self.groups.popleft()
            self._end(group)
        elif status == Status.BLOCKED:
            raise deadlock(state)
        elif status != Status.YIELD:
            handle(state, status, lambda _: self.code)
        elif state.left <= 0:
            state.left = TIME_SLICE
            if state.has_pending:
                complete([state])
            self._turn()

    def _end(self, group: Group) -> None:
        if all(state.code is self.code for state in group.unit.states):
            self.free.append(group.unit)
        self._compare_later()

    def _turn(self) -> None:
        """The first block waits for others, perhaps: another one goes on, or begins."""
        self.groups.rotate(-1)
        if self.next < self.count and len(self.groups) * self.groups[0].active[0].nbytes < RESIDENT_BYTES:
            self._admit()
        elif self.quiescence.slice_over(len(self.groups)):
            states = [group.active[0] for group in self.groups]
            if complete(states):
                self._compare_later()
                return
            if self.quiescence.reached(digest(self.launch, states)):
                first = min(states, key=lambda state: state.block)
                if self.quiescence.certain(first.code):
                    raise livelock(first)
            self.control["STAMPS"] = not self.quiescence.stopped

    def _compare_later(self) -> None:
        self.quiescence = Quiescence(False)
        self.control["STAMPS"] = 1

    def _answer_cluster(self, group: Group, clusters: Clusters, status: int) -> None:
        clusters.answer(group.active, status)
        self.launch.stop_clocks(True)
        self.control["STAMPS"] = not clusters.quiescence.stopped
        if not group.active:
            self.groups.popleft()
            self._end(group)

    def unit_of(self, state: BlockState) -> Unit:
        """The unit that a state belongs to."""
        return next(group.unit for group in self.groups if state in group.unit.states)

    def running(self) -> list[BlockState]:
        """The states of blocks that run, by their numbers."""
        return sorted((state for group in self.groups for state in group.active), key=lambda state: state.block)


def _once(state: BlockState, status: int) -> bool:
    """Whether compiled code asks for what it asks for once in a process."""
    return status == Status.FAULT and state.get(Block.FAULT_KIND, "i") == Fault.PRODUCT_NEW
