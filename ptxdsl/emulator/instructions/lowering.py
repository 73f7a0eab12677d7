"""From a function to the records that handlers walk.

A record is a handler's address and the fields that it reads; which handler follows from the instruction and the classes
of its operands. Each function is lowered once for each shape of block, since the shape decides which registers are
uniform, and once more, with everything varying, if lanes of a warp ever have to run out of the usual order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

from ...ir import Address, Call, Function, Immediate, Instruction, Operand, Register, Selected, Symbol, Vector
from ...isa import Form
from ..analysis.divergence import UNIFORM, VARYING, Facts, Shape3, analyse, conservative_facts
from .control import METHODS as BRANCHES
from .control import Exit, Reconvergence, SystemCall, Trap, leave
from ...analysis.control_flow import BasicBlock, ControlFlowGraph, control_flow_graph, control_of
from .threads import METHODS
from ..machine.layout import LANES, SPACE_BITS, Block, Fault
from ..machine.unsupported import unsupported
from .barriers import Fence
from .data import Compute, WrapCheck
from .memory import Load, LoadParameter, Pattern, Store
from .micro_op import MicroOp, PlacedMicroOp
from .operand_classes import (
    ABSENT, ABSOLUTE, PREDICATE, OperandClass, affine, block_field, per_lane, shaping, uniform,
)
from .operands import NOTHING, Field, Operands, Pool, raw
from .scheduler import SchedulerFunction
from ..analysis.statements import plan_of
from .code import Code, packed
from ..analysis.registers import RegisterFile
from ..machine.address_spaces import Spaces

__all__ = ["Code", "Instrument", "Instrumentation", "Lowering", "lower"]


class Instrumentation(Protocol):
    """The micro-ops that a tool adds to those of one function."""

    def begin(self) -> None:
        """Emit those with which a warp begins a block."""

    def statement(self, statement: Instruction | Call) -> None:
        """Emit those around a statement; :meth:`Lowering.statement` emits its own."""


class Lowering:
    """Makes the records of one function."""

    def __init__(
        self, function: Function, spaces: Spaces, block: Shape3, conservative: bool,
        instrument: Instrument | None = None, keep_registers: bool = False,
    ) -> None:
        self.function, self.spaces, self.block, self.conservative = function, spaces, block, conservative
        self.graph = control_flow_graph(function, conservative)
        self.facts = self._analysed()
        self.registers = self._placed(keep_registers)
        self.pool = Pool()
        self.operands = self._described()
        self.leaves = spaces.cluster is not None and _meets_cluster(self.graph)
        self.records: list[PlacedMicroOp] = []
        self.starts: list[int] = []
        self.place = -1
        self.bounded: set[tuple[str, bool]] = set()
        self._ops: dict[Any, MicroOp] = {}
        self._places: dict[Any, tuple[OperandClass, Pattern | None, str, tuple[int, ...], int, int]] = {}
        self.node = 0
        self.parted, self.prints = False, False
        self.instrumentation = instrument(self) if instrument is not None else None

    def _analysed(self) -> Facts:
        return (conservative_facts if self.conservative else analyse)(self.graph, self.block, self.spaces.origins)

    def _placed(self, keep_registers: bool) -> RegisterFile:
        return RegisterFile(self.graph, self.facts, keep_registers)

    def _described(self) -> Operands:
        """What describes operands, for the slots that registers have."""
        spaces = self.spaces
        operands = Operands(self.facts, self.registers, self.block, self.pool, spaces.symbols)
        operands.cluster, operands.explicit = spaces.cluster, spaces.explicit
        return operands

    # Records

    def emit(self, op: MicroOp, *fields: Field) -> PlacedMicroOp:
        """Add a micro-op, with the operands and numbers that its code reads, in this order."""
        op = op.with_codes("".join([part.codes for part in fields]))
        values = [value for part in fields for value in part.values]
        placed = PlacedMicroOp(self._ops.setdefault(op, op), values, self.place)
        self.records.append(placed)
        return placed

    def lower(self) -> Code:
        self.emit(SchedulerFunction("reschedule"))
        prologue = len(self.records)
        self._prologue()
        entry = len(self.records)
        if self.instrumentation is not None:
            self.instrumentation.begin()
        for number, node in enumerate(self.graph.blocks):
            self._node(number, node)
        if not self.graph.blocks:
            self.starts.append(len(self.records))
            self.emit(Exit(ABSENT, True))
        if self.conservative:
            self.place = -1
            self.emit(Trap(ABSENT, Fault.CONVERGENCE))
        return packed(
            self.records, self.starts, prologue, entry, self.graph, self.registers, self.operands,
            conservative=self.conservative, prints=self.prints,
        )

    def _prologue(self) -> None:
        for place in sorted(self.facts.launch_invariant):
            self.place = place
            self.statement(self.graph.statements[place])
        self.place = -1
        self.emit(Exit(ABSENT, False))

    def _node(self, number: int, node: BasicBlock) -> None:
        self.node, self.parted = number, number in self.facts.divergent
        nodes = self.graph.blocks
        before = nodes[number - 1] if number else None
        falls = before is not None and before.fallthrough == number and not self._branches(before)
        if falls and number - 1 in self.facts.divergent:
            self.place = node.start
            self.emit(Reconvergence(), raw("i", node.priority))
        self.starts.append(len(self.records))
        self.bounded.clear()
        statements, emitter = self.graph.statements, self.instrumentation or self
        for place in range(node.start, node.stop):
            self.place = place
            if place not in self.facts.launch_invariant:
                emitter.statement(statements[place])
                if self.bounded:
                    for register in self.graph.def_use[place].writes:
                        self.bounded -= {(register.name, True), (register.name, False)}
        if node.fallthrough < 0 and not self._leaves(node):
            leave(self, NOTHING)
            self.emit(Exit(ABSENT, True))

    def _branches(self, node: BasicBlock) -> bool:
        """Whether a block ends with a branch that has seen to where its lanes go."""
        return control_of(self.graph.statements[node.stop - 1]).endswith("branch") and not node.exits

    def _leaves(self, node: BasicBlock) -> bool:
        last = self.graph.statements[node.stop - 1]
        return last.guard is None and control_of(last) not in ("", "call")

    def statement(self, statement: Instruction | Call) -> None:
        """The records of a statement."""
        if isinstance(statement, Call):
            guard = self.operands.guard(statement)
            self.prints = self.prints or statement.callee == Symbol("vprintf")
            self.emit(SystemCall(guard.kind), guard)
            return
        _method(statement.form)(self, statement)

    def _unknown(self, statement: Instruction) -> None:
        raise unsupported(statement, f"`{statement.form.mnemonic}`")

    # Instructions that compute

    def data(self, statement: Instruction) -> None:
        """An instruction that only computes."""
        form, used = statement.form, self.graph.def_use[self.place]
        known, plan = self.facts.offsets, plan_of(form)
        width = 1
        for register in used.writes:
            if known[register[0]] is VARYING:
                width = LANES
        if width == 1 and plan.widens:
            self._guard_wrap(statement)
        operands = self.operands
        sources, destinations = operands.scalars if width == 1 else operands.sources, operands.destinations
        fields = [operands.guard(statement)]
        for (spec, written, bits), operand in zip(plan.steps, statement.operands):
            if operand.__class__ is Register:
                found = (destinations if written else sources).get(operand[0])
                if found is None:
                    found = operands.destination(operand) if written else operands.register(operand, width == 1)
            elif operand.__class__ is Immediate and bits:
                found = operands.number(operand[0], bits)
            else:
                found = self._operand(statement, spec, operand, width)
            fields.append(found)
        for carries, kind in zip(plan.carry, (PREDICATE, per_lane(0))):
            if carries:
                fields.append(Field(kind, "i", (self._carry_slot(),)))
        parts = _parts(statement.operands) if plan.parts else ""
        key = (form, parts, width, self.parted, *[part[0] for part in fields])
        op = self._ops.get(key)
        if op is None:
            guard, *kinds = [part.kind for part in fields]
            made = Compute(form.mnemonic + parts, plan.number, width, guard, self.parted, tuple(kinds))
            op = self._ops[key] = made.with_codes("".join([part.codes for part in fields]))
        values: list[Any] = []
        for part in fields:
            values += part[2]
        self.records.append(PlacedMicroOp(op, values, self.place))

    def parameter_address(self, statement: Instruction, offset: int) -> None:
        """The address of a parameter is known at the launch: where the parameters lie, plus its offset."""
        guard, dest = self.operands.guard(statement), self.operands.destination(statement.operands[0])
        self._add(guard, dest, Field(block_field(64), "i", (Block.LAUNCH,)), offset)

    def window_address(self, statement: Instruction, dest: Operand, symbol: Symbol) -> None:
        """The address of a shared variable in a cluster: in the window of the block that runs."""
        guard, place = self.operands.guard(statement), self.operands.destination(dest)
        base, offset = Field(block_field(64), "i", (Block.WINDOW,)), self.operands.symbol(symbol, statement)
        self._add(guard, place, base, offset)

    def _add(self, guard: Field, dest: Field, base: Field, offset: int) -> None:
        """``dest = base + offset``, 64 bits."""
        number, width = self.operands.number(offset, 64), LANES if dest.kind.per_lane else 1
        kinds = (dest.kind, base.kind, number.kind)
        self.emit(Compute("add.u64", 0, width, guard.kind, self.parted, kinds), guard, dest, base, number)

    def _carry_slot(self) -> int:
        if "%CF" not in self.registers.offsets:
            self.registers.offsets["%CF"] = self.registers.reserve(8)
        return self.registers.offsets["%CF"]

    def _operand(self, statement: Instruction, spec: Any, operand: Operand, width: int) -> Field:
        if isinstance(operand, Selected):
            operand = operand.register
        if isinstance(operand, Register):
            if spec.written:
                return self.operands.destination(operand)
            return self.operands.source(operand, 0, width == 1)
        if isinstance(operand, Vector):
            parts = [self._operand(statement, spec, item, width) for item in operand.items]
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

    def _guard_wrap(self, statement: Instruction) -> None:
        """A widened sum is the sum of the widened parts unless it wraps: leave for conservative code where it does."""
        form = statement.form
        for spec, operand in zip(form.operands, statement.operands):
            known = self.operands.known(operand)
            if spec.written or known is UNIFORM or known is None or spec.type is None:
                continue
            if not isinstance(operand, Register):
                continue  # a special register, which has no number that large
            result = form.operands[0].type
            if operand.type.bits >= 64 or result is None or result.bits <= spec.type.bits:
                continue
            if (operand.name, spec.type.is_signed) in self.bounded:
                continue
            self.bounded.add((operand.name, spec.type.is_signed))
            base = self.operands.source(operand, 32, True)
            bounds = raw("qq", min(known), max(known))
            self.emit(WrapCheck(base.kind, spec.type.is_signed), base, bounds)

    def rank(self) -> Field:
        """The rank of the block, where lanes may have to wait there for others."""
        return raw("i", self.graph.blocks[self.node].priority) if self.parted else NOTHING

    def predicate(self, operand: Operand) -> Field:
        """A predicate that is read as a mask."""
        return self.operands.source(operand, 32, False)

    # Memory

    def origin(self, base: Operand) -> str:
        """The parameter or variable that the base of an address comes from, "" if none is known."""
        if isinstance(base, Symbol):
            return self.spaces.origins.get(base.symbol, "")
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
        entry, strict = self.spaces.entry(self.origin(base), space)
        flags = nbytes | SPACE_BITS[space] << 8 | write << 16 | strict << 17
        if not isinstance(base, Register):
            return ABSOLUTE, None, "iiq", (flags, entry), 2, offset
        known = self.operands.known(base)
        bits, slot = base.type.bits, self.registers.offsets[base.name]
        if known is None or known is UNIFORM:
            return (per_lane if known is None else uniform)(bits), None, "iiiq", (flags, entry, slot), 3, 0
        low = min(known)
        pattern, segments = _pattern(tuple(x - low for x in known), nbytes)
        span = max(known) - low + nbytes
        if span >= 1 << 31 or not -(1 << 31) <= low < 1 << 31:
            pattern, segments, span, low = None, (), nbytes, 0
        values = (flags, entry, slot, low, span - 1, self.pool.address(known, bits), *segments)
        return affine(bits), pattern, "iiiqiiq" + "i" * len(segments), values, 3, low

    def _load(self, statement: Instruction) -> None:
        form = statement.form
        dest, address = statement.operands[:2]
        assert isinstance(address, Address) and form.type is not None
        items = dest.items if isinstance(dest, Vector) else (dest,)
        dests = [self.operands.destination(item) for item in items]
        kinds = tuple(part.kind for part in dests)
        guard = self.operands.guard(statement)
        bits, signed = form.type.bits, form.type.is_signed
        masked = self.parted and any(kind.per_lane for kind in kinds)
        if form.space == "param" and isinstance(address.base, Symbol):
            offset = address.offset + address.base.offset
            offset = self.spaces.parameter(statement, address.base.symbol, offset, bits // 8 * len(items))
            self.emit(LoadParameter(bits, signed, kinds, guard.kind, masked), guard, raw("i", offset), *dests)
            return
        kind, pattern, place = self.address(statement, address, bits // 8 * len(items), False)
        self.emit(Load(kind, pattern, bits, signed, kinds, guard.kind, masked), place, guard, *dests)
        if "acquire" in form.tokens:
            self.emit(Fence("acquire"))

    def _store(self, statement: Instruction) -> None:
        form = statement.form
        address, value = statement.operands[:2]
        assert isinstance(address, Address) and form.type is not None
        items = value.items if isinstance(value, Vector) else (value,)
        bits = form.type.bits
        if "release" in form.tokens:
            self.emit(Fence("release"))
        kind, pattern, place = self.address(statement, address, bits // 8 * len(items), True)
        private = self.facts.may_be_local(form.space, self.origin(address.base))
        scalar = kind.scalar and not private
        scalar = scalar and all(self.operands.known(item) is UNIFORM for item in items)
        values = [self.operands.source(item, bits, scalar, statement) for item in items]
        guard = self.operands.guard(statement)
        if (kind.scalar and not scalar) or form.space == "local":
            pattern = None
        kinds = tuple(part.kind for part in values)
        self.emit(Store(kind, pattern, bits, kinds, scalar, guard.kind, self.parted), place, guard, *values)

def _meets_cluster(whole: ControlFlowGraph) -> bool:
    forms = {statement.form for statement in whole.statements if isinstance(statement, Instruction)}
    return any(form.semantics.startswith("barrier_cluster") for form in forms)


def _pattern(vector: tuple[int, ...], nbytes: int) -> tuple[Pattern | None, tuple[int, ...]]:
    """The longest segments of lanes that are contiguous or equal, if any, and where all but the first start."""
    for lanes in (32, 16, 8, 4):
        starts = vector[::lanes]
        for letter, step in (("c", nbytes), ("b", 0)):
            line = [start + lane * step for start in starts for lane in range(lanes)]
            if list(vector) == line and starts[0] == 0 and all(start % nbytes == 0 for start in starts):
                return (letter, lanes), starts[1:]
    return None, ()


def _parts(operands: tuple[Operand, ...]) -> str:
    """The parts of registers that a video instruction names, as they stand behind its mnemonic in a shape."""
    if not any(isinstance(operand, Selected) for operand in operands):
        return ""
    return ";" + ",".join(
        ("-" * operand.negated + operand.selector) if isinstance(operand, Selected) else "" for operand in operands
    )


Instrument = Callable[[Lowering], Instrumentation]

_SEVERAL = ("cp", "multimem")
"""Opcodes of several families, which the semantics tell apart."""
_METHODS: dict[str, Any] = {
    "ld": Lowering._load, "ldu": Lowering._load, "st": Lowering._store, **BRANCHES, **METHODS,
}


@cache
def _method(form: Form) -> Callable[[Lowering, Instruction], None]:
    """What makes the records of a form."""
    name = form.semantics if form.opcode in _SEVERAL else form.opcode
    method: Any = _METHODS.get(name) or (Lowering.data if plan_of(form).covered else None)
    return method or _further().get(name, Lowering._unknown)


@cache
def _further() -> dict[str, Any]:
    """What makes the records of forms that few kernels have."""
    from . import bulk_copies, matrix, mbarrier, textures

    return {**matrix.METHODS, **mbarrier.METHODS, **textures.METHODS, **bulk_copies.METHODS}


def lower(
    function: Function, spaces: Spaces, block: Shape3, conservative: bool = False, instrument: Instrument | None = None,
    keep_registers: bool = False,
) -> Code:
    """The records of a kernel for blocks of this shape, with those of a tool where there is an ``instrument``.

    ``keep_registers``: each register keeps its number to the end, for a debugger; such code has no second tier.
    """
    code = Lowering(function, spaces, block, conservative, instrument, keep_registers).lower()
    code.source = (function, spaces, block, instrument)
    code.tiered_up = keep_registers
    return code
