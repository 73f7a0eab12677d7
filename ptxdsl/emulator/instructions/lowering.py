"""Lowering of one function's instructions: what each family of them is given, and how it registers.

A family lowers its instructions by functions of a :class:`Lowering` and a statement, which emit micro-ops::

    @lowers("exit")
    def lower_exit(low: Lowering, statement: Instruction) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Protocol, TypeVar

from ...analysis.control_flow import control_flow_graph
from ...ir import Address, Call, Function, Immediate, Instruction, Operand, Register, Selected, Symbol, Vector
from ...isa import Form
from ..analysis.divergence import NOWHERE, UNIFORM, Facts, Shape3, analyse, conservative_facts
from ..analysis.registers import RegisterFile
from ..analysis.form_plans import plan_of
from ..machine.address_spaces import AddressSpaces
from ..machine.layout import LANES, SPACE_BITS
from ..machine.unsupported import unsupported
from ..machine.warp_rows import lanes_of_warps
from .addresses import AccessFlags, Pattern, lane_pattern
from .micro_op import MicroOp, PlacedMicroOp
from .operand_classes import ABSOLUTE, OperandClass, affine, per_lane, shaping, uniform
from .operands import NOTHING, ConstantPool, Field, Operands, raw
from .scheduler import Interruption

__all__ = ["Instrument", "Instrumentation", "Lowering", "lowering_of", "lowers"]

_RARE_FAMILIES = (
    "bulk_copies", "mbarrier", "tensor_copies", "tensor_cores.matrix", "tensor_cores.tensor_memory_copies",
    "tensor_cores.tensor_products", "tensor_cores.tensor_transfers", "tensor_cores.wgmma", "textures",
)
"""Loaded for the first instruction that no other family lowers."""
_Lower = TypeVar("_Lower", bound=Callable[..., None])
_LOWERINGS: dict[str, Callable[..., None]] = {}


def lowers(*names: str) -> Callable[[_Lower], _Lower]:
    """Register the lowering of opcodes, or of what instructions do by the table."""

    def register(lower: _Lower) -> _Lower:
        for name in names:
            if name in _LOWERINGS:
                raise ValueError(f"two lowerings of {name}")
            _LOWERINGS[name] = lower
        return lower

    return register


@cache
def lowering_of(form: Form) -> Callable[[Lowering, Instruction], None]:
    """What emits the micro-ops of a form; one that computes has a lowering where semantics alone do not suffice."""
    found = _LOWERINGS.get(form.semantics) or _LOWERINGS.get(form.opcode)
    if found is None and plan_of(form).covered:
        found = _LOWERINGS["compute"]
    if found is None:
        for family in _RARE_FAMILIES:
            import_module(f"{__package__}.{family}")
        found = _LOWERINGS.get(form.semantics) or _LOWERINGS.get(form.opcode)
    if found is None:
        found = _ignore if form.effects.hint else _refuse
    return found


def _ignore(low: Lowering, statement: Instruction) -> None:
    """A hint."""


def _refuse(_: Lowering, statement: Instruction) -> None:
    raise unsupported(statement, f"`{statement.form.mnemonic}`")


class Instrumentation(Protocol):
    """The micro-ops that a tool adds to those of one function."""

    def begin(self) -> None:
        """Emit those with which a warp begins a block."""

    def statement(self, statement: Instruction | Call) -> None:
        """Emit those around a statement; :meth:`Lowering.statement` emits its own."""


class Lowering:
    """Makes the micro-ops of one function's statements.

    ``place`` is the number of the statement, ``basic_block`` that of the block; ``divergent``: lanes may be inactive
    there while others of the warp execute it.
    """

    def __init__(
        self, function: Function, spaces: AddressSpaces, block: Shape3, conservative: bool,
        instrument: Instrument | None = None, keep_registers: bool = False, wraps: frozenset[int] = NOWHERE,
    ) -> None:
        self.function, self.spaces, self.block, self.conservative = function, spaces, block, conservative
        self.instrument = instrument
        self.present = min(lanes_of_warps(block), block[0] * block[1] * block[2])
        """Lanes of a warp that any warp of the block has."""
        self.wraps = wraps
        """Statements that widen a register which has been seen to wrap around in some lane."""
        self.graph = control_flow_graph(function, conservative)
        self.facts = self._analysed()
        self.registers = self._register_file(keep_registers)
        self.pool = ConstantPool()
        self.operands = self._described()
        self.micro_ops: list[PlacedMicroOp] = []
        self.place = -1
        self.bounded: set[tuple[str, bool]] = set()
        """Registers that were checked not to wrap in this basic block, as signed numbers or not."""
        self.interned: dict[Any, MicroOp] = {}
        """Each micro-op once, by what it was made of."""
        self._places: dict[Any, tuple[OperandClass, Pattern | None, str, tuple[int, ...], int, int]] = {}
        self.basic_block = 0
        self.divergent, self.prints, self.tracks_undefined = False, False, False
        self.defers, self.pending = True, 0
        """Whether asynchronous operations may be made later, and room for those that are not complete."""
        self.keeps_plans = False
        """Whether products leave their plans for the check behind them."""
        self.instrumentation = instrument(self) if instrument is not None else None
        self.splits = spaces.defers and instrument is None
        """Whether warps stop before strong accesses too: where a seed draws who goes on."""

    def _analysed(self) -> Facts:
        graph, block, roots = self.graph, self.block, self.spaces.provenance
        if self.conservative:
            return conservative_facts(graph, block, roots)
        return analyse(graph, block, roots, wraps=self.wraps)

    def _register_file(self, keep_registers: bool) -> RegisterFile:
        return RegisterFile(self.graph, self.facts, keep_registers)

    def _described(self) -> Operands:
        """What describes operands, for the slots that registers have."""
        spaces = self.spaces
        operands = Operands(self.facts, self.registers, self.block, self.pool, spaces.symbols)
        operands.cluster, operands.explicit = spaces.cluster, spaces.explicit
        return operands

    def slot(self, name: str, nbytes: int) -> int:
        """Where a warp keeps something of so many bytes a lane."""
        offsets = self.registers.offsets
        if name not in offsets:
            offsets[name] = self.registers.reserve(nbytes * LANES)
        return offsets[name]

    def statement(self, statement: Instruction | Call) -> None:
        """Emit the micro-ops of a statement."""
        if isinstance(statement, Call):
            _LOWERINGS["call"](self, statement)
        else:
            if self.splits and statement.form.effects.strong:
                self.emit(Interruption())
            lowering_of(statement.form)(self, statement)

    def emit(self, op: MicroOp, *fields: Field) -> PlacedMicroOp:
        """Add a micro-op, with the operands and numbers that its code reads, in this order; it says which these are."""
        known = self.interned.get(op)
        if known is None:
            known = self.interned[op] = op.with_codes("".join([part[1] for part in fields]))
        values: list[Any] = []
        for part in fields:
            values += part[2]
        placed = PlacedMicroOp(known, values, self.place)
        self.micro_ops.append(placed)
        return placed

    @cached_property
    def cluster_barriers(self) -> bool:
        """Whether threads wait for those of other blocks of a cluster."""
        return self.spaces.cluster is not None and any(
            isinstance(statement, Instruction) and statement.form.effects.barrier == "cluster"
            for statement in self.graph.statements
        )

    @cached_property
    def numbers(self) -> dict[str, Immediate]:
        """The registers that are written once, with a number: compilers pass the lanes of a shuffle in such."""
        found: dict[str, Immediate | None] = {}
        for op in self.graph.def_use:
            statement = op.statement
            number = None
            if isinstance(statement, Instruction) and statement.guard is None and statement.form.opcode == "mov":
                number = statement.operands[1] if isinstance(statement.operands[1], Immediate) else None
            for register in op.writes:
                found[register.name] = None if register.name in found else number
        return {name: number for name, number in found.items() if number is not None}

    # Operands

    def operand(self, statement: Instruction, spec: Any, operand: Operand, width: int) -> Field:
        if isinstance(operand, Selected):
            operand = operand.register
        if isinstance(operand, Register):
            if spec.written:
                return self.operands.destination(operand)
            return self.operands.source(operand, 0, width == 1)
        if isinstance(operand, Vector):
            parts = [self.operand(statement, spec, item, width) for item in operand.items]
            return Field(
                tuple(part.kind for part in parts),  # type: ignore[arg-type]
                "".join(part.codes for part in parts),
                tuple(value for part in parts for value in part.values),
            )
        if spec.written:
            return self.operands.destination(operand)
        if not spec.register and isinstance(operand, Immediate):
            return Field(shaping(operand.bits))
        return self.operands.source(operand, spec.type.bits, width == 1, statement)

    def priority(self) -> Field:
        """The priority of the block, where lanes may have to wait there for others."""
        return raw("i", self.graph.blocks[self.basic_block].priority) if self.divergent else NOTHING

    def read(self, statement: Instruction, operand: Operand | None, bits: int = 32) -> Field:
        """An operand that is read, one number a lane; it may be left out. ``bits`` sizes a number."""
        return NOTHING if operand is None else self.operands.source(operand, bits, False, statement)

    # Memory

    def origin(self, base: Operand) -> str:
        """The parameter or variable that the base of an address comes from, "" if none is known."""
        if isinstance(base, Symbol):
            return self.spaces.provenance.get(base.symbol, "")
        return self.facts.provenance.get(base.name, "") if isinstance(base, Register) else ""

    def address(
        self, statement: Instruction, operand: Address, nbytes: int, write: bool, space: str = ""
    ) -> tuple[OperandClass, Pattern | None, Field]:
        """Class, pattern and fields of an address: flags, entry, then what the class needs."""
        space = space or statement.form.space
        base, offset = operand.base, operand.offset
        key = (base, space, nbytes, write)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self._address(statement, base, space, nbytes, write)
        kind, pattern, codes, values, at, low = found
        offset = (offset + low + (1 << 63)) % (1 << 64) - (1 << 63)
        return kind, pattern, Field(kind, codes, (*values[:at], offset, *values[at:]))

    def _address(
        self, statement: Instruction, base: Operand, space: str, nbytes: int, write: bool
    ) -> tuple[OperandClass, Pattern | None, str, tuple[int, ...], int, int]:
        """What all addresses with this base have in common; the offset, plus a number, goes among the values."""
        offset = 0
        if isinstance(base, Symbol):
            offset += self.operands.symbol(base, statement)
            if space == "generic":
                offset += self.spaces.windows.get(base.symbol, 0)
        elif isinstance(base, Immediate):
            offset += base.bits
        entry, one_entry = self.spaces.entry(self.origin(base), space)
        flags = AccessFlags.of(nbytes, SPACE_BITS[space], write, one_entry)
        if not isinstance(base, Register):
            return ABSOLUTE, None, "iiq", (flags, entry), 2, offset
        known = self.operands.lane_offsets(base)
        bits, slot = base.type.bits, self.registers.offsets[base.name]
        if known is None or known is UNIFORM:
            return (per_lane if known is None else uniform)(bits), None, "iiiq", (flags, entry, slot), 3, 0
        there = known[: self.present]
        low = min(there)
        pattern, segments = lane_pattern(tuple(x - low for x in there), nbytes)
        span = max(there) - low + nbytes
        if span >= 1 << 31 or not -(1 << 31) <= low < 1 << 31:
            pattern, segments, span, low = None, (), nbytes, 0
        values = (flags, entry, slot, low, span - 1, self.pool.address(known, bits), *segments)
        return affine(bits), pattern, "iiiqiiq" + "i" * len(segments), values, 3, low


Instrument = Callable[[Lowering], Instrumentation]
