"""Python's cyclic garbage collector, paused while a kernel is traced, parsed or lowered.

A large kernel is a million small objects, none of them garbage. The collector traverses them again and again as they
grow in number, which would double the time of a first call.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["paused"]


@contextmanager
def paused() -> Iterator[None]:
    """Collect nothing within the block, or the function that this decorates.

    >>> with paused():
    ...     gc.isenabled()
    False
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
