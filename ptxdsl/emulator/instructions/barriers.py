"""Barriers of a block, and fences."""

from __future__ import annotations

from ...ir import Immediate, Instruction, Operand
from ..machine.layout import LANES
from .lowering import Lowering, lowers
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import NOTHING

__all__ = ["Barrier", "BarrierResult", "Fence", "RegisterCount"]


class Barrier(MicroOp, may_fault=False, repeatable=True, inlinable="a barrier region ends at it", converges=True):
    """``action`` is sync, arrive, popc, and, or. No side exit of a block function goes back behind it."""

    action: str
    guard: OperandClass
    masked: bool
    number: OperandClass
    threads: OperandClass
    predicate: OperandClass

    @property
    def values(self) -> tuple[str, ...]:
        names = (
            ("guard", self.guard), ("priority", self.masked), ("number", True), ("threads", self.threads),
            ("predicate", self.predicate),
        )
        return tuple(name for name, there in names if there)


class BarrierResult(MicroOp, may_fault=False, repeatable=False, inlinable=True):
    """What the bar.red before gave to this warp."""

    dest: OperandClass
    guard: OperandClass
    masked: bool


class Fence(MicroOp, may_fault=False, repeatable=False, inlinable=True):
    """Orders memory accesses, between the threads of the host too.

    ``order`` is acquire, release, acq_rel or seq_cst, or block: a block is on one thread of the host, so that only LLVM
    must not change the order.
    """

    order: str


@lowers("bar_sync", "bar_arrive", "bar_red")
def barrier(low: Lowering, statement: Instruction) -> None:
    form = statement.form
    what = form.semantics.removeprefix("bar_")
    operands = list(statement.operands)
    dest: Operand | None = None
    predicate = NOTHING
    if what == "red":
        what = next(token for token in form.tokens if token in ("popc", "and", "or"))
        dest, predicate = operands.pop(0), low.read(statement, operands.pop())
    number, count = (low.read(statement, operand) for operand in (*operands, None)[:2])
    guard = low.operands.guard(statement)
    op = Barrier(what, guard.kind, low.divergent, number.kind, count.kind, predicate.kind)
    low.emit(op, guard, low.priority(), number, count, predicate)
    if dest is not None:
        result = low.operands.destination(dest)
        low.emit(BarrierResult(result.kind, guard.kind, low.divergent), guard, result)


@lowers("membar", "fence")
def fence(low: Lowering, statement: Instruction) -> None:
    effects = statement.form.effects
    order = effects.order if effects.order in ("acquire", "release", "acq_rel") else "seq_cst"
    low.emit(Fence("block" if effects.scope == "cta" else order))


class RegisterCount(MicroOp, may_fault=True, repeatable=False, inlinable="it may wait for other warps"):
    """setmaxnreg: a warp takes registers that others have given back, or gives some back.

    ``initial`` are those of a thread at the launch; ``known``: the kernel says so.
    """

    takes: bool
    registers: int
    initial: int
    known: bool
    guard: OperandClass


_ALL_REGISTERS = 1 << 16
"""Of a multiprocessor."""


@lowers("setmaxnreg")
def register_count(low: Lowering, statement: Instruction) -> None:
    x, y, z = low.block
    count, guard = statement.operands[0], low.operands.guard(statement)
    assert isinstance(count, Immediate)
    given = next((int(numbers[0]) for name, numbers in low.function.directives if name == "maxnreg"), 0)
    most = min(256, _ALL_REGISTERS // (-(-x * y * z // LANES) * LANES) // 8 * 8)
    op = RegisterCount("inc" in statement.form.tokens, count.bits, given or most, bool(given), guard.kind)
    low.emit(op, guard)
