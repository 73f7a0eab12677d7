"""The memory that device arrays are made of: the host's for the emulator, and what a GPU's must be able to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from .rows import Rows

__all__ = ["DeviceMemory", "aligned"]

_ALIGNMENT = 256
"""What cuMemAlloc gives; the emulator's arrays have it too, so that vector accesses mean the same on both."""


class DeviceMemory(Protocol):
    """The memory of a GPU. ``new`` memory is nobody else's yet, so that it need not wait for what is submitted."""

    device: int
    """The ordinal of the GPU."""

    def allocate(self, nbytes: int, /) -> int:
        """The address of so many bytes; 0 for none."""

    def allocate_managed(self, nbytes: int, /) -> int:
        """The address of so many bytes that the host has too; 0 for none."""

    def free(self, address: int, /) -> None:
        """Give memory back, when the launches that use it are done."""

    def beside(self, device: int, /) -> DeviceMemory:
        """The memory of another GPU."""

    def rest(self) -> None:
        """Wait until all that was submitted to the GPU is done."""

    def ready_for(self, stream: int | None, /) -> None:
        """Let a stream of another library wait for what was submitted, as DLPack counts streams."""

    def set(self, address: int, nbytes: int, value: int, /, *, new: bool) -> None:
        """Make all bytes one value."""

    def upload(self, rows: Iterable[Rows], /, *, new: bool) -> None:
        """Copy from the host; it is complete when the call returns."""

    def download(self, rows: Iterable[Rows], /) -> None:
        """Copy to the host, when what was submitted is done."""

    def move(self, rows: Iterable[Rows], /) -> None:
        """Copy within the GPU, in the order of the default stream."""

    def receive(self, to: int, source: Any, address: int, nbytes: int, /) -> None:
        """Copy to new memory from the memory of another GPU."""


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """New host memory, aligned as a GPU's."""
    nbytes = math.prod(shape) * dtype.itemsize
    memory = np.empty(nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + nbytes].view(dtype).reshape(shape)
