"""The errors of tracing that more than one module raises, worded in one place.

Each names things as the user does: the variable where there is one, and the line that made it.
"""

from __future__ import annotations

from typing import TypeVar

from ..errors import PtxTypeError, TraceError
from ..types import ScalarType
from .builder import InRegister
from .introspection.call_sites import location_of, user_frame
from .introspection.variable_names import name_of
from .rules.python_protocol import RunTime

__all__ = ["conversions", "described", "located", "mismatch", "named", "relocated"]

E = TypeVar("E", bound=TraceError)


def located(error: type[E], message: str, hint: str | None = None) -> E:
    """An error with the user's line."""
    return error(message, loc=location_of(user_frame(2)), hint=hint)


def relocated(error: E) -> E:
    """An error of the table or of a type, at the user's line."""
    return located(type(error), error.message, error.hint)


def named(value: object, otherwise: str) -> str:
    """The user's name for a value, or what to call it where it has none."""
    return name_of(value, user_frame(2)) or otherwise


def described(value: object) -> str:
    """What something that is no operand is: ``the str 'abc'``."""
    if isinstance(value, RunTime):
        return f"a run-time {value._kind()}"
    text = repr(value)
    if value.__class__.__name__.startswith("_"):
        return f"`{text}`"
    return f"the {value.__class__.__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def conversions(value: InRegister, type: ScalarType) -> str:
    """How to make a value one of another type: by its number, and by its bits where the sizes agree."""
    name = named(value, "v")
    hint = f"`{name}.to({type})` {_effect(value.type, type)} (cvt)"
    return hint + (f"; `{name}.bits({type})` keeps the bits (mov)" if value.type.bits == type.bits else "")


def _effect(source: ScalarType, target: ScalarType) -> str:
    """What a conversion does to a number that the target does not hold."""
    if source.is_float and target.is_float and target.bits < source.bits:
        return "rounds"
    if source.is_integer and target.is_integer and target.bits < source.bits:
        return f"keeps the low {target.bits} bits"
    return "rounds towards zero" if source.is_float and target.is_integer else "converts"


def _widens(source: ScalarType, target: ScalarType) -> bool:
    """Whether every number of one type is one of the other."""
    if source.lanes > 1 or target.lanes > 1 or source.bits < 16 or target.bits <= source.bits:
        return False
    if source.is_integer and target.is_integer:
        return target.is_signed or not source.is_signed
    return target.is_float and (source.is_float or (source.is_integer and target.bits > source.bits))


def mismatch(op: str, a: InRegister, b: InRegister) -> PtxTypeError:
    """The error for the operands of an operator that differ in type."""
    left, right = named(a, "a"), named(b, "b")
    ways = [(left, a.type, b.type), (right, b.type, a.type)]
    exact = [way for way in ways if _widens(*way[1:])] or ways  # the other way may change the number
    hint = " or ".join(f"`{name}.to({target})`" for name, _, target in exact) + " converts (cvt)"
    if a.type.bits == b.type.bits:
        hint += f"; `{left}.bits({b.type})` keeps the bits (mov)"
    return located(PtxTypeError, f"`{op}` of {a.type} and {b.type}: PTX converts nothing by itself", hint)
