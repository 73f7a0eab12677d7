"""Which line changed an object: the stores and calls of the code that ran in a region, matched with what has changed.

When a region closes, the change is there and the line that made it has run. The candidates are the instructions that
could have made it: those of the body, and of the functions that it may call. One whose expression leads to the object,
followed through the objects as they are, is preferred to one whose object is not known, and a line of the body to a
line of a function that many may call.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ...errors import Loc
from ..builder import Region
from ..introspection.bytecode import flow_of
from ..introspection.effects import NEW, Effects, Expression, Site, effects_of
from ..introspection.frame_variables import locals_of
from ..introspection.reachable import ATTRIBUTE, attributes
from ..introspection.user_code import is_user_module
from .contents import CONTENT, Change
from .snapshots import Snapshot

__all__ = ["found_line"]

_MISSING = object()
_BY_CALL = ("setattr", "delattr", "next", "exec", "eval", "vars", "list", "tuple", "set", "sorted", "zip", "sum")


def found_line(
    states: list[Snapshot], region: Region, *, name: str = "", change: Change | None = None,
    leads: Container[int] = (),
) -> Loc:
    """The line that rebound a variable through a closure or a global, or that changed an object; else the region's.

    ``leads`` are the ids of the objects that the changed one is reached from.
    """
    best: tuple[int, Loc] | None = None
    special = set()
    for rank, code, site, scope in _candidates(states):
        fit = _fits_name(site, name) if change is None else _fits(site, change, scope)
        if fit and code.co_name.startswith("__") and code.co_name != "__init__":
            special.add(code)
            fit += _GUESS * (len(special) > 1)
        if fit and (best is None or rank + fit < best[0]):
            best = rank + fit, Loc(code.co_filename, site.line)
    if len(special) > 1 and best is not None and best[0] < _GUESS and best[1].line in {
        site.line for code in special for site in effects_of(code).sites
    }:
        best = _GUESS, best[1]
    if change is not None and (best is None or best[0] >= _GUESS):
        return _naming(states, leads) or (best[1] if best else region.loc)
    return best[1] if best is not None else region.loc


def _naming(states: list[Snapshot], leads: Container[int]) -> Loc | None:
    """The first line of the body that calls what leads to the object, or hands it on; else that names it."""
    named = None
    for state in states:
        code = state.frame.f_code
        flow = flow_of(code)
        scope = {**state.frame.f_globals, **state.names, **locals_of(state.frame)}
        for index in flow.body(flow.index(state.at), flow.index(state.frame.f_lasti)):
            chains = effects_of(code).consumers.get(index, ())
            if any(id(resolved(each, scope)) in leads for each in chains):
                named = named or Loc(code.co_filename, flow.steps[index].line)
                sites = [site for site in effects_of(code).sites if any(
                    each in (site.target, *site.arguments) and id(resolved(each, scope)) in leads for each in chains
                )]
                if sites:
                    return Loc(code.co_filename, sites[0].line)
    return named


def _candidates(states: list[Snapshot]) -> Iterator[tuple[int, CodeType, Site, Mapping[str, Any]]]:
    """The sites that may have run, with a rank: those of the bodies first, then of what they may call."""
    waiting: list[tuple[CodeType, Mapping[str, Any], frozenset[int] | None]] = []
    for state in states:
        flow = flow_of(state.frame.f_code)
        if indices := flow.body(flow.index(state.at), flow.index(state.frame.f_lasti)):
            names = {**state.frame.f_globals, **state.names, **locals_of(state.frame)}
            waiting.append((state.frame.f_code, names, frozenset(indices)))
    seen: set[int] = set()
    rank = 0
    while waiting:
        code, scope, body = waiting.pop(0)
        if body is None and id(code) in seen:
            continue
        seen.add(id(code))
        effects = effects_of(code)
        for site in effects.sites:
            if body is None or site.at in body:
                yield rank, code, site, scope
        for index, inner in effects.made:
            if body is None or index in body:
                waiting.append((inner, scope, None))
        for function in _called(effects, body, scope):
            inner_scope = _scope(function)
            if is_user_module(function.__globals__):
                waiting.append((function.__code__, inner_scope, None))
        rank += 1


def _called(effects: Effects, body: frozenset[int] | None, scope: Mapping[str, Any]) -> Iterator[FunctionType]:
    """The functions that code names, and the methods that it may call."""
    called = [site.target for site in effects.sites if site.kind == "call" and (body is None or site.at in body)]
    found: list[Any] = [(each, resolved(each, scope)) for each in called if each.kind == "attr"]
    for index, chains in effects.consumers.items():
        if body is None or index in body:
            found += [(each, resolved(each, scope)) for each in chains]
    for site in effects.sites:
        if site.kind == "attribute" and (body is None or site.at in body):
            own = _of_class(resolved(site.target, scope), site.key)
            if isinstance(own, property):
                yield from _functions(own.fset)
    for expression, value in found:
        for each in value.values() if type(value) is dict else value if type(value) in (list, tuple) else (value,):
            yield from _functions(each)
        if value is _MISSING and expression.kind == "attr" and expression.of is not None:
            holder = resolved(expression.of, scope)
            if holder is not _MISSING:
                yield from _functions(_of_class(holder, expression.key))
            else:
                for base in {base for each in list(scope.values()) if isinstance(each, type) for base in each.__mro__}:
                    yield from _functions(vars(base).get(expression.key))


def _functions(value: Any) -> Iterator[FunctionType]:
    if isinstance(value, FunctionType):
        yield value
    elif isinstance(value, (MethodType, classmethod, staticmethod)):
        yield from _functions(value.__func__)
    elif isinstance(value, property):
        yield from _functions(value.fget)
    elif type(value).__module__ == "ptxdsl.language.subroutine":
        yield from _functions(value._function)
    elif isinstance(value, type):
        yield from _functions(_of_class(value, "__init__", itself=True))
    elif type(value).__flags__ & 1 << 9 and not isinstance(value, ModuleType):
        for base in type(value).__mro__:
            for name, found in vars(base).items():
                if isinstance(found, FunctionType) and name.startswith("__") and name != "__init__":
                    yield found


def _of_class(holder: Any, name: str, *, itself: bool = False) -> Any:
    kind = holder if itself or isinstance(holder, type) else type(holder)
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), _MISSING)


def _scope(function: FunctionType) -> Mapping[str, Any]:
    scope = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with suppress(ValueError):
            scope[name] = cell.cell_contents
    for hidden in function.__code__.co_varnames:
        scope.pop(hidden, None)
    return scope


def resolved(expression: Expression, scope: Mapping[str, Any]) -> Any:
    """The object that an expression is, as far as that is found without running code."""
    if expression.kind == "name":
        return scope.get(expression.key, _MISSING)
    if expression.of is None:
        return _MISSING
    holder = resolved(expression.of, scope)
    if holder is _MISSING:
        return _MISSING
    if expression.kind == "attr":
        if isinstance(holder, ModuleType):
            return vars(holder).get(expression.key, _MISSING)
        return attributes(holder).get(expression.key, _MISSING)
    if expression.kind == "item" and isinstance(expression.key, Expression) and type(holder) in (list, tuple, dict):
        key = expression.key
        at = key.key if key.kind == "const" else resolved(key, scope)
        try:
            return holder[at] if type(at) in (int, str) else _MISSING
        except (LookupError, TypeError):
            return _MISSING
    return _MISSING


def _fits_name(site: Site, name: str) -> int:
    """How well a site explains that the variable was rebound."""
    if site.kind in ("free", "global") and site.key == name:
        return _SURE
    hidden = site.kind == "call" and site.target.kind == "name" and site.target.key in ("globals", "exec", "eval")
    return _LIKELY if hidden else 0


_PURE = frozenset((
    "keys", "values", "items", "get", "copy", "index", "count", "union", "intersection", "difference", "issubset",
    "issuperset", "isdisjoint", "most_common", "elements", "tobytes", "tolist", "sum", "min", "max", "mean", "any",
    "all",
))
"""Methods that change nothing."""
_READING = frozenset((
    "len", "isinstance", "print", "repr", "str", "min", "max", "sum", "sorted", "any", "all", "list", "tuple", "set",
    "dict", "enumerate", "zip", "reversed", "range", "type", "id", "iter", "int", "float", "bool", "getattr", "hasattr",
))
"""Functions that change nothing but iterators."""
_SURE, _LIKELY, _POSSIBLE, _GUESS = 1, 100, 10_000, 1_000_000


def _fits(site: Site, change: Change, scope: Mapping[str, Any]) -> int:
    """How well a site explains a change: the lower the better, 0 not at all."""
    holder = change.node.value
    if change.form in ("name", "global"):
        return _SURE if site.kind in ("free", "global") and site.key == change.key else 0
    if site.kind == "attribute":
        return _target(site.target, holder, scope) if change.form == ATTRIBUTE and site.key == change.key else 0
    if site.kind in ("item", "in-place", "iterate"):
        if change.form == ATTRIBUTE or (site.kind == "iterate") != (change.verb == "advances"):
            return 0
        known = _target(site.target, holder, scope)
        if known and site.kind == "item" and isinstance(site.key, Expression):
            if site.key.kind != "const":
                return known + 1
            other = change.form != CONTENT and change.verb == "is replaced" and site.key.key not in (change.key, -1)
            return 0 if other else known
        return known
    if site.kind != "call":
        return 0
    return _fits_call(site, change, scope)


def _fits_call(site: Site, change: Change, scope: Mapping[str, Any]) -> int:
    holder, callee = change.node.value, site.target
    if callee.kind == "attr" and callee.of is not None:
        if callee.key in _PURE:
            return 0
        if resolved(callee.of, scope) is holder:
            own = _of_class(holder, callee.key)
            return 0 if any(is_user_module(each.__globals__) for each in _functions(own)) else _SURE
        descriptor = _of_class(holder, callee.key)
        builtin = descriptor is not _MISSING and not isinstance(descriptor, FunctionType)
        if builtin and callee.of is not NEW and resolved(callee.of, scope) is _MISSING:
            return _LIKELY
    passed = [resolved(argument, scope) for argument in site.arguments]
    if any(each is holder for each in passed):
        function = resolved(callee, scope)
        if isinstance(function, (FunctionType, type)):
            return _POSSIBLE
        if callee.kind == "name" and callee.key in ("setattr", "delattr"):
            named = site.arguments[1] if len(site.arguments) > 1 else None
            known = named is not None and named.kind == "const"
            return (_SURE if not known or named.key == change.key else 0) if named is not None else _SURE
        only_reads = callee.kind == "name" and callee.key in _READING and change.verb != "advances"
        return 0 if only_reads else _SURE + 1
    if callee.kind == "name" and callee.key in _BY_CALL and _MISSING in passed:
        return _LIKELY + 1
    return 0


def _target(expression: Expression, holder: Any, scope: Mapping[str, Any]) -> int:
    found = resolved(expression, scope)
    if found is holder:
        return _SURE
    return _LIKELY if found is _MISSING and expression is not NEW else 0


