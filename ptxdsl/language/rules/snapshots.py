"""Snapshots of the variables of a kernel's frames, and what has changed since: for rules R2 and R3.

State is kept in lists, dicts and small objects too. So a snapshot holds, besides the names of a frame, each container
that they reach, to a depth of five, with its elements.
"""

from __future__ import annotations

import dis
from collections import deque
from collections.abc import Iterator
from itertools import compress
from operator import is_not
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any, NamedTuple

from ...types import ScalarType
from ..builder import Trace
from ..introspection.call_sites import is_user_file
from ..introspection.code_objects import PerCode
from .python_protocol import RunTime

__all__ = [
    "INERT", "Container", "Snapshot", "changes", "elements", "frames", "holds", "may_hold", "places", "rebound", "same",
    "snapshot", "variables",
]

INERT = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type, GeneratorType, CodeType, FrameType)
"""What no kernel computes with: a change from one to another is no change of its state."""
_NUMBERS = (int, float, complex, str, bytes, type(None))
_LIBRARY = tuple(f"ptxdsl.{name}" for name in ("block", "kernels", "math", "mbarrier", "mma", "tma", "warp"))
_DEPTH = 5


class Container(NamedTuple):
    """A container found in a variable, what it held, and how an element of it is written."""

    path: str
    held: Any
    before: Any
    attributes: bool


class Snapshot(NamedTuple):
    """A frame as a region found it when it opened."""

    frame: FrameType
    at: int
    names: dict[str, object]
    containers: list[Container]


def frames(trace: Trace, frame: FrameType | None) -> Iterator[FrameType]:
    """The user's frames from ``frame`` up to the kernel's."""
    while frame is not None:
        code = frame.f_code
        if code is trace.code:
            yield frame
            return
        if is_user_file(code.co_filename):
            yield frame
        frame = frame.f_back


def snapshot(trace: Trace, frame: FrameType) -> list[Snapshot]:
    """What the variables of all frames up to the kernel hold now."""
    found = []
    for each in frames(trace, frame):
        names = variables(each)
        containers: list[Container] = []
        seen: set[int] = set()
        for name, value in compress(names.items(), map(holds, map(type, names.values()))):
            _collect(name, value, containers, seen, _DEPTH)
        found.append(Snapshot(each, each.f_lasti, names, containers))
    return found


def variables(frame: FrameType, *, copied: bool = True) -> dict[str, Any]:
    """The variables of a frame now: locals, those of its closure, and the globals that it assigns.

    If not ``copied``, they may change with the frame.
    """
    names = frame.f_locals
    written = _written_globals(frame.f_code)
    if copied or written or names.__class__ is not dict:
        names = dict(names)
    for name in written:
        if name in frame.f_globals:
            names.setdefault(name, frame.f_globals[name])
    return names


def rebound(state: Snapshot) -> Iterator[tuple[str, object, object]]:
    """The variables of a frame that hold something else than before: name, old, new."""
    now, before = variables(state.frame, copied=False), state.names
    changed = map(is_not, before.values(), map(now.get, before, before.values()))
    return ((name, old, now[name]) for name, old in compress(before.items(), changed))


@PerCode
def _written_globals(code: CodeType) -> frozenset[str]:
    """The names that a function assigns as ``global``."""
    if dis.opmap["STORE_GLOBAL"] not in code.co_code[::2]:
        return frozenset()
    return frozenset(str(i.argval) for i in dis.get_instructions(code) if i.opname == "STORE_GLOBAL")


# ---------------------------------------------------------------------------------------------------------------------
# What containers hold

_LIST, _TUPLE, _DICT, _OBJECT = 1, 2, 3, 4


class _Kinds(dict[type, int]):
    """How the elements of a type are found; 0 for what has none."""

    def __missing__(self, kind: type) -> int:
        found = self[kind] = _kind(kind)
        return found


def _kind(kind: type) -> int:
    if issubclass(kind, (list, deque)):
        return _LIST
    if issubclass(kind, tuple):
        return _TUPLE
    if issubclass(kind, dict):
        return _DICT
    module = kind.__module__ or ""
    ours = f"{module}.".startswith("ptxdsl.") and not module.startswith(_LIBRARY)
    if ours or issubclass(kind, (*INERT, RunTime, ScalarType)) or module in ("builtins", "numpy"):
        return 0
    return _OBJECT if kind.__dictoffset__ or _slots(kind) else 0


_KINDS = _Kinds()


holds = _KINDS.__getitem__
"""Whether values of a type have elements that may be registers; 0 if not."""


def _slots(kind: type) -> list[str]:
    """The names of the slots of a class and its bases."""
    names: list[str] = []
    for base in kind.__mro__:
        own = base.__dict__.get("__slots__", ())
        names += [own] if isinstance(own, str) else own
    return [name for name in names if not name.startswith("__")]


def attributes(value: object) -> dict[str, object]:
    found = dict(getattr(value, "__dict__", ()))
    for name in _slots(type(value)):
        if hasattr(value, name):
            found[name] = getattr(value, name)
    return found


def _collect(path: str, value: Any, found: list[Container], seen: set[int], depth: int) -> None:
    """Note every container reached from ``value``, and what it holds."""
    kind = _KINDS[type(value)]
    if not kind or not depth or id(value) in seen:
        return
    seen.add(id(value))
    if kind in (_OBJECT, _DICT):
        items = dict(value) if kind == _DICT else attributes(value)
        found.append(Container(path, value, items, kind == _OBJECT))
        pairs: Any = items.items()
    else:
        if kind == _LIST:
            found.append(Container(path, value, list(value), False))
        if not any(map(holds, set(map(type, value)))):
            return
        pairs = enumerate(value)
    for key, item in pairs:
        inner = _KINDS[type(item)]
        # A vector is a tuple of values, which nothing can change: most have many of them and no other container.
        if inner and (inner != _TUPLE or any(map(holds, map(type, item)))):
            _collect(f"{path}.{key}" if kind == _OBJECT else f"{path}[{key!r}]", item, found, seen, depth - 1)


def changes(container: Container) -> Iterator[tuple[object, object, object]]:
    """The elements that were there before and are others now: key, old, new."""
    held, before = container.held, container.before
    if isinstance(before, list):
        if any(map(is_not, before, held)):
            for key, (old, new) in enumerate(zip(before, held)):
                if old is not new:
                    yield key, old, new
        return
    now = attributes(held) if container.attributes else held
    for key, old in before.items():
        new = now.get(key, old)
        if new is not old:
            yield key, old, new


def contents(container: Any) -> Iterator[Any]:
    """What a container holds itself."""
    kind = _KINDS[type(container)]
    if kind == _OBJECT:
        return iter(attributes(container).values())
    return iter(container.values() if kind == _DICT else container)


def elements(value: object, depth: int = _DEPTH) -> Iterator[Any]:
    """The value itself, and what it holds."""
    yield value
    if depth and _KINDS[type(value)]:
        for item in contents(value):
            yield from elements(item, depth - 1)


def may_hold(value: Any, wanted: object) -> bool:
    """Whether a container can hold an object, itself or in others: most have nothing of its type."""
    kind = _KINDS[type(value)]
    if kind in (_LIST, _TUPLE):
        types = set(map(type, value))
        return type(wanted) in types or any(map(holds, types))
    return kind > 0


def places(wanted: object, path: str, value: Any, depth: int = _DEPTH) -> Iterator[tuple[tuple[int, int], str]]:
    """Where a container and those in it hold an object: each place, and how it is written."""
    kind = _KINDS[type(value)]
    if not depth or not may_hold(value, wanted):
        return
    keys: Any = attributes(value) if kind == _OBJECT else value if kind == _DICT else range(len(value))
    for index, (key, item) in enumerate(zip(keys, contents(value))):
        if item is wanted or _KINDS[type(item)]:
            inner = f"{path}.{key}" if kind == _OBJECT else f"{path}[{key!r}]"
            if item is wanted:
                yield (id(value), index), inner
            yield from places(wanted, inner, item, depth - 1)


def same(old: object, new: object) -> bool:
    """Whether both mean the same to the kernel: one register, equal numbers, sequences of such."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, _NUMBERS):
        return old == new and repr(old) == repr(new)
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        return len(old) == len(new) and all(map(same, old, new))
    return False
