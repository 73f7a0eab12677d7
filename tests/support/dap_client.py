"""A client of the Debug Adapter Protocol, as an editor is one: requests and responses, events as they come."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from time import monotonic
from typing import IO, Any

__all__ = ["Client", "DapError"]

SECONDS = 60.0
"""How long anything may take."""


class DapError(Exception):
    """A request was refused."""


class Client:
    """Speaks to an adapter over two streams."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._seq = 0
        self._responses: queue.Queue[dict[str, Any]] = queue.Queue()
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.seen: list[dict[str, Any]] = []
        """All events that were waited for, and those before them."""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while (line := self._incoming.readline()):
            length = int(line.split(b":")[1])
            assert self._incoming.readline() == b"\r\n"
            message = json.loads(self._incoming.read(length))
            (self._responses if message["type"] == "response" else self._events).put(message)
        self._events.put({"event": "closed", "body": {}})

    def send(self, command: str, **arguments: Any) -> int:
        """Send a request, and wait for nothing."""
        self._seq += 1
        request = {"seq": self._seq, "type": "request", "command": command, "arguments": arguments}
        data = json.dumps(request).encode()
        self._outgoing.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self._outgoing.flush()
        return self._seq

    def request(self, command: str, **arguments: Any) -> Any:
        """The body of the response to a request. Raises DapError where it was refused."""
        seq = self.send(command, **arguments)
        response = self._responses.get(timeout=SECONDS)
        assert (response["request_seq"], response["command"]) == (seq, command)
        if not response["success"]:
            raise DapError(response["message"])
        return response.get("body") or {}

    def wait(self, name: str, accept: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """The body of the next event of that name."""
        end = monotonic() + SECONDS
        while True:
            event = self._events.get(timeout=max(0.0, end - monotonic()))
            self.seen.append(event)
            if event["event"] == name and accept(event["body"]):
                return event["body"]  # type: ignore[no-any-return]
            assert event["event"] not in ("closed", "terminated"), f"{event['event']} instead of {name}: {self.text()}"

    def text(self, category: str | None = None) -> str:
        """What was shown so far."""
        outputs = [e["body"] for e in self.seen if e["event"] == "output"]
        return "".join(b["output"] for b in outputs if category in (None, b["category"]))

    # What editors do

    def start(
        self, program: object, breakpoints: dict[str, list[dict[str, Any]]] | None = None,
        filters: tuple[str, ...] = (), **arguments: Any,
    ) -> list[dict[str, Any]]:
        """Initialize, launch and configure; the breakpoints' answers."""
        capabilities = self.request("initialize", adapterID="ptxdsl", linesStartAt1=True, columnsStartAt1=True)
        assert capabilities["supportsStepBack"]
        self.wait("initialized")
        self.request("launch", program=str(program), **arguments)
        answers = []
        for path, lines in (breakpoints or {}).items():
            answers += self.request("setBreakpoints", source={"path": path}, breakpoints=lines)["breakpoints"]
        self.request("setExceptionBreakpoints", filters=list(filters))
        self.request("configurationDone")
        return answers

    def stop(self, command: str | None = None, **arguments: Any) -> dict[str, Any]:
        """Go on by a request (to the thread that stopped last), and wait for the next stop."""
        if command is not None:
            self.request(command, threadId=self.thread, **arguments)
        body = self.wait("stopped")
        self.thread = body["threadId"]
        return body

    def frames(self) -> list[dict[str, Any]]:
        """The frames of the thread that has stopped."""
        return list(self.request("stackTrace", threadId=self.thread)["stackFrames"])

    @property
    def line(self) -> int:
        """The line at which it has stopped."""
        return int(self.frames()[0]["line"])

    def scopes(self, frame: int = 0) -> dict[str, dict[str, dict[str, Any]]]:
        """All variables of a frame, by scope and name."""
        scopes = self.request("scopes", frameId=self.frames()[frame]["id"])["scopes"]
        return {scope["name"]: self.variables(scope["variablesReference"]) for scope in scopes}

    def variables(self, reference: int, **arguments: Any) -> dict[str, dict[str, Any]]:
        """Variables by name."""
        found = self.request("variables", variablesReference=reference, **arguments)["variables"]
        return {variable["name"]: variable for variable in found}

    def value(self, expression: str, context: str = "watch") -> str:
        """What an expression is in the innermost frame."""
        frame = self.frames()[0]["id"]
        return str(self.request("evaluate", expression=expression, frameId=frame, context=context)["result"])

    def end(self) -> int:
        """Let the script run to its end; its exit status."""
        status = self.wait("exited")["exitCode"]
        self.wait("terminated")
        self.request("disconnect")
        return int(status)
