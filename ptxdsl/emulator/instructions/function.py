"""A function as micro-ops: those that are executed once for a launch, then those of each basic block.

Each function is lowered once for each shape of block, since the shape decides which registers are uniform, and once
more, with everything varying, if lanes of a warp ever have to run out of the usual order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...executed_lines import recorder
from ...analysis.control_flow import BasicBlock, ControlFlowGraph, control_of
from ..analysis.registers import RegisterFile
from ..machine.status import Fault
from . import atomics, barriers, memory, moves, warp  # noqa: F401 - they register
from .control import Exit, Reconvergence, Trap
from .clusters import leave_cluster
from .executed_lines import ExecutedLines
from .lowering import Lowering
from .micro_op import PlacedMicroOp
from .operand_classes import ABSENT
from .operands import NOTHING, Operands, raw
from .scheduler import SchedulerFunction

__all__ = ["FunctionLowering", "LoweredFunction"]


class LoweredFunction(NamedTuple):
    """The micro-ops of a function: ``starts`` has the first of each basic block.

    ``prologue`` and ``entry`` are those with which a warp begins a launch and a block. ``prints``: it calls vprintf.
    ``pending``: asynchronous operations that its blocks have room for.
    """

    micro_ops: list[PlacedMicroOp]
    starts: list[int]
    prologue: int
    entry: int
    graph: ControlFlowGraph
    registers: RegisterFile
    operands: Operands
    conservative: bool
    prints: bool
    pending: int


class FunctionLowering(Lowering):
    """Makes the micro-ops of one function."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.starts: list[int] = []
        recording = recorder()
        self.executed = None if recording is None else ExecutedLines(self, recording)

    def lower(self) -> LoweredFunction:
        self.emit(SchedulerFunction("reschedule"))
        prologue = len(self.micro_ops)
        self._prologue()
        entry = len(self.micro_ops)
        if self.instrumentation is not None:
            self.instrumentation.begin()
        for number, block in enumerate(self.graph.blocks):
            self._basic_block(number, block)
        if not self.graph.blocks:
            self.starts.append(len(self.micro_ops))
            self.emit(Exit(ABSENT, True))
        if self.conservative:
            self.place = -1
            self.emit(Trap(ABSENT, Fault.CONVERGENCE))
        return LoweredFunction(
            self.micro_ops, self.starts, prologue, entry, self.graph, self.registers, self.operands, self.conservative,
            self.prints, self.pending,
        )

    def _prologue(self) -> None:
        for place in sorted(self.facts.launch_invariant):
            self.place = place
            self.statement(self.graph.statements[place])
        self.place = -1
        self.emit(Exit(ABSENT, False))

    def _basic_block(self, number: int, block: BasicBlock) -> None:
        self.basic_block, self.divergent = number, number in self.facts.divergent
        before = self.graph.blocks[number - 1] if number else None
        falls = before is not None and before.fallthrough == number and not self._branches(before)
        if falls and number - 1 in self.facts.divergent:
            self.place = block.start
            self.emit(Reconvergence(), raw("i", block.priority))
        self.starts.append(len(self.micro_ops))
        self.bounded.clear()
        statements, emitter = self.graph.statements, self.instrumentation or self
        for place in range(block.start, block.stop):
            self.place = place
            if self.executed is not None:
                self.executed.before(place, place == block.start)
            if place not in self.facts.launch_invariant:
                emitter.statement(statements[place])
                if self.bounded:
                    for register in self.graph.def_use[place].writes:
                        self.bounded -= {(register.name, True), (register.name, False)}
        if block.fallthrough < 0 and not self._leaves(block):
            leave_cluster(self, NOTHING)
            self.emit(Exit(ABSENT, True))

    def _branches(self, block: BasicBlock) -> bool:
        """Whether a block ends with a branch, which has parked lanes where that is needed."""
        return control_of(self.graph.statements[block.stop - 1]).endswith("branch") and not block.exits

    def _leaves(self, block: BasicBlock) -> bool:
        last = self.graph.statements[block.stop - 1]
        return last.guard is None and control_of(last) not in ("", "call")
