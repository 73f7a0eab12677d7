"""What a visible statement touches of what warps synchronise by: mbarriers, barriers, strongly accessed memory.

It is looked at before and after the statement was executed: which word it was, and what has become of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from ...isa.effects import COMMUTATIVE
from ..machine.allocation import number_at
from ..machine.layout import Barrier, Block, Cluster, ClusterBlock, Mbarrier, Warp
from ..machine.pending import Kind
from ..runtime.block_state import LaunchState
from .pending_operations import Operation
from .steps import Step, Touch, Unit
from .stops import Site, Sites

__all__ = ["WAITED", "Look", "Objects"]

WAITED = {"async_group": (Kind.COPY,), "bulk_group": (Kind.BULK,), "wgmma_group": (Kind.PRODUCT,)}
"""The operations that waits for groups need."""


class Objects:
    """What warps synchronise by: the phase of each barrier and mbarrier, and which memory there is at all."""

    def __init__(self, launch: LaunchState, sites: Sites, shared: Sequence[int]) -> None:
        self.sites = sites
        self.phases: dict[tuple[Any, ...], int] = {}
        self._areas = [
            (area.place, area.place + area.nbytes) for area in launch.ranges
            if area is not None and not area.shared and area.nbytes > 0
        ]
        self._areas += [(place, place + launch.shared_bytes) for place in shared]

    def readable(self, host: int, nbytes: int) -> bool:
        """Whether bytes are some of the launch's memory."""
        return any(low <= host and host + nbytes <= high for low, high in self._areas)

    def update(self, step: Step, place: int, before: int, last: bool = True) -> None:
        """A step has changed an mbarrier, whose word was ``before``; the ``last`` of several may end a phase."""
        key = "mbarrier", place
        phase = self.phases.get(key, 0)
        known = self.phases.get(("parity", place), before >> Mbarrier.PARITY & 1)
        now = number_at(place) >> Mbarrier.PARITY & 1
        step.touches.append(Touch(key, "update", phase, last and now != known))
        if last and now != known:
            self.phases[key] = phase + 1
        if last:
            self.phases["parity", place] = now


class Look:
    """What a visible statement is about to touch, and whether that has changed afterwards."""

    def __init__(self, objects: Objects, unit: Unit, warp: int, site: Site | None, step: Step) -> None:
        self.objects, self.unit, self.warp, self.site, self.step = objects, unit, warp, site, step
        self.changed, self.polls, self.lanes = False, False, 0
        self.read: list[tuple[int, int, bytes, bool]] = []
        self._words: dict[int, int] = {}
        self._bytes: list[tuple[int, int, bytes]] = []
        if site is None:
            return
        self.lanes = objects.sites.lanes(unit.state, warp, site.statement)
        effects = site.statement.form.effects
        if site.kind in ("mbarrier", "begin"):
            for access in site.accesses if site.kind == "mbarrier" or effects.commits else ():
                if access.kind == "mbarrier":
                    hosts = objects.sites.hosts(unit.state, warp, site, access, self.lanes)
                    places = sorted({int(host) for host in hosts})
                    self._words = {at: number_at(at) for at in places if objects.readable(at, 8)}
            self.polls = effects.waits == "mbarrier"
            if self.polls:
                self.read = [(at, 8, word.to_bytes(8, "little"), True) for at, word in self._words.items()]
        elif site.kind == "strong":
            for hosts, nbytes, _, _ in objects.sites.spans(unit.state, warp, site, self.lanes):
                places = sorted({int(host) for host in hosts})
                known = [at for at in places if objects.readable(at, nbytes)]
                self._bytes += [(at, nbytes, ctypes.string_at(at, nbytes)) for at in known]
            self.polls = effects.reads
            self.read = [(*each, False) for each in self._bytes] if effects.reads else []
        elif site.kind == "barrier":
            self._before_barrier(effects)

    def _before_barrier(self, effects: Any) -> None:
        objects, unit, warp = self.objects, self.unit, self.warp
        assert self.site is not None
        if effects.barrier == "cluster":
            assert unit.cluster is not None
            self.key: tuple[Any, ...] = ("cluster", unit.which)
            self.phase = number_at(unit.cluster.address + Cluster.PHASE, 4)
            return
        named = dict(zip((spec.name for spec in self.site.statement.form.operands), self.site.statement.operands))
        number = int(objects.sites.number(unit.state, warp, named["a"])[0]) if "a" in named else 0
        self.key = "barrier", unit.number, number
        self.phase = objects.phases.get(self.key, 0)
        self._arrived = unit.state.get(Block.BARRIERS + number * Barrier.nbytes + Barrier.ARRIVED, "I")
        self._whole = self.lanes == unit.state.get_warp(warp, Warp.ALIVE, "I")

    def waits_for(self, op: Operation) -> bool:
        """Whether the statement is one that needs an operation."""
        if self.site is None:
            return False
        group = WAITED.get(self.site.statement.form.effects.waits, ())
        return op.kind in group or any(place in self._words for place in op.mbarriers)

    def after(self) -> None:
        """The statement was executed."""
        if self.step.resumes is not None:
            key, phase = self.step.resumes
            self.objects.phases[key] = max(self.objects.phases.get(key, 0), phase + 1)
        if self.site is None:
            return
        effects, step = self.site.statement.form.effects, self.step
        if self.site.kind in ("mbarrier", "begin"):
            for at, word in self._words.items():
                self._mbarrier(at, word, effects)
        elif self.site.kind == "strong":
            for at, nbytes, data in self._bytes:
                now = ctypes.string_at(at, nbytes)
                self.changed = self.changed or now != data
                mode = "read" if not effects.writes or (effects.atomic == "cas" and now == data) else "write"
                commutes = effects.writes and effects.atomic in COMMUTATIVE
                if commutes and not any(spec.written for spec in self.site.statement.form.operands):
                    mode = f"update.{effects.atomic}"
                step.touches += [
                    Touch(("memory", word), mode, 0, False, (at, at + nbytes))
                    for word in range(at // 4, (at + nbytes + 3) // 4)
                ]
        elif self.site.kind == "barrier":
            self._barrier(effects)

    def _mbarrier(self, at: int, word: int, effects: Any) -> None:
        objects, step, now = self.objects, self.step, number_at(at)
        key = "mbarrier", at
        if self.polls:
            step.touches.append(Touch(key, "read", objects.phases.get(key, 0)))
        elif effects.arrives or effects.commits or now >> Mbarrier.MAGIC == word >> Mbarrier.MAGIC == Mbarrier.VALID:
            self.changed = True
            if now != word:
                objects.update(step, at, word)
        else:
            self.changed = True
            step.touches.append(Touch(key, "write", objects.phases.get(key, 0), True))
            objects.phases[key] = objects.phases.get(key, 0) + 1
            objects.phases["parity", at] = now >> Mbarrier.PARITY & 1

    def _barrier(self, effects: Any) -> None:
        objects, unit, warp, step = self.objects, self.unit, self.warp, self.step
        self.changed = True
        waits = effects.waits == effects.barrier
        if effects.barrier == "cluster":
            head = unit.cluster.address if unit.cluster is not None else 0
            phase = self.phase if effects.arrives else unit.arrived.get(warp, self.phase)
            waiting = number_at(unit.state.get(Block.CLUSTER, "Q") + ClusterBlock.WAITING, 4)
            blocked = waits and bool(waiting >> warp & 1)
            if effects.arrives:
                unit.arrived[warp] = phase
                ended = number_at(head + Cluster.PHASE, 4) != phase
                step.touches.append(Touch(self.key, "update", phase, ended))
        else:
            place = Block.BARRIERS + self.key[2] * Barrier.nbytes
            arrived = unit.state.get(place + Barrier.ARRIVED, "I")
            if arrived == self._arrived and (arrived or not self._whole):
                self.changed = False  # these lanes let others of the warp come first
                return
            phase, ended = self.phase, not unit.state.get(place + Barrier.ARRIVED, "I")
            blocked = bool(unit.state.get(place + Barrier.WAITING, "I") >> warp & 1)
            step.touches.append(Touch(self.key, "update", phase, ended))
            if ended:
                objects.phases[self.key] = phase + 1
        if waits and blocked:
            unit.waits[warp] = self.key, phase
        elif waits:
            step.touches.append(Touch(self.key, "read", phase + 1))
