"""The numbers of all warps of a block at once: scalars where they are the same in all, else vectors.

What addresses and bounds on an index are made of is integers that are one number for a warp, or one for each row of the
block in it. Here the instructions that compute them are emitted once for all warps, with their usual semantics. What
depends on memory, or differs between lanes in any other way, is not known: who asks for it is told so.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...isa import lookup
from .. import semantics
from ..codegen import data
from ..codegen.handler import Handler, i1, i32, i64, pointer, undefined
from ..instructions.data import Compute, WrapCheck
from ..instructions.operand_classes import ABSENT, NEGATED, SINK, OperandClass
from ..machine.layout import LANES, Block
from ..semantics.lanes import Lanes, integer_range
from .function_builder import BlockFunction
from .plan import Layout, PlannedOp
from .row_micro_ops import ComputeRows, RowWrapCheck

__all__ = ["BlockNumbers", "Unsuited"]

ORDERED = {"lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"}
"""Comparisons that hold between two numbers where they hold for both."""


class Unsuited(Exception):
    """Something cannot be known of all warps beforehand."""


def _signed(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


class BlockNumbers:
    """Registers and predicates of all warps, as they are behind the instructions that were computed."""

    def __init__(self, h: BlockFunction, start: int) -> None:
        self.h, self.plan, self.warps, self.start = h, h.plan, h.plan.warps, start
        self.numbers: dict[Any, Any] = {}
        """Of registers, by slot, or by slot and row; None where a number is not known."""
        self.predicates: dict[int, tuple[Any, Any] | None] = {}
        """Whether a predicate holds in all lanes, and in none."""
        self.good: Any = ir.Constant(i1, 1)
        """Whether all that was demanded holds, in each warp."""
        self.registers = {register.slot: (name, register) for name, register in self.plan.registers.items()}

    def demand(self, good: Any) -> None:
        self.good = self.both(self.good, good)

    def both(self, a: Any, b: Any) -> Any:
        return self.h.ir.and_(*self.alike(a, b))

    def alike(self, *values: Any) -> list[Any]:
        """The values, as vectors if one of them is."""
        width = self._width(*values)
        return [self._spread(value) if width > 1 else value for value in values]

    def _width(self, *values: Any) -> int:
        return self.warps if any(isinstance(value.type, ir.VectorType) for value in values) else 1

    def _spread(self, value: Any) -> Any:
        if isinstance(value.type, ir.VectorType):
            return value
        kind = ir.VectorType(value.type, self.warps)
        first = self.h.ir.insert_element(undefined(kind), value, self.h.i32(0))
        return self.h.ir.shuffle_vector(first, undefined(kind), ir.Constant(ir.VectorType(i32, self.warps), None))

    def constant(self, value: Any, number: int) -> Any:
        """A number in the type of a value."""
        kind = value.type.element if isinstance(value.type, ir.VectorType) else value.type
        constant = ir.Constant(kind, number & (1 << kind.width) - 1)
        return self._spread(constant) if isinstance(value.type, ir.VectorType) else constant

    def plus(self, value: Any, number: int) -> Any:
        return self.h.ir.add(value, self.constant(value, number)) if number else value

    def read(self, slot: int, row: int | None = None) -> Any:
        """The number of a register in each warp, or in a row of each."""
        key = slot if row is None else (slot, row)
        if key not in self.numbers:
            self.numbers[key] = self._at_start(slot, row)
        value = self.numbers[key]
        if value is None:
            raise Unsuited
        return value

    def _at_start(self, slot: int, row: int | None) -> Any:
        """What a register holds where the region begins."""
        h, plan = self.h, self.plan
        if slot not in self.registers:  # of the warp itself: its number, or that of its first thread
            raise Unsuited
        name, register = self.registers[slot]
        if register.layout not in (Layout.UNIFORM, Layout.ROW_AFFINE) or (row is None) == (slot in plan.row_affine):
            raise Unsuited
        if slot in h.kept and row is None:
            return h.ir.load(h.kept[slot])
        here, fixed = h.ir, name in plan.launch_invariant
        behind = h.entered is not None and self.start >= 0 and name in h.of_entry
        h.ir = h.preheader if fixed else h.entered if behind else here
        element, offset = ir.IntType(register.bits), register.offset + (row or 0) * register.bits // 8
        once = row is None and slot in plan.warp_invariant and register.lane_offsets is None and fixed
        once = once or self.warps == 1
        parts = []
        for number in range(1 if once else self.warps):
            value = h.load_of(self.warp(number), offset, element, fixed)
            if register.lane_offsets is not None:
                value = h.ir.sub(value, ir.Constant(element, register.lane_offsets[0] & (1 << register.bits) - 1))
            parts.append(value)
        value = parts[0]
        if not once:
            value = undefined(ir.VectorType(element, self.warps))
            for number, part in enumerate(parts):
                value = h.ir.insert_element(value, part, h.i32(number))
        h.ir = here
        return value

    def warp(self, number: int) -> Any:
        h = self.h
        return h.add(Handler.load(h, h.block, Block.WARPS, pointer, fixed=True), number * self.plan.warp_bytes)

    def forget(self, slots: Any) -> None:
        for slot in slots:
            self.numbers[slot] = self.predicates[slot] = None
            for row in range(LANES if slot in self.plan.row_affine else 0):
                self.numbers[slot, row] = None

    def _operand(self, kind: Any, spec: Any, row: int | None = None) -> Any:
        """The next operand, at the width that the instruction takes it at."""
        value = self._source(kind, row)
        return value if isinstance(value, int) else data.cut(self.h, value, spec)

    def _source(self, kind: Any, row: int | None = None) -> Any:
        """The next operand, which is one number for a warp, or for a row."""
        h = self.h
        if not isinstance(kind, OperandClass) or kind.predicate or kind.bits > 64:
            raise Unsuited
        if kind.shaping:
            return kind.bits
        if kind.immediate or kind.block_field:
            value = data.source(h, kind, 1)
        elif kind.uniform:
            value = self.read(h.slot().offset)
        elif row is not None and kind.per_lane:
            value = self.read(h.slot().offset, row)
        elif row is not None and kind.affine:
            slot, known = h.slot().offset, self.plan.lane_offsets[int(h.field("q").constant)]
            value = self.plus(self.read(slot), known[row])
        else:
            raise Unsuited
        return value

    def _evaluated(self, form: Any, values: list[Any]) -> Any:
        numbers = [value for value in values if not isinstance(value, int)]
        width = self._width(*numbers) if numbers else 1
        alike = [value if isinstance(value, int) else self._spread(value) if width > 1 else value for value in values]
        return semantics.lookup(form)(Lanes(self.h.ir, width), form, *alike)

    def _number(self, kinds: tuple[Any, ...], form: Any) -> Any:
        """The result of an instruction in each warp."""
        self.h.field()  # the destination
        values = [self._operand(kind, spec) for spec, kind in zip(form.operands[1:], kinds[1:])]
        signed = form.operands[0].type is not None and form.operands[0].type.is_signed
        return data.fit(self.h, self._evaluated(form, values), kinds[0].bits, signed)

    def compute(self, planned: PlannedOp, op: Compute) -> None:
        form = lookup(op.mnemonic)[op.number]
        written = [kind for spec, kind in zip(form.operands, op.operands) if spec.written]
        items = [item for kind in written for item in (kind if isinstance(kind, tuple) else (kind,))]
        there = [item for item in items if item not in (SINK, ABSENT)]
        slots = planned.values[bool(op.guard) :][: len(there)]
        plain = not op.guard and not op.masked and not form.effects.carries and len(there) == 1
        plain = plain and not op.selectors and form.operands[0].written and form.operands[0].role != "rw"
        found: Any = None
        try:
            if plain and there[0].predicate:
                found = self._predicate(op, form)
            elif plain and op.width == 1:
                found = self._number(op.operands, form)
        except Unsuited:
            found = None
        self.forget(slots)
        if found is not None:
            (self.predicates if there[0].predicate else self.numbers)[slots[0]] = found

    def compute_rows(self, op: ComputeRows) -> None:
        """The result in each row of each warp."""
        h, form, kinds = self.h, lookup(op.mnemonic)[op.number], op.operands
        planned = h.planned
        assert planned is not None
        slot, found = int(planned.values[0]), {}
        for row in range(0, h.present, self.plan.row_affine[slot].lanes):
            h.begin_unchecked(planned)
            h.field()
            try:
                values = [self._operand(kind, spec, row) for spec, kind in zip(form.operands[1:], kinds[1:])]
            except Unsuited:
                self.forget([slot])
                return
            signed = form.operands[0].type is not None and form.operands[0].type.is_signed
            found[slot, row] = data.fit(h, self._evaluated(form, values), kinds[0].bits, signed)
        self.numbers.update(found)

    def wrap_check(self, op: WrapCheck | RowWrapCheck) -> None:
        h, planned = self.h, self.h.planned
        assert planned is not None
        least, most = planned.values[-2:]
        bits = op.base.bits
        low, high = integer_range(bits, op.signed)
        if isinstance(op, RowWrapCheck) and not op.base.scalar:
            bases = []
            for row in range(0, h.present, self.plan.row_lanes):
                h.begin_unchecked(planned)
                bases.append(self._source(op.base, row))
        else:
            bases = [self._source(op.base)]
        for base in bases:
            kind = ir.VectorType(i64, self.warps) if isinstance(base.type, ir.VectorType) else i64
            wide = base if bits == 64 else (h.ir.sext if op.signed else h.ir.zext)(base, kind)
            for number, sign, end in ((least, ">=", low), (most, "<=", high)):
                moved = self.plus(wide, number)
                self.demand(h.ir.icmp_signed(sign, moved, self.constant(moved, end)))

    def _predicate(self, op: Compute, form: Any) -> Any:
        """Whether the result holds in all lanes of a warp, and in none."""
        h = self.h
        h.field()
        name = op.mnemonic.partition(".")[0]
        if op.mnemonic in ("and.pred", "or.pred", "not.pred", "mov.pred"):
            parts = [self.known_of(kind, int(h.field().constant)) for kind in op.operands[1:]]
            if name == "not":
                return parts[0][1], parts[0][0]
            if name == "mov":
                return parts[0]
            (all_a, none_a), (all_b, none_b) = parts
            ways = (self.both, self._or) if name == "and" else (self._or, self.both)
            return ways[0](all_a, all_b), ways[1](none_a, none_b)
        compared = form.modifiers.get("cmp")
        if name != "setp" or len(op.operands) != 3 or form.operands[1].type.kind not in "usb":
            raise Unsuited
        sides = [self._ends(kind, spec) for kind, spec in zip(op.operands[1:], form.operands[1:])]
        signed = form.operands[1].type.is_signed
        every: Any = ir.Constant(i1, 1)
        none = every
        for a in sides[0]:
            for b in sides[1]:
                if len(a) + len(b) > 3 or (len(a) + len(b) > 2 and compared not in ORDERED):
                    raise Unsuited
                for ends in (a, b):
                    if len(ends) > 1:  # the lanes in between lie in between
                        sorts = h.ir.icmp_signed if signed else h.ir.icmp_unsigned
                        whole = sorts("<=", *ends)
                        every, none = self.both(every, whole), self.both(none, whole)
                for x in a:
                    for y in b:
                        holds = self._evaluated(form, [x, y])
                        every, none = self.both(every, holds), self.both(none, h.ir.not_(holds))
        return every, none

    def _or(self, a: Any, b: Any) -> Any:
        return self.h.ir.or_(*self.alike(a, b))

    def _ends(self, kind: Any, spec: Any) -> list[tuple[Any, ...]]:
        """An operand's least and greatest number in each warp, or in each row; one number where they are the same."""
        h, plan = self.h, self.plan
        if not isinstance(kind, OperandClass) or not (kind.affine or kind.per_lane):
            return [(self._operand(kind, spec),)]
        slot = h.slot().offset
        if kind.affine:
            there = plan.lane_offsets[int(h.field("q").constant)][: h.present]
            rows = [(self.read(slot), there)]
        elif slot in plan.row_affine:
            offsets = plan.row_affine[slot]
            starts = range(0, h.present, offsets.lanes)
            rows = [(self.read(slot, row), offsets[row : row + offsets.lanes]) for row in starts]
        else:
            raise Unsuited
        found = []
        for base, offsets in rows:
            known = [_signed(offset, kind.bits) for offset in offsets]
            low, high = min(known), max(known)
            ends = tuple(self.plus(base, offset) for offset in ((low, high) if low < high else (low,)))
            found.append(tuple(data.cut(h, end, spec) for end in ends))
        return found

    def known_of(self, kind: OperandClass, slot: int) -> tuple[Any, Any]:
        found = self.predicates.get(slot)
        if found is None:
            raise Unsuited
        return (found[1], found[0]) if kind == NEGATED else found

    def reduced(self, good: Any) -> Any:
        if not isinstance(good.type, ir.VectorType):
            return good
        kind = ir.IntType(self.warps)
        return self.h.ir.icmp_unsigned("==", self.h.ir.bitcast(good, kind), ir.Constant(kind, (1 << self.warps) - 1))
