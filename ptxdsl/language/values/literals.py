"""Python numbers as operands: they take the type of the other operand, and must fit it."""

from __future__ import annotations

import operator
from typing import Any

from ... import ir
from ...errors import PtxTypeError
from ...types import ScalarType, encode
from ..errors import located

__all__ = ["is_number", "known_integer", "known_literal", "literal", "plain"]

_known: dict[tuple[type, Any, ScalarType, ScalarType | None], ir.Immediate] = {}


def is_number(value: object) -> bool:
    """Whether a value is a Python number, or a numpy scalar, which is taken for one."""
    return isinstance(value, (int, float)) or _is_numpy(value)


def _is_numpy(value: object) -> bool:
    return value.__class__.__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item")


def plain(value: Any) -> Any:
    """A numpy scalar as the Python number it is."""
    return value.item() if _is_numpy(value) else value


def known_integer(value: object) -> int | None:
    """A Python or numpy integer as the int it is; None for anything else, a bool too."""
    if isinstance(value, bool) or not is_number(value):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def known_literal(value: Any, type: ScalarType) -> ir.Immediate | None:
    """What `literal` found before for the same number and type."""
    return _known.get((value.__class__, value, type, None)) if value or value.__class__ is int else None


def literal(value: object, type: ScalarType, wanted: ScalarType | None = None) -> ir.Immediate:
    """A Python number in ``type`` as an operand that the table types ``wanted`` (``type`` if None): and.b32 of u32.

    A located PtxTypeError where it does not fit.
    """
    kind = value.__class__
    if kind is int or kind is float:
        # A float zero may be negative, and 0.0 == -0.0.
        key = (kind, value if value or kind is int else str(value), type, wanted)
        found = _known.get(key)
        if found is None:
            found = _known[key] = _encoded(value, type, wanted)
        return found
    return _encoded(value, type, wanted)


def _encoded(value: object, type: ScalarType, wanted: ScalarType | None) -> ir.Immediate:
    value = plain(value)
    try:
        return ir.Immediate(encode(value, type), wanted or type)
    except PtxTypeError as error:
        hint = error.hint
        if isinstance(value, float) and not value.is_integer() and not type.is_float:
            hint = f"`v.to(f{64 if type.bits > 16 else 32})` first, if the result is meant to be a float"
        elif isinstance(value, bool):
            hint = f"write {int(value)}, or decide it in Python: `if flag:`"
        elif isinstance(value, int) and value < 0 and type.kind == "u":
            signed = f"to(s{2 * max(type.bits, 16)})" if type.bits < 64 else "bits(s64)"
            hint = f"subtract a positive number, or make it signed: `v.{signed}`"
        elif isinstance(value, int) and type.is_integer and not type.bounds[0] <= value < 1 << type.bits <= 1 << 32:
            hint = f"a wider type may hold it: `v.to({type.kind}64)`"
        raise located(PtxTypeError, error.message, hint) from None
