"""What a debugger inserts before each statement: where to stop, and what to note of the way.

The addresses that they need are in a :class:`.machine.debug_control.DebugControl`, which a launch has one of.
"""

from __future__ import annotations

from .micro_op import MicroOp
from .operand_classes import OperandClass

__all__ = ["DebugPoint", "NoteExecuted", "NoteStored"]

_WHY = "one host thread runs it in handlers"


class DebugPoint(MicroOp, may_fault=True, repeatable=False, inlinable=_WHY, instrumentation=True):
    """A warp comes to a statement, whose number follows the address of the control: returns to Python where asked."""


class NoteExecuted(MicroOp, may_fault=False, repeatable=False, inlinable=_WHY, instrumentation=True):
    """The lanes for which the guard holds execute the statement."""

    guard: OperandClass


class NoteStored(MicroOp, may_fault=False, repeatable=False, inlinable=_WHY, instrumentation=True):
    """They store to memory: notes where some lane stores to what is watched."""

    space: str
    address: OperandClass
    nbytes: int
    guard: OperandClass
