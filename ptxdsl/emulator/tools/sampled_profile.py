"""What a launch does, from some of its blocks: the profiler's counts, and which memory the blocks touch.

A model of a GPU wants to know of memory what the counts do not say: how much of it is touched at all, and how much by
the blocks that run at the same time, since the caches serve the rest. So each array has a byte for each of its sectors,
which compiled code marks; copies that run by themselves (bulk and tensor copies) are seen by Python, where they begin.

Launches whose blocks wait for each other or hand out work to each other are run whole. All runs on one host thread.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...ir import Address, Call, Function, Instruction
from ...launch import LaunchConfig
from ..codegen.code import Code
from ..instructions.instrumentation import MarkSectors, Stop
from ..instructions.lowering import Lowering
from ..machine.allocation import address_of
from ..machine.layout import LANES, Block, Warp
from ..machine.status import Count
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.launch import run
from ..runtime.tool import NO_TOOL, Tool
from .counters import SECTOR, counted_access
from .observer import Observer
from .profile import Counting
from .sampling import INTERIOR, Group, Reach, groups, probes
from .tensor_boxes import box_ranges

__all__ = ["Copy", "Footprint", "SampledLaunch", "SampledProfile"]

READ, WRITTEN = 1, 2
_WAVE, _UNIT = 2, 4
"""How far above those the bits are of what is touched since a wave, or a unit, began."""
_MOST_WAVES = 64
_MOST_LOOKS = 1 << 31
"""Bytes of marks that may be looked through to tell the units apart."""


@dataclass
class Copy:
    """What bulk and tensor copies of one statement move: executions by threads, bytes, and bytes that are fetched.

    Of a multicast, which is a statement for each block that it may go to, only the first one fetches.
    """

    executions: float = 0.0
    nbytes: float = 0.0
    fetched: float = 0.0


class Footprint(NamedTuple):
    """What a launch touches of one array, in bytes of whole sectors.

    ``read`` and ``written`` are what is touched at all, ``waves`` what each round of blocks that run together reads,
    added up, and ``blocks`` what each block (each cluster) reads, added up; 0 where that is not known.
    """

    name: str
    nbytes: int
    read: int
    written: int
    waves: int
    blocks: int


@dataclass
class SampledLaunch:
    """``counts`` has a row of :class:`~..machine.status.Count` for each statement, of the whole launch.

    ``blocks_run`` of the launch's blocks were run; ``spread`` is the relative standard error of the number of
    instructions that comes of it. ``whole`` says why all of them were, where that was not for their small number.
    """

    function: Function
    config: LaunchConfig
    cluster: tuple[int, int, int] | None
    statements: list[Instruction | Call]
    counts: np.ndarray[Any, Any]
    copies: dict[int, Copy]
    footprints: list[Footprint]
    blocks_run: int
    spread: float
    whole: str = ""
    longest: float = 1.0
    """The work of the block with the most, in units of a block's on average."""


class _Marking(Counting):
    """A kernel whose launches are counted, and which marks what it touches."""

    def before(self, low: Lowering, statement: Instruction | Call) -> None:
        super().before(low, statement)
        if isinstance(statement, Call):
            return
        access = counted_access(statement.form)
        if access is not None and access.space in ("global", "generic"):
            operand = statement.operands[access.operand]
            assert isinstance(operand, Address)
            kind, _, address = low.address(statement, operand, access.nbytes, False)
            guard, bits = low.operands.guard(statement), access.reads * READ | access.writes * WRITTEN
            low.emit(MarkSectors(kind, access.nbytes, bits | bits << _WAVE | bits << _UNIT, guard.kind), address, guard)
        elif _is_copy(statement):
            low.emit(Stop())


def _is_copy(statement: Instruction) -> bool:
    effects = statement.form.effects
    return bool(effects.completes) and any(access.kind in ("tensor", "bytes") for access in effects.accesses)


def waiting(function: Function, config: LaunchConfig) -> str:
    """Why blocks of a launch may depend on each other; "" if nothing says so."""
    if config.cooperative:
        return "its blocks wait for each other (cooperative=True)"
    for statement in function.body or ():
        if not isinstance(statement, Instruction):
            continue
        access, effects = statement.form.effects.access, statement.form.effects
        if access is None or access.space not in ("global", "generic") or effects.scope in ("warp", "cta", "cluster"):
            continue
        taken = bool(effects.atomic) and any(spec.written for spec in statement.form.operands if spec.result)
        if taken or (effects.strong and access.reads and not effects.atomic):
            where = f" ({statement.loc.file.rpartition('/')[2]}:{statement.loc.line})" if statement.loc else ""
            return f"its blocks may wait for each other: `{statement.form.mnemonic}`{where}"
    return ""


class _Marks(Tool[BlockState]):
    """The marks of one launch, and what its copies move."""

    compiled_turns = True

    def __init__(self, launch: LaunchState) -> None:
        self.launch = launch
        self.arrays: dict[int, np.ndarray[Any, np.dtype[np.uint8]]] = {}
        for number, area in enumerate(launch.ranges):
            if area is not None and not area.shared and not area.heap and area.spaces & 1 and area.nbytes > 0:
                self.arrays[number] = np.zeros(-(-area.nbytes // SECTOR) + 1, np.uint8)
        self.table = np.zeros(len(launch.ranges) + 1, np.uint64)
        for number, marks in self.arrays.items():
            self.table[number] = address_of(marks)
        self.copies: dict[int, Copy] = {}
        self._parts: dict[tuple[int, int, int, int], int] = {}
        """By block, warp, lane and line the part of a multicast that was made last."""

    def attach(self, state: BlockState) -> None:
        state.put(Block.MARKS, "Q", address_of(self.table))

    def callback(self, state: BlockState) -> None:
        """A copy begins."""
        place = state.code.statement_at(state.get(Block.FAULT_PC, "Q"))
        statement = state.code.graph.statements[place]
        assert isinstance(statement, Instruction)
        warp = state.get(Block.FAULT_WARP, "i")
        active = state.get_warp(warp, Warp.ACTIVE, "I")
        guard = state.values(warp, statement.guard) if statement.guard is not None else [1] * LANES
        copy = self.copies.setdefault(place, Copy())
        for lane in range(LANES):
            if active >> lane & 1 and guard[lane] & 1:
                copy.executions += 1
                key = state.block, warp, lane, statement.line
                again = statement.original is not None and self._is_part(place, key)
                for address, nbytes, bits in self._moved(state, warp, lane, statement):
                    copy.nbytes += nbytes
                    copy.fetched += 0 if again else nbytes
                    self.mark(address, nbytes, bits)

    def _is_part(self, place: int, key: tuple[int, int, int, int]) -> bool:
        """Whether a part of a multicast follows another part of the same one."""
        before, self._parts[key] = self._parts.get(key, place), place
        return before < place

    def _moved(
        self, state: BlockState, warp: int, lane: int, statement: Instruction
    ) -> Iterator[tuple[int, int, int]]:
        """The ranges of global memory that a thread's copy touches, and how."""
        for access in statement.form.effects.accesses:
            operand = statement.operands[access.operand]
            if access.kind not in ("tensor", "bytes") or not isinstance(operand, Address):
                continue
            address = state.values(warp, operand.base)[lane] + operand.offset
            bits = access.reads * READ | access.writes * WRITTEN
            if access.kind == "bytes":
                if access.space == "global":
                    yield address, state.values(warp, statement.operand("size"))[lane], bits
                continue
            area = next(a for a in self.launch.ranges if a is not None and 0 <= address - a.address < a.nbytes)
            data = ctypes.string_at(address - area.address + area.place, 64)
            coordinates = [state.values(warp, item)[lane] for item in operand.parts[-1].items]  # type: ignore[union-attr]
            for start, nbytes in box_ranges(data, coordinates, statement.form.tokens):
                yield start, nbytes, bits

    def mark(self, address: int, nbytes: int, bits: int) -> None:
        for number, marks in self.arrays.items():
            area = self.launch.ranges[number]
            assert area is not None
            offset = address - area.address
            if 0 <= offset < area.nbytes:
                marks[offset // SECTOR : (offset + nbytes - 1) // SECTOR + 1] |= bits | bits << _WAVE | bits << _UNIT

    def touched(self, since: int = 0) -> dict[int, tuple[int, int]]:
        """The sectors of each array that have been read and written, ``since`` the last time where that is given."""
        found = {}
        for number, marks in self.arrays.items():
            read, written = (int(np.count_nonzero(marks & (bit << since))) for bit in (READ, WRITTEN))
            found[number] = read, written
            if since:
                marks &= ~np.uint8((READ | WRITTEN) << since)
        return found


class SampledProfile(Observer):
    """Runs some of the blocks of each launch, or all, and gives ``done`` what the whole launch does.

    ``sample`` is how many blocks (clusters) of the inner group to run, None for a number that suits most kernels, 0 for
    all. ``together(launch)`` says how many run at the same time.
    """

    what = "a forecast"

    def __init__(
        self, sample: int | None, together: Callable[[LaunchState], int], done: Callable[[SampledLaunch], None]
    ) -> None:
        super().__init__()
        self.sample, self.together, self.done = sample, together, done
        self._kernels: dict[int, _Marking] = {}

    def run(self, launch: LaunchState) -> None:
        super().run(launch)
        kernel = self._kernels.get(id(launch.spaces))
        if kernel is None:
            kernel = self._kernels[id(launch.spaces)] = _Marking(launch.spaces)
        self.done(_Run(launch, kernel, self.sample, self.together(launch)).result())


@dataclass
class _Run:
    """One launch."""

    launch: LaunchState
    kernel: _Marking
    sample: int | None
    together: int
    marks: _Marks = field(init=False)
    code: Code = field(init=False)

    def __post_init__(self) -> None:
        launch = self.launch
        self.code = self.kernel.code(launch.config.block)
        self.marks = _Marks(launch)
        cluster = launch.spaces.cluster or (1, 1, 1)
        x, y, z = (whole // part for whole, part in zip(launch.config.grid, cluster))
        self.grid, self.each = (x, y, z), math.prod(cluster)
        self.counts = self.kernel.allocate(self.code.graph.statements)

    def result(self) -> SampledLaunch:
        launch, units = self.launch, math.prod(self.grid)
        why = waiting(launch.spaces.function, launch.config)
        interior = INTERIOR if self.sample is None else self.sample
        launch.tool = self.marks
        try:
            if why or not interior or units <= 2 * interior:
                return self._whole(units, why)
            return self._sampled(units, list(groups(self.grid, interior)))
        finally:
            launch.tool = NO_TOOL

    def _run(self, first: int, end: int) -> np.ndarray[Any, Any]:
        """The counts of some units."""
        self.counts[:] = 0
        self.launch.limit(first, end)
        run(self.launch, self.code, lambda _: self.code, alone=True)
        self.launch.forget()
        return self.counts.astype(np.float64)

    def _whole(self, units: int, why: str) -> SampledLaunch:
        marks, together = self.marks, max(1, self.together)
        looks = sum(len(array) for array in marks.arrays.values())
        apart = not why and units * looks < _MOST_LOOKS
        waves, blocks = dict.fromkeys(marks.arrays, 0), dict.fromkeys(marks.arrays, 0)
        counts = np.zeros(self.counts.shape)
        if why or (not apart and units > _MOST_WAVES * together):
            together = units
        work = []
        for first in range(0, units, together):
            end = min(units, first + together)
            for unit in range(first, end, 1 if apart else together):
                one = self._run(unit, unit + 1 if apart else end)
                counts += one
                work.append(float(one[:, Count.EXECUTIONS].sum()))
                if apart:
                    for number, (read, _) in marks.touched(_UNIT).items():
                        blocks[number] += read
            for number, (read, _) in marks.touched(_WAVE).items():
                waves[number] += read
        found = [
            self._footprint(number, read, written, waves[number], blocks[number])
            for number, (read, written) in marks.touched().items()
        ]
        return self._made(counts, marks.copies, found, units, 0.0, why, max(work) if apart else 0.0)

    def _sampled(self, units: int, chosen: list[Group]) -> SampledLaunch:
        fresh: dict[str, dict[int, tuple[int, int]]] = {}
        before = dict.fromkeys(self.marks.arrays, (0, 0))
        for name, unit in probes(self.grid).items():
            self._run(unit, unit + 1)
            now = self.marks.touched()
            fresh[name] = {n: (now[n][0] - before[n][0], now[n][1] - before[n][1]) for n in now}
            before = now
        self.marks.touched(_UNIT)
        self.marks.copies.clear()
        counts = np.zeros(self.counts.shape)
        own = {number: [0.0, 0.0] for number in self.marks.arrays}
        copies: dict[int, Copy] = {}
        work: list[float] = []
        spread = 0.0
        for group in chosen:
            share = group.size / len(group.chosen)
            executed = []
            for unit in group.chosen:
                one = self._run(unit, unit + 1)
                counts += share * one
                executed.append(float(one[:, Count.EXECUTIONS].sum()))
                for number, touched in self.marks.touched(_UNIT).items():
                    own[number] = [a + share * b / units for a, b in zip(own[number], touched)]
            for place, copy in self.marks.copies.items():
                total = copies.setdefault(place, Copy())
                total.executions += share * copy.executions
                total.nbytes += share * copy.nbytes
                total.fetched += share * copy.fetched
            self.marks.copies.clear()
            work += executed
            if len(executed) > 2:
                error = np.std(executed, ddof=1) / math.sqrt(len(executed)) / max(float(np.mean(executed)), 1.0)
                spread = max(spread, float(error) * group.size / units)
        found = [self._extrapolated(number, own[number], fresh) for number in self.marks.arrays]
        run_units = len({unit for group in chosen for unit in group.chosen} | set(probes(self.grid).values()))
        return self._made(counts, copies, found, run_units, spread, "", max(work))

    def _extrapolated(
        self, number: int, own: list[float], fresh: Mapping[str, dict[int, tuple[int, int]]]
    ) -> Footprint:
        most = len(self.marks.arrays[number]) - 1
        read, written = (
            Reach.of(own[which], {name: found[number][which] for name, found in fresh.items()}, most)
            for which in (0, 1)
        )
        x, y, z = self.grid
        wide = min(x, self.together)
        high = min(y, max(1, self.together // x))
        deep = min(z, max(1, self.together // (x * y)))
        waves = math.prod(self.grid) / (wide * high * deep)
        total, blocks = read.distinct(*self.grid), round(own[0] * math.prod(self.grid))
        together = max(total, min(blocks, round(waves * read.distinct(wide, high, deep))))
        return self._footprint(number, total, written.distinct(*self.grid), together, blocks)

    def _footprint(self, number: int, *sectors: int) -> Footprint:
        area = self.launch.ranges[number]
        assert area is not None
        read, written, waves, blocks = (SECTOR * count for count in sectors)
        return Footprint(area.name, area.nbytes, read, written, waves, blocks)

    def _made(
        self, counts: np.ndarray[Any, Any], copies: dict[int, Copy], footprints: list[Footprint], units: int,
        spread: float, why: str, most: float,
    ) -> SampledLaunch:
        average = float(counts[:, Count.EXECUTIONS].sum()) / math.prod(self.grid)
        longest = max(1.0, most / average) if average else 1.0
        touched = [one for one in footprints if one.read or one.written]
        return SampledLaunch(
            self.launch.spaces.function, self.launch.config, self.launch.spaces.cluster,
            list(self.code.graph.statements), counts, copies, touched, units * self.each, spread, why, longest,
        )
