"""alloca, stacksave and stackrestore, as the additions that they are: a stack in the thread's local memory.

What a function has allocated is given back where it returns; :mod:`.inline` and :mod:`.recursion` see to that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...ir import Call, Function, Immediate, Instruction, Operand, Register, Symbol, Variable
from ...isa import lookup
from ...types import TYPES
from ..machine.layout import LANES

__all__ = ["EXHAUSTED", "OPCODES", "STACK", "allocates", "stacked"]

STACK = 32 << 10
"""Bytes that alloca can give to a thread."""
EXHAUSTED = "alloca"
"""The function that a thread calls which wants more."""
OPCODES = ("alloca", "stacksave", "stackrestore")
_NAME = "$alloca"
_U64 = TYPES["u64"]
_TOP, _END, _SIZE = (Register(f"%alloca.{name}", _U64) for name in ("top", "end", "size"))
_FULL = Register("%alloca.full", TYPES["pred"])
_ALIGN = 8


def allocates(function: Function) -> bool:
    """Whether a function has an alloca."""
    return any(statement.form.opcode == "alloca" for statement in function.instructions())


def stacked(function: Function) -> Function:
    """The function without the three instructions."""
    body: list[Any] = [
        Instruction(lookup("mov.u64")[0], (_TOP, Symbol(_NAME))),
        Instruction(lookup("add.u64")[0], (_END, _TOP, Immediate(STACK, _U64))),
    ]
    for statement in function.body or ():
        if isinstance(statement, Instruction) and _uses(statement):
            body += _expanded(statement)
        else:
            body.append(statement)
    stack = Variable(_NAME, "local", TYPES["b8"], (STACK,), LANES)
    return replace(function, body=body, variables=[*function.variables, stack])


def _uses(statement: Any) -> bool:
    return isinstance(statement, Instruction) and statement.form.opcode in OPCODES


def _expanded(statement: Instruction) -> list[Any]:
    out: list[Any] = []

    def emit(mnemonic: str, *operands: Operand, guard: Any = statement.guard) -> None:
        out.append(Instruction(lookup(mnemonic)[0], operands, guard, statement.loc, statement.line))

    narrow = statement.form.type is not None and statement.form.type.bits == 32
    first = statement.operands[0]
    if statement.form.opcode == "stackrestore":
        emit("cvt.u64.u32" if narrow else "mov.u64", _TOP, first)
    elif statement.form.opcode == "stacksave":
        emit("cvt.u32.u64" if narrow else "mov.u64", first, _TOP)
    else:
        size = statement.operands[1]
        align = getattr(statement.operands[2], "bits", _ALIGN) if len(statement.operands) > 2 else _ALIGN
        emit("cvt.u64.u32" if narrow and isinstance(size, Register) else "mov.u64", _SIZE, size)
        emit("add.u64", _TOP, _TOP, Immediate(align - 1, _U64))
        emit("and.b64", _TOP, _TOP, Immediate(-align % (1 << 64), _U64))
        emit("cvt.u32.u64" if narrow else "mov.u64", first, _TOP)
        emit("add.u64", _TOP, _TOP, _SIZE)
        emit("setp.gt.u64", _FULL, _TOP, _END, guard=None)
        emit("setp.gt.or.u64", _FULL, _SIZE, Immediate(STACK, _U64), _FULL)
        out.append(Call(Symbol(EXHAUSTED), (), (_TOP,), None, False, _FULL, statement.loc, statement.line))
    return out
