"""The instruction table: one row an instruction form, everything else derived from it.

The rows are text (``chapters/*.isa``, written in the notation of :mod:`ptxdsl.isa.notation`). They are read when an
opcode is first asked for, and only the rows of that opcode, so that importing costs nothing.
"""

from __future__ import annotations

from .effects import Access, Effects
from .table import (
    Form, Need, OperandSpec, Row, Special, chapters, completions, form_of, lookup, opcodes, rows, special,
    special_registers,
)

__all__ = [
    "Access", "Effects", "Form", "Need", "OperandSpec", "Row", "Special", "chapters", "completions", "form_of",
    "lookup", "opcodes", "rows", "special", "special_registers",
]
