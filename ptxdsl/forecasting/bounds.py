"""The bounds of a launch: how long each resource of the GPU would take for it alone, and which lines take it.

Each follows from counts and from the description of the machine: clocks of the pipes of a multiprocessor, bytes of the
memories, operations of the tensor cores, and the time in which the resident warps come through their instructions.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..emulator.machine.status import Count
from ..emulator.tools.counters import SECTOR
from ..emulator.tools.sampled_profile import SampledLaunch
from ..errors import Loc
from ..gpu.occupancy import Occupancy
from ..ir import Instruction, Vector
from ..isa.arithmetic import flops
from .execution import anchors_of, copies_of_lines, executions
from .machines import Machine
from .pipes import PARTITIONS, pipe_clocks, pipe_of
from .sass import Kernel
from .timeline import segment_clocks

__all__ = ["KINDS", "Bound", "Work", "bounds"]

KINDS = (
    "memory", "L2 cache", "shared memory", "tensor cores", "issue slots", "FMA pipe", "ALU pipe", "special functions",
    "FP64 pipe", "latency",
)
"""The bounds beside the overhead of the launch, in the order in which they are shown."""


@dataclass(frozen=True)
class Bound:
    """What one resource takes: ``seconds``, what of it is used in words, and the share of each line, largest first."""

    kind: str
    seconds: float
    detail: str
    lines: tuple[tuple[Loc, float], ...] = field(default=(), repr=False)


class _Shares:
    """Amounts by statement, added up by line."""

    def __init__(self, locs: Mapping[int, Loc]) -> None:
        self.locs, self.amounts = locs, Counter[Loc]()

    def add(self, line: int, amount: float) -> None:
        if amount > 0:
            self.amounts[self.locs.get(line) or Loc("<ptx>", line)] += amount  # type: ignore[assignment]

    @property
    def total(self) -> float:
        return float(sum(self.amounts.values()))

    def shares(self) -> tuple[tuple[Loc, float], ...]:
        total = self.total or 1.0
        return tuple((loc, amount / total) for loc, amount in self.amounts.most_common())


class Work:
    """What a launch asks of the machine."""

    def __init__(self, launch: SampledLaunch, kernel: Kernel | None, machine: Machine, occupancy: Occupancy) -> None:
        self.launch, self.kernel, self.machine, self.occupancy = launch, kernel, machine, occupancy
        self.locs = {s.line: s.loc for s in launch.statements if s.loc is not None}
        config = launch.config
        self.blocks, self.warps = config.blocks, config.blocks * -(-config.threads // 32)
        self.resident = max(1, occupancy.blocks)
        slots = machine.multiprocessors
        self.rounds = math.ceil(self.blocks / (slots * self.resident))
        self.uneven = math.ceil(self.blocks / slots) * slots / self.blocks
        """The work of the multiprocessor with the most blocks, in units of an even share."""
        self.counts = self._by_line()
        self.segments = kernel.segments if kernel is not None else ()
        self.anchors = {statement.line: anchors_of(statement) for statement, _ in self.rows()}
        self.executed = executions(self.segments, self.counts, self.anchors)

    def _by_line(self) -> dict[int, float]:
        """How often each line of the PTX is executed; one that the emulator expands counts by its first part."""
        found: dict[int, float] = {}
        previous = -1
        for statement, row in zip(self.launch.statements, self.launch.counts):
            if statement.line != previous:
                found[statement.line] = found.get(statement.line, 0.0) + float(row[Count.EXECUTIONS])
            previous = statement.line
        return found

    def rows(self) -> list[tuple[Instruction, Any]]:
        """The instructions, with their counts."""
        pairs = zip(self.launch.statements, self.launch.counts)
        return [(statement, row) for statement, row in pairs if isinstance(statement, Instruction)]

    # -- memory

    @property
    def read(self) -> float:
        """Bytes that come from memory, with an L2 cache that is cold."""
        found = self.launch.footprints
        touched = sum(one.read + one.written for one in found)
        once, waves = sum(one.read for one in found), sum(one.waves for one in found)
        kept = min(1.0, self.machine.l2 / touched) if touched else 1.0
        return once + max(0, waves - once) * (1 - kept)

    @property
    def written(self) -> float:
        """Bytes that go to memory."""
        return float(sum(one.written for one in self.launch.footprints))

    @property
    def requested(self) -> float:
        """Bytes of the sectors that the L1 cache is asked for, and of copies, which pass it by."""
        return SECTOR * float(self.launch.counts[:, Count.SECTORS].sum()) + self.copied

    @property
    def copied(self) -> float:
        """Bytes of bulk and tensor copies between the L2 cache and the multiprocessors; a multicast is one."""
        return sum(copy.fetched for copy in self.launch.copies.values())

    @property
    def through_l2(self) -> float:
        """Bytes between the L2 cache and the multiprocessors: the L1 cache serves what a block reads again."""
        blocks = sum(one.blocks for one in self.launch.footprints)
        reads = SECTOR * sum(float(row[Count.SECTORS]) for s, row in self.rows() if s.form.effects.reads)
        copied = self.copied
        if not blocks or blocks >= reads + copied or not self._fits_l1(blocks):
            return self.requested
        return self.requested - max(0.0, reads + copied - max(blocks, copied))

    def _fits_l1(self, blocks: float) -> bool:
        """Whether what the resident blocks read fits into what their shared memory leaves of the L1 cache."""
        left = (256 << 10) - self.resident * self.occupancy.shared
        return blocks / self.blocks * self.resident <= left

    def in_flight(self, latency: float) -> float:
        """Bytes that a multiprocessor has asked for at a time, where a launch takes so many seconds (Little's law)."""
        far = self.far / self.machine.hertz
        return self.through_l2 * far / latency / min(self.machine.multiprocessors, self.blocks) if latency else 0.0

    @property
    def far(self) -> float:
        """Clocks that a load takes that no L1 cache serves, on average."""
        return self.machine.l2_latency + self.miss * (self.machine.memory_latency - self.machine.l2_latency)

    @property
    def miss(self) -> float:
        """The share of what is read through the L2 cache that comes from memory."""
        stored = SECTOR * sum(float(row[Count.SECTORS]) for s, row in self.rows() if not s.form.effects.reads)
        loaded = self.through_l2 - stored
        return min(1.0, self.read / loaded) if loaded > 0 else 1.0


def bounds(work: Work) -> list[Bound]:
    """All bounds of a launch but the overhead, in the order of :data:`KINDS`."""
    found = [_memory(work), _l2(work), _shared(work), _tensor(work), *_pipes(work), _latency(work)]
    order = {kind: number for number, kind in enumerate(KINDS)}
    return sorted(found, key=lambda bound: order[bound.kind])


def _sectors(work: Work) -> _Shares:
    shares = _Shares(work.locs)
    for number, (statement, row) in enumerate(zip(work.launch.statements, work.launch.counts)):
        copied = work.launch.copies[number].fetched if number in work.launch.copies else 0.0
        shares.add(statement.line, SECTOR * float(row[Count.SECTORS]) + copied)
    return shares


def _memory(work: Work) -> Bound:
    machine, read, written = work.machine, work.read, work.written
    share = machine.copy_share if written > 0.1 * (read + written) else machine.read_share
    detail = f"{_bytes(read)} read, {_bytes(written)} written, at {share * machine.memory / 1e12:.2f} TB/s"
    seconds = (read + written) / (machine.memory * share)
    return Bound("memory", seconds, detail, _sectors(work).shares())


def _l2(work: Work) -> Bound:
    machine = work.machine
    rate = min(machine.l2_rate, machine.l2_port * min(machine.multiprocessors, work.blocks)) * machine.hertz
    detail = f"{_bytes(work.through_l2)} at {rate / 1e12:.2f} TB/s"
    return Bound("L2 cache", work.through_l2 / rate, detail, _sectors(work).shares())


def _local(work: Work, clocks: float, kind: str, detail: str, shares: _Shares) -> Bound:
    """A resource that every multiprocessor has: so many clocks in sum over all of them."""
    seconds = clocks / work.machine.multiprocessors * work.uneven / work.machine.hertz
    return Bound(kind, seconds, detail, shares.shares())


def _shared(work: Work) -> Bound:
    """Wavefronts of shared memory, of requests to the L1 cache beside it, of copies, and operands of products."""
    shares, rate = _Shares(work.locs), work.machine.shared_rate
    conflicts = operands = 0.0
    for number, (statement, row) in enumerate(zip(work.launch.statements, work.launch.counts)):
        clocks = float(row[Count.WAVEFRONTS])
        conflicts += float(row[Count.WAVEFRONTS] - row[Count.LEAST])
        clocks += max(float(row[Count.GLOBAL_REQUESTS]), SECTOR * float(row[Count.SECTORS]) / rate)
        if number in work.launch.copies:
            clocks += work.launch.copies[number].nbytes / rate
        if isinstance(statement, Instruction):
            read = float(row[Count.EXECUTIONS]) * _operand_bytes(statement) / rate
            clocks, operands = clocks + read, operands + read
        shares.add(statement.line, clocks)
    extra = f", {conflicts / shares.total:.0%} bank conflicts" if conflicts and shares.total else ""
    extra += f", {operands / shares.total:.0%} operands of products" if operands and shares.total else ""
    detail = f"{_number(shares.total)} wavefronts{extra}"
    return _local(work, shares.total, "shared memory", detail, shares)


def _operand_bytes(statement: Instruction) -> float:
    """Bytes of shared memory that a warp's part of a product of a warpgroup reads."""
    form = statement.form
    shape = re.search(r"m(\d+)n(\d+)k(\d+)", ".".join(form.tokens))
    if form.effects.converges != "warpgroup" or shape is None or not flops(form).warp:
        return 0.0
    m, n, k = map(int, shape.groups())
    bits = 8 if flops(form).type.startswith("e") else 32 if flops(form).type == "tf32" else 16
    in_registers = sum(isinstance(operand, Vector) for operand in statement.operands) > 1
    return (n + (0 if in_registers else m)) * k * bits / 8 / 4


def _tensor(work: Work) -> Bound:
    shares, rates, done = _Shares(work.locs), work.machine.rates, Counter[str]()
    for statement, row in work.rows():
        operations = flops(statement.form)
        if operations.warp:
            amount = operations.warp * float(row[Count.EXECUTIONS])
            done[operations.type] += amount  # type: ignore[assignment]
            shares.add(statement.line, amount / rates.tensor_rate(operations.type))
    detail = ", ".join(f"{amount / 1e9:.3g} Gflop of {name}" for name, amount in done.items())
    return _local(work, shares.total, "tensor cores", detail, shares)


# ---------------------------------------------------------------------------------------------------------------------
# Instructions

_PIPE_BOUNDS = {"FMA": "FMA pipe", "ALU": "ALU pipe", "special": "special functions", "FP64": "FP64 pipe"}


_OWN = ("special", "FP64")
"""Their instructions are few and stay with their line, so what is executed of them follows from that alone."""


def _pipes(work: Work) -> list[Bound]:
    slots, pipes = _Shares(work.locs), {name: _Shares(work.locs) for name in _PIPE_BOUNDS}
    copies = copies_of_lines(work.segments, work.anchors)
    for segment, count in zip(work.segments, work.executed):
        for one in segment.instructions:
            slots.add(one.line, count / PARTITIONS)
            kind = pipe_of(one.name)
            if kind in pipes:
                times = work.counts.get(one.line, 0.0) / copies.get(one.line, 1) if kind in _OWN else count
                pipes[kind].add(one.line, times * pipe_clocks(one.name, one.opcode, work.machine) / PARTITIONS)
    instructions = slots.total * PARTITIONS
    detail = f"{_number(instructions)} instructions of SASS"
    if not instructions:
        for line, count in work.counts.items():
            slots.add(line, count / PARTITIONS)
        detail = f"{_number(slots.total * PARTITIONS)} instructions of PTX"
        _by_operations(work, pipes)
    found = [_local(work, slots.total, "issue slots", detail, slots)]
    for name, shares in pipes.items():
        detail = f"{_number(shares.total * PARTITIONS)} clocks of a partition"
        found.append(_local(work, shares.total, _PIPE_BOUNDS[name], detail, shares))
    return found


def _by_operations(work: Work, pipes: Mapping[str, _Shares]) -> None:
    """Clocks of the pipes by the operations of the PTX, where there is no SASS."""
    rates = work.machine.rates
    for statement, row in work.rows():
        form, executed = statement.form, float(row[Count.EXECUTIONS])
        operations = flops(form)
        approximate = "approx" in form.tokens
        if operations.lane and not approximate:
            wide = operations.type == "f64"
            rate = rates.fp64 if wide else rates.half2 if operations.type in ("f16", "bf16") else rates.fp32
            pipes["FP64" if wide else "FMA"].add(statement.line, executed * 32 / rate)
        elif approximate:
            pipes["special"].add(statement.line, executed * 32 / rates.special)
        elif form.type is not None and form.type.kind in "sub" and not form.effects.accesses:
            pipes["ALU"].add(statement.line, executed * 32 / rates.integer)


def _latency(work: Work) -> Bound:
    """The rounds of resident blocks one after the other, each as long as its warps take by themselves."""
    shares, machine = _Shares(work.locs), work.machine
    clocks = segment_clocks(work.segments, machine, work.miss)
    for segment, count, passed in zip(work.segments, work.executed, clocks):
        for one, taken in zip(segment.instructions, passed):
            shares.add(one.line, count * taken)
    warp = shares.total / work.warps
    if not work.segments:
        warp = _without_sass(work, shares)
    seconds = work.rounds * warp * (work.launch.longest if work.rounds == 1 else 1.0) / machine.hertz
    detail = (
        f"{work.rounds} round{'s' * (work.rounds > 1)} of {work.resident} block{'s' * (work.resident > 1)} a "
        f"multiprocessor, {_number(warp)} clocks a warp"
    )
    bulk = _in_flight(work)
    if bulk > seconds:
        detail = f"copies: {_bytes(_ring(work))} in flight a multiprocessor"
        seconds = bulk
    return Bound("latency", seconds, detail, shares.shares())


def _without_sass(work: Work, shares: _Shares) -> float:
    """Every load waits for the memory, one after the other."""
    for statement, row in work.rows():
        effects = statement.form.effects
        executed = float(row[Count.EXECUTIONS])
        loads = float(row[Count.GLOBAL_REQUESTS]) if effects.reads else 0.0
        shares.add(statement.line, executed + loads * work.far)
    return shares.total / work.warps


def _ring(work: Work) -> float:
    """Bytes of copies that a multiprocessor can have in flight: its blocks' shared memory."""
    return float(work.resident * work.occupancy.shared)


def _in_flight(work: Work) -> float:
    """Seconds that bulk and tensor copies take by Little's law."""
    active = min(work.machine.multiprocessors, work.blocks)
    ring = _ring(work)
    return work.copied * work.far / (ring * active) / work.machine.hertz if ring else 0.0


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def _number(value: float) -> str:
    for unit in ("", " k", " M", " G"):
        if value < 1000 or unit == " G":
            break
        value /= 1000
    return f"{value:.3g}{unit}"


