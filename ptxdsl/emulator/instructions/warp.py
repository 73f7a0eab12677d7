"""Instructions by which the lanes of a warp see each other; ``members`` is the class of the member mask, if any."""

from __future__ import annotations

from .micro_op import MicroOp
from .operand_classes import OperandClass

__all__ = ["ActiveMask", "Elect", "Match", "Reduce", "Shuffle", "Vote", "WarpBarrier"]


class WarpBarrier(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """bar.warp.sync."""

    guard: OperandClass
    masked: bool
    members: OperandClass


class Shuffle(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """shfl; ``constant`` is (b, c) where both are numbers: the lanes to take from are known then."""

    mode: str
    dest: OperandClass
    predicate: OperandClass
    a: OperandClass
    b: OperandClass
    c: OperandClass
    members: OperandClass
    constant: tuple[int, int] | None
    guard: OperandClass
    masked: bool


class Vote(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """vote; ``mode`` is ballot, all, any or uni."""

    mode: str
    dest: OperandClass
    predicate: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class ActiveMask(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """The mask of the lanes that execute it."""

    dest: OperandClass
    guard: OperandClass
    masked: bool


class Elect(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """The lowest member."""

    dest: OperandClass
    predicate: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class Match(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """match; ``mode`` is any or all."""

    mode: str
    dest: OperandClass
    predicate: OperandClass
    a: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool


class Reduce(MicroOp, may_fault=True, repeatable=True, inlinable=True, converges=True):
    """redux. Of floats ``operation`` is the mnemonic for two numbers, and ``signed`` that absolute values are taken."""

    operation: str
    signed: bool
    dest: OperandClass
    a: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool
