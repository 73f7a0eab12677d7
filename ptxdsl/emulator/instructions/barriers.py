"""Barriers of a block, and fences."""

from __future__ import annotations

from .micro_op import MicroOp
from .operand_classes import OperandClass

__all__ = ["Barrier", "BarrierResult", "Fence"]


class Barrier(MicroOp, may_fault=False, repeatable=True, inlinable=False, converges=True):
    """``action`` is sync, arrive, popc, and, or. Block functions end at it, so that no bail-out goes back behind it."""

    action: str
    guard: OperandClass
    masked: bool
    number: OperandClass
    threads: OperandClass
    predicate: OperandClass

    @property
    def values(self) -> tuple[str, ...]:
        names = (("guard", self.guard), ("rank", self.masked), ("number", True), ("threads", self.threads))
        return tuple(name for name, there in names if there)


class BarrierResult(MicroOp, may_fault=False, repeatable=False, inlinable=False):
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
