"""The stack of recursive functions: what :mod:`..rewrite.recursion` makes of calls, as the analyses see it."""

from __future__ import annotations

from ...analysis.def_use import DefUse
from ...ir import Address, Register

__all__ = ["FRAME", "SLOT", "STACK_ALIGN", "STACK_POINTER", "uses_stack"]

STACK_POINTER = "%stack"
FRAME = "%frame$"
"""What the names of the registers begin with that say where a function's local variables are."""
SLOT = 8
"""Bytes of a number on the stack."""
STACK_ALIGN = 16
"""Bytes that the stack pointer and the place of each frame are a multiple of: what the largest vector access must be
aligned to."""


def uses_stack(op: DefUse) -> bool:
    """Whether an instruction pushes or pops a number around a recursive call, and computes nothing with it."""
    addresses = [operand for operand in op.reads if isinstance(operand, Address)]
    return any(isinstance(a.base, Register) and a.base.name == STACK_POINTER for a in addresses)
