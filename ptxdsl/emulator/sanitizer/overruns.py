"""Accesses out of bounds under the sanitizer: each is reported once, then goes nowhere; one launch shows several.

A load gives zeros, a store and an atomic operation change nothing but a sink. What follows from a zero may be wrong
too, so the launch goes on for a while only: the first finding is the one to mend.
"""

from __future__ import annotations

import ctypes
import struct
from time import perf_counter
from typing import Any

import numpy as np

from ...errors import EmulationError, MemoryFault
from ..instructions.addresses import AccessFlags, WithAddress
from ..machine.allocation import number_at
from ..machine.layout import LANES, SINK_BYTES, Block, Fault
from ..runtime.block_state import BlockState
from ..runtime.faults import failure
from .findings import Access, Finding
from .report import Reporter

__all__ = ["Overruns"]

MOST = 32
"""Accesses of a kernel that are reported."""
SECONDS = 2.0
"""How long a launch may go on after the first."""


class Overruns:
    """Those of one launch."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.first: EmulationError | None = None
        self._sink = np.zeros(LANES * SINK_BYTES + 64, np.uint8)
        self._count, self._until = 0, 0.0
        self._marked: list[tuple[int, int]] = []

    def attach(self, state: BlockState) -> None:
        start = self._sink.ctypes.data
        state.put(Block.SINK, "Q", start + -start % 64)

    def check_time(self) -> None:
        """Raise the first once the launch has gone on for too long."""
        if self.first is not None and perf_counter() > self._until:
            raise self.first

    def passes(self, state: BlockState) -> bool:
        """Note the fault of a state, if it is one that can be passed over: the access is made again, on the sink."""
        if Fault(state.get(Block.FAULT_KIND, "i")) not in (Fault.MEMORY, Fault.ALIGNMENT) or self._count == MOST:
            return False
        pc = state.get(Block.FAULT_PC, "Q")
        if not isinstance(state.code.op_at(pc), WithAddress):
            return False
        error = failure(state)
        if not isinstance(error, MemoryFault) or error.block is None or error.thread is None:
            return False
        if self.first is None:
            self.first, self._until = error, perf_counter() + SECONDS
        self._count += 1
        access = Access("access", error.block, error.thread, error.loc, error.ptx_line, error.instruction)
        self.reporter.fault(Finding("memory", error.message, access, hint=error.hint))
        self._sink[:] = 0
        self._mark(state, state.code.statement_at(pc))
        warp = state.get(Block.FAULT_WARP, "i")
        state.put(Block.CURRENT, "I", warp - 1 & 31)
        state.put(Block.STAY, "I", 1)
        return True

    def _mark(self, state: BlockState, statement: int) -> None:
        code: Any = state.code
        for placed, offset, owner in zip(code.micro_ops, code.offsets, code.statements):
            if owner == statement and isinstance(placed.op, WithAddress):
                place = code.base + offset + 8
                flags = number_at(place, 4)
                self._marked.append((place, flags))
                ctypes.memmove(place, struct.pack("<I", flags | AccessFlags.PASSES), 4)

    def release(self) -> None:
        """Let the accesses fault again."""
        for place, flags in reversed(self._marked):
            ctypes.memmove(place, struct.pack("<I", flags), 4)
