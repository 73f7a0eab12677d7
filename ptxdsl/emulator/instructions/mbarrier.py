"""Lowering of mbarriers: which of the few things that happen to the word each of the many instructions is."""

from __future__ import annotations

from dataclasses import replace

from ...ir import Address, Immediate, Instruction, Operand, Sink
from ...isa import lookup
from ...types import TYPES
from ..machine.layout import Mbarrier
from ..machine.budgets import SHORT_LOOP
from ..machine.pending import FEW
from ..rewrite.builder import CommitArrival
from .addresses import WithAddress, lane_by_lane
from .data import compute
from .lowering import Lowering, lowers
from .micro_op import MicroOp, Routine
from .operand_classes import PREDICATE, OperandClass, per_lane
from .operands import NOTHING, Field, raw

__all__ = ["HELD", "ArriveLater", "MakeCommitted", "MbarrierOperation"]

HELD = "%wait.held"
"""The slot of the lanes whose wait has found its phase complete, in instrumented code."""


class MbarrierOperation(WithAddress, MicroOp, may_fault=True, repeatable=False, inlinable="it waits for other warps"):
    """Something that happens to the word of an mbarrier.

    ``action`` is init, inval, check, find (a check; ``dest`` are the host addresses), wait (``nbytes``: the state),
    parity (``nbytes``: the parity), or change; ``held`` are the lanes whose wait has found its phase
    complete. A change may have ``.drop`` and ``.stay`` (it must not complete the phase) behind it, and counts
    arrivals, bytes that will come (``.expect``), or bytes that have come. A wait that is ``polled`` is in a short loop,
    which yields itself.
    """

    action: str
    address: OperandClass
    dest: OperandClass
    arrivals: OperandClass
    nbytes: OperandClass
    held: OperandClass
    polled: bool
    guard: OperandClass
    masked: bool


class ArriveLater(MicroOp, may_fault=True, repeatable=False, inlinable="tensor memory has no block functions"):
    """Begins an arrival at an mbarrier, which comes when the products of its thread are made; see :class:`.BulkMove`.

    The record has the address of :class:`MakeCommitted`.
    """

    clustered: bool
    guard: OperandClass


class MakeCommitted(Routine):
    """Makes the products of a thread that were issued before, in the queue of the block that WORDS has; and arrives."""


_ONE = Immediate(1, TYPES["u32"])


@lowers("mbarrier")
def mbarrier(low: Lowering, statement: Instruction) -> None:
    if isinstance(statement, CommitArrival) and low.defers:
        _arrive_later(low, statement)
        return
    form, tokens = statement.form, statement.form.tokens
    named = dict(zip([spec.name for spec in form.operands], statement.operands))
    what, count, nbytes = tokens[0], named.get("count"), named.get("bytes")
    dest = named.get("d", Sink())
    if what == "pending_count":
        state = named["a"]
        field = (dest, state, Immediate(0, TYPES["u32"]), Immediate(Mbarrier.EXPECTED, TYPES["u32"]))
        compute(low, replace(statement, form=lookup("bfe.u64")[0], operands=field))
        return
    if what in ("test_wait", "try_wait"):
        what, nbytes = ("parity", named["phase"]) if "phase" in named else ("wait", named["state"])
    elif what == "check_layout":
        _constant(low, statement, dest, int("layout::v0" in tokens))
        what, dest = "check", Sink()
    elif what not in ("init", "inval"):
        arrives = what.startswith("arrive")
        count = (count or _ONE) if arrives else None
        expects = what == "expect_tx" or "expect_tx" in tokens
        drops, stays = what == "arrive_drop", "noComplete" in tokens
        what = f"change{'.drop' * drops}{'.stay' * stays}{'.expect' * expects}"
    emit(low, statement, what, _address(statement), dest, count, nbytes)
    for name, value in (("q", 1), ("report", 0)):  # nothing fails here that could be reported
        if name in named:
            _constant(low, statement, named[name], value)


def _arrive_later(low: Lowering, statement: Instruction) -> None:
    """The arrival of a commit."""
    guard, place = low.operands.guard(statement), low.slot("%pending.mbarrier", 8)
    low.pending = max(low.pending, FEW)
    emit(low, statement, "find", _address(statement), Field(per_lane(64), "i", (place,)))
    op = ArriveLater(low.spaces.cluster not in (None, (1, 1, 1)), guard.kind)
    low.emit(op, raw("q", 0), guard, raw("i", place)).links = {0: MakeCommitted()}


def _address(statement: Instruction) -> Address:
    return next(operand for operand in statement.operands if isinstance(operand, Address))


def emit(
    low: Lowering, statement: Instruction, what: str, address: Address, dest: Operand | Field = Sink(),  # noqa: B008
    count: Operand | None = None, nbytes: Operand | Field | None = None,
) -> None:
    """Emit the micro-op of something that happens to the mbarrier at an address."""
    kind, _, place = low.address(statement, address, 8, True)
    result = dest if isinstance(dest, Field) else low.operands.destination(dest)
    arrivals, amount = low.read(statement, count), nbytes
    if not isinstance(amount, Field):
        amount = low.read(statement, amount, 64 if what == "wait" else 32)
    guard = low.operands.guard(statement)
    polled = what in ("wait", "parity") and _polled(low)
    notes = low.instrumentation is not None and what in ("wait", "parity")
    held = Field(PREDICATE, "i", (low.slot(HELD, 4),)) if notes else NOTHING
    op = MbarrierOperation(
        what, kind, result.kind, arrivals.kind, amount.kind, held.kind, polled, guard.kind, low.divergent
    )
    low.emit(op, lane_by_lane(kind, place), guard, result, held, arrivals, amount)


def _polled(low: Lowering) -> bool:
    """Whether the statement that is lowered stands in a loop that yields in every iteration."""
    nodes, place = low.graph.blocks, low.place
    loops = [
        (nodes[target].start, node.stop)
        for number, node in enumerate(nodes) for target in node.targets if target <= number
    ]
    return any(start <= place < stop and stop - start <= SHORT_LOOP + 1 for start, stop in loops)


def _constant(low: Lowering, statement: Instruction, dest: Operand, value: int) -> None:
    kind = "pred" if getattr(dest, "type", TYPES["pred"]).kind == "p" else "b16"
    if not isinstance(dest, Sink):
        form = next(form for form in lookup(f"mov.{kind}") if not form.operands[1].register or kind != "pred")
        compute(low, replace(statement, form=form, operands=(dest, Immediate(value, TYPES["u32"]))))
