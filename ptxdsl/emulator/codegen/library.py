"""The library of compiled handlers: one machine-code function for each micro-op, kept in memory and on disk.

A micro-op says everything that its code depends on (instruction, operand classes, access pattern, masked or not), so
handlers are shared by all kernels. Those that a kernel is the first to need are compiled together, as one LLVM
module, and the object file is kept: the next process links it in a millisecond instead of compiling it in a second.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterable
from typing import Any

from ...config import current
from ...errors import EmulationError
from ..instructions.micro_op import Key
from .host import machine, this_host
from .object_files import link
from .shutdown import at_work
from .storage import Storage, digest

__all__ = ["Library", "library"]

Emitter = Callable[[Any, str, Key], None]


class Library:
    """Compiled functions by key. ``emit(module, name, key)`` adds the LLVM function of a key to a module."""

    def __init__(self, emit: Emitter, storage: Storage | None) -> None:
        self._emit = emit
        self.storage = storage
        self._lock = threading.RLock()
        self._handlers: dict[Key, int] = {}
        self._linked: list[Any] = []
        self._numbers = itertools.count()
        self._loaded: set[str] = set()
        self._symbols: dict[str, int] = {}

    def need(self, keys: Iterable[Key]) -> dict[Key, int]:
        """The handlers by key, with these among them: from memory, from disk, or compiled now."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._handlers]
        if missing:
            with self._lock:
                self._provide(missing)
        return self._handlers

    def _provide(self, keys: list[Key]) -> None:
        names = {key: f"h{digest(repr(key).encode())}" for key in keys}
        if self.storage is not None:
            for name in names.values():
                if name not in self._symbols:
                    self._load(self.storage, self.storage.object_file(name))
        fresh = [key for key in keys if names[key] not in self._symbols]
        if fresh:
            self._compile({names[key]: key for key in fresh})
        for key in keys:
            self._handlers[key] = self._symbols[names[key]]

    def _compile(self, keys: dict[str, Key]) -> None:
        from llvmlite import ir

        module = ir.Module()
        for name, key in keys.items():
            self._try_emit(module, name, key)
        image = self._image(module, handlers=True)
        self._link(image, list(keys))
        if self.storage is not None:
            self.storage.store(image, list(keys))

    def _load(self, storage: Storage, object_file: str | None) -> None:
        """Link an object file from disk, at most once."""
        if object_file is None or object_file in self._loaded:
            return
        self._loaded.add(object_file)
        found = storage.load(object_file)
        if found is not None:
            with contextlib.suppress(RuntimeError):  # it does not have what the index says: compile that again
                self._link(*found)

    def _try_emit(self, module: Any, name: str, key: Key) -> None:
        try:
            self._emit(module, name, key)
        except Exception as error:
            raise EmulationError(f"a bug in the emulator: no code for {key}: {error!r}") from error

    def _image(self, module: Any, handlers: bool = False) -> bytes:
        """The object file of an LLVM module."""
        at_work.protect(self._linked_handler)
        text = str(module)
        with at_work:
            return _object_file(text, handlers)

    def _linked_handler(self, module: Any, name: str) -> int:
        return self.compile_once(module, [name])[0]

    def compile_once(self, module: Any, names: list[str]) -> list[int]:
        """The addresses of a module's functions, compiled for this process only."""
        image = self._image(module)
        with self._lock:
            self._link(image, names)
            return [self._symbols.pop(name) for name in names]

    def kept(self, key: str, build: Callable[[Any, str], None]) -> int:
        """The address of the function that ``build(module, name)`` makes for a key: from disk, or compiled now."""
        name = f"w{digest(key.encode())}"
        with self._lock:
            if name not in self._symbols and self.storage is not None:
                self._load(self.storage, self.storage.object_file(name))
            if name in self._symbols:
                return self._symbols[name]
        from llvmlite import ir

        module = ir.Module()
        build(module, name)
        image = self._image(module)  # takes long, and others need handlers meanwhile
        with self._lock:
            self._link(image, [name])
            if self.storage is not None:
                self.storage.store(image, [name])
            return self._symbols[name]

    def _link(self, image: bytes, names: list[str]) -> None:
        linked = link(image, names)
        if linked is not None:
            self._symbols.update(linked)
            return
        from llvmlite.binding import JITLibraryBuilder

        unit = JITLibraryBuilder().add_object_img(image).add_current_process()
        for name in names:
            unit.export_symbol(name)
        with at_work:
            tracker = unit.link(_linker(), f"batch{next(self._numbers)}")
            found = {name: tracker[name] for name in names}
        self._linked.append(tracker)
        self._symbols.update(found)


@functools.cache
def _initialize() -> None:
    """Once a process, before LLVM compiles or links."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


@functools.cache
def _linker() -> Any:
    """LLVM's linker."""
    from llvmlite import binding

    _initialize()
    return binding.create_lljit_compiler(machine(""))


def _object_file(text: str, handlers: bool) -> bytes:
    """The machine code of a module; handlers have no loops, and little that the longer list of passes would find."""
    from llvmlite import binding

    _initialize()
    target = machine(",-vzeroupper")
    parsed = binding.parse_assembly(text)
    parsed.verify()
    builder = binding.create_pass_builder(target, binding.create_pipeline_tuning_options(speed_level=2))
    if handlers:
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    else:
        passes = builder.getModulePassManager()
    passes.run(parsed, builder)
    image: bytes = target.emit_object(parsed)
    return image


def _emit(module: Any, name: str, key: Key) -> None:
    from .registry import emit  # not loaded where all handlers are on disk

    emit(module, name, key)


@functools.cache
def library() -> Library:
    """The library of this process."""
    folder = current().cache_dir
    return Library(_emit, Storage(folder / "handlers", this_host()) if folder is not None else None)
