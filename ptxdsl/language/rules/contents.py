"""What every object holds that the user's frames can reach when a block opens, and what of it has changed since.

Names of frames, what functions capture and load, attributes, elements, the places of iterators, bytes of buffers: each
object is noted once with the objects it holds, and compared by identity. Nothing of the user's runs for it.

Left out is what Python and its library change by themselves: caches (`functools.lru_cache`, `cached_property`, of enums
and abstract classes), what is known of warnings; and what only the host reads: files.
"""

from __future__ import annotations

import enum
import functools
import gc
import io
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from functools import cached_property
from operator import is_not
from types import FrameType, FunctionType, GeneratorType, MappingProxyType, ModuleType
from typing import Any, NamedTuple

from ...types import ScalarType
from ..introspection.reachable import ATTRIBUTE, GLOBAL, ITEM, MEMBER, NAME, Node, Part, children, holds
from ..introspection.user_code import globals_of, is_user_class, is_user_module, names_of_module
from .python_protocol import RunTime

__all__ = ["CONTENT", "LENGTH", "WHOLE", "Change", "Contents", "written"]

CONTENT, WHOLE, LENGTH = "content", "whole", "length"
"""What is no object: the place of an iterator, the bytes of a buffer; all elements of a container; their number."""


class Change(NamedTuple):
    """An object that holds something else than before. ``verb`` says how; ``old`` and ``new`` are None where absent."""

    node: Node
    form: str
    key: Any
    verb: str
    old: Any
    new: Any


class Contents:
    """The objects reached from named variables, each with what it held."""

    def __init__(
        self, roots: Iterable[tuple[int, str, Any]], running: Iterable[FrameType],
        read: Sequence[tuple[int, str, Any]] = (),
    ) -> None:
        """``roots`` are the number of the frame, the name and the value of each variable.

        ``read`` are the globals among them that their frames only read.
        """
        self.read = read
        self.roots: dict[int, list[tuple[int, str]]] = {}
        self.nodes: list[tuple[Node, Any]] = []
        self.running = set(map(id, running))
        waiting: deque[tuple[Node | None, str, Any, Any]] = deque()
        for frame, name, value in roots:
            if _matters(type(value)) and _is_users(value):
                self.roots.setdefault(id(value), []).append((frame, name))
                waiting.append((None, NAME, name, value))
        seen: set[int] = set()
        while waiting:
            parent, form, key, value = waiting.popleft()
            if id(value) in seen:
                continue
            seen.add(id(value))
            parts = self._parts(value)
            node = Node(value, parts, parent, form, key)
            self.nodes.append((node, self._content(value)))
            for form, inner, child in _mattering(parts):
                if _is_users(child):
                    waiting.append((node, form, inner, child))

    def _parts(self, value: Any) -> list[Part]:
        if isinstance(value, enum.EnumMeta):
            return [Part(ATTRIBUTE, list(value.__members__), list(value.__members__.values()))]
        if isinstance(value, functools._lru_cache_wrapper) or type(value).__module__ == "_abc":
            return []
        if type(value) is GeneratorType and (value.gi_running or id(value.gi_frame) in self.running):
            return []
        if type(value) in (MappingProxyType, memoryview):
            return [Part(ATTRIBUTE, ("__wrapped__",), gc.get_referents(value) or (value.obj,))]
        parts = children(value)
        if _is_array(type(value)) and value.base is not None:
            parts.append(Part(ATTRIBUTE, ("base",), (value.base,)))
        if type(value).__module__ == "_thread" and hasattr(value, "__dict__"):
            parts.append(Part(ATTRIBUTE, list(value.__dict__), list(value.__dict__.values())))
        if type(value) is FunctionType and is_user_module(value.__globals__):
            scope = value.__globals__
            names = [name for name in globals_of(value.__code__) if name in scope]
            parts.append(Part(GLOBAL, names, [scope[name] for name in names]))
        return parts

    def _content(self, value: Any) -> Any:
        read = _content_of(type(value))
        if read is None or (type(value) is GeneratorType and id(value.gi_frame) in self.running):
            return None
        return read(value)

    def changes(self) -> Iterator[Change]:
        """What has changed, the nearest to the variables first."""
        for node, content in self.nodes:
            advanced = content is not None and self._content(node.value) != content
            iterates = hasattr(type(node.value), "__next__")
            if advanced:
                yield Change(node, CONTENT, None, "advances" if iterates else "changes", None, None)
                if iterates:
                    continue
            now = self._parts(node.value)
            if len(now) != len(node.parts) or any(map(_differs, node.parts, now)):
                yield from _changes(node, now)

    def leads(self, change: Change) -> dict[int, tuple[Any, list[tuple[str, Any, int]]]]:
        """The objects from which the place of a change is reached, by id: each with what of it leads there.

        What leads there is a form, a key, and the object by its id: -1 stands for the place.
        """
        held_by = self._held_by
        target = change.node.value
        found: dict[int, tuple[Any, list[tuple[str, Any, int]]]] = {}
        found[id(target)] = target, [(change.form, change.key, -1)]
        waiting = deque([id(target)])
        while waiting:
            at = waiting.popleft()
            for holder, form, key in held_by.get(at, ()):
                if id(holder) not in found:
                    found[id(holder)] = holder, []
                    waiting.append(id(holder))
                found[id(holder)][1].append((form, key, at))
        return found

    @cached_property
    def _held_by(self) -> dict[int, list[tuple[Any, str, Any]]]:
        """By the id of an object, what holds it, and how."""
        found: dict[int, list[tuple[Any, str, Any]]] = {}
        for node, _ in self.nodes:
            for form, key, child in _mattering(node.parts):
                found.setdefault(id(child), []).append((node.value, form, key))
        return found

    def functions(self) -> Iterator[FunctionType]:
        """The functions among the objects."""
        return (node.value for node, _ in self.nodes if type(node.value) is FunctionType)


def _mattering(parts: list[Part]) -> Iterator[tuple[str, Any, Any]]:
    """What is held that may hold more: form, key, object. Most containers hold one kind."""
    for part in parts:
        if any(map(_matters, set(map(type, part.held)))):
            for key, child in zip(part.keys, part.held):
                if _matters(type(child)):
                    yield part.form, key, child


def _differs(old: Part, new: Part) -> bool:
    if old.form != new.form or len(old.held) != len(new.held) or any(map(is_not, old.held, new.held)):
        return True
    return old.form != ITEM and old.form != MEMBER and list(old.keys) != list(new.keys)


def _changes(node: Node, now: list[Part]) -> Iterator[Change]:
    if type(node.value) in (list, deque):
        yield from _resized(node, *([*parts[0].held] if parts else [] for parts in (node.parts, now)))
        return
    before, after = _items(node.parts), _items(now)
    for (form, key), (old, shown) in before.items():
        if (form, key) not in after:
            if not _ignored(node, shown):
                yield Change(node, form, shown, "shrinks" if form != ATTRIBUTE else "is deleted", old, None)
        elif after[form, key][0] is not old:
            yield Change(node, form, shown, "is replaced", old, after[form, key][0])
    for (form, key), (new, shown) in after.items():
        if (form, key) not in before and not _ignored(node, shown):
            yield Change(node, form, shown, "grows" if form != ATTRIBUTE else "is set", None, new)
    if before.keys() == after.keys() and list(before) != list(after) and not isinstance(node.value, (set, frozenset)):
        yield Change(node, WHOLE, None, "is reordered", None, None)


def _resized(node: Node, old: Any, new: Any) -> Iterator[Change]:
    """What has changed in a sequence: its elements, or where its length is another, all from one on."""
    common = min(len(old), len(new))
    differing = [key for key in range(common) if old[key] is not new[key]]
    if len(old) == len(new):
        for key in differing:
            yield Change(node, ITEM, key, "is replaced", old[key], new[key])
    else:
        verb = "grows" if len(old) < len(new) else "shrinks"
        longer = [*new[common:], *old[common:]]
        first = differing[0] if differing else common
        yield Change(node, WHOLE if differing else ITEM, first, verb, None, longer)


def _items(parts: list[Part]) -> dict[tuple[str, Any], tuple[Any, Any]]:
    """What is held, by form and key: a key that is no constant by its identity; the key itself is kept beside it."""
    found: dict[tuple[str, Any], tuple[Any, Any]] = {}
    for part in parts:
        for key, held in zip(part.keys, part.held):
            plain = type(key) in (int, str, float, bool, bytes, type(None))
            found[part.form, (type(key), key) if plain else id(key)] = held, key
    return found


def _ignored(node: Node, key: Any) -> bool:
    if not isinstance(key, str):
        return False
    if isinstance(node.value, ModuleType):
        return key.startswith("__")
    found = next((vars(kind)[key] for kind in type(node.value).__mro__ if key in vars(kind)), None)
    return isinstance(found, cached_property)


def written(node: Node, form: str, key: Any) -> str:
    """How what an object holds at a key is written; the object itself where no child of it is meant."""
    return node.path() if form in (CONTENT, WHOLE, LENGTH) else node.path(form, key)


# ---------------------------------------------------------------------------------------------------------------------
# What is no object

_LARGE = 1 << 16


def _bytes(value: Any) -> Any:
    try:
        data = memoryview(value)
    except (TypeError, ValueError, BufferError):
        return None
    raw = data.tobytes()
    shape = data.shape, data.format
    return shape, raw if len(raw) <= _LARGE else hash(raw)


def _array(value: Any) -> Any:
    if value.dtype.hasobject:
        return None
    raw = value.tobytes()
    return value.shape, value.dtype.str, raw if len(raw) <= _LARGE else hash(raw)


def _generator(value: Any) -> Any:
    return -2 if value.gi_frame is None else value.gi_frame.f_lasti


def _state(value: Any) -> Any:
    try:
        return value.getstate()
    except NotImplementedError:
        return None


def _stream(value: Any) -> Any:
    return None if value.closed else (value.tell(), value.getvalue())


def _numpy_state(value: Any) -> Any:
    state = getattr(value, "get_state", None)
    return repr(state() if state is not None else getattr(value, "bit_generator", value).state)


def _iterator(value: Any) -> Any:
    """How far an iterator of Python's own has come."""
    hint = getattr(type(value), "__length_hint__", None)
    if hint is not None:
        return hint(value)
    if type(value).__name__ in ("count", "repeat"):
        return repr(value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(_numbers(value.__reduce__()))
    except (TypeError, AttributeError):
        return None


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int):
        yield value
    elif isinstance(value, list):
        yield len(value)


def _is_array(kind: type) -> bool:
    return ("numpy", "ndarray") in [(base.__module__, base.__name__) for base in kind.__mro__]


class _Content(dict[type, Any]):
    """What reads the content of a type's objects; None for those that have none."""

    def __missing__(self, kind: type) -> Callable[[Any], Any] | None:
        found = self[kind] = _reader(kind)
        return found


def _reader(kind: type) -> Callable[[Any], Any] | None:
    module, name = kind.__module__, kind.__name__
    if kind is GeneratorType:
        return _generator
    bases = {(base.__module__, base.__name__) for base in kind.__mro__}
    if issubclass(kind, bytearray) or ("array", "array") in bases or ("_ctypes", "_CData") in bases:
        return _bytes
    if ("_random", "Random") in bases:
        return _state
    if issubclass(kind, (io.StringIO, io.BytesIO)):
        return _stream
    if kind is ContextVar:
        return lambda value: id(value.get(None))
    if kind is memoryview:
        return lambda value: None if value.readonly else value.tobytes()
    if kind is FunctionType:
        return lambda value: id(value.__code__)
    if _is_array(kind):
        return _array
    if module.startswith("numpy.random"):
        return _numpy_state
    if module == "torch" and name == "Tensor":
        return lambda value: value._version
    if module in ("builtins", "itertools", "collections") and hasattr(kind, "__next__"):
        return _iterator
    return None


_content_of = _Content().__getitem__


class _Matters(dict[type, bool]):
    """Whether objects of a type may hold others, or have a content."""

    def __missing__(self, kind: type) -> bool:
        found = self[kind] = not issubclass(kind, (RunTime, ScalarType)) and (
            bool(holds(kind)) or _content_of(kind) is not None or kind.__module__ == "_thread"
        )
        return found


_matters = _Matters().__getitem__


def _is_users(value: Any) -> bool:
    """Whether a class or module is the user's; all else is."""
    if isinstance(value, type):
        return is_user_class(value)
    return not isinstance(value, ModuleType) or is_user_module(names_of_module(value))
