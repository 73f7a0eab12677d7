"""The profiler: what each line and each instruction did, counted while the emulator runs.

The emulator sees every address and every mask, so these are no samples: they are the numbers that Nsight Compute's
source view approximates, in the same units (warp instructions, 32-byte sectors, requests, wavefronts). They are those
of the PTX; the assembler may still merge or reorder its instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import Loc
from ...ir import Address, Call, Instruction, Label, Vector
from ...isa import Form
from ..instructions.instrumentation import CountBranch, CountExecution, CountMemory
from ..instructions.lowering import Code, Lowering
from ..instructions.operands import NOTHING, Field, raw
from ..machine.address_spaces import Spaces
from ..machine.block_state import LaunchState
from ..machine.layout import Count
from ..machine.unsupported import render
from ..runtime.launch import run
from .observer import Observer, converges, probed

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Figures", "InstructionProfile", "LineProfile", "profile"]

SECTOR = 32


@dataclass(frozen=True)
class Figures:
    """What was counted, in sums over all launches, blocks and warps.

    ``executions`` are warp instructions; ``lanes`` the threads that took part, at most 32 an execution, those for
    which a guard does not hold left out. A request is a warp's access to global or shared memory, a sector 32 aligned
    bytes, a wavefront a turn of the banks of shared memory. Bytes are what the threads ask for, by state space;
    ``flops`` are by type, a fused multiply-add has two.
    """

    executions: int = 0
    lanes: int = 0
    divergent_branches: int = 0
    global_requests: int = 0
    global_sectors: int = 0
    shared_requests: int = 0
    shared_wavefronts: int = 0
    bank_conflicts: int = 0
    """Wavefronts beyond those that the accesses need without a conflict."""
    read: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[str, int] = field(default_factory=dict)
    flops: Mapping[str, int] = field(default_factory=dict)

    @property
    def lanes_per_execution(self) -> float | None:
        """Active lanes, on average; None if it was not executed."""
        return _ratio(self.lanes, self.executions)

    @property
    def sectors_per_request(self) -> float | None:
        """Sectors of a request to global memory: 4 for contiguous 4-byte elements, 32 at worst."""
        return _ratio(self.global_sectors, self.global_requests)

    @property
    def conflict_ways(self) -> float | None:
        """How often the banks take a turn where once would do: 1 without a conflict, 32 at worst."""
        return _ratio(self.shared_wavefronts, self.shared_wavefronts - self.bank_conflicts)

    @property
    def global_bytes(self) -> int:
        """Bytes that the sectors have, which is what the memory system moves if no cache helps."""
        return SECTOR * self.global_sectors

    @property
    def intensity(self) -> float | None:
        """Arithmetic intensity: flops for each byte of the sectors; None where no global memory is touched."""
        return _ratio(sum(self.flops.values()), self.global_bytes)

    def __add__(self, other: Figures) -> Figures:
        values: dict[str, Any] = {}
        for f in fields(Figures):
            mine, theirs = getattr(self, f.name), getattr(other, f.name)
            values[f.name] = _merged(mine, theirs) if isinstance(mine, Mapping) else mine + theirs
        return Figures(**values)


def _ratio(a: int, b: int) -> float | None:
    return a / b if b else None


def _merged(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in (*a, *(name for name in b if name not in a))}


@dataclass(frozen=True)
class InstructionProfile:
    """An instruction of a kernel: its place in the PTX text, its Python line, its share of all executions."""

    kernel: str
    ptx_line: int
    loc: Loc | None
    text: str
    share: float
    figures: Figures


@dataclass(frozen=True)
class LineProfile:
    """A Python line of a kernel (a line of the PTX where that is all there is), its share of all executions."""

    kernel: str
    loc: Loc
    source: str
    share: float
    figures: Figures
    instructions: tuple[InstructionProfile, ...] = field(repr=False)


class _Watch:
    """The counters of one kernel, by statement; launches with blocks of any shape add up in them."""

    def __init__(self, spaces: Spaces) -> None:
        self.spaces = spaces
        self.statements: list[Instruction | Call] = []
        self.counts: np.ndarray[Any, Any] | None = None
        self.launches = 0
        self._codes: dict[tuple[int, int, int], Code] = {}

    def code(self, block: tuple[int, int, int]) -> Code:
        found = self._codes.get(block)
        if found is None:
            found = self._codes[block] = probed(self.spaces, block, self)
        return found

    def _place(self, low: Lowering) -> Field:
        """The address of a statement's counters."""
        if self.counts is None:
            import numpy as np

            self.statements = low.graph.statements
            self.counts = np.zeros((len(self.statements), Count.COLUMNS), np.int64)
        return raw("q", self.counts.ctypes.data + 8 * Count.COLUMNS * low.place)

    def before(self, low: Lowering, statement: Instruction | Call) -> None:
        place, guard = self._place(low), low.operands.guard(statement)
        if isinstance(statement, Call):
            low.emit(CountExecution(guard.kind), guard, place)
            return
        form, access = statement.form, access_of(statement)
        if form.opcode in ("bra", "brx"):
            index = low.operands.source(statement.operands[0], 32, False) if form.opcode == "brx" else NOTHING
            low.emit(CountBranch(guard.kind, index.kind), guard, index, place)
        elif access is not None and access.space in ("global", "shared", "local", "generic"):
            kind, _, address = low.address(statement, access.address, access.nbytes, False)
            exclusive = form.opcode in ("atom", "red")
            low.emit(CountMemory(access.space, kind, access.nbytes, exclusive, guard.kind), address, guard, place)
        elif not converges(form):
            low.emit(CountExecution(guard.kind), guard, place)

    def after(self, low: Lowering, statement: Instruction | Call) -> None:
        """Lanes that wait for others at an instruction start over there: such ones are counted when they are done."""
        if isinstance(statement, Instruction) and converges(statement.form):
            guard = low.operands.guard(statement)
            low.emit(CountExecution(guard.kind), guard, self._place(low))


class profile(Observer):
    """Counts what the launches of its ``with`` block do, per Python line and per PTX instruction, on the emulator.

    ``lines``, ``instructions`` and ``totals`` hold the figures, ``table()`` is a table of them as text, ``plot(path)``
    draws a picture, ``html(path)`` writes a page with source, PTX and figures. Launches of one kernel add up. Raises
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

    def __init__(self) -> None:
        super().__init__()
        self._watches: dict[int, _Watch] = {}

    def run(self, launch: LaunchState) -> None:
        """Run a launch and count what it does."""
        super().run(launch)
        watch = self._watches.get(id(launch.spaces))
        if watch is None:
            watch = self._watches[id(launch.spaces)] = _Watch(launch.spaces)
        watch.launches += 1
        code = watch.code(launch.config.block)
        run(launch, lambda _: code)

    @property
    def launches(self) -> dict[str, int]:
        """How often each kernel was launched."""
        found: dict[str, int] = {}
        for watch in self._watches.values():
            name = watch.spaces.function.name
            found[name] = found.get(name, 0) + watch.launches
        return found

    @property
    def instructions(self) -> list[InstructionProfile]:
        """The instructions of each kernel, in the order of the text."""
        rows = [
            (watch.spaces.function.name, statement, _figures(statement, [int(n) for n in counts]))
            for watch in self._watches.values() if watch.counts is not None
            for statement, counts in zip(watch.statements, watch.counts)
        ]
        total = sum(figures.executions for _, _, figures in rows) or 1
        return [
            InstructionProfile(name, s.line, s.loc, render(s), figures.executions / total, figures)
            for name, s, figures in rows
        ]

    @property
    def lines(self) -> list[LineProfile]:
        """The lines of each kernel, in the order of the source."""
        groups: dict[tuple[str, Loc], list[InstructionProfile]] = {}
        for row in self.instructions:
            groups.setdefault((row.kernel, row.loc or Loc("<ptx>", row.ptx_line)), []).append(row)
        found = [
            LineProfile(
                kernel, loc, loc.source or rows[0].text, sum(row.share for row in rows), total(rows), tuple(rows)
            )
            for (kernel, loc), rows in groups.items()
        ]
        order = {name: number for number, name in enumerate(self.launches)}
        return sorted(found, key=lambda line: (order[line.kernel], line.loc))

    def listing(self, kernel: str) -> Iterator[tuple[str, InstructionProfile | None]]:
        """The text of a kernel: its labels, and its instructions with their figures."""
        rows = iter([row for row in self.instructions if row.kernel == kernel])
        for watch in self._watches.values():
            if watch.spaces.function.name != kernel or watch.counts is None:
                continue
            for statement in watch.spaces.function.body or ():
                if isinstance(statement, Label):
                    yield f"{statement.name}:", None
                elif isinstance(statement, (Instruction, Call)):
                    row = next(rows)
                    yield row.text, row

    @property
    def totals(self) -> Figures:
        """All that was counted."""
        return total(self.instructions)

    def table(self, by: str = "line", sort: str = "share", limit: int | None = None) -> str:
        """The figures as text: ``by`` "line" or "instruction", ``sort`` "share" or "source", the first ``limit``."""
        from .profile_report import table

        return table(self, by, sort, limit)

    def plot(self, path: str | Path) -> None:
        """Draw the lines and where their work lies: a picture in PNG; PtxError for a name that promises another."""
        from .profile_plot import plot

        plot(self, Path(path))

    def html(self, path: str | Path) -> None:
        """Write a page, complete in itself: source, PTX and figures side by side."""
        from .profile_report import page

        Path(path).write_text(page(self), "utf-8")

    def __repr__(self) -> str:
        return f"<profile of {', '.join(f'{name} ({count}x)' for name, count in self.launches.items()) or 'nothing'}>"


def total(rows: Iterable[Any]) -> Figures:
    """The sum of rows' figures."""
    return sum((row.figures for row in rows), Figures())


# ---------------------------------------------------------------------------------------------------------------------
# What an instruction does, whatever its operands hold


@dataclass(frozen=True)
class _Access:
    address: Address
    space: str
    nbytes: int
    reads: bool
    writes: bool


def access_of(statement: Instruction) -> _Access | None:
    """What one lane accesses, for the instructions that access memory at one address."""
    form = statement.form
    if form.opcode not in ("ld", "ldu", "st", "atom", "red") or form.type is None:
        return None
    address = next((operand for operand in statement.operands if isinstance(operand, Address)), None)
    if address is None:
        return None
    items = max((len(o.items) for o in statement.operands if isinstance(o, Vector)), default=1)
    reads, writes = form.opcode != "st", form.opcode not in ("ld", "ldu")
    return _Access(address, form.space, form.type.bytes * items, reads, writes)


_ONE = ("add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt", "sin", "cos", "tanh", "ex2", "lg2")
_TILE = re.compile(r"m(\d+)n(\d+)k(\d+)$")


@cache
def flops_of(form: Form) -> tuple[str, int, int]:
    """The type of an instruction's arithmetic, its flops a lane and its flops a warp."""
    kind = form.type
    if form.opcode in ("mma", "wmma", "wgmma") and (tile := next(filter(None, map(_TILE.match, form.tokens)), None)):
        m, n, k = (int(size) for size in tile.groups())
        types = [token for token in form.tokens if re.fullmatch(r"(tf|bf|f|e\dm)\d+", token)]
        factors = types[-2] if len(types) > 2 else "f16"  # wmma names only what it adds where the factors are f16
        count = 2 * m * n * k // (2 if "sp" in form.tokens else 1)
        return (factors, 0, count) if types else ("", 0, 0)
    adds = form.opcode in ("atom", "red") and "add" in form.tokens
    if kind is None or kind.kind != "f" or not (adds or form.opcode in (*_ONE, "fma", "mad")):
        return "", 0, 0
    result = form.operands[0].type if not adds else kind  # add.f32.bf16 adds in f32
    name, lanes = str(result), max(1, kind.lanes)
    return name.removesuffix("x2"), lanes * (2 if form.opcode in ("fma", "mad") else 1), 0


def _figures(statement: Instruction | Call, counts: list[int]) -> Figures:
    lanes, executions = counts[Count.LANES], counts[Count.EXECUTIONS]
    common: dict[str, Any] = {"executions": executions, "lanes": lanes, "divergent_branches": counts[Count.DIVERGENT]}
    if isinstance(statement, Call):
        return Figures(**common)
    name, per_lane, per_warp = flops_of(statement.form)
    if flops := per_lane * lanes + per_warp * executions:
        common["flops"] = {name: flops}
    access = access_of(statement)
    if access is not None:
        moved = {"global": counts[Count.GLOBAL_LANES], "shared": counts[Count.SHARED_LANES]}
        moved["local"] = counts[Count.LOCAL_LANES]
        if access.space in ("param", "const"):
            moved = {access.space: lanes}
        nbytes = {space: access.nbytes * count for space, count in moved.items() if count}
        common |= {"read": nbytes if access.reads else {}, "written": nbytes if access.writes else {}}
    return Figures(
        **common, global_requests=counts[Count.GLOBAL_REQUESTS], global_sectors=counts[Count.SECTORS],
        shared_requests=counts[Count.SHARED_REQUESTS], shared_wavefronts=counts[Count.WAVEFRONTS],
        bank_conflicts=counts[Count.WAVEFRONTS] - counts[Count.LEAST],
    )
