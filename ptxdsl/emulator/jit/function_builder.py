"""The block function while it is built: what emitters call, and its side exits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from llvmlite import ir

from ..instructions.addresses import Pattern
from ..instructions.operand_classes import OperandClass
from ..codegen.handler import i32, i64, natural, pointer
from ..instructions.memory import Store
from ..instructions.micro_op import MicroOp
from ..machine.layout import FULL, LANES, NEVER, Block, Entry, Warp
from ..semantics.lanes import Lanes
from .block_registers import BlockRegisters, type_of
from .idle_planning import kept_registers
from .inlined import Slot
from .inlining import HoistedAccess, RowAccess
from .prefetching import Prefetching
from .row_loads import RowLoads
from .plan import Layout, PlannedOp, PlannedRegister, Plan, defers_nan, registers_of_entry

__all__ = ["BlockFunction", "DeoptPoint"]

_FOLLOWING = object()
MAX_CLOBBERED = 4
"""Registers whose old numbers are kept only for a side exit that is rarely taken."""


class _Replaced(NamedTuple):
    """Where a field of the block state would be that is replaced."""

    value: Any


@dataclass
class DeoptPoint:
    """Where a side exit resumes in the first tier, and the registers there.

    ``clobbered`` counts those that were written since; ``loads`` and ``stores`` say what a resumption repeats.
    """

    block: ir.Block
    offset: int
    values: dict[int, tuple[PlannedRegister, Any]]
    clobbered: int = 0
    loads: bool = False
    stores: bool = False


class BlockFunction(BlockRegisters):
    """The function under construction. Registers are variables of it, which LLVM turns into values."""

    single_warp = False

    def __init__(self, module: ir.Module, name: str, plan: Plan) -> None:
        self.replaced: dict[int, Any] = {}
        """Fields of the block state that are others for the block whose code is emitted, by their offset; i64."""
        super().__init__(module, name, plan)
        self.partial = plan.partial
        self.body = self.ir.block
        self.slow_path = self.function
        self.entries: dict[tuple[int, bool, int], tuple[Any, Any, Any]] = {}
        self.lanes: Any = self.i32(FULL)
        self.masked = self.thin = False
        self.place = 0
        """Which micro-op of its basic block is emitted."""
        self.checked: dict[int, Any] = {}
        """Whether merged bounds checks hold, by the micro-op that makes them, where that is not sure."""
        self.kept_at = kept_registers(plan)
        """Registers that are the same in all warps behind a barrier, and are kept once there, by its basic block."""
        self.rows = RowLoads(self)
        self.prefetching = Prefetching(self)
        self.entered: ir.IRBuilder | None = None
        """Where all warps have come to the first barrier: what they computed on the way is loaded there once."""
        self.of_entry = registers_of_entry(plan) - set().union(*self.kept_at.values())
        self.runs_blocks = False
        """Whether blocks of which all checks hold are run by a pass of the whole kernel."""
        self.straight = 0
        """LLVM instructions of passes in groups, without a branch, which take LLVM little."""
        self.after: ir.Block | None = None
        self.captured: list[tuple[Any, Any]] | None = None
        self.deopt_point: DeoptPoint | None = None
        self.deopt_points: list[DeoptPoint] = []
        self.exit_block: ir.Block | None = None
        self.hosts: list[Any] = []
        """The host addresses of an access that has been checked, one for each row that it reads by."""
        root = module.add_metadata(["ptxdsl"])
        state, user = (module.add_metadata([name, root, i64(0)]) for name in ("state", "user"))
        self.state_tag, self.user_tag = (module.add_metadata([kind, kind, i64(0)]) for kind in (state, user))
        shadow = module.add_metadata(["shadow", root, i64(0)])
        self.kinds = {"shadow": module.add_metadata([shadow, shadow, i64(0)])}
        names = "position first_warp budget active parked barrier vote result alive converged turns idle".split()
        self.state = {name: self.alloca(i32, 4) for name in names}
        self.state.update({name: self.alloca(i64, 8) for name in ("resume", "start")})
        self.base = super().load(self.block, Block.RECONVERGE, i64, fixed=True)
        self.number: Any = None

    def warp_at(self, position: Any) -> Any:
        """The number of the warp at a position in the scheduler's order, of which "first_warp" is the first."""
        number = self.ir.add(self.get("first_warp"), self.get(position) if isinstance(position, str) else position)
        wrapped = self.ir.sub(number, self.i32(self.plan.warps))
        return self.ir.select(self.ir.icmp_signed("<", number, self.i32(self.plan.warps)), number, wrapped)

    def lanes_at(self, warp: Any) -> Any:
        """The lanes that a warp begins with."""
        plan, tail = self.plan, ir.Constant(i32, self.plan.tail)
        if not plan.partial:
            return tail
        return self.ir.select(self.ir.icmp_unsigned("==", warp, self.i32(plan.warps - 1)), tail, self.i32(plan.whole))

    def begin_entered(self) -> None:
        """All warps have come to the first barrier."""
        self.entered = ir.IRBuilder(self.block_named("entered"))
        self.ir.branch(self.entered.block)
        self.behind_entry = self.block_named("behind_entry")
        self.ir.position_at_end(self.behind_entry)

    def end_entered(self) -> None:
        """What all regions load there is known."""
        if self.entered is not None:
            self.entered.branch(self.behind_entry)

    @property
    def sparse(self) -> bool:
        return self.masked or self.thin

    @property
    def alive(self) -> Any:
        """The lanes of the current warp that have not ended."""
        return self.get("alive") if self.plan.varies else self.i32(FULL)

    @property
    def converged(self) -> Any:
        """The lanes that converged code runs for: others of the warp have ended, or wait where these come to."""
        return self.get("converged") if self.plan.varies else self.i32(FULL)

    def all_converged(self, mask: Any) -> Any:
        """Whether all these lanes are in a mask of some of them."""
        return self.ir.icmp_unsigned("==", mask, self.converged)

    @property
    def keeps_lanes(self) -> bool:
        """Whether the memory of each warp says between barriers which of its lanes have not ended."""
        return self.plan.lanes_end and any(block.rendezvous is not None for block in self.plan.blocks)

    def begin_block(self) -> None:
        """No lane has ended."""
        warps = super().load(self.block, Block.WARPS, pointer, fixed=True)
        for number in range(self.plan.warps if self.keeps_lanes else 0):
            self.store(self.lanes_at(self.i32(number)), self.add(warps, number * self.plan.warp_bytes), Warp.ALIVE)

    def lanes_left(self, warp: Any, number: Any) -> Any:
        """The lanes of a warp that have not ended, where it is not the current one."""
        return super().load(warp, Warp.ALIVE, i32) if self.keeps_lanes else self.lanes_at(number)

    def end_lanes(self, gone: Any) -> None:
        """Lanes of the current warp end."""
        for name in ("alive", "converged"):
            self.set(name, self.ir.and_(self.get(name), self.ir.not_(gone)))

    def note_bounds(self, good: Any) -> Any:
        bounds = self.merged_bounds()
        if not self.partial or bounds is None:
            return super().note_bounds(good)
        if bounds[1] < 0:
            return self.checked.get(bounds[0], good)
        self.checked[self.place] = good
        return good

    # What emitters call

    def alias_class(self, instruction: Any, what: str) -> Any:
        instruction.set_metadata("tbaa", self.kinds[what])
        return instruction

    def begin(self, planned: PlannedOp) -> None:
        self.begin_unchecked(planned)
        if planned.op.may_fault:
            self.add_deopt_point(planned)

    def begin_unchecked(self, planned: PlannedOp) -> None:
        """The micro-op that is emitted next, whose checks have been made."""
        super().begin(planned)
        self.after = None
        self.defers_nan = defers_nan(planned.op) and not self.masked

    def micro_op_at(self, offset: int) -> Any:
        return self.ir.inttoptr(self.ir.add(self.base, self.i64(offset)), pointer)

    def lane_offsets(self, place: Any, bits: int) -> Any:
        return self.vector(self.plan.lane_offsets[int(place.constant)], bits)

    def add(self, base: Any, offset: Any) -> Any:
        at = int(offset.constant) if isinstance(offset, ir.Constant) else offset
        found = self.replaced.get(at) if base is self.block and isinstance(at, int) else None
        return super().add(base, offset) if found is None else _Replaced(found)

    def load(self, base: Any, offset: Any, kind: ir.Type, align: int | None = None, fixed: bool = False) -> Any:
        if isinstance(base, _Replaced):
            return base.value if kind.width == 64 else self.ir.trunc(base.value, kind)
        if isinstance(base, Slot) and base.offset < Warp.REGISTERS:
            base, offset = self.warp, base.offset
        if isinstance(base, Slot):
            return self._read_register(base.offset, kind)
        of_warp = base is self.warp and isinstance(offset, int)
        if of_warp and offset == Warp.INDEX:
            return self.number
        if of_warp and offset in (Warp.ALIVE, Warp.INITIAL):  # memory does not have these here
            return self.alive if offset == Warp.ALIVE else self.lanes_at(self.number)
        if of_warp and offset == Warp.PARKED:
            return self.i32(NEVER)
        if of_warp and offset == Warp.RESULT:
            return self.get("result")
        invariant = fixed or base is self.block or (of_warp and offset < Warp.REGISTERS)
        value = super().load(base, offset, kind, align, invariant)
        value.set_metadata("tbaa", self.state_tag if self._is_state(base) or fixed else self.user_tag)
        return value

    def _is_state(self, base: Any) -> bool:
        return base is self.warp or base is self.block

    def store(self, value: Any, base: Any, offset: Any, align: int | None = None) -> None:
        if not isinstance(base, Slot):
            place = self.ir.bitcast(self.add(base, offset), value.type.as_pointer())
            stored = self.ir.store(value, place, align=align or natural(value.type))
            stored.set_metadata("tbaa", self.state_tag if self._is_state(base) else self.user_tag)
        elif self.captured is not None:
            self.captured.append((base, value))
        else:
            key = base.offset if base.offset not in self.plan.row_affine else (base.offset, self.row)
            self.ir.store(value, self.variable(key, value.type))
            self.canonical.discard(base.offset)
            if self.deopt_point is not None and base.offset in self.deopt_point.values:
                self.deopt_point.clobbered += 1

    def call(self, name: str, result: ir.Type, *arguments: Any) -> Any:
        value = super().call(name, result, *arguments)
        if name.startswith("llvm.masked."):
            value.set_metadata("tbaa", self.user_tag)
        return value

    @property
    def active(self) -> Any:
        return self.lanes

    def own_access(self, kind: OperandClass, pattern: Pattern | None, nbytes: int, write: bool) -> Any:
        return (RowAccess if kind.by_row else HoistedAccess)(self, kind, pattern, nbytes, write)

    def limits(self, entry: int, write: bool, extent: int) -> tuple[Any, Any, Any]:
        """Of a buffer entry: its lowest address, the bound, and the way to the host, loaded once for the block."""
        found = self.entries.get((entry, write, extent))
        if found is None:
            here, self.ir = self.ir, self.preheader
            place = self.add(self.load(self.block, Block.TABLE, pointer), entry)
            size = self.load(place, Entry.WRITABLE if write else Entry.SIZE, i64, fixed=True)
            bound = self.call("llvm.usub.sat.i64", i64, size, self.i64(extent))
            low, delta = (self.load(place, field, i64, fixed=True) for field in (Entry.LOW, Entry.DELTA))
            found = self.entries[entry, write, extent] = (low, bound, delta)
            self.ir = here
        return found

    def keeps(self, slot: Any) -> bool:
        assert self.planned is not None
        return bool(getattr(self.planned.op, "guard", True)) or slot.offset not in self.plan.local

    def begin_row(self, access: Any, bits: int, lanes: Any, guarded: bool) -> None:
        self.rows.begin(access, bits, lanes, guarded)

    def in_row(self, count: int, otherwise: Callable[[], list[Any]]) -> list[Any] | None:
        return self.rows.values(count, otherwise)

    def merged_granules(self) -> tuple[int, ...] | None:
        assert self.planned is not None
        return self.planned.shadowed

    def following(self) -> Any:
        return _FOLLOWING

    def goto(self, rec: Any) -> None:
        if rec is not _FOLLOWING:
            raise AssertionError("goes on at a micro-op of the first tier")
        if self.after is None:
            self.after = self.block_named("after")
        self.ir.branch(self.after)

    def next(self) -> None:
        if self._read != len(self.codes):
            raise AssertionError(f"read {self._read} of the fields {self.codes!r} of {self.planned}")
        if self.after is not None:
            self.ir.branch(self.after)
            self.ir.position_at_end(self.after)
            self.canonical.clear()

    def splat(self, value: Any) -> Any:
        if isinstance(value, ir.Constant) and isinstance(value.type, ir.IntType):
            return Lanes(self.ir, LANES).const(value.type.width, int(value.constant))
        return super().splat(value)

    def branch_unless(self, condition: Any, otherwise: Callable[[], None]) -> None:
        if not (isinstance(condition, ir.Constant) and condition.constant):
            super().branch_unless(condition, otherwise)

    def in_first_two_warps(self) -> None:
        """Emit the rest of this micro-op for the first two warps only."""
        self.after = self.block_named("after")
        first = self.block_named("first_two_warps")
        self.ir.cbranch(self.ir.icmp_signed("<", self.get("position"), self.i32(2)), first, self.after)
        self.ir.position_at_end(first)

    def tail(self, handler: Any, rec: Any) -> None:  # noqa: ARG002
        self.side_exit()

    def tail_to(self, slot: int, rec: Any) -> None:  # noqa: ARG002
        self.side_exit()

    def fault(self, kind: int, mask: Any = None) -> None:  # noqa: ARG002
        self.side_exit()

    def here(self) -> Any:
        assert self.planned is not None
        return self.micro_op_at(self.planned.offset)

    def deoptimise(self, leave: Callable[[], None]) -> None:  # noqa: ARG002
        self.side_exit()

    # Exits

    def charge_budget(self, cost: int, leave: Callable[[], None]) -> None:
        """Take the cost of a loop from the budget; ``leave`` emits where to go when that is spent."""
        budget = self.ir.sub(self.get("budget"), self.i32(cost))
        self.set("budget", budget)
        self.branch_unless(self.ir.icmp_signed(">=", budget, self.i32(0)), leave)

    def side_exit(self) -> None:
        """Resume in the first tier at the deoptimisation point, which may lie before this micro-op."""
        assert self.deopt_point is not None
        self.ir.branch(self.deopt_point.block)

    def add_deopt_point(self, planned: PlannedOp) -> None:
        """Before a micro-op that may exit: keep what the registers hold, unless an earlier point will do."""
        point, op = self.deopt_point, planned.op
        reads = op.reads_memory or op.converges or op.rare
        if point is not None and point.clobbered <= MAX_CLOBBERED and not (point.stores and reads):
            point.loads |= reads
            return
        names = sorted(self.plan.live(planned.statement, 0) & self.written)
        registers = [self.plan.registers[name] for name in names]
        values = {register.slot: (register, self._current(register)) for register in registers}
        self.deopt_point = DeoptPoint(self.block_named("side_exit"), planned.offset, values, loads=reads)
        self.deopt_points.append(self.deopt_point)

    def _current(self, register: PlannedRegister) -> Any:
        if register.layout is Layout.ROW_AFFINE:
            return self._read_register(register.slot, type_of(register))
        return self.ir.load(self.variable(register.slot, type_of(register)))

    def commit(self, op: MicroOp) -> None:
        """A side effect has been done: stores may be repeated with other stores, but no load before them."""
        point = self.deopt_point
        if point is not None and isinstance(op, Store) and not point.loads:
            point.stores = True
        else:
            self.deopt_point = None

    def emit_side_exits(self) -> None:
        """The code of a basic block's side exits."""
        for point in self.deopt_points:
            self.ir.position_at_end(point.block)
            for register, value in point.values.values():
                raw = register.slot in self.plan.noncanonical
                self._store_register(register, self.canonical_number(value) if raw else value)
            self._leave_for(point.offset)
        self.deopt_point, self.deopt_points = None, []

    def exit_at(self, offset: int, live: set[str]) -> None:
        """Resume in the first tier at a micro-op, where these registers are live."""
        self.canonical = set()
        self.store_registers(live)
        self.canonical = set()
        self._leave_for(offset)

    def _leave_for(self, offset: int) -> None:
        self.set("resume", offset)
        assert self.exit_block is not None
        self.ir.branch(self.exit_block)

    # The variables in `state`

    def get(self, name: str) -> Any:
        return self.ir.load(self.state[name])

    def set(self, name: str, value: Any) -> None:
        variable = self.state[name]
        self.ir.store(ir.Constant(variable.type.pointee, value) if isinstance(value, int) else value, variable)
