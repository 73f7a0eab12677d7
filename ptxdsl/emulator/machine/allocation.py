"""Host memory that compiled code and Python share."""

from __future__ import annotations

import ctypes
from typing import Any

__all__ = ["HostAddress", "address_of", "allocate", "copy_bytes", "number_at"]

class HostAddress(int):
    """Where something lies in this process, among the values of a micro-op."""


_BYTE = ctypes.c_char
_SIGNATURE = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
copy_bytes = _SIGNATURE(ctypes.cast(ctypes.memmove, ctypes.c_void_p).value or 0)
"""As ``ctypes.memmove``, for a few bytes: it keeps the interpreter's lock, which another thread might not give back
for milliseconds."""


def allocate(nbytes: int, align: int = 64) -> tuple[Any, int, memoryview]:
    """Zeroed memory: the array of bytes that holds it, its aligned address, and a view of it from there on."""
    import numpy as np

    array: Any = np.zeros(nbytes + align, np.uint8)
    start = ctypes.addressof(_BYTE.from_buffer(array))
    skipped = -start % align
    return array, start + skipped, memoryview(array)[skipped:]


def number_at(address: int, nbytes: int = 8) -> int:
    """The number without a sign at a host address."""
    return int.from_bytes(ctypes.string_at(address, nbytes), "little")


def address_of(array: Any) -> int:
    """As array.ctypes.data, in a fourth of its time."""
    return ctypes.addressof(_BYTE.from_buffer(array))
