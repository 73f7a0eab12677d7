"""The timeline of launches: what is recorded of them, when it happened by the model, as a table, a page and a trace."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..emulator.codegen.code import Code
from ..emulator.codegen.translation import translate
from ..emulator.program import load
from ..emulator.runtime.block_state import LaunchState
from ..emulator.runtime.launch import run
from ..emulator.runtime.tool import NO_TOOL
from ..emulator.tools.observer import Observer, probed
from ..emulator.tools.sampled_profile import waiting
from ..errors import LaunchError, caller
from ..options import checked_options
from ..forecasting.machines import Machine, machine
from ..isa.targets import TARGETS, assembled
from .costs import costs_of
from .model import schedule
from .page import page
from .perfetto import trace
from .recording import Recorder, Stops
from .result import LaunchTimeline, WarpTimeline, Waiting

__all__ = ["LaunchTimeline", "Waiting", "WarpTimeline", "timeline"]

_FIRST = 2
"""Blocks that are recorded where none are named, a cluster at least."""


class timeline(Observer):
    """Records when warps of its ``with`` block's launches run and wait, on the emulator, with a model of time.

    ``blocks`` are the blocks to record, each an int or an index of up to three; None for the first two. Of a cluster
    all blocks are recorded. ``gpu`` names the GPU whose latencies and rates the model takes (as of
    :func:`ptxdsl.forecast`), None for h200, or b200 where the kernel's target is sm_100 or later; ``limit`` is the
    number of events of a launch that are recorded at most. Times are in clocks. Who waits for whom, and in which order,
    is what the emulator did; how long is what the model says (docs/timeline.md).

    ``launches`` has a :class:`LaunchTimeline` for each launch; ``table()`` is text, ``html(path)`` a page that needs no
    other file, ``perfetto(path)`` a trace for ui.perfetto.dev. Raises LaunchError for a block that is not in the grid,
    for launches on a GPU, and where nothing was launched.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, f32, ptx, ptx_kernel, shared, timeline, use
    >>> @ptx_kernel
    ... def turn(x: Ptr[f32]):
    ...     tile = shared(f32, 64)
    ...     tile[ptx.tid.x] = x[ptx.tid.x]
    ...     ptx.bar.sync(0)
    ...     x[ptx.tid.x] = tile[63 - ptx.tid.x]
    >>> with use("emulator"), timeline() as t:
    ...     turn[1, 64](np.ones(64, np.float32))
    >>> [(warp.warp, warp.waiting > warp.busy) for warp in t.launches[0].warps]
    [(0, True), (1, True)]
    """

    what = "ptxdsl.timeline()"
    defers = True
    """Whether copies are complete when something waits for them, so that they stay instructions of their own."""

    @checked_options(LaunchError, "timeline")
    def __init__(
        self, blocks: int | Iterable[int | Sequence[int]] | None = None, *, gpu: str | Machine | None = None,
        limit: int = 200_000,
    ) -> None:
        super().__init__()
        self.blocks = None if blocks is None else [blocks] if isinstance(blocks, int) else list(blocks)
        if self.blocks is not None and not (self.blocks and all(map(_is_index, self.blocks))):
            raise LaunchError(
                f"blocks are the blocks to record, each an int or an index of up to 3 ints, not {blocks!r}",
                loc=caller(), hint="`blocks=[0, (3, 1)]`",
            )
        if type(limit) is not int or limit < 1:
            raise LaunchError(
                f"limit is the number of events to record at most, a positive int, not {limit!r}", loc=caller(),
                hint="`limit=200_000`",
            )
        self.machine, self.limit = None if gpu is None else machine(gpu), limit
        self._module: Any = None
        self._launches: list[LaunchTimeline] = []
        self._codes: dict[tuple[int, tuple[int, int, int], bool | None], Code] = {}
        """By the kernel, the shape of its block, and whether it is conservative; None for the one with stops."""

    @property
    def launches(self) -> list[LaunchTimeline]:
        """The launches, in their order."""
        if not self._launches:
            raise LaunchError(
                "no launch has come to its end within `with ptxdsl.timeline()`", loc=caller(),
                hint="`with ptxdsl.timeline() as t: kernel[grid, block](...)`",
            )
        return self._launches

    def launching(self, kernel: Any, constants: Mapping[str, Any], backend: str) -> None:
        super().launching(kernel, constants, backend)
        made = kernel.compiled(constants)
        self._module = load(made.text, made.module if made.foreign else None).module

    def run(self, launch: LaunchState) -> None:
        """Run a launch, record some of its blocks and find their times."""
        super().run(launch)
        gpu = self.machine or machine("b200" if TARGETS[assembled(self._module.target)].number >= 100 else "h200")
        chosen = self._chosen(launch)
        key = id(launch.spaces), launch.config.block, None
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = probed(launch.spaces, launch.config.block, Stops())
        recorder = Recorder(launch, code, chosen, self.limit)
        for first, end, records in _parts(launch, chosen):
            launch.limit(first, end)
            if records:
                launch.tool = recorder
                try:
                    run(launch, code, lambda _: code)
                finally:
                    launch.tool = NO_TOOL
            else:
                self._run_plain(launch)
            launch.forget()
        record = recorder.record
        costs = costs_of(record.statements, self._module, gpu)
        blocks = launch.config.blocks
        name = f"{record.kernel}[{_shape(record.grid)}, {_shape(record.block)}]"
        notes = [f"{len(chosen)} of {blocks:,} blocks"] if len(chosen) < blocks else []
        notes += [record.left_out] if record.left_out else []
        self._launches.append(LaunchTimeline(name, record, schedule(record, costs, gpu), gpu, notes))

    def _run_plain(self, launch: LaunchState) -> None:
        """Run blocks that nobody records, as fast as they go."""
        spaces, block = launch.spaces, launch.config.block

        def code(conservative: bool) -> Code:
            key = id(spaces), block, conservative
            if key not in self._codes:
                self._codes[key] = translate(spaces.function, spaces, block, conservative)
            return self._codes[key]

        run(launch, code(False), code)

    def _chosen(self, launch: LaunchState) -> list[int]:
        """The numbers of the blocks to record, whole clusters."""
        grid, shape = launch.config.grid, launch.spaces.cluster or (1, 1, 1)
        x, y, z = grid
        wanted: list[int] = []
        for given in self.blocks if self.blocks is not None else range(min(_FIRST, x * y * z)):
            index = (given % x, given // x % y, given // x // y) if isinstance(given, int) else (*given, 0, 0)[:3]
            if any(n >= extent for n, extent in zip(index, grid)):
                raise LaunchError(f"there is no block {given} in a grid of {grid}", loc=caller())
            first = [n // size * size for n, size in zip(index, shape)]
            wanted += [
                first[0] + i + x * (first[1] + j + y * (first[2] + k))
                for k in range(shape[2]) for j in range(shape[1]) for i in range(shape[0])
            ]
        return sorted(set(wanted))

    def table(self) -> str:
        """What each warp did and waited for, and what was waited at most, as text."""
        return "\n\n".join(str(launch) for launch in self.launches)

    __str__ = table

    def html(self, path: str | Path) -> None:
        """Write a page that needs no other file: a row a warp, what it did and waited for from left to right."""
        Path(path).write_text(page(self.launches), "utf-8")

    def perfetto(self, path: str | Path) -> None:
        """Write a trace in Chrome's trace-event format, which ui.perfetto.dev opens; a nanosecond there is a clock."""
        Path(path).write_text(trace(self.launches), "utf-8")

    def __repr__(self) -> str:
        return f"<timeline of {', '.join(launch.name for launch in self._launches) or 'nothing'}>"


def _is_index(given: Any) -> bool:
    parts = given if isinstance(given, (tuple, list)) else (given,)
    return 1 <= len(parts) <= 3 and all(type(n) is int and n >= 0 for n in parts)


def _shape(shape: tuple[int, int, int]) -> str:
    x, y, z = shape
    return str(x) if y == z == 1 else str((x, y)) if z == 1 else str(shape)


def _parts(launch: LaunchState, chosen: Sequence[int]) -> list[tuple[int, int, bool]]:
    """The parts of a launch in their order, blocks or clusters from and to, and whether they are recorded.

    Where blocks may wait for each other it is one part.
    """
    shape, grid = launch.spaces.cluster or (1, 1, 1), launch.config.grid
    (a, b, c), (x, y, _) = shape, grid
    units = math.prod(n // size for n, size in zip(grid, shape))
    if waiting(launch.spaces.function, launch.config) or launch.config.seed is not None:
        return [(0, units, True)]
    marked = sorted({n % x // a + x // a * (n // x % y // b + y // b * (n // x // y // c)) for n in chosen})
    parts, at = [], 0
    for unit in marked:
        if unit > at:
            parts.append((at, unit, False))
        parts.append((unit, unit + 1, True))
        at = unit + 1
    return [*parts, (at, units, False)] if at < units else parts
