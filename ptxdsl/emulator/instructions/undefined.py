"""Numbers that a shuffle took from a lane that does not take part: followed until one is used.

PTX leaves such a number undefined, and nothing else: a program that drops it is right, as ``if (lane + 1 < n)`` behind
``__shfl_down_sync`` does. So the first shuffle that takes one makes the block go on in code that keeps a bit for each
register and lane: instructions that only compute pass it on, and whatever lets the number out of the thread's registers
demands that it is not set: memory, addresses, branches, guards that matter, votes. All other launches pay nothing.

What it cannot see: a result that does not depend on an undefined operand (its product with 0) counts as undefined, and
so does one that ``st.local`` keeps, at the store.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Call, Instruction, Not, Register
from ..analysis.form_plans import plan_of
from ..machine.layout import LANES, Warp
from .lowering import Instrument, Instrumentation, Lowering
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import NOTHING, Field, raw
from .warp import shuffle_sources

__all__ = [
    "FOLLOWING", "ORIGINS", "AbsorbUndefined", "ClearUndefined", "DemandDefined", "SelectUndefined",
    "ShuffleUndefined", "SpreadUndefined", "UndefinedNumbers", "undefined",
]

_FIRST_TIER = "only code that is conservative has it"
ORIGINS = "~origins"
"""Name of the slot that says of each lane which shuffle took a number from a lane that does not take part."""


def undefined(name: str) -> str:
    """The name of the mask of the lanes in which a register is undefined."""
    return f"{name}~"


class ClearUndefined(MicroOp, may_fault=False, repeatable=True, inlinable=_FIRST_TIER, instrumentation=True):
    """A block begins: nothing is undefined."""


class SpreadUndefined(MicroOp, may_fault=False, repeatable=True, inlinable=_FIRST_TIER, instrumentation=True):
    """What is computed of so many ``sources`` is undefined where one of them is; so many registers are written."""

    guard: OperandClass
    sources: int
    written: int


class AbsorbUndefined(MicroOp, may_fault=False, repeatable=True, inlinable=_FIRST_TIER, instrumentation=True):
    """As SpreadUndefined, but one of the ``predicates`` that is defined and not ``neutral`` decides the result."""

    guard: OperandClass
    predicates: tuple[OperandClass, ...]
    neutral: bool
    sources: int
    written: int


class SelectUndefined(MicroOp, may_fault=False, repeatable=True, inlinable=_FIRST_TIER, instrumentation=True):
    """Only what ``predicate`` selects counts."""

    guard: OperandClass
    predicate: OperandClass


class ShuffleUndefined(MicroOp, may_fault=False, repeatable=False, inlinable=_FIRST_TIER, instrumentation=True):
    """Behind a shuffle: undefined is what comes from no lane of the group, or was so there."""

    mode: str
    constant: tuple[int, int] | None
    b: OperandClass
    c: OperandClass
    members: OperandClass
    guard: OperandClass


class DemandDefined(MicroOp, may_fault=True, repeatable=True, inlinable=_FIRST_TIER, instrumentation=True):
    """A fault where one of so many ``sources`` is undefined in a lane that reads it."""

    guard: OperandClass
    sources: int


FOLLOWING = (ClearUndefined, SpreadUndefined, AbsorbUndefined, SelectUndefined, ShuffleUndefined, DemandDefined)


class UndefinedNumbers:
    """Adds them to the micro-ops of one function, around those of another tool."""

    def __init__(self, low: Lowering, inner: Instrument | None, everything: bool = False) -> None:
        self.low = low
        low.tracks_undefined = True
        ops = low.graph.def_use
        self.names = [*{r.name: 0 for op in ops for r in op.writes}] if everything else _reached(low.graph)
        self.start, offsets = low.registers.reserve(4 * len(self.names)), low.registers.offsets
        self.offsets = {name: self.start + 4 * number for number, name in enumerate(self.names)}
        offsets.update({undefined(name): offset for name, offset in self.offsets.items()})
        self.origins = offsets[ORIGINS] = low.registers.reserve(4 * LANES)
        self.inner: Instrumentation | None = inner(low) if inner is not None else None

    def begin(self) -> None:
        if self.inner is not None:
            self.inner.begin()
        nbytes = self.origins + 4 * LANES - self.start
        self.low.emit(ClearUndefined(), raw("ii", self.start, nbytes))

    def statement(self, statement: Instruction | Call) -> None:
        """The masks change before the statement, but behind a shuffle, which lanes may come to again."""
        low, shuffles = self.low, isinstance(statement, Instruction) and statement.form.opcode == "shfl"
        op = low.graph.def_use[low.place]
        if isinstance(statement, Instruction) and shuffles:
            self._demand(statement, op.uses[isinstance(op.reads[0], Register) :])  # all but what is moved
        elif isinstance(statement, Instruction) and plan_of(statement.form).pure:
            self._compute(statement)
        else:
            self._demand(statement, op.uses)
            self._spread(statement, [], op.writes)
        (self.inner or low).statement(statement)
        if isinstance(statement, Instruction) and shuffles:
            self._shuffle(statement)

    def _masks(self, registers: Iterable[Register]) -> list[int]:
        return [self.offsets[name] for name in dict.fromkeys(r.name for r in registers) if name in self.offsets]

    def _mask(self, operand: object) -> int:
        """The mask of an operand; zeros for all others."""
        return self.offsets.get(operand.name, Warp.ZERO) if isinstance(operand, Register) else Warp.ZERO

    def _compute(self, statement: Instruction) -> None:
        op = self.low.graph.def_use[self.low.place]
        if statement.form.effects.selects and statement.form.operands[-1].kind == "value" and len(op.reads) == 3:
            chosen = op.reads[2]
            if isinstance(chosen, Register) and chosen.type.kind == "p" and self._masks((*op.uses, *op.writes)):
                guard, predicate = self.low.operands.guard(statement), self.low.read(statement, chosen)
                masks = [self._mask(operand) for operand in (*op.reads, op.writes[0])]
                if op.writes[0].name in self.offsets:
                    self.low.emit(
                        SelectUndefined(guard.kind, predicate.kind), guard, predicate, raw("iiii", *masks)
                    )
                return
        combines = [token for token in (statement.form.opcode, *statement.form.tokens) if token in ("and", "or")]
        predicates = [operand for operand in op.reads if _predicate(operand) is not None]
        if not combines or not predicates or statement.guard is not None or not self._masks(op.writes):
            self._spread(statement, op.uses, op.writes)
            return
        low, before, after = self.low, self._masks(op.uses), self._masks(op.writes)
        values = [low.read(statement, operand) for operand in predicates]
        low.emit(
            AbsorbUndefined(NOTHING.kind, tuple(v.kind for v in values), combines[0] == "and", len(before), len(after)),
            raw("i" * len(before), *before), *values,
            raw("i" * len(values), *(self._mask(_predicate(operand)) for operand in predicates)),
            raw("i" * len(after), *after),
        )

    def _spread(self, statement: Instruction | Call, sources: Iterable[Register], written: Iterable[Register]) -> None:
        before, after = self._masks(sources), self._masks(written)
        if after:
            guard = self.low.operands.guard(statement)
            places = raw("i" * (1 + len(before) + len(after)), self._decides(statement), *before, *after)
            self.low.emit(SpreadUndefined(guard.kind, len(before), len(after)), guard, places)

    def _decides(self, statement: Instruction | Call) -> int:
        """The mask of the guard."""
        guard = statement.guard
        return self._mask(guard.predicate if isinstance(guard, Not) else guard)

    def _demand(self, statement: Instruction | Call, registers: Iterable[Register]) -> None:
        masks = self._masks(registers)
        if masks:
            guard, places = self.low.operands.guard(statement), raw("i" * len(masks), *masks)
            decides = raw("i", self._decides(statement))
            self.low.emit(DemandDefined(guard.kind, len(masks)), guard, decides, places)

    def _shuffle(self, statement: Instruction) -> None:
        low, op = self.low, self.low.graph.def_use[self.low.place]
        constant, sources = shuffle_sources(low, statement)
        b, c, members = sources[1:]
        guard, taken, result = low.operands.guard(statement), self._mask(op.reads[0]), self._mask(op.writes[0])
        fields: list[Field] = [guard, b, c, members]
        mode = statement.form.modifiers["mode"] or ""
        low.emit(
            ShuffleUndefined(mode, constant, b.kind, c.kind, members.kind, guard.kind),
            *fields, raw("iiii", low.place, taken, result, self.origins),
        )
        self._spread(statement, [], op.writes[1:])


def _predicate(operand: object) -> Register | None:
    """The predicate register that an operand reads."""
    found = operand.predicate if isinstance(operand, Not) else operand
    return found if isinstance(found, Register) and found.type.kind == "p" else None


def _reached(graph: ControlFlowGraph) -> list[str]:
    """The registers that a shuffle writes, and those that are computed of them."""
    found: dict[str, None] = {}
    before = -1
    while before != len(found):
        before = len(found)
        for op in graph.def_use:
            statement = op.statement
            if not isinstance(statement, Instruction):
                continue
            if statement.form.opcode == "shfl" or (
                plan_of(statement.form).pure and any(register.name in found for register in op.uses)
            ):
                found.update(dict.fromkeys(register.name for register in op.writes))
    return list(found)
