"""The code between two barriers in a block function: the loop over the warps, and the basic blocks inside it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..codegen import data
from ..codegen.handler import Handler, i1, i32, i64, pointer
from ..codegen.registry import emit_inline
from ..instructions.control import Branch, Exit, Jump, SystemCall, Trap
from ..instructions.instrumentation import ShadowCheck
from ..instructions.memory import Load
from ..instructions.micro_op import MicroOp
from ..machine.layout import FULL, NEVER, Block, Warp
from ..machine.shadow import Role
from .divergent_regions import DivergentRegion
from .function_builder import BlockFunction, DeoptPoint
from .inlining import exit_if_active
from .plan import RETIRED, Layout, Plan, PlannedBlock, PlannedOp, loop_cost

__all__ = ["BUDGET", "BarrierRegion"]

BUDGET = 1 << 24
"""Statements in loops that all warps of a block may execute; what takes longer resumes where it can be interrupted."""
MAX_HOISTED = 24
"""Loads that are made once for all warps."""


class BarrierRegion:
    """The code from a barrier, or from the kernel's entry, to the next barriers."""

    def __init__(self, h: BlockFunction, start: int, hand_over: ir.Block) -> None:
        self.h, self.plan, self.start, self.hand_over = h, h.plan, start, hand_over
        self.first = self.plan.blocks[max(start, 0)]
        self.at_barrier = self.first.barrier if start >= 0 else None
        self.head, self.latch = h.block_named(f"next_warp{start}_"), h.block_named("latch")
        self.loop = self.head
        self.exit_block = h.block_named("exit_converged")
        self.reached, self.ragged = self._reach(), self._after_exits()
        self.inside = [self.plan.blocks[n] for n in (*self.reached, self.first.number)]
        self.bodies: dict[int, ir.Block] = {}
        self.divergent: list[DivergentRegion] = []
        self.hoisted: dict[int, list[tuple[Any, Any]]] = {}
        self.ends: dict[int, None] = {}
        """Where warps end: at the barrier of a basic block, or RETIRED."""

    def _after_exits(self) -> set[int]:
        """The basic blocks that a warp may come to when some of its lanes have ended."""
        blocks = self.plan.blocks
        todo = [block.number for block in blocks if any(op.statement in self.plan.ending for op in block.ops)]
        todo += [block.number for block in blocks if block.divergent and not block.successors]
        found: set[int] = set()
        while todo and self.plan.ending:
            at = todo.pop()
            if at not in found:
                found.add(at)
                todo += blocks[at].successors
        return found

    def _reach(self) -> list[int]:
        seen: dict[int, None] = {}
        todo = self.first.successors if self.start >= 0 else [0]
        while todo:
            at = todo.pop()
            if at not in seen and self.plan.blocks[at].barrier is None:
                seen[at] = None
                todo += self.plan.blocks[at].successors
        return list(seen)

    def emit(self) -> None:
        h, plan = self.h, self.plan
        h.written = frozenset().union(*(plan.writes[block.number] for block in self.inside))
        read = frozenset().union(*(plan.reads[block.number] for block in self.inside))
        h.exit_block = self.exit_block
        h.ir.position_at_end(self.head)
        self.read_only = plan.warps > 1 and not any(
            not planned.op.repeatable for block in self.inside for planned in block.ops
        )
        if self.read_only:
            self._hoist()
        self._begin_warp(h.written, read)
        self.bodies = {n: h.block_named(f"block{n}_") for n in self.reached}
        self._find_divergent()
        if self.at_barrier is not None:
            self._body(self.first, self.at_barrier.place + 1)
        else:
            h.lanes, h.masked = h.alive, False
            for planned in plan.prologue:
                self._inline(planned)
            self.edge(0)
        for number in self.reached:
            h.ir.position_at_end(self.bodies[number])
            self._body(plan.blocks[number], 0)
        for region in self.divergent:
            region.emit()
        h.ir.position_at_end(self.exit_block)
        h.set("active", h.alive)
        h.set("parked", NEVER)
        h.ir.branch(self.hand_over)
        self._emit_latch()

    def _inline(self, planned: PlannedOp) -> None:
        self.h.begin(planned)
        self._emit(planned.op)

    def _emit(self, op: MicroOp) -> None:
        planned = self.h.planned
        assert planned is not None
        if isinstance(op, Exit) and planned.statement in self.plan.ending:
            (self.h.region or self).exit_some(op)
        elif isinstance(op, (Exit, SystemCall, Trap)):
            exit_if_active(self.h, op.guard)
        else:
            assert op.inlinable and not op.rare, op
            emit_inline(self.h, op)

    # The loop over the warps

    def _hoist(self) -> None:
        """Load once what all warps of the block load from the same address, before the loop."""
        h, plan = self.h, self.plan
        loads = [
            (number, planned) for number, planned in enumerate(self.first.ops)
            if isinstance(planned.op, Load) and self._same_in_all_warps(planned)
        ][:MAX_HOISTED]
        if not loads:
            return
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
        h.ir.branch(self.exit_block)
        h.ir.position_at_end(self.loop)

    def _same_in_all_warps(self, planned: PlannedOp) -> bool:
        """Whether all warps load the same from memory, or check the same place, and no lane is masked."""
        op = planned.op
        if not isinstance(op, (Load, ShadowCheck)) or op.guard or op.pattern is None:
            return False
        return (op.address.affine or op.address.uniform) and planned.value("slot") in self.plan.warp_invariant

    @property
    def start_offset(self) -> int:
        """The micro-op at which a warp resumes that has not entered the region."""
        return self.at_barrier.after if self.at_barrier is not None else self.plan.entry

    def _begin_warp(self, written: frozenset[str], read: frozenset[str]) -> None:
        h, plan = self.h, self.plan
        h.number = h.warp_at("position")
        warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
        h.warp = h.add(warps, h.ir.mul(h.ir.zext(h.number, i64), h.i64(plan.warp_bytes)))
        kept = plan.ending and self.at_barrier is not None
        h.set("alive", Handler.load(h, h.warp, Warp.ALIVE, i32) if kept else h.lanes_at(h.number))
        h.set("start", self.start_offset)
        barrier = self.at_barrier
        live = plan.live(barrier.statement, 1) if barrier is not None else plan.live(self.first.start, 0)
        once = {name for name in plan.launch_invariant & read if _is_scalar(plan, name)}
        h.load_registers(((live & (written | read)) | (plan.launch_invariant & read)) - once)
        h.load_warp_invariant(once)

    def _emit_latch(self) -> None:
        h, plan = self.h, self.plan
        h.ir.position_at_end(self.latch)
        position = h.ir.add(h.get("position"), h.i32(1))
        h.set("position", position)
        done = h.block_named("all_warps")
        h.ir.cbranch(h.ir.icmp_signed("<", position, h.i32(plan.warps)), self.loop, done)
        h.ir.position_at_end(done)
        h.set("position", 0)
        first = h.ir.sub(h.get("first_warp"), h.i32(1))
        h.set("first_warp", h.ir.select(h.ir.icmp_signed("<", first, h.i32(0)), h.i32(plan.warps - 1), first))
        retired = h.block_named("retired")
        self.switch = h.ir.switch(h.get("barrier"), retired)
        """To the regions behind the barriers in ``ends``."""
        h.ir.position_at_end(retired)
        h.ir.ret_void()

    # Basic blocks, all lanes converged

    def _find_divergent(self) -> None:
        """Connected basic blocks in which lanes may have diverged make a region each."""
        blocks = self.plan.blocks
        left = {n for n in self.reached if blocks[n].divergent}
        adjacent: dict[int, set[int]] = {n: set() for n in left}
        for n in left:
            for other in blocks[n].successors:
                if other in left:
                    adjacent[n].add(other)
                    adjacent[other].add(n)
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
            self.divergent.append(DivergentRegion(self, members, outer))

    def edge(self, number: int) -> None:
        """Go on with a basic block, all lanes converged."""
        block = self.plan.blocks[number]
        if block.barrier is None:
            self.h.ir.branch(self.bodies[number])
            return
        for planned in block.ops[: block.barrier.place]:
            self._inline(planned)
        self.end_warp(number, block.barrier.wait, self.plan.live(block.barrier.statement, 0))

    def exit_some(self, op: Exit) -> None:
        """Lanes end under a guard, the others go on."""
        h, planned = self.h, self.h.planned
        assert planned is not None
        gone = h.ir.and_(data.guard_mask(h, op.guard, False), h.alive)
        left = h.ir.and_(h.alive, h.ir.not_(gone))
        some, nobody, others, on = (h.block_named(n) for n in ("some", "nobody", "others", "on"))
        h.ir.cbranch(h.nonzero(gone), some, on)
        h.ir.position_at_end(some)
        h.ir.cbranch(h.zero(left), nobody, others)
        h.ir.position_at_end(nobody)
        canonical = set(h.canonical)
        self.end_warp(RETIRED, planned.offset, self.plan.live(planned.statement, 0))
        h.canonical = canonical
        h.ir.position_at_end(others)
        h.set("alive", left)
        h.ir.branch(on)
        h.ir.position_at_end(on)
        h.lanes = h.alive

    def end_warp(self, number: int, offset: int, live: set[str]) -> None:
        """The warp arrives at a barrier or ends; a side exit if an earlier warp ended elsewhere."""
        h = self.h
        if self.plan.ending and number >= 0:
            h.store(h.alive, h.warp, Warp.ALIVE)
        self.ends[number] = None
        h.store_registers(live)
        same = h.ir.icmp_signed("==", h.get("barrier"), h.i32(number))
        good = h.ir.or_(h.ir.icmp_signed("==", h.get("position"), h.i32(0)), same)
        arrived, elsewhere = h.block_named("arrived"), h.block_named("elsewhere")
        h.ir.cbranch(h.likely(good), arrived, elsewhere)
        h.ir.position_at_end(elsewhere)
        h.set("resume", offset)
        h.ir.branch(h.exit_block)
        h.ir.position_at_end(arrived)
        h.set("barrier", number)
        h.ir.branch(self.latch)

    def emit_ops(self, block: PlannedBlock, first: int) -> None:
        """Emit a basic block's micro-ops from one on."""
        h = self.h
        hoists = first > 0 or (block is self.first and self.start < 0)
        h.checked.clear()
        for number, planned in enumerate(block.ops[first:], first):
            op, h.place = planned.op, number
            hoisted = self.hoisted.get(number) if hoists else None
            if hoisted is not None:
                h.checked[number] = ir.Constant(i1, 1)
                for slot, value in hoisted:
                    h.store(value, slot, 0)
                continue
            if planned.shadowed == ():
                continue
            h.begin(planned)
            if isinstance(op, ShadowCheck) and self.read_only and self._two_warps_suffice(planned, op):
                h.in_first_two_warps()
            self._emit(op)
            if not op.repeatable:
                h.commit(op)

    def _two_warps_suffice(self, planned: PlannedOp, check: ShadowCheck) -> bool:
        """Whether a check of a place that all warps read is done after two: shadow memory keeps two readers."""
        plain = check.role == Role.READ and check.block_private and check.barriers_only and check.race
        alike = check.address.uniform or self.plan.tail == FULL  # else a warp may read less of it
        return bool(plain and alike and self._same_in_all_warps(planned))

    def condition(self, terminator: PlannedOp, branch: Branch) -> Any:
        """The mask of the lanes that take a branch."""
        self.h.begin(terminator)
        return data.guard_mask(self.h, branch.guard, False)

    def _body(self, block: PlannedBlock, first: int) -> None:
        h = self.h
        h.lanes, h.masked, h.canonical, h.exit_block = h.alive, False, set(), self.exit_block
        partial, h.partial = h.partial, h.partial or block.number in self.ragged
        self.emit_ops(block, first)
        h.partial = partial
        self._terminator(block)
        h.emit_side_exits()

    def _terminator(self, block: PlannedBlock) -> None:
        terminator = block.terminator
        if terminator is None:
            self.edge(block.fallthrough)
        elif isinstance(terminator.op, Branch):
            self._branch(block, terminator, terminator.op)
        elif isinstance(terminator.op, Jump):
            self._jump(terminator, block.targets[0])
        else:
            self.end_warp(RETIRED, terminator.offset, set())

    def _jump(self, terminator: PlannedOp, target: int) -> None:
        """Go on with a basic block while the budget lasts."""
        block = self.plan.blocks[target]
        cost = loop_cost(terminator, block)
        if cost:
            live = self.plan.live(block.start, 0)
            self.h.charge_budget(cost, lambda: self.h.exit_at(block.offset, live))
        self.edge(target)

    def _branch(self, block: PlannedBlock, terminator: PlannedOp, branch: Branch) -> None:
        h = self.h
        mask = self.condition(terminator, branch)
        taken, not_all = h.block_named("taken"), h.block_named("not_all")
        target = block.targets[0]
        if branch.divergent:
            mask = h.ir.and_(mask, h.alive)
        h.ir.cbranch(h.all_alive(mask) if branch.divergent else h.nonzero(mask), taken, not_all)
        h.ir.position_at_end(taken)
        canonical = set(h.canonical)
        self._jump(terminator, target)
        h.ir.position_at_end(not_all)
        h.canonical = canonical
        if not branch.divergent:
            self.edge(block.fallthrough)
            return
        none, mixed = h.block_named("none"), h.block_named("mixed")
        h.ir.cbranch(h.zero(mask), none, mixed)
        h.ir.position_at_end(none)
        self.edge(block.fallthrough)
        h.ir.position_at_end(mixed)
        h.canonical = set()
        ways = {target, block.fallthrough}
        region = next((region for region in self.divergent if ways & region.members), None)
        if region is None or len(ways) == 1 or not ways <= set(region.pending):
            h.exit_at(terminator.offset, self.plan.live(terminator.statement, 0))
        else:
            region.enter({target: mask, block.fallthrough: h.ir.xor(mask, h.alive)})


def _is_scalar(plan: Plan, name: str) -> bool:
    """Whether a register is one number that is the same in all warps."""
    register = plan.registers[name]
    return (
        register.slot in plan.warp_invariant and register.layout is Layout.UNIFORM and register.lane_offsets is None
    )
