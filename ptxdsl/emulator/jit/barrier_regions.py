"""The code between two barriers in a block function: the loop over the warps, around their basic blocks."""

from __future__ import annotations


from llvmlite import ir

from ..codegen.handler import Handler, i64, pointer
from ..instructions.memory import Load
from ..machine.layout import FULL, NEVER, Block
from .block_passes import emit_block_pass
from .converged_blocks import ConvergedBlocks
from .divergent_regions import DivergentRegion
from .function_builder import BlockFunction, DeoptPoint
from .grid_turns import emit_made_turns
from .idle_warps import store_kept
from .lane_regions import LaneRegion
from .loop_interchange import PLAIN
from .plan import RETIRED, PlannedOp, votes

__all__ = ["BarrierRegion"]

MAX_HOISTED = 24
"""Loads that are made once for all warps."""


class BarrierRegion(ConvergedBlocks):
    """The code from a barrier, or from the kernel's entry, to the next barriers."""

    copies = True
    common: tuple[str, ...] = ()
    """Registers that are kept once where the region begins, for all warps."""

    def __init__(self, h: BlockFunction, start: int, hand_over: ir.Block) -> None:
        self.head, latch = h.block_named(f"next_warp{start}_"), h.block_named("latch")
        self.loop, self.all_warps = self.head, h.block_named("all_warps")
        super().__init__(h, start, latch, h.block_named("exit_converged"))
        self.hand_over = hand_over
        self.at_barrier = self.first.rendezvous if start >= 0 else None
        self.inside = [self.plan.blocks[n] for n in (*self.reached, self.first.number)]

    def emit(self) -> None:
        h, plan = self.h, self.plan
        h.written = frozenset().union(*(plan.writes[block.number] for block in self.inside))
        read = self._voted().union(*(plan.reads[block.number] for block in self.inside))
        h.exit_block = self.exit_block
        h.ir.position_at_end(self.head)
        self.common = h.kept_at.get(self.start, ())
        h.begin_kept(self.common)
        if self.common:
            self.loop = h.block_named("begun")
            h.ir.branch(self.loop)
            h.ir.position_at_end(self.loop)
        if self.idle and self._is_plain():
            h.set("first_warp", 0)  # the warps that may be idle come last
        if self.at_barrier is not None and self.at_barrier is self.first.turn:
            emit_made_turns(h)
        self.read_only = plan.warps > 1 and not any(
            not planned.op.repeatable for block in self.inside for planned in block.ops
        )
        self.read = read
        alike = self._loads_alike() if self.read_only else []
        if not h.runs_blocks and emit_block_pass(self, bool(alike)):
            self.loop = h.ir.block
        if alike:
            self._hoist(alike)
        self._begin_warp()
        self.bodies = {n: h.block_named(f"block{n}_") for n in self.reached}
        self._find_divergent()
        if self.at_barrier is not None:
            self._body(self.first, self.at_barrier.place + 1)
        else:
            h.lanes, h.masked = h.converged, False
            for planned in plan.prologue:
                self._inline(planned)
            self.edge(0)
        for number in self.reached:
            h.ir.position_at_end(self.bodies[number])
            self._body(plan.blocks[number], 0)
        for number, body in self.whole_bodies.items():
            h.ir.position_at_end(body)
            self._body(plan.blocks[number], 0, True)
        self._emit_divergent()
        self._emit_latch()

    def _is_plain(self) -> bool:
        """Whether nothing in the region can tell in which order warps run, but for data races."""
        first = self.at_barrier.place + 1 if self.at_barrier is not None else 0
        ops = [*self.first.ops[first:], *(planned for n in self.reached for planned in self.plan.blocks[n].ops)]
        return all(isinstance(planned.op, PLAIN) for planned in ops)

    def _emit_divergent(self) -> None:
        """The divergent regions, and the way out of converged code."""
        h = self.h
        for region in self.divergent:
            region.emit()
        self.waiting.emit()
        h.ir.position_at_end(self.exit_block)
        h.set("active", h.converged)
        h.set("parked", NEVER)
        self.waiting.park()
        self._store_kept()
        h.ir.branch(self.hand_over)

    def _store_kept(self) -> None:
        """Store what is kept once in the memory of the warps that have not run, and of those that have arrived."""
        h, at = self.h, self.h.get("position")
        store_kept(h, h.ir.add(at, h.i32(1)), h.i32(self.plan.warps), self.common, "begun")
        for end in self.ends:
            if end in h.kept_at:
                here = h.ir.icmp_signed("==", h.get("barrier"), h.i32(end))
                store_kept(h, h.i32(0), h.ir.select(here, at, h.i32(0)), h.kept_at[end], "ended")

    def _voted(self) -> frozenset[str]:
        """The predicates of the barriers at which the region ends."""
        blocks = self.plan.blocks
        ahead = [blocks[n] for n in {n for block in self.inside for n in block.successors}]
        ends = [block.ops[block.barrier.place] for block in ahead if block.barrier is not None]
        slots = {planned.value("predicate") for planned in ends if votes(planned)}
        return frozenset(name for name, register in self.plan.registers.items() if register.slot in slots)

    def _find_divergent(self) -> None:
        """Connected basic blocks in which lanes may have diverged make a region each, with all ways of a branch."""
        blocks = self.plan.blocks
        left = {n for n in self.reached if blocks[n].divergent}
        adjacent: dict[int, set[int]] = {n: set() for n in left}
        for n in left:
            for other in blocks[n].successors:
                if other in left:
                    adjacent[n].add(other)
                    adjacent[other].add(n)
        for block in self.inside:
            first, *others = left.intersection(block.successors) or [block.number]
            for other in others:
                adjacent[first].add(other)
                adjacent[other].add(first)
        while left:
            group, todo = set(), [min(left)]
            while todo:
                at = todo.pop()
                if at in left:
                    left.discard(at)
                    group.add(at)
                    todo += adjacent[at]
            exits = {s for n in group for s in blocks[n].successors} - group
            members, outer = ([blocks[n] for n in sorted(some)] for some in (group, exits))
            lanes = self.plan.lanes
            if lanes is not None and lanes.runs(group):
                self.divergent.append(LaneRegion(self, members, outer, lanes))
            else:
                self.divergent.append(DivergentRegion(self, members, outer))

    # The loop over the warps

    def _loads_alike(self) -> list[tuple[int, PlannedOp]]:
        """What all warps of the block load from the same address."""
        return [
            (number, planned) for number, planned in enumerate(self.first.ops)
            if isinstance(planned.op, Load) and self._same_in_all_warps(planned)
        ][:MAX_HOISTED]

    def _hoist(self, loads: list[tuple[int, PlannedOp]]) -> None:
        """Load it once, before the loop."""
        h, plan = self.h, self.plan
        h.number = h.i32(0)
        h.warp = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
        names = {register.slot: name for name, register in plan.registers.items()}
        h.load_registers({names[planned.value("slot")] for _, planned in loads})
        h.set("position", 0)
        h.lanes, h.masked, h.canonical = h.i32(FULL), False, set()
        point = h.deopt_point = DeoptPoint(h.block_named("not_hoisted"), 0, {})
        partial, h.partial = h.partial, False
        for number, planned in loads:
            h.captured = self.hoisted[number] = []
            self._inline(planned)
        h.captured = h.deopt_point = None
        h.partial = partial
        self.loop = h.block_named("warps")
        h.ir.branch(self.loop)
        h.ir.position_at_end(point.block)
        h.set("resume", self.start_offset)
        h.set("start", self.start_offset)
        store_kept(h, h.i32(0), h.i32(plan.warps), self.common, "begun")
        h.ir.branch(self.exit_block)
        h.ir.position_at_end(self.loop)

    @property
    def start_offset(self) -> int:
        """The micro-op at which a warp resumes that has not entered the region."""
        return self.at_barrier.after if self.at_barrier is not None else self.plan.entry

    def _begin_warp(self) -> None:
        h, plan = self.h, self.plan
        h.number = h.warp_at("position")
        warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
        h.warp = h.add(warps, h.ir.mul(h.ir.zext(h.number, i64), h.i64(plan.warp_bytes)))
        h.set("start", self.start_offset)
        if self.idle:
            h.set("idle", 0)
        if h.plan.varies:
            ended = self.start in plan.after_ends
            left = h.lanes_left(h.warp, h.number) if ended else h.lanes_at(h.number)
            h.set("alive", left)
            h.set("converged", left)
            if h.keeps_lanes and ended:
                h.branch_unless(h.nonzero(left), lambda: h.ir.branch(self.latch))
        h.prefetching.begin_warp(self.start)
        h.store_kept(self.common)
        self.load_registers()

    def load_registers(self) -> None:
        """Load what the region reads, or may hand on unchanged."""
        h, plan, barrier, written, read = self.h, self.plan, self.at_barrier, self.h.written, self.read
        behind = barrier is not None and barrier is not self.first.turn
        live = plan.live(barrier.statement if barrier is not None else self.first.start, int(behind))
        once = {name for name in plan.launch_invariant & read if plan.is_scalar(name)}
        ends = {name for end in self.possible_ends for name in h.kept_at.get(end, ())}
        h.load_registers(((live & (written | read)) | ends | (plan.launch_invariant & read)) - once)
        h.load_warp_invariant(once)

    def _emit_latch(self) -> None:
        h, plan = self.h, self.plan
        h.ir.position_at_end(self.latch)
        position = h.ir.add(h.get("position"), h.i32(1))
        h.set("position", position)
        h.ir.cbranch(h.ir.icmp_signed("<", position, h.i32(plan.warps)), self.loop, self.all_warps)
        h.ir.position_at_end(self.all_warps)
        if self.start == RETIRED and plan.clustered == 1:
            h.begin_entered()
        h.set("position", 0)
        at, following = h.get("first_warp"), h.ir.sub(h.get("first_warp"), h.i32(1))
        first = h.ir.select(h.ir.icmp_signed("<", following, h.i32(0)), h.i32(plan.warps - 1), following)
        for block in plan.blocks:
            if block.turn is not None:  # no barrier, which changes the order
                first = h.ir.select(h.ir.icmp_signed("==", h.get("barrier"), h.i32(block.number)), at, first)
        h.set("first_warp", first)
        retired = h.block_named("retired")
        ended_at = h.get("barrier")
        h.set("result", h.get("vote"))
        if h.keeps_lanes:
            h.set("barrier", RETIRED)
        self.switch = h.ir.switch(ended_at, retired)
        """To the regions behind the barriers in ``ends``."""
        h.ir.position_at_end(retired)
        h.ir.ret_void()
