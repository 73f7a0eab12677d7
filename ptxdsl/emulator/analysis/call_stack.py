"""The stack of recursive functions: what :mod:`..rewrite.recursion` makes of calls, as the analyses see it."""

from __future__ import annotations

from ...analysis.def_use import DefUse
from ...ir import Address, Register

__all__ = ["SLOT", "STACK_POINTER", "uses_stack"]

STACK_POINTER = "%stack"
SLOT = 8
"""Bytes that the stack pointer is a multiple of."""


def uses_stack(op: DefUse) -> bool:
    """Whether an instruction pushes or pops a number around a recursive call, and computes nothing with it."""
    addresses = [operand for operand in op.reads if isinstance(operand, Address)]
    return any(isinstance(a.base, Register) and a.base.name == STACK_POINTER for a in addresses)
