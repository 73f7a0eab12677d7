"""Operands that are more or less than one value: the elements of a vector, and part of a register."""

from __future__ import annotations

from typing import Any, NoReturn

from ... import ir
from ...errors import PtxTypeError
from ..builder import Trace
from ..errors import located
from ..rules.python_protocol import RunTime

__all__ = ["Part", "Vec"]


class Vec(tuple[Any, ...]):
    """Values of a vector instruction: of fixed length, to be indexed, unpacked, and passed on where braces stand."""

    __slots__ = ()

    def _refuse(self, _: object) -> NoReturn:
        raise located(PtxTypeError, "a Vec has no arithmetic: PTX computes on its elements", "`[x * 2 for x in v]`")

    def __radd__(self, other: object) -> Any:
        # A list grows by it as by any sequence: `values += p.load(i, width=4)`.
        return NotImplemented if isinstance(other, list) else self._refuse(other)

    __add__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class Part(RunTime):
    """Part of a register, as the video instructions take it: ``v.part("b0")`` is ``%r1.b0``, its minus ``-%r1.b0``.

    ``value`` is a `Value`, a `Reg` where it is written; ``selector`` is "b0", "h1", "b3210", ..., or "" for all of it.
    A part is no value: it exists only as an operand (or as ``out=``) of an instruction whose row says so.
    """

    __slots__ = ("value", "selector", "negated")

    def __init__(self, value: Any, selector: str, negated: bool = False) -> None:
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
        self.value.write(trace)
        return self.operand()
