"""What a trial costs: seconds on a GPU; on the emulator the work that it counts, which is the same each time.

The time of the emulator says nothing about that of a GPU, and differs from run to run: a kernel that is tuned by it
would be another one each time. What the profiler counts says something, at least, and chooses the same on each machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Protocol

import numpy as np

from .. import config as settings
from ..bench.timing import do_bench
from ..errors import LaunchError, PtxError, caller
from ..kernel.compiled_kernel import CompiledKernel
from ..kernel.device_arrays import DeviceArray
from ..launch import Argument, Buffer, LaunchConfig
from ..launch.captures import captures, current_stream
from ..launch.directions import In
from .config import Config
from .progress import Progress
from .results import Trial
from .snapshot import Memory, Snapshot

__all__ = ["EmulatorMeasure", "GpuMeasure", "Measure"]


class Measure(Protocol):
    """What makes the trials of one tuning."""

    where: str
    unit: str
    identity: tuple[str, ...]
    """What of the machine the costs depend on."""

    def arguments(self, args: tuple[object, ...]) -> tuple[object, ...]:
        """The arguments as trials take them."""

    def prepare(self, kernels: Sequence[CompiledKernel], progress: Progress) -> None:
        """Do together what can be done for all kernels at once; what fails then, fails again in the trial."""

    def snapshot(self, kernel: CompiledKernel, arguments: Sequence[Argument]) -> Snapshot:
        """The memory that trials may write."""

    def trial(self, config: Config, run: Callable[[], object], memory: Snapshot) -> Trial:
        """Run a configuration, and say what it costs."""


class EmulatorMeasure:
    """Counts warp instructions, sectors of global memory and wavefronts of shared memory, of a single run."""

    where, unit = "emulator", "work"
    identity: tuple[str, ...] = ("emulator",)

    def __init__(self, geometry: LaunchConfig, kernel: str) -> None:
        self._stream, self._kernel = current_stream(geometry, None), kernel

    def arguments(self, args: tuple[object, ...]) -> tuple[object, ...]:
        """The arguments themselves."""
        return args

    def prepare(self, kernels: Sequence[CompiledKernel], progress: Progress) -> None:  # noqa: ARG002
        """Nothing is assembled. LaunchError while launches are recorded in a graph, and none runs."""
        if self._stream in captures:
            raise _captured(self._kernel)

    def snapshot(self, kernel: CompiledKernel, arguments: Sequence[Argument]) -> Snapshot:
        """The host memory that trials may write."""
        return Snapshot(kernel, arguments, None)

    def trial(self, config: Config, run: Callable[[], object], memory: Snapshot) -> Trial:
        """Run once under the profiler, on one thread: what waits for other blocks counts the same each time."""
        from ..emulator.tools.profile import profile

        memory.restore()
        observer = settings.observer.set(None)
        try:
            with settings.override(emulator_threads=1, seed=None, sanitize="off"), profile() as counted:
                run()
        finally:
            settings.observer.reset(observer)
        total = counted.totals
        return Trial.counted(config, total.executions + total.global_sectors + total.shared_wavefronts)


class GpuMeasure:
    """Takes times on the GPU that has the arrays, on the stream of the launch."""

    unit = "s"

    def __init__(self, arguments: Sequence[Argument], geometry: LaunchConfig, seconds: float, kernel: str) -> None:
        from ..gpu.device import driver
        from ..gpu.library_streams import stream_of

        placed = [argument for argument in arguments if isinstance(argument, Buffer) and argument.device is not None]
        self._gpu: Any = driver(placed[0].device or 0 if placed else settings.current().launch_device)
        stream = current_stream(geometry, self._gpu.device)
        if stream is None:
            known = (stream_of(each.owner, self._gpu.device) for each in placed)
            library = next((each for each in known if each), None)
            stream = library() if library else 0
        self._stream = stream
        self._seconds, self._kernel, self.where = seconds, kernel, self._gpu.name
        self.identity: tuple[str, ...] = (self.where, str(self._gpu.call("cuDriverGetVersion")))

    def arguments(self, args: tuple[object, ...]) -> tuple[object, ...]:
        """The arguments, with copies on the GPU of numpy's arrays: what is compared is the kernel, not the copies."""
        return tuple(self._placed(value) for value in args)

    def _placed(self, value: object) -> object:
        array = value.array if isinstance(value, In) else value
        if type(array) is not np.ndarray or not array.flags.c_contiguous:
            return value
        copy = DeviceArray(array.shape, array.dtype, self._gpu.memory)
        copy.copy_from(array)
        return copy

    def prepare(self, kernels: Sequence[CompiledKernel], progress: Progress) -> None:
        """Assemble on all cores. LaunchError while the stream is captured into a graph, in which nothing runs."""
        if self._gpu.captures(self._stream):
            raise _captured(self._kernel)
        different = {id(kernel): kernel for kernel in kernels}.values()
        progress.note(f"assembling {len(different)} kernels")

        def assemble(kernel: CompiledKernel) -> None:
            with suppress(PtxError):
                kernel.assembled(self._gpu.target(kernel.module.target))

        with ThreadPoolExecutor() as pool:  # with the settings that are in force here
            for waiting in [pool.submit(copy_context().run, assemble, kernel) for kernel in different]:
                waiting.result()

    def snapshot(self, kernel: CompiledKernel, arguments: Sequence[Argument]) -> Snapshot:
        """The memory that trials may write, copied on the GPU."""
        gpu: Memory = self._gpu
        return Snapshot(kernel, arguments, gpu, self._stream)

    def trial(self, config: Config, run: Callable[[], object], memory: Snapshot) -> Trial:
        """The times of many runs, each with the memory that the first one found and a cold cache."""
        return Trial.measured(config, do_bench(
            run, seconds=self._seconds, reset=memory.restore, stream=self._stream, device=self._gpu.device,
            backend="gpu",
        ))


def _captured(kernel: str) -> LaunchError:
    return LaunchError(
        f"kernel `{kernel}` has to be tuned for this launch, and its stream is captured into a graph", loc=caller(),
        hint="before the capture: `kernel[grid].tune(...)` with these arguments",
    )
