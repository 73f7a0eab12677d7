"""Steps where the lanes of a warp may be apart, in the function of a whole kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..machine.layout import FULL, NEVER, Warp
from ..codegen.handler import i32, lanes_of
from .plan import Step, price

if TYPE_CHECKING:
    from .barrier_regions import Stretch

__all__ = ["Masked"]


class Masked:
    """Steps where lanes may be apart: they have a mask each of the lanes that wait there, and run by rank."""

    def __init__(self, stretch: Stretch, members: list[Step], exits: list[Step]) -> None:
        self.stretch, self.members = stretch, {step.number for step in members}
        h = self.h = stretch.h
        self.chain = sorted([*members, *exits], key=lambda step: step.rank)
        self.pending = {step.number: h.room(i32, 4) for step in self.chain}
        self.checks = {step.number: h.block_named(f"check{step.number}_") for step in self.chain}
        self.bodies = {
            step.number: h.block_named(f"masked{step.number}_") for step in members if not self._together(step)
        }
        self.leaving = h.block_named("leave_masked")

    @staticmethod
    def _together(step: Step) -> bool:
        return step.sync is not None or step.meeting

    def enter(self, lanes: dict[int, Any]) -> None:
        """Lanes part: so many go on at each step."""
        h = self.h
        for number, place in self.pending.items():
            h.ir.store(lanes.get(number, h.i32(0)), place)
        h.ir.branch(self.checks[min(lanes, key=lambda number: self.stretch.plan.steps[number].rank)])

    def emit(self) -> None:
        for place, step in enumerate(self.chain):
            after = self.chain[place + 1] if place + 1 < len(self.chain) else None
            self._check(step, after)
            if step.number in self.bodies:
                self._body(step, after)
        self._leave()

    def _check(self, step: Step, after: Step | None) -> None:
        h = self.h
        h.ir.position_at_end(self.checks[step.number])
        lanes = h.ir.load(self.pending[step.number])
        here = h.block_named("here")
        if after is None:
            h.ir.branch(here)
        else:
            h.ir.cbranch(h.ir.icmp_unsigned("!=", lanes, h.i32(0)), here, self.checks[after.number])
        h.ir.position_at_end(here)
        if step.number in self.bodies:
            h.ir.branch(self.bodies[step.number])
            return
        all_, part = h.block_named("all"), h.block_named("part")
        h.ir.cbranch(h.full(lanes), all_, part)
        h.ir.position_at_end(all_)
        h.clean = set()
        self.stretch.edge(step.number)
        h.ir.position_at_end(part)
        self._leave_at(step)

    def _leave_at(self, step: Step) -> None:
        """The lanes that wait at a step go on there in the records."""
        h = self.h
        h.set("active", h.ir.load(self.pending[step.number]))
        h.ir.store(h.i32(0), self.pending[step.number])
        h.clean = set()
        h.leaving = self.leaving
        h.leave(step.offset, h.plan.needed(step.place, 0))
        h.leaving = self.stretch.leaving

    def _body(self, step: Step, after: Step | None) -> None:
        h, stretch = self.h, self.stretch
        h.ir.position_at_end(self.bodies[step.number])
        place = self.pending[step.number]
        lanes = h.ir.load(place)
        h.ir.store(h.i32(0), place)
        h.set("active", lanes)
        h.lanes, h.masked, h.clean, h.leaving = lanes, True, set(), self.leaving
        if not stretch.spots(step, 0):
            self._ending(step, lanes, after)
        h.finish_epochs()
        h.lanes, h.masked, h.leaving = h.i32(FULL), False, stretch.leaving

    def _ending(self, step: Step, lanes: Any, after: Step | None) -> None:
        h, ending = self.h, step.ending
        ways: list[tuple[int, Any]] = []
        cost = 0
        if ending is None:
            ways.append((step.fall, lanes))
        elif ending.shape[0] == "jump":
            ways.append((step.targets[0], lanes))
            cost = price(ending, self.stretch.plan.steps[step.targets[0]]) if ending.shape[2] else 0
        elif ending.shape[0] == "branch":
            mask = h.ir.and_(self.stretch.condition(ending), lanes)
            ways.append((step.targets[0], mask))
            ways.append((step.fall, h.ir.and_(lanes, h.ir.not_(mask))))
            cost = price(ending, self.stretch.plan.steps[step.targets[0]]) if ending.shape[3] else 0
        for number, mask in ways:
            waiting = self.pending[number]
            h.ir.store(h.ir.or_(h.ir.load(waiting), mask), waiting)
        for number, _ in ways:
            target = self.stretch.plan.steps[number]
            if target.rank <= step.rank:
                self._back(target, cost)
        if after is None:
            h.ir.unreachable()
        else:
            h.ir.branch(self.checks[after.number])

    def _back(self, target: Step, cost: int) -> None:
        """Lanes that go back go first."""
        h = self.h
        some, none, on = h.block_named("back"), h.block_named("forth"), h.block_named("again")
        waiting = h.ir.load(self.pending[target.number])
        h.ir.cbranch(h.ir.icmp_unsigned("!=", waiting, h.i32(0)), some, none)
        h.ir.position_at_end(some)
        if cost:
            budget = h.ir.sub(h.get("budget"), h.i32(cost))
            h.set("budget", budget)
            over = h.block_named("over")
            h.ir.cbranch(h.likely(h.ir.icmp_signed(">=", budget, h.i32(0))), on, over)
            h.ir.position_at_end(over)
            self._leave_at(target)
            h.leaving = self.leaving
        else:
            h.ir.branch(on)
        h.ir.position_at_end(on)
        h.ir.branch(self.checks[target.number])
        h.ir.position_at_end(none)

    def _leave(self) -> None:
        """The lanes that wait elsewhere are noted in the warp."""
        h = self.h
        h.ir.position_at_end(self.leaving)
        kind = lanes_of(i32)
        places: Any = h.load(h.warp, Warp.PLACES, kind, 64)
        parked: Any = h.i32(NEVER)
        for step in reversed(self.chain):
            lanes = h.ir.load(self.pending[step.number])
            rank = h.i32(step.rank)
            places = h.ir.select(h.bools(lanes), h.splat(rank), places)
            parked = h.ir.select(h.ir.icmp_unsigned("!=", lanes, h.i32(0)), rank, parked)
        h.store(places, h.warp, Warp.PLACES, 64)
        h.set("parked", parked)
        h.ir.branch(self.stretch.common)
