"""The code of one lane within a block function: the emitters of micro-ops, for a warp of one.

Its registers are numbers, variables of their own. What it shares with the function around it is all the rest: the
block's memory, the entries of its arrays, the budget. A side exit stores the lane's registers in the warp's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..analysis.call_stack import FRAME, SLOT, STACK_ALIGN, STACK_POINTER
from ..codegen.handler import Handler, i32, i64
from ..codegen.registry import emit_inline
from ..instructions.control import Exit, SystemCall, Trap
from ..machine.layout import LANES
from .function_builder import BlockFunction
from .inlined import Slot
from .inlining import exit_if_active
from .plan import LanePlan, Layout, PlannedBlock, PlannedOp, PlannedRegister

__all__ = ["LaneCode"]


class LaneCode(BlockFunction):
    """The code of a lane under construction; ``outer`` is the function that it is part of."""

    def __init__(self, outer: BlockFunction, lanes: LanePlan, written: frozenset[str]) -> None:
        vars(self).update(vars(outer))
        self.outer, self.lane_plan, self.lane_written = outer, lanes, written
        self.variables = {}
        stack = (r for name, r in outer.plan.registers.items() if name == STACK_POINTER or name.startswith(FRAME))
        self.aligned = frozenset(register.slot for register in stack)
        """The slots of the stack pointer and of frames: LLVM is to see that they are aligned."""
        self.place_of_lane, self.budget = self.alloca(i32, 4), self.alloca(i32, 4)
        self.masked, self.thin, self.partial, self.defers_nan = True, False, False, False
        self.deopt_point, self.deopt_points, self.captured = None, [], None
        self.hosts, self.canonical = [], set()

    @property
    def lane(self) -> Any:
        """The lane's number."""
        return self.ir.load(self.place_of_lane)

    @property
    def known_alignment(self) -> int:
        assert self.planned is not None
        return SLOT if self.planned.statement in self.lane_plan.stacked else 1

    # Registers

    def of_lane(self, offsets: tuple[int, ...], bits: int) -> Any:
        """What the lane has of numbers that are known for each."""
        kind = ir.IntType(bits)
        step = offsets[1] - offsets[0]
        if offsets == tuple(offsets[0] + n * step for n in range(LANES)):
            lane = self.lane
            lane = self.ir.zext(lane, kind) if bits > 32 else self.ir.trunc(lane, kind) if bits < 32 else lane
            return self.ir.add(self.ir.mul(lane, kind(step)), kind(offsets[0]))
        return self.ir.extract_element(self.vector(offsets, bits), self.lane)

    def load(self, base: Any, offset: Any, kind: ir.Type, align: int | None = None, fixed: bool = False) -> Any:
        if isinstance(base, Slot) and base.offset < 0:
            place, offsets = self.lane_plan.registers[-1 - base.offset]
            if offsets is None:
                size = kind.width // 8
                return Handler.load(self, self.add(self.warp, place), self.ir.mul(self.lane, self.i32(size)), kind)
            return self.ir.add(self.load(self.warp, place, kind), self.of_lane(offsets, kind.width))
        return super().load(base, offset, kind, align, fixed)

    def _read_register(self, slot: int, kind: ir.Type) -> Any:
        found = self.ir.load(self.variable(slot, kind))
        return self.ir.and_(found, kind(-STACK_ALIGN)) if slot in self.aligned else found

    def _current(self, register: PlannedRegister) -> Any:
        return self.ir.load(self.variable(register.slot, self.kind_of(register)))

    def kind_of(self, register: PlannedRegister) -> ir.Type:
        """The type of a register's variable."""
        return i32 if register.layout is Layout.PREDICATE else ir.IntType(register.bits)

    def keeps(self, slot: Any) -> bool:  # noqa: ARG002
        return True

    # Micro-ops

    def emit_ops(self, block: PlannedBlock) -> None:
        """Emit a basic block's micro-ops, without that which ends it."""
        for planned in block.ops:
            self.begin(planned)
            op = planned.op
            if isinstance(op, (Exit, SystemCall, Trap)):
                exit_if_active(self, op.guard)
            else:
                emit_inline(self, op)
            if not op.repeatable:
                self.commit(op)

    # Side exits

    def add_deopt_point(self, planned: PlannedOp) -> None:
        written, self.written = self.written, self.lane_written
        super().add_deopt_point(planned)
        self.written = written

    def emit_side_exits(self) -> None:
        for point in self.deopt_points:
            self.ir.position_at_end(point.block)
            for register, value in point.values.values():
                self.store_of_lane(register, value)
            self._leave_for(point.offset)
        self.deopt_point, self.deopt_points = None, []

    def exit_at(self, offset: int, live: set[str]) -> None:
        for name in sorted(live & self.lane_written):
            register = self.plan.registers[name]
            self.store_of_lane(register, self._current(register))
        self._leave_for(offset)

    def _leave_for(self, offset: int) -> None:
        self.outer._leave_for(offset)

    def charge_budget(self, cost: int, leave: Callable[[], None]) -> None:
        """As for a warp, in statements of one lane."""
        left = self.ir.sub(self.ir.load(self.budget), self.i32(cost))
        self.ir.store(left, self.budget)

        def spent() -> None:
            self.outer.set("budget", 0)
            self.outer.charge_budget(cost, leave)
            self.ir.unreachable()

        self.branch_unless(self.ir.icmp_signed(">=", left, self.i32(0)), spent)

    def store_of_lane(self, register: PlannedRegister, value: Any) -> None:
        """Store the lane's number in the warp's memory."""
        if register.layout is Layout.PREDICATE:
            before = self.load(self.warp, register.offset, i32)
            self.store(self.with_bit(before, value), self.warp, register.offset)
            return
        at = self.ir.mul(self.ir.zext(self.lane, i64), self.i64(register.bits // 8))
        self.store(value, self.add(self.warp, register.offset), at)

    def with_bit(self, mask: Any, value: Any) -> Any:
        """A mask with the lane's predicate."""
        bit = self.ir.shl(self.i32(1), self.lane)
        return self.ir.or_(self.ir.and_(mask, self.ir.not_(bit)), self.ir.and_(value, bit))
