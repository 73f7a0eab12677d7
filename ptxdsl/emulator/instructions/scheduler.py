"""The functions that choose what runs next, found through the block state; reschedule is a micro-op of every kernel."""

from __future__ import annotations

from .micro_op import MicroOp

__all__ = ["SchedulerFunction"]


class SchedulerFunction(MicroOp, may_fault=True, repeatable=False, inlinable="it is the scheduler"):
    """``name`` is schedule, shuffled, reschedule, advance, retire, run or resolve."""

    name: str
