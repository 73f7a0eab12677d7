"""Commands of the debug console: which thread is in focus."""

from __future__ import annotations

import re

from ..emulator.debugger.debugged_launch import DebuggedLaunch, Thread
from ..emulator.debugger.observer import flat_index
from ..emulator.debugger.view import DebugError
from ..emulator.machine.layout import LANES

__all__ = ["focused"]

_PART = re.compile(r"\s*(block|thread|warp|lane)\s*=?\s*\(?\s*(\d+(?:\s*,\s*\d+){0,2})\s*\)?")
_HINT = "`focus thread 37`, `focus block 1 thread 5, 2`, `focus lane 3`, `focus warp 1 lane 0`"


def focused(launch: DebuggedLaunch, text: str) -> Thread:
    """The thread that a command names, in parts: what it does not say stays. Raises DebugError."""
    rest = text.removeprefix("focus")
    config, found = launch.launch.config, launch.thread
    at = 0
    while at < len(rest) and (part := _PART.match(rest, at)) is not None:
        at, what = part.end(), part[1]
        x, y, z = ([int(n) for n in part[2].split(",")] + [0, 0])[:3]
        if what == "block":
            found = found._replace(block=flat_index((x, y, z), config.grid))
        elif what == "thread":
            flat = flat_index((x, y, z), config.block)
            found = found._replace(warp=flat // LANES, lane=flat % LANES)
        elif what == "warp":
            found = found._replace(warp=x)
        else:
            found = found._replace(lane=x)
    if at < len(rest.rstrip()) or not at:
        raise DebugError(f"`{text}` names no thread", hint=_HINT)
    return found
