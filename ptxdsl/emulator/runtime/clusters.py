"""Launches in clusters: the blocks of one run in turn on one host thread, each in a block state of its own.

An address of shared memory says in its upper bits which block of the cluster it is in, as on NVIDIA's hardware, so that
an address that one block has of its own memory means the same to the others. Each state's table has the memory of all.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..machine.layout import (
    SHARED_START, SHARED_WINDOW, SPACE_BITS, Block, Cluster, ClusterBlock, Entry, Launch, Status,
)
from .system_calls import serve
from ..machine.block_state import TURNS, LaunchState, State, allocate
from .worker_pool import LOOK, LOOKS, LOTS
from .deadlock import deadlock, livelock

if TYPE_CHECKING:
    from ..instructions.lowering import Code

__all__ = ["run_clusters", "window_entry"]

Shape3 = tuple[int, int, int]
TURN = 64
"""Turns of warps that wait, before the next block of the cluster has its turn."""


class _Clusters:
    """The states of one cluster, and what they share."""

    def __init__(self, launch: LaunchState, codes: Callable[[bool], Code]) -> None:
        self.launch, self.codes = launch, codes
        self.shape: Shape3 = launch.spaces.cluster or (1, 1, 1)
        self.size = self.shape[0] * self.shape[1] * self.shape[2]
        self.memory, self.address = allocate(Cluster.nbytes + self.size * ClusterBlock.nbytes)
        self.states = self._made(False) or self._made(True) or []

    def _made(self, conservative: bool) -> list[State] | None:
        """The states, with what does not change from block to block computed; None where it takes conservative code."""
        states = [State(self.launch, self.codes(conservative), rank) for rank in range(self.size)]
        self.launch.tool.connect(states)
        for state in states:
            _connect(state, states)
            state.counter, place = allocate(Launch.nbytes)
            ctypes.memmove(place, self.launch.address, Launch.nbytes)
            state.put(Block.GRID, "Q", place)
            state.put(Block.CLUSTER, "Q", self._part(state.rank))
            state.put(Block.RANK, "i", state.rank)
            state.put(Block.CLUSTER_CTAID, "iii", *_index(state.rank, self.shape))
            state.put(Block.NCLUSTERID, "iii", *self._grid())
            _order(state, 0, 0)
            status: int = Status.YIELD
            while status == Status.YIELD:
                state.left = TURNS
                status = state.run()
            if status == Status.DEOPT:
                return None
        return states

    def _part(self, rank: int) -> int:
        return self.address + Cluster.nbytes + rank * ClusterBlock.nbytes

    def _grid(self) -> Shape3:
        x, y, z = (whole // part for whole, part in zip(self.launch.config.grid, self.shape))
        return x, y, z

    def run(self) -> None:
        """Run all clusters."""
        x, y, z = self._grid()
        for number in range(x * y * z):
            self._begin(_index(number, (x, y, z)))
            self._run()

    def _begin(self, index: Shape3) -> None:
        """Make all states ready for the blocks of a cluster."""
        gx, gy, _ = self.launch.config.grid
        threads = self.launch.config.threads * self.size
        ctypes.memset(self.address, 0, Cluster.nbytes + self.size * ClusterBlock.nbytes)
        head = struct.pack("<iiiI", 0, 0, threads, (1 << self.size) - 1)
        ctypes.memmove(self.address, head, len(head))
        self.launch.tool.begin_cluster(self.states)
        for state in self.states:
            ctypes.memmove(self._part(state.rank), struct.pack("<QQ", state.address, self.address), 16)
            bx, by, bz = (
                which * extent + own for which, extent, own in zip(index, self.shape, _index(state.rank, self.shape))
            )
            number = bx + gx * (by + gy * bz)
            _order(state, number, number + 1)
            state.put(Block.CLUSTERID, "iii", *index)
            for other in self.states:
                _reach(state, other, self.launch.shared_bytes)

    def _run(self) -> None:
        """Run the blocks of one cluster to their ends, in turns."""
        active = deque(self.states)
        self.turns, self.rounds, self.look, self.seen, self.same = 0, 0, LOOK, b"", 0
        for state in active:
            state.left = TURN
        while active:
            state = active[0]
            self.launch.tool.switch(state)
            status = state.run(TURN)
            if status == Status.DONE:
                active.popleft()
                for other in active:
                    _reach(other, state, 0)
                self.turns = self.rounds = 0
            elif status == Status.STUCK:
                if not self._waits(state) or not any(map(_can_run, active)):
                    raise deadlock(state)
                active.rotate(-1)
            elif status == Status.YIELD:
                if state.left > 0:
                    continue
                state.left = TURN
                active.rotate(-1)
                self._turn(active)
            else:
                self._answer(state, status)

    def _turn(self, active: deque[State]) -> None:
        """A state's turn is over; after some rounds without the end of a block see whether anything changes at all."""
        self.turns += 1
        if self.turns < len(active):
            return
        self.turns, self.rounds = 0, self.rounds + 1
        if self.rounds < self.look:
            return
        now = self._digest(active)
        self.same = self.same + 1 if now == self.seen else 0
        if self.same >= (1 if self.launch.config.seed is None else LOTS):
            self._stuck(active)
        self.seen = now
        if self.rounds >= self.look + LOOKS and not self.same:
            self.look = 2 * self.rounds

    def _answer(self, state: State, status: int) -> None:
        from .launch import gone_on, without_order

        if status == Status.FAULT:
            gone_on(state, self.codes)
        elif status == Status.DEOPT:
            without_order(state, self.codes(True))
        elif status == Status.SERVICE:
            serve(state)
        else:
            self.launch.tool.callback(state)

    def _waits(self, state: State) -> bool:
        """Whether some warp of a block waits for other blocks."""
        waiting: int = struct.unpack("<I", ctypes.string_at(self._part(state.rank) + ClusterBlock.WAITING, 4))[0]
        return waiting != 0

    def _stuck(self, active: deque[State]) -> None:
        """Nothing changes any more; in conservative code it might."""
        from .launch import without_order

        ordered = [state for state in active if not state.code.conservative]
        for state in ordered:
            without_order(state, self.codes(True))
        if not ordered:
            raise livelock(next(state for state in active if state.get(Block.RUNNABLE, "I")))

    def _digest(self, active: deque[State]) -> bytes:
        from hashlib import blake2b

        digest = blake2b(digest_size=16)
        for state in self.states:
            if state in active:
                state.digest(digest)
        self.launch.digest(digest)
        digest.update(self.memory)
        return digest.digest()


def run_clusters(launch: LaunchState, codes: Callable[[bool], Code]) -> None:
    """Run all blocks of a launch in clusters; ``codes(conservative)`` gives the kernel's records."""
    _Clusters(launch, codes).run()


def _index(number: int, extents: Shape3) -> Shape3:
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


def _can_run(state: State) -> bool:
    """Whether a block has not begun, or has warps that can go on."""
    return state.between_blocks or bool(state.get(Block.RUNNABLE, "I"))


def _order(state: State, first: int, end: int) -> None:
    """Let a state take the blocks from one number to another."""
    place = state.get(Block.GRID, "Q")
    ctypes.memmove(place + Launch.NEXT, struct.pack("<qq", first, end), 16)


def window_entry(state: State, rank: int, generic: int) -> int:
    """Address of the entry of a state's buffer table for the shared memory of a block of the cluster."""
    return state.table + (len(state.launch.ranges) + 2 * rank + generic) * Entry.nbytes


def _connect(state: State, states: list[State]) -> None:
    """Give a state the shared memory of all blocks of its cluster, for addresses of which no variable is known."""
    for (number, other), generic in itertools.product(enumerate(states), (0, 1)):
        window = generic * SHARED_WINDOW + (other.rank << Cluster.RANK_BITS)
        reach = SPACE_BITS["generic" if generic else "shared"]
        size = state.launch.shared_bytes
        entry = struct.pack("<QqqqI", window + SHARED_START, size, size, other.shared - SHARED_START - window, reach)
        ctypes.memmove(window_entry(state, number, generic), entry, len(entry))
    state.put(Block.ENTRIES, "i", len(state.launch.ranges) + 2 * len(states))


def _reach(state: State, other: State, nbytes: int) -> None:
    """How much of another block's shared memory a block may touch: nothing once that has ended."""
    for generic in (0, 1):
        place = window_entry(state, other.rank, generic)
        ctypes.memmove(place + Entry.SIZE, struct.pack("<qq", nbytes, nbytes), 16)
