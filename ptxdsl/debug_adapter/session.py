"""The debugged script: where its launches stop the thread that runs it waits for what the editor wants."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

from ..emulator.debugger.breakpoints import Breakpoint
from ..emulator.debugger.debugged_launch import DebuggedLaunch, Stop, Thread
from ..emulator.debugger.observer import Debugger, flat_index
from ..emulator.debugger.view import DebugError
from ..emulator.machine.layout import LANES
from ..emulator.runtime.block_state import LaunchState
from ..emulator.tools.observed_thread import index_of, within
from ..errors import Loc, caller

__all__ = ["EditorBreakpoint", "Listener", "Quit", "Session", "same_file"]

Action = Callable[[], "Stop | None"]


class Quit(BaseException):
    """The editor ends the session."""


class Listener(Protocol):
    """Who is told what happens: called by the thread that runs the script."""

    def launched(self, session: Session) -> None:
        """A launch begins: the lines of its kernel are known."""

    def stopped(self, stop: Stop) -> None:
        """It has stopped."""

    def say(self, text: str, category: str = "console") -> None:
        """Something to show."""


@dataclass(eq=False)
class EditorBreakpoint(Breakpoint):
    """A breakpoint as the editor wants it: in a file, or in the text of PTX that has number ``source``."""

    path: str = ""
    source: int = 0
    wanted: int = 0
    """The line."""


class Session(Debugger):
    """Debugs the launches of a script. ``launch`` is the one that runs, ``parked`` whether it has stopped."""

    what = "the debug adapter"

    def __init__(self, listener: Listener, history: int) -> None:
        super().__init__(history)
        self.listener = listener
        self.breakpoints: list[EditorBreakpoint] = []
        self.block: Any = None
        self.thread: Any = None
        self.only_kernel: str | None = None
        self.stops_at_faults = self.enters = False
        self.launch: DebuggedLaunch | None = None
        self.parked, self.quitting = False, False
        self.launched_at: Loc | None = None
        self.sources: list[str] = []
        """Texts of PTX that are in no file, which the editor asks for by their number, from 1 on."""
        self._actions: SimpleQueue[Action] = SimpleQueue()

    def launching(self, kernel: Any, constants: Mapping[str, Any], backend: str) -> None:
        super().launching(kernel, constants, backend)
        self.launched_at = caller()

    def say(self, text: str) -> None:
        self.listener.say(text + "\n")

    def rehearse(self, launch: LaunchState, run: Callable[[], object]) -> None:
        self.say(f"{self.kernel.entry}: running it with the sanitizer first")
        super().rehearse(launch, run)

    # The thread of the script

    def steer(self, launch: DebuggedLaunch) -> None:
        self.launch = launch
        try:
            self._steer(launch)
        finally:
            self.launch = None

    def _steer(self, launch: DebuggedLaunch) -> None:
        config, ours = launch.launch.config, self.only_kernel in (None, launch.places.kernel)
        self.say(f"{launch.places.kernel} is launched: a grid of {config.grid}, blocks of {config.block}")
        if launch.history.missing:
            self.say(f"there will be no way back: {launch.history.missing}")
        launch.stops_at_faults = self.stops_at_faults
        self._restrict(launch)
        if ours:
            self.listener.launched(self)
        else:
            launch.findings.clear()
        entry, self.enters = self.enters and ours, self.enters and not ours
        stop = self._do(lambda: launch.step("instruction") if entry else launch.resume())
        if entry and stop is not None and stop.reason == "step":
            stop = stop._replace(reason="entry")
        while stop is not None:
            stop = self._park(stop)

    def _restrict(self, launch: DebuggedLaunch) -> None:
        """To one thread, or where only a block or a thread is given, to that of the first thread or block."""
        config = launch.launch.config
        place = Thread(0, 0, 0)
        if self.block is not None or self.thread is not None:
            block, thread = index_of("block", self.block or 0), index_of("thread", self.thread or 0)
            within("block", block, config.grid, "grid")
            within("thread", thread, config.block, "block")
            flat = flat_index(thread, config.block)
            launch.only = place = Thread(flat_index(block, config.grid), flat // LANES, flat % LANES)
        launch.thread = place

    def _park(self, stop: Stop) -> Stop | None:
        """Wait for what the editor wants, and do it."""
        if self.quitting:
            raise Quit
        self.parked, self.enters = True, False
        self.listener.stopped(stop)
        action = self._actions.get()
        return self._do(action)

    def _do(self, action: Action) -> Stop | None:
        if self.quitting:
            raise Quit
        try:
            return action()
        except DebugError as error:
            self.listener.say(f"{error.message}\n", "stderr")
            return Stop("step")

    # The thread of the requests

    def go(self, action: Action) -> None:
        """Let the script go on with an action."""
        self.parked = False
        self._actions.put(action)

    def pause(self) -> None:
        """Stop at the next statement of the launch that runs, or of the next one where it has no more."""
        if self.parked:
            return
        self.enters = True  # until it has stopped
        launch = self.launch
        if launch is not None:
            launch.control["PAUSE"] = 1

    def quit(self) -> None:
        """End the script where it next comes to, or runs, a launch."""
        self.quitting = True
        if self.parked:
            self.go(lambda: None)
        else:
            self.pause()

    def replace(self, replaced: Callable[[EditorBreakpoint], bool], made: list[EditorBreakpoint]) -> None:
        """Other breakpoints in place of some."""
        self.breakpoints = [point for point in self.breakpoints if not replaced(point)] + made
        if self.launch is not None:
            self.launch.breakpoints = self.resolved()

    def resolved(self) -> list[Breakpoint]:
        """The breakpoints that the launch can come to, each at a line that has instructions."""
        return [point for point in self.breakpoints if self.place(point)]

    def place(self, point: EditorBreakpoint) -> bool:
        """Move a breakpoint to the line of the kernel where it stops; whether there is one."""
        launch = self.launch
        if launch is None or self.only_kernel not in (None, launch.places.kernel):
            return False
        if point.source and self.sources[point.source - 1 : point.source] != [self.ptx]:
            return False
        if point.statement is not None:
            return True
        of_ptx = bool(point.source) or same_file(point.path, self.ptx_file)
        point.file = None if of_ptx else next((f for f in launch.places.files if same_file(f, point.path)), "")
        lines = launch.places.lines(point.file)
        later = [line for line in lines if line >= point.wanted >= lines[0]]
        point.line = later[0] if later else point.wanted
        return bool(later)

    @property
    def ptx_file(self) -> str:
        """The file of a kernel that was loaded."""
        return str(getattr(self.kernel, "filename", ""))

    @property
    def source(self) -> int:
        """The number of the text of the kernel that runs, for the editor to ask for."""
        if self.ptx not in self.sources:
            self.sources.append(self.ptx)
        return self.sources.index(self.ptx) + 1


def same_file(one: str, other: str) -> bool:
    """Whether two paths are of one file."""
    return os.path.normcase(os.path.realpath(one)) == os.path.normcase(os.path.realpath(other))
