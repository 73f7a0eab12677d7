"""Instructions that only compute, and what else reads nothing but registers."""

from __future__ import annotations

from typing import Any

from ...analysis.def_use import CARRY
from ...ir import Immediate, Instruction, Operand, Register, Selected, Symbol
from ..analysis.divergence import UNIFORM, VARYING
from ..analysis.form_plans import plan_of
from ..machine.layout import LANES, Block
from .lowering import Lowering, lowers
from .micro_op import MicroOp, PlacedMicroOp
from .operand_classes import PREDICATE, OperandClass, block_field, per_lane, uniform
from .operands import Field, raw

__all__ = ["Compute", "ReadClock", "SpaceTest", "WrapCheck", "compute", "parameter_address", "window_address"]


class Compute(MicroOp, may_fault=False, repeatable=True, inlinable=True, by_lane=True):
    """An instruction by its semantics.

    ``number`` is the form's among those of its mnemonic, ``width`` 1 where one number for the warp is computed, else
    32. ``selectors`` are the parts of registers that the operands of a video instruction name, empty for others.
    """

    mnemonic: str
    number: int
    selectors: tuple[str, ...]
    width: int
    guard: OperandClass
    masked: bool
    operands: tuple[Any, ...]

    @property
    def fusible(self) -> bool:
        return self.width > 1 or not self.guard


class SpaceTest(MicroOp, may_fault=False, repeatable=True, inlinable=True, by_lane=True):
    """isspacep: ``ranges`` has a letter for each range, B where a field of the block is added to its base."""

    negated: bool
    ranges: str
    dest: OperandClass
    address: OperandClass
    width: int
    guard: OperandClass
    masked: bool


class ReadClock(MicroOp, may_fault=False, repeatable=True, inlinable="a loop may wait for it"):
    """Cycles and nanoseconds of the host, as the special register of that name."""

    register: str
    dest: OperandClass
    guard: OperandClass
    masked: bool


class WrapCheck(MicroOp, may_fault=True, repeatable=True, inlinable=True):
    """Deoptimises where base plus lane offset wraps around in some lane."""

    base: OperandClass
    signed: bool

    @property
    def fusible(self) -> bool:
        return True


@lowers("compute")
def compute(low: Lowering, statement: Instruction) -> None:
    """An instruction that only computes."""
    form, used = statement.form, low.graph.def_use[low.place]
    known, plan = low.facts.offsets, plan_of(form)
    width = 1
    for register in used.writes:
        if known[register[0]] is VARYING:
            width = LANES
    if width == 1 and plan.widens:
        _guard_wrap(low, statement)
    operands = low.operands
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
            found = low.operand(statement, spec, operand, width)
        fields.append(found)
    for carries, kind in zip(plan.carry, (PREDICATE, (per_lane if width > 1 else uniform)(0))):
        if carries:
            fields.append(Field(kind, "i", (low.registers.offsets[CARRY.name],)))
    selectors = _selectors(statement.operands) if plan.parts else ()
    key = (form, selectors, width, low.divergent, *[part[0] for part in fields])
    op = low.interned.get(key)
    if op is None:
        guard, *kinds = [part.kind for part in fields]
        made = Compute(form.mnemonic, plan.number, selectors, width, guard, low.divergent, tuple(kinds))
        op = low.interned[key] = made.with_codes("".join([part.codes for part in fields]))
    values: list[Any] = []
    for part in fields:
        values += part[2]
    low.micro_ops.append(PlacedMicroOp(op, values, low.place))


def parameter_address(low: Lowering, statement: Instruction, offset: int) -> None:
    """The address of a parameter is known at the launch: where the parameters lie, plus its offset."""
    guard, dest = low.operands.guard(statement), low.operands.destination(statement.operands[0])
    _add(low, guard, dest, Field(block_field(64), "i", (Block.LAUNCH,)), offset)


def window_address(low: Lowering, statement: Instruction, dest: Operand, symbol: Symbol) -> None:
    """The address of a shared variable in a cluster: in the window of the block that runs."""
    guard, place = low.operands.guard(statement), low.operands.destination(dest)
    base, offset = Field(block_field(64), "i", (Block.WINDOW,)), low.operands.symbol(symbol, statement)
    _add(low, guard, place, base, offset)


def _add(low: Lowering, guard: Field, dest: Field, base: Field, offset: int) -> None:
    """``dest = base + offset``, 64 bits."""
    number, width = low.operands.number(offset, 64), LANES if dest.kind.per_lane else 1
    kinds = (dest.kind, base.kind, number.kind)
    low.emit(Compute("add.u64", 0, (), width, guard.kind, low.divergent, kinds), guard, dest, base, number)


def _guard_wrap(low: Lowering, statement: Instruction) -> None:
    """A widened sum is the sum of the widened parts unless it wraps: leave for conservative code where it does."""
    form = statement.form
    for spec, operand in zip(form.operands, statement.operands):
        known = low.operands.lane_offsets(operand)
        if spec.written or known is UNIFORM or known is None or spec.type is None:
            continue
        if not isinstance(operand, Register):
            continue  # a special register, which has no number that large
        result = form.operands[0].type
        if operand.type.bits >= 64 or result is None or result.bits <= spec.type.bits:
            continue
        if (operand.name, spec.type.is_signed) in low.bounded:
            continue
        low.bounded.add((operand.name, spec.type.is_signed))
        base = low.operands.source(operand, 32, True)
        there = known[: low.present]
        bounds = raw("qq", min(there), max(there))
        low.emit(WrapCheck(base.kind, spec.type.is_signed), base, bounds)


def _selectors(operands: tuple[Operand, ...]) -> tuple[str, ...]:
    """The part of a register that each operand names, with a - if it is negated; empty where none does."""
    found = tuple("-" * op.negated + op.selector if isinstance(op, Selected) else "" for op in operands)
    return found if any(found) else ()
