"""The profiler: what each line and each instruction did, counted while the emulator runs.

The emulator sees every address and every mask, so these are no samples: they are the numbers that Nsight Compute's
source view approximates, in the same units (warp instructions, 32-byte sectors, requests, wavefronts). They are those
of the PTX; the assembler may still merge or reorder its instructions.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np

from ... import locks
from ...errors import LaunchError
from ...ir import Address, Call, Instruction
from ...options import checked_options
from ..instructions.instrumentation import CountBranch, CountExecution, CountMemory
from ..codegen.code import Code
from ..instructions.lowering import Lowering
from ..instructions.operands import NOTHING, Field, raw
from ..machine.address_spaces import AddressSpaces
from ..machine.allocation import address_of
from ..machine.layout import Block
from ..machine.status import Count
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.tool import NO_TOOL, Tool
from ..runtime.launch import run
from .counters import counted_access
from .observer import Observer, probed
from .profile_data import KernelProfile, ProfileData

__all__ = ["SPACES", "Counting", "profile"]

SPACES = ("global", "shared", "local", "generic")


class Counting(KernelProfile):
    """A kernel whose launches are counted."""

    def __init__(self, spaces: AddressSpaces) -> None:
        super().__init__(spaces.function)
        self.spaces = spaces
        self._codes: dict[tuple[int, int, int], Code] = {}

    def code(self, block: tuple[int, int, int]) -> Code:
        found = self._codes.get(block)
        if found is None:
            found = self._codes[block] = probed(self.spaces, block, self)
        return found

    def _row(self, low: Lowering) -> Field:
        """The address of a statement's counts."""
        counts = self.allocate(low.graph.statements)
        return raw("q", counts.ctypes.data + 8 * Count.COLUMNS * low.place)

    def before(self, low: Lowering, statement: Instruction | Call) -> None:
        row, guard = self._row(low), low.operands.guard(statement)
        if isinstance(statement, Call):
            low.emit(CountExecution(guard.kind), guard, row)
            return
        form, effects = statement.form, statement.form.effects
        access = counted_access(form)
        if effects.branches:
            indexed = effects.control == "indexed_branch"
            index = low.operands.source(statement.operands[0], 32, False) if indexed else NOTHING
            low.emit(CountBranch(guard.kind, index.kind), guard, index, row)
        elif access is not None and access.space in SPACES:
            operand = statement.operands[access.operand]
            assert isinstance(operand, Address)
            kind, _, address = low.address(statement, operand, access.nbytes, False)
            exclusive = bool(effects.atomic)
            low.emit(CountMemory(access.space, kind, access.nbytes, exclusive, guard.kind), address, guard, row)
        elif not effects.collective:
            low.emit(CountExecution(guard.kind), guard, row)

    def after(self, low: Lowering, statement: Instruction | Call) -> None:
        """Where lanes wait for others they start the instruction again, so it is counted when they are done."""
        if isinstance(statement, Instruction) and statement.form.effects.collective:
            guard = low.operands.guard(statement)
            low.emit(CountExecution(guard.kind), guard, self._row(low))


class _Counts(Tool[BlockState]):
    """The counts of one launch: each host thread has its own, until they are added to the kernel's."""

    compiled_turns = True  # the states of a cluster stay with the thread that has made them
    _lock = locks.lock()

    def __init__(self, counts: np.ndarray[Any, Any]) -> None:
        self._counts = counts
        self._by_thread: dict[int, np.ndarray[Any, Any]] = {}

    def attach(self, state: BlockState) -> None:
        self.switch(state)

    def switch(self, state: BlockState) -> None:
        thread = threading.get_ident()
        mine = self._by_thread.get(thread)
        if mine is None:
            mine = self._by_thread[thread] = np.zeros_like(self._counts)
        state.put(Block.COUNTERS, "Q", (address_of(mine) - address_of(self._counts)) % (1 << 64))

    def add_up(self) -> None:
        with self._lock:
            for counts in self._by_thread.values():
                self._counts += counts


class profile(Observer, ProfileData):
    """Counts what the launches of its ``with`` block do, per Python line and per PTX instruction, on the emulator.

    ``lines``, ``instructions`` and ``totals`` hold the counters, ``table()`` is a table of them as text, ``plot(path)``
    draws a picture, ``html(path)`` writes a page with source, PTX and counters. Launches of one kernel add up. Raises
    LaunchError where a kernel is launched on a GPU.

    >>> from ptxdsl import Ptr, f32, profile, ptx, ptx_kernel, u32, use, when
    >>> @ptx_kernel
    ... def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]):
    ...     i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ...     with when(i < n):
    ...         y[i] = a * x[i] + y[i]
    >>> x, y = np.ones(1024, np.float32), np.ones(1024, np.float32)
    >>> with use("emulator"), profile() as p:
    ...     saxpy[4, 256](1024, 3.0, x, y)
    >>> p.totals.sectors_per_request, p.totals.flops, round(p.totals.intensity, 3)
    (4.0, {'f32': 2048}, 0.167)
    """

    what = "ptxdsl.profile()"

    @checked_options(LaunchError, "profile")
    def __init__(self) -> None:
        Observer.__init__(self)
        ProfileData.__init__(self)
        self._counting: dict[int, Counting] = {}

    def run(self, launch: LaunchState) -> None:
        """Run a launch and count what it does."""
        super().run(launch)
        kernel = self._counting.get(id(launch.spaces))
        if kernel is None:
            kernel = self._counting[id(launch.spaces)] = self._kernels[id(launch.spaces)] = Counting(launch.spaces)
        kernel.launches += 1
        code = kernel.code(launch.config.block)
        launch.tool = counts = _Counts(kernel.allocate(code.graph.statements))
        try:
            run(launch, code, lambda _: code, alone=False)
        finally:
            launch.tool = NO_TOOL  # which keeps the counts
            counts.add_up()

    def table(self, by: str = "line", sort: str = "share", limit: int | None = None) -> str:
        """The counters as text: ``by`` "line" or "instruction", ``sort`` "share" or "source", the first ``limit``."""
        from .profile_table import table

        return table(self, by, sort, limit)

    def plot(self, path: str | Path) -> None:
        """Draw the lines and where their work lies: a picture in PNG; PtxError for a name that promises another."""
        from .profile_plot import plot

        plot(self, Path(path))

    def html(self, path: str | Path) -> None:
        """Write a page, complete in itself: source, PTX and counters side by side."""
        from .profile_page import page

        Path(path).write_text(page(self), "utf-8")

    def _repr_html_(self) -> str:
        from .profile_page import display

        return display(self)

    def __repr__(self) -> str:
        return f"<profile of {', '.join(f'{name} ({count}x)' for name, count in self.launches.items()) or 'nothing'}>"
