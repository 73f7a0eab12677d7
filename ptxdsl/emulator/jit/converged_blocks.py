"""The basic blocks between two barriers in a block function, for warps whose lanes are all converged.

Here a warp goes on from one basic block to the next, splits (:mod:`.divergent_regions`, :mod:`.waiting_lanes`), arrives
at a barrier or ends. The loop over the warps is around it (:mod:`.barrier_regions`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..codegen import data
from ..codegen.clusters import leave
from ..codegen.handler import i1, i32
from ..codegen.registry import emit_inline
from ..instructions.atomics import Atomic
from ..instructions.control import Branch, Exit, IndexedBranch, Jump, SystemCall, Trap
from ..instructions.instrumentation import ShadowCheck
from ..instructions.memory import Load, Store
from ..instructions.micro_op import MicroOp
from ..instructions.operand_classes import OperandClass
from ..machine.layout import FULL, Warp
from ..machine.shadow import Role
from .cluster_barriers import has_arrived
from .divergent_regions import DivergentRegion
from .function_builder import BlockFunction
from .idle_warps import note_idle, pass_idle
from .indexed_branches import COST, Selection
from .inlining import exit_if_active
from .plan import RETIRED, Join, PlannedBlock, PlannedOp, loop_cost, votes
from .votes import with_vote
from .waiting_lanes import WaitingLanes

__all__ = ["ConvergedBlocks"]

MOST_COPIED, COPIES = 40, 4
"""Micro-ops of a basic block that is there twice, and such basic blocks of a region: LLVM has them twice too."""


class ConvergedBlocks:
    """The basic blocks from a barrier, or from the kernel's entry, to the next barriers."""

    read_only = False
    """Whether all micro-ops may be repeated, and there are several warps."""
    copies = False
    """Whether what some lanes may skip is there a second time, for warps of which none does."""

    def __init__(self, h: BlockFunction, start: int, latch: ir.Block, exit_block: ir.Block) -> None:
        self.h, self.plan, self.start, self.latch, self.exit_block = h, h.plan, start, latch, exit_block
        self.first = self.plan.blocks[max(start, 0)]
        self.skipped: set[int] = set().union(*(join.way for join in self.plan.joins.values()))
        """The basic blocks that some lanes of a warp may skip while the others go on in converged code."""
        self.reached, self.ragged = self._reach(), self._after_exits()
        self.idle = {n: each for n, each in self.plan.idle if n in self.reached or n == self.first.number}
        """Branches at which a warp without active lanes says the same of later ones, of this region."""
        self.bodies: dict[int, ir.Block] = {}
        self.whole_bodies: dict[int, ir.Block] = {}
        """The copies of basic blocks for warps of which no lane skips them."""
        self.divergent: list[DivergentRegion] = []
        self.waiting = WaitingLanes(self, [*self.reached, self.first.number])
        self.hoisted: dict[int, list[tuple[Any, Any]]] = {}
        """What registers hold after the loads and checks that are made once for all warps, by their places."""
        self.divergent_start: Any = None
        """Where the divergent region goes on whose code is emitted, with the lanes that come first."""
        expected = [block.barrier.expected for block in self.plan.blocks if block.barrier is not None]
        self.possible_ends = self._possible_ends()
        retires = start in self.plan.after_ends or RETIRED in self.possible_ends
        self.some_may_retire = h.keeps_lanes and not any(expected) and retires
        """Whether warps may end before others: barriers that count all that live go on without them."""
        self.ends: dict[int, None] = {}
        """Where warps end: at the barrier of a basic block, or RETIRED."""

    def _after_exits(self) -> set[int]:
        """The basic blocks that a warp may come to when some of its lanes have ended, or wait elsewhere."""
        blocks = self.plan.blocks
        todo = [block.number for block in blocks if any(op.statement in self.plan.ending for op in block.ops)]
        todo += [block.number for block in blocks if block.divergent and not block.successors]
        found: set[int] = set()
        while todo and self.plan.ending:
            at = todo.pop()
            if at not in found:
                found.add(at)
                todo += blocks[at].successors
        return found | self.skipped

    def _reach(self) -> list[int]:
        seen: dict[int, None] = {}
        todo = self.first.successors if self.start >= 0 else [0]
        while todo:
            at = todo.pop()
            if at not in seen and not self._always_waits(self.plan.blocks[at]):
                seen[at] = None
                todo += self.plan.blocks[at].successors
        return list(seen)

    def _possible_ends(self) -> set[int]:
        """Where warps may end: at the barriers that follow, or RETIRED."""
        blocks, found = self.plan.blocks, set[int]()
        if self.start < 0 and blocks[0].rendezvous is not None:
            found.add(0)
        for number in {*self.reached, self.first.number}:
            block = blocks[number]
            found.update(n for n in block.successors if blocks[n].rendezvous is not None)
            last = block.terminator.op if block.terminator is not None else None
            if isinstance(last, Exit) or any(isinstance(each.op, Exit) for each in block.ops):
                found.add(RETIRED)
        return found

    def _always_waits(self, block: PlannedBlock) -> bool:
        """Whether warps never go on with a basic block without each other."""
        return block.barrier is not None or (block.turn is not None and not self.plan.joins)

    def _body(self, block: PlannedBlock, first: int, whole: bool = False) -> None:
        """``whole``: it is the copy for warps of which all lanes are there."""
        h = self.h
        h.lanes, h.masked, h.canonical, h.exit_block = h.converged, False, set(), self.exit_block
        partial, h.partial = h.partial, h.partial or block.number in self.ragged
        h.thin = block.number in self.skipped
        if whole:
            h.lanes, h.partial, h.thin = h.i32(FULL), False, False
        self.emit_ops(block, first)
        h.partial, h.thin = partial, False
        self._terminator(block)
        h.emit_side_exits()

    def emit_ops(self, block: PlannedBlock, first: int) -> None:
        """Emit a basic block's micro-ops from one on."""
        h = self.h
        hoists = first > 0 or (block is self.first and self.start < 0)
        h.checked.clear()
        h.rows.rows.clear()
        h.loads_pieces = any(isinstance(planned.op, Atomic) and not planned.op.address.scalar for planned in block.ops)
        for number, planned in enumerate(block.ops[first:], first):
            op, h.place = planned.op, number
            hoisted = self.hoisted.get(number) if hoists else None
            if hoisted is not None:
                h.checked[number] = ir.Constant(i1, 1)
                for slot, value in hoisted:
                    h.store(value, slot, 0)
                continue
            if planned.shadowed == () and not _asks_values(op):
                continue
            h.begin(planned)
            if isinstance(op, ShadowCheck) and self.read_only and self._two_warps_suffice(planned, op):
                h.in_first_two_warps()
            self.emit_op(op)
            if not op.repeatable:
                h.commit(op)

    def _two_warps_suffice(self, planned: PlannedOp, check: ShadowCheck) -> bool:
        """Whether a check of a place that all warps read is done after two: shadow memory keeps two readers."""
        plain = check.role == Role.READ and check.block_private and check.barriers_only and check.race
        alike = check.address.uniform or self.plan.tail == FULL  # else a warp may read less of it
        return bool(plain and alike and self._same_in_all_warps(planned))

    def _same_in_all_warps(self, planned: PlannedOp) -> bool:
        """Whether all warps load the same from memory, or check the same place, and no lane is masked."""
        op = planned.op
        if not isinstance(op, (Load, ShadowCheck)) or op.guard or op.pattern is None:
            return False
        return (op.address.affine or op.address.uniform) and planned.value("slot") in self.plan.warp_invariant

    def _inline(self, planned: PlannedOp) -> None:
        self.h.begin(planned)
        self.emit_op(planned.op)

    def emit_op(self, op: MicroOp) -> None:
        """Emit a micro-op that has begun."""
        if isinstance(op, Exit) and op.guard:
            self.end_lanes(op.guard)
        elif isinstance(op, (Exit, SystemCall, Trap)):
            exit_if_active(self.h, op.guard)
        else:
            assert op.inlinable and not op.rare, op
            emit_inline(self.h, op)

    def condition(self, terminator: PlannedOp, branch: Branch) -> Any:
        """The mask of the lanes that take a branch."""
        self.h.begin(terminator)
        return data.guard_mask(self.h, branch.guard, False)

    def _terminator(self, block: PlannedBlock) -> None:
        terminator = block.terminator
        if terminator is None and block.fallthrough < 0:  # a trap, which has left
            self.h.ir.unreachable()
        elif terminator is None:
            self.edge(block.fallthrough)
        elif isinstance(terminator.op, Branch):
            self._branch(block, terminator, terminator.op)
        elif isinstance(terminator.op, Jump):
            self._jump(terminator, block.targets[0])
        elif isinstance(terminator.op, IndexedBranch):
            self._indexed(block, terminator)
        else:
            self._end_warp(RETIRED, terminator.offset, set())

    def _jump(self, terminator: PlannedOp, target: int) -> None:
        """Go on with a basic block while the budget lasts."""
        self._charged(target, loop_cost(terminator, self.plan.blocks[target]))

    def _charged(self, target: int, cost: int) -> None:
        """Go on with a basic block, if that cost is left."""
        block = self.plan.blocks[target]
        if cost:
            live = self.plan.live(block.start, 0)
            self.h.charge_budget(cost, lambda: self.h.exit_at(block.offset, live))
        self.edge(target)

    def edge(self, number: int) -> None:
        """Go on with a basic block, all lanes converged."""
        if number in self.waiting.entries:
            self.h.ir.branch(self.waiting.entries[number])
        else:
            self.arrive(number)

    def arrive(self, number: int) -> None:
        """Go on with a basic block where no lanes wait for others of converged code."""
        h, block = self.h, self.plan.blocks[number]
        if block.turn is not None:
            if number in self.bodies:  # a warp that has left lanes behind makes its last turns alone
                alone = self.bodies[number]
                h.branch_unless(h.ir.icmp_signed("==", h.converged, h.alive), lambda: h.ir.branch(alone))
            self._end_warp(number, block.turn.wait, self.plan.live(block.start, 0))
            return
        if block.barrier is None:
            h.ir.branch(self.bodies[number])
            return
        if self.waiting.joins:  # others wait behind it

            def leave() -> None:
                h.exit_at(block.offset, self.plan.live(block.start, 0))

            h.branch_unless(h.ir.icmp_signed("==", h.converged, h.alive), leave)
        for planned in block.ops[: block.barrier.place]:
            self._inline(planned)
        at = block.ops[block.barrier.place]
        vote = with_vote(h, at) if votes(at) else None
        self._end_warp(number, block.barrier.wait, self.plan.live(block.barrier.statement, 0), vote)

    def _branch(self, block: PlannedBlock, terminator: PlannedOp, branch: Branch) -> None:
        h = self.h
        mask = self.condition(terminator, branch)
        taken, not_all = h.block_named("taken"), h.block_named("not_all")
        target = block.targets[0]
        if branch.divergent:
            mask = h.ir.and_(mask, h.converged)
        h.ir.cbranch(h.all_converged(mask) if branch.divergent else h.nonzero(mask), taken, not_all)
        h.ir.position_at_end(taken)
        canonical, idle = set(h.canonical), self.idle.get(block.number)
        if idle is not None and idle.taken:
            note_idle(h, idle)
        self._jump(terminator, target)
        h.ir.position_at_end(not_all)
        h.canonical = canonical
        if not branch.divergent:
            self.edge(block.fallthrough)
            return
        none, mixed, join = h.block_named("none"), h.block_named("mixed"), self.waiting.joins.get(block.number)
        h.ir.cbranch(h.zero(mask), none, mixed)
        h.ir.position_at_end(none)
        if idle is not None and not idle.taken:
            note_idle(h, idle)
        if join is not None and join.block == target and self._is_copied(join):
            self.whole_bodies[block.fallthrough] = h.block_named("whole_body")
            h.branch_unless(h.full(h.converged), lambda: self.edge(block.fallthrough))
            h.ir.branch(self.whole_bodies[block.fallthrough])
        else:
            self.edge(block.fallthrough)
        h.ir.position_at_end(mixed)
        h.canonical = set()
        others = h.ir.xor(mask, h.converged)
        if join is not None and join.block == target:
            self.waiting.leave(join, mask)
            self.edge(block.fallthrough)
            return
        if join is not None:
            self.waiting.leave(join, others)
            self._jump(terminator, target)
            return
        ways = {target, block.fallthrough}
        region = next((region for region in self.divergent if ways & region.members), None)
        if region is None or len(ways) == 1 or not ways <= set(region.pending):
            h.exit_at(terminator.offset, self.plan.live(terminator.statement, 0))
        else:
            region.enter({target: mask, block.fallthrough: others})

    def _is_copied(self, join: Join) -> bool:
        """Whether a branch skips a few gathers and scatters, so that a copy for all lanes pays."""
        if not self.copies or len(self.whole_bodies) == COPIES or self.plan.whole != FULL:
            return False
        if len(join.way) != 1 or join.way[0] in self.whole_bodies:
            return False
        way = self.plan.blocks[join.way[0]]
        places = [each for each in way.ops if isinstance(each.op, (Load, Store)) and each.op.address.per_lane]
        plain = way.barrier is None and not way.converges and way.successors == [join.block]
        return plain and bool(places) and len(way.ops) <= MOST_COPIED

    def _indexed(self, block: PlannedBlock, terminator: PlannedOp) -> None:
        """Where all lanes go one way, by a switch; else to the divergent region."""
        h = self.h
        chosen = Selection(h, block, terminator, h.converged)
        first = chosen.first()
        together, apart, beyond = (h.block_named(n) for n in ("together", "apart", "beyond"))
        h.ir.cbranch(chosen.alike(first), together, apart)
        h.ir.position_at_end(beyond)
        h.ir.unreachable()
        h.ir.position_at_end(together)
        switch = h.ir.switch(first, beyond)
        canonical, ways = set(h.canonical), dict[int, Any]()
        for number, target in enumerate(block.targets):
            if target not in ways:
                ways[target] = h.block_named("way")
                h.ir.position_at_end(ways[target])
                h.canonical = set(canonical)
                self._charged(target, COST if self.plan.blocks[target].priority <= block.priority else 0)
            switch.add_case(h.i32(number), ways[target])
        h.ir.position_at_end(apart)
        h.canonical = set(canonical)
        masks = chosen.masks()
        region = next((region for region in self.divergent if masks.keys() & region.members), None)
        if region is None or not masks.keys() <= set(region.pending):
            h.exit_at(terminator.offset, self.plan.live(terminator.statement, 0))
        else:
            region.enter(masks)

    def _end_warp(self, number: int, offset: int, live: set[str], vote: Any = None) -> None:
        """The warp arrives at a barrier or ends; a side exit if an earlier warp ended elsewhere."""
        h = self.h
        self.ends[number] = None
        h.store_registers(live)
        if h.keeps_lanes and (number < 0 or number in self.plan.after_ends):
            h.store(h.alive if number >= 0 else h.i32(0), h.warp, Warp.ALIVE)
        before, at = h.get("barrier"), h.i32(number)
        if number < 0 and self.some_may_retire:
            good, at = ir.Constant(i1, 1), before
        elif len(self.possible_ends) == 1:
            good = ir.Constant(i1, 1)
        elif self.some_may_retire:
            good = h.ir.or_(h.ir.icmp_signed("<", before, h.i32(0)), h.ir.icmp_signed("==", before, at))
        else:
            fresh = h.ir.icmp_signed("==", h.get("position"), h.i32(0))
            good = h.ir.or_(fresh, h.ir.icmp_signed("==", before, at))
        if number >= 0 and self.plan.blocks[number].waits_for_cluster:
            good = h.ir.and_(good, has_arrived(h))
        arrived, elsewhere = h.block_named("arrived"), h.block_named("elsewhere")
        h.ir.cbranch(h.likely(good), arrived, elsewhere)
        h.ir.position_at_end(elsewhere)
        h.set("resume", offset)
        h.ir.branch(h.exit_block)
        h.ir.position_at_end(arrived)
        h.set("barrier", at)
        h.keep(h.kept_at.get(number, ()))
        known = [idle.registers_at(number) for idle in self.idle.values()]
        if known and None not in known:
            stored = () if number in h.kept_at else sorted({name for names in known for name in names or ()})
            pass_idle(h, tuple(stored))
        if vote is not None:
            h.set("vote", vote)
        if number == RETIRED and self.plan.leaves:
            leave(h, h.alive)
        h.ir.branch(self.latch)

    def end_lanes(self, guard: OperandClass) -> None:
        """Lanes end, under a guard if there is one; where none is left, so does the warp.

        A side exit if others wait for these where they reconverge, or an earlier warp is at a barrier.
        """
        h = self.h
        gone, before = data.guard_mask(h, guard, True), h.lanes
        some, every, rest, on = (h.block_named(name) for name in ("some_end", "all_end", "some_left", "none_ends"))
        start = h.ir.block
        h.ir.cbranch(h.likely(h.zero(gone)), on, some)
        h.ir.position_at_end(some)
        h.ir.cbranch(h.ir.icmp_signed("==", gone, before), every, rest)
        h.ir.position_at_end(every)
        retires = h.block_named("retires")
        alone = h.ir.icmp_signed("==", gone, h.alive)
        if h.masked:
            others = h.block_named("others_left")
            h.ir.cbranch(alone, retires, others)
            h.ir.position_at_end(others)
            h.branch_unless(h.ir.icmp_signed("!=", gone, h.converged), h.side_exit)
            self._ended(gone)
            h.ir.branch(self.divergent_start)
            h.ir.position_at_end(retires)
        else:
            h.branch_unless(alone, h.side_exit)
            h.ir.branch(retires)
            h.ir.position_at_end(retires)
        if not self.some_may_retire:
            fresh = h.ir.icmp_signed("==", h.get("position"), h.i32(0))
            same = h.ir.icmp_signed("==", h.get("barrier"), h.i32(RETIRED))
            h.branch_unless(h.ir.or_(fresh, same), h.side_exit)
        assert h.planned is not None
        self._end_warp(RETIRED, h.planned.offset, set())
        h.ir.position_at_end(rest)
        self._ended(gone)
        left = h.ir.xor(before, gone)
        if h.masked:
            h.set("active", left)
        rest = h.ir.block
        h.ir.branch(on)
        h.ir.position_at_end(on)
        h.lanes = h.ir.phi(i32)
        h.lanes.add_incoming(before, start)
        h.lanes.add_incoming(left, rest)

    def _ended(self, gone: Any) -> None:
        self.h.end_lanes(gone)
        if self.plan.leaves:
            leave(self.h, gone)


def _asks_values(op: MicroOp) -> bool:
    """Whether a shadow check asks what is stored, too: whether that is defined."""
    return isinstance(op, ShadowCheck) and op.role == Role.WRITE and any(op.flagged)
