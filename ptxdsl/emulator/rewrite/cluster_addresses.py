"""Shared memory of a kernel in a cluster: addressed by registers, since an address says which block it is of."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ...ir import Address, Function, Instruction, Symbol
from .builder import PtxBuilder

__all__ = ["address_by_register"]


def address_by_register(function: Function, shared: Collection[str]) -> Function:
    """The function with each access to one of these variables through a register that has its address."""
    builder, names = PtxBuilder(function), dict[str, None]()

    def based(operand: Any) -> Any:
        base = operand.base if isinstance(operand, Address) else None
        if not isinstance(base, Symbol) or base.symbol not in shared:
            return operand
        names[base.symbol] = None
        register = builder.register(base.symbol, "u32")  # prints as it was
        return operand._replace(base=register, offset=operand.offset + base.offset)

    body = [
        replace(s, operands=tuple(map(based, s.operands))) if isinstance(s, Instruction) else s
        for s in function.body or ()
    ]
    for name in names:
        builder.emit("mov.u32", builder.register(name, "u32"), Symbol(name))
    builder.body += body
    return builder.result() if names else function
