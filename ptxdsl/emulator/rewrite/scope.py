"""What the names in a function's text mean in one copy of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...ir import Address, Immediate, LabelRef, Not, Register, Selected, Symbol, Vector

__all__ = ["Frame", "Scope"]


class Frame(NamedTuple):
    """The local variables of a recursive function: the register that their offsets count from, and their size."""

    register: Register
    offsets: dict[str, int]
    nbytes: int


class Scope:
    """Registers, labels and local variables get a suffix; parameters are memory of the thread, their *cells*."""

    def __init__(self, suffix: str, end: LabelRef | None, stack: tuple[str, ...]) -> None:
        self.suffix, self.end, self.stack = suffix, end, stack
        self.cells: dict[str, str] = {}
        self.local: set[str] = set()
        """The names of local variables and branch tables."""
        self.saved: dict[int, tuple[tuple[Register, ...], tuple[str, ...]]] = {}
        """Of a recursive function, by the id of each call: the registers and parameters to save."""
        self.frame: Frame | None = None
        """Of a recursive function: its local variables, new ones in each call."""

    def register(self, register: Register) -> Register:
        return Register(register.name + self.suffix, register.type) if self.suffix else register

    def operand(self, operand: Any) -> Any:
        """An operand of the function's text as one of the copy."""
        if operand.__class__ is Register:
            return Register(operand.name + self.suffix, operand.type) if self.suffix else operand
        if operand is None or operand.__class__ is Immediate:
            return operand
        if isinstance(operand, Not):
            return Not(self.register(operand.predicate))
        if isinstance(operand, Vector):
            return Vector(tuple(self.operand(item) for item in operand.items))
        if isinstance(operand, Address):
            parts = tuple(self.operand(part) for part in operand.parts)
            return operand._replace(base=self.operand(operand.base), parts=parts)
        if isinstance(operand, Symbol):
            return operand._replace(symbol=self.symbol(operand.symbol))
        if isinstance(operand, LabelRef):
            return LabelRef(operand.label + self.suffix)
        if isinstance(operand, Selected):
            return operand._replace(register=self.register(operand.register))
        return operand

    def symbol(self, name: str) -> str:
        return self.cells.get(name, name + self.suffix if name in self.local else name)
