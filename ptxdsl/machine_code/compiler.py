"""LLVM, from the text of a module to an object file.

llvmlite lets one thread at a time into LLVM, so that a kernel's first launch would wait while the second tier of
another is compiled, for seconds. LLVM itself wants one thread at a time in a context only: each module has its own
here, and the two calls that take long go past llvmlite's lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import functools
import itertools
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .host import machine
from .shutdown import at_work

__all__ = ["Effort", "initialize", "link_with_llvm", "object_file", "object_files"]


class Effort(enum.Enum):
    """What LLVM does for a module."""

    LEAST = "least"
    """A third of what handlers take otherwise, for code that is soon replaced."""
    HANDLERS = "handlers"
    """These have few loops, and little that the longer list of passes would find."""
    MOST = "most"


@functools.cache
def initialize() -> None:
    """Once a process, before LLVM compiles or links."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def object_files(texts: Sequence[Callable[[], str]], helpers: int, effort: Effort = Effort.HANDLERS) -> list[bytes]:
    """The machine code of modules of handlers: each is compiled while the texts of the others are made.

    Other threads, ``helpers`` at most, compile what is there; this one does what is left when it has made all texts.
    """
    waiting: deque[tuple[int, str]] = deque()
    images: dict[int, bytes] = {}
    others: list[_Helper] = []
    try:
        for number, text in enumerate(texts):
            waiting.append((number, text()))
            if len(others) < min(helpers, len(texts) - 1):
                others.append(_Helper(waiting, images, effort))
            for other in others:
                other.more.release()
        _compile_waiting(waiting, images, effort)
    finally:
        for other in others:
            other.last = True
            other.more.release()
    for other in others:
        other.end()
    return [images[number] for number in range(len(texts))]


def _compile_waiting(waiting: deque[tuple[int, str]], images: dict[int, bytes], effort: Effort) -> None:
    while True:
        try:
            number, text = waiting.popleft()
        except IndexError:
            return
        with at_work:
            images[number] = object_file(text, effort)


class _Helper(threading.Thread):
    """Compiles modules of handlers as their texts come; where no thread can be had, all is left to who asks."""

    def __init__(self, waiting: deque[tuple[int, str]], images: dict[int, bytes], effort: Effort) -> None:
        super().__init__(daemon=True)
        self._waiting, self._images, self._effort = waiting, images, effort
        self._error: BaseException | None = None
        self.more, self.last = threading.Semaphore(0), False
        with contextlib.suppress(RuntimeError):
            self.start()

    def run(self) -> None:
        try:
            while not self.last:
                self.more.acquire()
                _compile_waiting(self._waiting, self._images, self._effort)
        except BaseException as error:  # noqa: BLE001 - who waits for it gets it
            self._error = error

    def end(self) -> None:
        if self.is_alive():
            self.join()
        if self._error is not None:
            raise self._error


def object_file(text: str, effort: Effort = Effort.MOST) -> bytes:
    """The machine code of a module."""
    from llvmlite import binding

    initialize()
    target = machine(on_x86="-vzeroupper", optimise=effort is not Effort.LEAST)
    parsed = binding.parse_assembly(text, binding.create_context())
    parsed.verify()
    builder = binding.create_pass_builder(target, binding.create_pipeline_tuning_options(speed_level=2))
    if effort is Effort.MOST:
        passes = builder.getModulePassManager()
    else:
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()
        if effort is Effort.HANDLERS:
            passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    _without_lock("LLVMPY_RunNewModulePassManager")(passes, parsed, builder)
    return _emitted(target, parsed)


_FLOATS = ctypes.c_int(0)
"""What Windows' compilers refer to in code that has floats, and its C library has in no DLL."""
_numbers = itertools.count()
_kept: list[Any] = []
"""What keeps LLVM's code in memory."""


def link_with_llvm(image: bytes, names: Sequence[str], known: Mapping[str, int]) -> dict[str, int]:
    """As :func:`~ptxdsl.machine_code.object_files.link`, by LLVM's linker, which takes every file of its own."""
    from llvmlite.binding import JITLibraryBuilder

    unit = JITLibraryBuilder().add_object_img(image).add_current_process()
    for name in names:
        unit.export_symbol(name)
    for name in known.keys() - set(names):
        unit.import_symbol(name, known[name])
    if sys.platform == "win32":
        unit.import_symbol("_fltused", ctypes.addressof(_FLOATS))
    with at_work:
        tracker = unit.link(_linker(), f"batch{next(_numbers)}")
        found = {name: tracker[name] for name in names}
    _kept.append(tracker)
    return found


@functools.cache
def _linker() -> Any:
    from llvmlite import binding

    initialize()
    return binding.create_lljit_compiler(machine())


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
    function = getattr(ctypes.CDLL("llvmlite", handle=ffi.lib._handle), name)  # the handle counts, not the name
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function
