"""Addresses of each lane that are an array's plus an index of 32 bits, and those that probably lie side by side.

Compilers widen an index, multiply it by the size of an element and add it to a pointer: 64 bits for each lane, of which
the CPU needs 32. Where all that stands in the basic block of the access, its bounds are a range of the index, and what
gathers adds the one pointer itself. Where it stands elsewhere, or a register has changed since, the addresses are taken
as they are.

In a loop that some lanes leave before others the addresses of neighbours are no longer known to lie side by side, but
those of the lanes that are left do, unless lanes began at different turns. Whether they probably do follows from what
is computed, wherever lanes are; that they do is asked when they are accessed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ...ir import Immediate, Instruction, Operand, Register
from ..analysis.divergence import UNIFORM, VARYING, LaneOffsets
from ..analysis.form_plans import plan_of
from ..analysis.row_affine import RowAffine, RowAffineAnalysis
from ..instructions.addresses import AccessFlags
from ..instructions.memory import Load, Store
from ..instructions.micro_op import PlacedMicroOp
from ..machine.layout import LANES
from .plan import Index

__all__ = ["IndexedAddresses"]

MOST_SCALE = 1 << 16
"""Bytes between the elements of an array."""


class _Other(Exception):
    """An address that is computed in another way."""


class IndexedAddresses:
    """The addresses of a lowered kernel."""

    def __init__(self, low: Any) -> None:
        self.low = low

    def index(self, placed: PlacedMicroOp) -> Index | None:
        """The index of an access, and the registers that its pointer is the sum of; None where there is none."""
        if "flags" not in placed.op.values or not placed.value("flags") & AccessFlags.ONE_ENTRY:
            return None
        address: Any = getattr(placed.op, "address", None)
        if address is None or not address.per_lane:
            return None
        slot = placed.value("slot")
        if address.bits == 32:
            return Index(slot, False, 1, (), 0)
        name = self._names.get(slot)
        try:
            return self._traced(name, placed.statement) if name is not None else None
        except _Other:
            return None

    def beside(self, placed: PlacedMicroOp) -> bool:
        """Whether the lanes of an access probably lie side by side, though that is not known."""
        op = placed.op
        if not isinstance(op, (Load, Store)) or not op.address.per_lane or op.private:
            return False
        known = self._likely.get(self._names.get(placed.value("slot"), ""), VARYING)
        if known is None or isinstance(known, RowAffine):
            return False
        step, there = placed.value("flags") & AccessFlags.NBYTES, known[: min(LANES, self.low.present)]
        return all(offset - known[0] == lane * step for lane, offset in enumerate(there))

    @cached_property
    def _names(self) -> dict[int, str]:
        return {slot: name for name, slot in self.low.registers.offsets.items()}

    @cached_property
    def _likely(self) -> dict[str, LaneOffsets]:
        """The lane offsets of registers if lanes never diverged."""
        low = self.low
        analysis = RowAffineAnalysis(low.graph, low.block, low.spaces.provenance, lambda *_: False, low.wraps)
        return analysis.run().offsets

    @cached_property
    def _starts(self) -> dict[int, int]:
        """Where the basic block of each statement begins."""
        return {place: node.start for node in self.low.graph.blocks for place in range(node.start, node.stop)}

    def _traced(self, name: str, place: int) -> Index:
        """The index behind a register at a statement; raises :class:`_Other`."""
        scale, offset, bases, last = 1, 0, list[str](), place
        while True:
            last, rule, read, widens = self._definition(name, last)
            if rule == "product_sum":
                offset += self._add(read[2], bases, scale)
                rule = "product"
            if rule == "sum":
                varying = [each for each in read if self._varies(each)]
                offset += sum(self._add(each, bases, scale) for each in read if each not in varying)
            else:
                varying = [read[0]] if self._varies(read[0]) else []
            if len(varying) != 1 or not isinstance(varying[0], Register):
                raise _Other
            if rule in ("product", "shift"):
                scale *= self._factor(rule, read[1])
            if not 0 < scale <= MOST_SCALE:
                raise _Other
            name = varying[0].name
            if varying[0].type.bits < 64:
                break
        known = self.low.facts.offsets.get(name, UNIFORM)
        if known is not VARYING and not isinstance(known, RowAffine):  # a scalar, widened where it may wrap
            raise _Other
        if not widens or varying[0].type.bits != 32 or self._written({name, *bases}, last, place):
            raise _Other
        slots = self.low.registers.offsets
        signed = self.low.graph.statements[last].form.operands[1].type.is_signed
        return Index(slots[name], signed, scale, tuple(slots[each] for each in bases), offset)

    def _definition(self, name: str, place: int) -> tuple[int, str, tuple[Operand, ...], bool]:
        """The statement before a place, in its basic block, that writes a register: its rule, and what it reads."""
        low = self.low
        for before in range(place - 1, self._starts[place] - 1, -1):
            op = low.graph.def_use[before]
            if any(register.name == name for register in op.writes):
                break
        else:
            raise _Other
        statement = op.statement
        if not isinstance(statement, Instruction) or statement.guard is not None or len(op.writes) != 1:
            raise _Other
        plan = plan_of(statement.form)
        if plan.rule not in ("sum", "product", "product_sum", "shift", "copy") or before in low.facts.launch_invariant:
            raise _Other
        return before, plan.rule, op.reads, plan.widens

    def _varies(self, operand: Operand) -> bool:
        return not isinstance(operand, Immediate) and self.low.operands.facts.offsets.get(
            getattr(operand, "name", ""), UNIFORM
        ) is not UNIFORM

    def _add(self, operand: Operand, bases: list[str], scale: int) -> int:
        """Note a register that is added, the same in all lanes, or give the number that is."""
        if scale != 1:
            raise _Other
        if isinstance(operand, Immediate):
            return int(operand.value)
        if not isinstance(operand, Register) or operand.type.bits != 64 or self._varies(operand):
            raise _Other
        bases.append(operand.name)
        return 0

    @staticmethod
    def _factor(rule: str, operand: Operand) -> int:
        if not isinstance(operand, Immediate):
            raise _Other
        return 1 << operand.bits if rule == "shift" and operand.bits < 32 else int(operand.value)

    def _written(self, names: set[str], first: int, last: int) -> bool:
        """Whether a register is written from a statement on, before another."""
        ops = self.low.graph.def_use
        return any(register.name in names for place in range(first, last) for register in ops[place].writes)
