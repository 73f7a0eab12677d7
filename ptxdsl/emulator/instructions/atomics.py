"""atom and red."""

from __future__ import annotations

from ...ir import Address, Instruction, Sink, Vector
from .addresses import WithAddress, lane_by_lane
from .lowering import Lowering, lowers
from .micro_op import MicroOp
from .operand_classes import SINK, OperandClass

__all__ = ["Atomic", "function_of"]

ONE_HOST_THREAD = ("warp", "cta", "cluster")
"""Scopes whose threads the same host thread runs."""


class Atomic(
    WithAddress, MicroOp, may_fault=True, repeatable=False, inlinable=True, reads_memory=True, writes_memory=True,
    by_lane=True,
):
    """An atomic read-modify-write, lane by lane.

    ``operation`` is PTX's name, ``function`` the mnemonic of the instruction that computes the new value where LLVM has
    no such operation. ``host_atomic`` where other threads of the host may do the same, ``always`` even while one runs
    all emulated kernels. ``sources`` has one entry an operand, each with one class an element.
    """

    operation: str
    function: str
    bits: int
    host_atomic: bool
    always: bool
    address: OperandClass
    dests: tuple[OperandClass, ...]
    sources: tuple[tuple[OperandClass, ...], ...]
    guard: OperandClass
    masked: bool


@lowers("atom", "red")
def atomic(low: Lowering, statement: Instruction) -> None:
    form, operands = statement.form, statement.operands
    returns = form.operands[0].written
    dest = operands[0] if returns else Sink()
    address, *values = operands[1 if returns else 0 :]
    assert isinstance(address, Address) and form.type is not None
    kind, op = form.type, form.effects.atomic
    values = values[: 2 if op == "cas" else 1]
    items = [value.items if isinstance(value, Vector) else (value,) for value in values]
    places, _, place = low.address(statement, address, kind.bytes * len(items[0]), True)
    given = [[low.read(statement, item, kind.bits) for item in value] for value in items]
    dests = [low.operands.destination(item) for item in (dest.items if isinstance(dest, Vector) else (dest,))]
    dests = [] if all(part.kind == SINK for part in dests) else dests
    guard = low.operands.guard(statement)
    kinds = tuple(tuple(part.kind for part in value) for value in given)
    low.emit(
        Atomic(
            op, function_of(low, statement, op, address), kind.bits,
            form.space != "shared" and form.effects.scope not in ONE_HOST_THREAD, form.effects.scope == "sys", places,
            tuple(part.kind for part in dests), kinds, guard.kind, low.divergent,
        ),
        lane_by_lane(places, place), guard, *dests, *(part for value in given for part in value),
    )


def function_of(low: Lowering, statement: Instruction, op: str, address: Address) -> str:
    """The instruction that computes the new value, where it is more than one operation of the host."""
    kind = statement.form.type
    assert kind is not None
    if op in ("min", "max"):
        return f"{op}.{kind}"
    if op == "add" and kind.kind == "f":
        space = statement.form.space
        elsewhere = space == "generic" and not low.spaces.is_shared(low.origin(address.base))
        if str(kind) == "f32" and (space == "global" or elsewhere):
            return "add.ftz.f32"  # the memory partitions of all GPUs flush subnormals, shared memory does not
        return f"add.rn.{kind}" if kind.bits != 64 else "add.f64"
    return ""
