"""The variables of a trace as the bases of pointers: of use in the kernel, or the function, that declares them.

A helper may keep an array that it made, in a cache, a global or a default argument, and give it to the next kernel
that is traced, where its name is another's or nobody's. So a variable knows the trace that it belongs to, as a Value
knows its region, and each use compares. What belongs to the module serves its functions too.
"""

from __future__ import annotations

from typing import Any

from ... import ir
from ...errors import EscapeError
from ..builder import Trace, fatal
from ..errors import located

__all__ = ["Declared"]


class Declared:
    """A variable that was declared by a trace; ``common`` if by its module."""

    __slots__ = ("_belongs", "_common", "_loc", "_trace", "symbol")

    def __init__(self, trace: Trace, symbol: str, *, common: bool) -> None:
        self.symbol = ir.Symbol(symbol)
        self._trace, self._common, self._loc = trace, common, trace.location(3)
        self._belongs: list[Any] = trace.module_variables if common else trace.variables

    def __repr__(self) -> str:
        return self.symbol.symbol

    def use(self, trace: Trace) -> ir.Symbol:
        """Its name; an EscapeError in another kernel or function than it belongs to."""
        if self._belongs is not (trace.module_variables if self._common else trace.variables):
            raise fatal(self._escaped())
        return self.symbol

    def _escaped(self) -> EscapeError:
        made, over = self._trace, self._trace.over
        return located(
            EscapeError,
            f"`{self.symbol.symbol}` was declared at {self._loc.file}:{self._loc.line}, in the trace of `{made.name}`, "
            f"{'which is over' if over else 'and this is another function'}",
            "declare it in this kernel: no helper may keep it from one trace to the next, in a cache or a global"
            if over else "declare it in this function, or give the function what it reads",
        )
