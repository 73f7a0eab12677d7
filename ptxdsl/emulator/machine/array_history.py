"""The arrays of the last launches, so that a pointer that outlived its array can be named.

A kernel may keep an address in memory, and a later launch follow it. What lies there is no array of that launch, and
may be no array at all any more; which one it was is what the user needs to know.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from ...launch import Buffer, Scalar

__all__ = ["array_at", "note"]

LENGTH = 512
"""Arrays that are remembered."""


class _Past(NamedTuple):
    address: int
    nbytes: int
    name: str
    kernel: str
    owner: weakref.ref[object] | None


_past: deque[_Past] = deque(maxlen=LENGTH)


def note(kernel: str, arguments: Iterable[Scalar | Buffer]) -> None:
    """Remember the arrays of a launch, without keeping them alive."""
    for argument in arguments:
        if isinstance(argument, Buffer):
            try:
                owner = weakref.ref(argument.owner)
            except TypeError:  # not every object takes weak references
                owner = None
            _past.append(_Past(argument.address, argument.nbytes, argument.name, kernel, owner))


def array_at(address: int) -> str | None:
    """What is known of the last array that had an address: its name, its launch, and whether it is still there."""
    for seen in reversed(_past):
        if seen.address <= address < seen.address + seen.nbytes:
            where = f"which lay in `{seen.name}` of a launch of `{seen.kernel}`"
            if seen.owner is not None and seen.owner() is None:
                return f"{where}; that array has been freed"
            return f"{where}; that array is no argument of this launch"
    return None
