"""The errors of tracing that more than one module raises, worded in one place.

Each names things as the user does: the variable where there is one, and the line that made it.
"""

from __future__ import annotations

from typing import TypeVar

from ..errors import PtxTypeError, TraceError
from ..ir.signature import ArrayType, PtrType
from ..types import ScalarType, f32, f64, pred, s32, s64, type_meant, u32, u64
from .builder import InRegister
from .introspection.call_sites import location_of, user_frame
from .introspection.variable_names import name_of
from .rules.python_protocol import RunTime

__all__ = [
    "common_type", "conversions", "described", "located", "mismatch", "named", "no_type", "recast",
    "relocated",
]

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
    if isinstance(value, (ArrayType, PtrType)):
        return f"`{value}`"
    text = repr(value)
    if value.__class__.__name__.startswith("_"):
        return f"`{text}`"
    return f"the {value.__class__.__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def no_type(what: str, given: object, written: str, otherwise: str = "f32") -> PtxTypeError:
    """The error for something else where ``what`` takes a type; ``written`` has a place for the one that is meant."""
    kind = type_meant(given)
    return located(PtxTypeError, f"{what}, not {described(given)}", written.format(otherwise if kind is None else kind))


def conversions(value: InRegister, type: ScalarType) -> str:
    """How to make a value one of another type: by its number, and by its bits where the sizes agree."""
    name, source = named(value, "v"), value.type
    if "b" in (source.kind, type.kind) and source.bits != type.bits:
        typed = [str(kind) if kind.kind != "b" else f"u{kind.bits}" for kind in (source, type)]
        steps = [f".bits({typed[0]})"] * (source.kind == "b") + [f".to({typed[1]})"]
        return f"`{name}{''.join(steps)}{f'.bits({type})' if type.kind == 'b' else ''}`"
    bits = f"`{name}.bits({type})` keeps the bits (mov)" if source.bits == type.bits else ""
    if "b" in (source.kind, type.kind):
        return bits
    return f"`{name}.to({type})` {_effect(source, type)} (cvt)" + (f"; {bits}" if bits else "")


def recast(value: InRegister, type: ScalarType) -> str:
    """How to have the bits of a value as another type of another size."""
    name, source = named(value, "v"), value.type
    if pred in (source, type):
        return f"`{name} != 0`" if type is pred else f"`{name}.to({type})`"
    if type.bits < source.bits:
        return f"`{name}.unpack({type})` gives its parts" if type.bits >= 16 else f"`{name}.to({type})`"
    if source.is_integer and type.is_integer:
        return conversions(value, type)
    start = "" if source.is_integer else f".bits(u{source.bits})"
    end = "" if type.is_integer else f".bits({type})"
    return f"`{name}{start}.to(u{type.bits}){end}`"


_SIGNIFICANDS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
"""The bits of the whole numbers that a type holds, all of them."""


def _effect(source: ScalarType, target: ScalarType) -> str:
    """What a conversion does to a number that the target does not hold."""
    if source.is_float:
        return "rounds towards zero" if target.is_integer else "rounds" if target.bits < source.bits else "converts"
    if target.is_float:
        return "rounds" if _SIGNIFICANDS.get(str(target), 64) < source.bits - source.is_signed else "converts"
    if source.is_integer and target.bits < source.bits:
        return f"keeps the low {target.bits} bits"
    if source.is_signed and not target.is_signed:
        return "makes negative numbers large ones"
    if target.is_signed and not source.is_signed and target.bits == source.bits:
        return f"makes numbers from 2**{target.bits - 1} on negative"
    return "converts"


def common_type(*types: ScalarType) -> ScalarType | None:
    """The least type of 32 or 64 bits that holds every number of all these; None where there is none."""
    if any(type.lanes > 1 or not (type.is_integer or str(type) in _SIGNIFICANDS) for type in types):
        return None
    wide = (s32, u32, s64, u64, f32, f64)
    return next((to for to in wide if all(type is to or _holds(to, type) for type in types)), None)


def _holds(target: ScalarType, source: ScalarType) -> bool:
    """Whether every number of one type is one of the other."""
    if source.is_float:
        return target.is_float and target.bits > source.bits
    return _effect(source, target) == "converts"


def mismatch(op: str, a: InRegister, b: InRegister) -> PtxTypeError:
    """The error for the operands of an operator that differ in type."""
    left, right = named(a, "a"), named(b, "b")
    message = f"`{op}` of {a.type} and {b.type}: PTX converts nothing by itself"
    exact = [
        f"`{name}.to({target})`" for name, source, target in ((left, a.type, b.type), (right, b.type, a.type))
        if 16 <= source.bits < target.bits and source.lanes == target.lanes == 1 and _holds(target, source)
    ]
    if exact:
        return located(PtxTypeError, message, f"{exact[0]} converts (cvt)")
    ways = []
    common = common_type(a.type, b.type)
    if common is not None:
        ways.append(f"`{left}.to({common})` and `{right}.to({common})` keep every number (cvt)")
    if a.type.is_float != b.type.is_float:
        name, source, target = (right, b.type, a.type) if a.type.is_float else (left, a.type, b.type)
        if source.is_integer and target.lanes == 1 and target.bits >= 32:
            ways.append(f"`{name}.to({target})` {_effect(source, target)} (cvt)")
    elif a.type.bits == b.type.bits and pred not in (a.type, b.type):
        ways.append(f"`{left}.bits({b.type})` keeps the bits (mov)")
    elif a.type.is_integer and b.type.is_integer:  # of 64 bits without a sign, and fewer with one
        ways.append(" and ".join(
            f"`{name}.{'to' if type.is_signed else 'bits'}(s64)`" for name, type in ((left, a.type), (right, b.type))
        ) + " of numbers below 2**63")
    return located(PtxTypeError, message, "; ".join(ways) or None)
