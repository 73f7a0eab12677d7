"""Fragments of matrices stand in registers of untyped bits.

By the manual a register of any type and the right size will do for an operand of untyped bits; for the fragments of
`mma`, `wgmma` and their kin ptxas takes none but those.
"""

from __future__ import annotations

from typing import Any

from .. import ir
from ..types import TYPES
from .builder import Trace

__all__ = ["untype_fragments"]

_OF_WARPS = ("warp", "warpgroup")


def untype_fragments(trace: Trace) -> None:
    """Declare registers as bits where an instruction of warps takes them for operands of untyped bits."""
    if not any(form.effects.converges in _OF_WARPS for form in trace.forms):
        return
    found = {
        register: register._replace(type=TYPES[f"b{register.type.bits}"])
        for s in trace.body if isinstance(s, ir.Instruction) and s.form.effects.converges in _OF_WARPS
        for spec, operand in zip(s.form.operands, s.operands) if spec.type is not None and spec.type.kind == "b"
        for register in ir.registers(operand) if register.type.kind != "b"
    }
    if not found:
        return
    trace.registers[:] = [found.get(register, register) for register in trace.registers]
    for s in (*trace.prologue, *trace.body):
        if isinstance(s, ir.Instruction):
            s.operands = tuple(_replaced(operand, found) for operand in s.operands)
        elif isinstance(s, ir.Call):
            s.results = tuple(_replaced(operand, found) for operand in s.results)
            s.arguments = tuple(_replaced(operand, found) for operand in s.arguments)


def _replaced(operand: Any, found: dict[ir.Register, ir.Register]) -> Any:
    """An operand with other registers: values, and vectors of them."""
    if isinstance(operand, ir.Register):
        return found.get(operand, operand)
    if isinstance(operand, ir.Vector):
        return ir.Vector(tuple(_replaced(item, found) for item in operand.items))
    if isinstance(operand, ir.Address):
        parts = tuple(_replaced(part, found) for part in operand.parts)
        return operand._replace(base=_replaced(operand.base, found), parts=parts)
    if isinstance(operand, ir.Selected):
        return operand._replace(register=_replaced(operand.register, found))
    return operand
