"""A PTX module as data, the parameters of its kernels, and whether operands are what the table wants."""

from __future__ import annotations

from .module import (
    Address, Call, Comment, Directive, Function, Immediate, Indexed, Instruction, Label, LabelRef, Module, Not,
    Operand, Parameter, Pragma, Reference, Register, Selected, Sink, SpecialRegister, Statement, Symbol, Variable,
    Vector, elements, registers,
)

__all__ = [
    "Address", "Call", "Comment", "Directive", "Function", "Immediate", "Indexed", "Instruction", "Label", "LabelRef",
    "Module", "Not", "Operand", "Parameter", "Pragma", "Reference", "Register", "Selected", "Sink", "SpecialRegister",
    "Statement", "Symbol", "Variable", "Vector", "elements", "registers",
]
