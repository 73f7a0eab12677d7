"""What the Python expressions in rows can say: the names and functions they see, and nothing else.

Legality that is no product of modifiers, and the registers of a matrix fragment, are arithmetic; writing it as Python
keeps the rows short. An expression is compiled when a form first needs it.
"""

from __future__ import annotations

import re
from functools import cache
from types import CodeType
from typing import Any

from ..types import TYPES

__all__ = ["NAMES", "evaluate", "number"]


def number(value: str | None) -> int:
    """The number in a modifier: 4 for ``v4`` and ``x4``, 0 for none."""
    return int(re.sub(r"\D", "", value)) if value else 0


def twice(name: str) -> str:
    """The type of twice the size: ``twice("u16")`` is ``"u32"``."""
    return f"{name[0]}{int(name[1:]) * 2}"


def bits(name: str) -> int:
    """The size of a type, also of those that only matrices have, such as ``s4`` and ``b1``."""
    return TYPES[name].bits if name in TYPES else number(name)


def area(shape: str, sides: str) -> int:
    """The number of elements of a matrix: ``area("m16n8k16", "mk")`` is 256."""
    sizes = {side: int(size) for side, size in re.findall(r"([mnk])(\d+)", shape)}
    return sizes[sides[0]] * sizes[sides[1]]


def holds(wide: str, narrow: str) -> bool:
    """Whether the integers of type ``narrow`` are all in type ``wide``."""
    room = int(wide[1:]) - (wide[0] == "s" and narrow[0] == "u")
    return room >= int(narrow[1:]) and (wide[0] == "s" or narrow[0] == "u")


NAMES: dict[str, Any] = {
    **{name: name for name in TYPES}, "area": area, "bits": bits, "holds": holds, "number": number, "twice": twice,
}
"""What an expression sees beside the slots: the functions, and the types by their names."""

_GLOBALS = {"__builtins__": {"int": int, "len": len, "max": max, "min": min}}


@cache
def _compiled(expression: str) -> CodeType:
    return compile(expression, "<row>", "eval")


def evaluate(expression: str, names: dict[str, Any]) -> Any:
    """The value of an expression of a row.

    >>> evaluate("area(shape, 'mn') // 32", {**NAMES, "shape": "m16n8k8"})
    4
    """
    return names[expression] if expression in names else eval(_compiled(expression), _GLOBALS, names)
