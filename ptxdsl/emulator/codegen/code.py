"""Functions in memory: micro-ops one behind the other, each the address of its code and the fields that it reads."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Function, Instruction
from ..analysis.divergence import Shape3
from ..analysis.registers import RegisterFile
from ..instructions.function import FunctionLowering, LoweredFunction
from ..instructions.lowering import Instrument
from ..instructions.micro_op import Key, MicroOp, PlacedMicroOp, layout_of
from ..instructions.operands import Operands
from ..instructions.scheduler import EVERYWHERE
from ..machine.address_spaces import AddressSpaces
from .library import library

__all__ = ["Code", "assemble", "translate"]


@dataclass(eq=False, repr=False)
class Code:
    """A function in memory, and which addresses belong to which micro-ops, basic blocks and statements."""

    memory: Any
    base: int
    entry: int
    prologue: int
    blocks: Any
    graph: ControlFlowGraph
    registers: RegisterFile
    operands: Operands
    offsets: list[int]
    statements: list[int]
    blocks_by_priority: list[int]
    conservative: bool
    micro_ops: list[PlacedMicroOp]
    seconds: float = 0.0
    tiered_up: bool = False
    """Whether the second tier has been started on it."""
    notes: dict[type, Any] = field(default_factory=dict)
    """What tools keep of it from launch to launch."""
    failure: Exception | None = None
    """Why there is no second tier, until a warning has said so."""
    refusal: str = ""
    """Why there is no block function, once one was wanted: ``a barrier under a guard (line 12)``."""
    prints: bool = False
    """Whether it calls vprintf: its blocks run one after the other, so that what they print is in order."""
    pace: float = 0.0
    """Seconds a block in the last launch, 0 where there was none."""
    walls: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """Seconds from begin to end of launches by one host thread and by several, a block; 0 where there was none."""
    source: tuple[Function, AddressSpaces, Shape3, Instrument | None] | None = None
    """What it was lowered from, and the instrument."""
    block_function: int = 0
    """Address of the function that runs a block, 0 while there is none."""
    exits: dict[int, int] = field(default_factory=dict)
    """Blocks that the block function has left before their end, by the statement where that was seen last."""
    wraps: set[int] = field(default_factory=set)
    """Statements whose :class:`.WrapCheck` has failed, of all codes of the kernel for this shape of block."""
    undefined: Code | None = None
    """The code that follows what shuffles take from lanes that do not take part, once that was needed."""
    instrumented: bool = False
    """Whether it needs its tool: it has micro-ops of it, or the kernel was rewritten for it."""
    known_wraps: frozenset[int] = frozenset()
    """Those of them that were known when it was lowered: there each lane has a number of its own."""

    @cached_property
    def updates(self) -> bool:
        """Whether it writes memory by atomics or otherwise strongly, which threads of other blocks may do too."""
        forms = {s.form for s in self.graph.statements if isinstance(s, Instruction) and s.form.space != "shared"}
        return any(form.effects.writes and form.effects.strong for form in forms)

    @property
    def outdated(self) -> bool:
        """Whether it assumes of registers that they do not wrap around, and some have since."""
        return not self.conservative and len(self.wraps) > len(self.known_wraps)

    def note_exits(self, blocks: int, pc: int) -> None:
        """Note that the block function has left so many blocks, the last one at this micro-op."""
        statement = self.statement_at(pc)
        self.exits[statement] = self.exits.get(statement, 0) + blocks

    def note_wall(self, several: bool, seconds: float) -> None:
        """Note what a launch took, a block. What the other way took counts for less each time, so it is tried again."""
        before = self.walls[several]
        self.walls[several] = min(seconds, 1.25 * before) if before else seconds
        self.walls[not several] *= 0.99

    @property
    def better_alone(self) -> bool:
        """Whether launches by several host threads took longer than by one, or none was by one yet."""
        one, several = self.walls
        return one < several

    def statement_at(self, pc: int) -> int:
        """The number of the statement that the micro-op at an address belongs to."""
        return self.statements[bisect_right(self.offsets, pc - self.base) - 1]

    def op_at(self, pc: int) -> MicroOp:
        """The micro-op at an address."""
        return self.micro_ops[bisect_right(self.offsets, pc - self.base) - 1].op

    def pc_of(self, statement: int) -> int:
        """Address of the first micro-op of a statement."""
        return self.base + self.offsets[self.statements.index(statement)]


def translate(
    function: Function, spaces: AddressSpaces, block: Shape3, conservative: bool = False,
    instrument: Instrument | None = None, keep_registers: bool = False, wraps: set[int] | None = None,
) -> Code:
    """The code of a kernel for blocks of this shape, with that of a tool where there is an ``instrument``.

    ``keep_registers``: each register keeps its number to the end, for a debugger; such code has no second tier.
    ``wraps`` are the kernel's, which the code adds to.
    """
    wraps = set() if wraps is None else wraps
    known = frozenset(wraps)
    low = FunctionLowering(function, spaces, block, conservative, instrument, keep_registers, known)
    code = assemble(low.lower())
    code.source, code.wraps, code.known_wraps = (function, spaces, block, instrument), wraps, known
    code.tiered_up = keep_registers
    return code


def assemble(lowered: LoweredFunction) -> Code:
    """A function in memory."""
    import numpy as np

    micro_ops, starts = lowered.micro_ops, lowered.starts
    ops = {id(placed.op): placed.op for placed in micro_ops}
    links = [routine for placed in micro_ops if placed.links for routine in placed.links.values()]
    needed: list[Key] = [*ops.values(), *links, *EVERYWHERE]  # in one module: each takes LLVM time of its own
    handlers = library().need(needed)
    made = {number: (handlers[op], *layout_of(op.codes)) for number, op in ops.items()}
    offsets, at = [], 0
    for placed in micro_ops:
        offsets.append(at)
        at += made[id(placed.op)][2]
    memory = np.zeros(at + 64, np.uint8)
    base = memory.ctypes.data + -memory.ctypes.data % 64
    image = bytearray(at)
    for placed, offset in zip(micro_ops, offsets):
        if placed.targets is not None:
            for number, target in placed.targets.items():
                placed.values[number] = offsets[starts[target]] - offset
        if placed.links is not None:
            for number, routine in placed.links.items():
                placed.values[number] = handlers[routine]
        handler, packer, _ = made[id(placed.op)]
        packer.pack_into(image, offset, handler, *placed.values)
    start = base - memory.ctypes.data
    memory[start : start + at] = np.frombuffer(image, np.uint8)
    count = max(1, len(lowered.graph.blocks))
    blocks = np.full(count + 1, base + offsets[-1], np.uint64)  # the last: lanes that are set aside
    by_priority = [0] * count
    for number, block in enumerate(lowered.graph.blocks):
        blocks[block.priority] = base + offsets[starts[number]]
        by_priority[block.priority] = number
    return Code(
        memory, base, base + offsets[lowered.entry], base + offsets[lowered.prologue], blocks, lowered.graph,
        lowered.registers, lowered.operands, offsets, [placed.statement for placed in micro_ops], by_priority,
        lowered.conservative, micro_ops, prints=lowered.prints,
    )
