"""The arrays of the last launches, so that a pointer that outlived its array can be named.

A kernel may keep an address in memory, and a later launch follow it. What lies there is no array of that launch, and
may be no array at all any more; which one it was is what the user needs to know.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable

from ...launch import Buffer, Scalar

__all__ = ["array_at", "note"]

LENGTH = 512
"""Arrays that are remembered."""
_Past = tuple[int, int, str, str, "weakref.ref[object] | None"]
"""Address, bytes and name of an array, the kernel, and what keeps the memory; every launch makes some."""
_past: deque[_Past] = deque(maxlen=LENGTH)


def note(kernel: str, arguments: Iterable[Scalar | Buffer]) -> None:
    """Remember the arrays of a launch, without keeping them alive."""
    for argument in arguments:
        for buffer in (argument,) if type(argument) is Buffer else argument.targets:
            try:
                owner = weakref.ref(buffer.owner)
            except TypeError:  # not every object takes weak references
                owner = None
            _past.append((buffer.address, buffer.nbytes, buffer.name, kernel, owner))


def array_at(address: int) -> str | None:
    """What is known of the last array that had an address: its name, its launch, and whether it is still there."""
    for start, nbytes, name, kernel, owner in reversed(_past):
        if start <= address < start + nbytes:
            where = f"which lay in `{name}` of a launch of `{kernel}`"
            if owner is not None and owner() is None:
                return f"{where}; that array has been freed"
            return f"{where}; that array is no argument of this launch"
    return None
