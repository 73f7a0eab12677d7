"""``bar.red`` in block functions: the warps add their predicates to a variable, one after the other.

The variable ``vote`` has those of the warps that have arrived, ``result`` that of the last barrier which all have left.
A side exit puts the former in the barrier and the latter in the warps, where the first tier has them.
"""

from __future__ import annotations

from typing import Any

from ..codegen import data
from ..codegen.handler import i32
from ..instructions.barriers import Barrier
from .function_builder import BlockFunction
from .plan import PlannedOp

__all__ = ["with_vote"]


def with_vote(h: BlockFunction, planned: PlannedOp) -> Any:
    """The vote of the warps that have arrived at a barrier, and of the current one."""
    op = planned.op
    assert isinstance(op, Barrier)
    h.begin(planned)
    h.lanes = h.alive
    data.guard_mask(h, op.guard, False)
    if op.masked:
        h.field()
    data.source(h, op.number, 1)
    if op.threads:
        data.source(h, op.threads, 1)
    holds = data.guard_mask(h, op.predicate, True)
    first = h.ir.icmp_signed("==", h.get("position"), h.i32(0))
    fresh = h.ir.or_(first, h.ir.icmp_signed("<", h.get("barrier"), h.i32(0)))
    old = h.get("vote")
    if op.action == "popc":
        return h.ir.add(h.call("llvm.ctpop.i32", i32, holds), h.ir.select(fresh, h.i32(0), old))
    if op.action == "and":
        every = h.ir.sext(h.ir.icmp_unsigned("==", holds, h.alive), i32)
        return h.ir.and_(every, h.ir.select(fresh, h.i32(-1), old))
    return h.ir.or_(h.ir.sext(h.nonzero(holds), i32), h.ir.select(fresh, h.i32(0), old))
