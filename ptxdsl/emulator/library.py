"""The library of compiled handlers: one machine-code function for each instruction shape, kept in memory and on disk.

A shape says everything that a handler's code depends on (instruction, operand classes, access pattern, masked or not),
so handlers are shared by all kernels. Those that a kernel is the first to need are compiled together, as one LLVM
module, and the object file is kept: the next process links it in a millisecond instead of compiling it in a second.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..config import current
from ..errors import EmulationError

__all__ = ["Library", "Shape", "library"]

Shape = tuple[Any, ...]
"""The key of a handler: the kind, then what that kind's emitter takes; nothing but strings, numbers and tuples."""

Emitter = Callable[[Any, str, Shape], None]


@functools.cache
def _fingerprint() -> str:
    """What the code of every handler depends on besides its shape: LLVM, this CPU and our own emitters."""
    import llvmlite
    from llvmlite import binding

    digest = hashlib.sha256()
    digest.update(repr((llvmlite.__version__, binding.llvm_version_info, binding.get_host_cpu_name())).encode())
    digest.update(binding.get_host_cpu_features().flatten().encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Library:
    """Handlers by shape. ``emit(module, name, shape)`` adds the LLVM function of a shape to a module."""

    def __init__(self, emit: Emitter, folder: Path | None) -> None:
        from llvmlite import binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        features = binding.get_host_cpu_features().flatten()
        self._machine = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(), features=f"{features},-vzeroupper", opt=2, jit=True
        )
        self._jit = binding.create_lljit_compiler(
            binding.Target.from_default_triple().create_target_machine(
                cpu=binding.get_host_cpu_name(), features=features, opt=2, jit=True
            )
        )
        self._emit = emit
        self._folder = folder
        self._lock = threading.RLock()
        self._handlers: dict[Shape, int] = {}
        self._linked: list[Any] = []
        self._index: dict[str, str] = self._read_index()
        self._loaded: set[str] = set()
        self._symbols: dict[str, int] = {}

    def address(self, shape: Shape) -> int:
        """The address of a handler that is there."""
        return self._handlers[shape]

    def need(self, shapes: Iterable[Shape]) -> dict[Shape, int]:
        """The handlers by shape, with these among them: from memory, from disk, or compiled now."""
        missing = [shape for shape in dict.fromkeys(shapes) if shape not in self._handlers]
        if missing:
            with self._lock:
                self._provide(missing)
        return self._handlers

    def _provide(self, shapes: list[Shape]) -> None:
        names = {shape: f"h{hashlib.sha256(repr(shape).encode()).hexdigest()[:24]}" for shape in shapes}
        for name in names.values():
            if name not in self._symbols and name in self._index:
                self._load(self._index[name])
        fresh = [shape for shape in shapes if names[shape] not in self._symbols]
        if fresh:
            self._compile({names[shape]: shape for shape in fresh})
        for shape in shapes:
            self._handlers[shape] = self._symbols[names[shape]]

    def _compile(self, shapes: dict[str, Shape]) -> None:
        from llvmlite import ir

        module = ir.Module()
        for name, shape in shapes.items():
            self._try_emit(module, name, shape)
        image = self._image(module)
        self._link(image, list(shapes))
        self._store(image, list(shapes))

    def _try_emit(self, module: Any, name: str, shape: Shape) -> None:
        try:
            self._emit(module, name, shape)
        except Exception as error:
            raise EmulationError(f"a bug in the emulator: no code for {shape}: {error!r}") from error

    def _image(self, module: Any) -> bytes:
        """The object file of an LLVM module."""
        from llvmlite import binding

        parsed = binding.parse_assembly(str(module))
        parsed.verify()
        builder = binding.create_pass_builder(
            self._machine,
            binding.create_pipeline_tuning_options(speed_level=2),
        )
        builder.getModulePassManager().run(parsed, builder)
        image: bytes = self._machine.emit_object(parsed)
        return image

    def compile_once(self, module: Any, names: list[str]) -> list[int]:
        """The addresses of a module's functions, compiled for this process only."""
        image = self._image(module)
        with self._lock:
            self._link(image, names)
            return [self._symbols.pop(name) for name in names]

    def _link(self, image: bytes, names: list[str]) -> None:
        from llvmlite.binding import JITLibraryBuilder

        unit = JITLibraryBuilder().add_object_img(image).add_current_process()
        for name in names:
            unit.export_symbol(name)
        tracker = unit.link(self._jit, f"batch{len(self._linked)}")
        self._linked.append(tracker)
        for name in names:
            self._symbols[name] = tracker[name]

    # The disk: one object file a batch, and an index from handler to batch. A lost update of the index, or a file that
    # is gone, costs a compilation and nothing else.

    def _read_index(self) -> dict[str, str]:
        if self._folder is None:
            return {}
        try:
            index: dict[str, str] = json.loads((self._folder / "index.json").read_text())
            return index
        except (OSError, ValueError):
            return {}

    def _load(self, batch: str) -> None:
        if self._folder is None or batch in self._loaded:
            return
        self._loaded.add(batch)
        try:
            image = (self._folder / f"{batch}.o").read_bytes()
        except OSError:
            return
        if hashlib.sha256(image).hexdigest()[:24] == batch:
            self._link(image, [name for name, home in self._index.items() if home == batch])

    def _store(self, image: bytes, names: list[str]) -> None:
        if self._folder is None:
            return
        batch = hashlib.sha256(image).hexdigest()[:24]
        self._loaded.add(batch)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _write(self._folder / f"{batch}.o", image)
            self._index = {**self._read_index(), **self._index, **dict.fromkeys(names, batch)}
            _write(self._folder / "index.json", json.dumps(self._index).encode())
        except OSError:
            self._folder = None  # a cache that cannot be written is no reason to fail: handlers stay in memory


def _write(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(name, path)


def _emit(module: Any, name: str, shape: Shape) -> None:
    from .handlers import emit  # not loaded where all handlers are on disk

    emit(module, name, shape)


@functools.cache
def library() -> Library:
    """The library of this process."""
    cache = current().cache_dir
    return Library(_emit, cache / "handlers" / _fingerprint() if cache is not None else None)
