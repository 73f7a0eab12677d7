"""What a block state keeps of lanes that wait for others of their warp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...ir import Instruction

__all__ = ["Arrival"]


@dataclass
class Arrival:
    """Lanes that wait at a ``.sync`` instruction for others of their warp (:mod:`.convergence`).

    ``key`` is what the others must have in common with them, None where no others may come; ``alive`` are the lanes
    that lived then, all of which must come where it is ``aligned``. ``resume`` is where the instruction goes on once
    the barrier that has counted the warp is complete.
    """

    key: tuple[Any, ...] | None
    statement: Instruction
    place: int
    pc: int
    fault: int
    members: int
    alive: int
    aligned: bool
    lanes: int = 0
    resume: int = 0
