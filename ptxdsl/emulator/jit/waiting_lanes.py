"""Lanes that wait in converged code: those that a bound on an index sends on to where the lanes of the warp reconverge.

``if (i < n)`` splits a warp at the end of the data, the steps of a tree reduction in every block. What is skipped runs
once, as converged code for the lanes that are left: what is uniform stays so, since nothing else of it is used where
lanes reconverge (:class:`.Join`). There the registers are put together again, those of the lanes that waited from what
they were when these left.
"""

from __future__ import annotations

from typing import Any, Protocol

from ..codegen.handler import i32, lanes_of
from ..machine.layout import Warp
from .block_registers import type_of
from .function_builder import BlockFunction
from .plan import Join, Layout, PlannedRegister, Plan

__all__ = ["WaitingLanes"]


class ConvergentCode(Protocol):
    """The code between two barriers."""

    h: BlockFunction
    plan: Plan
    reached: list[int]

    def arrive(self, number: int) -> None:
        """Go on with a basic block, with all lanes that converged code has."""
        ...


class WaitingLanes:
    """The lanes that wait at each basic block of a region, and what their registers hold."""

    def __init__(self, outside: ConvergentCode, numbers: list[int]) -> None:
        self.outside, self.h, plan = outside, outside.h, outside.plan
        self.joins = {n: plan.joins[n] for n in numbers if n in plan.joins}
        self.registers: dict[int, dict[str, PlannedRegister]] = {}
        for join in self.joins.values():
            found = self.registers.setdefault(join.block, {})
            found.update({name: plan.registers[name] for name in join.registers})
        self.lanes = {block: self.h.alloca(i32, 4) for block in self.registers}
        for place in self.lanes.values():
            self.h.allocas.store(i32(0), place)
        self.kept = {
            (block, name): self.h.alloca(type_of(register), 64)
            for block, registers in self.registers.items() for name, register in registers.items()
        }
        self.entries = {block: self.h.block_named(f"join{block}_") for block in self.registers}

    def _current(self, register: PlannedRegister) -> Any:
        return self.h.variable(register.slot, type_of(register))

    def _chosen(self, register: PlannedRegister, mask: Any, some: Any, others: Any) -> Any:
        """The numbers of some lanes, and those of the others."""
        h = self.h
        if register.layout is not Layout.PREDICATE:
            return h.ir.select(h.bools(mask), some, others)
        return h.ir.or_(h.ir.and_(some, mask), h.ir.and_(others, h.ir.not_(mask)))

    def leave(self, join: Join, lanes: Any) -> None:
        """These lanes of converged code wait at the join; the others go on."""
        h, place = self.h, self.lanes[join.block]
        waiting = h.ir.load(place)
        for name, register in self.registers[join.block].items():
            kept, now = self.kept[join.block, name], h.ir.load(self._current(register))
            h.ir.store(self._chosen(register, waiting, h.ir.load(kept), now), kept)
        h.ir.store(h.ir.or_(waiting, lanes), place)
        h.set("converged", h.ir.xor(h.converged, lanes))

    def resume(self, join: Join, lanes: Any) -> None:
        """These lanes of the warp, if there are any, have waited at the join since the registers were stored."""
        h = self.h
        for name, register in self.registers[join.block].items():
            h.ir.store(h.ir.load(self._current(register)), self.kept[join.block, name])
        h.ir.store(lanes, self.lanes[join.block])
        h.set("converged", h.ir.xor(h.converged, lanes))

    def emit(self) -> None:
        """Where lanes come to that others may wait for."""
        h = self.h
        for block, entry in self.entries.items():
            h.ir.position_at_end(entry)
            place = self.lanes[block]
            waiting = h.ir.load(place)
            some, together = h.block_named("others_wait"), h.block_named("together")
            h.ir.cbranch(h.likely(h.zero(waiting)), together, some)
            h.ir.position_at_end(some)
            for name, register in self.registers[block].items():
                variable = self._current(register)
                kept = h.ir.load(self.kept[block, name])
                h.ir.store(self._chosen(register, waiting, kept, h.ir.load(variable)), variable)
            h.ir.store(i32(0), place)
            h.set("converged", h.ir.or_(h.converged, waiting))
            h.ir.branch(together)
            h.ir.position_at_end(together)
            h.canonical = set()
            self.outside.arrive(block)

    def park(self) -> None:
        """At a side exit: note in the warp where lanes wait, and store their registers."""
        h, plan = self.h, self.outside.plan
        for block, place in self.lanes.items():
            waiting = h.ir.load(place)
            some, on = h.block_named("parked"), h.block_named("on")
            h.ir.cbranch(h.nonzero(waiting), some, on)
            h.ir.position_at_end(some)
            priority = h.i32(plan.blocks[block].priority)
            places = h.load(h.warp, Warp.PRIORITIES, lanes_of(i32), 64)
            h.store(h.ir.select(h.bools(waiting), h.splat(priority), places), h.warp, Warp.PRIORITIES, 64)
            parked = h.get("parked")
            h.set("parked", h.ir.select(h.ir.icmp_signed("<", priority, parked), priority, parked))
            for name, register in self.registers[block].items():
                kept = h.ir.load(self.kept[block, name])
                stored = h.load(h.warp, register.offset, kept.type)
                raw = register.slot in plan.noncanonical
                value = self._chosen(register, waiting, h.canonical_number(kept) if raw else kept, stored)
                h.store(value, h.warp, register.offset)
            h.ir.store(i32(0), place)
            h.ir.branch(on)
            h.ir.position_at_end(on)
