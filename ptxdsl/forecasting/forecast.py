"""Forecasts of launches: the emulator counts, the assembler's code weighs, the description of a GPU says how long.

The launches are made on the emulator, of large ones some blocks; so a forecast needs no GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from ..config import use
from ..emulator.machine.allocation import copy_bytes
from ..emulator.runtime.block_state import LaunchState
from ..emulator.tools.sampled_profile import SampledLaunch, SampledProfile
from ..errors import LaunchError, caller
from ..gpu.occupancy import Occupancy, occupancy
from ..gpu.tools import NoAssembler
from ..isa.targets import assembled
from .bounds import Work, bounds
from .machines import Machine, machine
from .result import Forecast, KernelForecast
from .sass import Kernel, assembled_kernel

__all__ = ["Forecast", "forecast", "of_launch"]


class forecast(SampledProfile, Forecast):
    """Says how long the launches of its ``with`` block would take on a GPU, and why; they run on the emulator.

    ``gpu`` is a name of :data:`ptxdsl.forecasting.machines.MACHINES` or a ``Machine``, ``clock`` another clock in MHz.
    ``sample`` is how many blocks of the middle of a grid are run: 0 for all, None for 8 where there are many more. The
    arrays then hold what these blocks have written. ``launches`` has a :class:`KernelForecast` for each launch;
    ``print(f)`` is a table, ``f.plot(path)`` a picture, ``f.to_dict()`` for JSON. Memory is taken to be cold: nothing
    is in the L2 cache when a launch begins. Raises LaunchError for a GPU that is not known, for launches on a GPU and
    for blocks that a multiprocessor has no room for; AssembleError where the kernel is no code for the GPU's target.

    >>> from ptxdsl import Ptr, f32, ptx, ptx_kernel, use
    >>> @ptx_kernel
    ... def double(x: Ptr[f32]):
    ...     i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ...     x[i] = x[i] + x[i]
    >>> x = np.ones(1 << 24, np.float32)
    >>> with use("emulator"), forecast(gpu="h200") as f:
    ...     double[1 << 16, 256](x)
    >>> f.launches[0].binding.kind, f.launches[0].blocks_run < 20
    ('memory', True)
    """

    def __init__(self, gpu: str | Machine = "h200", *, clock: int | None = None, sample: int | None = None) -> None:
        if sample is not None and not (type(sample) is int and sample >= 0):
            raise LaunchError(
                f"sample is a number of blocks, 0 for all of them, not {sample!r}", loc=caller(), hint="`sample=8`"
            )
        SampledProfile.__init__(self, sample, self._together, self._done)
        Forecast.__init__(self, machine(gpu, clock))
        self.restores = False
        self._launched: Any = None
        self._kernel: Kernel | None = None
        self._occupancy: Occupancy | None = None

    def launching(self, kernel: Any, constants: Mapping[str, Any], backend: str) -> None:
        super().launching(kernel, constants, backend)
        self._launched = kernel.compiled(constants)

    def run(self, launch: LaunchState) -> None:
        """Run some blocks of a launch and append its forecast."""
        saved = self._written(launch) if self.restores else {}
        try:
            super().run(launch)
        finally:
            for place, content in saved.items():
                copy_bytes(place, content, len(content))

    def _written(self, launch: LaunchState) -> dict[int, bytes]:
        """What the arrays hold that the kernel may write, by where it lies."""
        return {
            area.place: ctypes.string_at(area.place, area.nbytes)
            for area in launch.ranges
            if area is not None and area.writable and not (area.shared or area.heap) and area.spaces & 1
            and (area.name in self._launched.written or self._launched.foreign)
        }

    def _together(self, launch: LaunchState) -> int:
        """How many units of a launch the GPU has room for; assembles the kernel."""
        config, made = launch.config, self._launched
        lines = frozenset(s.line for s in launch.spaces.function.instructions())
        target = self.machine.target
        try:
            self._kernel = assembled_kernel(made.text, made.entry, target, lines)
        except NoAssembler:
            self._kernel = None
        shared = config.shared
        if self._kernel is not None:
            self._occupancy = occupancy(self._kernel.attributes, assembled(target), config.threads, shared)
        else:
            static, _ = made.shared
            self._occupancy = Occupancy(target, config.threads, 0, static + shared, 0)
        if not self._occupancy.blocks:
            limited = " and ".join(self._occupancy.limited_by)
            raise LaunchError(
                f"a multiprocessor of {self.machine.name} has no room for a block of kernel `{made.entry}`: {limited}",
                loc=caller(), hint="fewer threads a block, or less shared memory",
            )
        x, y, z = launch.spaces.cluster or (1, 1, 1)
        return max(1, self.machine.multiprocessors * self._occupancy.blocks // (x * y * z))

    def _done(self, launch: SampledLaunch) -> None:
        assert self._occupancy is not None
        work = Work(launch, self._kernel, self.machine, self._occupancy)
        found = tuple(bounds(work))
        latency = next(bound.seconds for bound in found if bound.kind == "latency")
        attributes = self._kernel.attributes if self._kernel is not None else None
        self.launches.append(KernelForecast(
            launch.function.name, launch.config.grid, launch.config.block, self.machine, found,
            self._occupancy.fraction, attributes.num_regs if attributes else 0,
            attributes.spill_store_bytes if attributes else 0, launch.config.blocks, launch.blocks_run, launch.spread,
            work.in_flight(latency), tuple(_caveats(launch, self._kernel)),
        ))

    def __repr__(self) -> str:
        return Forecast.__repr__(self)


def _caveats(launch: SampledLaunch, kernel: Kernel | None) -> list[str]:
    found = []
    if launch.whole:
        found.append(f"all blocks were run: {launch.whole}; how long they wait for each other is not modelled")
    elif launch.blocks_run < launch.config.blocks:
        found.append(f"counted on {launch.blocks_run} of {launch.config.blocks:,} blocks")
    if launch.spread > 0.02:
        found.append(
            f"these blocks differ (standard error of the counts {launch.spread:.0%}): data or place decide what they "
            "do; `sample=0` runs all"
        )
    if kernel is None:
        found.append("no ptxas was found: instructions and latencies are those of the PTX, registers are not known")
    elif not kernel.segments:
        found.append("no nvdisasm was found: instructions and latencies are those of the PTX")
    return found


def of_launch(
    launch: Any, args: tuple[object, ...], named: Mapping[str, Any], gpu: str | Machine, clock: int | None,
    sample: int | None,
) -> Forecast:
    """The forecast of one launch, which leaves its arguments as they are."""
    found = forecast(gpu, clock=clock, sample=sample)
    found.restores = True
    with use("emulator"), found:
        launch(*args, **named)
    return found
