"""Host arrays as arguments of a kernel on the GPU: copied there for one launch, and back what was written.

All of it is in the order of the launch's stream: the memory is taken from the pool and given back there. Small arrays
go by way of pinned memory, all in one copy each way, since a copy costs more than they do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..errors import DriverError
from ..launch import Argument, Buffer
from ..launch.captures import refuse_host_arrays
from .device import Driver
from .memory import STAGING

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["HostCopies"]

_ALIGNMENT = 256
_SMALL = 64 << 10
"""Bytes up to which an array is staged; a launch stages at most as many as Staging has."""


class _Range(NamedTuple):
    """Host memory from ``start`` to ``end``, and how many bytes behind the beginning of the block it is on the GPU."""

    start: int
    end: int
    offset: int
    staged: bool


class HostCopies:
    """The host arrays of one launch, on the GPU for its duration, in one block of memory.

    Arrays that overlap are copied as one range of memory, so that in-place and aliased arguments stay what they are.
    Only what the kernel may write is copied back.
    """

    def __init__(
        self, gpu: Driver, stream: int, host: Sequence[Buffer], entry: str, written: frozenset[str]
    ) -> None:
        self.gpu, self.stream, self.host, self.entry, self.written = gpu, stream, host, entry, written
        self.ranges, self.nbytes, self.staged = _laid_out(host)
        self.address = self.staging = 0

    def __enter__(self) -> Self:
        if self.gpu.captures(self.stream):
            refuse_host_arrays(self.entry, self.host)
        if not self.nbytes:
            return self
        try:
            self.address = self.gpu.memory.allocate_on(self.nbytes, self.stream)
            if self.staged:
                self.staging = self.gpu.memory.take_staging()
            self._send()
        except DriverError:
            self.__exit__(DriverError)
            raise
        return self

    def _send(self) -> None:
        """What the kernel may read, which an array given as ``Out`` is not."""
        sent = []
        for low, high in _merged([buffer for buffer in self.host if buffer.direction != "out"]):
            start, _, offset, staged = self._range(low)
            if staged:
                ctypes.memmove(self.staging + offset + low - start, low, high - low)
                sent += [offset + low - start, offset + high - start]
            else:
                self._copy("HtoD", self.address + offset + low - start, low, high - low)
        if sent:
            self._copy("HtoD", self.address + min(sent), self.staging + min(sent), max(sent) - min(sent))

    def _copy(self, kind: str, to: int, source: int, nbytes: int) -> None:
        self.gpu.call(f"cuMemcpy{kind}Async", to, source, nbytes, self.stream)

    def moved(self, argument: Argument) -> Argument:
        """The argument as the GPU sees it."""
        if type(argument) is not Buffer or argument.device is not None:
            return argument
        if not argument.nbytes:
            return argument._replace(address=0)
        found = self._range(argument.address)
        return argument._replace(address=self.address + found.offset + argument.address - found.start)

    def _range(self, address: int) -> _Range:
        return next(each for each in self.ranges if each.start <= address < each.end)

    def fetch(self) -> None:
        """Wait for the kernel and copy back what it may have written."""
        back: list[tuple[int, int, int]] = []
        copies: list[tuple[int, int, int]] = []
        for buffer in self.host:
            stored = buffer.name in self.written if buffer.direction is None else buffer.direction != "in"
            if buffer.nbytes and buffer.writable and stored:
                found = self._range(buffer.address)
                offset = found.offset + buffer.address - found.start
                (back if found.staged else copies).append((buffer.address, offset, buffer.nbytes))
        if back:
            low, high = min(o for _, o, _ in back), max(o + n for _, o, n in back)
            self._copy("DtoH", self.staging + low, self.address + low, high - low)
        for address, offset, nbytes in copies:
            self._copy("DtoH", address, self.address + offset, nbytes)
        self.gpu.synchronize_stream(self.stream)
        for address, offset, nbytes in back:
            ctypes.memmove(address, self.staging + offset, nbytes)

    def __exit__(self, *exception: object) -> None:
        if self.address:
            self.gpu.memory.free_on(self.address, self.stream)
        if self.staging:
            self._return_staging(bool(exception and exception[0] is not None))

    def _return_staging(self, failed: bool) -> None:
        if failed:  # a copy may still be under way
            with suppress(DriverError):
                self.gpu.call("cuStreamSynchronize", self.stream)
        self.gpu.memory.return_staging(self.staging)


def _laid_out(host: Sequence[Buffer]) -> tuple[list[_Range], int, int]:
    """Where each range of host memory lies in the block, the size of that, and how much of its beginning is staged."""
    ranges: list[_Range] = []
    size = staged = 0
    for start, end in sorted(_merged(host), key=lambda span: span[1] - span[0]):
        small = end - start <= _SMALL and size + end - start <= STAGING
        ranges.append(_Range(start, end, size, small))
        size += end - start
        staged = size if small else staged
        size += -size % _ALIGNMENT
    return ranges, size, staged


def _merged(buffers: Sequence[Buffer]) -> list[tuple[int, int]]:
    """The ranges of memory that the buffers cover, those that overlap made one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((b.address, b.address + b.nbytes) for b in buffers if b.nbytes):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
