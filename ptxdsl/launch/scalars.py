"""Numbers that a launch is given, as the bytes of the parameters that they are for.

The usual cases cost a comparison and a ``struct.pack``; for all others every condition is checked one by one, so that
the error can say what was wanted.
"""

from __future__ import annotations

import math
import struct
import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import PtxTypeError, with_article
from ..types import TYPES, ScalarType, dtype_of, holder_of, encode
from .arrays import view
from .geometry import Argument, ImageArgument, Scalar
from .parameter_check import Convert, ParameterCheck

__all__ = ["STRUCT_CODES", "Elements", "elements", "encoded", "packed_range", "scalar"]


class Elements(NamedTuple):
    """The dtypes, by name, that memory of a PTX type may have; the first is the one to recommend."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{', '.join(self.names[:-1])} or {self.names[-1]}" if len(self.names) > 1 else self.names[0]


@cache
def elements(dtype: ScalarType) -> Elements:
    """The dtypes of memory for ``Ptr[dtype]``: untyped bits take all of their size, packed types their lanes'.

    >>> str(elements(TYPES["b16"])), str(elements(TYPES["f16x2"]))
    ('uint16, int16, float16 or bfloat16', 'float16')
    """
    if dtype.kind == "b":
        size = min(dtype.bits, 64)
        names = (t.numpy_name for t in TYPES.values() if t.bits == size and t.numpy_name)
        return Elements(tuple(dict.fromkeys(names)))
    if dtype.lanes > 1:
        return elements(TYPES[str(dtype).rpartition("x")[0]])
    return Elements((dtype.numpy_name or ("float32" if dtype.bits == 32 else "uint8"),))


STRUCT_CODES = {
    "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "s8": "b", "s16": "h", "s32": "i", "s64": "q",
    "f32": "f", "f64": "d",
}
"""The types that ``struct`` packs, and its names of them."""
_FLOAT32_LIMIT = 3e38
"""Below the least number that overflows as a float32."""


def packed_range(kind: ScalarType) -> tuple[float, float]:
    """The least and the greatest number that ``struct`` packs as a type without a doubt."""
    if not kind.is_float:
        return kind.bounds
    high = _FLOAT32_LIMIT if kind.bits == 32 else sys.float_info.max
    return -high, high


_new: Any = tuple.__new__


def scalar(check: ParameterCheck, kind: ScalarType) -> Convert:
    """A number of exactly this type."""
    name = check.parameter.ptx[0].name
    code = STRUCT_CODES.get(str(kind))
    if code is None:
        return lambda value: (Scalar(name, encoded(check, kind, value)),)
    pack, exact = struct.Struct(f"<{code}").pack, float if kind.is_float else int
    low, high = packed_range(kind)

    def number(value: Any) -> tuple[Argument, ...]:
        if type(value) is exact and low <= value <= high:
            return (_new(Scalar, (name, pack(value), ())),)
        return (Scalar(name, encoded(check, kind, value)),)

    return number


def encoded(check: ParameterCheck, kind: ScalarType, value: Any) -> bytes:
    """The bytes of any number that a parameter of type ``kind`` takes; LaunchError for the others."""
    if isinstance(value, np.generic):
        return _encode_numpy(check, kind, value)
    if kind.lanes > 1:
        if not isinstance(value, (tuple, list)) or len(value) != kind.lanes:
            raise check.error(value, f"{kind} wants a tuple of {kind.lanes} numbers")
        return b"".join(encoded(check, TYPES[str(kind).rpartition("x")[0]], item) for item in value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        hint = f"pass `{int(value)}`" if isinstance(value, bool) else _item_hint(check, value)
        raise check.error(value, f"{kind} wants {_number(kind)}", hint)
    if kind.kind != "f" and isinstance(value, float):
        hint = f"pass `{int(value)}`" if value.is_integer() else f"round it: `int({check.name})`"
        raise check.error(value, f"{kind} wants {_number(kind)}", hint)
    if kind.kind == "f" and kind.numpy_name is None and str(kind) != "tf32":
        hint = f"declare `{check.name}: b{kind.bits}` and pass the bits"
        raise check.error(value, f"{kind} has no Python number", hint)
    try:
        data = encode(float(value) if kind.kind == "f" else value, kind).to_bytes(kind.bytes, "little")
    except (PtxTypeError, OverflowError):
        wanted = f"that is too large for {kind}" if kind.kind == "f" else f"{kind} wants {_number(kind)}"
        wider = holder_of(value, kind)
        raise check.error(value, wanted, f"declare `{check.name}: {wider}`" if wider is not None else None) from None
    if kind.kind == "f":
        _check_rounded(check, kind, value, data)
    return data


def _check_rounded(check: ParameterCheck, kind: ScalarType, value: float, data: bytes) -> None:
    rounded = float(np.frombuffer(data, dtype_of(kind if kind.numpy_name else TYPES["f32"]))[0])
    if isinstance(value, int) and rounded != value:
        raise check.error(value, f"{kind} cannot hold it exactly", f"pass `float({check.name})` to have it rounded")


def _encode_numpy(check: ParameterCheck, kind: ScalarType, value: np.generic) -> bytes:
    if value.dtype.name in (elements(kind).names if kind.kind == "b" else (kind.numpy_name,)):
        return value.tobytes()
    number = float(value) if isinstance(value, np.longdouble) else value.item()
    if type(number) is int or (type(number) is float and kind.is_float):
        return encoded(check, kind, number)
    whole = isinstance(number, bool) or (isinstance(number, float) and number.is_integer())
    hint: str | None = f"pass `{'float' if kind.is_float else 'int'}({check.name})`"
    if not whole:
        hint = f"round it: `int({check.name})`" if isinstance(number, float) else None
    raise check.error(value, f"{kind} wants {_number(kind)}", hint if kind.lanes == 1 else None)


def _item_hint(check: ParameterCheck, value: object) -> str | None:
    if isinstance(value, ImageArgument):
        return f"declare `{check.name}: {type(value).__name__}`, or pass `{check.name}.handle`"
    seen = view(value)
    if seen is None and hasattr(value, "__float__"):
        rounded = "float" if getattr(check.annotation, "is_float", False) else "int"
        return f"pass `{rounded}({check.name})`, which rounds"
    return f"pass `{check.name}.item()`" if seen and math.prod(seen.shape) == 1 else None


def _number(kind: ScalarType) -> str:
    """What an argument of this type must be, in words."""
    if kind.kind == "f":
        return f"a float or {with_article(kind.numpy_name)} scalar" if kind.numpy_name else "a float"
    return "an int from {} to {}".format(*kind.bounds)
