"""When a kernel that runs long is compiled in the second tier: in a thread beside its launches."""

from __future__ import annotations

import contextlib
import threading

from ..codegen.code import Code

__all__ = ["THREAD", "note_time"]

THREAD = "ptxdsl tier-up"
"""Name of the thread that compiles."""
SECONDS, SECONDS_A_MICRO_OP = 0.004, 200e-6
"""Running time of a kernel's launches after which it is compiled: a fraction of what compiling takes."""


def note_time(code: Code, seconds: float) -> None:
    """Note that a kernel has run for so long; start to compile it where that was long enough."""
    code.seconds += seconds
    if not code.tiered_up and code.seconds >= SECONDS + SECONDS_A_MICRO_OP * len(code.micro_ops):
        code.tiered_up = True
        with contextlib.suppress(RuntimeError):  # no thread begins any more at Python's end, or where they are too many
            threading.Thread(target=_compile, args=(code,), name=THREAD).start()


def _compile(code: Code) -> None:
    from . import compilation  # not loaded where nothing runs long

    try:
        compilation.tier_up(code)
    except Exception as error:  # noqa: BLE001 - the first tier goes on; the next launch that ends says why
        code.failure = error
