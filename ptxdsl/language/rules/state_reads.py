"""Whether code that may still run reads a place: an attribute, an element, the contents of a container or an iterator.

Objects lead to the place if it is theirs or they hold others that do: `cfg`, by `.limits`, by `[0]`. Each load of a
variable in the bytecode begins an expression. It reads the place if it goes there, or hands an object on the way to
code that may go on: a call, another name. It does not if it goes elsewhere (`cfg.scale`), stores into the place, or
only adds to a container (`log.append(v)`, whose result nobody uses). A store rebuilds the place: what follows reads
what is new. Functions that capture or load a variable, methods and properties are looked into in the same way.

An update (``self.calls += 1``) reads the place for itself alone: if nothing else does, nobody can tell. What is printed
or logged only the host reads. A `for` of Python's that stores by its counter rebuilds the elements that it counts, and
is taken to rebuild all where that is not known.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import cached_property
from types import CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

from ..introspection.bytecode import flow_of
from ..introspection.effects import Expression, Site, chain, effects_of, inner_codes
from ..introspection.reachable import ATTRIBUTE, DEFAULT, GLOBAL, ITEM, MEMBER, NAME
from ..introspection.user_code import is_user_class
from .contents import CONTENT, LENGTH, WHOLE

__all__ = ["PLACE", "Leads", "Reads"]

_WRITE_ONLY = frozenset((
    "append", "appendleft", "add", "extend", "extendleft", "insert", "update", "discard", "write", "writelines",
))
_TRANSPARENT = ("base", "__class__", "__self__", "__func__", "__wrapped__", "func", "fget")
_NOTHING, _READ, _REBUILT = range(3)


PLACE = -1
"""Stands for the place itself, where objects that lead there are given by their ids."""
Leads = dict[int, tuple[Any, list[tuple[str, Any, int]]]]
"""The objects that lead to a place, by id: each with those of its attributes, elements and variables that do."""
Scope = Mapping[str, Any]


class Reads:
    """One question: is the place read?"""

    def __init__(
        self, leads: Leads, named: Callable[[str], bool], passes: Callable[[CodeType], bool] = lambda _: False
    ) -> None:
        """``named`` tells whether any code names an attribute, ``passes`` whether a function may read the place."""
        self._leads, self._named, self._passes = leads, named, passes
        self._asked: set[tuple[int | str, ...]] = set()
        last = [(form, key) for _, ways in leads.values() for form, key, to in ways if to == PLACE]
        self._slot = last[0] if last else (NAME, None)
        self.updated = False
        """Whether an update in place was met, which reads the place for itself."""

    def between(
        self, code: CodeType, name: str, place: int, scope: Scope, start: int, stop: int | None = None
    ) -> bool:
        """Whether what runs after instruction ``start``, and before ``stop``, reads the place; -1 begins at the top.

        ``place`` is the object that the variable holds, by id, or the place itself.
        """
        flow = flow_of(code)
        waiting = [(index, start) for index in flow.following[start]] if start >= 0 else [(0, -1)]
        seen: set[tuple[int, bool]] = set()
        while waiting:
            index, before = waiting.pop()
            step = flow.steps[index]
            # A `for` of Python's is taken to run at least once: what it rebuilds is new behind it.
            enters = step.opname == "FOR_ITER" and before < index
            if index == stop or (index, enters) in seen:
                continue
            seen.add((index, enters))
            use = _NOTHING
            stored_first = name in step.stores and step.opname.startswith("STORE")
            if name in step.loads and not stored_first:
                use = self._use(code, index, name, place, scope)
                if use == _READ:
                    return True
            if use != _REBUILT and (name not in step.stores or index in effects_of(code).updates):
                following = (index + 1,) if enters else flow.following[index]
                waiting += [(after, index) for after in following]
        return False

    def _use(self, code: CodeType, index: int, name: str, place: int, scope: Scope) -> int:
        effects = effects_of(code)
        if flow_of(code).steps[index].opname == "LOAD_CLOSURE":
            inner = [each for each in inner_codes(code) if name in each.co_freevars]
            return _READ if any(self._in_function(each, name, place, scope) for each in inner) else _NOTHING
        chains = [each for each in effects.consumers.get(index, ()) if chain(each)[0].key == name]
        if place == PLACE:
            return _READ if len(chains) != 1 else self._at_place(code, chains[0], scope)
        extended = {id(each.of) for each in chains if each.of is not None}
        uses = [self._follow(code, each, place, scope) for each in chains if id(each) not in extended]
        return max(uses, key=_ORDER.index, default=_NOTHING)

    def _follow(self, code: CodeType, expression: Expression, place: int, scope: Scope) -> int:
        """What an expression does with the place."""
        current = {place}
        for kind, key in chain(expression)[1]:
            if PLACE in current:
                return _READ
            found = {
                to for at in self._classes(current) for form, held, to in self._leads[at][1]
                if _matches(kind, key, form, held, self._leads[at][0])
            }
            if kind == "attr":
                uses = [self._attribute(code, expression, key, at) for at in current if not found]
                if not found:
                    return max(uses, key=_ORDER.index)
            elif not found:
                return _READ if any(self._item_reads(kind, at) for at in current) else _NOTHING
            current = found
        if PLACE in current:
            return self._at_place(code, expression, scope)
        return max((self._left(code, expression, at, scope) for at in current), key=_ORDER.index)

    def _at_place(self, code: CodeType, expression: Expression, scope: Scope) -> int:
        """What becomes of what the place holds: an update stores it again, what is printed only the host reads."""
        sites = [site for site in effects_of(code).sites if _about(site, expression)]
        if any(site.kind == "in-place" and site.target is expression for site in sites):
            self.updated = True
            return _NOTHING
        return _NOTHING if sites and all(_for_host(site, scope) for site in sites) else _READ

    def _item_reads(self, kind: str, at: int) -> bool:
        """Whether an element that does not lead to the place may tell something of it."""
        holder, ways = self._leads[at]
        if any(form == LENGTH for form, _, _ in ways):
            return kind == "each"
        return _is_object(holder) or any(form not in (ITEM, ATTRIBUTE) for form, _, _ in ways)

    def _classes(self, current: set[int]) -> set[int]:
        """The objects, and those of their classes that lead to the place: an attribute may be theirs."""
        found, waiting = set(current), list(current)
        while waiting:
            for form, key, to in self._leads[waiting.pop()][1]:
                unwritten = form == ATTRIBUTE and (key in _TRANSPARENT or str(key).startswith("__bases__"))
                if unwritten and to not in (*found, PLACE):
                    found.add(to)
                    waiting.append(to)
        return found

    def _left(self, code: CodeType, expression: Expression, at: int, scope: Scope) -> int:
        """What becomes of an object on the way that an expression ends at."""
        holder, ways = self._leads[at]
        sites = [site for site in effects_of(code).sites if _about(site, expression)]
        if isinstance(holder, FunctionType):
            return self._called(holder, ways)
        uses = [self._at_site(site, expression, at, scope, code) for site in sites if site.kind != "iterate"]
        uses += self._by_other_names(code, expression, at, scope)
        if isinstance(holder, MethodType):
            uses = [self._called(holder.__func__, self._leads.get(id(holder.__func__), (None, []))[1])]
            if any(key == "__self__" for _, key, _ in ways):
                uses.append(self._of_self(holder.__func__, id(holder.__self__)))
        return max(uses, key=_ORDER.index) if uses else self._named_somewhere()

    def _by_other_names(self, code: CodeType, expression: Expression, at: int, scope: Scope) -> list[int]:
        """What becomes of an object by the variables that an expression is assigned to."""
        uses = []
        for name, values in effects_of(code).assigned.items():
            for index, value in values:
                key = id(code), name, at, index
                if value is expression and key not in self._asked:
                    self._asked.add(key)
                    uses.append(_READ if self.between(code, name, at, scope, index) else _NOTHING)
        return uses

    def _called(self, function: Any, ways: list[tuple[str, Any, int]]) -> int:
        """What a function does with the variables by which it leads to the place."""
        for form, key, to in ways:
            if form == CONTENT:
                return _READ
            if form in (NAME, GLOBAL, DEFAULT):
                name = _parameter(function, key) if form == DEFAULT else key
                if self._in_function(function.__code__, name, to, function.__globals__):
                    return _READ
        return _NOTHING

    def _at_site(self, site: Site, expression: Expression, at: int, scope: Scope, code: CodeType) -> int:
        _, ways = self._leads[at]
        ends = [(form, key) for form, key, to in ways if to == PLACE]
        if site.kind == "attribute" and site.target is expression:
            return _REBUILT if [(ATTRIBUTE, site.key)] == [way[:2] for way in ways] else _NOTHING
        if site.kind == "item" and site.target is expression:
            key = site.key
            if key.kind == "const":
                whole = key.key == slice(None)
                return _REBUILT if ends and (whole or [(ITEM, key.key)] == [way[:2] for way in ways]) else _NOTHING
            counted = key.kind == "name" and key.key in flow_of(code).loop_variables
            rebuilt = counted and ends and len(ways) == len(ends)
            keys = [self._slot[1]] if type(self._slot[1]) is int else range(len(self._leads[at][0]))
            return _REBUILT if rebuilt and all(_counts(code, site, each, scope) for each in keys) else _NOTHING
        if site.kind == "in-place" and site.target is expression:
            return _NOTHING if ends and ends[0][0] in _OF_CONTAINERS else _READ
        if site.kind == "call":
            if site.target is expression:
                called = _looked_up(self._leads[at][0], "__call__")
                if isinstance(called, FunctionType):
                    return self._of_self(called, at)
            function = scope.get(site.target.key) if site.target.kind == "name" else None
            if isinstance(function, FunctionType) and function.__code__.co_argcount >= len(site.arguments):
                names = [function.__code__.co_varnames[n] for n, a in enumerate(site.arguments) if a is expression]
                if names:
                    read = any(self._in_function(function.__code__, name, at, function.__globals__) for name in names)
                    return _READ if read else _NOTHING
        return self._named_somewhere()

    def _attribute(self, code: CodeType, expression: Expression, key: str, at: int) -> int:
        """What is read by an attribute that does not lead to the place: something by methods and properties."""
        holder, ways = self._leads[at]
        if isinstance(holder, GeneratorType) or (ATTRIBUTE, "__class__", PLACE) in ways:
            return _READ
        own = [(form, to) for form, _, to in ways if form in _OF_CONTAINERS]
        found = _looked_up(holder, key)
        if isinstance(found, (FunctionType, property, cached_property, classmethod, staticmethod)):
            return self._descriptor(found, at)
        if is_user_class(type(found)) and hasattr(type(found), "__get__"):
            return _READ
        if isinstance(holder, (FunctionType, type, ModuleType)):
            return _NOTHING
        if found is None:
            return _READ if _looked_up(holder, "__getattr__") is not None else _NOTHING
        if not own:
            return _NOTHING
        ends = all(to == PLACE for _, to in own)
        site = next((s for s in effects_of(code).sites if s.kind == "call" and s.target is expression), None)
        if ends and key == "clear":
            return _REBUILT
        if ends and key in _WRITE_ONLY and site is not None and not site.used:
            return _NOTHING
        if ends and key in ("get", "pop", "setdefault") and site is not None and site.arguments:
            first = site.arguments[0]
            if first.kind == "const" and isinstance(holder, dict) and first.key not in [held for _, held, _ in ways]:
                return _NOTHING
        return _READ

    def _descriptor(self, found: Any, at: int) -> int:
        if isinstance(found, (classmethod, staticmethod)):
            return self._named_somewhere()
        if isinstance(found, (property, cached_property)):
            found = found.fget if isinstance(found, property) else found.func
        return self._of_self(found, at) if isinstance(found, FunctionType) else _READ

    def _of_self(self, function: Any, at: int) -> int:
        code = function.__code__
        if not code.co_argcount:
            return _READ
        return _READ if self._in_function(code, code.co_varnames[0], at, function.__globals__) else _NOTHING

    def _in_function(self, code: CodeType, name: str, place: int, scope: Scope) -> bool:
        """Whether a function that has the place by a variable reads it."""
        key = id(code), name, place
        if key in self._asked or self._passes(code):
            return False
        self._asked.add(key)
        if place != PLACE and place not in self._leads:
            return False
        if self.between(code, name, place, scope, -1):
            return True
        return any(
            self.between(inner, name, place, scope, -1) for inner in inner_codes(code)
            if name not in code.co_varnames and name in (*inner.co_freevars, *inner.co_names)
        )

    def _named_somewhere(self) -> int:
        form, key = self._slot
        return _NOTHING if form == ATTRIBUTE and not self._named(str(key)) else _READ


_OF_CONTAINERS = (ITEM, MEMBER, CONTENT, WHOLE, LENGTH)
_ORDER = (_NOTHING, _REBUILT, _READ)


def _about(site: Site, expression: Expression) -> bool:
    return site.target is expression or any(
        argument is expression or (argument.kind == "text" and any(part is expression for part in argument.key))
        for argument in site.arguments
    )


_LOGGING = ("debug", "info", "warning", "error", "critical", "log")


def _for_host(site: Site, scope: Scope) -> bool:
    """Whether an instruction prints or logs."""
    target = site.target
    if site.kind != "call":
        return False
    if target.kind == "name":
        return bool(target.key == "print" and target.key not in scope)
    known = scope.get(target.of.key) if target.kind == "attr" and target.of and target.of.kind == "name" else None
    return (known is logging or isinstance(known, logging.Logger)) and target.key in _LOGGING


def _counts(code: CodeType, site: Site, key: int, scope: Scope) -> bool:
    """Whether the `for` that gives the variable by which an element is stored comes to one key, or may."""
    given = [value for index, value in effects_of(code).assigned.get(site.key.key, ()) if index < site.at]
    source = given[-1] if given else None
    while source is not None and source.kind in ("item", "each"):
        source = source.of
    counts = _counted(source, scope) if source is not None else None
    return counts is None or key in counts


def _counted(source: Expression, scope: Scope) -> range | None:
    """What a call of `range` or `enumerate` counts, where its arguments are known."""
    if source.kind != "call" or source.of is None or source.of.kind != "name" or source.of.key in scope:
        return None
    known = [_number(argument, scope) for argument in source.key]
    if source.of.key == "range" and 1 <= len(known) <= 3 and None not in known:
        return range(*(each for each in known if each is not None))
    if source.of.key != "enumerate" or len(source.key) != 1:
        return None
    over = source.key[0]
    held = over.key if over.kind == "const" else scope.get(over.key)
    return range(len(held)) if isinstance(held, (list, tuple, dict)) else None


def _number(expression: Expression, scope: Scope) -> int | None:
    """The number that an expression is: a constant, a variable, or the length of one."""
    if expression.kind == "const":
        found = expression.key
    elif expression.kind == "name":
        found = scope.get(expression.key)
    elif expression.kind == "call" and expression.of is not None and expression.of.key == "len":
        held = scope.get(expression.key[0].key) if len(expression.key) == 1 else None
        found = len(held) if isinstance(held, (list, tuple, dict)) else None
    else:
        found = None
    return found if type(found) is int else None


def _is_object(value: Any) -> bool:
    """Whether an object's own code answers for its elements."""
    return not isinstance(value, (list, tuple, dict, deque))


def _matches(kind: str, key: Any, form: str, held: Any, holder: Any) -> bool:
    """Whether an attribute or item that is written may be what an object leads to the place by."""
    if kind == "attr":
        return form == ATTRIBUTE and key == held
    if form != ITEM:
        return kind == "each" and form == MEMBER
    if kind == "each":
        return True
    if key.kind != "const" or not _plain(held):
        return True
    if isinstance(key.key, int) and key.key < 0 and not isinstance(holder, dict):
        return bool(len(holder) + key.key == held) or len(holder) <= held + 1 or held < 0
    return bool(key.key == held)


def _plain(key: Any) -> bool:
    return type(key) in (int, str, float, bool, bytes, type(None))


def _parameter(function: FunctionType, key: Any) -> str:
    """The parameter that a default belongs to."""
    if isinstance(key, str):
        return key
    code = function.__code__
    return code.co_varnames[code.co_argcount - len(function.__defaults__ or ()) + int(key)]


def _looked_up(holder: Any, key: str) -> Any:
    kind = holder if isinstance(holder, type) else type(holder)
    return next((vars(base)[key] for base in kind.__mro__ if key in vars(base)), None)
