"""A function in memory: micro-ops one behind the other, each the address of its code and the fields that it reads.

:mod:`.translation` makes one, :mod:`.kept_code` takes one from disk that an earlier process has made. A launch needs
little of it; what it was made of is found out for a fault, a tool or the second tier.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import locks

if TYPE_CHECKING:
    from ...analysis.control_flow import ControlFlowGraph
    from ...ir import Function
    from ..analysis.divergence import Shape3
    from ..analysis.registers import RegisterFile
    from ..instructions.lowering import Instrument
    from ..instructions.micro_op import MicroOp, PlacedMicroOp
    from ..instructions.operands import Operands
    from ..machine.address_spaces import AddressSpaces

__all__ = ["Code", "Description", "Source"]


class Source(NamedTuple):
    """What a function was lowered from: for which shape of block, and with which tool."""

    function: Function
    spaces: AddressSpaces
    block: Shape3
    instrument: Instrument | None


class Description(NamedTuple):
    """What lies where in a function in memory."""

    graph: ControlFlowGraph
    registers: RegisterFile
    operands: Operands
    micro_ops: list[PlacedMicroOp]
    offsets: list[int]
    statements: list[int]
    blocks_by_priority: list[int]
    source: Source | None


@dataclass(eq=False, repr=False)
class Code:
    """A function in memory. ``describe`` says what it was made of; most launches do not ask.

    ``memory`` holds micro-ops and constants; ``stride`` are the bytes of a warp, ``length`` is the number of micro-ops.
    """

    memory: Any
    base: int
    entry: int
    prologue: int
    blocks: Any
    stride: int
    length: int
    conservative: bool
    prints: bool
    """Whether it calls vprintf: its blocks run one after the other, so that what they print is in order."""
    updates: bool
    """Whether it writes memory by atomics or otherwise strongly, which threads of other blocks may do too."""
    pending: int
    """Asynchronous operations that are not complete for which a block has room."""
    described: Description | None = None
    describe: Callable[[], Description] | None = None
    """What finds ``described`` where that is not here."""
    keep_block_function: Callable[[str], object] | None = None
    """Has other processes find its block function, by the name of that."""
    recall_block_function: Callable[[], int] | None = None
    """Takes the block function from disk that another process has made: its address, 0 where it is gone."""
    seconds: float = 0.0
    tiered_up: bool = False
    """Whether the second tier has been started on it."""
    notes: dict[type, Any] = field(default_factory=dict)
    """What tools keep of it from launch to launch."""
    failure: Exception | None = None
    """Why there is no second tier, until a warning has said so."""
    refusal: str = ""
    """Why there is no block function, once one was wanted: ``a barrier under a guard (line 12)``."""
    pace: float = 0.0
    """Seconds a block in the last launch, 0 where there was none."""
    walls: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """Seconds from begin to end of launches by one host thread and by several, a block; 0 where there was none."""
    block_function: int = 0
    """Address of the function that runs a block, 0 while there is none."""
    warp_functions: int = 0
    """How many places there are at which functions of a warp are entered."""
    exits: dict[int, int] = field(default_factory=dict)
    """Blocks that the block function has left before their end, by the offset of the micro-op where that was last."""
    wraps: set[int] = field(default_factory=set)
    """Statements whose :class:`.WrapCheck` has failed, of all codes of the kernel for this shape of block."""
    unoptimised: bool = False
    """Whether it has handlers that are to be optimised when it has run, and nobody was asked to."""
    undefined: Code | None = None
    """The code that follows what shuffles take from lanes that do not take part, once that was needed."""
    instrumented: bool = False
    """Whether it needs its tool: it has micro-ops of it, or the kernel was rewritten for it."""
    first_warps: bytes = b""
    """What the warps of a block are before they run, where that is little."""
    known_wraps: frozenset[int] = frozenset()
    """Those of them that were known when it was lowered: there each lane has a number of its own."""

    def __post_init__(self) -> None:
        self._lock = locks.rlock()

    @property
    def description(self) -> Description:
        """What it was made of, and which addresses belong to which micro-ops, basic blocks and statements."""
        if self.described is None:
            with self._lock:
                if self.described is None:
                    assert self.describe is not None
                    self.described = self.describe()
        return self.described

    @property
    def graph(self) -> ControlFlowGraph:
        return self.description.graph

    @property
    def registers(self) -> RegisterFile:
        return self.description.registers

    @property
    def operands(self) -> Operands:
        return self.description.operands

    @property
    def micro_ops(self) -> list[PlacedMicroOp]:
        return self.description.micro_ops

    @property
    def offsets(self) -> list[int]:
        """Where each micro-op begins, from ``base`` on."""
        return self.description.offsets

    @property
    def statements(self) -> list[int]:
        """The number of each micro-op's statement."""
        return self.description.statements

    @property
    def blocks_by_priority(self) -> list[int]:
        return self.description.blocks_by_priority

    @property
    def source(self) -> Source | None:
        """What it was lowered from, and the instrument."""
        return self.description.source

    @property
    def outdated(self) -> bool:
        """Whether it assumes of registers that they do not wrap around, and some have since."""
        return not self.conservative and len(self.wraps) > len(self.known_wraps)

    def note_exits(self, blocks: int, pc: int) -> None:
        """Note that the block function has left so many blocks, the last one at this micro-op."""
        place = pc - self.base
        self.exits[place] = self.exits.get(place, 0) + blocks

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
