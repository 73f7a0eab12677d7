"""A file is checked by running it: every kernel that it launches, or could, is traced, verified and assembled."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import config, text, verify
from ..errors import PtxError, PtxWarning
from ..gpu.assembler import assemble_module
from ..gpu.tools import NoAssembler
from ..ir import Module
from ..kernel import Kernel
from .diagnostics import Diagnostic

__all__ = ["CheckedFile", "check_file"]


@dataclass
class CheckedFile:
    """What came of a file: its kernels (name, target, instructions of each trace), and what is wrong."""

    file: str
    kernels: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """What was not checked, and why."""
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong but what is warned of."""
        return all(found.level != "error" for found in self.diagnostics)

    def record(self) -> dict[str, Any]:
        """It as what JSON has."""
        return {
            "file": self.file, "ok": self.ok, "kernels": self.kernels, "skipped": self.skipped,
            "diagnostics": [found.record() for found in self.diagnostics],
        }

    def add(self, found: Diagnostic) -> None:
        """Note a diagnostic, once."""
        if found not in self.diagnostics:
            self.diagnostics.append(found)

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Note the errors and warnings of ptxdsl in the ``with`` block."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", PtxWarning)
            try:
                yield
            except PtxError as error:
                for found in Diagnostic.of_error(error):
                    self.add(found)
        for warning in warned:
            if issubclass(warning.category, PtxWarning):
                self.add(Diagnostic.of_warning(warning))
            else:
                warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)


def check_file(
    path: Path, *, arch: str | None = None, run: bool = True, sanitize: str = "all", arguments: tuple[str, ...] = ()
) -> CheckedFile:
    """Check a file of PTX text, or of Python.

    Args:
        path: ``.ptx`` text is parsed, verified and assembled. Python is run as a script on the emulator; each kernel
            that it has launched, or that needs no constants, is traced, verified and assembled.
        arch: The target to assemble for, such as ``"sm_90a"``; each kernel's own if None.
        run: Whether Python runs as a script (``__name__ == "__main__"``), or is only imported.
        sanitize: The sanitizer's checks of what it launches.
        arguments: ``sys.argv`` of the script, less its name.

    Raises:
        OSError: The file cannot be read.
    """
    checked = CheckedFile(str(path))
    if path.suffix == ".ptx":
        _check_ptx(checked, path.read_text("utf-8"), arch)
    else:
        _check_python(checked, path, arch, sanitize, "__main__" if run else path.stem, arguments)
    return checked


def _check_ptx(checked: CheckedFile, source: str, arch: str | None) -> None:
    with checked.noting():
        module = text.parse(source, checked.file)
        verify.verify(module, foreign=True, filename=checked.file)
        _note(checked, module, ", ".join(function.name for function in module.functions))
        _assemble(checked, source, arch)


def _check_python(
    checked: CheckedFile, path: Path, arch: str | None, sanitize: str, name: str, arguments: tuple[str, ...]
) -> None:
    source = path.read_bytes()
    linecache.checkcache(checked.file)
    module = ModuleType(name)
    module.__file__ = str(path)
    with _as_program(module, path, arguments), config.override(backend="emulator", sanitize=sanitize):
        with checked.noting():
            _execute(checked, source, module)
        for kernel in dict.fromkeys(value for value in vars(module).values() if isinstance(value, Kernel)):
            if kernel.loc.file == str(path):
                _check_kernel(checked, kernel, arch)


def _execute(checked: CheckedFile, source: bytes, module: ModuleType) -> None:
    """Run a file in a module; exceptions that are not ptxdsl's are diagnostics too."""
    try:
        exec(compile(source, checked.file, "exec", dont_inherit=True), vars(module))
    except PtxError:
        raise
    except SystemExit as ended:
        if ended.code not in (None, 0):
            checked.add(Diagnostic.of_exception(ended, checked.file))
    except Exception as error:  # noqa: BLE001 - whatever a user's file raises is reported
        checked.add(Diagnostic.of_exception(error, checked.file))


@contextlib.contextmanager
def _as_program(module: ModuleType, path: Path, arguments: tuple[str, ...]) -> Iterator[None]:
    """The interpreter as it is for a script: ``sys.argv``, ``sys.path``, and the module by its name."""
    before = sys.argv, list(sys.path), sys.modules.get(module.__name__)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, os.fspath(path.resolve().parent))
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before[0], before[1]
        if before[2] is None:
            sys.modules.pop(module.__name__, None)
        else:
            sys.modules[module.__name__] = before[2]


def _check_kernel(checked: CheckedFile, kernel: Kernel, arch: str | None) -> None:
    missing = [name for name, default in kernel.signature.constants.items() if default is kernel.signature.REQUIRED]
    if not kernel.traces and missing:
        reason = f"{kernel.entry} was not launched, and {', '.join(missing)} has no default"
        checked.skipped.append(reason.replace("has", "have") if len(missing) > 1 else reason)
        return
    with checked.noting():
        if not kernel.traces:
            kernel.compiled({})
        for traced in kernel.traces:
            verify.verify(traced.module)
            _note(checked, traced.module, kernel.entry)
            _assemble(checked, traced.text, arch)


def _note(checked: CheckedFile, module: Module, name: str) -> None:
    count = sum(1 for function in module.functions for _ in function.instructions())
    checked.kernels.append({"name": name, "target": module.target, "instructions": count})


def _assemble(checked: CheckedFile, source: str, arch: str | None) -> None:
    try:
        assemble_module(source, arch or "auto")
    except NoAssembler as error:
        reason = f"not assembled: {error.message} ({error.hint})"
        if reason not in checked.skipped:
            checked.skipped.append(reason)
