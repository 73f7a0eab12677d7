"""The registers of a block function: variables, which LLVM turns into values, and where they go to and from memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir

from ..codegen import segments
from ..codegen.handler import lanes_of, pointer
from ..machine.layout import Block
from ..semantics.lanes import Lanes
from .inlined import InlinedOps
from .plan import Layout, PlannedRegister, Plan

__all__ = ["BlockRegisters", "type_of"]


def type_of(register: PlannedRegister) -> ir.Type:
    """The type of a register's variable."""
    element = ir.IntType(32 if register.layout is Layout.PREDICATE else register.bits)
    return lanes_of(element) if register.layout in (Layout.ROW_AFFINE, Layout.VARYING) else element


class BlockRegisters(InlinedOps):
    """A function under construction, and its registers."""

    def __init__(self, module: ir.Module, name: str, plan: Plan) -> None:
        super().__init__(module, name)
        self.plan = plan
        self.present = min(plan.width, plan.threads)
        self.allocas = self.ir
        self.ir = ir.IRBuilder(self.function.append_basic_block("body"))
        self.preheader = ir.IRBuilder(self.function.append_basic_block("preheader"))
        self.variables: dict[Any, Any] = {}
        self.row = 0
        self.canonical: set[int] = set()
        """Slots whose NaN is PTX's at this place, of those that may hold another."""
        self.written: frozenset[str] = frozenset()
        self.kept: dict[int, Any] = {}
        """Where the registers are, by slot, that all warps have in common where the region begins."""

    def alloca(self, kind: ir.Type, align: int = 16) -> Any:
        place = self.allocas.alloca(kind)
        place.align = align
        return place

    def vector(self, numbers: Iterable[int], bits: int) -> ir.Constant:
        element = ir.IntType(bits)
        return ir.Constant(lanes_of(element), [number & (1 << bits) - 1 for number in numbers])

    def variable(self, key: Any, kind: ir.Type) -> Any:
        """The variable of a register."""
        place = self.variables.get(key)
        if place is None:
            place = self.variables[key] = self.alloca(kind, 64 if isinstance(kind, ir.VectorType) else 8)
            self.allocas.store(ir.Constant(kind, None if isinstance(kind, ir.VectorType) else 0), place)
        if place.type.pointee != kind:
            raise AssertionError(f"a variable of {place.type.pointee} taken for {kind}")
        return place

    def _read_register(self, slot: int, kind: ir.Type) -> Any:
        offsets = self.plan.row_affine.get(slot)
        if offsets is not None:
            return self._read_rows(slot, kind, offsets)
        variable = self.variable(slot, kind)
        value = self.ir.load(variable)
        if slot in self.plan.noncanonical and not self.defers_nan and slot not in self.canonical:
            value = self.canonical_number(value)
            self.ir.store(value, variable)
            self.canonical.add(slot)
        return value

    def _read_rows(self, slot: int, kind: ir.Type, offsets: Any) -> Any:
        """A row-affine register: the number of the current row, or that of each lane."""
        if not isinstance(kind, ir.VectorType):
            return self.ir.load(self.variable((slot, self.row), kind))
        starts = range(0, self.present, offsets.lanes)
        firsts = [self.ir.load(self.variable((slot, n), kind.element)) for n in starts]
        rows = segments.in_lanes(self, [segments.spread(self, first, offsets.lanes) for first in firsts])
        return self.ir.add(rows, self.vector(offsets, kind.element.width))

    def canonical_number(self, value: Any) -> Any:
        """The number with PTX's NaN in place of any other."""
        lanes = Lanes(self.ir, value.type.count if isinstance(value.type, ir.VectorType) else 1)
        bits = lanes.wrap(value)
        nan = bits.reals().isnan()
        return nan.pick(0x7FFFFFFF, bits).value

    def _registers_of(self, names: Iterable[str]) -> list[PlannedRegister]:
        return [self.plan.registers[name] for name in names]

    def begin_kept(self, names: Iterable[str]) -> None:
        """What the warps before have kept of some registers is what all warps of this region begin with."""
        self.kept = {}
        for register in self._registers_of(names):
            kind = type_of(register)
            place = self.kept[register.slot] = self.variable(("begun", register.slot), kind)
            self.ir.store(self.ir.load(self.variable(("ended", register.slot), kind)), place)

    def keep(self, names: Iterable[str]) -> None:
        """Keep what some registers hold, the same in all warps, for the next region."""
        for register in self._registers_of(names):
            kind = type_of(register)
            self.ir.store(self._read_register(register.slot, kind), self.variable(("ended", register.slot), kind))

    def store_kept(self, names: Iterable[str]) -> None:
        """Store in the warp's memory what it begins with."""
        for register in self._registers_of(names):
            self.store(self.ir.load(self.kept[register.slot]), self.warp, register.offset)

    def load_registers(self, names: Iterable[str]) -> None:
        """Load registers from the warp's memory, or what is kept for all warps."""
        for name in sorted(names):
            register = self.plan.registers[name]
            if register.slot in self.kept:
                value = self.ir.load(self.kept[register.slot])
                self.ir.store(value, self.variable(register.slot, value.type))
                continue
            if register.layout is Layout.ROW_AFFINE:
                self._load_rows(register)
                continue
            kind = type_of(register)
            value = self.load(self.warp, register.offset, kind)
            if register.lane_offsets is not None:
                value = self.ir.sub(value, ir.Constant(kind, register.lane_offsets[0] & (1 << register.bits) - 1))
            self.ir.store(value, self.variable(register.slot, kind))

    def load_of(self, warp: Any, offset: int, kind: ir.Type, fixed: bool) -> Any:
        """A number from the memory of any warp."""
        here, self.warp = self.warp, warp
        value = self.load(warp, offset, kind, fixed=fixed)
        self.warp = here
        return value

    def load_warp_invariant(self, names: Iterable[str]) -> None:
        """Load once for the block what is the same in all warps: what is computed of it leaves the loop over them."""
        here, warp = self.ir, self.warp
        self.ir = self.preheader
        self.warp = super().load(self.block, Block.WARPS, pointer, fixed=True)
        values = []
        for name in sorted(names):
            register = self.plan.registers[name]
            values.append((register, self.load(self.warp, register.offset, type_of(register), fixed=True)))
        self.ir, self.warp = here, warp
        for register, value in values:
            self.ir.store(value, self.variable(register.slot, value.type))

    def _load_rows(self, register: PlannedRegister) -> None:
        element = ir.IntType(register.bits)
        for lane in range(0, self.present, self.plan.row_affine[register.slot].lanes):
            value = self.load(self.warp, register.offset + lane * register.bits // 8, element)
            self.ir.store(value, self.variable((register.slot, lane), element))

    def store_registers(self, names: set[str]) -> None:
        """Store registers that this region has written in the warp's memory."""
        for name in sorted(names & self.written):
            register = self.plan.registers[name]
            self._store_register(register, self._read_register(register.slot, type_of(register)))

    def _store_register(self, register: PlannedRegister, value: Any) -> None:
        if register.lane_offsets is not None:
            value = self.ir.add(self.splat(value), self.vector(register.lane_offsets, register.bits))
        self.store(value, self.warp, register.offset)

    def store_register_of(self, register: PlannedRegister, lanes: Any) -> None:
        """Store a register in the warp's memory for some lanes; where all have one number there, if there are any."""
        kind = type_of(register)
        if register.layout is Layout.ROW_AFFINE:
            value = self._read_rows(register.slot, kind, self.plan.row_affine[register.slot])
        else:
            value = self.ir.load(self.variable(register.slot, kind))
        if register.slot in self.plan.noncanonical:
            value = self.canonical_number(value)
        if register.lane_offsets is not None:
            value = self.ir.add(self.splat(value), self.vector(register.lane_offsets, register.bits))
        before = self.load(self.warp, register.offset, value.type)
        if register.layout is Layout.PREDICATE:
            value = self.ir.or_(self.ir.and_(value, lanes), self.ir.and_(before, self.ir.not_(lanes)))
        else:
            chosen = self.bools(lanes) if isinstance(value.type, ir.VectorType) else self.nonzero(lanes)
            value = self.ir.select(chosen, value, before)
        self.store(value, self.warp, register.offset)
