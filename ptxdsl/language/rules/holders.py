"""Who holds a register in a frame: its variables, and the containers, functions and objects that they reach.

A pointer made of a `reg` without an instruction (``p.cast(u32)``) and a part of one (``v.part("h0")``) hold its
register too: what is searched for is the register, not the object.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import compress, repeat
from operator import is_
from types import (
    AsyncGeneratorType, BuiltinFunctionType, CoroutineType, FrameType, FunctionType, GeneratorType, MethodType,
)
from typing import Any, NamedTuple

from ..builder import Trace
from ..introspection.frame_variables import locals_of
from ..introspection.reachable import GLOBAL, ITEM, NAME, Node, Part, walk
from ..introspection.user_code import globals_of
from ..values.value import Reg
from .reaching import HAS, IS, LEADS, Search, shares, way, ways

__all__ = ["Found", "Holder", "holders", "place_of", "variables"]

_CALLED = (
    FunctionType, MethodType, BuiltinFunctionType, functools.partial, GeneratorType, CoroutineType, AsyncGeneratorType,
)
_CHANGES = ("set", "__iadd__", "__isub__", "__imul__", "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__")


class Holder(NamedTuple):
    """A place in memory that holds a register, as one variable of a frame reaches it."""

    place: tuple[int, str, int]
    root: str
    node: Node
    form: str
    key: Any
    called: bool
    """Whether it is an argument, kept for a call: of a partial, a paused generator, a default, a bound method."""
    held: Any

    @property
    def path(self) -> str:
        """How the place is written."""
        return self.node.path(self.form, self.key)


class Found(NamedTuple):
    """What holds a register in a frame: variables, other places, and by variable the functions that capture it."""

    names: dict[str, Any]
    places: list[Holder]
    captured: dict[str, set[str]]


def variables(frame: FrameType) -> dict[str, Any]:
    """The variables of a frame now: locals, those of its closure, and the globals that it names."""
    scope = frame.f_globals
    found = {name: scope[name] for name in globals_of(frame.f_code) if name in scope}
    found.update(locals_of(frame))
    return found


def holders(frames: list[FrameType], reg: Reg, trace: Trace) -> list[Found]:
    """What holds the register in each of the frames."""
    found: list[Found] = []
    roots: list[list[tuple[str, Any]]] = []
    search = Search(reg, trace)
    for frame in frames:
        names: dict[str, Any] = {}
        others: list[tuple[str, Any]] = []
        held = locals_of(frame)
        leads = list(map(way, map(type, held.values())))
        for (name, value), lead in compress(zip(held.items(), leads), leads):
            if value is reg:
                names[name] = value
            elif lead == LEADS:
                others.append((name, value))
            elif lead == HAS and shares(value, reg):
                names[name] = value
        roots.append(others)
        found.append(Found(names, [], {}))
    for frame in reversed(frames):
        search.add(frame.f_code, frame.f_globals)
    through_globals = search.reaches(search.live)
    for frame, others, each in zip(frames, roots, found):
        if through_globals:
            values = {name: value for name, value in variables(frame).items() if way(type(value))}
            each.names.update((name, value) for name, value in values.items() if shares(value, reg))
            others = list(values.items())
        for name, value in others:
            _search(search, name, value, frame, each)
    return found


def _search(search: Search, name: str, value: Any, frame: FrameType, found: Found) -> None:
    """Note where what a variable holds reaches the register."""
    if search.passes(value):
        return
    if _is_flat(value, search):
        found.places.append(_element_of(name, value, search.reg))
    elif search.reaches([value]):
        _collect(walk([(name, value)], search.reaching, through_globals=True), frame, search.reg, found)


def _is_flat(value: Any, search: Search) -> bool:
    """Whether an object is a list of values and registers, the one that is searched for once among them."""
    if type(value) is not list or search.vector or ways(value) != IS:
        return False
    return list(map(id, value)).count(id(search.reg)) == 1


def _element_of(name: str, value: list[Any], reg: Reg) -> Holder:
    """The place in such a list."""
    at = list(map(id, value)).index(id(reg))
    node = Node(value, [Part(ITEM, range(len(value)), value)], None, NAME, name)
    return _holder(node, ITEM, at, reg)


def _collect(nodes: Iterator[Node], frame: FrameType, reg: Reg, found: Found) -> None:
    """Note where the objects of a walk hold the register."""
    for node in nodes:
        for part in node.parts:
            for key, value in _held(part, reg):
                own = part.form == GLOBAL and node.value.__globals__ is frame.f_globals and key in found.names
                if own or (part.form == NAME and type(node.value) is FunctionType and _own(frame, node.value, key)):
                    found.captured.setdefault(key, set()).add(node.root)
                    continue
                if type(node.value) is MethodType and node.value.__func__.__name__ in _CHANGES:
                    continue  # what it changes is what the variable holds
                found.places.append(_holder(node, part.form, key, value))


def _held(part: Part, reg: Reg) -> Sequence[tuple[Any, Any]]:
    """The elements of a part that hold the register."""
    found = ways(part.held)
    if not found & HAS:
        return list(compress(zip(part.keys, part.held), map(is_, part.held, repeat(reg)))) if found & IS else ()
    return [(key, value) for key, value in zip(part.keys, part.held) if shares(value, reg)]


def _own(frame: FrameType, function: FunctionType, name: str) -> bool:
    """Whether a function captures the variable of this name of a running frame, not another of the same name."""
    code = frame.f_code
    if name in code.co_cellvars:
        return any(constant is function.__code__ for constant in code.co_consts)
    return name in code.co_freevars


def _holder(node: Node, form: str, key: Any, value: Any) -> Holder:
    called, at = isinstance(node.value, _CALLED), node
    while at.parent is not None:
        at = at.parent
        called = called or isinstance(at.value, _CALLED)
    return Holder(place_of(node.value, form, key), at.key, node, form, key, called, value)


def place_of(container: object, form: str, key: Any) -> tuple[int, str, int]:
    """What tells the places of containers apart."""
    return id(container), form, hash(key) if key.__class__ in (int, str) else id(key)
