"""Which objects reach a register: most do not, and no paths are needed to tell.

A kernel of thousands of instructions asks for hundreds of registers, each held by one of a few hundred objects. So an
object is visited once a search, whatever leads to it; of what reaches the register, only the objects on the way are
looked at again, for their paths (:mod:`.holders`). Tuples that can never reach one are remembered for all of a trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from operator import is_
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..builder import Trace
from ..introspection.reachable import children, frozen, holds
from ..introspection.user_code import globals_of, is_user_class, is_user_module, names_of_module
from ..memory.pointers import Pointer
from ..values.parts import Part, Vec
from ..values.value import Reg

__all__ = ["HAS", "IS", "LEADS", "Globals", "Search", "shares", "way", "ways"]


class _Shares(dict[type, str]):
    """By the type of a value, the attribute in which it may have a `Reg`; "" for none, "self" for a `Reg`."""

    def __missing__(self, kind: type) -> str:
        found = self[kind] = (
            "self" if issubclass(kind, Reg) else "base" if issubclass(kind, Pointer)
            else "value" if issubclass(kind, Part) else ""
        )
        return found


_SHARES = _Shares()


def shares(value: Any, reg: Reg) -> bool:
    """Whether a value is a register, or was made from it without an instruction."""
    where = _SHARES[type(value)]
    return value is reg or (where not in ("", "self") and getattr(value, where) is reg)


IS, HAS, LEADS = 1, 2, 4
"""How an object may come to a `Reg`: it is one, has one in an attribute, or holds others."""


class _Ways(dict[type, int]):
    """How objects of a type may come to a `Reg`; 0: not at all."""

    def __missing__(self, kind: type) -> int:
        where = _SHARES[kind]
        self[kind] = IS if where == "self" else HAS if where else LEADS if holds(kind) else 0
        return self[kind]


class _WaysOfAll(dict[frozenset[type], int]):
    """The same of objects of several types together."""

    def __missing__(self, kinds: frozenset[type]) -> int:
        if len(self) > _MANY:
            self.clear()
        found = 0
        for kind in kinds:
            found |= _WAYS[kind]
        self[kinds] = found
        return found


_MANY = 4096
_WAYS = _Ways()
_WAYS_OF_ALL = _WaysOfAll()
way = _WAYS.__getitem__
"""How objects of a type may come to a `Reg`."""


def ways(held: Iterable[Any]) -> int:
    """How any of these objects may come to a `Reg`."""
    return _WAYS_OF_ALL[frozenset(map(type, held))]


class Globals:
    """What functions reach through the globals that they name, and the functions among these."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        """The code objects of the functions, by id."""
        self.functions: list[FunctionType] = []
        """Those that have nothing but their globals: no node of a search is made of them."""
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
                    found.functions.append(value)
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


_SEQUENCES = (list, tuple, Vec)


class Search:
    """The search for what reaches a register.

    Of a vector of registers each is searched for, and most objects reach none of them.
    """

    def __init__(self, reg: Reg, trace: Trace) -> None:
        self.reg, self.known = reg, trace.known_globals
        self.vector, self.unrelated = trace.vector or (frozenset(), {})
        self.leaves = trace.leaves
        self.live: list[Any] = []
        """What the frames reach through their globals."""
        self.reaching: set[int] = set()
        """By their ids, the objects that reach it."""
        self._visited: dict[int, Any] = {}
        """By id, the objects of which it is known whether they do."""
        self._related: set[int] = set()
        """Those that perhaps reach another register of its vector."""
        self._current: list[Globals] = []
        self._ends: list[int] = []
        """Of the objects visited now, by their ids: those that hold it,"""
        self._others: list[int] = []
        """those that perhaps hold another register of its vector,"""
        self._functions: list[tuple[int, Globals]] = []
        """and the functions."""

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
        if type(value) not in _SEQUENCES:
            return False
        found = ways(value)
        if found == LEADS:
            return all(map(self.leaves.__contains__, map(id, value)))
        return not found or (found == IS and not self.vector and id(self.reg) not in map(id, value))

    def reaches(self, values: Sequence[Any]) -> bool:
        """Whether one of these objects reaches it; all that they lead to is visited, each object once a search."""
        visited, leaves, unrelated = self._visited, self.leaves, self.unrelated
        self._ends, self._others, self._functions = [], [], []
        new: list[int] = []
        holding: dict[int, list[int]] = {}
        """By id, the objects that hold an object."""
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            at = id(value)
            if at in visited or at in leaves or at in unrelated:
                continue
            groups = [value] if type(value) in _SEQUENCES else [part.held for part in children(value)]
            leading = self._look(value, groups)
            if leading is None:
                leaves[at] = value
                continue
            visited[at] = value, groups
            new.append(at)
            for each in leading:
                holding.setdefault(id(each), []).append(at)
            waiting += leading
        _spread(self._ends, self.reaching, holding)
        for at, named in self._functions:
            if at in self.reaching:
                self.reaching.update(map(id, named.functions))
        if self.vector:
            _spread(self._others, self._related, holding)
            unrelated.update((at, visited[at]) for at in new if at not in self.reaching and at not in self._related)
        return any(id(value) in self.reaching for value in values)

    def _look(self, value: Any, groups: list[Sequence[Any]]) -> list[Any] | None:
        """What an object holds that may lead further; None for one that will never reach a register."""
        at, together, leading = id(value), 0, []
        for held in groups:
            found = ways(held)
            together |= found
            if found and self._holds(held, found):
                self._ends.append(at)
            if self.vector and (found & HAS or not self.vector.isdisjoint(map(id, held))):
                self._others.append(at)
            if found & LEADS:
                inner = list(compress(held, map(holds, map(type, held))))
                if not all(map(self.leaves.__contains__, map(id, inner))):
                    leading += inner
        if isinstance(value, FunctionType) and is_user_module(value.__globals__):
            named = self._globals(value.__code__, value.__globals__)
            self._functions.append((at, named))
            leading += named.live
        return leading if leading or together & (IS | HAS) or not frozen(type(value)) else None

    def _holds(self, held: Sequence[Any], found: int) -> bool:
        if found & IS and id(self.reg) in map(id, held):
            return True
        return bool(found & HAS) and any(shares(item, self.reg) for item in held)


def _spread(ends: list[int], reached: set[int], holding: dict[int, list[int]]) -> None:
    """Add to those that reach something what holds them, and so on."""
    waiting = [*ends, *(at for at in holding if at in reached)]
    reached.update(ends)
    while waiting:
        for at in holding.get(waiting.pop(), ()):
            if at not in reached:
                reached.add(at)
                waiting.append(at)
