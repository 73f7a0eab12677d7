"""The names in the namespace ``ptx``: they are no values, and nothing is assigned to them.

This module lies below all that emits, so that a rule can ask whether an expression is such a name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn

from ..errors import PtxTypeError
from .errors import located

__all__ = ["InstructionName", "Name", "NoValue"]


class Name(ABC):
    """A part of the namespace: its attributes and items are names too, and cannot be set."""

    @abstractmethod
    def __getitem__(self, name: Any) -> Any:
        """A name by its spelling in PTX."""

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            raise located(
                PtxTypeError, f"`{self!r}.{name}` cannot be set", "keep a value in a variable of its own: `v = ..`"
            )
        object.__setattr__(self, name, value)


class NoValue(Name):
    """A name that could be taken for a value: arithmetic on it is refused."""

    @abstractmethod
    def _refuse(self, *_: object) -> NoReturn:
        """Raise what says how it is meant to be used."""

    def _arithmetic(self, *_: object) -> NoReturn:
        self._refuse()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _arithmetic
    __floordiv__ = __mod__ = __lt__ = __le__ = __gt__ = __ge__ = _arithmetic
    __and__ = __or__ = __xor__ = __invert__ = __neg__ = _arithmetic
    __bool__ = __eq__ = __ne__ = _arithmetic
    __hash__ = object.__hash__
    _owns_arithmetic = True


class InstructionName(NoValue):
    """The name of an instruction, or the beginning of one: it does something when it is called."""
