"""Python's cyclic garbage collector, paused while a kernel is traced, parsed or lowered.

A large kernel is a million small objects, none of them garbage. The collector traverses them again and again as they
grow in number, which would double the time of a first call.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

from . import locks

__all__ = ["paused"]

_lock = locks.lock()
_pauses = 0
"""How many threads have paused it."""
_usual = True
"""Whether it was enabled before the first of them."""


@contextmanager
def paused() -> Iterator[None]:
    """Collect nothing within the block, or the function that this decorates, nor within those of other threads.

    >>> with paused():
    ...     gc.isenabled()
    False
    """
    global _pauses, _usual  # noqa: PLW0603
    with _lock:
        if not _pauses:
            _usual = gc.isenabled()
        _pauses += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _pauses = max(0, _pauses - 1)  # none is left in the child of a fork
            if _usual and not _pauses:
                gc.enable()


def _forked() -> None:
    """The child of a fork has none of the other threads."""
    global _pauses  # noqa: PLW0603
    if _pauses and _usual:
        gc.enable()
    _pauses = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
