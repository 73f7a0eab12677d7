"""What an object holds, as a key: exact in types and bits, and down to the last object that can be reached.

Two compile-time constants share a trace if a kernel cannot tell them apart. Python's ``==`` does not say that: 1, 1.0
and True are equal, so are 0.0 and -0.0, and a class may have any ``__eq__``, or none and be changed between two
launches. So none is asked: the key is made of types, numbers, bits and characters alone, of everything in containers,
attributes, closures and arrays, in the order in which a program would find it, and of which objects are the same one.

Classes, modules and what only C knows are themselves, whatever they hold; so is an object that reaches a hundred
thousand others.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from .reachable import children
from .user_code import is_user_class

__all__ = ["Same", "code_key", "contents", "has_value", "is_array"]

_MOST = 100_000
_COPIED = 1 << 20
"""Arrays of more bytes are known by a digest."""


class Same:
    """A key that is equal for one and the same object only, which it keeps."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


def contents(value: object) -> Hashable:
    """What an object holds, as a key.

    >>> contents(0.0) == contents(-0.0), contents((1, 2)) == contents((1, True)), contents([1]) == contents([1])
    (False, False, True)
    """
    find = _EXACT.get(type(value))
    if find is not None:
        return find(value)
    try:
        return _Reading().of(value)
    except (_TooLargeError, RecursionError):
        return Same(value)


def code_key(code: CodeType) -> Hashable:
    """A code object as a key: code is equal in two files, and its lines are not."""
    return code.co_filename, code


def is_array(value: object) -> bool:
    """Whether a value is an array of numpy."""
    return _is_array_type(type(value))


def _is_array_type(kind: type) -> bool:
    return kind.__name__ == "ndarray" and kind.__module__ == "numpy"


class _TooLargeError(Exception):
    """An object reaches too many others."""


def _plain(value: Any) -> Hashable:
    return value.__class__, value


def _float(value: float) -> Hashable:
    return float, struct.pack("<d", value)


def _complex(value: complex) -> Hashable:
    return complex, struct.pack("<2d", value.real, value.imag)


_EXACT: dict[type, Callable[[Any], Hashable]] = {
    **dict.fromkeys((int, str, bytes, bool, type(None), type(...), type(NotImplemented)), _plain),
    float: _float, complex: _complex, ModuleType: Same, BuiltinFunctionType: Same,
    bytearray: lambda value: (bytearray, bytes(value)), range: lambda value: (range, repr(value)),
    memoryview: lambda value: (memoryview, value.format, value.shape, value.tobytes()),
}
_EXACT[ContextVar] = lambda value: (Same(value), contents(value.get(None)))
_NATIVE: dict[type, Callable[[Any], Any]] = {
    int: int.__int__, float: float.__float__, str: lambda value: str.__getitem__(value, slice(None)),
    bytes: lambda value: bytes.__getitem__(value, slice(None)), bytearray: bytes, complex: complex.__pos__,
}
"""What an object of a class that derives from one of these is as one of these."""

_CONTAINERS = (tuple, list, dict, set, frozenset, deque)


class _Reading:
    """The reading of one object, in which every other is met once."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []

    def of(self, value: Any) -> Hashable:
        kind = value.__class__ if type(value) is value.__class__ else type(value)
        find = _EXACT.get(kind)
        if find is not None:
            return find(value)
        if kind is tuple:
            return tuple, tuple(map(self.of, value))
        if issubclass(kind, type):
            return Same(value)
        met = self._seen.get(id(value))
        if met is not None:
            return "met", met
        if len(self._kept) >= _MOST:
            raise _TooLargeError
        self._seen[id(value)] = len(self._kept)
        self._kept.append(value)
        if kind is list or kind is set or kind is frozenset:
            return kind, tuple(map(self.of, value))
        if kind is dict:
            return dict, tuple(map(self.of, value)), tuple(map(self.of, value.values()))
        if kind is FunctionType:
            return self._function(value)
        if kind.__module__ == "array" and kind.__name__ == "array":
            return kind, value.typecode, value.tobytes()
        if kind.__module__ in ("numpy", "ml_dtypes") and hasattr(value, "tobytes"):
            return self._numpy(value)
        if any(map(_is_array_type, kind.__mro__)):
            return self._numpy(value), self._object(kind, value)
        return self._object(kind, value)

    def _function(self, value: FunctionType) -> Hashable:
        cells = [_content(cell) for cell in value.__closure__ or ()]
        parts = (value.__defaults__, value.__kwdefaults__, cells, value.__dict__)
        return FunctionType, code_key(value.__code__), Same(value.__globals__), tuple(map(self.of, parts))

    def _numpy(self, value: Any) -> Hashable:
        head = type(value), value.dtype, value.shape
        if value.dtype.hasobject:
            return *head, self.of(value.tolist())
        data = value.tobytes()
        if len(data) <= _COPIED:
            return *head, data
        from hashlib import blake2b

        return *head, blake2b(data).digest()

    def _object(self, kind: type, value: Any) -> Hashable:
        parts = children(value)
        native = next((_EXACT[base](read(value)) for base, read in _NATIVE.items() if issubclass(kind, base)), None)
        if not parts and native is None and not issubclass(kind, _CONTAINERS):
            return _leaf(kind, value)
        return kind, native, tuple(
            (part.form, tuple(map(self.of, part.keys)), tuple(map(self.of, part.held))) for part in parts
        )


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has none yet
        return Same


def _leaf(kind: type, value: Any) -> Hashable:
    """An object that shows nothing of what it holds: its value where a library says that it has one."""
    if getattr(value, "__dict__", None) == {}:  # it has no attribute yet
        return Same(value), "empty"
    version = getattr(value, "_version", None) if kind.__module__.startswith("torch") else None
    if version is not None:
        return Same(value), version
    if not has_value(kind):
        return Same(value)
    try:
        hash(value)
    except TypeError:  # it hashes what it holds, as an empty mappingproxy from Python 3.12 on
        return kind, repr(value)
    return kind, repr(value), value


def has_value(kind: type) -> bool:
    """Whether objects of a library's class are equal by their value, which they keep."""
    ours = kind.__module__.startswith("ptxdsl.") and not hasattr(kind, "__dataclass_fields__")
    by: object = kind.__hash__
    return not (ours or by is None or by is object.__hash__ or is_user_class(kind))
