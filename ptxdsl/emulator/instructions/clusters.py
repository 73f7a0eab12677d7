"""The barrier of a cluster."""

from __future__ import annotations

from .micro_op import MicroOp
from .operand_classes import OperandClass

__all__ = ["ClusterBarrier"]


class ClusterBarrier(MicroOp, may_fault=True, repeatable=False, inlinable=False, converges=True):
    """``action`` is arrive, wait, or leave, before lanes end."""

    action: str
    aligned: bool
    guard: OperandClass
    masked: bool
