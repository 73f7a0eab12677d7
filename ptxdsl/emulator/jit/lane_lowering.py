"""A kernel lowered for one lane: a warp of one, in which everything is uniform.

What differs between the lanes of a warp before anything is computed, the special registers, gets a slot of its own.
"""

from __future__ import annotations

from typing import Any

from ...ir import Instruction, Operand, SpecialRegister
from ..analysis.divergence import UNIFORM, Facts, LaneOffsets, special_offsets, tid_offsets
from ..instructions.operand_classes import uniform
from ..instructions.operands import Field
from ..machine.layout import LANES, Warp
from .convergent_lowering import ConvergentLowering, ConvergentOperands

__all__ = ["LaneLowering", "LaneRegister"]

LaneRegister = tuple[int, LaneOffsets]
"""A special register: where the warp's number lies, and what each lane adds; VARYING where each lane's lies there."""


class _LaneOperands(ConvergentOperands):
    """Describes operands for one lane; ``lane_registers`` are read from the slots -1, -2, ..."""

    lane_registers: list[LaneRegister]

    def lane_offsets(self, operand: Operand) -> LaneOffsets:
        return UNIFORM if isinstance(operand, SpecialRegister) else super().lane_offsets(operand)

    def special(self, name: str, scalar: bool, bits: int, statement: Instruction | None) -> Field:
        if name.startswith("%tid."):
            axis = "xyz".index(name[-1])
            known = tid_offsets(self.block)[axis]
            return self._of_lane((Warp.TID + 4 * axis if known else Warp.TIDS + 4 * LANES * axis, known))
        if name == "%laneid" or name.startswith("%lanemask_"):
            return self._of_lane((Warp.ZERO, special_offsets(name, self.block)))
        return super().special(name, scalar, bits, statement)

    def _of_lane(self, register: LaneRegister) -> Field:
        if register not in self.lane_registers:
            self.lane_registers.append(register)
        return Field(uniform(32), "i", (-1 - self.lane_registers.index(register),))


class LaneLowering(ConvergentLowering):
    """Makes the micro-ops of a function that was lowered for converged warps too."""

    operands: _LaneOperands

    def __init__(self, converged: ConvergentLowering, *given: Any) -> None:
        self.converged = converged
        super().__init__(*given)
        self.operands = _LaneOperands(self.facts, self.registers, self.block, self.pool, self.spaces.symbols)
        self.operands.cluster, self.operands.explicit = self.spaces.cluster, self.spaces.explicit
        self.lane_registers = self.operands.lane_registers = []

    def _analysed(self) -> Facts:
        known = self.converged.facts
        return Facts(dict.fromkeys(known.offsets, UNIFORM), known.provenance, launch_invariant=known.launch_invariant)
