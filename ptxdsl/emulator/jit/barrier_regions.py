"""What lies between two barriers, in the function of a whole kernel: the loop over the warps, the steps inside it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.layout import FULL, NEVER, Block
from ..codegen import data, shadow_checks
from ..codegen.handler import Handler, i64, pointer
from ..codegen.shadow_inspection import READ
from .function_builder import Exit, Whole
from .divergent_regions import Masked
from .plan import END, Spot, Step, price
from .inlining import ALONE, FUSED, LASTING

__all__ = ["BUDGET", "Stretch"]

BUDGET = 1 << 24
"""Statements in loops that all warps of a block may execute; what takes longer goes on where it can be interrupted."""
MOST_SHARED = 24
"""Loads that are made once for all warps."""


class Stretch:
    """What lies between two barriers: the loop over the warps and the steps inside it."""

    def __init__(self, h: Whole, start: int, common: ir.Block) -> None:
        self.h, self.plan, self.start, self.common = h, h.plan, start, common
        first = self.plan.steps[max(start, 0)]
        self.first = first
        self.turn, self.latch = h.block_named(f"turn{start}_"), h.block_named("latch")
        self.again = self.turn
        self.leaving = h.block_named("leave_full")
        self.reached = self._reach()
        self.blocks: dict[int, ir.Block] = {}
        self.masked: list[Masked] = []
        self.ends: dict[int, None] = {}
        """Where warps end: at the barrier of a step, or (-1) for good."""

    def _successors(self, step: Step) -> list[int]:
        ending = step.ending
        if ending is not None and ending.shape[0] == "exit":
            return []
        if ending is not None and ending.shape[0] == "jump":
            return [step.targets[0]]
        ways = [step.fall] if step.fall >= 0 else []
        return ways + ([step.targets[0]] if ending is not None else [])

    def _reach(self) -> list[int]:
        seen: dict[int, None] = {}
        todo = self._successors(self.first) if self.start >= 0 else [0]
        while todo:
            at = todo.pop()
            if at not in seen and self.plan.steps[at].sync is None:
                seen[at] = None
                todo += self._successors(self.plan.steps[at])
        return list(seen)

    def emit(self) -> None:
        h, plan = self.h, self.plan
        inside = [*self.reached, self.first.number]
        h.written = frozenset().union(*(plan.writes[n] for n in inside))
        read = frozenset().union(*(plan.reads[n] for n in inside))
        h.leaving = self.leaving
        h.ir.position_at_end(self.turn)
        self._prepare()
        self._begin(h.written, read)
        self.blocks = {n: h.block_named(f"step{n}_") for n in self.reached}
        self._parts()
        if self.first.sync is not None and self.start >= 0:
            self._full(self.first, self.first.sync.at + 1)
        else:
            h.lanes, h.masked = h.i32(FULL), False
            for spot in plan.opening:
                h.begin(spot)
                FUSED[spot.shape[0]](h, spot.shape)
            self.edge(0)
        for number in self.reached:
            h.ir.position_at_end(self.blocks[number])
            self._full(plan.steps[number], 0)
        for part in self.masked:
            part.emit()
        h.ir.position_at_end(self.leaving)
        h.set("active", FULL)
        h.set("parked", NEVER)
        h.ir.branch(self.common)
        self._latch()

    def _prepare(self) -> None:
        """Load once what all warps of the block load from the same place, where nobody stores meanwhile."""
        h, plan = self.h, self.plan
        self.loaded: dict[int, list[tuple[Any, Any]]] = {}
        self.quiet = plan.warps > 1 and not any(
            spot.shape[0] in LASTING for n in (*self.reached, self.first.number) for spot in plan.steps[n].spots
        )
        if not self.quiet:
            return
        spots = [
            (number, spot) for number, spot in enumerate(self.first.spots)
            if spot.shape[0] == "load" and not spot.shape[6] and spot.shape[1][0] in "AU" and spot.shape[2] is not None
            and spot.values[2] in plan.shared
        ][:MOST_SHARED]
        if not spots:
            return
        h.number = h.i32(0)
        h.warp = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
        names = {register.slot: name for name, register in plan.registers.items()}
        h.fill({names[spot.values[2]] for _, spot in spots})
        h.set("turn", 0)
        h.lanes, h.masked, h.clean = h.i32(FULL), False, set()
        h.epoch = Exit(h.block_named("unprepared"), 0, {})
        for number, spot in spots:
            h.begin(spot)
            h.stored = []
            FUSED["load"](h, spot.shape)
            self.loaded[number] = h.stored
            h.stored = None
        turn = h.block_named("turns")
        h.ir.branch(turn)
        h.ir.position_at_end(h.epoch.block)
        h.epoch = None
        h.set("record", self.begin)
        h.set("begin", self.begin)
        h.ir.branch(self.leaving)
        h.ir.position_at_end(turn)
        self.again = turn

    @property
    def begin(self) -> int:
        """Where a warp that has not had its turn goes on in the records."""
        return self.first.sync.after if self.start >= 0 and self.first.sync is not None else self.plan.begin

    def _begin(self, written: frozenset[str], read: frozenset[str]) -> None:
        """The next warp's turn."""
        h, plan = self.h, self.plan
        turned = h.ir.add(h.get("first"), h.get("turn"))
        back = h.ir.sub(turned, h.i32(plan.warps))
        h.number = h.ir.select(h.ir.icmp_signed("<", turned, h.i32(plan.warps)), turned, back)
        warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
        h.warp = h.add(warps, h.ir.mul(h.ir.zext(h.number, i64), h.i64(plan.stride)))
        sync_ = self.first.sync if self.start >= 0 else None
        h.set("begin", self.begin)
        live = plan.needed(sync_.place, 1) if sync_ is not None else plan.needed(self.first.place, 0)
        h.fill((live & (written | read)) | (plan.always & read))

    def _latch(self) -> None:
        h, plan = self.h, self.plan
        h.ir.position_at_end(self.latch)
        turn = h.ir.add(h.get("turn"), h.i32(1))
        h.set("turn", turn)
        all_ = h.block_named("all_warps")
        h.ir.cbranch(h.ir.icmp_signed("<", turn, h.i32(plan.warps)), self.again, all_)
        h.ir.position_at_end(all_)
        h.set("turn", 0)
        first = h.ir.sub(h.get("first"), h.i32(1))
        h.set("first", h.ir.select(h.ir.icmp_signed("<", first, h.i32(0)), h.i32(plan.warps - 1), first))
        done = h.block_named("done")
        ways = h.ir.switch(h.get("sync"), done)
        self.ways = ways
        h.ir.position_at_end(done)
        h.ir.ret_void()

    def _parts(self) -> None:
        """The groups of steps where lanes may be apart."""
        plan = self.plan
        left = {n for n in self.reached if plan.steps[n].parted}
        near: dict[int, set[int]] = {n: set() for n in left}
        for n in left:
            for other in self._successors(plan.steps[n]):
                if other in left:
                    near[n].add(other)
                    near[other].add(n)
        while left:
            group, todo = set(), [min(left)]
            while todo:
                at = todo.pop()
                if at in left:
                    left.discard(at)
                    group.add(at)
                    todo += near[at]
            exits = {s for n in group for s in self._successors(plan.steps[n])} - group
            members, outer = ([plan.steps[n] for n in sorted(some)] for some in (group, exits))
            self.masked.append(Masked(self, members, outer))

    # Steps of all lanes

    def edge(self, number: int) -> None:
        """Go on with a step, all lanes together."""
        step = self.plan.steps[number]
        if step.sync is not None:
            for spot in step.spots[: step.sync.at]:
                self.h.begin(spot)
                FUSED[spot.shape[0]](self.h, spot.shape)
            self._end(number, step.sync.wait, self.plan.needed(step.sync.place, 0))
        else:
            self.h.ir.branch(self.blocks[number])

    def _end(self, number: int, offset: int, needed: set[str]) -> None:
        """The warp is at a barrier, or has ended; all of them must have come to the same."""
        h = self.h
        self.ends[number] = None
        h.flush(needed)
        code = h.i32(number)
        same = h.ir.icmp_signed("==", h.get("sync"), code)
        good = h.ir.or_(h.ir.icmp_signed("==", h.get("turn"), h.i32(0)), same)
        on, other = h.block_named("arrived"), h.block_named("elsewhere")
        h.ir.cbranch(h.likely(good), on, other)
        h.ir.position_at_end(other)
        h.set("record", offset)
        h.ir.branch(self.leaving)
        h.ir.position_at_end(on)
        h.set("sync", number)
        h.ir.branch(self.latch)

    def spots(self, step: Step, first: int) -> bool:
        """The code of a step's records; whether it has ended early."""
        h = self.h
        for number, spot in enumerate(step.spots[first:], first):
            ready = self.loaded.get(number) if first or (step is self.first and self.start < 0) else None
            if ready is not None:
                for place, value in ready:
                    h.store(value, place, 0)
                continue
            if spot.merged == ():
                continue
            h.begin(spot)
            kind = spot.shape[0]
            if kind in FUSED:
                if kind == "shadow_check" and self.quiet and self._twice(spot):
                    h.first_turns()
                FUSED[kind](h, spot.shape)
            elif spot.shape[1]:  # guarded
                ALONE[kind](h, spot.shape)
                h.clean.clear()
            else:
                h.bail()
                return True
            if kind in LASTING:
                h.lasts(kind)
        return False

    def _twice(self, spot: Spot) -> bool:
        """Whether two warps that read a place tell as much as all: they are the two readers that are remembered."""
        check = shadow_checks.ShadowCheck(*spot.shape[1:])
        plain = check.role == READ and check.block_private and check.barriers_only
        plain = plain and check.race and not check.guard
        uniform = check.pattern is not None and check.kind[0] in "AU"
        return bool(plain and uniform and spot.values[2] in self.plan.shared)

    def condition(self, ending: Spot) -> Any:
        """The mask of the lanes that take a branch."""
        h = self.h
        h.begin(ending)
        return data.guard_mask(h, ending.shape[1], False)

    def _full(self, step: Step, first: int) -> None:
        h = self.h
        h.lanes, h.masked, h.clean, h.leaving = h.i32(FULL), False, set(), self.leaving
        if not self.spots(step, first):
            self._go_on(step)
        h.finish_epochs()

    def _go_on(self, step: Step) -> None:
        ending = step.ending
        if ending is None:
            self.edge(step.fall)
        elif ending.shape[0] == "exit":
            self._end(END, ending.offset, set())
        elif ending.shape[0] == "jump":
            self._spend(step.targets[0], price(ending, self.plan.steps[step.targets[0]]) if ending.shape[2] else 0)
        else:
            self._branch(step, ending)

    def _spend(self, target: int, cost: int) -> None:
        h = self.h
        if cost:
            budget = h.ir.sub(h.get("budget"), h.i32(cost))
            h.set("budget", budget)
            on, over = h.block_named("on"), h.block_named("over")
            h.ir.cbranch(h.likely(h.ir.icmp_signed(">=", budget, h.i32(0))), on, over)
            h.ir.position_at_end(over)
            step = self.plan.steps[target]
            h.leave(step.offset, self.plan.needed(step.place, 0))
            h.ir.position_at_end(on)
        self.edge(target)

    def _branch(self, step: Step, ending: Spot) -> None:
        h = self.h
        _, _, apart, back = ending.shape[:4]
        cost = price(ending, self.plan.steps[step.targets[0]]) if back else 0
        mask = self.condition(ending)
        all_, some = h.block_named("all"), h.block_named("some")
        target = step.targets[0]
        h.ir.cbranch(h.full(mask) if apart else h.ir.icmp_unsigned("!=", mask, h.i32(0)), all_, some)
        h.ir.position_at_end(all_)
        kept = set(h.clean)
        self._spend(target, cost)
        h.ir.position_at_end(some)
        h.clean = kept
        if not apart:
            self.edge(step.fall)
            return
        none, mixed = h.block_named("none"), h.block_named("mixed")
        h.ir.cbranch(h.ir.icmp_unsigned("==", mask, h.i32(0)), none, mixed)
        h.ir.position_at_end(none)
        self.edge(step.fall)
        h.ir.position_at_end(mixed)
        h.clean = set()
        part = next((p for p in self.masked if {target, step.fall} & p.members), None)
        if part is None or target == step.fall or not {target, step.fall} <= set(part.pending):
            h.leave(ending.offset, self.plan.needed(ending.statement, 0))
            return
        part.enter({target: mask, step.fall: h.ir.not_(mask)})
