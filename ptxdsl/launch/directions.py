"""``In``, ``Out`` and ``InOut``: which way a host array is copied, where the caller knows better than the trace.

A kernel that is traced says itself what it stores to. Of foreign PTX that is not always to be seen, and what a kernel
writes in full need not be copied to the GPU first. Device arrays are never copied, so there nothing changes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .device_array import DeviceArray
from .geometry import Buffer

__all__ = ["In", "InOut", "Out", "copied"]

_POISON = 0xCD


class In:
    """A host array that the kernel reads: it is not copied back, whatever the kernel stores.

    >>> from ptxdsl import Ptr, ptx, ptx_kernel, u32, use
    >>> @ptx_kernel
    ... def double(x: Ptr[u32], y: Ptr[u32]):
    ...     x[ptx.tid.x] += x[ptx.tid.x]
    ...     y[ptx.tid.x] = x[ptx.tid.x]
    >>> x, y = np.array([1, 2], np.uint32), np.empty(2, np.uint32)
    >>> with use("emulator"):
    ...     double[1, 2](In(x), Out(y))
    >>> x.tolist(), y.tolist()
    ([1, 2], [2, 4])
    """

    __slots__ = ("array",)
    direction = "in"

    def __init__(self, array: Any) -> None:
        self.array = array

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r})"


class Out(In):
    """A host array that the kernel writes: it is not copied to the GPU, so what is not written is undefined."""

    __slots__ = ()
    direction = "out"


class InOut(In):
    """A host array that is copied both ways, also where the kernel is not seen to store to it."""

    __slots__ = ()
    direction = "inout"


def copied(buffer: Buffer) -> Buffer:
    """What the emulator, which copies nothing else, passes for a host array that goes one way only."""
    array = DeviceArray((buffer.nbytes,), np.dtype(np.uint8), None)
    if buffer.direction == "in":
        ctypes.memmove(array.address, buffer.address, buffer.nbytes)
    else:
        ctypes.memset(array.address, _POISON, buffer.nbytes)
        array.unwritten = True
    return buffer._replace(address=array.address, owner=array, writable=True)
