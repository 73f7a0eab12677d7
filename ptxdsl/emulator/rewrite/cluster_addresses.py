"""Shared memory of a kernel in a cluster: addressed by registers, since an address says which block it is of."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ...ir import Address, Function, Instruction, Register, Symbol
from ...isa import lookup
from ...types import TYPES

__all__ = ["address_by_register"]


def address_by_register(function: Function, shared: Collection[str]) -> Function:
    """The function with each access to one of these variables through a register that has its address."""
    bases: dict[str, Register] = {}
    body: list[Any] = []
    for statement in function.body or ():
        if isinstance(statement, Instruction):
            operands = tuple(_based(operand, shared, bases) for operand in statement.operands)
            body.append(replace(statement, operands=operands) if operands != statement.operands else statement)
        else:
            body.append(statement)
    head = [Instruction(lookup("mov.u32")[0], (register, Symbol(name))) for name, register in bases.items()]
    return replace(function, body=[*head, *body]) if head else function


def _based(operand: Any, shared: Collection[str], bases: dict[str, Register]) -> Any:
    if not isinstance(operand, Address) or not isinstance(operand.base, Symbol) or operand.base.symbol not in shared:
        return operand
    name = operand.base.symbol
    register = bases.setdefault(name, Register(name, TYPES["u32"]))  # prints as it was
    return operand._replace(base=register, offset=operand.offset + operand.base.offset)
