"""Snapshots of the variables of a kernel's frames, and what has changed since: for rules R2 and R3.

State is kept in objects too. Where the block that opens could change any, the snapshot of its innermost frame holds
what all that is reached from the frames holds.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from itertools import compress
from operator import is_not
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple, cast

from ..builder import Trace
from ..introspection.call_sites import is_user_file
from ..introspection.code_objects import PerCode
from ..introspection.frame_variables import locals_of
from ..introspection.reachable import MEMBER, Part, children, holds
from ..introspection.user_code import globals_of
from ..values.value import Reg
from .contents import Contents
from .harmless import harmless
from .python_protocol import RunTime

__all__ = ["Snapshot", "bound", "elements", "frames", "is_data", "reached", "rebound", "same", "snapshot", "variables"]

_NUMBERS = (int, float, complex, str, bytes, type(None))


class Snapshot(NamedTuple):
    """A frame as a region found it when it opened."""

    frame: FrameType
    at: int
    names: dict[str, object]
    contents: Contents | None


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
    found = [Snapshot(each, each.f_lasti, variables(each), None) for each in frames(trace, frame)]
    if found and not harmless(frame, found[0].names):
        found[0] = found[0]._replace(contents=reached(found))
    return found


def reached(states: list[Snapshot]) -> Contents:
    """What all objects hold that are reached from the variables of frames, and from the globals that they name."""
    roots: list[tuple[int, str, Any]] = []
    read: list[tuple[int, str, Any]] = []
    for number, state in enumerate(states):
        roots += [(number, name, value) for name, value in state.names.items()]
        scope = state.frame.f_globals
        names = [name for name in globals_of(state.frame.f_code) if name in scope and name not in state.names]
        read += [(number, name, scope[name]) for name in names]
    return Contents([*roots, *read], [state.frame for state in states], read)


def variables(frame: FrameType) -> dict[str, Any]:
    """The variables of a frame now: locals, those of its closure, and the globals that it assigns."""
    names = locals_of(frame)
    for name in _written_globals(frame.f_code):
        if name in frame.f_globals:
            names.setdefault(name, frame.f_globals[name])
    return names


def references(states: list[Snapshot]) -> dict[int, int]:
    """By their ids, how many references to registers snapshots have."""
    found: dict[int, int] = {}
    contents = states[0].contents
    parts = [part.held for node, _ in contents.nodes for part in node.parts] if contents is not None else []
    # A snapshot's own copies are lists; a tuple may be the object's.
    for held in (*(list(state.names.values()) for state in states), *(held for held in parts if type(held) is list)):
        for value in held:
            if value.__class__ is Reg:
                found[id(value)] = found.get(id(value), 0) + 1
    return found


def rebound(state: Snapshot, now: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    """The variables of a frame that hold something else than before: name, old, new."""
    before = state.names
    changed = map(is_not, before.values(), map(now.get, before, before.values()))
    return ((name, old, now[name]) for name, old in compress(before.items(), changed))


def bound(state: Snapshot, now: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """The variables of a frame that held nothing before: name and value."""
    if len(now) == len(state.names):
        return iter(())
    return ((name, now[name]) for name in now.keys() - state.names.keys())


def is_data(value: object) -> bool:
    """Whether a value is numbers and text, known while tracing."""
    kind = type(value)
    if kind in (tuple, list, set, frozenset):
        return all(map(is_data, cast("Iterable[object]", value)))
    return kind in _NUMBERS or kind is bool


@PerCode
def _written_globals(code: CodeType) -> frozenset[str]:
    """The names that a function assigns as ``global``."""
    if dis.opmap["STORE_GLOBAL"] not in code.co_code[::2]:
        return frozenset()
    return frozenset(str(i.argval) for i in dis.get_instructions(code) if i.opname == "STORE_GLOBAL")


# ---------------------------------------------------------------------------------------------------------------------
# What values are


def elements(value: object) -> Iterator[Any]:
    """The value itself, and what it holds."""
    waiting, seen = [value], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if not isinstance(each, (RunTime, FunctionType, type, ModuleType)) and holds(type(each)):
            waiting += [held for part in children(each) for held in part.held]


def same(old: Any, new: Any) -> bool:
    """Whether both mean the same to the kernel: one register, equal numbers, what consists of such."""
    waiting, seen = [(old, new)], set()
    while waiting:
        one, other = waiting.pop()
        if one is other or (id(one), id(other)) in seen:
            continue
        if type(one) is not type(other) or isinstance(one, (RunTime, type, ModuleType)):
            return False
        seen.add((id(one), id(other)))
        if isinstance(one, _NUMBERS):
            if one != other or repr(one) != repr(other):
                return False
            continue
        code = one.__code__ is other.__code__ if isinstance(one, FunctionType) else True
        first, second = children(one), children(other)
        if not code or not holds(type(one)) or _shape(first) != _shape(second):
            return False
        for left, right in zip(first, second):
            waiting += zip(left.held, right.held)
    return True


def _shape(parts: list[Part]) -> list[tuple[str, Any]]:
    return [(part.form, len(part.held) if part.form == MEMBER else list(part.keys)) for part in parts]
