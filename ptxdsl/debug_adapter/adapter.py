"""The requests of the Debug Adapter Protocol, one method each; what happens between them are events."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

from ..emulator.debugger.breakpoints import Breakpoint
from ..emulator.debugger.debugged_launch import Stop, Thread
from ..emulator.debugger.expressions import lookup
from ..emulator.debugger.observer import HISTORY
from ..emulator.debugger.places import Frame
from ..emulator.debugger.reverse import back, back_to_breakpoint
from ..emulator.debugger.view import DebugError
from ..emulator.debugger.writers import who
from ..emulator.machine.layout import LANES
from ..emulator.machine.unsupported import render
from ..emulator.runtime.faults import index_in, ranges, set_bits
from ..errors import Loc, PtxError
from .capabilities import CAPABILITIES
from .console import focused
from .protocol import Connection, Message
from .session import Session, same_file
from .variables import Variables

__all__ = ["Adapter"]

SCRIPT = 1
"""The number of the thread that the script is while none of its kernels runs."""
_REASONS = {"finding": "exception", "begin": "step", "data": "data breakpoint"}
After = Callable[[], object]
Answer = Union[dict[str, Any], None, "tuple[dict[str, Any] | None, After]"]
"""The body of a response, perhaps with what to do once it is sent."""


class Adapter:
    """One session with an editor. ``answer`` is for the thread that reads requests; the rest is told by the script's."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.session = Session(self, HISTORY)
        self.ready, self.over = threading.Event(), threading.Event()
        """Whether the script may begin, and whether the editor is done."""
        self.program: Path | None = None
        self.arguments: dict[str, Any] = {}
        self.sanitizes = False
        self._configured = False
        self._first_line = self._first_column = 1
        self._ids = 0
        self._frames: list[tuple[Thread, int]] = []
        self._variables: Variables | None = None
        self._stop: Stop | None = None

    # What the script tells

    def say(self, text: str, category: str = "console") -> None:
        """Show something: of the debugger (console), or of the script (stdout, stderr)."""
        self.connection.event("output", category=category, output=text)

    def launched(self, session: Session) -> None:
        """A launch begins: tell at which lines its breakpoints are."""
        launch = session.launch
        assert launch is not None
        launch.breakpoints = session.resolved()
        for breakpoint in launch.breakpoints:
            if breakpoint.statement is None:
                self.connection.event("breakpoint", reason="changed", breakpoint=self._breakpoint(breakpoint, True))

    def stopped(self, stop: Stop) -> None:
        """The launch has stopped."""
        launch = self.session.launch
        assert launch is not None
        self._stop = stop
        self._forget()
        reason = _REASONS.get(stop.reason, stop.reason)
        body: dict[str, Any] = {"reason": reason, "threadId": _number(launch.thread), "allThreadsStopped": True}
        if stop.text:
            first = stop.text.splitlines()[0]
            body["text"] = body["description"] = first
            if reason == "exception":
                self.say(stop.text + "\n", "important")
        if stop.breakpoints:
            body["hitBreakpointIds"] = [breakpoint.id for breakpoint in stop.breakpoints]
        self.connection.event("stopped", **body)

    def _forget(self) -> None:
        """Numbers of frames and variables were of an earlier stop."""
        launch = self.session.launch
        self._frames.clear()
        self._variables = Variables(launch) if launch is not None else None

    # Requests

    def answer(self, request: Message) -> None:
        """Answer a request: every one is, with an error where it cannot be done."""
        command = request.get("command")
        fields = {"request_seq": request.get("seq", 0), "command": command}
        method = getattr(self, f"on_{command}", None) if isinstance(command, str) else None
        after: After | None = None
        try:
            if method is None:
                raise DebugError(f"there is no request `{command}` here")
            answered: Answer = method(request.get("arguments") or {})
            body, after = answered if isinstance(answered, tuple) else (answered, None)
            self.connection.send("response", **fields, success=True, body=body or {})
        except PtxError as error:
            text = error.message if error.hint is None else f"{error.message} (hint: {error.hint})"
            self._refuse(fields, text)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else f"has arguments that do not fit: {error}"
            self._refuse(fields, f"the request `{command}` {what}")
        if after is not None:
            after()

    def _refuse(self, fields: dict[str, Any], text: str) -> None:
        body = {"error": {"id": 1, "format": "{text}", "variables": {"text": text}, "showUser": True}}
        self.connection.send("response", **fields, success=False, message=text, body=body)

    # Begin and end

    def on_initialize(self, arguments: dict[str, Any]) -> Answer:
        self._first_line = 1 if arguments.get("linesStartAt1", True) else 0
        self._first_column = 1 if arguments.get("columnsStartAt1", True) else 0
        return CAPABILITIES, lambda: self.connection.event("initialized")

    def on_launch(self, arguments: dict[str, Any]) -> Answer:
        if self.program is not None:
            raise DebugError("a session runs one script, and this is the second launch")
        given = arguments.get("program")
        if not isinstance(given, str) or not given:
            raise DebugError("launch takes `program`, the path of a script of Python that launches kernels")
        folder = Path(arguments.get("cwd") or Path.cwd())
        path = (folder / given).resolve()
        if not path.is_file():
            raise DebugError(f"there is no file {path}")
        if not folder.is_dir():
            raise DebugError(f"there is no folder {folder}")
        session = self.session
        session.block, session.thread = _index(arguments, "block"), _index(arguments, "thread")
        session.only_kernel, session.enters = arguments.get("kernel"), bool(arguments.get("stopOnEntry"))
        session.history = int(arguments.get("history", HISTORY))
        os.chdir(folder)
        os.environ.update({name: str(value) for name, value in (arguments.get("env") or {}).items()})
        self.arguments, self.program = arguments, path
        return None, self._begin

    def on_attach(self, _: dict[str, Any]) -> Answer:
        raise DebugError("a script is launched, not attached to", hint='`"request": "launch", "program": "script.py"`')

    def on_configurationDone(self, _: dict[str, Any]) -> Answer:  # noqa: N802
        self._configured = True
        return None, self._begin

    def _begin(self) -> None:
        if self._configured and self.program is not None:
            self.ready.set()

    def on_terminate(self, _: dict[str, Any]) -> Answer:
        return None, self.session.quit

    def on_disconnect(self, _: dict[str, Any]) -> Answer:
        return None, self.end

    def end(self) -> None:
        """The editor is done."""
        self.over.set()
        self.session.quit()
        self.ready.set()

    # Breakpoints

    def on_setBreakpoints(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        source = arguments["source"]
        file, number = source.get("path"), source.get("sourceReference") or 0
        made = []
        for wanted in arguments.get("breakpoints") or ():
            self._ids += 1
            made.append(Breakpoint(
                None if number else file, wanted["line"] + 1 - self._first_line, wanted.get("condition") or "",
                wanted.get("hitCondition") or "", wanted.get("logMessage") or "", self._ids, number,
            ))
        answers, good = [], []
        for breakpoint in made:
            try:
                breakpoint.check()
                good.append(breakpoint)
                answers.append(self._breakpoint(breakpoint, self.session.place(breakpoint)))
            except DebugError as error:
                text = error.message if error.hint is None else f"{error.message}: {error.hint}"
                answers.append({**self._breakpoint(breakpoint, False), "message": text})

        def replaced(breakpoint: Breakpoint) -> bool:
            if breakpoint.statement is not None:
                return False
            return breakpoint.source == number if number else bool(
                file and breakpoint.file and same_file(breakpoint.file, file)
            )

        self.session.replace(replaced, good)
        return {"breakpoints": answers}

    def _breakpoint(self, breakpoint: Breakpoint, verified: bool) -> dict[str, Any]:
        line = breakpoint.line - 1 + self._first_line
        found: dict[str, Any] = {"id": breakpoint.id, "verified": verified, "line": line}
        if not verified:
            found["message"] = "no kernel that has instructions at this line, or behind it, has been launched yet"
        return found

    def on_setInstructionBreakpoints(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        made = []
        for wanted in arguments.get("breakpoints") or ():
            self._ids += 1
            place = int(wanted["instructionReference"], 0) + wanted.get("offset", 0)
            made.append(Breakpoint(
                None, 0, wanted.get("condition") or "", wanted.get("hitCondition") or "", "", self._ids, statement=place
            ))
            made[-1].check()
        self.session.replace(lambda breakpoint: breakpoint.statement is not None, made)
        return {"breakpoints": [{"id": b.id, "verified": True} for b in made]}

    def on_setExceptionBreakpoints(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        filters = [*arguments.get("filters", ()), *(f["filterId"] for f in arguments.get("filterOptions") or ())]
        known = [each["filter"] for each in CAPABILITIES["exceptionBreakpointFilters"]]
        for each in filters:
            if each not in known:
                raise DebugError(f"there is no filter `{each}`; there are {', '.join(known)}")
        self.session.stops_at_faults = "faults" in filters
        self.sanitizes = self.session.sanitizes = "sanitizer" in filters
        if self.session.launch is not None:
            self.session.launch.stops_at_faults = self.session.stops_at_faults
        return {"breakpoints": [{"verified": True} for _ in filters]}

    def on_breakpointLocations(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        launch = self.session.launch
        first = arguments["line"] + 1 - self._first_line
        last = arguments.get("endLine", arguments["line"]) + 1 - self._first_line
        if launch is None:
            return {"breakpoints": []}
        path = arguments["source"].get("path") or ""
        file = next((f for f in launch.places.files if same_file(f, path)), None)
        lines = launch.places.lines(file) if file is not None else []
        return {"breakpoints": [{"line": n - 1 + self._first_line} for n in lines if first <= n <= last]}

    # Going on, and back

    def on_continue(self, arguments: dict[str, Any]) -> Answer:
        launch = self._stopped_at(arguments)
        return {"allThreadsContinued": True}, lambda: self.session.go(launch.resume)

    def on_next(self, arguments: dict[str, Any]) -> Answer:
        return self._step(arguments, "over")

    def on_stepIn(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        return self._step(arguments, "into")

    def on_stepOut(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        return self._step(arguments, "out")

    def _step(self, arguments: dict[str, Any], how: str) -> Answer:
        launch = self._stopped_at(arguments)
        how = "instruction" if arguments.get("granularity") == "instruction" else how
        return None, lambda: self.session.go(lambda: launch.step(how))

    def on_stepBack(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        launch = self._stopped_at(arguments, back=True)
        how = "instruction" if arguments.get("granularity") == "instruction" else "over"
        return None, lambda: self.session.go(lambda: back(launch, how))

    def on_reverseContinue(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        launch = self._stopped_at(arguments, back=True)
        return None, lambda: self.session.go(lambda: back_to_breakpoint(launch))

    def on_pause(self, _: dict[str, Any]) -> Answer:
        return None, self.session.pause

    def _launch(self) -> Any:
        """The launch that has stopped. Raises DebugError where none has."""
        launch = self.session.launch
        if launch is None or not self.session.parked:
            raise DebugError("no kernel has stopped: pause, or stop at a breakpoint first")
        return launch

    def _stopped_at(self, arguments: dict[str, Any], back: bool = False) -> Any:
        """The launch that has stopped, with the thread of a request in focus."""
        launch = self._launch()
        if back and launch.history.missing:
            raise DebugError(f"there is no way back: {launch.history.missing}")
        warp = _thread(arguments["threadId"])
        if warp is not None and warp != launch.thread[:2]:
            launch.focus(self._lane(Thread(*warp, 0)))
        return launch

    def _lane(self, thread: Thread) -> Thread:
        """The first lane of a warp that is active."""
        launch = self._launch()
        state = next((s for s in launch.execution.running() if s.block == thread.block), None)
        if state is None:
            raise DebugError(f"block {thread.block} does not run now")
        lanes = set_bits(launch.active(state, thread.warp)) or [0]
        return thread._replace(lane=lanes[0])

    # Looking

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
                found.append({"id": _number(thread), "name": name})
        return {"threads": found}

    def on_stackTrace(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        warp = _thread(arguments["threadId"])
        if warp is None:
            return {"stackFrames": [], "totalFrames": 0}
        launch = self._launch()
        mine = warp == launch.thread[:2]
        thread = launch.thread if mine else self._lane(Thread(*warp, 0))
        place = launch.place if mine else launch.place_at(thread)
        frames = [self._frame(thread, n, each, place) for n, each in enumerate(launch.places.frames(place))]
        caller = self.session.launched_at
        if caller is not None:
            self._frames.append((thread, -1))
            frames.append({
                "id": len(self._frames), "name": "launch", "column": self._first_column, "presentationHint": "subtle",
                "line": caller.line - 1 + self._first_line, "source": _source(caller),
            })
        first = arguments.get("startFrame", 0)
        count = arguments.get("levels") or len(frames)
        return {"stackFrames": frames[first : first + count], "totalFrames": len(frames)}

    def _frame(self, thread: Thread, number: int, frame: Frame, place: int) -> dict[str, Any]:
        self._frames.append((thread, number))
        found: dict[str, Any] = {
            "id": len(self._frames), "name": frame.function, "column": self._first_column,
            "line": (frame.loc.line if frame.loc is not None else frame.ptx_line) - 1 + self._first_line,
        }
        if frame.loc is not None and self.session.launch is not None and self.session.launch.places.names is not None:
            found["source"] = _source(frame.loc)
        else:
            found["line"] = frame.ptx_line - 1 + self._first_line
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

    def _view(self, number: int | None) -> tuple[Any, int]:
        """What the thread of a frame sees there, and the frame's number; None is the innermost one of the focus."""
        launch = self._launch()
        if number is None:
            return launch.view(), 0
        if not 1 <= number <= len(self._frames):
            raise DebugError(f"there is no frame {number} since the launch has gone on")
        thread, frame = self._frames[number - 1]
        if thread != launch.thread:
            launch.focus(thread)
        return launch.view(max(frame, 0)), frame

    def on_variables(self, arguments: dict[str, Any]) -> Answer:
        self._launch()
        assert self._variables is not None
        self._variables.hexadecimal = bool((arguments.get("format") or {}).get("hex"))
        reference = arguments["variablesReference"]
        if arguments.get("filter") == "named" and self._variables.indexed(reference):
            return {"variables": []}
        found = self._variables.children(reference, arguments.get("start") or 0, arguments.get("count") or 0)
        return {"variables": found}

    def on_evaluate(self, arguments: dict[str, Any]) -> Answer:
        view, frame = self._view(arguments.get("frameId"))
        launch, text = self._launch(), arguments["expression"].strip()
        assert self._variables is not None
        command, _, rest = text.partition(" ")
        if arguments.get("context") == "repl" and command in ("focus", "lane"):
            launch.focus(focused(launch, text))
            stop = self._stop or Stop("pause")
            told = f"thread {launch.view().thread} of block {launch.view().block}"
            return {"result": told, "variablesReference": 0}, lambda: self.stopped(stop._replace(reason="pause", text=""))
        if command == "who" and rest:
            written = who(launch, rest, max(frame, 0))
            return {"result": str(written), "variablesReference": 0}
        self._variables.hexadecimal = bool((arguments.get("format") or {}).get("hex"))
        record = self._variables.value(text, lookup(text, view))
        return {"result": record.pop("value"), **{k: v for k, v in record.items() if k not in ("name", "evaluateName")}}

    def on_exceptionInfo(self, _: dict[str, Any]) -> Answer:  # noqa: N802
        launch, stop = self._launch(), self._stop
        if stop is None or stop.reason not in ("exception", "finding"):
            raise DebugError("nothing has gone wrong here")
        kind = type(launch.error).__name__ if launch.error is not None else "sanitizer"
        return {
            "exceptionId": kind, "description": stop.text, "breakMode": "always",
            "details": {"message": stop.text, "typeName": kind},
        }

    def on_disassemble(self, arguments: dict[str, Any]) -> Answer:
        launch = self._launch()
        first = int(arguments["memoryReference"], 0) + arguments.get("offset", 0) + arguments.get("instructionOffset", 0)
        statements, found = launch.places.statements, []
        for place in range(first, first + arguments["instructionCount"]):
            if not 0 <= place < len(statements):
                address = hex(place % (1 << 64))
                found.append({"address": address, "instruction": "", "presentationHint": "invalid"})
                continue
            record: dict[str, Any] = {"address": hex(place), "instruction": render(statements[place])}
            loc = statements[place].loc
            if loc is not None:
                record |= {"location": _source(loc), "line": loc.line - 1 + self._first_line}
            found.append(record)
        return {"instructions": found}


def _number(thread: Thread) -> int:
    """The number of a warp among the editor's threads."""
    return SCRIPT + 1 + LANES * thread.block + thread.warp


def _thread(number: int) -> tuple[int, int] | None:
    """The block and the warp of a number, None of the script's."""
    return divmod(number - SCRIPT - 1, LANES) if number > SCRIPT else None


def _source(loc: Loc) -> dict[str, Any]:
    return {"name": os.path.basename(loc.file), "path": os.path.abspath(loc.file)}


def _index(arguments: dict[str, Any], name: str) -> Any:
    """The index of a block or a thread among the arguments of the launch."""
    value = arguments.get(name)
    return tuple(value) if isinstance(value, list) else value
