"""The errors of tracing that more than one module raises, worded in one place.

Each names things as the user does: the variable where there is one, and the line that made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

from .. import ir
from ..errors import EscapeError, Loc, PtxTypeError, TraceError
from ..types import ScalarType, pred
from .builder import Trace, location_of, noted, user_frame
from .variable_names import name_of
from .rules.python_protocol import RunTime

if TYPE_CHECKING:
    from .values import Value

__all__ = ["conversions", "described", "escaped", "located", "mismatch", "named"]

E = TypeVar("E", bound=TraceError)


def located(error: type[E], message: str, hint: str | None = None) -> E:
    """An error with the user's line."""
    return error(message, loc=location_of(user_frame(2)), hint=hint)


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


def conversions(value: Value, type: ScalarType) -> str:
    """How to make a value one of another type: by its number, and by its bits where the sizes agree."""
    name = named(value, "v")
    hint = f"`{name}.to({type})` converts (cvt)"
    return hint + (f"; `{name}.bits({type})` keeps the bits (mov)" if value.type.bits == type.bits else "")


def escaped(value: Value) -> NoReturn:
    """Rule R1: say where a value was computed, and that this is over."""
    region = value.region
    name = named(value, value.register.name)
    made = _made(region.trace, value.register) or region.loc
    if not region.closed or region.parent is None or region.trace.over:
        state = "is over" if region.trace.over else "runs in another thread"
        raise noted(located(
            EscapeError,
            f"`{name}` was computed at {made.file}:{made.line}, in the trace of `{region.trace.name}`, which {state}",
            "compute it in this kernel, or pass it as a parameter",
        ))
    initial = "" if value.type is pred else ", 0"
    before = "when" if region.kind == "otherwise" else region.kind
    variable = f"{name} = " if name.isidentifier() else "v = "
    raise noted(located(
        EscapeError,
        f"`{name}` was computed at line {made.line}, inside the `{region.kind}` of line {region.loc.line}, "
        "and is used after it",
        f"declare `{variable}reg({value.type}{initial})` before the `{before}`, "
        f"and write `{variable[:-3]}.set(...)` inside it",
    ))


def _made(trace: Trace, register: ir.Register) -> Loc | None:
    for statement in reversed(trace.body):
        if isinstance(statement, ir.Instruction) and any(found == register for found in statement.writes()):
            return statement.loc
    return None


def mismatch(op: str, a: Value, b: Value) -> PtxTypeError:
    """The error for the operands of an operator that differ in type."""
    left, right = named(a, "a"), named(b, "b")
    hint = f"`{left}.to({b.type})` or `{right}.to({a.type})` converts (cvt)"
    if a.type.bits == b.type.bits:
        hint += f"; `{left}.bits({b.type})` keeps the bits (mov)"
    return located(PtxTypeError, f"`{op}` of {a.type} and {b.type}: PTX converts nothing by itself", hint)
