"""Where a launch is stopped to be put in an order: before each statement that other warps or operations can see.

A statement is *visible* where warps synchronise by it (barriers, mbarriers, strong accesses, fences between threads,
waits for asynchronous operations, and where these begin): there another warp may go on. What is merely an access is
noted. Both read addresses from the registers of the warp, at the stop before the statement, so that nothing here
knows what an instruction computes.

What it cannot see: which bytes a tensor copy touches in global memory, what `wmma` loads and stores, textures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...ir import Address, Call, Immediate, Instruction, Not, Register, Symbol
from ..codegen.code import Code, Source
from ..codegen.translation import translate
from ..instructions.instrumentation import Stop
from ..instructions.lowering import Lowering
from ..machine.layout import LANES, SHARED_START, Cluster, Warp
from ..runtime.block_state import BlockState, LaunchState

__all__ = ["Site", "Sites", "stopped_code"]

_PRIVATE = ("local", "param", "const", "tmem")
_NUMBERS = np.arange(LANES)
_GROUPS = ("async_group", "bulk_group", "wgmma_group", "tcgen05_wait")


def rows_of(statement: Instruction) -> int:
    """How many rows of 16 bytes the lanes of a warp address; 0 where it is not so."""
    return next((8 * int(token[1:]) for token in statement.form.tokens if token in ("x1", "x2", "x4")), 0)


class Site(NamedTuple):
    """A statement at which a launch is stopped.

    ``kind``: mbarrier, barrier, strong, fence, begin (of an asynchronous operation), wait (for such), end (of threads:
    where a block ends, all that it has begun completes), or weak.
    """

    kind: str
    statement: Instruction
    accesses: tuple[Any, ...]
    place: int


def kind_of(statement: Instruction | Call) -> str:
    """The kind of a statement; "" where only its thread sees it."""
    if not isinstance(statement, Instruction):
        return ""
    effects = statement.form.effects
    seen = [a for a in effects.accesses if (a.reads or a.writes) and a.space not in _PRIVATE]
    if effects.control in ("exit", "return"):
        return "end"
    if effects.completes and effects.completes != "tcgen05_wait":
        return "begin"
    if any(access.kind == "mbarrier" for access in seen):
        return "begin" if effects.commits else "mbarrier"
    if effects.barrier in ("block", "cluster"):
        return "barrier"
    if effects.fence == "threads":
        return "fence"
    if effects.waits in _GROUPS:
        return "wait"
    if not seen:
        return ""
    return "strong" if effects.strong else "weak"


class _Stopped(NamedTuple):
    """Adds a stop before each statement that is seen, and where a warp begins a block."""

    low: Lowering

    def begin(self) -> None:
        self.low.emit(Stop())

    def statement(self, statement: Instruction | Call) -> None:
        kind = kind_of(statement)
        if kind:
            self.low.emit(Stop())
        self.low.statement(statement)
        if kind == "barrier":  # those that it has let go on stop before they do anything
            self.low.emit(Stop())


def stopped_code(launch: LaunchState) -> Code:
    """The kernel of a launch, with its stops."""
    spaces, block = launch.spaces, launch.config.block
    code = translate(spaces.function, spaces, block, True, _Stopped, keep_registers=True)
    code.described = code.description._replace(source=Source(spaces.function, spaces, block, None))
    return code


class Sites:
    """The sites of a code, and what warps access there. ``clusters``: the states of a block's cluster, by its state."""

    def __init__(self, launch: LaunchState, code: Code) -> None:
        self.launch, self.code = launch, code
        self._known: dict[int, Site | None] = {}
        self.clusters: dict[int, list[BlockState]] = {}
        self._live: dict[tuple[int, frozenset[int]], list[str]] = {}
        self._behind = set(self._stops_behind())
        memory = launch.spaces.memory
        self._windows = memory.shared_window, memory.local_window
        self._placed = [
            (area.address, area.nbytes, area.place - area.address)
            for area in launch.ranges if area is not None and not area.shared and area.place != area.address
        ]

    def site(self, place: int) -> Site | None:
        """That of a statement by its number, None where a warp begins."""
        if place not in self._known:
            statement = self.code.graph.statements[place] if place >= 0 else None
            kind = kind_of(statement) if isinstance(statement, Instruction) else ""
            found = None
            if kind and isinstance(statement, Instruction):
                effects = statement.form.effects
                seen = [a for a in effects.accesses if (a.reads or a.writes) and a.space not in _PRIVATE]
                found = Site(kind, statement, tuple(seen), place)
            self._known[place] = found
        return self._known[place]

    def _stops_behind(self) -> Iterator[int]:
        """Where the stops behind barriers lie."""
        description, before = self.code.description, None
        for placed, offset in zip(description.micro_ops, description.offsets):
            if isinstance(placed.op, Stop):
                if placed.statement == before:
                    yield self.code.base + offset
                before = placed.statement

    def live(self, place: int, priorities: frozenset[int]) -> list[str]:
        """The registers that are live at a statement, or where blocks of these priorities begin."""
        found = self._live.get((place, priorities))
        if found is None:
            liveness, blocks = self.code.registers.liveness, self.code.graph.blocks
            names = liveness.before(place)
            for number, block in enumerate(blocks):
                if block.priority in priorities:
                    names |= liveness.named(liveness.entries[number])
            found = self._live[place, priorities] = sorted(names & self.code.registers.offsets.keys())
        return found

    def behind(self, pc: int) -> bool:
        """Whether a stop is one behind a barrier."""
        return pc in self._behind

    def number(self, state: BlockState, warp: int, operand: Any) -> Any:
        """What an operand is in each lane."""
        if isinstance(operand, Register):
            code = self.code
            bits, at = code.registers.bits(operand.name), code.registers.offsets[operand.name]
            if bits in (32, 64) and code.operands.facts.offsets.get(operand.name) is None:
                start = warp * state.stride + at
                kind = np.uint32 if bits == 32 else np.uint64
                return np.frombuffer(state._warps_view, kind, LANES, start).astype(np.uint64)
        return np.array(state.values(warp, operand), np.uint64)

    def lanes(self, state: BlockState, warp: int, statement: Instruction) -> int:
        """Mask of the lanes that execute a statement that a warp is at."""
        active = int(state.get_warp(warp, Warp.ACTIVE, "I"))
        guard = statement.guard
        if guard is None:
            return active
        negated = isinstance(guard, Not)
        values = state.values(warp, guard.predicate if negated else guard)  # type: ignore[union-attr]
        return active & sum(1 << lane for lane, value in enumerate(values) if bool(value) != negated)

    def hosts(self, state: BlockState, warp: int, site: Site, access: Any, lanes: int) -> Any:
        """The host addresses that the lanes of a mask access, without those of local memory."""
        address = site.statement.operands[access.operand]
        assert isinstance(address, Address)
        chosen = _NUMBERS[[bool(lanes >> lane & 1) for lane in range(LANES)]]
        if access.kind == "matrix":
            chosen = chosen[chosen < rows_of(site.statement)]
        base, generic = address.base, access.space == "generic"
        if isinstance(base, Symbol):
            at = self.code.operands.symbol(base, None)
            at += self.launch.spaces.windows.get(base.symbol, 0) if generic else 0
            values: Any = np.full(len(chosen), at % (1 << 64), np.uint64)
        elif isinstance(base, Immediate):
            values = np.full(len(chosen), base.bits, np.uint64)
        else:
            values = self.number(state, warp, base)[chosen]
        return self._host(state, values.astype(np.int64) + address.offset, access.space)

    def _host(self, state: BlockState, values: Any, space: str) -> Any:
        shared, local = self._windows
        if space.startswith("shared"):
            return self._shared(state, values)
        if space == "generic":
            values = values[values < local]
            inside = values >= shared
            if inside.any():
                return np.concatenate([self._shared(state, values[inside] - shared), self._global(values[~inside])])
        return self._global(values)

    def _shared(self, state: BlockState, values: Any) -> Any:
        states = self.clusters.get(state.address, [])
        offsets = values & (1 << Cluster.RANK_BITS) - 1
        if not states:
            return state.shared - SHARED_START + offsets
        bases = np.array([each.shared - SHARED_START for each in states], np.int64)
        return bases[np.clip(values >> Cluster.RANK_BITS, 0, len(states) - 1)] + offsets

    def _global(self, values: Any) -> Any:
        for start, nbytes, delta in self._placed:
            inside = (values >= start) & (values < start + nbytes)
            values = np.where(inside, values + delta, values)
        return values

    def spans(self, state: BlockState, warp: int, site: Site, lanes: int) -> list[tuple[Any, int, bool, bool]]:
        """Of each access: the host addresses, the bytes at each, whether it reads and writes."""
        found = []
        for access in site.accesses:
            if access.kind == "elements" or (access.kind == "matrix" and rows_of(site.statement)):
                nbytes = access.nbytes or 16
                hosts = self.hosts(state, warp, site, access, lanes)
                if len(hosts):
                    found.append((hosts, nbytes, access.reads, access.writes))
        return found
