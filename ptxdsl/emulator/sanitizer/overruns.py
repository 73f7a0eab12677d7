"""Accesses out of bounds under the sanitizer: each is reported once, then goes nowhere; one launch shows several.

A load gives zeros, a store and an atomic operation change nothing but a sink. What follows from a zero may be wrong
too, so the launch goes on for a while only: the first finding is the one to mend. Operations on mbarriers and bulk
copies cannot go nowhere: they end the launch, which tells of the finding alone.

An index that is outside of its dimension, where the element that it leads to is in the array (:mod:`.index_checks` of
the rewriting passes), is reported too, and that access goes where it leads.
"""

from __future__ import annotations

import ctypes
import struct
from time import perf_counter
from typing import Any, Literal

import numpy as np

from ...errors import EmulationError, MemoryFault
from ..codegen.code import Code
from ..instructions.addresses import AccessFlags, WithAddress
from ..machine.allocation import number_at
from ..machine.layout import LANES, SINK_BYTES, Block
from ..machine.status import Fault
from ...ir import Indexed, Instruction, Symbol
from ..machine.unsupported import render
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.tool import Tool
from ..runtime.faults import Scene, failure
from .findings import Access, Finding, raised
from .report import Reporter, collected

__all__ = ["BoundsOnly", "Overruns"]

MOST = 32
"""Accesses of a kernel that are reported."""
SECONDS = 2.0
"""How long a launch may go on after the first."""


class Overruns:
    """Those of one launch."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.first: EmulationError | None = None
        self._sinks: dict[int, Any] = {}
        self._count, self._until = 0, 0.0
        self._marked: list[tuple[int, int]] = []
        self._asked: set[int] = set()
        """The numbers of the checks of indices that have failed."""
        self._passing: set[tuple[Code, int]] = set()
        """The accesses that are passed over; another host thread may have come to one before it was."""
        self._passed: set[tuple[int, int, Code, int]] = set()
        """Those of each block and warp."""
        self._outside: set[int] = set()
        """The accesses that they are of."""

    def attach(self, state: BlockState) -> None:
        sink = self._sinks[state.address] = np.zeros(LANES * SINK_BYTES + 64, np.uint8)
        start = sink.ctypes.data
        state.put(Block.SINK, "Q", start + -start % 64)

    def attach_again(self, state: BlockState) -> None:
        """A block state of an earlier launch, which may be one that was followed here."""
        if state.address not in self._sinks:
            self.attach(state)

    def check_time(self) -> None:
        """Raise the first once the launch has gone on for too long."""
        if self.first is not None and perf_counter() > self._until:
            raise self.first

    def passes(self, state: BlockState) -> bool:
        """Note the fault of a state, if it is one that can be passed over: the access is made again, on the sink."""
        if Fault(state.get(Block.FAULT_KIND, "i")) not in (Fault.MEMORY, Fault.ALIGNMENT):
            return False
        pc = state.get(Block.FAULT_PC, "Q")
        place, warp = (state.code, state.code.statement_at(pc)), state.get(Block.FAULT_WARP, "i")
        if (state.block, warp, *place) in self._passed:  # it takes no sink
            return False
        if place not in self._passing and not self._note(state, pc):
            return False
        self._passed.add((state.block, warp, *place))
        for sink in list(self._sinks.values()):  # another host thread may attach a state
            sink[:] = 0
        if place not in self._passing:
            self._passing.add(place)
            self._mark(*place)
        state.put(Block.CURRENT, "I", warp - 1 & 31)
        state.put(Block.STAY, "I", 1)
        return True

    def _note(self, state: BlockState, pc: int) -> bool:
        """Note a fault, unless it cannot be passed over."""
        if self._count == MOST or not isinstance(state.code.op_at(pc), WithAddress):
            return False
        error = failure(state)
        if not isinstance(error, MemoryFault) or error.block is None or error.thread is None:
            return False
        self._begin(error)
        self._count += 1
        if state.code.statement_at(pc) not in self._outside:
            access = Access("access", error.block, error.thread, error.loc, error.ptx_line, error.instruction)
            self.reporter.fault(Finding("memory", error.message, access, hint=error.hint))
        return True

    def _begin(self, error: EmulationError) -> None:
        """From the first finding on the time runs."""
        if self.first is None:
            self.first, self._until = error, perf_counter() + SECONDS

    def outside(self, state: BlockState, pc: int, thread: tuple[int, int], number: int, indices: list[int]) -> None:
        """Note that a thread asks for an element outside of its array."""
        statements = state.code.graph.statements
        place = state.code.statement_at(pc)
        place = next(n for n in range(place, len(statements)) if _accesses(statements[n]))
        self._outside.add(place)
        if number in self._asked:
            return
        self._asked.add(number)
        scene = Scene(state, *thread, pc)
        scene.statement = statements[place]
        asked = state.launch.spaces.asked[number]
        error = scene.raised(MemoryFault, *_outside(scene, asked, indices))
        self._begin(error)
        assert error.block is not None and error.thread is not None
        access = Access("access", error.block, error.thread, error.loc, error.ptx_line, render(scene.statement))
        self.reporter.fault(Finding("memory", error.message, access, hint=error.hint))

    def _mark(self, code: Code, statement: int) -> None:
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


class BoundsOnly(Tool[BlockState]):
    """The sanitizer of a launch that asks for no more than bounds: it needs no shadow memory."""

    checks: Literal["memory"] = "memory"
    in_order = keeps = compiled_turns = True

    def __init__(self, launch: LaunchState) -> None:
        self.reporter = Reporter(launch, None, ("memory",))
        self.overruns = Overruns(self.reporter)

    def attach(self, state: BlockState) -> None:
        self.overruns.attach(state)

    def again(self, states: list[BlockState]) -> None:
        for state in states:
            self.overruns.attach_again(state)

    def leaves_nothing(self) -> bool:
        """Whether nothing was found."""
        return self.overruns.first is None and not self.reporter.findings

    is_as_new = leaves_nothing

    def switch(self, state: BlockState) -> None:  # noqa: ARG002
        self.overruns.check_time()

    entered = switch

    def passes(self, state: BlockState) -> bool:
        return self.overruns.passes(state)

    def outside(self, state: BlockState, pc: int, thread: tuple[int, int], number: int, indices: list[int]) -> None:
        self.overruns.outside(state, pc, thread, number, indices)

    def release(self) -> None:
        """Let the accesses fault again."""
        self.overruns.release()

    def finish(self, fault: EmulationError | None = None) -> None:
        """Raise the first finding, if there is one, else ``fault``."""
        finish(self.reporter, fault)


def finish(reporter: Reporter, fault: EmulationError | None) -> None:
    """Raise the first finding of a launch, if there is one, else ``fault``, which ended the kernel early."""
    findings = reporter.bugs()
    if fault is not None and any(_is_told(fault, each) for each in findings):
        fault = None
    into = collected.get()
    if into is not None:
        into.extend(findings)
    elif findings:
        raise raised(findings) from fault
    if fault is not None:
        raise fault


def _is_told(fault: EmulationError, finding: Finding) -> bool:
    """Whether a fault is of an access out of bounds that was found."""
    access = finding.access
    here = access.block, access.thread, access.loc, access.ptx_line
    return finding.kind == "memory" and here == (fault.block, fault.thread, fault.loc, fault.ptx_line)


def _accesses(statement: Any) -> bool:
    """Whether a statement is the access that a check stands before."""
    form = statement.form if isinstance(statement, Instruction) else None
    return form is not None and bool(form.effects.accesses) and form.space != "param"


def _outside(scene: Scene, asked: Indexed, indices: list[int]) -> tuple[str, str | None]:
    """What is wrong with indices, and the hint."""
    shape = [_extent(scene, extent) for extent in asked.shape]
    access = scene.statement.form.effects.accesses[0]
    vector = access.kind == "elements" and not (access.reads and access.writes)
    width = max(1, (access.nbytes or 1) // asked.type.bytes) if vector else 1
    signed = [_signed(asked, axis, index) for axis, index in enumerate(indices)]
    widths = [1] * (len(indices) - 1) + [width]
    axis = next(n for n, (i, e) in enumerate(zip(signed, shape)) if not 0 <= i <= e - widths[n])
    verb = "load from" if not access.writes else "atomic operation on" if access.reads else "store to"
    verb = verb if width == 1 else f"{verb.split(maxsplit=1)[0]} of {width} elements {verb.rsplit(maxsplit=1)[-1]}"
    element = f"{asked.array}[{', '.join(map(str, signed))}]"
    what = f"{asked.type}[{', '.join(map(str, shape))}]"
    index = signed[axis]
    span = f"{index} to {index + width - 1}" if widths[axis] > 1 else str(index)
    message = f"{verb} {element}: {asked.array} is {what}, and {span} is outside of dimension {axis}"
    if 0 < (1 << 32) - index <= 1 << 20:
        return message, f"{index} is {index - (1 << 32)} as a u32: the index went below 0"
    return message, None


def _signed(asked: Indexed, axis: int, index: int) -> int:
    kind = getattr(asked.indices[axis], "type", None)
    return index - (1 << kind.bits) if kind is not None and kind.is_signed and index >> (kind.bits - 1) else index


def _extent(scene: Scene, extent: int | Symbol) -> int:
    if isinstance(extent, int):
        return extent
    launch = scene.state.launch
    return number_at(launch.parameters + launch.spaces.offsets[extent.symbol], 4)
