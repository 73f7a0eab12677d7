"""Tracebacks of ptxdsl's errors without ptxdsl's own frames: the user's lines, then the message.

An error is located already; the frames between the user's line and the ``raise`` say nothing to a user. Nothing is done
when an error is raised: plain Python, IPython and pytest fold the frames when they print it.
``PTXDSL_TRACEBACK=full`` leaves them.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from .config import current
from .errors import PtxError, is_internal

__all__ = ["install", "shorten"]


def install() -> None:
    """Have plain Python, and the IPython that runs, print errors of ptxdsl without internal frames."""
    if sys.excepthook is not _excepthook:
        global _before
        _before, sys.excepthook = sys.excepthook, _excepthook
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((PtxError,), _show_in_ipython)


_before = sys.__excepthook__
"""What printed exceptions before."""


def _excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if isinstance(error, PtxError):
        shorten(error)
        traceback = error.__traceback__
    _before(kind, error, traceback)


def _show_in_ipython(
    shell: Any, kind: type[PtxError], error: PtxError, traceback: TracebackType, tb_offset: int | None = None
) -> Any:
    shorten(error)
    lines = shell.InteractiveTB.structured_traceback(kind, error, error.__traceback__ or traceback, tb_offset=tb_offset)
    shell._showtraceback(kind, error, lines)
    return lines


def shorten(error: BaseException) -> None:
    """Take the internal frames out of the traceback of an error of ptxdsl, and of those that it came of."""
    if not isinstance(error, PtxError) or _wants_all():
        return
    seen: set[int] = set()
    chained: BaseException | None = error
    while chained is not None and id(chained) not in seen:
        seen.add(id(chained))
        chained.__traceback__ = _without_internal(chained.__traceback__)
        chained = chained.__cause__ or (None if chained.__suppress_context__ else chained.__context__)


def _wants_all() -> bool:
    try:
        return current().traceback == "full"
    except PtxError:  # the settings are what is wrong
        return False


def _without_internal(traceback: TracebackType | None) -> TracebackType | None:
    kept = []
    while traceback is not None:
        if not is_internal(traceback.tb_frame):
            kept.append(traceback)
        traceback = traceback.tb_next
    found: TracebackType | None = None
    for each in reversed(kept):
        found = TracebackType(found, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return found
