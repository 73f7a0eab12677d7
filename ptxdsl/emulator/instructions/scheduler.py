"""The functions that choose what runs next, found through the block state; reschedule is a micro-op of every kernel."""

from __future__ import annotations

from .micro_op import MicroOp

__all__ = ["EVERYWHERE", "MAKERS", "Interruption", "SchedulerFunction"]


class SchedulerFunction(MicroOp, may_fault=True, repeatable=False, inlinable="it is the scheduler"):
    """``name``: schedule, shuffled, resumed, reschedule, advance, retire, run, clusters, resolve, or one of MAKERS."""

    name: str


EVERYWHERE = tuple(map(SchedulerFunction, ("schedule", "reschedule", "advance", "retire", "run")))
"""Those that every launch needs; all but "run" in the order of the block state."""
MAKERS = "make_all", "make_counted", "make_some"
"""What makes operations that are pending, in that order too."""


class Interruption(MicroOp, may_fault=False, repeatable=False, inlinable="it is for launches with a seed"):
    """Lets another warp run, drawn by the seed, before a strong access: also between a poll and what is behind it."""
