"""Lanes that wait at a ``.sync`` instruction: what a block state keeps of them (:mod:`.convergence`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...ir import Instruction

__all__ = ["Arrival"]


@dataclass
class Arrival:
    """Lanes that wait at an instruction for others of their warp. ``alive`` are those that lived when these came.

    ``key`` is what the others must have in common with them, None where nobody may come; ``resume`` is where the
    instruction goes on once the barrier is complete at which the warp has been counted.
    """

    key: tuple[Any, ...] | None
    statement: Instruction
    place: int
    record: int
    fault: int
    members: int
    alive: int
    lanes: int = 0
    resume: int = 0
