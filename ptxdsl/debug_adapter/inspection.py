"""The requests that look at a launch that has stopped: threads, frames, variables, expressions, PTX."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Union

from ..emulator.debugger.debugged_launch import DebuggedLaunch, Stop, Thread
from ..emulator.debugger.expressions import lookup
from ..emulator.debugger.places import Frame
from ..emulator.debugger.view import DebugError, View
from ..emulator.debugger.writers import who
from ..emulator.machine.layout import LANES
from ..emulator.machine.unsupported import render
from ..emulator.runtime.faults import index_in, ranges, set_bits
from ..errors import Loc
from .console import focused
from .session import Session
from .variables import Variables

__all__ = ["Answer", "Inspection", "number_of"]

SCRIPT = 1
"""The number of the thread that the script is while none of its kernels runs."""
Answer = Union[dict[str, Any], None, "tuple[dict[str, Any] | None, Callable[[], object]]"]
"""The body of a response, perhaps with what to do once it is sent."""


class Inspection:
    """What the editor may ask while a launch has stopped. ``session`` has it."""

    session: Session
    first_line = first_column = 1
    """From where the editor counts."""

    def __init__(self) -> None:
        self._frames: list[tuple[Thread, int]] = []
        self._variables: Variables | None = None
        self._stop: Stop | None = None

    def stopped(self, stop: Stop) -> None:
        """The launch has stopped: numbers of frames and variables were of an earlier stop."""
        self._stop = stop
        self._frames.clear()
        self._variables = Variables(self.launch())

    def launch(self) -> DebuggedLaunch:
        """The launch that has stopped. Raises DebugError where none has."""
        launch = self.session.launch
        if launch is None or not self.session.parked:
            raise DebugError("no kernel has stopped: pause, or stop at a breakpoint first")
        return launch

    def stopped_at(self, arguments: dict[str, Any], back: bool = False) -> DebuggedLaunch:
        """The launch that has stopped, with the thread of a request in focus."""
        launch = self.launch()
        if back and launch.history.missing:
            raise DebugError(f"there is no way back: {launch.history.missing}")
        warp = _thread(arguments["threadId"])
        if warp is not None and warp != launch.thread[:2]:
            launch.focus(self._lane(Thread(*warp, 0)))
        return launch

    def _lane(self, thread: Thread) -> Thread:
        """The first lane of a warp that is active."""
        launch = self.launch()
        state = next((s for s in launch.execution.running() if s.block == thread.block), None)
        if state is None:
            raise DebugError(f"block {thread.block} does not run now")
        lanes = set_bits(launch.active(state, thread.warp)) or [0]
        return thread._replace(lane=lanes[0])

    def on_threads(self, _: dict[str, Any]) -> Answer:
        launch = self.session.launch
        if launch is None or not self.session.parked:
            return {"threads": [{"id": SCRIPT, "name": "script"}]}
        config, found = launch.launch.config, []
        for state in launch.execution.running() or [launch.state]:
            for warp in range(state.count):
                thread = Thread(state.block, warp, 0)
                first = index_in(config.block, warp * LANES)
                last = index_in(config.block, min(config.threads, warp * LANES + LANES) - 1)
                block = index_in(config.grid, state.block)
                active = launch.active(state, warp)
                lanes = "ended" if not launch.alive(state, warp) else f"lanes {ranges(set_bits(active))}"
                name = f"block {block} warp {warp}: threads {first} to {last}, {lanes}"
                found.append({"id": number_of(thread), "name": name})
        return {"threads": found}

    def on_stackTrace(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        warp = _thread(arguments["threadId"])
        if warp is None:
            return {"stackFrames": [], "totalFrames": 0}
        launch = self.launch()
        if launch.has_ended(*warp):
            return {"stackFrames": [], "totalFrames": 0}
        mine = warp == launch.thread[:2]
        thread = launch.thread if mine else self._lane(Thread(*warp, 0))
        place = launch.place if mine else launch.place_at(thread)
        frames = [self._frame(thread, n, each, place) for n, each in enumerate(launch.places.frames(place))]
        caller = self.session.launched_at
        if caller is not None:
            self._frames.append((thread, -1))
            frames.append({
                "id": len(self._frames), "name": "launch", "column": self.first_column, "presentationHint": "subtle",
                "line": caller.line - 1 + self.first_line, "source": _source(caller),
            })
        first = arguments.get("startFrame", 0)
        count = arguments.get("levels") or len(frames)
        return {"stackFrames": frames[first : first + count], "totalFrames": len(frames)}

    def _frame(self, thread: Thread, number: int, frame: Frame, place: int) -> dict[str, Any]:
        self._frames.append((thread, number))
        found: dict[str, Any] = {
            "id": len(self._frames), "name": frame.function, "column": self.first_column,
            "line": (frame.loc.line if frame.loc is not None else frame.ptx_line) - 1 + self.first_line,
        }
        if frame.loc is not None and self.session.launch is not None and self.session.launch.places.names is not None:
            found["source"] = _source(frame.loc)
        else:
            found["line"] = frame.ptx_line - 1 + self.first_line
            found["source"] = self._ptx_source()
        return {**found, "instructionPointerReference": hex(place)} if number == 0 else found

    def _ptx_source(self) -> dict[str, Any]:
        """The PTX of the kernel: its file, or a text that the editor asks for."""
        file = self.session.ptx_file
        if os.path.isfile(file):
            return {"name": os.path.basename(file), "path": os.path.abspath(file)}
        return {"name": f"{self.session.kernel.entry}.ptx", "sourceReference": self.session.source}

    def on_source(self, arguments: dict[str, Any]) -> Answer:
        number = (arguments.get("source") or {}).get("sourceReference") or arguments["sourceReference"]
        if not 1 <= number <= len(self.session.sources):
            raise DebugError(f"there is no source {number}")
        return {"content": self.session.sources[number - 1]}

    def on_scopes(self, arguments: dict[str, Any]) -> Answer:
        view, frame = self._view(arguments["frameId"])
        if frame < 0:
            return {"scopes": []}
        assert self._variables is not None
        return {"scopes": self._variables.scopes(view)}

    def _view(self, number: int | None) -> tuple[View, int]:
        """What the thread of a frame sees there, and the frame's number; None is the innermost one of the focus."""
        launch = self.launch()
        if number is None:
            return launch.view(), 0
        if not 1 <= number <= len(self._frames):
            raise DebugError(f"there is no frame {number} since the launch has gone on")
        thread, frame = self._frames[number - 1]
        if thread != launch.thread:
            launch.focus(thread)
        return launch.view(max(frame, 0)), frame

    def on_variables(self, arguments: dict[str, Any]) -> Answer:
        self.launch()
        assert self._variables is not None
        self._variables.hexadecimal = bool((arguments.get("format") or {}).get("hex"))
        reference = arguments["variablesReference"]
        if arguments.get("filter") == "named" and self._variables.indexed(reference):
            return {"variables": []}
        found = self._variables.children(reference, arguments.get("start") or 0, arguments.get("count") or 0)
        return {"variables": found}

    def on_evaluate(self, arguments: dict[str, Any]) -> Answer:
        view, frame = self._view(arguments.get("frameId"))
        launch, text = self.launch(), arguments["expression"].strip()
        assert self._variables is not None
        command, _, rest = text.partition(" ")
        if arguments.get("context") == "repl" and command in ("focus", "lane"):
            launch.focus(focused(launch, text))
            stop = self._stop or Stop("pause")
            told = f"thread {launch.view().thread} of block {launch.view().block}"
            moved = stop._replace(reason="pause", text="")
            return {"result": told, "variablesReference": 0}, lambda: self.stopped(moved)
        if command == "who" and rest:
            written = who(launch, rest, max(frame, 0))
            return {"result": str(written), "variablesReference": 0}
        self._variables.hexadecimal = bool((arguments.get("format") or {}).get("hex"))
        record = self._variables.value(text, lookup(text, view))
        return {"result": record.pop("value"), **{k: v for k, v in record.items() if k not in ("name", "evaluateName")}}

    def on_exceptionInfo(self, _: dict[str, Any]) -> Answer:  # noqa: N802
        launch, stop = self.launch(), self._stop
        if stop is None or stop.reason not in ("exception", "finding"):
            raise DebugError("nothing has gone wrong here")
        kind = type(launch.error).__name__ if launch.error is not None else "sanitizer"
        return {
            "exceptionId": kind, "description": stop.text, "breakMode": "always",
            "details": {"message": stop.text, "typeName": kind},
        }

    def on_disassemble(self, arguments: dict[str, Any]) -> Answer:
        launch = self.launch()
        first = int(arguments["memoryReference"], 0) + arguments.get("offset", 0)
        first += arguments.get("instructionOffset", 0)
        statements, found = launch.places.statements, []
        for place in range(first, first + arguments["instructionCount"]):
            if not 0 <= place < len(statements):
                address = hex(place % (1 << 64))
                found.append({"address": address, "instruction": "", "presentationHint": "invalid"})
                continue
            record: dict[str, Any] = {"address": hex(place), "instruction": render(statements[place])}
            loc = statements[place].loc
            if loc is not None:
                record |= {"location": _source(loc), "line": loc.line - 1 + self.first_line}
            found.append(record)
        return {"instructions": found}


def number_of(thread: Thread) -> int:
    """The number of a warp among the editor's threads."""
    return SCRIPT + 1 + LANES * thread.block + thread.warp


def _thread(number: int) -> tuple[int, int] | None:
    """The block and the warp of a number, None of the script's."""
    return divmod(number - SCRIPT - 1, LANES) if number > SCRIPT else None


def _source(loc: Loc) -> dict[str, Any]:
    return {"name": os.path.basename(loc.file), "path": os.path.abspath(loc.file)}
