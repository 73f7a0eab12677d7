"""What Python objects are reachable from one, and how each is written: `ptxdsl.language.introspection.reachable`."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import types
import weakref
from collections import ChainMap, OrderedDict, UserList, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from ptxdsl.language.introspection.reachable import holds, walk
from ptxdsl.language.introspection.user_code import globals_of


class Wanted:
    """What is searched for."""


@dataclasses.dataclass
class Record:
    a: object
    __hidden: object = None


class Slots:
    __slots__ = ("__hidden", "plain", "unset")

    def __init__(self, value: object) -> None:
        self.plain = None
        self.__hidden = value


class Hostile(list[object]):
    """Everything that asks this object runs into an error."""

    def __iter__(self) -> Any:
        raise AssertionError

    __len__ = __getattr__ = __getattribute__ = __repr__ = __bool__ = __iter__  # type: ignore[assignment]

    @property
    def best(self) -> Any:
        raise AssertionError


class Named:
    def __init__(self, value: object) -> None:
        self._best = value

    @property
    def best(self) -> object:
        raise AssertionError

    def method(self) -> None:
        """A method."""


def captured(value: object) -> Callable[[], object]:
    return lambda: value


def paused(value: object) -> Iterator[object]:
    yield
    yield value


def advanced(value: object) -> object:
    found = paused(value)
    next(found)
    return found


def with_default(value: object) -> object:
    def f(a: object, b: object = value) -> None: ...

    return f


def with_keyword(value: object) -> object:
    def f(*, b: object = value) -> None: ...

    return f


def with_attribute(value: object) -> object:
    def f() -> None: ...

    f.best = value  # type: ignore[attr-defined]
    return f


def made_class(value: object) -> type:
    return type("Made", (), {"best": value})


def module(value: object) -> types.ModuleType:
    found = types.ModuleType("state")
    found.best = value  # type: ignore[attr-defined]
    return found


def deep(value: object) -> object:
    for _ in range(3000):
        value = [value]
    return value


def held_by_itself(value: object) -> object:
    found: list[object] = [value]
    found.append(found)
    return found


CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "list": (lambda v: [1, v], "h[1]"),
    "nested": (lambda v: [{"a": (0, v)}], "h[0]['a'][1]"),
    "dict": (lambda v: {1: v}, "h[1]"),
    "key of a dict": (lambda v: {v: 1}, "h[...]"),
    "set": (lambda v: {v}, "h[...]"),
    "frozenset": (lambda v: frozenset([v]), "h[...]"),
    "deque": (lambda v: deque([v]), "h[0]"),
    "ordered dict": (lambda v: OrderedDict(a=v), "h['a']"),
    "defaultdict": (lambda v: defaultdict(list, a=v), "h['a']"),
    "user list": (lambda v: UserList([v]), "h.data[0]"),
    "chain map": (lambda v: ChainMap({"a": v}), "h.maps[0]['a']"),
    "mapping proxy": (lambda v: types.MappingProxyType({"a": v}), "h['a']"),
    "named tuple": (lambda v: namedtuple("Pair", "a b")(0, v), "h[1]"),  # noqa: PYI024
    "namespace": (lambda v: types.SimpleNamespace(a=v), "h.a"),
    "dataclass": (Record, "h.a"),
    "mangled": (lambda v: Record(0, v), "h._Record__hidden"),
    "slots": (Slots, "h._Slots__hidden"),
    "behind a property": (Named, "h._best"),
    "class": (made_class, "Made.best"),
    "instance of a class": (lambda v: made_class(v)(), "Made.best"),
    "derived class": (lambda v: type("D", (made_class(v),), {})(), "Made.best"),
    "module": (module, "state.best"),
    "closure": (captured, "value"),
    "cell": (lambda v: captured(v).__closure__[0], "h.cell_contents"),  # type: ignore[index]
    "default": (with_default, "h.__defaults__[0]"),
    "keyword default": (with_keyword, "h.__kwdefaults__['b']"),
    "function attribute": (with_attribute, "h.best"),
    "partial": (lambda v: functools.partial(max, v), "h.args[0]"),
    "partial keyword": (lambda v: functools.partial(max, key=v), "h.keywords['key']"),
    "bound method": (lambda v: Named(v).method, "h.__self__._best"),
    "builtin method": (lambda v: [v].append, "h.__self__[0]"),
    "method wrapper": (lambda v: [v].__iadd__, "h.__self__[0]"),
    "generator": (advanced, "value"),
    "unstarted generator": (paused, "value"),
    "generator expression": (lambda v: (x for x in [v]), ".0[...][0]"),
    "list iterator": (lambda v: iter([v]), "h[...][0]"),
    "dict view": (lambda v: {"a": v}.values(), "h[...]['a']"),
    "cycle": (lambda v: itertools.cycle([v]), "h[...][...][0]"),
    "repeat": (itertools.repeat, "h[...]"),
    "map": (lambda v: map(captured(v), []), "value"),
    "property": (lambda v: property(captured(v)), "value"),
    "static method": (lambda v: staticmethod(captured(v)), "value"),
    "cached function": (lambda v: functools.lru_cache(captured(v)), "value"),
    "exception": (ValueError, "h[...][0]"),
    "weak reference": (lambda v: [v, weakref.ref(v)][1], "h[...]"),
    "slice": (slice, "h.stop"),
    "objects of numpy": (lambda v: np.array([[0, v]], dtype=object), "h[0, 1]"),
    "hostile": (lambda v: Hostile([v]), "h[0]"),
    "deep": (deep, "h" + "[0]" * 3000),
    "cycle of containers": (held_by_itself, "h[0]"),
}


@pytest.mark.parametrize(("make", "path"), CASES.values(), ids=CASES)
def test_found(make: Callable[[object], object], path: str) -> None:
    wanted = Wanted()
    found = [
        node.path(part.form, key)
        for node in walk([("h", make(wanted))])
        for part in node.parts
        for key, held in zip(part.keys, part.held)
        if held is wanted
    ]
    assert path in found


def test_what_the_walk_does_not_enter() -> None:
    for value in (1, "text", 2.0, b"", None, np.zeros(3), np.float32(1), (lambda: 0).__code__):
        assert not list(walk([("h", value)])) or not any(node.parts for node in walk([("h", value)]))
    for library in (np, functools, dataclasses, np.ndarray, OrderedDict, int):
        assert [node.value for node in walk([("h", library)])] == [library]
    assert not holds(int)
    assert not holds(np.float32)


def test_each_object_once() -> None:
    shared: list[object] = [Wanted()]
    values = [node.value for node in walk([("a", [shared, shared]), ("b", shared)])]
    assert sum(value is shared for value in values) == 1


def test_roots() -> None:
    nodes = {id(node.value): node.root for node in walk([("a", [[1]]), ("b", {"x": (2,)})])}
    assert sorted(nodes.values()) == ["a", "a", "b", "b"]


def test_globals_of() -> None:
    scope: dict[str, Any] = {}
    exec("def f():\n    global COUNT\n    COUNT = First\n    return [np.zeros(n) for _ in range(2)], g.COLS", scope)
    assert globals_of(scope["f"].__code__) == {"COUNT", "First", "np", "n", "range", "g"}
