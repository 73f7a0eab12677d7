"""Debuggers as observers of launches: each launch is run by :class:`DebuggedLaunch`, which the user steers."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ...errors import EmulationError
from ...ir import Call, Instruction
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
from .images import MemoryImage

__all__ = ["HISTORY", "Debugger", "flat_index"]

Index = tuple[int, int, int]
HISTORY = 256
"""MiB that copies for going back may take."""


class Debugger(Observer):
    """Debugs the launches of its ``with`` block. ``history``: MiB that copies for going back may take.

    ``checks`` are those of the sanitizer that each launch runs first, to stop where they find something; those of the
    launch itself are made too, and raised when it ends.
    """

    what = "a debugger"
    checks: frozenset[str] = frozenset()

    def __init__(self, history: int = HISTORY) -> None:
        super().__init__()
        self.history = history
        self._kernel: tuple[Any, Mapping[str, Any]] | None = None
        self._found: EmulationError | None = None

    def launching(self, kernel: Any, constants: Mapping[str, Any], backend: str) -> None:
        super().launching(kernel, constants, backend)
        self._kernel = (kernel, constants) if hasattr(kernel, "function") else None

    # The sanitizer

    def rehearsal(self, config: LaunchConfig) -> LaunchConfig | None:
        """The launch to make first: with the sanitizer."""
        wanted = (config.sanitize or frozenset()) | self.checks
        return replace(config, sanitize=wanted) if wanted else None

    def rehearse(self, launch: LaunchState, run: Callable[[], object]) -> None:
        """Run the launch, keep what is found, and make its memory what it was."""
        before, self._found = MemoryImage(launch_memory(launch)), None
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run()
        except EmulationError as error:
            self._found = error if error.findings else None
        finally:
            before.restore()

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
        if error is not None and launch.config.sanitize:
            raise error

    def _debugged(self, launch: LaunchState) -> DebuggedLaunch:
        names, functions = self._names(launch)
        return DebuggedLaunch(launch, names, functions, self.history << 20, self.say)

    def _names(self, launch: LaunchState) -> tuple[Names | None, dict[int, str]]:
        """The variables of a kernel of Python, and which lines of its PTX belong to functions that it calls."""
        if self._kernel is None:
            return None, {}
        known: dict[Any, Any] = launch.spaces.notes.setdefault(Names, {})
        if not known:
            kernel, constants = self._kernel
            made = kernel.compiled(constants)
            module = load(made.text, made.module if made.foreign else None).module
            known["names"] = Names.of(kernel, constants, module.function(kernel.entry))
            known["functions"] = {
                s.line: function.name for function in module.functions if function.name != kernel.entry
                for s in function.body or () if isinstance(s, (Instruction, Call))
            }
        return known["names"], known["functions"]

    def say(self, text: str) -> None:
        """Tell the user something."""
        raise NotImplementedError

    def steer(self, launch: DebuggedLaunch) -> None:
        """Run it to its end, as the user says."""
        raise NotImplementedError


def flat_index(place: Index, size: Index) -> int:
    """The number of a block in its grid, or of a thread in its block."""
    return place[0] + size[0] * (place[1] + size[1] * place[2])
