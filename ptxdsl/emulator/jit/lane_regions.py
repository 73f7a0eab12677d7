"""Basic blocks of a block function in which the lanes of a warp, once they have diverged, run one after the other.

The registers of converged code are spilled, and those that the region reads or writes are loaded for each lane in turn.
A lane runs to where the warp reconverges, or to where it ends, and waits there, with what it has written spilled again.
When the last one has come, the registers are put together. At a side exit one lane is under way, some wait behind the
region, and some have not begun: the first tier goes on with the one, and finds the others where they wait.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..codegen import data
from ..codegen.handler import i32, lanes_of
from ..instructions.control import Branch, IndexedBranch, Jump
from ..machine.layout import LANES
from .block_registers import type_of
from .divergent_regions import ConvergentCode, DivergentRegion
from .indexed_branches import COST
from .lane_code import LaneCode
from .plan import LanePlan, Layout, PlannedBlock, PlannedOp, PlannedRegister, loop_cost

__all__ = ["LaneRegion"]

_FACTOR = 5
"""Lanes of a warp, as a power of two: so many more statements of a lane are a block's budget."""


class LaneRegion(DivergentRegion):
    """A divergent region whose lanes run one after the other."""

    def __init__(
        self, outside: ConvergentCode, members: list[PlannedBlock], exits: list[PlannedBlock], lanes: LanePlan
    ) -> None:
        self.blocks = {block.number: lanes.blocks[block.number] for block in members if block.number in lanes.blocks}
        super().__init__(outside, members, exits)
        h, plan = self.h, outside.plan
        self.ends = [block for block in self.chain if block.number not in self.blocks]
        self.written = frozenset().union(*(plan.writes[n] for n in self.blocks)) - plan.launch_invariant
        self.read = frozenset().union(*(plan.reads[n] for n in self.blocks))
        self.lanes = lanes
        self.entered: dict[int, None] = {}
        self.begin, self.next_lane, self.leave = (h.block_named(n) for n in ("one_by_one", "next_lane", "lane_leaves"))
        self.spilled: dict[str, Any] = {}

    def runs(self, block: PlannedBlock) -> bool:
        return block.number in self.blocks

    def enter(self, lanes: dict[int, Any]) -> None:
        h = self.h
        for number, place in self.pending.items():
            h.ir.store(lanes.get(number, h.i32(0)), place)
        self.entered.update(dict.fromkeys(number for number in lanes if number in self.blocks))
        h.ir.branch(self.begin)

    def emit(self) -> None:
        h = self.h
        if not self.entered:
            unused = (self.begin, self.next_lane, self.leave, self.exit_block)
            for block in (*unused, *self.bodies.values(), *self.checks.values()):
                h.ir.position_at_end(block)
                h.ir.unreachable()
            return
        self.code = LaneCode(h, self.lanes, self.written)
        h.exit_block = self.leave
        for block in self.ends:
            for name in h.plan.live(block.start, 0) & self.written:
                self._place(name)
        self._begin()
        self._emit_next()
        self.waits = {block.number: h.block_named("lane_waits") for block in self.ends}
        for block in self.blocks.values():
            self._lane_body(block)
        for block in self.ends:
            self._wait(block)
        h.exit_block = self.outside.exit_block
        for place, block in enumerate(self.ends):
            self._check(block, self.ends[place + 1] if place + 1 < len(self.ends) else None)
        for block in self.blocks.values():
            h.ir.position_at_end(self.checks[block.number])
            h.ir.unreachable()
        self._emit_leave()
        self._emit_exit()

    # Registers

    def _place(self, name: str) -> Any:
        """Where a register of all lanes is spilled."""
        found = self.spilled.get(name)
        if found is None:
            register = self.h.plan.registers[name]
            kind = i32 if register.layout is Layout.PREDICATE else lanes_of(ir.IntType(register.bits))
            found = self.spilled[name] = self.h.alloca(kind, 64)
            self.h.allocas.store(ir.Constant(kind, None if kind is not i32 else 0), found)
        return found

    def _read_at(self, block: PlannedBlock) -> list[str]:
        """The registers that a lane has from converged code, where it begins with a basic block."""
        plan = self.h.plan
        live = plan.live(block.start, 0) & (self.read | self.written)
        return sorted(live | plan.launch_invariant & self.read)

    def _one_for_all(self, register: PlannedRegister) -> bool:
        """Whether a register is no vector and no mask in converged code."""
        return register.layout is Layout.UNIFORM

    def _begin(self) -> None:
        """Spill the registers of converged code."""
        h, plan = self.h, self.h.plan
        h.ir.position_at_end(self.begin)
        h.canonical, h.defers_nan = set(), False
        for name in sorted(set().union(*(self._read_at(self.blocks[number]) for number in self.entered))):
            register = plan.registers[name]
            if self._one_for_all(register):
                continue
            kind = self._place(name).type.pointee
            h.ir.store(h._read_register(register.slot, kind), self._place(name))
        h.ir.store(h.ir.shl(h.get("budget"), h.i32(_FACTOR)), self.code.budget)
        h.ir.branch(self.next_lane)

    def _emit_next(self) -> None:
        """Go on with a lane that has not begun; where none is left, behind the region."""
        h, code = self.h, self.code
        h.ir.position_at_end(self.next_lane)
        for number in self.entered:
            place = self.pending[number]
            waiting = h.ir.load(place)
            some, none = h.block_named("some"), h.block_named("none")
            h.ir.cbranch(h.nonzero(waiting), some, none)
            h.ir.position_at_end(some)
            lane = h.ir.and_(h.first_lane(waiting), h.i32(LANES - 1))
            h.ir.store(lane, code.place_of_lane)
            h.ir.store(h.ir.and_(waiting, h.ir.sub(waiting, h.i32(1))), place)
            self._load_registers(self.blocks[number])
            h.ir.branch(self.bodies[number])
            h.ir.position_at_end(none)
        self._merge(self.ends)
        h.set("budget", h.ir.ashr(h.ir.load(code.budget), h.i32(_FACTOR)))
        h.ir.branch(self.checks[self.ends[0].number])

    def _load_registers(self, block: PlannedBlock) -> None:
        """The registers of a lane that begins with a basic block."""
        h, code = self.h, self.code
        for name in self._read_at(block):
            register = h.plan.registers[name]
            kind = code.kind_of(register)
            if self._one_for_all(register):
                value = h._read_register(register.slot, kind)
                offsets = self.lanes.offsets.get(name)
                value = value if offsets is None else h.ir.add(value, code.of_lane(offsets, register.bits))
            elif register.layout is Layout.PREDICATE:
                bit = h.ir.and_(h.ir.lshr(h.ir.load(self._place(name)), code.lane), h.i32(1))
                value = h.ir.sub(h.i32(0), bit)
            else:
                value = h.ir.load(self._element(name), align=register.bits // 8)
            h.ir.store(value, code.variable(register.slot, kind))

    def _element(self, name: str) -> Any:
        """Where the lane's number of a register is spilled."""
        kind = ir.IntType(self.h.plan.registers[name].bits)
        first = self.h.ir.bitcast(self._place(name), kind.as_pointer())
        return self.h.ir.gep(first, [self.h.ir.zext(self.code.lane, ir.IntType(64))], source_etype=kind)

    def _merge(self, blocks: list[PlannedBlock]) -> None:
        """Put together the registers that are live at basic blocks."""
        h, plan = self.h, self.h.plan
        live = set().union(*(plan.live(block.start, 0) for block in blocks))
        for name in sorted(live & self.spilled.keys() & self.written):
            register = plan.registers[name]
            h.ir.store(h.ir.load(self._place(name)), h.variable(register.slot, type_of(register)))

    # Lanes

    def _lane_body(self, block: PlannedBlock) -> None:
        h, code = self.h, self.code
        h.ir.position_at_end(self.bodies[block.number])
        code.lanes = h.ir.shl(h.i32(1), code.lane)
        code.emit_ops(block)
        self._lane_terminator(block)
        code.emit_side_exits()

    def _lane_terminator(self, block: PlannedBlock) -> None:
        h, code, terminator = self.h, self.code, block.terminator
        if terminator is None and block.fallthrough < 0:  # a trap, which has left
            h.ir.unreachable()
        elif terminator is None:
            h.ir.branch(self._way(block.fallthrough, 0))
        elif isinstance(terminator.op, Jump):
            h.ir.branch(self._way(block.targets[0], self._cost(terminator, block)))
        elif isinstance(terminator.op, Branch):
            code.begin(terminator)
            condition = h.nonzero(data.guard_mask(code, terminator.op.guard, False))
            taken = self._way(block.targets[0], self._cost(terminator, block))
            h.ir.cbranch(condition, taken, self._way(block.fallthrough, 0))
        else:
            assert isinstance(terminator.op, IndexedBranch)
            self._indexed(block, terminator, terminator.op)

    def _cost(self, terminator: PlannedOp, block: PlannedBlock) -> int:
        return loop_cost(terminator, self.outside.plan.blocks[block.targets[0]])

    def _indexed(self, block: PlannedBlock, terminator: PlannedOp, branch: IndexedBranch) -> None:
        h, code = self.h, self.code
        code.begin(terminator)
        guard = data.guard_mask(code, branch.guard, False)
        number = data.source(code, branch.selector, 1)
        if guard is not None:
            taken = h.block_named("taken")
            h.ir.cbranch(h.nonzero(guard), taken, self._way(block.fallthrough, 0))
            h.ir.position_at_end(taken)
        beyond = h.block_named("beyond")
        switch = h.ir.switch(number, beyond)
        h.ir.position_at_end(beyond)
        code.side_exit()
        for place, target in enumerate(block.targets):
            back = self.outside.plan.blocks[target].priority <= block.priority
            switch.add_case(h.i32(place), self._way(target, COST if back else 0))

    def _way(self, target: int, cost: int) -> ir.Block:
        """Where a lane goes that goes on with a basic block, which takes so much of the budget."""
        h = self.h
        to: ir.Block = self.bodies[target] if target in self.blocks else self.waits[target]
        if not cost:
            return to
        here, charged = h.ir.block, h.block_named("charged")
        h.ir.position_at_end(charged)
        block = self.outside.plan.blocks[target]
        self.code.charge_budget(cost, lambda: self.code.exit_at(block.offset, h.plan.live(block.start, 0)))
        h.ir.branch(to)
        h.ir.position_at_end(here)
        return charged

    def _wait(self, block: PlannedBlock) -> None:
        """A lane waits at a basic block behind the region."""
        h, code = self.h, self.code
        h.ir.position_at_end(self.waits[block.number])
        for name in sorted(h.plan.live(block.start, 0) & self.written):
            register = h.plan.registers[name]
            value = h.ir.load(code.variable(register.slot, code.kind_of(register)))
            if register.layout is Layout.PREDICATE:
                h.ir.store(code.with_bit(h.ir.load(self._place(name)), value), self._place(name))
            else:
                h.ir.store(value, self._element(name), align=register.bits // 8)
        place = self.pending[block.number]
        h.ir.store(h.ir.or_(h.ir.load(place), h.ir.shl(h.i32(1), code.lane)), place)
        h.ir.branch(self.next_lane)

    # Side exits

    def _emit_leave(self) -> None:
        """A lane leaves that is under way: the others wait behind the region, or where they are to begin."""
        h, plan, code = self.h, self.h.plan, self.code
        h.ir.position_at_end(self.leave)
        h.canonical = set()
        h.set("active", h.ir.shl(h.i32(1), code.lane))
        self._merge([*self.ends, *(self.blocks[number] for number in self.entered)])
        live = set().union(*(plan.live(block.start, 0) for block in self.blocks.values()))
        h.store_registers(live - self.written)
        h.ir.branch(self.exit_block)
