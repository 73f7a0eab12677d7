"""Host arrays as arguments of a kernel on the GPU: copied there for one launch, and back what was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import DriverError
from ..launch import Argument, Buffer
from ..launch.captures import refuse_host_arrays
from .device import Driver

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["HostCopies"]


class HostCopies:
    """The host arrays of one launch, on the GPU for its duration.

    Arrays that overlap are copied as one range of memory, so that in-place and aliased arguments stay what they are.
    Only what the kernel may write is copied back.
    """

    def __init__(
        self, gpu: Driver, stream: int, host: Sequence[Buffer], entry: str, written: frozenset[str]
    ) -> None:
        self.gpu, self.stream, self.host, self.entry, self.written = gpu, stream, host, entry, written
        self.ranges: list[tuple[int, int, int]] = []

    def __enter__(self) -> Self:
        if self.gpu.captures(self.stream):
            refuse_host_arrays(self.entry, self.host)
        try:
            read = _merged([buffer for buffer in self.host if buffer.direction != "out"])
            for start, end in _merged(self.host):
                address = self.gpu.allocate(end - start)
                self.ranges.append((start, end, address))
                for low, high in read:
                    if start <= low < end:
                        self.gpu.call("cuMemcpyHtoDAsync", address + low - start, low, high - low, self.stream)
        except DriverError:
            self.__exit__()
            raise
        return self

    def moved(self, argument: Argument) -> Argument:
        """The argument as the GPU sees it."""
        if type(argument) is not Buffer or argument.device is not None:
            return argument
        for start, end, address in self.ranges:
            if start <= argument.address < end:
                return argument._replace(address=address + argument.address - start)
        return argument._replace(address=0)

    def fetch(self) -> None:
        """Wait for the kernel and copy back what it may have written."""
        for buffer in self.host:
            moved = self.moved(buffer)
            back = buffer.name in self.written if buffer.direction is None else buffer.direction != "in"
            if buffer.nbytes and buffer.writable and back:
                assert isinstance(moved, Buffer)
                self.gpu.call("cuMemcpyDtoHAsync", buffer.address, moved.address, buffer.nbytes, self.stream)
        self.gpu.call("cuStreamSynchronize", self.stream)
        self.gpu.in_flight.clear(self.stream)

    def __exit__(self, *exception: object) -> None:
        for _, _, address in self.ranges:
            self.gpu.free(address)


def _merged(buffers: Sequence[Buffer]) -> list[tuple[int, int]]:
    """The ranges of memory that the buffers cover, those that overlap made one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((b.address, b.address + b.nbytes) for b in buffers if b.nbytes):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
