"""Runs a whole launch step by step, in an order that is given: which warp goes on, which operation completes.

A step of a warp is a visible statement (:mod:`.stops`) and what follows up to the next one. Where no warps race it is
enough to switch there, since nothing else that a warp does is seen by others in between. The emulator computes all of
it (:mod:`.warps`); here is only who goes on. A warp that polls (it comes back to the same place without having changed
anything) has made no step: it is as if it had not asked yet, and it sleeps until what it has read changes. Loops that
ask a limited number of times give up only where nothing else can happen any more.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import EmulationError
from ..machine.allocation import copy_bytes, number_at
from ..machine.layout import LANES, Block, Mbarrier, Warp
from ..machine.pending import Pending
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.deadlock import deadlock, livelock
from ..runtime.faults import set_bits
from .pending_operations import Operation, Operations
from .schedule import Actor
from .steps import Step, Touch, Unit
from .stops import Site, Sites
from .touches import WAITED, Look
from .warps import Warps

__all__ = ["Impossible", "Stepwise"]

ROUNDS = 40
"""How often each warp that polls asks again where nothing else can happen."""


class Impossible(Exception):
    """The actor of a step cannot go on there."""


class Stepwise:
    """One run of a launch."""

    def __init__(self, launch: LaunchState, code: Any, sites: Sites) -> None:
        self.launch, self.code, self.sites = launch, code, sites
        self.steps: list[Step] = []
        self.operations = Operations()
        self.of_warp: dict[tuple[int, int], list[Operation]] = {}
        self.current = Actor(0, -1)
        self._warps = Warps(launch, code, sites)
        self.units = self._warps.units

    # Who can go on

    def enabled(self) -> list[Actor]:
        """The warps that can go on, in their order."""
        return [
            Actor(unit.number, warp)
            for unit in self.units if not unit.ended and unit.runnable
            for warp in set_bits(unit.runnable) if warp not in unit.asleep or self._woken(unit, warp)
        ]

    def _woken(self, unit: Unit, warp: int) -> bool:
        if unit.gave_way.get(warp, len(self.steps)) < len(self.steps):
            del unit.gave_way[warp], unit.asleep[warp]
            return True
        for place, nbytes, data, parity in unit.asleep[warp]:
            now = ctypes.string_at(place, nbytes)
            if now != data and not (parity and _parity(now) == _parity(data)):
                del unit.asleep[warp]
                return True
        return False

    def default(self) -> Actor | None:
        """Who goes on where nobody is named: the same warp, the next one, or the oldest operation."""
        enabled = self.enabled()
        if enabled:
            return next((actor for actor in enabled if actor >= self.current), enabled[0])
        return next((op.actor for op in self.operations.free()), None)

    @property
    def ended(self) -> bool:
        return all(unit.ended for unit in self.units)

    def go(self, actor: Actor, default: Actor | None) -> bool:
        """Make a step; False where a warp has polled in vain. Raises Impossible, and what goes wrong."""
        if actor.operation >= 0:
            op = next((op for op in self.operations.free() if op.actor == actor), None)
            if op is None:
                raise Impossible
            self._complete(op, default)
            return True
        unit = next((unit for unit in self.units if unit.number == actor.block), None)
        able = unit is not None and not unit.ended and unit.runnable >> actor.warp & 1
        if unit is None or not able or (actor.warp in unit.asleep and not self._woken(unit, actor.warp)):
            raise Impossible
        self.current = actor
        return self._step(unit, actor.warp, default)

    # Operations

    def _complete(self, op: Operation, default: Actor | None) -> None:
        before = self._words()
        self.operations.make(op)
        made, _ = self.operations.update(self._states(), op.actor.block, len(self.steps))
        self._note_made([*(other for other in made if other is not op), op], before, default)

    def _states(self) -> Iterator[BlockState]:
        return (unit.state for unit in self.units)

    def _words(self) -> dict[int, int]:
        """The words of all mbarriers that count an operation."""
        return {place: number_at(place) for op in self.operations.pending for place in op.mbarriers}

    def _note_made(self, made: list[Operation], before: dict[int, int], default: Actor | None = None) -> None:
        """Operations were made: by themselves, the last of them in place of ``default``, or for a step that waits."""
        last = {place: op for op in made for place in op.mbarriers}
        for op in made:
            step = Step(op.actor, None, op.statement, default if default is not None and op is made[-1] else op.actor)
            step.completes = op
            for place in op.mbarriers:
                self._warps.objects.update(step, place, before.get(place, 0), last[place] is op)
            self.steps.append(step)

    # A step of a warp

    def _step(self, unit: Unit, warp: int, default: Actor | None, undo: bool = True) -> bool:
        state, site = unit.state, unit.at.pop(warp, None)
        actor = Actor(unit.number, warp)
        step = Step(actor, site, site.statement if site is not None else None, default)
        step.resumes = unit.waits.pop(warp, None)
        look = Look(self._warps.objects, unit, warp, site, step)
        start = self._warps.kept(unit, warp)
        before = self._words()
        others = self._warps.run(unit, warp, step, len(self.steps))
        made, step.begun = self.operations.update(self._states(), unit.number, len(self.steps))
        over = unit.ended  # then all that was pending was made
        ended = [op for op in made if over and not look.waits_for(op)]
        step.waited = [op for op in made if op not in ended]
        self._note_made(step.waited, before)
        if site is not None and site.kind == "wait":
            self._note_waited(unit, warp, step)
        look.after()
        again = unit.at.get(warp)
        still = site is not None and again is site and not step.weak and not step.begun and not look.changed
        if still and undo and look.polls and look.lanes == self.sites.lanes(state, warp, site.statement):  # type: ignore[union-attr]
            self._put_back(unit, warp, start)
            unit.asleep[warp] = look.read
            unit.waits.update({warp: step.resumes} if step.resumes else {})
            return False
        if warp in unit.gave_way and self._repeats(unit, warp, site) and not step.weak and not step.begun:
            if site is not None:
                unit.at[warp] = site
            unit.waits.update({warp: step.resumes} if step.resumes else {})
            return False
        self._note_products(unit, warp, step)
        if site is None or site.kind != "barrier" or step.touches or step.weak or step.begun or over:
            for op in step.begun:
                op.begun = len(self.steps)
                self.of_warp.setdefault((op.actor.block, op.actor.warp), []).append(op)
            self.steps.append(step)
        self.steps += others
        self._follow_turns(unit, warp, look, step)
        self._note_made(ended, before)
        return True

    def _note_products(self, unit: Unit, warp: int, step: Step) -> None:
        """All four warps of a warpgroup make a product together."""
        if step.site is not None and step.site.statement.form.effects.completes == "wgmma_group":
            key = "products", unit.number, warp // 4 * 4
            step.touches.append(Touch(key, "update", unit.state.get_warp(warp, Warp.PRODUCTS, "i") - 1))

    def _repeats(self, unit: Unit, warp: int, site: Site | None) -> bool:
        """Whether a warp that has given way is still where it was."""
        place = self.code.statement_at(unit.state.get_warp(warp, Warp.PC, "Q"))
        return site is None or place == site.place

    def _note_waited(self, unit: Unit, warp: int, step: Step) -> None:
        """A wait for groups: what of the warp's operations was complete before counts as waited for, too."""
        group = step.site.statement.form.effects.waits if step.site is not None else ""
        kinds = WAITED.get(group, ())
        first = warp // 4 * 4 if group == "wgmma_group" else warp
        left = {id(op) for op in self.operations.pending}
        for op in self.of_warp.get((unit.number, first), ()):
            if op.kind in kinds:
                if id(op) not in left:
                    step.waited.append(op)
                elif any(number_at(record + Pending.STAGED, 4) for record in op.records):
                    step.read_done.append(op)

    def _put_back(self, unit: Unit, warp: int, kept: bytes) -> None:
        copy_bytes(unit.state.warps + warp * unit.state.stride, kept, len(kept))

    def _follow_turns(self, unit: Unit, warp: int, look: Look, step: Step) -> None:
        """A warp that is in a state where it was, and has changed nothing since, sleeps until what it reads changes."""
        seen, turned = unit.seen.setdefault(warp, {}), unit.turned.setdefault(warp, [])
        again = unit.at.get(warp)
        if look.changed or step.begun or any(a.writes for a in step.weak) or again is None:
            seen.clear()
            turned.clear()
        else:
            turned += look.read
        if again is None:
            return
        now = self._live(unit, warp, again)
        if turned and seen.get(again.place, (b"", 0))[0] == now:
            unit.asleep[warp] = list(turned)
            since = seen[again.place][1]
            if all(each.actor == step.actor for each in self.steps[since:]):
                del self.steps[since:]  # it is as if it had not asked yet
            seen.clear()
            turned.clear()
        else:
            seen[again.place] = now, len(self.steps)

    def _live(self, unit: Unit, warp: int, site: Site) -> bytes:
        """What a warp that is at a statement will still read: the live registers, and where its lanes are."""
        state, start = unit.state, warp * unit.state.stride
        alive, active = state.get_warp(warp, Warp.ALIVE, "I"), state.get_warp(warp, Warp.ACTIVE, "I")
        waiting = np.frombuffer(state._warps_view, np.int32, LANES, start + Warp.PRIORITIES)
        apart = np.array([bool((alive & ~active) >> lane & 1) for lane in range(LANES)])
        priorities = np.where(apart, waiting, -1)
        found = [np.array([alive, active], np.uint32).tobytes(), priorities.tobytes()]
        view, registers = state._warps_view, self.code.registers
        for name in self.sites.live(site.place, frozenset(priorities[apart].tolist())):
            bits, at = registers.bits(name), start + registers.offsets[name]
            found.append(bytes(view[at : at + (4 if bits == 1 else LANES * bits // 8)]))
        return b"".join(found)

    # Nobody can go on

    def stuck(self) -> None:
        """Every warp waits: those that poll ask again, some of them a limited number of times. Raises a deadlock."""
        for _ in range(ROUNDS):
            changed = False
            for unit in self.units:
                for warp in sorted(unit.asleep):
                    kept = self._warps.kept(unit, warp)
                    if not unit.runnable >> warp & 1:
                        continue
                    unit.asleep.pop(warp)
                    count = len(self.steps)
                    self._step(unit, warp, Actor(unit.number, warp), undo=False)
                    now = self._warps.kept(unit, warp)
                    same = kept[: Warp.BUDGET] + kept[Warp.INITIAL :] == now[: Warp.BUDGET] + now[Warp.INITIAL :]
                    if same and not any(s.weak or s.begun for s in self.steps[count:]):
                        del self.steps[count:]
                    changed = changed or not same
                    if unit.ended:
                        return
                    if self.enabled_others(unit, warp):
                        return
                    unit.asleep.setdefault(warp, [])
            if not changed:
                break
        raise self._deadlock()

    def enabled_others(self, unit: Unit, warp: int) -> bool:
        """Whether some other warp can go on."""
        return any((actor.block, actor.warp) != (unit.number, warp) for actor in self.enabled())

    def _deadlock(self) -> EmulationError:
        live = [unit for unit in self.units if not unit.ended]
        for unit in live:
            unit.state.put(Block.RUNNABLE, "I", unit.runnable)
        polling = [unit for unit in live if unit.runnable]
        others = [unit.state for unit in live]
        if polling:
            return livelock(polling[0].state, others)
        return deadlock(live[0].state, others)


def _parity(data: bytes) -> int:
    return int.from_bytes(data, "little") >> Mbarrier.PARITY & 1
