"""``PTXDSL_DEBUG=1``: a launch that faults on a GPU is made again on the emulator, which names the thread and the line.

Each launch is waited for, so that a fault is that launch's, and its arrays are copied before, since what they held is
lost with the context. What cannot be copied, as what tables of pointers point to, is said.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DriverError, EmulationError
from ..launch import Argument, Buffer, LaunchConfig, Scalar
from .device import Driver

if TYPE_CHECKING:
    from .loadable import Loadable

__all__ = ["repeated_on_fault"]


@contextmanager
def repeated_on_fault(
    gpu: Driver, kernel: Loadable, geometry: LaunchConfig, arguments: Sequence[Argument]
) -> Iterator[None]:
    """Around a launch: an error of its execution is told with what the emulator finds."""
    gpu.synchronize()
    copied = [_copied(gpu, argument) for argument in arguments]
    try:
        yield
        gpu.synchronize()
    except DriverError as error:
        if gpu.lost is None:
            raise
        missing = [a.name for a, copy in zip(arguments, copied) if copy is None]
        if missing:
            error.hint = f"the launch was not made again on the emulator: {', '.join(missing)} cannot be copied"
            raise
        _repeat(kernel, geometry, [copy for copy in copied if copy is not None], error)


def _copied(gpu: Driver, argument: Argument) -> Argument | None:
    """An argument with its memory as it is now, in host memory; None where that cannot be had."""
    if isinstance(argument, Scalar):
        return None if argument.targets else argument
    if not isinstance(argument, Buffer) or argument.targets:
        return None
    host = np.empty(argument.nbytes, np.uint8)
    if argument.device is None:
        ctypes.memmove(host.ctypes.data, argument.address, argument.nbytes)
    else:
        gpu.memory.to_host(host, argument.address)
    return argument._replace(address=host.ctypes.data, device=None, stream=None, owner=host)


def _repeat(kernel: Loadable, geometry: LaunchConfig, arguments: Sequence[Argument], error: DriverError) -> None:
    """Raise what the emulator finds, beside what the GPU said."""
    checked = replace(geometry, sanitize=frozenset(("memory", "init")), stream=None)
    try:
        kernel.run_on("emulator")(checked, arguments)
    except EmulationError as found:
        raise found from error
    error.hint = (
        "the same launch on the emulator finds nothing: races depend on the GPU's schedule, `seed=` tries others"
    )
    raise error
