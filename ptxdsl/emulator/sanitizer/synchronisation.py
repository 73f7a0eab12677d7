"""Events that order threads other than by a barrier of the whole block: they update the vector clocks."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, NamedTuple

from ...ir import Instruction
from ..codegen.code import Code
from ..instructions.instrumentation import BulkReport
from ..machine.allocation import number_at
from ..machine.layout import Block
from ..machine.proxy_shadow import Kinds
from ..machine.shadow import EPOCH_SHIFT, LANE, WARP_SHIFT, Reason
from ..runtime.block_state import BlockState
from ..runtime.faults import set_bits
from .accesses import fence_kinds, is_of_core, is_tile_product, operand_value, reach, strength
from .async_events import AsyncEvents
from .barriers import Barriers, charge_poll
from .clocks import Clocks
from .copies import Copies
from .hand_over import HandOver, Write
from .happens_before import BlockOrder, Clock, Thread
from .needs import Checks
from .proxy_orders import keep_fences
from .proxy_report import ProxyReporter
from .report import Reporter
from .sync_log import Event
from .warp_orders import WarpOrders

__all__ = ["Synchronisation"]


class _Event(NamedTuple):
    """Where and when an event is: the clock of its warp, the numbers before an access and those that it stores."""

    state: BlockState
    code: Code
    pc: int
    place: int
    block: BlockOrder
    epoch: int
    block_floor: int
    warp_floor: int
    before: Any
    stored: Any

    def own(self, thread: Thread) -> Clock:
        return Clocks.own(self.block, thread, self.epoch, self.block_floor, self.warp_floor)

    def clock(self, thread: Thread) -> Clock:
        return Clocks.with_own(self.block, thread, self.epoch, self.block_floor, self.warp_floor)


class Synchronisation:
    """What compiled code reports of a launch's synchronisation."""

    def __init__(self, clocks: Clocks, reporter: Reporter, checks: Checks) -> None:
        self.clocks, self.order, self.race, self.reporter = clocks, clocks.order, checks.race, reporter
        self.hand_over = HandOver() if checks.order else None
        self.barriers = Barriers(clocks, reporter)
        self.orders = WarpOrders(clocks, self.barriers)
        self.copies = Copies(clocks.memory, reporter)
        self.later = self.barriers.later = AsyncEvents(clocks, ProxyReporter(reporter), checks.init)
        self.log = clocks.memory.log
        self.lost = False
        """Whether the log was full: there may be orders that nobody knows of."""
        self.states: dict[int, BlockState] = {}
        self._codes: list[Code] = []

    def attach(self, state: BlockState) -> None:
        """A state whose events are logged."""
        if self.states.get(state.address) is state and state.code in self._codes:
            return
        self.states[state.address] = state
        if all(state.code is not code for code in self._codes):
            self._codes.append(state.code)

    def is_as_new(self) -> bool:
        """Whether nothing was followed."""
        return not self.lost and not self.order.blocks

    # The log

    def follow(self) -> None:
        """Follow the events that compiled code has noted."""
        if not self.log:
            return
        if self.log.too_long() and not self.log.suspicious():
            self.log.clear()
            self.lost = True
            return
        for record in self.log.take():
            self._replay(record)

    def finish(self) -> None:
        """At the end of a launch only what the ``order`` tool may find is followed."""
        if self.hand_over is not None and self.log and self.log.suspicious():
            self.follow()

    def _place(self, state: BlockState, pc: int) -> tuple[Code, int]:
        """The code of a micro-op, and its statement: a launch that goes on in conservative code has two."""
        self.attach(state)
        code = max((code for code in self._codes if code.base <= pc), key=lambda code: code.base)
        return code, code.statement_at(pc)

    def _replay(self, record: Event) -> None:
        pc, warp_floor, address, block_floor, barriers, epoch, number, mask = record[:8]
        state, warp = self.states[address], epoch >> WARP_SHIFT & LANE
        block = self.clocks.block(number - 1)
        block.barrier(barriers, block_floor >> EPOCH_SHIFT)
        if warp_floor > block_floor:
            block.warp_barrier(warp, warp_floor)
        if not pc:
            self.orders.know(block, warp, record)
            return
        code, place = self._place(state, pc)
        statement = code.graph.statements[place]
        assert isinstance(statement, Instruction)
        event = _Event(state, code, pc, place, block, epoch, block_floor, warp_floor, record.before, record.stored)
        lanes, hosts = set_bits(mask), record.hosts
        if statement.form.effects.fence == "threads":
            self._fence(event, [(warp, lane) for lane in lanes], statement)
            return
        if statement.form.effects.barrier == "cluster":
            self._cluster_barrier(event, [(warp, lane) for lane in lanes], statement, hosts[lanes[0]])
            return
        for lane in lanes:
            self._strong(event, (warp, lane), statement, hosts[lane])

    # Events

    def event(self, state: BlockState, block: BlockOrder, warp: int, lanes: list[int], reason: int) -> None:
        """Lanes of a warp are about to execute, or have executed, an instruction that orders threads."""
        pc = state.get(Block.FAULT_PC, "Q")
        place = state.code.statement_at(pc)
        statement = state.code.graph.statements[place]
        assert isinstance(statement, Instruction)
        effects = statement.form.effects
        if "bulk_group" not in (effects.completes, effects.commits, effects.waits):  # which order no threads
            self._give_up(state, block)
        event = _Event(state, state.code, pc, place, block, *self.clocks.of_warp(state, warp), None, None)
        if reason == Reason.SYNC_ACCESS:
            hosts = struct.unpack("<32Q", ctypes.string_at(state.address + Block.SCRATCH, 256))
            threads = [(warp, lane) for lane in lanes]
            together = len(lanes) > 1 and self.race and self.barriers.arrive_together(
                state, block, threads, statement, {hosts[lane] for lane in lanes}
            )
            for thread in threads:
                self._access(event, thread, statement, hosts[thread[1]], together)
        elif statement.form.effects.fence == "threads":
            self._fence(event, [(warp, lane) for lane in lanes], statement)
        elif statement.form.effects.barrier == "cluster":
            phase = self.barriers.cluster_phase(state)
            self._cluster_barrier(event, [(warp, lane) for lane in lanes], statement, phase)
        else:
            self._instruction(state, block, [(warp, lane) for lane in lanes], statement)
        self.clocks.memory.begin_epoch(state, warp)

    def _give_up(self, state: BlockState, block: BlockOrder) -> None:
        """Python follows the block from here on."""
        if self.clocks.memory.proxies and not self.orders.given_up(state):
            keep_fences(self.clocks, state, block, self.later.accesses)
        self.orders.give_up(state, block)

    def converged(self, state: BlockState, block: BlockOrder, warp: int, lanes: list[int]) -> None:
        """Lanes have passed a ``bar.warp.sync`` of one member mask that they came to at different places."""
        self._give_up(state, block)
        threads = [(warp, lane) for lane in lanes]
        block.synchronise(threads, [self.clocks.of_thread(state, block, thread) for thread in threads])
        self.clocks.memory.begin_epoch(state, warp)

    def _instruction(
        self, state: BlockState, block: BlockOrder, threads: list[Thread], statement: Instruction
    ) -> None:
        effects, (warp, _) = statement.form.effects, threads[0]
        lanes = [lane for _, lane in threads]
        if fence_kinds(statement.form):
            self.later.fence(state, block, warp, lanes, statement)
            if fence_kinds(statement.form) & Kinds.MBARRIER:
                self.barriers.fence_mbarriers(state, block, threads)
        elif effects.control:
            self.later.end(state, block, threads)
        elif is_tile_product(statement.form):
            self.later.product(state, block, warp, state.code.statement_at(state.get(Block.FAULT_PC, "Q")))
        elif is_of_core(statement.form):
            for thread in threads:
                self.later.of_core(state, block, thread, state.code.statement_at(state.get(Block.FAULT_PC, "Q")))
        elif "wgmma_group" in (effects.commits, effects.waits):
            self.later.group(state, block, warp, lanes, statement)
        elif "bulk_group" in (effects.commits, effects.waits):
            self.copies.group(state, threads, statement)
            self.later.group(state, block, warp, lanes, statement)
        elif effects.barrier == "warp":
            self.barriers.warp_barrier(state, block, threads, statement)
        elif effects.barrier == "block":
            self.barriers.named_barrier(state, block, threads, statement)

    @staticmethod
    def _fence(event: _Event, threads: list[Thread], statement: Instruction) -> None:
        effects, block = statement.form.effects, event.block
        level, acquires, releases = reach(statement.form), effects.order != "release", effects.order != "acquire"
        block.fence(threads, [event.own(thread) for thread in threads], level, acquires, releases)

    def _cluster_barrier(
        self, event: _Event, threads: list[Thread], statement: Instruction, phase: int
    ) -> None:
        own: Clock = {}
        for thread in threads:
            own.update(event.own(thread))
        self.barriers.cluster_barrier(event.block, threads, own, statement.form.effects, phase)

    def _access(
        self, event: _Event, thread: Thread, statement: Instruction, host: int, together: bool = False
    ) -> None:
        """Before an access that Python sees at once."""
        effects, state = statement.form.effects, event.state
        op = state.code.op_at(event.pc)
        if isinstance(op, BulkReport) and op.shared:
            self.later.copy(state, event.block, thread, event.place, host, not op.reads)
        elif isinstance(op, BulkReport):
            self.copies.begin(state, thread, statement, host, op.reads)
        elif effects.access is None:
            self.copies.mbarrier(state, thread, statement, host)
            if self.race and not together:
                self.barriers.mbarrier(state, event.block, thread, statement, host)
        else:
            if effects.access.reads:
                charge_poll(state)
            self._strong(event, thread, statement, host)

    def _strong(self, event: _Event, thread: Thread, statement: Instruction, host: int) -> None:
        """Before a strong access."""
        block, effects, clock = event.block, statement.form.effects, event.clock(thread)
        access, level = effects.access, strength(statement.form)
        assert access is not None
        home = self.clocks.memory.home(event.state, host)
        if access.reads:
            self.order.read(block, thread, home, host, level, effects.acquires, clock)
            if self.hand_over is not None:
                missed = self.hand_over.read(event.code, block, thread, home, host, clock, event.place)
                if missed is not None and not self.lost:
                    self.reporter.old_value(event.state, event.pc, (block.block, *thread), missed, host)
        if access.writes:
            clocks = list(block.released(thread))
            clock = event.clock(thread)
            if effects.releases:
                clocks.append((level, clock))
            self.order.write(block, home, host, level, clocks, access.reads)
            if self.hand_over is not None:
                write = self._write(event, (block.block, *thread), clock, statement, host)
                self.hand_over.write(block, thread, home, host, clock, write)

    @staticmethod
    def _write(event: _Event, who: tuple[int, int, int], clock: Clock, statement: Instruction, host: int) -> Write:
        """A write that is about to happen."""
        lane, access, stored = who[2], statement.form.effects.access, -1
        assert access is not None
        if event.before is not None:
            stored = -1 if access.reads else int(event.stored[lane])
            return Write(who, clock[who], event.place, int(event.before[lane]), stored)
        size = min((statement.form.type.bits if statement.form.type is not None else 32) // 8, 8)
        if not access.reads:
            value: Any = statement.operands[1 - access.operand]
            value = getattr(value, "items", (value,))[0]
            stored = operand_value(event.state, who[1:], value) & (1 << 8 * size) - 1
        return Write(who, clock[who], event.place, number_at(host, size), stored)
