"""The barrier of a cluster."""

from __future__ import annotations

from ...ir import Instruction
from .lowering import Lowering, lowers
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import Field

__all__ = ["ClusterBarrier", "leave_cluster"]


class ClusterBarrier(MicroOp, may_fault=True, repeatable=False, inlinable=True, converges=True):
    """``action`` is arrive, wait (where a barrier region ends), or leave, before lanes end."""

    action: str
    aligned: bool
    guard: OperandClass
    masked: bool


@lowers("barrier_cluster_arrive", "barrier_cluster_wait")
def cluster_barrier(low: Lowering, statement: Instruction) -> None:
    form = statement.form
    action, aligned = form.semantics.removeprefix("barrier_cluster_"), form.effects.converges == "warp"
    guard = low.operands.guard(statement)
    low.emit(ClusterBarrier(action, aligned, guard.kind, low.divergent), guard, low.priority())


def leave_cluster(low: Lowering, guard: Field) -> None:
    """Lanes are about to end: the barrier of the cluster no longer waits for them."""
    if low.cluster_barriers:
        low.emit(ClusterBarrier("leave", False, guard.kind, low.divergent), guard)
