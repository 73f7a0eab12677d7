"""Numbers that are the same, but for a known vector, in each part of a warp: rows of a block that is 8 or 16 wide.

In ``row * n + column`` of a 16 x 16 tile a warp has two rows: two numbers, each with 16 neighbours. Analysis knows a
product with a number that only the launch knows as varying; here it is worked out once a part, in its first lane.
"""

from __future__ import annotations

from typing import Any

from ...ir import Immediate, Instruction
from .divergence import LINEAR, UNIFORM, VARYING, Analysis, Known, Parting, Shape3
from ...analysis.control_flow import Graph
from ..machine.layout import LANES
from .statements import Op, plan_of

__all__ = ["Parts", "PartsAnalysis", "relative"]

WIDTHS = (8, 16)


class Parts(tuple[int, ...]):  # noqa: SLOT001
    """The vector of a register that has a number a part: of each lane, less that of the first lane of its part."""

    lanes: int

    @classmethod
    def of(cls, vector: Any, lanes: int, bits: int) -> Parts:
        """The vector, relative to the first lanes of parts of ``lanes``, as signed numbers of ``bits`` bits."""
        half = 1 << (bits - 1)
        made = cls((vector[n] - vector[n - n % lanes] + half) % (2 * half) - half for n in range(LANES))
        made.lanes = lanes
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parts) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)


class PartsAnalysis(Analysis):
    """The analysis of a kernel whose warps have more than one row of the block."""

    def __init__(self, graph: Graph, block: Shape3, origins: dict[str, str], parting: Parting | None) -> None:
        super().__init__(graph, block, origins, parting)
        self.lanes = block[0] if block[0] in WIDTHS else 0

    def _transfer(self, op: Op) -> Known:
        vectors = [self.vector(operand) for operand in op.reads]
        if not any(isinstance(vector, Parts) for vector in vectors):
            known = super()._transfer(op)
            if known is not VARYING:
                return known
        if not self.lanes or VARYING in vectors or op.rule not in LINEAR or len(op.writes) != 1 or not op.pure:
            return VARYING
        if not isinstance(op.statement, Instruction) or not plan_of(op.statement.form).covered:
            return VARYING
        if op.writes[0].type.kind == "p" or op.writes[0].type.bits > 64:
            return VARYING
        return self._by_part(op, [relative_to(vector or UNIFORM, self.lanes) for vector in vectors])

    def _by_part(self, op: Op, offsets: list[tuple[int, ...]]) -> Known:
        bits, kind = op.writes[0].type.bits, op.rule
        if not any(any(some) for some in offsets):
            return Parts.of(UNIFORM, self.lanes, bits)
        a, b = offsets[0], offsets[1] if len(offsets) > 1 else UNIFORM
        if kind in ("copy", "cvt"):
            return Parts.of(a, self.lanes, bits)
        if kind in ("add", "sub"):
            sign = 1 if kind == "add" else -1
            return Parts.of([x + sign * y for x, y in zip(a, b)], self.lanes, bits)
        if kind == "pure" or (any(b) and kind == "shl"):
            return VARYING
        factor = self._factor(op, a, b)
        if factor is None:
            return VARYING
        product = [x * factor for x in (a if any(a) else b)]
        if kind.startswith("mad"):
            product = [x + y for x, y in zip(product, offsets[2])]
        return Parts.of(product, self.lanes, bits)

    @staticmethod
    def _factor(op: Op, a: tuple[int, ...], b: tuple[int, ...]) -> int | None:
        """By what the offsets are multiplied, where that is a number."""
        other = op.reads[1 if any(a) else 0]
        if not any(a) and not any(b):
            return 0
        if (any(a) and any(b)) or not isinstance(other, Immediate):
            return None
        return 1 << min(other.bits, 64) if op.rule == "shl" else int(other.value)


def relative_to(vector: tuple[int, ...], lanes: int) -> tuple[int, ...]:
    """A vector, less its number in the first lane of each part."""
    return tuple(vector[n] - vector[n - n % lanes] for n in range(LANES))


def relative(vector: tuple[int, ...], lanes: int) -> tuple[int, ...]:
    """The offsets within parts of a register of either kind."""
    return tuple(vector) if isinstance(vector, Parts) else relative_to(vector, lanes)
