"""Events that order threads other than by a barrier of the whole block: they update the vector clocks."""

from __future__ import annotations

import ctypes
import struct

from ...ir import Instruction
from ..instructions.instrumentation import BulkReport
from ..machine.layout import Block
from ..machine.shadow import Reason
from ..runtime.block_state import BlockState
from .accesses import reach, strength
from .barriers import Barriers, charge_poll
from .clocks import Clocks
from .copies import Copies
from .hand_over import HandOver, write_of
from .happens_before import BlockOrder, Thread
from .instrumentation import Checks
from .report import Reporter

__all__ = ["Synchronisation"]


class Synchronisation:
    """What compiled code reports of a launch's synchronisation."""

    def __init__(self, clocks: Clocks, reporter: Reporter, checks: Checks) -> None:
        self.clocks, self.order, self.race, self.reporter = clocks, clocks.order, checks.race, reporter
        self.hand_over = HandOver() if checks.order else None
        self.barriers = Barriers(clocks, reporter)
        self.copies = Copies(clocks.memory, reporter)

    def event(self, state: BlockState, block: BlockOrder, warp: int, lanes: list[int], reason: int) -> None:
        """Lanes of a warp are about to execute, or have executed, an instruction that orders threads."""
        place = state.code.statement_at(state.get(Block.FAULT_PC, "Q"))
        statement = state.code.graph.statements[place]
        assert isinstance(statement, Instruction)
        if reason == Reason.SYNC_ACCESS:
            hosts = struct.unpack("<32Q", ctypes.string_at(state.address + Block.SCRATCH, 256))
            for lane in lanes:
                self._access(state, block, (warp, lane), statement, place, hosts[lane])
        else:
            self._instruction(state, block, [(warp, lane) for lane in lanes], statement)
        self.clocks.memory.begin_epoch(state, warp)

    def converged(self, state: BlockState, block: BlockOrder, warp: int, lanes: list[int]) -> None:
        """Lanes have passed a ``bar.warp.sync`` of one member mask that they came to at different places."""
        threads = [(warp, lane) for lane in lanes]
        block.synchronise(threads, [self.clocks.of_thread(state, block, thread) for thread in threads])
        self.clocks.memory.begin_epoch(state, warp)

    def _instruction(
        self, state: BlockState, block: BlockOrder, threads: list[Thread], statement: Instruction
    ) -> None:
        effects = statement.form.effects
        if "bulk_group" in (effects.commits, effects.waits):
            self.copies.group(state, threads, statement)
        elif effects.barrier == "cluster":
            self.barriers.cluster_barrier(state, block, threads, statement)
        elif effects.barrier == "warp":
            self.barriers.warp_barrier(state, block, threads, statement)
        elif effects.barrier == "block":
            self.barriers.named_barrier(state, block, threads, statement)
        else:
            level, acquires, releases = reach(statement.form), effects.order != "release", effects.order != "acquire"
            for thread in threads:
                block.fence(thread, self.clocks.of_thread(state, block, thread), level, acquires, releases)

    def _access(
        self, state: BlockState, block: BlockOrder, thread: Thread, statement: Instruction, place: int, host: int
    ) -> None:
        effects = statement.form.effects
        access = effects.access
        if effects.completes:
            op = state.code.op_at(state.get(Block.FAULT_PC, "Q"))
            self.copies.begin(state, thread, statement, host, op.operand if isinstance(op, BulkReport) else 0)
            return
        if access is None:
            self.copies.mbarrier(state, thread, statement, host)
            if self.race:
                self.barriers.mbarrier(state, block, thread, statement, host)
            return
        clock, level = self.clocks.of_thread(state, block, thread), strength(statement.form)
        if access.reads:
            charge_poll(state)
            self.order.read(block, thread, host, level, effects.acquires, clock)
            if self.hand_over is not None:
                missed = self.hand_over.read(state, block, thread, host, clock, place)
                if missed is not None:
                    self.reporter.old_value(state, state.get(Block.FAULT_PC, "Q"), thread, missed, host)
        if access.writes:
            clocks = list(block.released(thread))
            if effects.releases:
                clocks.append((level, self.clocks.of_thread(state, block, thread)))
            self.order.write(block, host, level, clocks, access.reads)
            if self.hand_over is not None:
                who = (block.block, *thread)
                write = write_of(state, who, clock[who], statement, place, host)
                self.hand_over.write(block, thread, host, self.clocks.of_thread(state, block, thread), write)
