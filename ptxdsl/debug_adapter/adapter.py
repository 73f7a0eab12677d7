"""The requests of the Debug Adapter Protocol, one method each; what happens between them are events."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..emulator.debugger.debugged_launch import Stop
from ..emulator.debugger.observer import HISTORY
from ..emulator.debugger.reverse import back, back_to_breakpoint
from ..emulator.debugger.view import DebugError
from ..errors import PtxError
from .capabilities import CAPABILITIES
from .inspection import Answer, Inspection, number_of
from .protocol import Connection, Message
from .session import EditorBreakpoint, Session, same_file

__all__ = ["Adapter"]

_REASONS = {"finding": "exception", "begin": "step"}


class Adapter(Inspection):
    """One session with an editor. ``answer`` is for the thread that reads requests, the rest for that of the script."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.connection = connection
        self.session = Session(self, HISTORY)
        self.ready, self.over = threading.Event(), threading.Event()
        """Whether the script may begin, and whether the editor is done."""
        self.program: Path | None = None
        self.arguments: dict[str, Any] = {}
        self.sanitizes = False
        self._configured = False
        self._ids = 0

    # What the script tells

    def say(self, text: str, category: str = "console") -> None:
        """Show something: of the debugger (console), or of the script (stdout, stderr)."""
        self.connection.event("output", category=category, output=text)

    def launched(self, session: Session) -> None:
        """A launch begins: tell at which lines its breakpoints are."""
        launch = session.launch
        assert launch is not None
        launch.breakpoints = session.resolved()
        for point in session.breakpoints:
            if point in launch.breakpoints and point.statement is None:
                self.connection.event("breakpoint", reason="changed", breakpoint=self._breakpoint(point, True))

    def stopped(self, stop: Stop) -> None:
        """The launch has stopped."""
        super().stopped(stop)
        reason = _REASONS.get(stop.reason, stop.reason)
        thread = number_of(self.launch().thread)
        body: dict[str, Any] = {"reason": reason, "threadId": thread, "allThreadsStopped": True}
        if stop.text:
            first = stop.text.splitlines()[0]
            body["text"] = body["description"] = first
            if reason == "exception":
                self.say(stop.text + "\n", "important")
        if stop.breakpoints:
            body["hitBreakpointIds"] = [point.id for point in stop.breakpoints]
        self.connection.event("stopped", **body)

    # Requests

    def answer(self, request: Message) -> None:
        """Answer a request: every one is, with an error where it cannot be done."""
        command = request.get("command")
        fields = {"request_seq": request.get("seq", 0), "command": command}
        method = getattr(self, f"on_{command}", None) if isinstance(command, str) else None
        after: Callable[[], object] | None = None
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
        self.first_line = 1 if arguments.get("linesStartAt1", True) else 0
        self.first_column = 1 if arguments.get("columnsStartAt1", True) else 0
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
        path, number = source.get("path") or "", source.get("sourceReference") or 0
        if not path and not number:
            raise DebugError("setBreakpoints takes a source with a `path` or a `sourceReference`")
        made = []
        for wanted in arguments.get("breakpoints") or ():
            self._ids += 1
            line = wanted["line"] + 1 - self.first_line
            made.append(EditorBreakpoint(
                None, line, wanted.get("condition") or "", wanted.get("hitCondition") or "",
                wanted.get("logMessage") or "", self._ids, path=path, source=number, wanted=line,
            ))
        wrong = {point: _wrong(point) for point in made}

        def replaced(point: EditorBreakpoint) -> bool:
            if point.statement is not None or point.source or number:
                return point.statement is None and point.source == number
            return same_file(point.path, path)

        self.session.replace(replaced, [point for point in made if not wrong[point]])
        return {"breakpoints": [
            {**self._breakpoint(point, False), "message": wrong[point]} if wrong[point]
            else self._breakpoint(point, self.session.place(point)) for point in made
        ]}

    def _breakpoint(self, point: EditorBreakpoint, verified: bool) -> dict[str, Any]:
        line = point.line - 1 + self.first_line
        found: dict[str, Any] = {"id": point.id, "verified": verified, "line": line}
        if not verified:
            found["message"] = "no kernel that has instructions at this line, or behind it, has been launched yet"
        return found

    def on_setInstructionBreakpoints(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        if not arguments.get("breakpoints"):
            self.session.replace(lambda point: point.statement is not None, [])
            return {"breakpoints": []}
        self.launch()
        made, of = [], self.session.source
        for wanted in arguments["breakpoints"]:
            self._ids += 1
            place = int(wanted["instructionReference"], 0) + wanted.get("offset", 0)
            made.append(EditorBreakpoint(
                None, 0, wanted.get("condition") or "", wanted.get("hitCondition") or "", "", self._ids, place,
                source=of,
            ))
            made[-1].check()
        self.session.replace(lambda point: point.statement is not None, made)
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
            if not self.sanitizes:
                self.session.launch.findings.clear()
        return {"breakpoints": [{"verified": True} for _ in filters]}

    def on_breakpointLocations(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        launch = self.session.launch
        first = arguments["line"] + 1 - self.first_line
        last = arguments.get("endLine", arguments["line"]) + 1 - self.first_line
        if launch is None:
            return {"breakpoints": []}
        path = arguments["source"].get("path") or ""
        file = next((f for f in launch.places.files if same_file(f, path)), None)
        lines = launch.places.lines(file) if file is not None else []
        return {"breakpoints": [{"line": n - 1 + self.first_line} for n in lines if first <= n <= last]}

    # Going on, and back

    def on_continue(self, arguments: dict[str, Any]) -> Answer:
        launch = self.stopped_at(arguments)
        return {"allThreadsContinued": True}, lambda: self.session.go(launch.resume)

    def on_next(self, arguments: dict[str, Any]) -> Answer:
        return self._step(arguments, "over")

    def on_stepIn(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        return self._step(arguments, "into")

    def on_stepOut(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        return self._step(arguments, "out")

    def _step(self, arguments: dict[str, Any], how: str) -> Answer:
        launch = self.stopped_at(arguments)
        how = "instruction" if arguments.get("granularity") == "instruction" else how
        return None, lambda: self.session.go(lambda: launch.step(how))

    def on_stepBack(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        launch = self.stopped_at(arguments, back=True)
        how = "instruction" if arguments.get("granularity") == "instruction" else "over"
        return None, lambda: self.session.go(lambda: back(launch, how))

    def on_reverseContinue(self, arguments: dict[str, Any]) -> Answer:  # noqa: N802
        launch = self.stopped_at(arguments, back=True)
        return None, lambda: self.session.go(lambda: back_to_breakpoint(launch))

    def on_pause(self, _: dict[str, Any]) -> Answer:
        return None, self.session.pause


def _wrong(point: EditorBreakpoint) -> str:
    """Why a breakpoint cannot be, "" where it can."""
    try:
        point.check()
    except DebugError as error:
        return error.message if error.hint is None else f"{error.message}: {error.hint}"
    return ""


def _index(arguments: dict[str, Any], name: str) -> Any:
    """The index of a block or a thread among the arguments of the launch."""
    value = arguments.get(name)
    return tuple(value) if isinstance(value, list) else value
