"""What a trace has read of the world: the globals, cells, attributes, helpers and data that a function depends on.

A kernel is traced once and launched many times, and Python goes on: a cell of the notebook defines a helper again, a
setting gets another value, a table another entry. So what the code can read is found after the trace, once, and looked
at before each launch. It is found from the bytecode of the function and of every function that it can reach: each
name, and the attribute of a module, class or object that follows it, is a place with a value in it. What is used in
any other way counts with all that it holds, and the functions and classes in there with all that they read.

At a launch the places are compared by identity, which takes some 30 ns each; only what can be changed in place
(lists, dicts, arrays, objects) is read again. Where anything differs, the whole key is made anew: it is the same for a
helper that was defined again as it was, or a number that was assigned again.

What it cannot see: names that are computed (`globals()[name]`, `eval`, `import_module(name)`); files, clocks and random
numbers; what only C knows, which is itself, such as the results that an `lru_cache` keeps; the inside of libraries
(what lies in site-packages or belongs to Python or ptxdsl), unless the kernel belongs to one; what another thread
changes during the trace. A change that means nothing to the trace may be taken for one that does: then the kernel is
traced again, and what is loaded of the same text stays loaded.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from importlib.util import resolve_name
from itertools import chain
from operator import attrgetter
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from .call_sites import is_user_file
from .contents import Same, code_key, contents, is_array
from .name_reads import CELL, GLOBAL, Read, reads_of
from .observed import Observed
from .reachable import walk
from .user_code import is_user_class, is_user_module, names_of_module
from .value_kinds import (
    DESCRIPTORS, FUNCTIONS, NUMBERS, SILENT, Missing, array_facts, bases_of, computes_attributes, content_of, dict_of,
    is_fixed, keeps_no_data, package_of, parts_of, wrapped_by,
)

__all__ = ["Dependencies"]

_get_dict = attrgetter("__dict__")
_get_code = attrgetter("__code__", "__defaults__", "__kwdefaults__")
_FACTS = frozenset(("shape", "dtype", "ndim", "size", "itemsize", "strides", "nbytes"))
"""What an array of numpy says of itself beside its data."""
_CODE = (*FUNCTIONS, type)
_WRITERS: dict[type, tuple[str, ...]] = {
    list: ("append", "extend", "insert", "clear"), deque: ("append", "appendleft", "extend", "clear"),
    set: ("add", "update", "discard", "clear"), dict: ("update", "clear"),
}
"""The methods that change a container and tell nothing of it."""


class Dependencies:
    """What a function, called with these constants, can read: ``key`` says all of it."""

    def __init__(self, function: FunctionType, constants: Iterable[object] = ()) -> None:
        known = _globals_of(function)
        search = _Search(function, known.search)
        self.key: Hashable = (known.key, search.root(function), *[search.whole(value) for value in constants])
        self.observed = known.observed + search.observed()
        self.unchanged = self.observed.unchanged
        """Whether nothing of it has changed since."""


class _Globals:
    """What the code of a function reads through its globals: the same for all functions that a factory makes of it."""

    def __init__(self, function: FunctionType) -> None:
        self.code, self.names = function.__code__, function.__globals__
        self.search = _Search(function)
        self.key = self.search.globals(self.code, self.names)
        self.observed = self.search.observed()


_known: dict[tuple[int, int], _Globals] = {}
_MANY = 64


def _globals_of(function: FunctionType) -> _Globals:
    """Found before, if nothing of it has changed. Kept is only what keeps no data alive, and lives in a module."""
    at = id(function.__code__), id(function.__globals__)
    found = _known.get(at)
    if found is not None and found.observed.unchanged():
        return found
    found = _Globals(function)
    _known.pop(at, None)
    module = sys.modules.get(str(found.names.get("__name__")))
    if type(module) is ModuleType and names_of_module(module) is found.names and found.search.holds_no_data():
        if len(_known) >= _MANY:
            _known.pop(next(iter(_known)), None)
        _known[at] = found
    return found


def _owner_of(names: dict[str, Any]) -> Hashable:
    """Whose globals these are: a module's, or those that came along with functions from another process.

    Of these there is another dictionary each time, and what is read of it counts alone.
    """
    name = str(names.get("__name__"))
    module = sys.modules.get(name)
    return Same(names) if type(module) is ModuleType and names_of_module(module) is names else name


class _Search:
    """The search for what can be read, from one function on; ``known`` was found before."""

    def __init__(self, root: FunctionType, known: _Search | None = None) -> None:
        self._package = package_of(str(root.__globals__.get("__name__", "")))
        self._known = {} if known is None else known._places
        self._places: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._found = Observed()
        self._classes: dict[type, Any] = {}
        self._met: dict[int, int] = {} if known is None else dict(known._met)
        self._kept: list[object] = []

    # -- the search

    def root(self, function: FunctionType) -> Hashable:
        """The key of the function itself, whatever file it is in, but for what it reads through its globals."""
        self._first(function)
        code = function.__code__
        self._found.functions.append((function, *_get_code(function)))
        inner = [read for read in reads_of(code) if read.kind == CELL]
        return code_key(code), _owner_of(function.__globals__), *self._reads(function, inner)

    def globals(self, code: CodeType, names: dict[str, Any]) -> Hashable:
        """The key of what code reads through its globals."""
        return tuple(self._read(read, names, {}) for read in reads_of(code) if read.kind != CELL)

    def whole(self, value: Any) -> Hashable:
        """The key of a value of which everything counts."""
        kind = type(value)
        if kind in NUMBERS:
            return contents(value)
        if value is sys.modules:  # which holds everything
            return Same(value)
        known = self._first(value)
        if known is not None:
            return known
        if kind is FunctionType:
            return self._function(value) if self._follows(value) else self._of_library(value)
        if issubclass(kind, type):
            return self._class(value)
        if kind is ModuleType:
            return self._module(value)
        if isinstance(value, FUNCTIONS):
            return kind, tuple(map(self.whole, parts_of(value)))
        inner = wrapped_by(value)
        if inner is not None:
            return Same(kind), self.whole(inner)
        return self._object(value)

    def _first(self, value: Any) -> Hashable | None:
        """None for what is met for the first time, else its number."""
        known = self._met.get(id(value))
        if known is not None:
            return "met", known
        self._met[id(value)] = len(self._met)
        self._kept.append(value)
        return None

    def _follows(self, function: FunctionType) -> bool:
        return is_user_file(function.__code__.co_filename) and self._enters(function.__globals__)

    def _function(self, function: FunctionType) -> Hashable:
        code = function.__code__
        self._found.functions.append((function, *_get_code(function)))
        key: list[Hashable] = [code_key(code), _owner_of(function.__globals__)]
        key += [self.whole(part) for part in (function.__defaults__, function.__kwdefaults__) if part]
        for name, held in list(function.__dict__.items()):
            self._place(function.__dict__, name, held)
            key += [name, self.whole(held)]
        return *key, *self._reads(function, reads_of(code))

    def _reads(self, function: FunctionType, reads: Iterable[Read]) -> Iterator[Hashable]:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        return (self._read(read, function.__globals__, cells) for read in reads)

    def _of_library(self, function: FunctionType) -> Hashable:
        """A library's function, which may hold one of the user's: what `contextmanager` makes of a generator."""
        if function is os.getenv:
            return Same(function), self.whole(os.environ)
        held = [content_of(cell) for cell in function.__closure__ or ()]
        if not held or package_of(str(function.__globals__.get("__name__", ""))) == "ptxdsl":
            return Same(function)
        return Same(function), *map(self.whole, held)

    def _class(self, value: type) -> Hashable:
        """A class by what its methods and attributes are, as far as it is the user's."""
        if not is_user_class(value):
            return Same(value)
        table = self._table_of(value)
        self._found.attributes.append((bases_of, value, bases_of(value)))
        self._found.sizes.append((table, len(table)))
        key: list[Hashable] = [Same(value)]
        for name, held in list(table.items()):
            if name not in SILENT and not isinstance(held, DESCRIPTORS):
                self._place(table, name, held)
                dunder = name.startswith("__") and not isinstance(held, FUNCTIONS)
                key.append((name, None if dunder else self.whole(held)))
        return (*key, *map(self.whole, value.__mro__[1:]), self.whole(type(value)))

    def _module(self, value: ModuleType) -> Hashable:
        names = names_of_module(value)
        if not self._enters(names):
            return Same(value)
        self._found.sizes.append((names, len(names)))
        key: list[Hashable] = [Same(value)]
        for name, held in list(names.items()):
            if not name.startswith("__") or name == "__getattr__":
                self._place(names, name, held)
                key.append((name, Same(held) if isinstance(held, ModuleType) else self.whole(held)))
        return tuple(key)

    def _enters(self, names: dict[str, Any]) -> bool:
        """Whether a module with these names is the user's, or of the library that the kernel belongs to."""
        name = str(names.get("__name__", ""))
        if package_of(name) == "ptxdsl":
            return name.startswith("ptxdsl.kernels")
        return package_of(name) == self._package or is_user_module(names)

    def _object(self, value: Any) -> Hashable:
        """An object with all its data, and with the functions and classes in it."""
        data = self._datum(contents, value)
        held = (each for node in walk([("", value)]) for part in node.parts for each in part.held)
        return data, *(self.whole(each) for each in held if isinstance(each, _CODE) or wrapped_by(each) is not None)

    def _datum(self, read: Callable[[Any], Hashable], value: Any) -> Hashable:
        """Note data that can be changed in place."""
        key = read(value)
        if not isinstance(key, Same) and not is_fixed(value):
            self._found.data.append((read, value, key))
        return key

    def _table_of(self, kind: type) -> Any:
        """The attributes of a class; the same view of them each time."""
        return self._classes.setdefault(kind, dict_of(kind))

    def _place(self, table: Any, name: str, value: Any) -> None:
        if id(table) in self._known and name in self._known[id(table)][1]:
            return
        self._places.setdefault(id(table), (table, {}))[1][name] = value

    # -- names and attributes

    def _read(self, read: Read, names: dict[str, Any], cells: dict[str, CellType]) -> Hashable:
        if read.kind == CELL and read.name not in cells:
            return None  # of a function inside this one
        if read.kind == CELL:
            value = content_of(cells[read.name])
            if value is not Missing:
                self._found.cells.append((cells[read.name], value))
        elif read.kind == GLOBAL:
            value = self._global(read.name, names)
        else:
            value = self._module_named(read, names)
        return read.name, self._followed(value, read.attributes, used=read.used)

    def _module_named(self, read: Read, names: dict[str, Any]) -> Any:
        name = read.name
        if read.level:
            name = resolve_name("." * read.level + name, str(names.get("__package__") or names.get("__name__", "")))
        value = sys.modules.get(name, Missing)
        self._place(sys.modules, name, value)
        return value

    def _global(self, name: str, names: dict[str, Any]) -> Any:
        value = names.get(name, Missing)
        self._place(names, name, value)
        if value is Missing:
            provided = names.get("__builtins__", builtins)
            table = names_of_module(provided) if isinstance(provided, ModuleType) else provided
            value = table.get(name, Missing)
            self._place(table, name, value)
        return value

    def _followed(self, value: Any, attributes: tuple[str, ...], *, used: bool) -> Hashable:
        """The key of what is found by attributes of a value."""
        if value is Missing:
            return Missing
        if not attributes:
            return self.whole(value) if used else None
        name, rest = attributes[0], attributes[1:]
        kind = type(value)
        if kind is ModuleType:
            names = names_of_module(value)
            if name not in names or (package_of(str(names.get("__name__"))) == "ptxdsl" and not self._enters(names)):
                return self.whole(value)
            return self._stepped(names, name, rest, used=used)
        if kind is FunctionType and name in value.__dict__:
            return self._stepped(value.__dict__, name, rest, used=used)
        if name in _WRITERS.get(kind, ()):
            return Same(value)
        if wrapped_by(value) is not None and name in value.__dict__:
            return self._stepped(value.__dict__, name, rest, used=used)
        if is_array(value) and name in _FACTS:
            return self._datum(array_facts, value)
        if isinstance(value, type):
            return self._of_class(value, name, rest, used=used)
        if is_user_class(kind) and not computes_attributes(kind):
            return self._of_object(value, name, rest, used=used)
        return self.whole(value)

    def _stepped(self, table: Any, name: str, rest: tuple[str, ...], *, used: bool) -> Hashable:
        self._place(table, name, table[name])
        return name, self._followed(table[name], rest, used=used)

    def _of_class(self, value: type, name: str, rest: tuple[str, ...], *, used: bool) -> Hashable:
        plain = type(value) is type or not any(name in dict_of(base) for base in bases_of(type(value)))
        table = self._lookup(value, name) if plain and is_user_class(value) else None
        if table is None:
            return self.whole(value)
        if hasattr(type(table[name]), "__get__"):  # a method, which may read all of the class
            self._place(table, name, table[name])
            return self.whole(table[name]), self.whole(value)
        return self._stepped(table, name, rest, used=used)

    def _of_object(self, value: Any, name: str, rest: tuple[str, ...], *, used: bool) -> Hashable:
        table = self._lookup(type(value), name)
        own = getattr(value, "__dict__", None)
        self._found.attributes.append((type, value, type(value)))
        if type(own) is not dict or (table is not None and hasattr(type(table[name]), "__set__")):
            return self.whole(value)
        if name in own:
            self._found.attributes.append((_get_dict, value, own))
            return self._stepped(own, name, rest, used=used)
        if table is None or hasattr(type(table[name]), "__get__"):
            return self.whole(value)
        self._place(own, name, Missing)
        return self._stepped(table, name, rest, used=used)

    def _lookup(self, kind: type, name: str) -> Any:
        """The table of the class in which an attribute is found; those before it are noted not to have it."""
        self._found.attributes.append((bases_of, kind, bases_of(kind)))
        for base in kind.__mro__:
            table = self._table_of(base)
            if name in table:
                return table
            if is_user_class(base):
                self._place(table, name, Missing)
        return None

    def holds_no_data(self) -> bool:
        """Whether all that was found is functions, classes, modules and numbers."""
        found = self._found
        functions = (function for function, *_ in found.functions)
        values = (value for _, names in self._places.values() for value in names.values())
        return not (found.data or found.cells) and all(map(keeps_no_data, chain(functions, values)))

    def observed(self) -> Observed:
        """What was found, to be compared."""
        found = self._found
        for table, names in self._places.values():
            present = [(name, value) for name, value in names.items() if value is not Missing]
            absent = [name for name, value in names.items() if value is Missing]
            if present:
                found.present.append((table, present))
            if absent:
                found.absent.append((table, absent))
        return found
