"""Launches in clusters: the blocks of one share the time of one host thread, each in a block state.

Several host threads run a cluster each, where compiled code has enough to do (:mod:`.cluster_pool`). Where nothing has
to happen between the turns of blocks, compiled code goes from block to block and from cluster to cluster
(:mod:`.codegen.cluster_schedule`); Python goes on with a cluster in which something else than an end or a wait comes
up.

An address of shared memory says in its upper bits which block of the cluster it is in, as on NVIDIA's hardware, so that
an address means the same to all blocks. Each state's table has the memory of all.
"""

from __future__ import annotations

import ctypes
import itertools
from collections import deque
from time import perf_counter

from ..codegen.code import Code
from ..jit.tier_up import note_time
from ..machine.allocation import allocate, copy_bytes
from ..machine.layout import SHARED_START, SHARED_WINDOW, SPACE_BITS, Block, Cluster, ClusterBlock, ClusterRun, Entry
from ..machine.tensor_memory import TensorMemory
from ..machine.status import Status
from . import block_state, late_search
from .alone import ALONE
from .block_state import BlockState, compiled, scheduler
from .cluster_work import ClusterWork
from .deoptimise import note_wrap
from .events import complete, deadlock, deoptimise, handle, livelock
from .faults import index_in
from .quiescence import Quiescence, digest

__all__ = ["Clusters", "window_entry"]

Shape3 = tuple[int, int, int]
TIME_SLICE = 64
"""What a block of a cluster may use of its budget before the next one has its time slice."""
TURNS = 1 << 12
"""Turns of blocks after which it returns in any case."""
_HEAD, _LINKS = Cluster.span("PHASE", "BLOCKS"), ClusterBlock.span("BLOCK", "HEAD")
_ENTRY = Entry.span("LOW", "SPACES")
_RUN = ClusterRun.span("HEAD", "SLICE")
_PAIR = TensorMemory.span("PEER", "PEER_OPEN")
_NEXT = ClusterRun.span("RETURNED", "TURNS")
_LOCKS = Block.span("EXITS", "LOCKS")
_FUNCTION = Block.span("FUNCTION", "FUNCTION")
_CLOSED = Entry.span("SIZE", "WRITABLE").pack(0, 0)
_APART = 1024
"""What the block states of a cluster are aligned to: bulk copies of tensors want that of shared memory."""
MOST_KEPT = 1 << 20
"""Bytes of the block states of a cluster that are kept from launch to launch."""


class Clusters:
    """What one host thread runs clusters in: the states of one at a time, and what they share."""

    def __init__(self, pool: ClusterWork, worker: int) -> None:
        self._serve(pool, worker)
        self.number, self.quiescence = 0, Quiescence(self.random)
        self.shape: Shape3 = self.launch.spaces.cluster or (1, 1, 1)
        self.size = self.shape[0] * self.shape[1] * self.shape[2]
        self.memory, self.address, _ = allocate(Cluster.nbytes + self.size * ClusterBlock.nbytes)
        with pool.mutex:
            self.states = self._make_states(False) or self._make_states(True) or []
        self.windows = [window_entry(state, 0, 0) for state in self.states]
        """Of each state, its entries for the shared memory of all blocks, and what they are while all blocks run."""
        self.opened = [ctypes.string_at(place, 2 * self.size * Entry.nbytes) for place in self.windows]
        self.run_memory, self.run_address, self.run_view = allocate(ClusterRun.nbytes)
        if pool.plain:
            for state in self.states:
                self._link(state)
            _RUN.pack_into(
                self.run_view, 0, self.address, scheduler("run"), self.windows[0] - self.states[0].table,
                self.launch.shared_bytes, *pool.grid, *self.shape, self.launch.config.threads * self.size,
                (1 << self.size) - 1, TIME_SLICE,
            )

    def _serve(self, pool: ClusterWork, worker: int) -> None:
        self.pool, self.launch, self.codes, self.schedule = pool, pool.launch, pool.codes, pool.schedule
        self.worker, self.random = worker, self.schedule is not None

    def keep(self) -> None:
        """Stay with the launch for the next one of its shape, where all went the usual way."""
        states, launch, code = self.states, self.launch, self.pool.code
        usual = self.pool.plain and launch.tool.keeps and all(state.code is code for state in states)
        if usual and sum(state.nbytes for state in states) <= MOST_KEPT:
            launch.clusters = self
            del self.pool, self.launch, self.codes, self.schedule

    def take_up(self, pool: ClusterWork, worker: int) -> bool:
        """Be as new for another launch; False where that takes more.

        What does not change from block to block is computed in the first turn of each state, before its first block: a
        call for that alone takes longer than the rest. Where a register wraps around there, which it did not for other
        arguments, the state goes on in conservative code.
        """
        if not pool.plain or any(state.code is not pool.code for state in self.states):
            return False
        self._serve(pool, worker)
        for state in self.states:
            state.begin()
        self.launch.tool.again(self.states)
        return True

    def _make_states(self, conservative: bool) -> list[BlockState] | None:
        """The states, with what does not change from block to block computed; None where it takes conservative code."""
        code = self.codes(True) if conservative else self.pool.code
        pitch = -(-block_state.state_bytes(self.launch) // _APART) * _APART
        memory = allocate(self.size * pitch, _APART)
        states = [
            BlockState(self.launch, code, rank, (memory[0], memory[1] + rank * pitch, memory[2][rank * pitch :]))
            for rank in range(self.size)
        ]
        self.launch.tool.connect(states)
        for state in states:
            _connect(state, states)
            state.own_blocks()
            state.put(Block.CLUSTER, "Q", self._block_part(state.rank))
            state.put(Block.RANK, "i", state.rank)
            state.put(Block.CLUSTER_CTAID, "iii", *index_in(self.shape, state.rank))
            state.put(Block.NCLUSTERID, "iii", *self.pool.grid)
            first, window = states[0].shared - SHARED_START, self.launch.spaces.memory.shared_window
            state.put(Block.CLUSTER_FIRST, "QQQQ", first, pitch, 0, window)
            if not self._run_prologue(state):
                return None
        return states

    def _run_prologue(self, state: BlockState) -> bool:
        """Compute what does not change from block to block; whether the code can do that."""
        state.assign(0, 0)
        status: int = Status.YIELD
        while status == Status.YIELD:
            state.left = block_state.TIME_SLICE
            status = state.run()
        if status == Status.DEOPT:
            note_wrap(state)
            return False
        return True

    def _block_part(self, rank: int) -> int:
        return self.address + Cluster.nbytes + rank * ClusterBlock.nbytes

    def run(self, first: int, count: int) -> None:
        """Run so many clusters from one on."""
        if self.pool.plain:
            self._run_ahead(first, first + count)
            return
        for number in range(first, first + count):
            self.number = number
            self._begin(index_in(self.pool.grid, number))
            self._run(deque(self.states))

    def _run_ahead(self, number: int, end: int) -> None:
        """Run the clusters before ``end`` from one on, in compiled code as far as it goes."""
        left = current = 0
        while number < end and not self.pool.cancelled(number):
            _NEXT.pack_into(self.run_view, ClusterRun.RETURNED, 0, number, end, left, current, TURNS)
            self._call()
            late_search.raise_pending()
            returned, number, _, left, current, _ = _NEXT.unpack_from(self.run_view, ClusterRun.RETURNED)
            self.launch.tool.entered(self.states[current])
            self.number = self.pool.running[self.worker] = min(number, end - 1)
            if returned:
                order = [*self.states[current:], *self.states[:current]]
                active = deque(state for state in order if left >> state.rank & 1)
                self._run(active, active[0].get(Block.STATUS, "i"))
                number, left, current = number + 1, 0, 0

    def _call(self) -> None:
        """Call the compiled scheduler of clusters."""
        launch, function = self.launch, compiled(scheduler("clusters"))
        for state in self.states:
            state.left = 0
            _FUNCTION.pack_into(state._view, Block.FUNCTION, state.code.block_function)
        start = perf_counter()
        if launch.locks:
            self._note_locks(True)
            function(None, None, self.run_address)
        else:
            with ALONE:
                self._note_locks(launch.locks)
                function(None, None, self.run_address)
        self._note_spent(self.states[0].code, perf_counter() - start)
        for state in self.states:
            exits, _ = _LOCKS.unpack_from(state._view, Block.EXITS)
            if exits:
                state.code.note_exits(exits, state.get(Block.EXIT_PC, "Q"))

    def _note_locks(self, locks: bool) -> None:
        for state in self.states:
            _LOCKS.pack_into(state._view, Block.EXITS, 0, locks)

    def _note_spent(self, code: Code, seconds: float) -> None:
        self.pool.compiled += seconds
        note_time(code, seconds)

    def _link(self, state: BlockState) -> None:
        copy_bytes(self._block_part(state.rank), _LINKS.pack(state.address, self.address), _LINKS.size)

    def _begin(self, index: Shape3) -> None:
        """Make all states ready for the blocks of a cluster."""
        gx, gy, _ = self.launch.config.grid
        threads = self.launch.config.threads * self.size
        ctypes.memset(self.address, 0, Cluster.nbytes + self.size * ClusterBlock.nbytes)
        copy_bytes(self.address, _HEAD.pack(0, 0, threads, (1 << self.size) - 1), _HEAD.size)
        self.launch.tool.begin_cluster(self.states)
        for state in self.states:
            self._link(state)
            bx, by, bz = (
                which * extent + at for which, extent, at in zip(index, self.shape, index_in(self.shape, state.rank))
            )
            number = bx + gx * (by + gy * bz)
            state.assign(number)
            state.put(Block.CLUSTERID, "iii", *index)
            opened = self.opened[state.rank]
            copy_bytes(self.windows[state.rank], opened, len(opened))
            state.put(Block.CLUSTER_OPEN, "Q", self.launch.shared_bytes)

    def _run(self, active: deque[BlockState], status: int = Status.RUNNING) -> None:
        """Run the blocks of one cluster to their ends, a time slice each.

        ``status``: what the first of them has returned with, if it has not been answered.
        """
        self.quiescence = Quiescence(self.random)
        for state in active if status == Status.RUNNING else ():
            state.left = TIME_SLICE
        if self.schedule is not None:
            self._turn(active)
        while active and not self.pool.cancelled(self.number):
            state = active[0]
            if status == Status.RUNNING:
                self.launch.tool.switch(state)
                start = perf_counter()
                status = state.run(TIME_SLICE)
                self._note_spent(state.code, perf_counter() - start)
            self.answer(active, status)
            status = Status.RUNNING

    def answer(self, active: deque[BlockState], status: int) -> None:
        """Do what the first of the blocks that run asks for, which has returned with a status; another may be first."""
        state = active[0]
        if status == Status.DONE:
            self._end(active)
        elif status == Status.BLOCKED:
            if not self._waits(state) or not any(s.between_blocks or s.get(Block.RUNNABLE, "I") for s in active):
                raise deadlock(state, active)
            self._turn(active)
        elif status != Status.YIELD:
            with self.pool.mutex:
                handle(state, status, self.codes)
        elif state.left <= 0:
            state.left = TIME_SLICE
            if self.schedule is None and state.has_pending:
                complete([state])
            self._turn(active)
            if self.quiescence.slice_over(len(active)):
                self._compare(active)

    def _end(self, active: deque[BlockState]) -> None:
        """The first block has ended."""
        state = active.popleft()
        self.launch.tool.ended(state)
        if self.schedule is not None:
            self._turn(active)
        for other in active:
            self._close(other, state)
        self.quiescence = Quiescence(self.random)
        self.launch.stop_clocks(False)

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
        if complete(active):
            self.quiescence = Quiescence(self.random)
            self.launch.stop_clocks(False)
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
            raise livelock(first, active)

    def _close(self, state: BlockState, other: BlockState) -> None:
        """Take another block's shared memory, which has ended, from what a block may access."""
        place = self.windows[state.rank] + 2 * other.rank * Entry.nbytes + Entry.SIZE
        copy_bytes(place, _CLOSED, len(_CLOSED))
        copy_bytes(place + Entry.nbytes, _CLOSED, len(_CLOSED))
        state.put(Block.CLUSTER_OPEN, "Q", 0)

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
    if state.tensor and state.rank ^ 1 < len(states):
        peer = states[state.rank ^ 1]
        opened = window_entry(state, peer.rank, 0) + Entry.SIZE
        copy_bytes(state.tensor + TensorMemory.PEER, _PAIR.pack(peer.tensor, peer.address, opened), _PAIR.size)
