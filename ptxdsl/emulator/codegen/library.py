"""The library of compiled handlers: one machine-code function for each micro-op, kept in memory and on disk.

A micro-op says everything that its code depends on (instruction, operand classes, access pattern, masked or not), so
handlers are shared by all kernels. Those that a kernel is the first to need are compiled together, as one LLVM
module, and the object file is kept: the next process links it in a millisecond instead of compiling it in a second.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ... import locks
from ...collector import paused
from ...config import current
from ...errors import EmulationError
from ...machine_code.compiler import Effort, link_with_llvm, object_file, object_files
from ...machine_code.host import cores, described, this_host
from ...machine_code.object_files import link
from ...machine_code.once import once
from ...machine_code.shutdown import at_work
from ..instructions.micro_op import Key
from ..instructions.scheduler import EVERYWHERE
from .code import Code
from .storage import Storage, digest
from .unoptimised import Module, Unoptimised, write_address

__all__ = ["Library", "library", "name_of_kept", "symbol"]

Emitter = Callable[[Any, str, Key], None]
LOWEST, HIGHEST = 1 << 32, 1 << 48
"""What numbers in a text may be addresses."""
_LARGE = re.compile(r"\b\d{10,15}\b")
FEW = 10
"""Handlers of which a module has at least so many: each takes a millisecond or two, and a module several."""


def symbol(key: Key) -> str:
    """The name of a handler."""
    return f"h{digest(repr(key).encode())}"


def name_of_kept(key: str) -> str:
    """The name of what :meth:`Library.kept` makes for a key."""
    return f"w{digest(key.encode())}"


class Library:
    """Compiled functions by key. ``emit(module, name, key)`` adds the LLVM function of a key to a module."""

    def __init__(self, emit: Emitter, storage: Storage | None) -> None:
        self._emit = emit
        self.storage = storage
        self._lock = locks.rlock()
        self._changed = threading.Condition(self._lock)
        self._compiling: set[str] = set()
        """Handlers that some thread compiles."""
        self._handlers: dict[Key, int] = {}
        self._loaded: set[str] = set()
        self._symbols: dict[str, int] = {}
        self.unoptimised = Unoptimised()

    def forget_compiling(self) -> None:
        """What other threads were to compile, this one has to."""
        self._compiling.clear()

    def load_beside(self) -> None:
        """Make LLVM ready in another thread: for who needs it soon, and has other work until then."""
        with contextlib.suppress(RuntimeError):  # no thread can be had: it is loaded when it is needed
            threading.Thread(target=self._load_llvm, daemon=True).start()

    def _load_llvm(self) -> None:
        with at_work, contextlib.suppress(Exception):  # who needs it is told what is wrong with it
            described()
            self.need(EVERYWHERE)

    def need(self, keys: Iterable[Key], quickly: bool = False) -> dict[Key, int]:
        """The handlers by key, with these among them: from memory, from disk, or compiled now.

        ``quickly``: they need not be optimised where they are many, for who asks has them replaced later.
        """
        missing = [key for key in dict.fromkeys(keys) if key not in self._handlers]
        if missing:
            self._provide(missing, quickly)
        return self._handlers

    def _provide(self, keys: list[Key], quickly: bool) -> None:
        names = {symbol(key): key for key in keys}
        while any(name not in self._symbols for name in names):
            fresh = self._begin(names)
            if fresh:
                try:
                    self._compile(fresh, quickly and len(fresh) > FEW)
                finally:
                    with self._changed:
                        self._compiling -= fresh.keys()
                        self._changed.notify_all()
        for name, key in names.items():
            self._handlers[key] = self._symbols[name]

    def _begin(self, names: dict[str, Key]) -> dict[str, Key]:
        """Those of some handlers that this thread has to compile; none where it had to wait for another thread."""
        with self._changed:
            if self.storage is not None:
                for name in names:
                    if name not in self._symbols:
                        self._load(self.storage, self.storage.object_file(name))
            missing = {name: key for name, key in names.items() if name not in self._symbols}
            fresh = {name: key for name, key in missing.items() if name not in self._compiling}
            if missing and not fresh:
                self._changed.wait()
            self._compiling |= fresh.keys()
            return fresh

    def _compile(self, keys: dict[str, Key], quickly: bool = False) -> None:
        """Compile handlers. Many become several modules: some are compiled while the others are made."""
        names, helpers = list(keys), 0 if at_work.closing else cores() - 1
        count = len(names) // FEW if helpers else 1
        parts = [names[n::count] for n in range(count)] if count > 1 else [names]
        at_work.protect(self._linked_handler)

        def build(part: list[str], module: Any) -> None:
            for name in part:
                self._try_emit(module, name, keys[name])

        made = []

        def text(part: list[str]) -> str:
            made.append(_text(partial(build, part)))
            return made[-1]

        texts = [partial(text, part) for part in parts]
        effort = Effort.LEAST if quickly else Effort.HANDLERS
        for number, image in enumerate(object_files(texts, helpers, effort)):
            with self._lock:
                if quickly:
                    self._link(image, parts[number])
                    self.unoptimised.add(Module(made[number], {name: keys[name] for name in parts[number]}))
                else:
                    self._link_and_store(image, parts[number])

    def note_user(self, code: Code, handlers: dict[int, Key]) -> None:
        """Note code that has handlers at these addresses which were not optimised when it was made."""
        with self._lock:
            self.unoptimised.note_user(code, handlers)
            for place, key in handlers.items():
                if key not in self.unoptimised.keys:
                    write_address(place, self._handlers[key])

    def when_optimised(self, call: Callable[[], object]) -> None:
        """Call this once all handlers are optimised and on disk."""
        with self._lock:
            self.unoptimised.after(call)

    def optimise(self) -> None:
        """Compile again what was compiled quickly, for all that has it and for other processes."""
        while True:
            with self._lock:
                module = self.unoptimised.next()
            if module is None:
                return
            try:
                with at_work:
                    image = object_file(module.text, Effort.HANDLERS)
            except BaseException:
                self.unoptimised.keys -= set(module.handlers.values())
                raise
            with self._lock:
                names = list(module.handlers)
                before = [self._symbols[name] for name in names]
                self._link_and_store(image, names)
                better = {key: (self._symbols[name], old) for (name, key), old in zip(module.handlers.items(), before)}
                self._handlers.update({key: now for key, (now, _) in better.items()})
                self.unoptimised.replace(better)

    def _link_and_store(self, image: bytes, names: list[str]) -> None:
        self._link(image, names)
        if self.storage is not None:
            self.storage.store(image, names)

    def _load(self, storage: Storage, object_file: str | None) -> None:
        """Link an object file from disk, at most once."""
        if object_file is None or object_file in self._loaded:
            return
        self._loaded.add(object_file)
        image = storage.load(object_file)
        linked = link(image, None, self._symbols) if image is not None else None
        if linked is not None:
            self._symbols.update(linked)
        elif image is not None:
            with contextlib.suppress(RuntimeError):  # it does not have what the index says: compile that again
                self._link(image, storage.names_in(object_file))

    def recalled(self, names: Iterable[str], object_files: Iterable[str]) -> list[int] | None:
        """The addresses of functions that are in these object files on disk; None where not all are there any more."""
        with self._lock:
            if self.storage is not None:
                for object_file in object_files:
                    self._load(self.storage, object_file)
            found = [self._symbols.get(name, 0) for name in names]
        return found if all(found) else None

    def _try_emit(self, module: Any, name: str, key: Key) -> None:
        try:
            self._emit(module, name, key)
        except Exception as error:
            raise EmulationError(f"a bug in the emulator: no code for {key}: {error!r}") from error

    def _image(self, build: Callable[[Any], object], short: bool = False) -> bytes:
        """The object file of the LLVM module that ``build(module)`` fills."""
        at_work.protect(self._linked_handler)
        text = _text(build)
        with at_work:
            return object_file(text, Effort.LEAST if short else Effort.MOST)

    def _linked_handler(self, build: Callable[[Any], object], name: str) -> int:
        return self.compile_once(build, [name])[0]

    def compile_once(self, build: Callable[[Any], object], names: list[str]) -> list[int]:
        """The addresses of the short functions that ``build(module)`` adds, compiled for this process only."""
        image = self._image(build, short=True)
        with self._lock:
            self._link(image, names)
            return [self._symbols.pop(name) for name in names]

    def kept(self, key: str, build: Callable[[Any, str], None]) -> int:
        """The address of the function that ``build(module, name)`` makes for a key: from disk, or compiled now."""
        name = name_of_kept(key)
        with self._lock:
            if name not in self._symbols and self.storage is not None:
                self._load(self.storage, self.storage.object_file(name))
            if name in self._symbols:
                return self._symbols[name]
        image = self._image(lambda module: build(module, name))  # takes long, and others need handlers meanwhile
        with self._lock:
            self._link_and_store(image, [name])
            return self._symbols[name]

    def kept_by_text(self, build: Callable[[Any], object], names: list[str]) -> list[int]:
        """The addresses of the functions that ``build(module)`` adds: from disk where that was made of the same text.

        They may go on to handlers that are here, by their :func:`symbol`. A text with an address of this process is of
        no use to others, and not kept.
        """
        text = _text(build)
        lasting = not any(LOWEST <= int(number) < HIGHEST for number in _LARGE.findall(text))
        own = {name: f"s{digest(text, name)}" for name in names}
        for name, other in own.items():
            text = text.replace(f'@"{name}"', f'@"{other}"')
        kept = list(own.values())
        with self._lock:
            if self.storage is not None and kept[0] not in self._symbols:
                self._load(self.storage, self.storage.object_file(kept[0]))
        if not all(name in self._symbols for name in kept):
            at_work.protect(self._linked_handler)
            with at_work:
                image = object_file(text)
            with self._lock:
                self._link(image, kept)
                if self.storage is not None and lasting:
                    self.storage.store(image, kept)
        return [self._symbols[name] for name in kept]

    def _link(self, image: bytes, names: list[str]) -> None:
        linked = link(image, names, self._symbols)
        if linked is not None:
            self._symbols.update(linked)
            return
        self._symbols.update(link_with_llvm(image, names, self._symbols))


def _text(build: Callable[[Any], object]) -> str:
    """The text of the LLVM module that ``build(module)`` fills.

    For a large kernel that is a million objects in cycles. The collector would stop all threads for tens of
    milliseconds, again and again while they are made, and once more to find them: so the cycles are taken apart here.
    """
    from llvmlite import ir

    module = ir.Module()
    with paused():
        try:
            build(module)
            return str(module)
        finally:
            for function in module.functions:
                for block in function.blocks:
                    for instruction in block.instructions:
                        vars(instruction).clear()
                    block.instructions.clear()
                function.blocks.clear()


def _emit(module: Any, name: str, key: Key) -> None:
    from .registry import emit  # not loaded where all handlers are on disk

    emit(module, name, key)


@once
def library() -> Library:
    """The library of this process."""
    folder = current().cache_dir
    storage = Storage(folder / "handlers", this_host()) if folder is not None else None
    made = Library(_emit, storage)
    if storage is None or storage.empty:  # so there is a kernel to compile, after much that is done without LLVM
        made.load_beside()
    return made


def _forked() -> None:
    """The child of a fork has none of the threads that were compiling."""
    for made in library.made:
        made.forget_compiling()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
