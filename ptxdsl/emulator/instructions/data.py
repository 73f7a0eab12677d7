"""Instructions that only compute, and what else reads nothing but registers."""

from __future__ import annotations

from typing import Any

from .micro_op import MicroOp
from .operand_classes import OperandClass

__all__ = ["Compute", "ReadClock", "SpaceTest", "WrapCheck"]


class Compute(MicroOp, may_fault=False, repeatable=True, inlinable=True):
    """An instruction by its semantics.

    ``mnemonic`` may have the parts of registers behind it that operands name (``vadd.s32.s32.s32;,b0,h1``), ``number``
    is the form's among those of its mnemonic, ``width`` 1 where one number for the warp is computed, else 32.
    """

    mnemonic: str
    number: int
    width: int
    guard: OperandClass
    masked: bool
    operands: tuple[Any, ...]

    @property
    def fusible(self) -> bool:
        return self.width > 1 or not self.guard


class SpaceTest(MicroOp, may_fault=False, repeatable=True, inlinable=True):
    """isspacep: ``ranges`` has a letter for each range, B where a field of the block is added to its base."""

    negated: bool
    ranges: str
    dest: OperandClass
    address: OperandClass
    width: int
    guard: OperandClass
    masked: bool


class ReadClock(MicroOp, may_fault=False, repeatable=True, inlinable=False):
    """Cycles and nanoseconds of the host, as the special register of that name."""

    register: str
    dest: OperandClass
    guard: OperandClass
    masked: bool


class WrapCheck(MicroOp, may_fault=True, repeatable=True, inlinable=True):
    """Deoptimises where base plus lane offset wraps around in some lane."""

    base: OperandClass
    signed: bool

    @property
    def fusible(self) -> bool:
        return True
