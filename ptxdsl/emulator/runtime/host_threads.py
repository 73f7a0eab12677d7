"""Threads that wait for work: starting one takes as long as a short launch, waking one a third of that.

They are of those that Python does not wait for at its end. One that has had nothing to do for a second ends.
"""

from __future__ import annotations

import _thread
import os
from collections.abc import Callable

__all__ = ["start"]

SECONDS = 1.0
"""How long a thread waits for work."""


class _HostThread:
    """A thread; who takes it from ``_idle`` gives it work by setting ``work`` and releasing ``begin``."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work: Callable[[], object] | None = work
        self.begin = _thread.allocate_lock()
        self.begin.acquire()

    def serve(self) -> None:
        while self.work is not None:
            work, self.work = self.work, None
            work()
            del work  # which holds a launch
            _idle.append(self)
            if not self.begin.acquire(timeout=SECONDS):
                try:
                    _idle.remove(self)
                except ValueError:  # somebody has just taken it
                    self.begin.acquire()


_idle: list[_HostThread] = []


def start(work: Callable[[], object]) -> None:
    """Have ``work`` done by another thread; it raises nothing.

    Raises RuntimeError where there can be no further thread.
    """
    try:
        thread = _idle.pop()
    except IndexError:
        thread = _HostThread(work)
        _thread.start_new_thread(thread.serve, ())
    else:
        thread.work = work
        thread.begin.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)
