"""The sanitizer: uninitialised memory and data races, found while a kernel runs.

Compiled shadow checks (``codegen.instrumentation``) decide nearly all accesses. The others return to Python, where
the vector clocks are known. A finding is recorded, its memory counts as written and ordered from then on, and the
kernel continues, so that one launch reports all of its bugs; it raises the first at its end.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import EmulationError
from ..machine.allocation import number_at
from ..machine.layout import LANES, Block
from ..machine.proxy_shadow import ASYNC, GROUPED, SAME, Kinds
from ..machine.shadow import (
    EPOCH_SHIFT, LANE, LAST_STATEMENT, NOTED, ORDER_CACHE_BITS, ORDER_HASH, PENDING, SEVERAL_LANES, STATEMENT_SHIFT,
    SUPPRESSED, WARP, WARP_SHIFT, WHOLE_WARP, Plane, Reason, Shadow, WarpClock,
)
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.tool import Tool
from ..runtime.faults import set_bits
from .cluster_ends import asks_at_ends, check_end
from .clocks import Clocks
from .happens_before import BlockOrder, Thread, covers
from .needs import Checks
from .findings import Finding
from .overruns import Overruns, finish
from .proofs import proven
from .proxy_orders import is_fenced, is_over
from .proxy_report import PROXY_REASONS, ProxyReporter
from .report import Reporter, collected
from .shadow_memory import ShadowMemory
from .synchronisation import Synchronisation

__all__ = ["Sanitizer", "checks_of", "checks_with", "collect"]

PATIENCE = 200
"""Callbacks of one instruction after which its accesses are suppressed for the rest of the launch."""
_ALIKE = 512
"""Granules that are cleared at once."""
_PLANES: dict[int, Plane] = {Reason.READER: Plane.READER, Reason.EARLIER_READER: Plane.EARLIER_READER}
_SYNCHRONISES = (Reason.SYNC_ACCESS, Reason.SYNC_INSTRUCTION, Reason.WARP_BARRIER)


@contextmanager
def collect() -> Iterator[list[Finding]]:
    """Findings go to a list instead of being raised.

    >>> with collect() as findings:
    ...     pass
    >>> findings
    []
    """
    findings: list[Finding] = []
    token = collected.set(findings)
    try:
        yield findings
    finally:
        collected.reset(token)


def checks_of(launch: LaunchState) -> tuple[ShadowMemory, Checks] | None:
    """The checks that need shadow memory, and that; None where the launch asks for no such check."""
    tools = launch.config.sanitize or frozenset()
    race, init = not tools.isdisjoint(("race", "order", "cas")), "init" in tools
    if not race and not init:
        return None
    memory = ShadowMemory(launch, init)
    return memory, checks_with(memory)


def checks_with(memory: ShadowMemory) -> Checks:
    """The checks that a launch asks for, less what is proven of it."""
    launch, overlap = memory.launch, memory.overlap
    tools, found = launch.config.sanitize or frozenset(), proven(launch, overlap)
    race = not tools.isdisjoint(("race", "order", "cas")) or (memory.init and memory.proxies)
    return Checks(race, memory.init, overlap, memory.has_unwritten, "order" in tools, "cas" in tools, found)


class Sanitizer(Tool[BlockState]):
    """The checks of one launch, in shadow memory of its own."""

    keeps = True

    def __init__(self, launch: LaunchState, memory: ShadowMemory, checks: Checks) -> None:
        self.memory, self.checks = memory, checks
        tools = launch.config.sanitize or frozenset()
        memory.open()
        self.clocks = Clocks(memory)
        self.reporter = Reporter(launch, memory, tools)
        self.synchronisation = Synchronisation(self.clocks, self.reporter, self.checks)
        self.overruns = Overruns(self.reporter)
        self.proxies = ProxyReporter(self.reporter)
        self.ends = self.checks.race and asks_at_ends(launch.spaces)
        """Whether the ends of blocks of clusters are checked, which Python has to see."""
        self.compiled_turns, self.synchronisation.barriers.notes_remote = not self.ends, self.ends
        self._callbacks: dict[int, int] = {}
        self._suppressed: list[tuple[int, bytes]] = []

    def leaves_nothing(self) -> bool:
        """Whether nothing was found, and the shadow memory is as that of the next launch would be."""
        quiet = not self.reporter.findings and not self._suppressed and not self._callbacks
        return quiet and self.overruns.first is None and self.memory.can_be_kept

    def is_as_new(self) -> bool:
        """Whether nothing was found, and it was told of nothing: it may follow the next launch."""
        return self.leaves_nothing() and self.synchronisation.is_as_new()

    # What the engine reports

    def attach(self, state: BlockState) -> None:
        self.memory.attach(state)
        self.synchronisation.attach(state)
        self.overruns.attach(state)

    def again(self, states: list[BlockState]) -> None:
        for state in states:
            self.memory.attach_again(state)
            self.synchronisation.attach(state)
            self.overruns.attach_again(state)
        if self.memory.clusters is not None:
            self.reporter.states = states

    def connect(self, states: list[BlockState]) -> None:
        self.memory.connect(states)
        self.reporter.states = states

    def begin_cluster(self, states: list[BlockState]) -> None:
        self.memory.begin_cluster(states)

    def switch(self, state: BlockState) -> None:
        self.overruns.check_time()
        self.memory.switch(state)

    def entered(self, state: BlockState) -> None:
        self.overruns.check_time()
        self.memory.entered(state)

    def ended(self, state: BlockState) -> None:
        if self.ends:
            self.synchronisation.follow()
        if self.ends and not self.synchronisation.lost:
            block, later = self.clocks.of_block(state), self.synchronisation.later
            check_end(state, block, later.accesses, self.synchronisation.barriers, self.reporter)

    def passes(self, state: BlockState) -> bool:
        return self.overruns.passes(state)

    def allocated(self, address: int, nbytes: int) -> None:
        self.memory.allocated(address, nbytes)

    def unwritten(self, state: BlockState, pc: int, thread: tuple[int, int], register: str) -> None:
        self.reporter.unwritten(state, pc, thread, register)

    def outside(self, state: BlockState, pc: int, thread: tuple[int, int], number: int, indices: list[int]) -> None:
        self.overruns.outside(state, pc, thread, number, indices)

    def converged(self, state: BlockState, warp: int, lanes: int, place: int) -> None:
        statement: Any = state.code.graph.statements[place]
        barrier = statement.form.effects.barrier
        self.synchronisation.follow()
        if barrier == "warp" and self.checks.race:
            self.synchronisation.converged(state, self.clocks.of_block(state), warp, set_bits(lanes))
        elif barrier and self.checks.race:
            self.reporter.incomplete(state, place)

    def callback(self, state: BlockState) -> None:
        """Compiled code reports synchronisation, or an access that it cannot decide; the same warp resumes."""
        warp = state.get(Block.FAULT_WARP, "i")
        state.put(Block.CURRENT, "I", warp - 1 & 31)
        state.put(Block.STAY, "I", 1)
        reason = self.memory.get(state, Shadow.REASON, "i")
        if reason == Reason.DEFERRED:
            lanes = set_bits(state.get(Block.FAULT_ADDRESS, "Q"))
            hosts = struct.unpack("<32Q", ctypes.string_at(state.address + Block.SCRATCH, 256))
            pc = state.get(Block.FAULT_PC, "Q")
            self.reporter.defer(state, pc, warp, {lane: hosts[lane] for lane in lanes})
            if self._counted(pc) == PATIENCE:
                self._patch(state, pc, NOTED)
            return
        self.synchronisation.follow()
        block = self.clocks.of_block(state)
        if reason in _SYNCHRONISES:
            lanes = set_bits(state.get(Block.FAULT_ADDRESS, "Q"))
            self.synchronisation.event(state, block, warp, lanes, reason)
        else:
            self.synchronisation.orders.read(state, block)
            self._access(state, block, warp, reason)

    # Accesses

    def _access(self, state: BlockState, block: BlockOrder, warp: int, reason: int) -> None:
        memory = self.memory
        word, lane = memory.get(state, Shadow.WORD), memory.get(state, Shadow.LANE, "i")
        pc = state.get(Block.FAULT_PC, "Q")
        if reason == Reason.INCOMPLETE_COPY:
            self.reporter.note(state, pc, (warp, lane), reason, word, (0, 0, 0), memory.get(state, Shadow.HOST))
            self._clear(state, Plane.COPY)
            self._clear(state, Plane.WRITER)
            self._limit(state, pc)
            return
        if reason in (Reason.REGISTERS, Reason.UNFENCED_CORE):
            self._by_product(state, (warp, lane), reason, word)
            return
        if PENDING > word >= GROUPED and reason not in PROXY_REASONS:
            word = memory.stands_for(word)
            if word >= GROUPED:
                self._by_group(state, (warp, lane), reason, word)
            if not word or word >= GROUPED:
                self._clear(state, _PLANES.get(reason, Plane.WRITER))
                self._limit(state, pc)
                return
        if PENDING > word >= ASYNC and not self.memory.proxies:  # the word names a record
            self._later(state, block, (warp, lane), reason, word)
            self._limit(state, pc)
            return
        if reason in PROXY_REASONS or PENDING > word >= ASYNC:
            self._by_proxy(state, (warp, lane), reason, word)
            self._limit(state, pc)
            return
        other = memory.thread_of(word)
        if word >= PENDING:
            pending = self.synchronisation.copies.pending_at(memory.get(state, Shadow.HOST))
            if pending is None:  # of a block that has ended
                self._clear(state, _PLANES.get(reason, Plane.WRITER))
                return
            other = pending
        unordered = reason == Reason.UNINITIALISED or not self._ordered(state, block, (warp, lane), word, other)
        if unordered and reason != Reason.UNINITIALISED and self.synchronisation.lost:
            self._clear(state, _PLANES.get(reason, Plane.WRITER))
        elif unordered:
            self.reporter.note(state, pc, (warp, lane), reason, word, other, memory.get(state, Shadow.HOST))
            self._clear(state, _PLANES.get(reason, Plane.WRITER))
        self._limit(state, pc)

    def _by_product(self, state: BlockState, thread: Thread, reason: int, word: int) -> None:
        """Registers that a product may still use, or tensor memory that no fence of tcgen05 orders."""
        pc = state.get(Block.FAULT_PC, "Q")
        if reason == Reason.REGISTERS:
            self.proxies.note_register(state, pc, thread, word)
            self._patch(state, pc, SUPPRESSED)
            return
        self.proxies.note_core(state, pc, thread, word, self.memory.get(state, Shadow.HOST))
        self._limit(state, pc)

    def _by_group(self, state: BlockState, thread: Thread, reason: int, word: int) -> None:
        """The access before is by a bulk group that its thread has not waited for."""
        memory, pc, host = self.memory, state.get(Block.FAULT_PC, "Q"), self.memory.get(state, Shadow.HOST)
        other = memory.thread_of(word & ~GROUPED)
        here = memory.block_of(state) == other[0] and thread[0] == other[1] and thread[1] != other[2]
        if here and state.code.statement_at(pc) == word >> STATEMENT_SHIFT & LAST_STATEMENT:
            word = memory.clock(state, thread[0], WarpClock.EPOCH) & PENDING | word & ~PENDING  # one instruction
        self.reporter.note(state, pc, thread, reason, word | PENDING if word >= GROUPED else word, other, host)

    def _later(self, state: BlockState, block: BlockOrder, thread: Thread, reason: int, word: int) -> None:
        """An access before that completes later, where Python follows such."""
        later, plane = self.synchronisation.later, _PLANES.get(reason, Plane.WRITER)
        pc, host = state.get(Block.FAULT_PC, "Q"), self.memory.get(state, Shadow.HOST)
        issue = later.accesses.record(word)
        if issue is None:
            self._clear(state, plane)
            return
        statement: Any = state.code.graph.statements[state.code.statement_at(pc)]
        if later.over(state, block, thread[0], [thread[1]], word, statement.form):
            whole = later.over(state, block, thread[0], list(range(LANES)), word, statement.form)
            self._remember(state, thread, word, whole)
            return
        self.proxies.note(state, pc, thread, reason, issue.shown(word), issue.owner, host)
        self._clear(state, plane)
        self._clear_alike(state, host, word, plane)

    def _by_proxy(self, state: BlockState, thread: Thread, reason: int, word: int) -> None:
        """Accesses of different proxies, or one by the async proxy that is not known to be complete."""
        memory, pc, host = self.memory, state.get(Block.FAULT_PC, "Q"), self.memory.get(state, Shadow.HOST)
        other = memory.block_of(state), (word & WARP) >> WARP_SHIFT, word & LANE
        if word < ASYNC and reason in (Reason.UNFENCED, Reason.UNFENCED_MAP):
            other = memory.thread_of(word)
        passes = False
        certain = reason in (Reason.EXPECTING_MBARRIER, Reason.UNSEEN_COPY)
        if not certain and self.synchronisation.orders.given_up(state):
            block = self.clocks.of_block(state)
            if word >= ASYNC:
                passes = is_over(self.clocks, state, block, thread, word)
            else:
                kinds = Kinds.SHARED if memory.shared_region_at(host) is not None else Kinds.GLOBAL
                kinds = Kinds.TENSORMAP if reason == Reason.UNFENCED_MAP else kinds
                passes = reason == Reason.UNFENCED_MBARRIER or is_fenced(
                    self.clocks, state, block, thread, word, self.synchronisation.later.accesses, kinds
                )
        if not passes:
            self.proxies.note(state, pc, thread, reason, word, other, host)
        if reason == Reason.UNFENCED_MBARRIER:
            ctypes.memmove(memory.get(state, Shadow.WORD_ADDRESS), bytes(8), 8)
        elif reason in (Reason.UNREAD_SOURCE, Reason.REUSED_MBARRIER, Reason.UNSEEN_COPY):
            pass  # it is told once
        elif reason in (Reason.MISALIGNED, Reason.UNFENCED_MAP, Reason.EXPECTING_MBARRIER):
            self._patch(state, pc, SUPPRESSED)
        else:
            self._clear(state, _PLANES.get(reason, Plane.WRITER))
            self._clear_alike(state, host, word, _PLANES.get(reason, Plane.WRITER))

    def _clear_alike(self, state: BlockState, host: int, word: int, plane: Plane) -> None:
        """Clear the granules behind one that the same access before has touched: they are the same finding."""
        memory, region = self.memory, self.memory.shared_region(state)
        if region is None or not region.holds(host):
            return
        words = memory.words(region, host, min(region.low + region.nbytes - host >> memory.granule, _ALIKE), plane)
        other = (words[1:] ^ np.uint64(word)) & np.uint64(SAME | LAST_STATEMENT << STATEMENT_SHIFT)
        count = int(np.argmax(np.append(other, 1) != 0))
        words[1 : 1 + count] = memory.get(state, Shadow.BASE) if plane == Plane.WRITER else 0

    def _ordered(
        self, state: BlockState, block: BlockOrder, thread: Thread, word: int, other: tuple[int, int, int]
    ) -> bool:
        """Whether the access of a shadow word happens before the current one; the answer goes to the cache."""
        warp, _ = thread
        epoch, several = word >> EPOCH_SHIFT, bool(word & SEVERAL_LANES)
        if not covers(block.clock(thread), other, epoch, several):
            return False
        clocks = [block.own.get((warp, n), block.common) for n in range(LANES)]
        whole = all(covers(clock, other, epoch, True) for clock in {id(clock): clock for clock in clocks}.values())
        self._remember(state, thread, word, whole)
        return True

    def _remember(self, state: BlockState, thread: Thread, word: int, whole: bool) -> None:
        """Note for compiled checks that an access happens before the current one, or before all of its warp."""
        (warp, lane), epoch = thread, word >> EPOCH_SHIFT
        if whole:
            key = epoch << EPOCH_SHIFT | WHOLE_WARP | warp
        else:
            key = epoch << EPOCH_SHIFT | warp << WARP_SHIFT | lane | (word & (LANE | SEVERAL_LANES)) << 10
        slot = (key * ORDER_HASH & (1 << 64) - 1) >> (64 - ORDER_CACHE_BITS)
        ctypes.memmove(self.memory.get(state, Shadow.ORDER_CACHE) + 8 * slot, struct.pack("<Q", key), 8)
        self.memory.put(state, Shadow.CACHE_USED, "i", 1)

    def _clear(self, state: BlockState, plane: int) -> None:
        """Let the granule in question count as written and ordered from now on."""
        memory = self.memory
        place = memory.get(state, Shadow.WORD_ADDRESS) + plane * memory.get(state, Shadow.STRIDE)
        private = plane == Plane.WRITER and memory.is_private(state, memory.get(state, Shadow.HOST))
        ctypes.memmove(place, struct.pack("<Q", memory.get(state, Shadow.BASE) if private else 0), 8)

    def _limit(self, state: BlockState, pc: int) -> None:
        """Suppress an instruction that calls back again and again; what else it might do is not known."""
        count = self._counted(pc)
        statement = state.code.statement_at(pc)
        found = self.reporter.has(statement)
        if count < (PATIENCE if found else 1000 * PATIENCE):
            return
        self._patch(state, pc, SUPPRESSED)
        if not found:
            self.reporter.incomplete(state, statement)

    def _counted(self, pc: int) -> int:
        """How often an instruction has called back."""
        count = self._callbacks[pc] = self._callbacks.get(pc, 0) + 1
        return count

    def _patch(self, state: BlockState, pc: int, bit: int) -> None:
        """Set a bit in the record of a check until the launch ends."""
        code = state.code
        codes = code.micro_ops[code.offsets.index(pc - code.base)].op.codes
        place = pc + struct.calcsize("<Q" + codes) - 4
        word = number_at(place, 4)
        self._suppressed.append((place, struct.pack("<I", word)))
        ctypes.memmove(place, struct.pack("<I", word | bit), 4)

    # The end

    def release(self) -> None:
        """Undo the suppressions and give the shadow memory back."""
        self.synchronisation.finish()
        self.overruns.release()
        for place, data in self._suppressed:
            ctypes.memmove(place, data, len(data))
        if self.memory.exhausted() or self.synchronisation.lost:
            self.reporter.overflow()
        self.memory.release(self.leaves_nothing())
        self.reporter.copier = lambda _: None  # which keeps the reporter

    def finish(self, fault: EmulationError | None = None) -> None:
        """Raise the first finding, if there is one, else ``fault``, which ended the kernel early."""
        finish(self.reporter, fault)
