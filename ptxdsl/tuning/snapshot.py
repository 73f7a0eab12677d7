"""The memory that a launch may write, kept as it was, so that each trial begins with it.

What a kernel writes is known from its instructions: arrays that it stores through, all that its tensor maps and
surfaces are of, and the variables of its module. What it reaches by an address in a number or in memory is not.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import DriverError
from ..kernel.compiled_kernel import CompiledKernel
from ..launch import Argument, Buffer, Scalar, TracksWrites
from ..launch.arrays import View
from ..launch.device_memory import DeviceMemory

__all__ = ["Memory", "Snapshot"]


class Memory(Protocol):
    """A GPU, as far as copies within its memory need it."""

    device: int
    """Its ordinal."""

    @property
    def memory(self) -> DeviceMemory:
        """Where the copies are."""

    def current(self) -> AbstractContextManager[None]:
        """The GPU's context is the thread's current one."""

    def call(self, function: str, /, *arguments: Any) -> Any:
        """A function of the driver."""


class _Region(NamedTuple):
    address: int
    nbytes: int
    on_device: bool


class Snapshot:
    """What a launch may write, as it is now; a context manager that gives its own memory back.

    ``gpu`` and ``stream`` are those of the launch, None on the emulator.
    """

    def __init__(
        self, kernel: CompiledKernel, arguments: Sequence[Argument], gpu: Memory | None, stream: int = 0
    ) -> None:
        self._gpu, self._stream = gpu, stream
        buffers = [*_written(kernel, arguments)]
        regions = {_Region(each.address, each.nbytes, each.device is not None) for each in buffers}
        regions |= {*_surfaces(arguments)} | {*_variables(kernel, None if gpu is None else gpu.device)}
        owners = [each.owner for each in buffers if isinstance(each.owner, TracksWrites)]
        self._unwritten = [(owner, owner.unwritten) for owner in owners]
        self._kept: list[tuple[_Region, Any]] = []
        try:
            for region in sorted(regions):
                if region.nbytes:
                    self._keep(region)
        except BaseException:
            self.__exit__()
            raise

    def _keep(self, region: _Region) -> None:
        if region.on_device:
            assert self._gpu is not None
            copy = self._gpu.memory.allocate(region.nbytes)
            self._kept.append((region, copy))
            self._move(copy, region.address, region.nbytes)
        else:
            self._kept.append((region, np.ctypeslib.as_array(_bytes(region)).copy()))  # `string_at` ends at 2 GiB

    def _move(self, to: int, source: int, nbytes: int) -> None:
        assert self._gpu is not None
        with self._gpu.current():
            self._gpu.call("cuMemcpyDtoDAsync", to, source, nbytes, self._stream)

    def restore(self) -> None:
        """Make the memory what it was; on a GPU behind what was submitted to the stream."""
        for region, copy in self._kept:
            if region.on_device:
                self._move(region.address, copy, region.nbytes)
            else:
                np.ctypeslib.as_array(_bytes(region))[:] = copy
        for owner, unwritten in self._unwritten:
            owner.unwritten = unwritten

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *exception: object) -> None:
        while self._kept:
            region, copy = self._kept.pop()
            if region.on_device:
                assert self._gpu is not None
                self._gpu.memory.free(copy)


def _bytes(region: _Region) -> ctypes.Array[ctypes.c_uint8]:
    return (ctypes.c_uint8 * region.nbytes).from_address(region.address)


def _written(kernel: CompiledKernel, arguments: Sequence[Argument]) -> Iterator[Buffer]:
    for argument in arguments:
        if isinstance(argument, Buffer):
            if argument.name in kernel.written or argument.direction in ("out", "inout"):
                yield argument
            if f"{argument.name}[]" in kernel.written:
                yield from argument.targets
        elif isinstance(argument, Scalar):
            yield from (target for target in argument.targets if target.writable)


def _surfaces(arguments: Sequence[Argument]) -> Iterator[_Region]:
    for argument in arguments:
        owner = getattr(argument, "owner", None)
        if getattr(owner, "image_kind", None) == "surface":
            yield from (_extent(array) for array in getattr(owner, "arrays", ()))


def _extent(array: View) -> _Region:
    last = sum((n - 1) * step for n, step in zip(array.shape, array.strides))
    return _Region(array.address, last + array.itemsize if math.prod(array.shape) else 0, array.device is not None)


def _variables(kernel: CompiledKernel, device: int | None) -> Iterator[_Region]:
    for variable in kernel.module.variables:
        if variable.space == "global" and variable.type.kind != "o" and variable.linkage != "extern":
            try:
                yield _Region(kernel.variable(variable.name, device), variable.nbytes, device is not None)
            except DriverError as error:  # the assembler leaves out what nothing uses
                if error.name != "CUDA_ERROR_NOT_FOUND":
                    raise
