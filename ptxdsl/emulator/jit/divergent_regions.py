"""Basic blocks of a block function in which the lanes of a warp may have diverged."""

from __future__ import annotations

from typing import Any, Protocol

from llvmlite import ir

from ..codegen.handler import i32, lanes_of
from ..instructions.control import Branch, Exit, IndexedBranch, Jump
from ..instructions.operand_classes import OperandClass
from ..machine.layout import NEVER, Warp
from .function_builder import BlockFunction
from .indexed_branches import COST, Selection
from .plan import Plan, PlannedBlock, PlannedOp, loop_cost
from .waiting_lanes import WaitingLanes

__all__ = ["DivergentRegion"]


class ConvergentCode(Protocol):
    """The code around it, for warps whose lanes are converged."""

    h: BlockFunction
    plan: Plan
    hand_over: ir.Block
    exit_block: ir.Block
    waiting: WaitingLanes
    divergent_start: Any

    def emit_ops(self, block: PlannedBlock, first: int) -> None:
        """Emit a basic block's micro-ops from one on."""
        ...

    def edge(self, number: int) -> None:
        """Go on with a basic block, all lanes converged."""
        ...

    def end_lanes(self, guard: OperandClass) -> None:
        """Lanes end, under a guard if there is one."""
        ...

    def condition(self, terminator: PlannedOp, branch: Branch) -> Any:
        """The mask of the lanes that take a branch."""
        ...


class DivergentRegion:
    """Basic blocks with a mask each of the lanes that are pending there; the one of the lowest priority runs first."""

    def __init__(self, outside: ConvergentCode, members: list[PlannedBlock], exits: list[PlannedBlock]) -> None:
        self.outside, self.members = outside, {block.number for block in members}
        h = self.h = outside.h
        self.chain = sorted([*members, *exits], key=lambda block: block.priority)
        self.pending = {block.number: h.alloca(i32, 4) for block in self.chain}
        self.checks = {block.number: h.block_named(f"check{block.number}_") for block in self.chain}
        self.bodies = {
            block.number: h.block_named(f"masked{block.number}_")
            for block in members if self.runs(block)
        }
        self.exit_block = h.block_named("exit_divergent")

    def runs(self, block: PlannedBlock) -> bool:
        """Whether a basic block of the region runs in it, not only once all lanes are there."""
        return block.barrier is None and not block.converges

    def enter(self, lanes: dict[int, Any]) -> None:
        """Lanes diverge: these masks go on at these basic blocks."""
        h = self.h
        for number, place in self.pending.items():
            h.ir.store(lanes.get(number, h.i32(0)), place)
        h.ir.branch(self.checks[min(lanes, key=lambda number: self.outside.plan.blocks[number].priority)])

    def emit(self) -> None:
        for place, block in enumerate(self.chain):
            after = self.chain[place + 1] if place + 1 < len(self.chain) else None
            self._check(block, after)
            if block.number in self.bodies:
                self._body(block, after)
        self._emit_exit()

    def _check(self, block: PlannedBlock, after: PlannedBlock | None) -> None:
        """Run a basic block if lanes are pending there; one outside, or of the whole warp, only with all lanes."""
        h = self.h
        h.ir.position_at_end(self.checks[block.number])
        lanes = h.ir.load(self.pending[block.number])
        some = h.block_named("some")
        if after is None:
            h.ir.branch(some)
        else:
            h.ir.cbranch(h.nonzero(lanes), some, self.checks[after.number])
        h.ir.position_at_end(some)
        if block.number in self.bodies:
            h.ir.branch(self.bodies[block.number])
            return
        converged, partial = h.block_named("converged"), h.block_named("partial")
        h.ir.cbranch(h.all_converged(lanes), converged, partial)
        h.ir.position_at_end(converged)
        h.lanes, h.canonical = h.converged, set()
        self.outside.edge(block.number)
        h.ir.position_at_end(partial)
        self._exit_at(block)

    def _exit_at(self, block: PlannedBlock) -> None:
        """Resume in the first tier with the lanes that are pending at a basic block."""
        h = self.h
        h.set("active", h.ir.load(self.pending[block.number]))
        h.ir.store(h.i32(0), self.pending[block.number])
        h.exit_block = self.exit_block
        h.exit_at(block.offset, h.plan.live(block.start, 0))
        h.exit_block = self.outside.exit_block

    def _body(self, block: PlannedBlock, after: PlannedBlock | None) -> None:
        h, outside = self.h, self.outside
        h.ir.position_at_end(self.bodies[block.number])
        place = self.pending[block.number]
        lanes = h.ir.load(place)
        h.ir.store(h.i32(0), place)
        h.set("active", lanes)
        h.lanes, h.masked, h.canonical, h.exit_block = lanes, True, set(), self.exit_block
        outside.divergent_start = self.checks[self.chain[0].number]
        partial, h.partial = h.partial, True  # what the other lanes would access may be out of bounds
        outside.emit_ops(block, 0)
        h.partial = partial
        self._terminator(block, h.lanes, after)
        h.emit_side_exits()
        h.lanes, h.masked, h.exit_block = None, False, outside.exit_block

    def _terminator(self, block: PlannedBlock, lanes: Any, after: PlannedBlock | None) -> None:
        h, terminator, blocks = self.h, block.terminator, self.outside.plan.blocks
        edges: list[tuple[int, Any]] = []
        if terminator is None and block.fallthrough < 0:  # a trap, which has left
            h.ir.unreachable()
            return
        if terminator is None:
            edges.append((block.fallthrough, lanes))
        elif isinstance(terminator.op, Jump):
            edges.append((block.targets[0], lanes))
        elif isinstance(terminator.op, Exit):
            h.begin(terminator)
            self.outside.end_lanes(terminator.op.guard)
            h.ir.unreachable()
            return
        elif isinstance(terminator.op, Branch):
            mask = h.ir.and_(self.outside.condition(terminator, terminator.op), lanes)
            edges.append((block.targets[0], mask))
            edges.append((block.fallthrough, h.ir.and_(lanes, h.ir.not_(mask))))
        cost = loop_cost(terminator, blocks[block.targets[0]]) if edges and terminator is not None else 0
        if terminator is not None and isinstance(terminator.op, IndexedBranch):
            edges = [*Selection(h, block, terminator, lanes).masks().items()]
            cost = COST
        edges.sort(key=lambda edge: blocks[edge[0]].priority)  # where both ways lead back, the first of them runs
        for number, mask in edges:
            pending = self.pending[number]
            h.ir.store(h.ir.or_(h.ir.load(pending), mask), pending)
        for number, _ in edges:
            if blocks[number].priority <= block.priority:
                self._back_edge(blocks[number], cost)
        if after is None:
            h.ir.unreachable()
        else:
            h.ir.branch(self.checks[after.number])

    def _back_edge(self, target: PlannedBlock, cost: int) -> None:
        """Lanes that go back run first, while the budget lasts."""
        h = self.h
        some, none = h.block_named("back"), h.block_named("forward")
        pending = h.ir.load(self.pending[target.number])
        h.ir.cbranch(h.nonzero(pending), some, none)
        h.ir.position_at_end(some)
        if cost:
            h.charge_budget(cost, lambda: self._exit_at(target))
            h.exit_block = self.exit_block
        h.ir.branch(self.checks[target.number])
        h.ir.position_at_end(none)

    def _emit_exit(self) -> None:
        """Note in the warp where its other lanes are pending."""
        h = self.h
        h.ir.position_at_end(self.exit_block)
        kind = lanes_of(i32)
        places: Any = h.load(h.warp, Warp.PRIORITIES, kind, 64)
        parked: Any = h.i32(NEVER)
        for block in reversed(self.chain):
            lanes = h.ir.load(self.pending[block.number])
            priority = h.i32(block.priority)
            places = h.ir.select(h.bools(lanes), h.splat(priority), places)
            parked = h.ir.select(h.nonzero(lanes), priority, parked)
        h.store(places, h.warp, Warp.PRIORITIES, 64)
        h.set("parked", parked)
        self._store_pending()
        self.outside.waiting.park()
        h.ir.branch(self.outside.hand_over)

    def _store_pending(self) -> None:
        """Store what lanes read that are pending elsewhere: those that leave may have no such registers any more."""
        h, plan = self.h, self.outside.plan
        lanes: dict[str, Any] = {}
        for block in self.chain:
            mask = h.ir.load(self.pending[block.number])
            for name in plan.live(block.start, 0) & h.written:
                lanes[name] = h.ir.or_(lanes[name], mask) if name in lanes else mask
        for name in sorted(lanes):
            h.store_register_of(plan.registers[name], lanes[name])
