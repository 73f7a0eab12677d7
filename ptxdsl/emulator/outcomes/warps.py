"""The warps of a launch that runs step by step: each is run up to its next stop.

The emulator computes; here is which warps may run meanwhile, what stops one, and what it has accessed weakly until
then.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import EmulationError
from ...ir import Symbol
from ..machine.layout import Block, Warp
from ..machine.status import Status
from ..runtime.block_state import TIME_SLICE, BlockState, LaunchState
from ..runtime.cluster_pool import ClusterPool
from ..runtime.clusters import Clusters
from ..runtime.events import handle
from ..runtime.faults import index_in
from .pending_operations import Span
from .schedule import Actor
from .steps import Access, Step, Unit
from .stops import Site, Sites
from .touches import Objects

__all__ = ["Warps"]

SLICES = 2000
"""Time slices of a warp in a step."""
POLLS = 8
"""Accesses of one statement in a step after which it may be a poll."""


class _Segment:
    """A part of a run without a stop: its step, how often each statement was executed, in which state last."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.visits: dict[int, int] = {}
        self.seen: dict[int, bytes] = {}
        self.others: dict[int, Step] = {}
        """The steps of warps that this one has let go on."""


class Warps:
    """The warps of one run of a launch, by the units that they are in."""

    def __init__(self, launch: LaunchState, code: Any, sites: Sites) -> None:
        self.launch, self.code, self.sites = launch, code, sites
        sites.clusters.clear()
        self.units = list(self._units())
        self.objects = Objects(launch, sites, [unit.state.shared for unit in self.units])

    # The blocks

    def _units(self) -> Iterator[Unit]:
        launch, shape = self.launch, self.launch.spaces.cluster
        if shape is None:
            for number in range(launch.blocks):
                state = BlockState(launch, self.code)
                state.own_blocks()
                self._prologue(state)
                state.assign(number)
                yield self._begun(Unit(number, state, None, number))
            return
        pool = ClusterPool(launch, self.code, lambda _: self.code, True)
        gx, gy, _ = launch.config.grid
        for which in range(pool.grid[0] * pool.grid[1] * pool.grid[2]):
            clusters = Clusters(pool, 0)
            index = index_in(pool.grid, which)
            clusters._begin(index)
            units = []
            for state in clusters.states:
                self.sites.clusters[state.address] = clusters.states
                x, y, z = (a * b + c for a, b, c in zip(index, shape, index_in(shape, state.rank)))
                units.append(Unit(x + gx * (y + gy * z), state, clusters, which))
            yield from map(self._begun, units)

    def _prologue(self, state: BlockState) -> None:
        state.assign(0, 0)
        while state.run() == Status.YIELD:
            state.left = TIME_SLICE

    def _begun(self, unit: Unit) -> Unit:
        """A unit whose first warp is before its first statement, and so are the others."""
        unit.state.left = TIME_SLICE
        status = unit.state.run()
        if status != Status.CALLBACK:
            raise EmulationError(f"a block has not begun ({status})")
        unit.state.put(Block.RUNNABLE, "I", 0)
        unit.started.add(unit.state.get(Block.FAULT_WARP, "I"))
        return unit

    def _beside(self, unit: Unit) -> list[Unit]:
        """The units whose warps a step of this one may let go on."""
        return [unit] if unit.cluster is None else [u for u in self.units if u.cluster is unit.cluster]

    # A warp

    def kept(self, unit: Unit, warp: int) -> bytes:
        start, stride = warp * unit.state.stride, unit.state.stride
        return bytes(unit.state._warps_view[start : start + stride])

    def run(self, unit: Unit, warp: int, step: Step, count: int) -> list[Step]:
        """Run a warp to its next visible statement, to a barrier where it waits, or to its end.

        ``count``: how many steps were made before. The steps that other warps have made meanwhile, which it has let go
        on, are returned.
        """
        state, bit = unit.state, 1 << warp
        segment = _Segment(step)
        state.put(Block.CURRENT, "I", (warp - 1) & 31)
        for _ in range(SLICES):
            state.put(Block.RUNNABLE, "I", bit)
            state.left = TIME_SLICE
            status = state.run()
            self._note_runnable(unit, warp)
            while status == Status.CALLBACK:
                over = self._stopped(unit, warp, segment)
                if over or not unit.runnable & bit:
                    return list(segment.others.values())
                state.left = TIME_SLICE
                state.put(Block.RUNNABLE, "I", bit)
                status = state.run()
                self._note_runnable(unit, warp)
            if status == Status.BLOCKED:  # it waits at a barrier, or has ended
                break
            if status == Status.DONE:
                self._end(unit)
                break
            if status == Status.YIELD:
                if self._comes_again(unit, warp, count):
                    break
            elif status == Status.SYSTEM_CALL:
                self._call(state)
            else:
                handle(state, status, lambda _: self.code)
        else:
            raise EmulationError("a warp runs in a circle without synchronising")
        return list(segment.others.values())

    def _note_runnable(self, unit: Unit, warp: int) -> None:
        for other in self._beside(unit):
            if not other.ended:
                runnable = other.state.get(Block.RUNNABLE, "I")
                if other is unit:
                    other.runnable &= ~(1 << warp)
                other.runnable = (other.runnable | runnable) & other.state.get(Block.LIVE, "I")
                other.state.put(Block.RUNNABLE, "I", 0)

    def _stopped(self, unit: Unit, mine: int, segment: _Segment) -> bool:
        """Compiled code has come to a stop; whether the step ends there."""
        state = unit.state
        warp = state.get(Block.FAULT_WARP, "I")
        pc = state.get(Block.FAULT_PC, "Q")
        if warp not in unit.started:
            unit.started.add(warp)
            return False
        place = self.code.statement_at(pc)
        site = self.sites.site(place)
        if site is None or self.sites.behind(pc):
            return False
        lanes = self.sites.lanes(state, warp, site.statement)
        if not lanes:
            return False
        if site.kind != "weak":
            unit.at[warp] = site
            return warp == mine
        step = segment.step
        if warp != mine:
            step = self._other(unit, warp, segment)
        hosts = []
        for where, nbytes, reads, writes in self.sites.spans(state, warp, site, lanes):
            for low, high in _merged(where, nbytes):
                step.weak.append(Access(low, high, writes, site.statement))
                if reads and not writes:
                    hosts.append((low, high))
        return warp == mine and self._polls(unit, warp, site, segment, hosts)

    def _other(self, unit: Unit, warp: int, segment: _Segment) -> Step:
        """The step of a warp that has gone on within that of another one."""
        step = segment.others.get(warp)
        if step is None:
            actor = Actor(unit.number, warp)
            step = segment.others[warp] = Step(actor, None, None, actor)
            step.resumes = unit.waits.pop(warp, None)
        return step

    def _polls(self, unit: Unit, warp: int, site: Site, segment: _Segment, hosts: list[Span]) -> bool:
        """Whether a warp that reads weakly is in a state where it was: it sleeps until that changes."""
        count = segment.visits[site.place] = segment.visits.get(site.place, 0) + 1
        if count < POLLS or count & count - 1 or not hosts:
            return False
        kept = self.kept(unit, warp)
        now = kept[: Warp.BUDGET] + kept[Warp.INITIAL :]
        if segment.seen.get(site.place) != now or any(access.writes for access in segment.step.weak):
            segment.seen[site.place] = now
            return False
        unit.asleep[warp] = [
            (low, high - low, ctypes.string_at(low, high - low), False)
            for low, high in hosts if self.objects.readable(low, high - low)
        ]
        unit.at[warp] = site
        return True

    def _comes_again(self, unit: Unit, warp: int, count: int) -> bool:
        """Whether a warp has given way before a statement that it executes again: it waits for other warps."""
        state = unit.state
        pc, waits = state.get_warp(warp, Warp.PC, "Q"), state.get_warp(warp, Warp.WAITS, "Q")
        if not pc or pc != waits:
            return False
        unit.asleep[warp], unit.gave_way[warp] = [], count + 1
        return True

    def _call(self, state: BlockState) -> None:
        call: Any = state.code.graph.statements[state.code.statement_at(state.get(Block.FAULT_PC, "Q"))]
        if not (isinstance(call.callee, Symbol) and call.callee.symbol == "vprintf"):
            handle(state, Status.SYSTEM_CALL, lambda _: self.code)

    def _end(self, unit: Unit) -> None:
        """A block has ended."""
        unit.ended, unit.runnable = True, 0
        for other in self._beside(unit):
            if unit.cluster is not None and other is not unit and not other.ended:
                unit.cluster._close(other.state, unit.state)


def _merged(hosts: Any, nbytes: int) -> list[Span]:
    """The ranges that accesses of so many bytes at these addresses make together."""
    starts = np.unique(hosts)
    breaks = np.flatnonzero(starts[1:] > starts[:-1] + nbytes) + 1
    first = starts[np.concatenate(([0], breaks))]
    last = starts[np.concatenate((breaks - 1, [len(starts) - 1]))] + nbytes
    return list(zip(first.tolist(), last.tolist()))


