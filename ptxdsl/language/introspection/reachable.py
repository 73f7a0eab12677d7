"""Which Python objects can be reached from one, and how each is written.

A rule that asks "who holds this register?" or "what state is there to change?" must find it wherever Python keeps it:
in containers, in attributes (``__dict__``, slots, name-mangled ones too), in what functions capture, in their defaults
and attributes, in partials, bound methods, paused generators, classes and modules of the user's, and in the objects
that only C knows (iterators, views, caches), by what the garbage collector visits.

No code of the user's runs for it: elements are read by the methods of the built-in types, attributes by the
descriptors of C. The walk knows no depth and visits each object once.

It stops at what no kernel keeps state in: modules, classes and functions' globals of libraries, ptxdsl's own objects,
arrays and tensors, code. What it cannot see: the stack of a running frame, which holds the iterator
of a `for`, and what an extension module hides from the collector.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from itertools import chain, compress, repeat
from operator import is_
from types import (
    AsyncGeneratorType, BuiltinFunctionType, CellType, CodeType, CoroutineType, FrameType, FunctionType, GeneratorType,
    GetSetDescriptorType, MappingProxyType, MemberDescriptorType, MethodDescriptorType, MethodType, ModuleType,
    TracebackType, WrapperDescriptorType,
)
from typing import Any, NamedTuple
from weakref import ref

from .user_code import globals_of, is_user_class, is_user_module, names_of_module

__all__ = [
    "ANNOTATIONS", "ATTRIBUTE", "DEFAULT", "GLOBAL", "ITEM", "MEMBER", "NAME", "Node", "Part", "attributes", "child",
    "children", "frozen", "holds", "walk",
]

ITEM, ATTRIBUTE, NAME, GLOBAL, DEFAULT, MEMBER = "[]", ".", "name", "global", "default", "in"
"""How a child is written: by its key, as an attribute, as a variable of a function or of its module, as the default of
a parameter, or not at all (of a set).
"""


class Part(NamedTuple):
    """Children of one kind that an object has: their keys, and they themselves at the same places."""

    form: str
    keys: Sequence[Any]
    held: Sequence[Any]
    """A list, but where it is a tuple of the object's."""


class Node(NamedTuple):
    """An object that has children, and how the walk came to it."""

    value: Any
    parts: list[Part]
    parent: Node | None
    form: str
    key: Any

    def path(self, form: str | None = None, key: Any = None) -> str:
        """How the object is written, or the child of it at a key: from the class or module that has it, if one has."""
        steps = [] if form is None else [(form, key)]
        node: Node | None = self
        while node is not None and (not steps or steps[-1][0] not in (NAME, GLOBAL)):
            owner = bool(steps) and issubclass(type(node.value), (type, ModuleType))
            steps.append((NAME, node.value.__name__) if owner else (node.form, node.key))
            node = node.parent
        text = ""
        for form, key in reversed(steps):
            if form in (NAME, GLOBAL):
                text = str(key)
            elif form == ATTRIBUTE:
                text += f".{key}"
            elif form == DEFAULT:
                text += f".__defaults__[{key!r}]" if isinstance(key, int) else f".__kwdefaults__[{key!r}]"
            else:
                text += f"[{_written(key) if form == ITEM else '...'}]"
        return text

    @property
    def root(self) -> str:
        """The variable that the walk began at."""
        node = self
        while node.parent is not None:
            node = node.parent
        return str(node.key)


def _written(key: Any) -> str:
    """A key of a container, without a call of the user's `__repr__`."""
    if type(key) in (int, str, float, bool, bytes, type(None)):
        return repr(key)
    if type(key) is tuple:
        return f"{', '.join(map(_written, key))}"
    return f"<{type(key).__name__}>"


def walk(
    roots: Iterable[tuple[str, Any]], only: Container[int] | None = None, *, through_globals: bool = False
) -> Iterator[Node]:
    """Each object with children that is reached from named variables, once, the nearest first.

    ``only`` are the ids of the objects that are gone to, where not all are. ``through_globals``: what a function of the
    user's names of its module belongs to it too.
    """
    seen: dict[int, Any] = {}
    waiting: deque[tuple[Node | None, str, Any, Any]] = deque(
        (None, NAME, name, value) for name, value in roots if holds(type(value))
    )
    while waiting:
        parent, form, key, value = waiting.popleft()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        parts = children(value)
        if through_globals and type(value) is FunctionType:
            parts += _globals(value)
        node = Node(value, parts, parent, form, key)
        yield node
        for part in parts:
            form, held = part.form, part.held
            inner = list(map(holds, map(type, held)) if only is None else map(only.__contains__, map(id, held)))
            if True in inner:
                waiting.extend([(node, form, key, value) for key, value in compress(zip(part.keys, held), inner)])


def children(value: Any) -> list[Part]:
    """What an object holds; empty parts are left out."""
    return [part for read in _readers(type(value)) for part in read(value) if part.held]


def child(value: Any, form: str, key: Any) -> Any:
    """What an object holds at the key of one of its parts; None where it holds nothing there."""
    if form == ITEM and type(value) in (list, tuple):
        return value[key] if key < len(value) else None
    found = (compress(part.held, map(is_, part.keys, repeat(key))) for part in children(value) if part.form == form)
    return next(chain.from_iterable(found), None)


# ---------------------------------------------------------------------------------------------------------------------
# How the objects of a type are read

_Reader = Callable[[Any], Iterable[Part]]
_HAS_REFERENTS, _MADE_AT_RUN_TIME = 1 << 14, 1 << 9
"""Py_TPFLAGS_HAVE_GC, Py_TPFLAGS_HEAPTYPE."""
_LIBRARY = tuple(f"ptxdsl.{name}." for name in ("block", "kernels", "math", "mbarrier", "mma", "tma", "warp"))
_LEAVES = tuple(f"{name}." for name in (
    "numpy", "torch", "cupy", "jax", "jaxlib", "ml_dtypes", "cuda", "logging", "threading", "re", "ctypes",
))
_module_of: Callable[[type], object] = type.__dict__["__module__"].__get__
_mro_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_dict_of: Callable[[type], MappingProxyType[str, Any]] = type.__dict__["__dict__"].__get__


class _Kinds(dict[type, Any]):
    def __init__(self, find: Callable[[type], Any]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, kind: type) -> Any:
        if len(self) > 4096:
            self.clear()
        found = self[kind] = self._find(kind)
        return found


def _find(kind: type) -> tuple[_Reader, ...]:
    """What reads the objects of a type; nothing for those that hold nothing."""
    module = f"{_module_of(kind)}."
    if kind is ModuleType or issubclass(kind, ModuleType):
        return (_module,)
    if issubclass(kind, type):
        return (_class,)
    if module == "numpy." and kind.__name__ == "ndarray":
        return (_array,)
    if module.startswith("ptxdsl.") and not module.startswith(_LIBRARY) and not issubclass(kind, tuple):
        return ()
    if module.startswith(_LEAVES) or issubclass(kind, _NOTHING):
        return ()
    mro = _mro_of(kind)
    known = next((base for base in mro if base in _NATIVE), object)
    native = next(filter(_native, mro))
    members, table = _descriptors(mro)
    found = [] if known is object else [_NATIVE[known]]
    if members or table:
        found.append(_attributes(members, table))
    if native is not known and kind.__flags__ & _HAS_REFERENTS:
        found = [_referents(found, table)]
    if is_user_class(kind):
        found.append(_type)
    return tuple(found)


def _native(kind: type) -> bool:
    """Whether a type is made in C: so are its methods; those that extensions make at run time look like classes."""
    if not kind.__flags__ & _MADE_AT_RUN_TIME:
        return True
    own = _dict_of(kind).values()
    return any(type(entry) in _C_METHODS and getattr(entry, "__objclass__", kind) is kind for entry in own)


_Get = Callable[[Any], Any]


def _descriptors(mro: tuple[type, ...]) -> tuple[dict[str, _Get], _Get | None]:
    """What gives the slots of an object, by name, and what gives its ``__dict__``."""
    members: dict[str, _Get] = {}
    table: _Get | None = None
    for base in mro:
        for name, entry in _dict_of(base).items():
            if name == "__dict__" and type(entry) in _DESCRIPTORS:
                table = table or entry.__get__
            elif type(entry) is MemberDescriptorType and base not in _NATIVE:
                members.setdefault(name, entry.__get__)
    return members, table


def _attributes(members: dict[str, _Get], table: _Get | None) -> _Reader:
    def read(value: Any) -> Iterable[Part]:
        named: Any = {}
        if table is not None:
            try:
                named = table(value)
            except AttributeError:  # classes compiled to C may show a table that they do not have
                named = {}
        if members:
            named = dict(named)
            for name, get in members.items():
                with suppress(AttributeError):
                    named[name] = get(value)
        return _table(named)

    return read


def _table(names: Any) -> Iterator[Part]:
    if type(names) is dict:
        yield Part(ATTRIBUTE, list(names), list(names.values()))
    elif isinstance(names, dict):
        yield Part(ATTRIBUTE, list(dict.keys(names)), list(dict.values(names)))


def _sequence(read: Callable[[Any], Iterator[Any]]) -> _Reader:
    def parts(value: Any) -> Iterator[Part]:
        held = list(read(value))
        yield Part(ITEM, range(len(held)), held)

    return parts


def _members(read: Callable[[Any], Iterator[Any]]) -> _Reader:
    def parts(value: Any) -> Iterator[Part]:
        held = list(read(value))
        yield Part(MEMBER, held, held)

    return parts


def _dict(value: Any) -> Iterator[Part]:
    keys = list(dict.keys(value))
    yield Part(ITEM, keys, list(dict.values(value)))
    if not set(map(type, keys)) <= {str, int}:
        yield Part(MEMBER, keys, keys)


def _mapping(value: Any) -> Iterator[Part]:
    inner = [held for held in gc.get_referents(value) if isinstance(held, dict)]
    return _dict(inner[0]) if inner else iter(())


def _function(value: FunctionType) -> Iterator[Part]:
    if str(value.__globals__.get("__name__")).startswith("ptxdsl."):
        return
    yield Part(NAME, value.__code__.co_freevars, [_content(cell) for cell in value.__closure__ or ()])
    defaults = value.__defaults__ or ()
    yield Part(DEFAULT, range(len(defaults)), defaults)
    yield Part(DEFAULT, list(value.__kwdefaults__ or ()), list((value.__kwdefaults__ or {}).values()))


def _globals(value: FunctionType) -> list[Part]:
    scope = value.__globals__
    if not is_user_module(scope):
        return []
    names = [name for name in globals_of(value.__code__) if name in scope]
    return [Part(GLOBAL, names, [scope[name] for name in names])] if names else []


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _cell(value: Any) -> Iterator[Part]:
    yield Part(ATTRIBUTE, ("cell_contents",), [_content(value)])


def _method(value: Any) -> Iterator[Part]:
    function = getattr(value, "__func__", None)
    yield Part(ATTRIBUTE, ("__self__", "__func__"), [value.__self__, function])


def _frame(value: FrameType) -> Iterator[Part]:
    names = dict(value.f_locals)
    yield Part(NAME, list(names), list(names.values()))
    known = {id(held) for held in (*names.values(), value.f_globals, value.f_builtins, value.f_code, value.f_back)}
    known.add(id(value.f_locals))
    rest = [held for held in gc.get_referents(value) if id(held) not in known and not isinstance(held, CellType)]
    yield Part(MEMBER, rest, rest)


def _generator(value: Any) -> Iterator[Part]:
    prefix = {GeneratorType: "gi", CoroutineType: "cr", AsyncGeneratorType: "ag"}[type(value)]
    frame = getattr(value, f"{prefix}_frame")
    if frame is not None:
        yield from _frame(frame)
        inner = getattr(value, "gi_yieldfrom" if prefix == "gi" else f"{prefix}_await")
        yield Part(MEMBER, (inner,), [inner])
        known = {id(held) for held in frame.f_locals.values()}
        rest = [held for held in gc.get_referents(value) if id(held) not in known and type(held) not in _INSIDE]
        yield Part(MEMBER, rest, rest)


def _reference(value: Any) -> Iterator[Part]:
    yield Part(MEMBER, (None,), [ref.__call__(value)])


def _context_variable(value: ContextVar[Any]) -> Iterator[Part]:
    yield Part(ATTRIBUTE, ("get()",), [value.get(None)])


def _referents(readers: list[_Reader], table: _Get | None) -> _Reader:
    """What the collector visits of objects that only C knows, besides what the readers give."""

    def read(value: Any) -> Iterator[Part]:
        seen: set[int] = set()
        if table is not None:
            with suppress(AttributeError):  # classes compiled to C may show a table that they do not have
                seen.add(id(table(value)))
        for part in (part for reader in readers for part in reader(value)):
            yield part
            seen.update(map(id, part.held))
        rest = [held for held in gc.get_referents(value) if id(held) not in seen and not isinstance(held, type)]
        yield Part(MEMBER, rest, rest)

    return read


def _array(value: Any) -> Iterator[Part]:
    if value.dtype.hasobject:
        held = value.ravel().tolist()
        keys = range(len(held)) if value.ndim < 2 else _indices(value.shape)
        yield Part(ITEM, keys, held)


def _indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for extent in shape:
        found = [(*index, at) for index in found for at in range(extent)]
    return found


ANNOTATIONS = ("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__")
"""Where a class keeps them: from Python 3.14 on as a function that makes them."""
_SILENT = frozenset((
    "__dict__", "__weakref__", "__doc__", "__module__", "__slots__", "__qualname__", *ANNOTATIONS,
    "__builtins__", "__spec__", "__loader__", "__cached__", "__file__", "__name__", "__package__", "__path__",
))


def _class(value: type) -> Iterator[Part]:
    if is_user_class(value):
        names = {k: v for k, v in _dict_of(value).items() if k not in _SILENT and type(v) not in _DESCRIPTORS}
        yield from _table(names)
        bases = type.__dict__["__bases__"].__get__(value)
        yield Part(ATTRIBUTE, [f"__bases__[{index}]" for index in range(len(bases))], bases)


def _type(value: Any) -> Iterator[Part]:
    yield Part(ATTRIBUTE, ("__class__",), [type(value)])


def _module(value: ModuleType) -> Iterator[Part]:
    names = names_of_module(value)
    if is_user_module(names):
        yield from _table({k: v for k, v in names.items() if k not in _SILENT})


_C_METHODS = (WrapperDescriptorType, MethodDescriptorType, BuiltinFunctionType)
_DESCRIPTORS = (MemberDescriptorType, GetSetDescriptorType)
_INSIDE = (FrameType, CodeType, CellType, dict)
_NOTHING: tuple[type, ...] = (int, float, complex, str, bytes, bytearray, memoryview, CodeType, TracebackType)
_NATIVE: dict[type, _Reader] = {
    object: lambda _: (), list: _sequence(list.__iter__), tuple: _sequence(tuple.__iter__),
    deque: _sequence(deque.__iter__), dict: _dict, MappingProxyType: _mapping, set: _members(set.__iter__),
    frozenset: _members(frozenset.__iter__), ref: _reference, FunctionType: _function, MethodType: _method,
    BuiltinFunctionType: _method, type([].__iadd__): _method, CellType: _cell, FrameType: _frame,
    GeneratorType: _generator, CoroutineType: _generator, AsyncGeneratorType: _generator,
    ContextVar: _context_variable,
}

_readers: Callable[[type], tuple[_Reader, ...]] = _Kinds(_find).__getitem__
holds: Callable[[type], bool] = _Kinds(lambda kind: bool(_readers(kind))).__getitem__
"""Whether objects of a type may hold others."""
frozen: Callable[[type], bool] = _Kinds(lambda kind: _readers(kind) == (_NATIVE[tuple],)).__getitem__
"""Whether objects of a type hold for ever what they hold: tuples, also those with named elements."""


def attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object by name: those of its ``__dict__`` and its slots."""
    return {key: held for part in children(value) if part.form == ATTRIBUTE for key, held in zip(part.keys, part.held)}
