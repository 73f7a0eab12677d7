"""Sessions over standard input and output, and over TCP, where each connection gets a process with a session."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO

from .. import config
from .adapter import Adapter
from .protocol import BadMessage, Connection
from .script import Output, run_script
from .session import Quit

__all__ = ["serve", "session"]

PATIENCE = 2.0
"""Seconds that a script has to end by itself once the editor has gone."""


def session() -> int:
    """One session over this process's standard input and output; the exit status of the script."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # the script reads no messages,
    os.dup2(2, 1)  # and writes none
    adapter = Adapter(Connection(incoming, outgoing))
    threading.Thread(target=_read, args=(adapter,), daemon=True).start()
    status = _run(adapter)
    adapter.over.wait(PATIENCE)
    return status


def _read(adapter: Adapter) -> None:
    """Answer requests until the editor goes."""
    while not adapter.over.is_set():
        try:
            message = adapter.connection.read()
        except BadMessage as error:
            print(f"ptxdsl debug: {error}", file=sys.__stderr__)
            message = None
        if message is None:
            adapter.end()
        elif message.get("type") == "request":
            adapter.answer(message)
    last = threading.Timer(PATIENCE, os._exit, (0,))
    last.daemon = True
    last.start()


def _run(adapter: Adapter) -> int:
    """Wait for the launch request, run the script, tell its end."""
    adapter.ready.wait()
    if adapter.program is None or adapter.over.is_set():
        return 0
    sys.stdout = Output.stream(lambda text: adapter.say(text, "stdout"))
    sys.stderr = Output.stream(lambda text: adapter.say(text, "stderr"))
    arguments = [str(each) for each in adapter.arguments.get("args") or ()]
    status = 0
    try:
        if adapter.arguments.get("noDebug"):
            status = run_script(adapter.program, arguments)
        else:
            sanitize = {"sanitize": "all"} if adapter.sanitizes else {}
            with config.override(backend="emulator", **sanitize), adapter.session:
                status = run_script(adapter.program, arguments)
    except Quit:
        adapter.say("given up; what was stored until here stays\n")
    sys.stdout.flush()
    sys.stderr.flush()
    adapter.connection.event("exited", exitCode=status)
    adapter.connection.event("terminated")
    return status


def serve(host: str, port: int, told: Callable[[int], object]) -> int:
    """Listen for editors, and give each a session in a process of its own; ``told`` gets the port. Ends interrupted."""
    with socket.create_server((host, port)) as listening:
        told(listening.getsockname()[1])
        try:
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=_serve, args=(connection,), daemon=True).start()
        except KeyboardInterrupt:
            return 0


def _serve(connection: socket.socket) -> None:
    """Pass what one editor and its session say to each other."""
    command = [sys.executable, "-m", "ptxdsl", "debug", "--dap"]
    with connection, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        threading.Thread(target=_pass_on, args=(connection, child.stdin), daemon=True).start()
        with contextlib.suppress(OSError):  # the editor has gone
            while data := os.read(child.stdout.fileno(), 1 << 16):
                connection.sendall(data)
        child.terminate()


def _pass_on(connection: socket.socket, to: IO[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError), to:
        while data := connection.recv(1 << 16):
            to.write(data)
            to.flush()
