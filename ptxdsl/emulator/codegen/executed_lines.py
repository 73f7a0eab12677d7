"""The handler of the marks of executed lines. Threads may set a byte at once: all of them write 1 where any does."""

from __future__ import annotations

from llvmlite import ir

from ..instructions.executed_lines import MarkExecuted
from .data import guard_mask
from .handler import Handler, pointer
from .registry import emits

_BYTE = ir.IntType(8)


@emits(MarkExecuted)
def mark_executed(h: Handler, op: MarkExecuted) -> None:
    lanes = guard_mask(h, op.guard, True)
    place = h.ir.inttoptr(h.field("q"), pointer)
    h.branch_unless(h.zero(lanes), lambda: _mark(h, place))
    h.next()


def _mark(h: Handler, place: object) -> None:
    h.ir.store(ir.Constant(_BYTE, 1), place)
    h.next()
