"""Parts of registers, as the video instructions take them: ``v.part("b0")`` is ``%r1.b0``, ``-v.part("h1")`` its minus.

A part is no value: it exists only as an operand (or as ``out=``) of an instruction whose row says so.
"""

from __future__ import annotations

from .. import ir
from .builder import Trace
from .rules.python_protocol import RunTime
from .values import Reg, Value

__all__ = ["Part"]


class Part(RunTime):
    """Bytes or a halfword of a value: ``selector`` is "b0", "h1", "b3210", ..., or "" for all of it."""

    __slots__ = ("value", "selector", "negated")

    def __init__(self, value: Value, selector: str, negated: bool = False) -> None:
        self.value, self.selector, self.negated = value, selector, negated

    def __repr__(self) -> str:
        return f"<{self._kind()}>"

    def __neg__(self) -> Part:
        return Part(self.value, self.selector, not self.negated)

    def _kind(self) -> str:
        part = f".{self.selector}" if self.selector else ""
        return f"{'-' if self.negated else ''}{self.value.register.name}{part}"

    def operand(self) -> ir.Selected:
        """It as an operand, whether it may be one or not."""
        return ir.Selected(self.value.register, self.selector, self.negated)

    def use(self, trace: Trace) -> ir.Selected:
        self.value.use(trace)
        return self.operand()

    def write(self, trace: Trace) -> ir.Selected:
        assert isinstance(self.value, Reg)
        self.value.write(trace)
        return self.operand()
