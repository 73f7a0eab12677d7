"""Launches in clusters: the blocks of one share the time of one host thread, each in a block state.

Several host threads run a cluster each, where compiled code has enough to do.

An address of shared memory says in its upper bits which block of the cluster it is in, as on NVIDIA's hardware, so that
an address means the same to all blocks. Each state's table has the memory of all.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from time import perf_counter

from ..codegen.code import Code
from ..codegen.host import cores
from ..jit.tier_up import note_time
from ..machine.allocation import allocate, copy_bytes
from ..machine.layout import (
    SHARED_START, SHARED_WINDOW, SPACE_BITS, Block, Cluster, ClusterBlock, Entry, Status,
)
from . import block_state, host_threads, worker_pool
from .block_state import BlockState, LaunchState
from .deoptimise import note_wrap
from .events import deadlock, deoptimise, handle, livelock
from .faults import index_in
from .seeded_schedule import SeededSchedule
from .quiescence import Quiescence, digest

__all__ = ["ClusterPool", "window_entry"]

Shape3 = tuple[int, int, int]
TIME_SLICE = 64
"""What a block of a cluster may use of its budget before the next one has its time slice."""
_HEAD, _LINKS = Cluster.span("PHASE", "BLOCKS"), ClusterBlock.span("BLOCK", "HEAD")
_ENTRY = Entry.span("LOW", "SPACES")
_CLOSED = Entry.span("SIZE", "WRITABLE").pack(0, 0)
FAST = 0.5
"""The share of a launch's time that compiled code has to take for a second host thread to be of use."""


class ClusterPool:
    """A launch in clusters: the host threads that run them, each one cluster after the other.

    Clusters are independent of each other, but for what they do to global memory. A cluster may wait there for what an
    earlier one does, and for no later one: so only the first of those that run is asked whether it waits for ever.
    """

    def __init__(self, launch: LaunchState, codes: Callable[[bool], Code], alone: bool) -> None:
        self.launch = launch
        self.mutex = threading.RLock()
        """For all that is not done by compiled code, and is more than a cluster's own."""
        self.changed = threading.Condition(self.mutex)
        self.codes = codes
        shape = launch.spaces.cluster or (1, 1, 1)
        x, y, z = (whole // part for whole, part in zip(launch.config.grid, shape))
        self.grid: Shape3 = (x, y, z)
        self.schedule = SeededSchedule(launch) if launch.config.seed is not None else None
        order = list(range(x * y * z))
        self.left = deque(order if self.schedule is None else self.schedule.shuffled(len(order)))
        self.alone = alone or self.schedule is not None or codes(False).prints or len(order) == 1
        self.running: dict[int, int] = {}
        """The cluster that each worker runs."""
        self.fault: tuple[int, BaseException] | None = None
        self.woken, self.done, self.compiled, self.begun = 0, 0, 0.0, perf_counter()

    def run(self) -> None:
        """Run all clusters; raises what went wrong in the first of them that fails."""
        self._work(0)
        with self.changed:
            while self.running:  # also if interrupted: they use the launch's memory
                try:
                    self.changed.wait()
                except KeyboardInterrupt as error:  # noqa: PERF203
                    self._fail(-1, error)
        fault, self.fault = self.fault, None  # an error holds this frame, and so must not be held by it
        try:
            if fault is not None:
                raise fault[1]
        finally:
            fault = None

    def _work(self, worker: int) -> None:
        clusters: Clusters | None = None
        while (number := self._take(worker)) is not None:
            try:
                clusters = clusters or Clusters(self)
                clusters.run(number)
            except BaseException as error:  # noqa: BLE001, PERF203 - the caller of the launch gets it
                self._fail(number if isinstance(error, Exception) else -1, error)
            finally:
                self._end(worker)

    def _take(self, worker: int) -> int | None:
        with self.mutex:
            if self.fault is not None or not self.left:
                return None
            number = self.running[worker] = self.left.popleft()
            return number

    def _end(self, worker: int) -> None:
        with self.changed:
            self.running.pop(worker, None)
            self.done += 1
            self.changed.notify_all()
            self._wake()

    def _wake(self) -> None:
        """Start another worker where enough is left for compiled code to do: Python's part is done by one at a time."""
        left = len(self.left) * self.compiled / self.done
        fast = self.compiled > FAST * (perf_counter() - self.begun)
        worth = left >= 2 * worker_pool.WAKE_SECONDS * (self.woken + 1)
        if self.alone or not fast or not worth or self.woken + 1 >= cores():
            return
        self.launch.locks = True
        try:
            host_threads.start(partial(copy_context().run, self._work, self.woken + 1))
            self.woken += 1
        except RuntimeError:  # Python ends, or there are too many threads
            self.alone = True

    def _fail(self, number: int, error: BaseException) -> None:
        with self.mutex:
            if self.fault is None or number < self.fault[0]:
                self.fault = number, error

    def cancelled(self, number: int) -> bool:
        """Whether a cluster need not go on, since an earlier one has failed."""
        return self.fault is not None and number > self.fault[0]

    def first(self, number: int) -> bool:
        """Whether no earlier cluster runs, for which this one might wait."""
        with self.mutex:
            return self.schedule is not None or number <= min(self.running.values())


class Clusters:
    """What one host thread runs clusters in: the states of one at a time, and what they share."""

    def __init__(self, pool: ClusterPool) -> None:
        self.pool, self.launch, self.codes, self.schedule = pool, pool.launch, pool.codes, pool.schedule
        self.random = self.schedule is not None
        self.number = 0
        self.shape: Shape3 = self.launch.spaces.cluster or (1, 1, 1)
        self.size = self.shape[0] * self.shape[1] * self.shape[2]
        self.memory, self.address, _ = allocate(Cluster.nbytes + self.size * ClusterBlock.nbytes)
        with pool.mutex:
            self.states = self._make_states(False) or self._make_states(True) or []
        self.windows = [window_entry(state, 0, 0) for state in self.states]
        """Of each state, its entries for the shared memory of all blocks, and what they are while all blocks run."""
        self.opened = [ctypes.string_at(place, 2 * self.size * Entry.nbytes) for place in self.windows]

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
            state.put(Block.NCLUSTERID, "iii", *self.pool.grid)
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

    def run(self, number: int) -> None:
        """Run a cluster."""
        self.number = number
        self._begin(index_in(self.pool.grid, number))
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
            opened = self.opened[state.rank]
            copy_bytes(self.windows[state.rank], opened, len(opened))

    def _run(self) -> None:
        """Run the blocks of one cluster to their ends, a time slice each."""
        active = deque(self.states)
        self.quiescence = Quiescence(self.random)
        for state in active:
            state.left = TIME_SLICE
        if self.schedule is not None:
            self._turn(active)
        while active and not self.pool.cancelled(self.number):
            state = active[0]
            self.launch.tool.switch(state)
            start = perf_counter()
            status = state.run(TIME_SLICE)
            spent = perf_counter() - start
            self.pool.compiled += spent
            note_time(state.code, spent)
            if status == Status.DONE:
                active.popleft()
                if self.schedule is not None:
                    self._turn(active)
                for other in active:
                    self._close(other, state)
                self.quiescence = Quiescence(self.random)
                self.launch.stop_clocks(False)
            elif status == Status.BLOCKED:
                if not self._waits(state) or not any(s.between_blocks or s.get(Block.RUNNABLE, "I") for s in active):
                    raise deadlock(state)
                self._turn(active)
            elif status != Status.YIELD:
                with self.pool.mutex:
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
        if not self.pool.first(self.number):
            self.quiescence = Quiescence(self.random)
            return
        reached = self.quiescence.reached(digest(self.launch, active, self.memory.tobytes()))
        if reached:
            self._quiescent(active)
        self.launch.stop_clocks(self.quiescence.stopped)

    def _quiescent(self, active: deque[BlockState]) -> None:
        """Resume in conservative code where nothing changes any more: there it might."""
        ordered = [state for state in active if not state.code.conservative]
        with self.pool.mutex:
            for state in ordered:
                deoptimise(state, self.codes(True))
        if ordered:
            self.quiescence = Quiescence(self.random)
            return
        first = next(state for state in active if state.get(Block.RUNNABLE, "I"))
        if self.quiescence.certain(first.code):
            raise livelock(first)

    def _close(self, state: BlockState, other: BlockState) -> None:
        """Take another block's shared memory, which has ended, from what a block may access."""
        place = self.windows[state.rank] + 2 * other.rank * Entry.nbytes + Entry.SIZE
        copy_bytes(place, _CLOSED, len(_CLOSED))
        copy_bytes(place + Entry.nbytes, _CLOSED, len(_CLOSED))

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
