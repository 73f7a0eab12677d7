"""Who holds a register in a frame: its variables, and the containers, functions and objects that they reach.

A pointer made of a `reg` without an instruction (``p.cast(u32)``) and a part of one (``v.part("h0")``) hold its
register too: what is searched for is the register, not the object.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, repeat
from operator import is_
from types import (
    AsyncGeneratorType, BuiltinFunctionType, CodeType, CoroutineType, FrameType, FunctionType, GeneratorType,
    MethodType, ModuleType,
)
from typing import Any, NamedTuple

from ..builder import Trace
from ..introspection.frame_variables import locals_of
from ..introspection.reachable import GLOBAL, ITEM, NAME, Node, Part, children, holds, walk
from ..introspection.user_code import globals_of, is_user_class, is_user_module, names_of_module
from ..memory.pointers import Pointer
from ..values.parts import Part as RegisterPart
from ..values.parts import Vec
from ..values.value import Reg

__all__ = ["Found", "Globals", "Holder", "holders", "place_of", "shares", "variables"]

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


class _Shares(dict[type, str]):
    """By the type of a value, the attribute in which it may have a `Reg`; "" for none, "self" for a `Reg`."""

    def __missing__(self, kind: type) -> str:
        found = self[kind] = (
            "self" if issubclass(kind, Reg) else "base" if issubclass(kind, Pointer)
            else "value" if issubclass(kind, RegisterPart) else ""
        )
        return found


_SHARES = _Shares()


def shares(value: Any, reg: Reg) -> bool:
    """Whether a value is a register, or was made from it without an instruction."""
    where = _SHARES[type(value)]
    return value is reg or (where not in ("", "self") and getattr(value, where) is reg)


_IS, _HAS, _LEADS = 1, 2, 4


class _Ways(dict[type, int]):
    """How objects of a type may come to a `Reg`: they are one, have one in an attribute, or hold others; 0: not."""

    def __missing__(self, kind: type) -> int:
        where = _SHARES[kind]
        self[kind] = _IS if where == "self" else _HAS if where else _LEADS if holds(kind) else 0
        return self[kind]


class _WaysOfAll(dict[frozenset[type], int]):
    """The same of objects of several types together."""

    def __missing__(self, kinds: frozenset[type]) -> int:
        if len(self) > _MANY:
            self.clear()
        ways = 0
        for kind in kinds:
            ways |= _WAYS[kind]
        self[kinds] = ways
        return ways


_MANY = 4096
_WAYS = _Ways()
_WAYS_OF_ALL = _WaysOfAll()


def _ways(held: Iterable[Any]) -> int:
    return _WAYS_OF_ALL[frozenset(map(type, held))]


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
    search = _Search(reg, trace)
    for frame in frames:
        names: dict[str, Any] = {}
        others: list[tuple[str, Any]] = []
        held = locals_of(frame)
        ways = list(map(_WAYS.__getitem__, map(type, held.values())))
        for (name, value), way in compress(zip(held.items(), ways), ways):
            if value is reg:
                names[name] = value
            elif way == _LEADS:
                others.append((name, value))
            elif way == _HAS and shares(value, reg):
                names[name] = value
        roots.append(others)
        found.append(Found(names, [], {}))
    for frame in reversed(frames):
        search.add(frame.f_code, frame.f_globals)
    through_globals = search.reaches(search.live)
    for frame, others, each in zip(frames, roots, found):
        if through_globals:
            values = {name: value for name, value in variables(frame).items() if _WAYS[type(value)]}
            each.names.update((name, value) for name, value in values.items() if shares(value, reg))
            others = list(values.items())
        for name, value in others:
            _search(search, name, value, frame, each)
    return found


def _search(search: _Search, name: str, value: Any, frame: FrameType, found: Found) -> None:
    """Note where what a variable holds reaches the register."""
    if search.passes(value):
        return
    if search.is_flat(value):
        found.places.append(search.element_of(name, value))
    elif search.reaches([value]):
        passed = {**search.unrelated, **search.clean}
        _collect(walk([(name, value)], passed, through_globals=True), frame, search.reg, found)


class Globals:
    """What functions reach through the globals that they name, and the functions among these."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        """The code objects of the functions, by id."""
        self.read: list[tuple[dict[str, Any], list[str], list[Any]]] = []
        """By module, the globals and what they were."""
        self.live: list[Any] = []
        """Those that may hold others, and those that are registers, in tuples."""

    def current(self) -> bool:
        """Whether none of them has been assigned since."""
        return all(all(map(is_, map(module.get, names), values)) for module, names, values in self.read)


def _globals(waiting: list[tuple[CodeType, dict[str, Any]]]) -> Globals:
    found = Globals()
    modules: dict[int, tuple[dict[str, Any], set[str]]] = {}
    for code, scope in waiting:
        found.codes.append(id(code))
        read = modules.setdefault(id(scope), (scope, set()))[1]
        new = globals_of(code) - read
        read |= new
        for name in new:
            value = scope.get(name)
            kind = type(value)
            if not _WAYS[kind]:
                continue
            if _SHARES[kind]:
                found.live.append((value,))
            elif isinstance(value, FunctionType) and not _keeps(value):
                if is_user_module(value.__globals__):
                    waiting.append((value.__code__, value.__globals__))
            elif _is_users(value):
                found.live.append(value)
    for scope, read in modules.values():
        names = list(read)
        found.read.append((scope, names, [scope.get(name) for name in names]))
    return found


def _keeps(function: FunctionType) -> bool:
    """Whether a function has more than its code and its globals."""
    return bool(function.__closure__ or function.__defaults__ or function.__kwdefaults__ or function.__dict__)


def _is_users(value: Any) -> bool:
    """Whether an object that may hold others is none of a library's functions, classes and modules."""
    if isinstance(value, FunctionType):
        return bool(value.__closure__) or is_user_module(value.__globals__)
    if isinstance(value, type):
        return is_user_class(value)
    return not isinstance(value, ModuleType) or is_user_module(names_of_module(value))


class _Search:
    """The search for who reaches a register: most objects do not, and no paths are needed to tell.

    Of a vector of registers each is searched for, and most objects reach none of them.
    """

    def __init__(self, reg: Reg, trace: Trace) -> None:
        self.reg, self.known = reg, trace.known_globals
        self.vector, self.unrelated = trace.vector or (frozenset(), {})
        self.leaves = trace.leaves
        self.clean: dict[int, Any] = {}
        """By id, the objects that do not reach it, but perhaps another register of its vector."""
        self.live: list[Any] = []
        """What the frames reach through their globals."""
        self._current: list[Globals] = []

    def add(self, code: CodeType, scope: dict[str, Any]) -> None:
        """Add what a function reaches through its globals."""
        if not any(id(code) in scopes.codes for scopes in self._current):
            self.live += self._globals(code, scope).live

    def _globals(self, code: CodeType, scope: dict[str, Any]) -> Globals:
        found = self.known.get(id(code))
        if found is None or not (found in self._current or found.current()):
            found = _globals([(code, scope)])
            self.known.update(dict.fromkeys(found.codes, found))
        if found not in self._current:
            self._current.append(found)
        return found

    def passes(self, value: Any) -> bool:
        """Whether an object does not reach it, as far as that is seen at once: most are sequences of other values."""
        kind = type(value)
        if kind is not list and kind is not tuple and kind is not Vec:
            return False
        ways = _ways(value)
        if ways == _LEADS:
            return all(map(self.leaves.__contains__, map(id, value)))
        return not ways or (ways == _IS and not self.vector and id(self.reg) not in map(id, value))

    def is_flat(self, value: Any) -> bool:
        """Whether an object is a list of values and registers, this one once among them."""
        if type(value) is not list or self.vector or _ways(value) != _IS:
            return False
        return list(map(id, value)).count(id(self.reg)) == 1

    def element_of(self, name: str, value: list[Any]) -> Holder:
        """The place in such a list."""
        at = list(map(id, value)).index(id(self.reg))
        node = Node(value, [Part(ITEM, range(len(value)), value)], None, NAME, name)
        return _holder(node, ITEM, at, self.reg)

    def reaches(self, values: Sequence[Any]) -> bool:
        """Whether one of these objects reaches it."""
        waiting, clean, unrelated, seen, others = list(values), self.clean, self.unrelated, {}, False
        leaves, number = self.leaves, id(self.reg)
        while waiting:
            value = waiting.pop()
            at, kind = id(value), type(value)
            if at in leaves or at in unrelated or at in seen:
                continue
            if at in clean:
                others = True
                continue
            groups: list[Any]
            if kind is list or kind is tuple or kind is Vec:
                if not _ways(value):
                    (unrelated if kind is list else leaves)[at] = value
                    continue
                groups = [value]
            else:
                groups = [part.held for part in children(value)]
                if kind is FunctionType and is_user_module(value.__globals__):
                    groups.append(self._globals(value.__code__, value.__globals__).live)
            seen[at] = value, groups
            for held in groups:
                ways = _ways(held)
                if ways & _IS and number in map(id, held):
                    return True
                if ways & _HAS and any(shares(item, self.reg) for item in held):
                    return True
                others = others or bool(ways & _HAS) or not self.vector.isdisjoint(map(id, held))
                if ways & _LEADS:
                    waiting += compress(held, map(holds, map(type, held)))
        (clean if others else unrelated).update(seen)
        return False


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
    ways = _ways(part.held)
    if not ways & _HAS:
        return list(compress(zip(part.keys, part.held), map(is_, part.held, repeat(reg)))) if ways & _IS else ()
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
