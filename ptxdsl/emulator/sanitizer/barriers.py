"""Happens-before by barriers that compiled code does not count: of some warps or lanes, of a cluster, and mbarriers.

Threads that arrive at an mbarrier release their clocks to those that find that phase complete. Transactions count as
arrivals here, since they stand for the stores of the thread before them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...ir import Instruction
from ..machine.allocation import number_at
from ..machine.layout import LANES, Block, Cluster, ClusterBlock, Mbarrier, Warp
from ..machine.shadow import EPOCH_SHIFT, POLL, Reason, WarpClock, statement_bits
from ..rewrite.builder import CommitArrival
from ..runtime.block_state import BlockState
from .accesses import counts_bytes, operand_value
from .async_accesses import Completion
from .async_events import AsyncEvents
from .clocks import Clocks
from .happens_before import BlockOrder, Clock, Published, Rendezvous, Thread, acquirable, covers, join, publish
from .report import Reporter

__all__ = ["Barriers", "charge_poll"]

def charge_poll(state: BlockState) -> None:
    """Shorten the time slice of a block whose thread reads what others write."""
    state.put(Block.BUDGET, "i", state.get(Block.BUDGET, "i") - POLL)


@dataclass
class _Mbarrier:
    """Clocks of an mbarrier: released in its current phase, and acquired by a wait for the phases before.

    ``initialiser`` is the shadow word of the initialisation.
    """

    parity: int
    initialiser: int = 0
    unfenced: int = 0
    """The same, until a copy of another block has been found to be fenced."""
    completion: Completion = field(default_factory=lambda: Completion(0))
    users: set[tuple[int, Thread]] = field(default_factory=set)
    """Those for which it is known whether they come after the initialisation."""
    joined: tuple[Clock, Any, int, Clock] | None = None
    """The last that a thread has acquired: its clock before, what was released, the scope, its clock behind."""
    released: tuple[Clock, BlockOrder, int] | None = None
    """What was released last in this phase, by a thread of which block, and how far."""
    pending: Published = field(default_factory=dict)
    complete: Published = field(default_factory=dict)

    def update(self, parity: int) -> None:
        """Its current phase has this parity."""
        if parity != self.parity:
            self.completion.advance()
            complete = dict(self.complete)
            BlockOrder.join_into(complete, self.pending)
            self.parity, self.complete, self.pending, self.released = parity, complete, {}, None

    def release(self, block: BlockOrder, level: int, acquired: Clock, own: Clock) -> None:
        """A thread arrives: what it has acquired, which most threads share and is joined once, and its own clock."""
        last = self.released
        if last is None or last[0] is not acquired or last[1] is not block or last[2] != level:
            self.released = acquired, block, level
            publish(self.pending, block, level, acquired)
            self.pending = {key: dict(clock) for key, clock in self.pending.items()}  # no clock of another's
        for clock in acquirable(self.pending, block, level):
            clock.update([(key, epoch) for key, epoch in own.items() if clock.get(key, 0) < epoch])


class Barriers:
    """The clocks of all barriers of a launch."""

    def __init__(self, clocks: Clocks, reporter: Reporter) -> None:
        self.clocks, self.reporter = clocks, reporter
        self._mbarriers: dict[int, _Mbarrier] = {}
        self._acquired: dict[tuple[int, Thread], Published] = {}
        """What a thread has acquired of an mbarrier last, so that a poll that finds no more is cheap."""
        self._clusters: dict[Any, Clock] = {}
        """Clocks released at the barrier of a cluster, by the cluster's index and the phase."""
        self.later: AsyncEvents | None = None
        self.remote: dict[int, dict[tuple[tuple[int, int, int], int], tuple[int, int]]] = {}
        """Operations on mbarriers of other blocks: by that block, then by thread and statement, epoch and address."""
        self.notes_remote = False
        self._fenced: dict[Any, Clock] = {}
        """Initialisations of mbarriers that a block has fenced, or knows to be fenced; and those of _clusters."""

    # Lanes and warps of a block

    def warp_barrier(
        self, state: BlockState, block: BlockOrder, threads: list[Thread], statement: Instruction
    ) -> None:
        """After a ``bar.warp.sync`` of part of a warp."""
        groups: dict[int, list[Thread]] = {}
        for thread in threads:
            groups.setdefault(operand_value(state, thread, statement.operands[0]), []).append(thread)
        for members in groups.values():
            block.synchronise(members, [self.clocks.of_thread(state, block, thread) for thread in members])

    def named_barrier(
        self, state: BlockState, block: BlockOrder, threads: list[Thread], statement: Instruction
    ) -> None:
        """Before a barrier of some warps, and once more after it."""
        warp, _ = threads[0]
        if warp in block.waits:
            self._acquire(block, threads, block.waits.pop(warp).clock)
            return
        number, count = (operand_value(state, threads[0], statement.operand(name)) for name in "ab")
        rendezvous = block.open.setdefault(number, Rendezvous())
        rendezvous.clock = join(rendezvous.clock, *self._known(state, block, threads))
        rendezvous.warps += 1
        if rendezvous.warps * LANES >= count:
            del block.open[number]
        if statement.form.effects.waits:
            block.waits[warp] = rendezvous

    def _known(self, state: BlockState, block: BlockOrder, threads: list[Thread]) -> list[Clock]:
        """The clocks of threads of a warp, in few entries where these are all of it."""
        warp = threads[0][0]
        if len(threads) != state.get_warp(warp, Warp.ALIVE, "I").bit_count():
            return [self.clocks.of_thread(state, block, thread) for thread in threads]
        clocks = {id(clock): clock for clock in map(block.clock, threads)}
        return [*clocks.values(), self._of_whole_warp(state, block, warp)]

    def _of_whole_warp(self, state: BlockState, block: BlockOrder, warp: int) -> Clock:
        """What all lanes of a warp have beyond what they have acquired."""
        epoch, floor, _ = self.clocks.of_warp(state, warp)
        return {(block.block, warp): epoch >> EPOCH_SHIFT, block.block: (floor >> EPOCH_SHIFT) - 1}

    @staticmethod
    def _acquire(block: BlockOrder, threads: list[Thread], clock: Clock) -> None:
        joined: dict[int, Clock] = {}
        for thread in threads:  # most have the same clock before, so they share the one behind
            before = block.clock(thread)
            if id(before) not in joined:
                joined[id(before)] = join(before, clock)
            block.own[thread] = joined[id(before)]

    # Clusters

    @staticmethod
    def cluster_phase(state: BlockState) -> int:
        """The phase of the barrier of a block's cluster."""
        head = number_at(state.get(Block.CLUSTER, "Q") + ClusterBlock.HEAD)
        return number_at(head + Cluster.PHASE, 4)

    def cluster_barrier(
        self, block: BlockOrder, threads: list[Thread], own: Clock, effects: Any, phase: int
    ) -> None:
        """Before threads of a warp arrive at the barrier of the cluster, and after a wait.

        ``own`` is what they know beyond what they have acquired.
        """
        meeting = block.cluster, phase - 1 if effects.waits else phase
        into, known = (block.block, meeting) if effects.waits else (meeting, block.block)
        if known in self._fenced:
            self._fenced[into] = join(self._fenced.get(into, {}), self._fenced[known])
        if effects.waits:
            clock = self._clusters.get((block.cluster, phase - 1), {})
            self._acquire(block, threads, clock)
            return
        clock = self._clusters.get((block.cluster, phase), {})
        if effects.order == "relaxed":
            found = (each for thread in threads for level, each in block.released(thread) if level > 1)
            clock = join(clock, *found)
        else:
            if len(threads) == LANES:  # one number for the warp
                first = (block.block, *threads[0])
                own = {key: epoch for key, epoch in own.items() if type(key) is not tuple or len(key) < len(first)} | {
                    first[:2]: own[first]}
            acquired = {id(each): each for each in map(block.clock, threads)}.values()
            clock = join(clock, own, *acquired)
        self._clusters[block.cluster, phase] = clock

    def fence_mbarriers(self, state: BlockState, block: BlockOrder, threads: list[Thread]) -> None:
        """Threads execute a fence of the mbarriers that they have initialised, for the other blocks."""
        epoch = self.clocks.of_warp(state, threads[0][0])[0] >> EPOCH_SHIFT
        fenced: Clock = {(block.block, *thread): epoch for thread in threads}
        self._fenced[block.block] = join(self._fenced.get(block.block, {}), fenced)

    def mbarrier(
        self, state: BlockState, block: BlockOrder, thread: Thread, statement: Instruction, host: int
    ) -> None:
        """Before an operation on the mbarrier at a host address."""
        what, effects = statement.form.tokens[0], statement.form.effects
        if what in ("init", "inval"):
            self.new(host, 0, self._word(state, thread))
            return
        mbarrier = self._used(state, block, thread, host)
        counts = counts_bytes(statement.form)
        relaxed = effects.order == "relaxed" and not counts
        if self.notes_remote and not relaxed:
            self._note_remote(state, block, thread, host)
        level = 1 if "cta" in statement.form.tokens else 2  # NVIDIA's libraries arrive from afar and write no scope
        if effects.waits:
            charge_poll(state)
            if self.later is not None and mbarrier.completion.generation:
                self.later.waits(state, block, thread, mbarrier.completion)
            complete, key = mbarrier.complete, (block.block, thread)
            if not relaxed and complete and self._acquired.get(key) is not complete:
                before = block.clock(thread)
                last = mbarrier.joined  # most threads have the same clock before, so they have the same one behind
                if last is None or last[0] is not before or last[1] is not complete or last[2] != level:
                    joined = join(before, *acquirable(complete, block, level))
                    last = mbarrier.joined = before, complete, level, joined
                block.own[thread] = last[3]
                self._acquired[key] = complete
        elif effects.arrives or counts:
            if self.later is not None and (counts or isinstance(statement, CommitArrival)):
                if mbarrier.unfenced and self._is_fenced(block, mbarrier.unfenced):
                    mbarrier.unfenced = 0
                self.later.counted(state, block, thread, statement, host, mbarrier)
            if not relaxed:
                own = self.clocks.own(block, thread, *self.clocks.of_warp(state, thread[0]))
                mbarrier.release(block, level, block.clock(thread), own)
            for reach, released in block.released(thread) if relaxed else ():
                mbarrier.release(block, min(reach, level), released, {})

    def _is_fenced(self, block: BlockOrder, word: int) -> bool:
        """Whether an initialisation has been fenced and a block has met the one that did it since."""
        return covers(self._fenced.get(block.block, {}), self.clocks.memory.thread_of(word), word >> EPOCH_SHIFT, False)

    def new(self, host: int, parity: int, initialiser: int) -> _Mbarrier:
        """The mbarrier at a host address, as a shadow word says who has initialised it."""
        made = self._mbarriers[host] = _Mbarrier(parity, initialiser, initialiser)
        return made

    def _used(self, state: BlockState, block: BlockOrder, thread: Thread, host: int) -> _Mbarrier:
        """The mbarrier that a thread is about to use."""
        parity = number_at(host) >> Mbarrier.PARITY & 1
        mbarrier = self._mbarriers.get(host)
        if mbarrier is None:
            mbarrier = self._mbarriers[host] = _Mbarrier(parity)
        mbarrier.update(parity)
        if (block.block, thread) not in mbarrier.users:
            mbarrier.users.add((block.block, thread))
            self._check_initialised(state, block, thread, self.clocks.of_thread(state, block, thread), host, mbarrier)
        return mbarrier

    def _note_remote(self, state: BlockState, block: BlockOrder, thread: Thread, host: int) -> None:
        """Note an operation on an mbarrier of another block."""
        holder = state if self.later is None else self.later.holder(host, state)
        if holder is state:
            return
        place = state.code.statement_at(state.get(Block.FAULT_PC, "Q"))
        epoch = self.clocks.of_warp(state, thread[0])[0] >> EPOCH_SHIFT
        uses = self.remote.setdefault(self.clocks.memory.block_of(holder), {})
        uses[(block.block, *thread), place] = epoch, host

    def arrive_together(
        self, state: BlockState, block: BlockOrder, threads: list[Thread], statement: Instruction, hosts: set[int]
    ) -> bool:
        """Before all lanes of a warp arrive at one mbarrier: they release one clock. False where it is not so."""
        effects, warp = statement.form.effects, threads[0][0]
        alive = state.get_warp(warp, Warp.ALIVE, "I")
        if not effects.arrives or effects.waits or effects.order == "relaxed" or len(hosts) > 1:
            return False
        if isinstance(statement, CommitArrival) or self.notes_remote:
            return False
        if len(threads) != alive.bit_count() or effects.access is not None or effects.completes:
            return False
        host, level = min(hosts), 1 if "cta" in statement.form.tokens else 2
        mbarrier = None
        for thread in threads:
            mbarrier = self._used(state, block, thread, host)
        clocks = {id(clock): clock for clock in map(block.clock, threads)}.values()
        mine = self._of_whole_warp(state, block, warp)
        assert mbarrier is not None
        for clock in clocks:
            mbarrier.release(block, level, clock, mine)
        return True

    def _word(self, state: BlockState, thread: Thread) -> int:
        """The shadow word of a thread's current instruction."""
        warp, lane = thread
        statement = state.code.statement_at(state.get(Block.FAULT_PC, "Q"))
        return self.clocks.memory.clock(state, warp, WarpClock.EPOCH) | statement_bits(statement) | lane

    def _check_initialised(
        self, state: BlockState, block: BlockOrder, thread: Thread, clock: Clock, host: int, mbarrier: _Mbarrier
    ) -> None:
        """Report a race with the thread that has initialised the mbarrier, unless that happens before its use."""
        word, memory = mbarrier.initialiser, self.clocks.memory
        other = memory.thread_of(word)
        reached = other[0] == block.block or memory.clustered
        epoch = word >> EPOCH_SHIFT
        ordered = covers(clock, other, epoch, False) or self._is_fenced(block, word)
        if word and reached and not ordered:
            pc = state.get(Block.FAULT_PC, "Q")
            self.reporter.note(state, pc, thread, Reason.WRITER, word, other, host)
            mbarrier.initialiser = 0
