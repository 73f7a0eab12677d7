"""Messages of the Debug Adapter Protocol over two streams of bytes: a header with the length, then JSON.

The protocol's framing is these few lines; the packages that have it as a library (debugpy's, lsprotocol's relatives)
bring a debugger or another protocol along.
"""

from __future__ import annotations

import contextlib
import json
import threading
from typing import IO, Any

__all__ = ["BadMessage", "Connection", "Message"]

Message = dict[str, Any]
MOST_BYTES = 64 << 20


class BadMessage(Exception):
    """What came is no message of the protocol."""


class Connection:
    """Reads messages from one stream, by one thread, and writes to another, by any."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._lock = threading.Lock()
        self._sent = 0

    def read(self) -> Message | None:
        """The next message; None where there is none any more. Raises BadMessage for what is none."""
        length = -1
        while True:
            line = self._incoming.readline()
            if not line:
                return None
            line = line.strip()
            if not line:
                break
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                if not value.strip().isdigit() or int(value) > MOST_BYTES:
                    raise BadMessage(f"Content-Length is {value.strip().decode('latin-1')!r}")
                length = int(value)
            elif name.lower() != b"content-type":  # a browser's request, say, which is to do nothing here
                raise BadMessage(f"{line.decode('latin-1')[:80]!r} is no header of the Debug Adapter Protocol")
        if length < 0:
            raise BadMessage("a message without a Content-Length")
        data = self._incoming.read(length)
        if len(data) < length:
            return None
        try:
            message = json.loads(data)
        except ValueError as error:
            raise BadMessage(f"the content is no JSON: {error}") from None
        if not isinstance(message, dict):
            raise BadMessage("the content is no object of JSON")
        return message

    def send(self, kind: str, **fields: Any) -> None:
        """Write a message; one that nobody reads any more is dropped."""
        with self._lock:
            self._sent += 1
            data = json.dumps({"seq": self._sent, "type": kind, **fields}).encode()
            with contextlib.suppress(OSError, ValueError):
                self._outgoing.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
                self._outgoing.flush()

    def event(self, name: str, **body: Any) -> None:
        """Write an event."""
        self.send("event", event=name, body=body)
