"""Runs the script that is debugged, in the process of the adapter, with what it prints as events."""

from __future__ import annotations

import io
import linecache
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

__all__ = ["Output", "run_script"]


class Output(io.RawIOBase):
    """A stream whose text goes to a function."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        text = bytes(data)  # type: ignore[call-overload]
        self._tell(text.decode("utf-8", "replace"))
        return len(text)

    @classmethod
    def stream(cls, tell: Callable[[str], object]) -> io.TextIOWrapper:
        """What takes the place of ``sys.stdout``."""
        return io.TextIOWrapper(io.BufferedWriter(cls(tell)), "utf-8", line_buffering=True, write_through=False)


def run_script(path: Path, arguments: list[str]) -> int:
    """Run a file of Python as ``__main__``; its exit status. What it does not catch is printed."""
    file = str(path)
    linecache.checkcache(file)
    module = ModuleType("__main__")
    module.__file__ = file
    sys.argv = [file, *arguments]
    sys.path.insert(0, os.fspath(path.parent))
    sys.modules["__main__"] = module
    try:
        exec(compile(path.read_bytes(), file, "exec", dont_inherit=True), vars(module))
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except Exception as error:  # noqa: BLE001 - whatever a user's script raises is shown
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != file:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)  # which knows how to show ptxdsl's errors
        return 1
    return 0
