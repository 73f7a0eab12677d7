"""LLVM, from the text of a module to an object file.

llvmlite lets one thread at a time into LLVM, so that a kernel's first launch would wait while the second tier of
another is compiled, for seconds. LLVM itself wants one thread at a time in a context only: each module has its own
here, and the two calls that take long go past llvmlite's lock.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any

from .host import machine
from .shutdown import at_work

__all__ = ["initialize", "object_file", "object_files"]


@functools.cache
def initialize() -> None:
    """Once a process, before LLVM compiles or links."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def object_files(texts: Iterable[Callable[[], str]]) -> list[bytes]:
    """The machine code of modules of handlers: each is compiled while the texts of the others are made."""
    *others, last = texts
    begun = [_Compilation(text()) for text in others]
    text = last()
    with at_work:
        image = object_file(text, handlers=True)
    return [*(compilation.image() for compilation in begun), image]


class _Compilation(threading.Thread):
    """A module of handlers is compiled; where no thread can be had, by the one that asks for it."""

    def __init__(self, text: str) -> None:
        super().__init__(daemon=True)
        self._text, self._image = text, b""
        self._error: BaseException | None = None
        try:
            self.start()
        except RuntimeError:
            self.run()

    def run(self) -> None:
        try:
            with at_work:
                self._image = object_file(self._text, handlers=True)
        except BaseException as error:  # noqa: BLE001 - who waits for it gets it
            self._error = error

    def image(self) -> bytes:
        if self.is_alive():
            self.join()
        if self._error is not None:
            raise self._error
        return self._image


def object_file(text: str, handlers: bool = False) -> bytes:
    """The machine code of a module; handlers have few loops, and little that the longer list of passes would find."""
    from llvmlite import binding

    initialize()
    target = machine(",-vzeroupper")
    parsed = binding.parse_assembly(text, binding.create_context())
    parsed.verify()
    builder = binding.create_pass_builder(target, binding.create_pipeline_tuning_options(speed_level=2))
    if handlers:
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    else:
        passes = builder.getModulePassManager()
    _without_lock("LLVMPY_RunNewModulePassManager")(passes, parsed, builder)
    return _emitted(target, parsed)


def _emitted(target: Any, module: Any) -> bytes:
    """As ``target.emit_object(module)``."""
    from llvmlite.binding import ffi

    with ffi.OutputString() as error:
        buffer = _without_lock("LLVMPY_TargetMachineEmitToMemory")(target, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@functools.cache
def _without_lock(name: str) -> Any:
    """A function of llvmlite's library, that several threads may be in."""
    from llvmlite.binding import ffi

    locked = getattr(ffi.lib, name)
    function = getattr(ctypes.CDLL(None, handle=ffi.lib._handle), name)
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function
