"""A function of several micro-ops: the emitters of single ones, given constants for fields and values for registers.

Both things that the second tier compiles are of this kind: superinstructions and block functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from ..codegen.handler import Handler, i1, i32, i64
from ..semantics.lanes import Lanes
from .plan import PlannedOp

__all__ = ["Deferring", "InlinedOps", "RawNumber", "Slot"]

_ENTRY_FIELD, _ENTRY_OFFSET = 2, 12
"""Which field of an access has its buffer entry, and where that is in memory."""


class Slot(NamedTuple):
    """A register, by its offset."""

    offset: int


class RawNumber(NamedTuple):
    """A number whose NaN is not canonical yet, and how to make it so."""

    value: Any
    condition: Any
    repair: Callable[[], Any]


class Deferring(Lanes):
    """Leaves a NaN as the host gives it, for arithmetic that tolerates any."""

    __slots__ = ("raw",)

    def __init__(self, builder: ir.IRBuilder, width: int, raw: dict[int, RawNumber] | None = None) -> None:
        super().__init__(builder, width)
        self.raw = raw

    def seldom(self, condition: Any, repair: Callable[[], Any], value: Any) -> Any:
        if self.raw is not None:
            self.raw[id(value)] = RawNumber(value, condition, repair)
        return value


class InlinedOps(Handler, ABC):
    """A function under construction."""

    planned: PlannedOp | None = None
    defers_nan = False
    raw: dict[int, RawNumber] | None = None

    def begin(self, planned: PlannedOp) -> None:
        """The micro-op that is emitted next."""
        self.planned, self.codes, self._read = planned, planned.op.codes, 0

    @abstractmethod
    def micro_op_at(self, offset: int) -> Any:
        """Address of a micro-op of the first tier."""

    def numbers(self, width: int) -> Lanes:
        return Deferring(self.ir, width, self.raw) if self.defers_nan else super().numbers(width)

    def field(self, code: str = "i") -> Any:
        planned = self.planned
        assert planned is not None and self.codes[self._read] == code
        value = planned.values[self._read]
        self._read += 1
        if planned.access >= 0 and self._read == _ENTRY_FIELD:
            return Handler.load(self, self.micro_op_at(planned.access), _ENTRY_OFFSET, i32, 4)
        return ir.Constant(i32 if code == "i" else i64, value)

    def slot(self) -> Any:
        return Slot(int(self.field().constant))

    def held(self, slot: Any, kind: ir.Type) -> Any:
        return self.load(slot, 0, kind)

    def merged_bounds(self) -> tuple[int, int] | None:
        assert self.planned is not None
        return self.planned.bounds

    def note_bounds(self, good: Any) -> Any:
        bounds = self.merged_bounds()
        return ir.Constant(i1, 1) if bounds is not None and bounds[1] < 0 else good
