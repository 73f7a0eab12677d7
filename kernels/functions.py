"""What the library asks of a function that its caller gives, which it traces as part of a kernel."""

from __future__ import annotations

import inspect
from typing import Any

from .. import pred
from . import arguments

__all__ = ["asked", "expect_function"]


def expect_function(name: str, function: Any, operands: int, hint: str) -> None:
    """That a kernel can be kept by ``function``, and that so many operands can be given to it, where Python knows."""
    if not callable(function):
        raise arguments.wrong(f"{name} is {function!r:.60}, not a function", hint=hint)
    if type(function).__hash__ is None:
        raise arguments.wrong(f"{name} is {function!r:.60}, which has no hash to keep its kernel by", hint=hint)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some that are written in C
        return
    try:
        signature.bind(*[None] * operands)
    except TypeError as error:
        many = f"{operands} operand{'s' * (operands != 1)}"
        raise arguments.wrong(f"{name} cannot be called with {many}: {error}", hint=hint) from None


def asked(name: str, function: Any, element: Any, hint: str) -> Any:
    """What a function says of an element: a predicate."""
    found = function(element)
    kind = getattr(found, "type", None)
    if kind is not pred:
        got = f"{found!r:.60}" if kind is None else f"a value of {kind}"
        raise arguments.wrong(f"{name} returned {got}, not a predicate", hint=hint)
    return found
