"""Which function emits the code of a micro-op: they register themselves, and are loaded when something is compiled.

The emitters of a family, the micro-ops of ``instructions/<family>.py``, are in the module of the same name here. One
emitter serves a handler of its own, a superinstruction and a block function: ``h`` is one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from ..instructions.micro_op import Key, MicroOp
from .handler import Handler

__all__ = ["builds", "emit", "emit_inline", "emits", "has_emitter"]


class _Emitter(NamedTuple):
    body: Callable[[Any, Any], None]
    slow_path: bool


_Body = TypeVar("_Body", bound=Callable[..., None])
_EMITTERS: dict[type[Key], _Emitter] = {}
_BUILDERS: dict[type[Key], Callable[[Any, str, Any], None]] = {}


def emits(op: type[MicroOp], *, slow_path: bool = False) -> Callable[[_Body], _Body]:
    """Register ``emit(h, op)``; with a slow path it is called twice for a handler, at first for that."""

    def register(body: _Body) -> _Body:
        _EMITTERS[op] = _Emitter(body, slow_path)
        return body

    return register


def builds(key: type[Key]) -> Callable[[_Body], _Body]:
    """Register ``build(module, name, key)``, for a function that is made in another way."""

    def register(build: _Body) -> _Body:
        _BUILDERS[key] = build
        return build

    return register


def has_emitter(kind: type[Key]) -> bool:
    """Whether there is code for a kind; loads its family."""
    if kind not in _EMITTERS and kind not in _BUILDERS and kind.__module__.startswith(_INSTRUCTIONS):
        import_module(f"{__package__}.{kind.__module__[len(_INSTRUCTIONS) :]}")
    return kind in _EMITTERS or kind in _BUILDERS


_INSTRUCTIONS = Key.__module__.rpartition(".")[0] + "."


def emit(module: Any, name: str, key: Key) -> None:
    """Add the function of a key to an LLVM module."""
    kind = type(key)
    if not has_emitter(kind):
        raise LookupError(f"no emitter for {kind.__name__}")
    if kind in _BUILDERS:
        _BUILDERS[kind](module, name, key)
        return
    assert isinstance(key, MicroOp)
    body, slow_path = _EMITTERS[kind]
    slow = None
    if slow_path:  # a function beside the handler, so that it costs the handler nothing
        h = Handler(module, f"{name}.slow", key.codes)
        h.function.linkage = "internal"
        h.function.attributes.add("noinline")
        body(h, key)
        slow = h.function
    h = Handler(module, name, key.codes)
    h.slow_path = slow
    body(h, key)


def emit_inline(h: Handler, op: MicroOp) -> None:
    """Add the code of a micro-op to a function under construction."""
    if not has_emitter(type(op)):
        raise LookupError(f"no emitter for {type(op).__name__}")
    _EMITTERS[type(op)].body(h, op)
