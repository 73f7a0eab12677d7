"""When a kernel that runs long is compiled in the second tier: in a thread beside its launches.

The thread must not slow what it is to speed up, and much of its work is Python's. So it gives the interpreter's lock
back soon to a launch that asks for it, and there is one such thread, however many kernels wait: the one that has run
the longest is compiled first. LLVM's part runs without the lock.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial

from ... import locks
from ..codegen.code import Code
from ..codegen.library import library
from ...machine_code.shutdown import at_work

__all__ = ["FAILED", "THREAD", "note_time", "seconds_before", "yielding"]

THREAD = "ptxdsl tier-up"
"""Name of the thread that compiles."""
FAILED = "compiling it failed"
SECONDS, SECONDS_A_MICRO_OP = 0.004, 200e-6
"""Running time of a kernel's launches after which it is compiled: a fraction of what compiling takes."""
RECALLED = 0.1
"""The part of SECONDS after which a block function is taken from disk."""
SWITCH_INTERVAL = 100e-6
"""For how long the thread keeps the interpreter's lock from another that asks for it; Python's usual 5 ms are several
launches."""
_waiting: list[Code] = []
_lock = locks.lock()
_compiling = _optimises = False
"""Whether there is such a thread, and whether it is to optimise the handlers of first launches before all else."""


def seconds_before(code: Code) -> float:
    """For how long a kernel runs before it is compiled."""
    return SECONDS + SECONDS_A_MICRO_OP * code.length


def note_time(code: Code, seconds: float) -> None:
    """Note that a kernel has run for so long; start to compile it where that was long enough.

    A block function that another process has made is on disk, and taken long before: it takes a millisecond.
    """
    code.seconds += seconds
    if code.unoptimised or (_optimises and not _compiling):  # the thread of the parent, where this is a fork's child
        code.unoptimised = False
        _begin(None)
    recall = code.recall_block_function
    if recall is not None and code.seconds >= SECONDS * RECALLED:
        code.recall_block_function = None
        code.block_function = recall()
    if code.block_function and not code.exits:  # what compiling would add is used behind a side exit
        return
    if not code.tiered_up and code.seconds >= seconds_before(code):
        code.tiered_up = True
        _begin(code)


def _begin(code: Code | None) -> None:
    """Have a kernel compiled, or with None the handlers optimised."""
    global _compiling, _optimises  # noqa: PLW0603
    with _lock:
        if code is None:
            _optimises = True
        else:
            _waiting.append(code)
        if _compiling:
            return
        _compiling = True
    try:
        threading.Thread(target=_compile_all, name=THREAD).start()
    except RuntimeError:  # no thread begins any more at Python's end, or where they are too many
        with _lock:
            _compiling = False
            _waiting.clear()


def _next() -> Callable[[], None] | None:
    """What to do next; no kernel any more where Python waits for this thread to end."""
    global _compiling, _optimises  # noqa: PLW0603
    with _lock:
        if _optimises:
            _optimises = False
            return library().optimise
        if _waiting and threading.main_thread().is_alive():
            code = max(_waiting, key=lambda code: code.seconds)
            _waiting.remove(code)
            return partial(_compile, code)
        _compiling = False
        _waiting.clear()
        return None


def _compile_all() -> None:
    with yielding():
        while (work := _next()) is not None:
            with at_work.step:
                try:
                    work()
                except Exception:  # noqa: BLE001 - a mistake of ours, to be seen; others wait for this thread
                    threading.excepthook(threading.ExceptHookArgs([*sys.exc_info(), threading.current_thread()]))


def _compile(code: Code) -> None:
    try:
        from . import compilation  # not loaded where nothing runs long

        compilation.tier_up(code)
    except Exception as error:  # noqa: BLE001 - the first tier goes on; the next launch says why
        code.failure, code.refusal = error, f"{FAILED}: {error!r}"


@contextlib.contextmanager
def yielding() -> Iterator[None]:
    """Threads give the interpreter's lock to each other sooner than usual; a change that others make stays."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, SWITCH_INTERVAL))
    mine = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == mine:
            sys.setswitchinterval(usual)


def _forked() -> None:
    """The child of a fork has no thread that compiles: kernels that waited for one get another chance."""
    global _compiling  # noqa: PLW0603
    _compiling = False
    for code in _waiting:
        code.tiered_up = False
    _waiting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
