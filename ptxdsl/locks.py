"""Locks that the child of a fork finds free.

A fork copies memory and one thread. What another thread held at that moment is held for ever in the child, and who asks
for it there waits for ever. So the locks of this package that outlive a launch are made here, and the child gives back
those that its own thread does not hold. What they protect is whole at any moment (an entry of a dictionary, made before
it is put in), or its module sets it right in the child.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

__all__ = ["lock", "rlock"]

_made: WeakSet[Any] = WeakSet()


def lock() -> threading.Lock:
    """A ``threading.Lock``."""
    made = threading.Lock()
    _made.add(made)
    return made


def rlock() -> Any:
    """A ``threading.RLock``."""
    made = threading.RLock()
    _made.add(made)
    return made


def _of_cached_properties() -> Iterator[Any]:
    """Up to Python 3.11 each ``cached_property`` has a lock, held while an object's is made: one for all objects."""
    for name, module in list(sys.modules.items()):
        if name.startswith("ptxdsl.") and "cached_property" in vars(module):
            for kind in [value for value in vars(module).values() if isinstance(value, type)]:
                found = (value for value in vars(kind).values() if isinstance(value, functools.cached_property))
                yield from (value.lock for value in found)  # type: ignore[attr-defined]


def _free() -> None:
    for held in (*_made, *(_of_cached_properties() if sys.version_info < (3, 12) else ())):
        if not (hasattr(held, "_is_owned") and held._is_owned()):
            held._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)
