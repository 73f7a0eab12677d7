"""Debuggers as observers of launches: each launch is run by :class:`DebuggedLaunch`, which the user steers."""

from __future__ import annotations

import contextlib
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import EmulationError
from ...ir import Call, Instruction, Module
from ...launch import LaunchConfig
from ..machine.layout import LANES
from ..program import load
from ..runtime.alone import enter, leave
from ..runtime.block_state import LaunchState
from ..sanitizer.findings import Finding
from ..tools.observer import Observer
from ..tools.variable_names import Names
from .checkpoints import launch_memory
from .debugged_launch import DebuggedLaunch, Thread
from .images import HeapImage, MemoryImage
from .places import Places
from .probe import debugged_code

__all__ = ["HISTORY", "Debugger", "flat_index"]

Index = tuple[int, int, int]
HISTORY = 256
"""MiB that copies for going back may take."""


class Debugger(Observer, ABC):
    """Debugs the launches of its ``with`` block. ``history``: MiB that copies for going back may take.

    A launch that asks for the sanitizer runs with that first, on copies of its arrays: the debugger stops where it has
    found something, and the error is raised when the launch ends. ``sanitizes`` False leaves that out.
    """

    what = "a debugger"
    sanitizes = True

    def __init__(self, history: int = HISTORY) -> None:
        super().__init__()
        self.history = history
        self._kernel: tuple[Any, Mapping[str, Any]] | None = None
        self._found: EmulationError | None = None

    def launching(self, kernel: Any, constants: Mapping[str, Any], backend: str) -> None:
        super().launching(kernel, constants, backend)
        self._kernel = kernel, constants

    # The sanitizer

    def rehearsal(self, config: LaunchConfig) -> LaunchConfig | None:
        """The launch to make first: with the sanitizer."""
        self._found = None
        return config if self.sanitizes and config.sanitize else None

    def rehearse(self, launch: LaunchState, run: Callable[[], object]) -> None:
        """Run the launch, keep what is found, and make its memory what it was."""
        before = MemoryImage(launch_memory(launch)), HeapImage(launch.spaces.memory.heap)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run()
        except EmulationError as error:
            self._found = error if error.findings else None
        finally:
            for image in before:
                image.restore()

    def _findings(self, launch: DebuggedLaunch) -> list[tuple[str, list[int], Thread]]:
        found: list[tuple[str, list[int], Thread]] = []
        config = launch.launch.config
        for finding in self._found.findings if self._found is not None else ():
            assert isinstance(finding, Finding)
            access = finding.access
            flat = flat_index(access.thread, config.block)
            thread = Thread(flat_index(access.block, config.grid), flat // LANES, flat % LANES)
            places = [n for n, s in enumerate(launch.places.statements) if s.line == access.ptx_line]
            found.append((str(finding), places, thread))
        return found

    # The launch

    def run(self, launch: LaunchState) -> None:
        """Run a launch as the user wants it."""
        launch.tool = self
        debugged = self._debugged(launch)
        debugged.findings = self._findings(debugged)
        error, self._found = self._found, None
        try:
            if debugged.code.updates:
                enter(launch)
            self.steer(debugged)
        finally:
            leave(launch)
        if error is not None:
            raise error

    def _debugged(self, launch: LaunchState) -> DebuggedLaunch:
        known: dict[Any, Places] = launch.spaces.notes.setdefault(Debugger, {})
        block = launch.config.block
        if block not in known:
            code, _ = debugged_code(launch.spaces, block)
            known[block] = Places(launch.spaces.function, code, self._names(), self._functions())
        return DebuggedLaunch(launch, known[block], self.history << 20, self.say)

    @property
    def kernel(self) -> Any:
        """The kernel that is launched."""
        assert self._kernel is not None
        return self._kernel[0]

    @property
    def ptx(self) -> str:
        """The text of the kernel that is launched."""
        assert self._kernel is not None
        kernel, constants = self._kernel
        return str(kernel.compiled(constants).text)

    def _module(self) -> Module:
        assert self._kernel is not None
        kernel, constants = self._kernel
        made = kernel.compiled(constants)
        return load(made.text, made.module if made.foreign else None).module

    def _names(self) -> Names | None:
        """The variables of a kernel of Python."""
        assert self._kernel is not None
        kernel, constants = self._kernel
        if not hasattr(kernel, "function"):
            return None
        return Names.of(kernel, constants, self._module().function(kernel.entry))

    def _functions(self) -> dict[int, str]:
        """Which lines of the PTX belong to functions that the kernel calls."""
        return {
            s.line: function.name for function in self._module().functions if function.name != self.kernel.entry
            for s in function.body or () if isinstance(s, (Instruction, Call))
        }

    @abstractmethod
    def say(self, text: str) -> None:
        """Tell the user something."""

    @abstractmethod
    def steer(self, launch: DebuggedLaunch) -> None:
        """Run it to its end, as the user says."""


def flat_index(place: Index, size: Index) -> int:
    """The number of a block in its grid, or of a thread in its block."""
    return place[0] + size[0] * (place[1] + size[1] * place[2])
