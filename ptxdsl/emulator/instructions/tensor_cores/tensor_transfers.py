"""Loads and stores of tensor memory by a warp, its waits and fences.

A shape says which cell each register of each lane is of: in steps of a few columns, whose cells are those of a few
registers (:class:`Step`). What an instruction has issued is done, so fences and waits for loads have nothing to do; a
wait for stores is noted (:mod:`...codegen.tensor_cores.tensor_flight`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ....ir import Address, Immediate, Instruction, Sink, elements
from ..bulk_copies import slot
from ..lowering import Lowering, lowers
from ..micro_op import MicroOp
from ..operand_classes import OperandClass
from ..operands import NOTHING, Field, raw

__all__ = [
    "STEPS", "Cells", "Step", "TensorCompression", "TensorLoad", "TensorStore", "TensorWait", "cells_of", "place_of",
]

_ALONE = "tensor memory has no block functions"


class Step(NamedTuple):
    """The cells that ``registers`` are of: those of ``lanes`` neighbouring lanes in ``columns``.

    ``cell`` gives by lane of the warp and register the column and the lane of the cell. The next step is ``columns``
    further. With ``split`` it is one column, and there is a second one at an offset that the instruction gives.
    """

    lanes: int
    columns: int
    registers: int
    cell: Callable[[int, int], tuple[int, int]]
    split: bool = False


STEPS = {
    "32x32b": Step(32, 1, 1, lambda t, r: (0, t)),  # noqa: ARG005
    "16x64b": Step(16, 2, 1, lambda t, r: (t // 2 % 2, t // 4 + 8 * (t % 2))),  # noqa: ARG005
    "16x128b": Step(16, 4, 2, lambda t, r: (t % 4, t // 4 + 8 * r)),
    "16x256b": Step(16, 8, 4, lambda t, r: (2 * (t % 4) + r % 2, t // 4 + 8 * (r // 2))),
    "16x32bx2": Step(16, 1, 1, lambda t, r: (t // 16, t % 16), True),  # noqa: ARG005
}


class TensorLoad(MicroOp, may_fault=True, repeatable=True, inlinable=_ALONE, converges=True):
    """Loads ``registers`` registers; ``packed`` ones hold the lower halves of two columns' cells.

    ``reduction`` is the instruction by which each lane's registers are reduced to ``result``, ``abs`` before it where
    these are taken without their signs; both are empty without one. The record has the address of a table of the
    registers' offsets.
    """

    shape: str
    registers: int
    packed: bool
    reduction: tuple[str, ...]
    result: OperandClass
    address: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class TensorCompression(MicroOp, may_fault=True, repeatable=True, inlinable=_ALONE, converges=True):
    """Loads ``columns`` columns, of each four of a lane the two greatest (or ``least``), ``absolute`` without signs.

    The record has the address of a table of the offsets of the registers for indices, then for values.
    """

    columns: int
    least: bool
    absolute: bool
    reduction: tuple[str, ...]
    result: OperandClass
    address: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class TensorStore(MicroOp, may_fault=True, repeatable=False, inlinable=_ALONE, converges=True):
    """Stores ``registers`` registers; of ``packed`` ones the halves go to the lower halves of two columns' cells.

    ``values`` are their classes where not all of them have a number for each lane, else the record has the address of a
    table of their offsets.
    """

    shape: str
    registers: int
    packed: bool
    values: tuple[OperandClass, ...]
    address: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class TensorWait(MicroOp, may_fault=True, repeatable=True, inlinable=_ALONE, converges=True):
    """The warp waits for its ``stores``, or else its loads."""

    stores: bool
    members: OperandClass
    guard: OperandClass
    masked: bool


@lowers("tensor_transfer")
def transfer(low: Lowering, statement: Instruction) -> None:
    opcode, tokens = statement.form.tokens[0], statement.form.tokens
    if opcode == "st":
        _store(low, statement)
    elif "spcompress" in tokens:
        _compression(low, statement)
    elif opcode == "ld":
        _load(low, statement)
    elif statement.form.effects.waits:
        guard, members = _common(low, statement)
        op = TensorWait(opcode == "wait::st", members.kind, guard.kind, low.divergent)
        low.emit(op, guard, low.priority(), members)


def place_of(low: Lowering, statement: Instruction) -> tuple[Field, Field]:
    """The base of the address, and what is added, then the offset of the second half of the lanes."""
    address, half = statement.operand("a"), statement.operand("half")
    assert isinstance(address, Address)
    further = _signed(half) if isinstance(half, Immediate) else 0
    return low.read(statement, address.base), raw("ii", address.offset, further)


def _signed(number: Immediate) -> int:
    return (number.bits + (1 << 31)) % (1 << 32) - (1 << 31)


def _reduction(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """What each lane's registers are reduced by."""
    if "red" not in tokens:
        return ()
    kind = next(token for token in tokens if token in ("f32", "u32", "s32"))
    way = next(token for token in tokens if token in ("min", "max"))
    return *(["abs"] * ("abs" in tokens)), f"{way}{'.NaN' * ('NaN' in tokens)}.{kind}"


def _offsets(low: Lowering, registers: list[Any]) -> list[int]:
    """Where the registers lie that are written."""
    sink = [slot(low, "%tensor.sink", 4)] if any(isinstance(each, Sink) for each in registers) else []
    fields = [low.operands.destination(each) for each in registers]
    return [(field.values or sink)[0] for field in fields]


class Cells(NamedTuple):
    """What a load reads: shape, registers that have a cell, whether of two columns, results that depend on all."""

    shape: str
    registers: int
    packed: bool
    folded: int


def cells_of(statement: Instruction) -> Cells:
    """What a load of tensor memory reads."""
    tokens = statement.form.tokens
    results = sum(len(elements(o)) for spec, o in zip(statement.form.operands, statement.operands) if spec.written)
    if "spcompress" in tokens:
        return Cells("32x32b", 2 * len(elements(statement.operand("r"))), False, results)
    shape, count = next(token for token in tokens if token in STEPS), len(elements(statement.operand("d")))
    return Cells(shape, count, "pack::16b" in tokens, results - count)


def _common(low: Lowering, statement: Instruction) -> tuple[Field, Field]:
    return low.operands.guard(statement), low.operands.number(0xFFFFFFFF, 32)


def _load(low: Lowering, statement: Instruction) -> None:
    tokens = statement.form.tokens
    shape = next(token for token in tokens if token in STEPS)
    registers, result = list(elements(statement.operand("d"))), statement.operand("r")
    reduced = low.operands.destination(result) if result is not None else NOTHING
    (base, place), (guard, members) = place_of(low, statement), _common(low, statement)
    op = TensorLoad(
        shape, len(registers), "pack::16b" in tokens, _reduction(tokens), reduced.kind, base.kind, members.kind,
        guard.kind, low.divergent,
    )
    table = raw("q", low.pool.table(_offsets(low, registers)))
    low.emit(op, guard, low.priority(), base, place, table, reduced, members)


def _compression(low: Lowering, statement: Instruction) -> None:
    tokens = statement.form.tokens
    indices, values = (list(elements(statement.operand(name))) for name in "dr")
    result = statement.operand("m")
    reduced = low.operands.destination(result) if result is not None else NOTHING
    (base, place), (guard, members) = place_of(low, statement), _common(low, statement)
    op = TensorCompression(
        2 * len(values), "min" in tokens, "abs" in tokens, _reduction(tokens), reduced.kind, base.kind, members.kind,
        guard.kind, low.divergent,
    )
    table = raw("q", low.pool.table(_offsets(low, indices + values)))
    low.emit(op, guard, low.priority(), base, place, table, reduced, members)


def _store(low: Lowering, statement: Instruction) -> None:
    tokens = statement.form.tokens
    shape = next(token for token in tokens if token in STEPS)
    values = [low.read(statement, each) for each in elements(statement.operand("b"))]
    (base, place), (guard, members) = place_of(low, statement), _common(low, statement)
    plain = all(value.kind.per_lane for value in values)
    classes = () if plain else tuple(value.kind for value in values)
    op = TensorStore(
        shape, len(values), "unpack::16b" in tokens, classes, base.kind, members.kind, guard.kind, low.divergent
    )
    given = [raw("q", low.pool.table([value.values[0] for value in values]))] if plain else values
    low.emit(op, guard, low.priority(), base, place, *given, members)
