"""Launches in clusters: the blocks of one share the time of one host thread, each in a block state.

An address of shared memory says in its upper bits which block of the cluster it is in, as on NVIDIA's hardware, so that
an address means the same to all blocks. Each state's table has the memory of all.
"""

from __future__ import annotations

import ctypes
import itertools
from collections import deque
from collections.abc import Callable

from ..codegen.code import Code
from ..machine.allocation import allocate, copy_bytes
from ..machine.layout import (
    SHARED_START, SHARED_WINDOW, SPACE_BITS, Block, Cluster, ClusterBlock, Entry, Status,
)
from . import block_state
from .block_state import BlockState, LaunchState
from .deoptimise import note_wrap
from .events import deadlock, deoptimise, handle, livelock
from .faults import index_in
from .seeded_schedule import SeededSchedule
from .quiescence import Quiescence, digest

__all__ = ["Clusters", "window_entry"]

Shape3 = tuple[int, int, int]
TIME_SLICE = 64
"""What a block of a cluster may use of its budget before the next one has its time slice."""
_HEAD, _LINKS = Cluster.span("PHASE", "BLOCKS"), ClusterBlock.span("BLOCK", "HEAD")
_ENTRY, _SIZES = Entry.span("LOW", "SPACES"), Entry.span("SIZE", "WRITABLE")


class Clusters:
    """A launch in clusters: the states of one cluster, and what they share. ``codes`` gives the kernel's micro-ops."""

    def __init__(self, launch: LaunchState, codes: Callable[[bool], Code]) -> None:
        self.launch, self.codes = launch, codes
        self.random = launch.config.seed is not None
        self.schedule = SeededSchedule(launch) if self.random else None
        self.shape: Shape3 = launch.spaces.cluster or (1, 1, 1)
        self.size = self.shape[0] * self.shape[1] * self.shape[2]
        self.memory, self.address, _ = allocate(Cluster.nbytes + self.size * ClusterBlock.nbytes)
        self.states = self._make_states(False) or self._make_states(True) or []

    def _make_states(self, conservative: bool) -> list[BlockState] | None:
        """The states, with what does not change from block to block computed; None where it takes conservative code."""
        states = [BlockState(self.launch, self.codes(conservative), rank) for rank in range(self.size)]
        self.launch.tool.connect(states)
        for state in states:
            _connect(state, states)
            state.own_blocks()
            state.put(Block.CLUSTER, "Q", self._block_part(state.rank))
            state.put(Block.RANK, "i", state.rank)
            state.put(Block.CLUSTER_CTAID, "iii", *index_in(self.shape, state.rank))
            state.put(Block.NCLUSTERID, "iii", *self._grid())
            state.assign(0, 0)
            status: int = Status.YIELD
            while status == Status.YIELD:
                state.left = block_state.TIME_SLICE
                status = state.run()
            if status == Status.DEOPT:
                note_wrap(state)
                return None
        return states

    def _block_part(self, rank: int) -> int:
        return self.address + Cluster.nbytes + rank * ClusterBlock.nbytes

    def _grid(self) -> Shape3:
        x, y, z = (whole // part for whole, part in zip(self.launch.config.grid, self.shape))
        return x, y, z

    def run(self) -> None:
        """Run all clusters."""
        x, y, z = self._grid()
        order = list(range(x * y * z))
        if self.schedule is not None:
            order = self.schedule.shuffled(len(order))
        for number in order:
            self._begin(index_in((x, y, z), number))
            self._run()

    def _begin(self, index: Shape3) -> None:
        """Make all states ready for the blocks of a cluster."""
        gx, gy, _ = self.launch.config.grid
        threads = self.launch.config.threads * self.size
        ctypes.memset(self.address, 0, Cluster.nbytes + self.size * ClusterBlock.nbytes)
        copy_bytes(self.address, _HEAD.pack(0, 0, threads, (1 << self.size) - 1), _HEAD.size)
        self.launch.tool.begin_cluster(self.states)
        for state in self.states:
            copy_bytes(self._block_part(state.rank), _LINKS.pack(state.address, self.address), _LINKS.size)
            bx, by, bz = (
                which * extent + at for which, extent, at in zip(index, self.shape, index_in(self.shape, state.rank))
            )
            number = bx + gx * (by + gy * bz)
            state.assign(number)
            state.put(Block.CLUSTERID, "iii", *index)
            for other in self.states:
                _set_window(state, other, self.launch.shared_bytes)

    def _run(self) -> None:
        """Run the blocks of one cluster to their ends, a time slice each."""
        active = deque(self.states)
        self.quiescence = Quiescence(self.random)
        for state in active:
            state.left = TIME_SLICE
        if self.schedule is not None:
            self._turn(active)
        while active:
            state = active[0]
            self.launch.tool.switch(state)
            status = state.run(TIME_SLICE)
            if status == Status.DONE:
                active.popleft()
                if self.schedule is not None:
                    self._turn(active)
                for other in active:
                    _set_window(other, state, 0)
                self.quiescence = Quiescence(self.random)
                self.launch.stop_clocks(False)
            elif status == Status.BLOCKED:
                if not self._waits(state) or not any(s.between_blocks or s.get(Block.RUNNABLE, "I") for s in active):
                    raise deadlock(state)
                self._turn(active)
            elif status != Status.YIELD:
                handle(state, status, self.codes)
            elif state.left <= 0:
                state.left = TIME_SLICE
                self._turn(active)
                if self.quiescence.slice_over(len(active)):
                    self._compare(active)

    def _turn(self, active: deque[BlockState]) -> None:
        """Another block is next."""
        if self.schedule is None:
            active.rotate(-1)
        elif active:
            self.schedule.draw(active)

    def _compare(self, active: deque[BlockState]) -> None:
        """Compare the memory with what it was some rounds ago, or remember it."""
        reached = self.quiescence.reached(digest(self.launch, active, self.memory.tobytes()))
        if reached:
            self._quiescent(active)
        self.launch.stop_clocks(self.quiescence.stopped)

    def _quiescent(self, active: deque[BlockState]) -> None:
        """Resume in conservative code where nothing changes any more: there it might."""
        ordered = [state for state in active if not state.code.conservative]
        for state in ordered:
            deoptimise(state, self.codes(True))
        if ordered:
            self.quiescence = Quiescence(self.random)
            return
        first = next(state for state in active if state.get(Block.RUNNABLE, "I"))
        if self.quiescence.certain(first.code):
            raise livelock(first)

    def _waits(self, state: BlockState) -> bool:
        """Whether some warp of a block waits for other blocks."""
        return any(ctypes.string_at(self._block_part(state.rank) + ClusterBlock.WAITING, 4))


def window_entry(state: BlockState, rank: int, generic: int) -> int:
    """Address of the entry of a state's buffer table for the shared memory of a block of the cluster."""
    return state.table + (len(state.launch.ranges) + 2 * rank + generic) * Entry.nbytes


def _connect(state: BlockState, states: list[BlockState]) -> None:
    """Give a state the shared memory of all blocks of its cluster, for addresses of which no variable is known."""
    for (number, other), generic in itertools.product(enumerate(states), (0, 1)):
        window = generic * SHARED_WINDOW + (other.rank << Cluster.RANK_BITS)
        reach = SPACE_BITS["generic" if generic else "shared"]
        size = state.launch.shared_bytes
        entry = _ENTRY.pack(window + SHARED_START, size, size, other.shared - SHARED_START - window, reach)
        copy_bytes(window_entry(state, number, generic), entry, len(entry))
    state.put(Block.ENTRIES, "i", len(state.launch.ranges) + 2 * len(states))


def _set_window(state: BlockState, other: BlockState, nbytes: int) -> None:
    """Set how much of another block's shared memory a block may access: nothing once that has ended."""
    for generic in (0, 1):
        place = window_entry(state, other.rank, generic)
        copy_bytes(place + Entry.SIZE, _SIZES.pack(nbytes, nbytes), _SIZES.size)
