"""Whether the body of a block can change any Python object: most cannot, and need no snapshot of what objects hold.

The body takes values from outside only by names. Where those are run-time values, numbers, strings and functions that
are harmless by the same judgement, nothing in it can reach an object that was there before: what is stored into or
called was made inside, or is a run-time value. Containers of such values may be read as well, but then nothing may be
stored or called that could change one. Everything else counts as harmful: objects and classes of the user's, modules,
iterators, attributes that are assigned, `yield`, built-in functions that change or run something.

The code is looked at once; what its names refer to, each time.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import (
    BuiltinFunctionType, CodeType, FrameType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

from ..introspection.bytecode import flow_of
from ..introspection.code_objects import PerCode
from ..introspection.effects import ATTRIBUTES, NEW, Effects, Site, effects_of, inner_codes, may_store
from ..introspection.reachable import attributes
from ..introspection.user_code import globals_of, is_user_class

__all__ = ["harmless"]

_KINDS_OF_PTXDSL = ("ptxdsl.language.", "ptxdsl.types", "ptxdsl.ir", "ptxdsl.isa", "ptxdsl.config")
_ACTIVE = frozenset((
    "setattr", "delattr", "getattr", "exec", "eval", "compile", "next", "anext", "globals", "locals", "vars", "input",
    "open", "breakpoint", "__import__", "__build_class__",
))
"""Built-in functions that change what they are given, or give what holds variables."""
CHANGING = frozenset(
    name for name in {*dir(list), *dir(dict), *dir(set), *dir(bytearray)}
    - {*dir(tuple), *dir(frozenset), *dir(bytes), "keys", "values", "items", "get", "copy", "fromkeys"}
    if not name.startswith("_")
)
"""The methods by which the built-in containers change."""


class _Summary(NamedTuple):
    """Of a piece of code: the names it takes from outside, the attributes it names, and what it may change.

    What may change are objects held by the variables and attributes that are named, elements of containers, and
    others.
    """

    names: tuple[str, ...]
    attributes: frozenset[str]
    changed_names: frozenset[str]
    changed_attributes: frozenset[str]
    changes_elements: bool
    changes_others: bool
    harmful: bool


@PerCode
def _blocks(code: CodeType) -> dict[int, _Summary | None]:  # noqa: ARG001
    """The summaries of a code object's blocks, by the offset of what entered them."""
    return {}


def harmless(frame: FrameType, variables: Mapping[str, Any]) -> bool:
    """Whether the block that ``frame`` enters now can change nothing but its variables."""
    found = _blocks(frame.f_code)
    at = frame.f_lasti
    if at not in found:
        found[at] = _block(frame.f_code, at)
    summary = found[at]
    if summary is None or summary.harmful:
        return False
    scope, built_in = frame.f_globals, frame.f_builtins
    values = []
    for name in summary.names:
        value = variables[name] if name in variables else scope[name] if name in scope else built_in.get(name)
        if not _is_atom(type(value)):
            values.append(value)
            if type(value) in _CONTAINERS and name in summary.changed_names:
                return False
    return not values or _World(summary).harmless(values)


class _World:
    """The values that code may use, with what the functions and methods among them use, and so on."""

    def __init__(self, summary: _Summary) -> None:
        self.attributes = set(summary.attributes)
        self.changed = set(summary.changed_attributes)
        self.elements, self.others = summary.changes_elements, summary.changes_others
        self.others = self.others or bool(summary.changed_names)
        self.containers = self.nested = False
        self.objects: list[Any] = []
        self.seen: set[int] = set()

    def harmless(self, waiting: list[Any]) -> bool:
        asked = -1
        while waiting or asked != len(self.attributes):
            if not waiting:
                asked = len(self.attributes)
                for each in self.objects:
                    waiting += _named(each, self.attributes)
            while waiting:
                value = waiting.pop()
                if not _is_atom(type(value)) and id(value) not in self.seen:
                    self.seen.add(id(value))
                    more = self._used_by(value)
                    if more is None:
                        return False
                    waiting += more
        if (self.others and self.containers) or (self.elements and self.nested):
            return False
        changed = [value for each in self.objects for value in _named(each, self.changed)]
        return all(map(_is_atom, map(type, changed)))

    def _used_by(self, value: Any) -> Iterable[Any] | None:
        """What else is used where a value is; None where that may change something."""
        kind = type(value)
        if kind in _CONTAINERS:
            held = list(value.values()) if kind is dict else list(value)
            kinds = set(map(type, held))
            self.nested = self.nested or not kinds.isdisjoint(_CONTAINERS)
            self.containers = True
            return held if not all(map(_is_atom, kinds)) else ()
        if kind is FunctionType:
            return self._used_by_function(value)
        if kind is MethodType:
            return value.__self__, value.__func__
        if kind.__module__ == "ptxdsl.language.subroutine":
            return (value._function,)
        if _harmless_object(value, kind):
            return ()
        written = is_user_class(kind) or kind.__module__.startswith("ptxdsl.kernels")
        if written and type(kind) is type and kind.__mro__[-2].__flags__ & _PYTHON_CLASS:
            self.objects.append(value)
            return [*_special(kind), *_named(value, self.attributes)]
        return None

    def _used_by_function(self, function: FunctionType) -> Iterable[Any] | None:
        if _is_ours(function.__module__):
            return ()
        summary = _function(function.__code__)
        if summary.harmful or function.__dict__:
            return None
        self.attributes |= summary.attributes
        self.changed |= summary.changed_attributes
        self.elements = self.elements or summary.changes_elements
        self.others = self.others or summary.changes_others
        scope, built_in = function.__globals__, vars(builtins)
        found = [scope[name] if name in scope else built_in.get(name) for name in summary.names]
        for cell in function.__closure__ or ():
            with suppress(ValueError):
                found.append(cell.cell_contents)
        return [*found, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


_PYTHON_CLASS = 1 << 9
_INERT_METHODS = ("__init__", "__new__", "__repr__", "__str__", "__post_init__", "__init_subclass__", "__reduce__")


class _Special(dict[type, list[FunctionType]]):
    """The methods of a class that run without being named."""

    def __missing__(self, kind: type) -> list[FunctionType]:
        if len(self) > 1024:
            self.clear()
        self[kind] = [
            found for base in kind.__mro__ for name, found in vars(base).items()
            if name.startswith("__") and name.endswith("__") and name not in _INERT_METHODS
            and isinstance(found, FunctionType)
        ]
        return self[kind]


_special = _Special().__getitem__


def _named(value: Any, names: set[str]) -> list[Any]:
    """What an object has by the attributes named: its own, and the functions of its class."""
    own = attributes(value)
    found = [own[name] for name in names if name in own and name != "__class__"]
    for base in type(value).__mro__[:-1]:
        of_class = vars(base)
        for name in names:
            if name in of_class and name not in own:
                held = of_class[name]
                if isinstance(held, property):
                    found += [held.fget, held.fset]
                elif isinstance(held, (classmethod, staticmethod)):
                    found.append(held.__func__)
                elif type(held) not in _SLOTS:
                    found.append(held)
    return found


_SLOTS = (MemberDescriptorType, GetSetDescriptorType)


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.startswith("ptxdsl.") and not module.startswith("ptxdsl.kernels")


def _harmless_object(value: Any, kind: type) -> bool:
    if kind is BuiltinFunctionType:
        owner = value.__self__
        return owner is math or (owner is builtins and value.__name__ not in _ACTIVE)
    if kind is ModuleType:
        return value is math or value.__name__.startswith("ptxdsl.") or value.__name__ == "ptxdsl"
    if isinstance(value, type):
        module = type.__dict__["__module__"].__get__(value)
        if module in ("builtins", "numpy"):
            return value is not type and value is not super and not is_user_class(value)
        return isinstance(module, str) and module.startswith(_KINDS_OF_PTXDSL)
    return False


_CONSTANTS = (
    int, float, complex, bool, str, bytes, range, slice, type(None), type(...), type(NotImplemented),
)
_CONTAINERS = frozenset((list, tuple, dict, set, frozenset))


class _Atoms(dict[type, bool]):
    """Whether the objects of a type cannot be changed, or are run-time values."""

    def __missing__(self, kind: type) -> bool:
        module = type.__dict__["__module__"].__get__(kind)
        ours = isinstance(module, str) and f"{module}.".startswith(_KINDS_OF_PTXDSL)
        found = self[kind] = (
            kind in _CONSTANTS or ("numpy", "generic") in [(base.__module__, base.__name__) for base in kind.__mro__]
            or (ours and module != "ptxdsl.language.subroutine" and not issubclass(kind, type))
        )
        return found


_is_atom = _Atoms().__getitem__


# ---------------------------------------------------------------------------------------------------------------------


@PerCode
def _function(code: CodeType) -> _Summary:
    """The summary of a whole function; its own variables and parameters may be any containers."""
    scan = _Scan()
    for each in (code, *inner_codes(code)):
        if may_store(each) or not CHANGING.isdisjoint(each.co_names):
            scan.add(effects_of(each), None)
        else:
            scan.attributes.update(each.co_names)
            scan.harmful = scan.harmful or _names_special(each)
    return scan.summary(globals_of(code))


def _block(code: CodeType, offset: int) -> _Summary | None:
    flow, effects = flow_of(code), effects_of(code)
    start = flow.index(offset)
    body = flow.block(start)
    if body is None:
        return None
    names = {name for index in body for name in flow.steps[index].loads}
    scan = _Scan()
    scan.add(effects, body)
    for index, inner in effects.made:
        if index in body:
            for each in (inner, *inner_codes(inner)):
                names |= {*globals_of(each), *each.co_freevars}
                scan.add(effects_of(each), None)
    return scan.summary(names & _taken(start, body, code))


class _Scan:
    """What code may change, as its sites show."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.changed: set[str] = set()
        self.attributes: set[str] = set()
        self.elements = self.others = self.harmful = False

    def summary(self, names: Iterable[str]) -> _Summary:
        return _Summary(
            tuple(sorted(names)), frozenset(self.attributes), frozenset(self.names), frozenset(self.changed),
            self.elements, self.others, self.harmful,
        )

    def add(self, effects: Effects, body: frozenset[int] | None) -> None:
        for index, step in enumerate(effects.steps):
            if step.opname in ATTRIBUTES and (body is None or index in body):
                self.attributes.add(step.argval)
                if step.argval in CHANGING and not _is_called(effects, index):
                    self.others = True
        for site in effects.sites:
            if body is None or site.at in body:
                self._site(site, effects, body)
        self.harmful = self.harmful or _names_special(effects.code)

    def _site(self, site: Site, effects: Effects, body: frozenset[int] | None) -> None:
        # What a generator made inside does between two values is its own affair, a block left by `yield` is not.
        if site.kind in ("attribute", "import", "yield" if body else "", *(() if body else ("global", "free"))):
            self.harmful = True
            return
        target = site.target
        if site.kind == "call" and target.kind == "attr" and target.key in CHANGING and target.of is not None:
            target = target.of
        elif site.kind not in ("item", "in-place"):
            return
        if target is NEW or target.kind == "const":
            return
        if target.kind == "attr":
            self.changed.add(target.key)
        elif target.kind in ("item", "each"):
            self.elements = True
        elif target.kind == "name":
            self._variable(target.key, effects, body)
        else:
            self.others = True

    def _variable(self, name: str, effects: Effects, body: frozenset[int] | None) -> None:
        """A variable whose object may be changed: one from outside, an element, or what the code has made."""
        code = effects.code
        values = [value for index, value in effects.assigned.get(name, ()) if body is None or index in body]
        given = name in code.co_cellvars or name in code.co_freevars or (
            name in _parameters(code) if body is None else name in _taken(min(body) - 1, body, code)
        )
        if given or not values:
            self.names.add(name)
            self.others = self.others or body is None
        kinds = {value.kind for value in values}
        # In an operation in place the value is assigned again.
        kinds -= {value.kind for value in values if value.kind == "name" and value.key == name}
        self.elements = self.elements or not kinds.isdisjoint(("item", "each"))
        self.others = self.others or not kinds <= {"item", "each", "new"}


@PerCode
def _known_taken(code: CodeType) -> dict[tuple[int, frozenset[int]], frozenset[str]]:  # noqa: ARG001
    """By block, the names that it may read before it assigns them."""
    return {}


def _taken(start: int, body: frozenset[int], code: CodeType) -> frozenset[str]:
    """The names of which a block may read what they held before: those that are live where it begins, and all cells."""
    known = _known_taken(code)
    found = known.get((start, body))
    if found is None:
        found = known[start, body] = frozenset((*_live(start, body, code), *code.co_cellvars))
    return found


def _live(start: int, body: frozenset[int], code: CodeType) -> Iterator[str]:
    flow = flow_of(code)
    read: set[str] = set()
    assigned: set[str] = set()
    waiting, reached = list(flow.following[start]), set()
    while waiting:
        index = waiting.pop()
        if index in body and index not in reached:
            reached.add(index)
            step = flow.steps[index]
            read.update(step.loads)
            assigned.update(step.stores)
            waiting += flow.following[index]
    for name in read:
        if name not in assigned or any(True for _ in flow.loads_after(name, start, within=body)):
            yield name


def _is_called(effects: Effects, index: int) -> bool:
    """Whether the method that an instruction takes from an object is called, and not kept or handed on."""
    name = effects.steps[index].argval
    taken = [step for step in effects.steps if step.opname in ATTRIBUTES and step.argval == name]
    called = [site for site in effects.sites if site.kind == "call" and site.target[:2] == ("attr", name)]
    return len(called) >= len(taken)


def _names_special(code: CodeType) -> bool:
    """Whether code names what Python keeps for itself: ``__dict__``, ``__class__``, ``__defaults__``."""
    return any(name.startswith("__") and name.endswith("__") for name in code.co_names)


def _parameters(code: CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return code.co_varnames[:count]
