"""alloca, stacksave and stackrestore, expanded to arithmetic on a stack pointer in the thread's local memory.

What a function has allocated is freed where it returns; :mod:`.inline` and :mod:`.recursion` emit that.
"""

from __future__ import annotations

from ...ir import Function, Immediate, Register, Symbol, Variable
from ...types import TYPES
from ..machine.layout import LANES
from .builder import Expander

__all__ = ["EXHAUSTED", "STACK_BYTES", "Alloca", "allocates"]

STACK_BYTES = 32 << 10
"""Bytes that alloca can give to a thread."""
EXHAUSTED = "alloca"
"""The function that a thread calls which wants more."""
_NAME = "$alloca"
_ALIGN = 8


def allocates(function: Function) -> bool:
    """Whether a function has an alloca."""
    return any(statement.form.opcode == "alloca" for statement in function.instructions())


class Alloca(Expander):
    """Expands the three instructions."""

    def begin(self) -> None:
        self.variables.append(Variable(_NAME, "local", TYPES["b8"], (STACK_BYTES,), LANES))
        self.top, self.end, self.size = (self.register(f"%alloca.{name}", "u64") for name in ("top", "end", "size"))
        self.full = self.register("%alloca.full", "pred")
        self.emit("mov.u64", self.top, Symbol(_NAME))
        self.emit("add.u64", self.end, self.top, STACK_BYTES)

    def _is_narrow(self) -> bool:
        return self.form.type is not None and self.form.type.bits == 32

    def restore(self) -> None:
        self.guarded("cvt.u64.u32" if self._is_narrow() else "mov.u64", self.top, self.operands[0])

    def save(self) -> None:
        self.guarded("cvt.u32.u64" if self._is_narrow() else "mov.u64", self.operands[0], self.top)

    def allocate(self) -> None:
        size = self.operands[1]
        align = self.operands[2].bits if len(self.operands) > 2 else _ALIGN  # type: ignore[union-attr]
        if isinstance(size, Immediate):
            size = Immediate(size.bits, TYPES["u64"])
        widen = self._is_narrow() and isinstance(size, Register)
        self.guarded("cvt.u64.u32" if widen else "mov.u64", self.size, size)
        self.guarded("add.u64", self.top, self.top, align - 1)
        self.guarded("and.b64", self.top, self.top, -align)
        self.save()
        self.guarded("add.u64", self.top, self.top, self.size)
        self.emit("setp.gt.u64", self.full, self.top, self.end)
        self.emit("setp.gt.or.u64", self.full, self.size, STACK_BYTES, self.full)
        self.call(EXHAUSTED, self.top, guard=self.full)
