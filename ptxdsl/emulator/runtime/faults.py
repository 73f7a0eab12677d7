"""Errors of a running kernel: where it went wrong, and which function explains what.

Each family of instructions registers the texts of its faults (:func:`explains`), in the modules ``*_faults``. They use
the names that the user gave, and the lines that the user wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...errors import EmulationError
from ...ir import Operand
from ..machine.layout import LANES, Block, Warp
from ..machine.status import Fault
from ..machine.unsupported import render
from ..rewrite.builder import WholeWarp
from .block_state import BlockState

__all__ = ["Scene", "block_of", "explains", "failure", "index_in", "ranges", "set_bits", "thread_of"]


_Error = TypeVar("_Error", bound=EmulationError)


class Scene:
    """Where a fault happened: the statement, the thread, and how to say so."""

    def __init__(self, state: BlockState, warp: int, lane: int, pc: int) -> None:
        self.state, self.warp, self.lane = state, warp, lane
        number = state.code.statement_at(pc)
        statement: Any = state.code.graph.statements[number] if number >= 0 else None
        self.statement: Any = statement.original if isinstance(statement, WholeWarp) else statement
        self.op = state.code.op_at(pc)

    @property
    def address(self) -> int:
        """The address at fault, or the member mask."""
        return int(self.state.get(Block.FAULT_ADDRESS, "Q"))

    def number(self, operand: Operand) -> int:
        """The number that an operand is in the lane."""
        return self.state.values(self.warp, operand)[self.lane]

    def raised(self, kind: type[_Error], message: str, hint: str | None = None) -> _Error:
        """The error, with everything that is known about the place."""
        return kind(
            message, loc=getattr(self.statement, "loc", None), hint=hint, block=block_of(self.state),
            thread=thread_of(self.state, self.warp, self.lane), ptx_line=getattr(self.statement, "line", 0) or None,
            instruction=render(self.statement),
        )


def block_of(state: BlockState) -> tuple[int, int, int]:
    x, y, z = (state.get(Block.CTAID + 4 * axis, "i") for axis in range(3))
    return x, y, z


def thread_of(state: BlockState, warp: int, lane: int) -> tuple[int, int, int]:
    x, y, z = (state.get_warp(warp, Warp.TIDS + 4 * (LANES * axis + lane), "i") for axis in range(3))
    return x, y, z


Explanation = Callable[[Scene, Fault], EmulationError]
_explanations: dict[Fault, Explanation] = {}


def explains(*kinds: Fault) -> Callable[[Explanation], Explanation]:
    """Register a function that gives the error of these faults."""

    def register(function: Explanation) -> Explanation:
        _explanations.update(dict.fromkeys(kinds, function))
        return function

    return register


def failure(state: BlockState) -> EmulationError:
    """The error of a state whose status is FAULT."""
    kind = Fault(state.get(Block.FAULT_KIND, "i"))
    scene = Scene(
        state, state.get(Block.FAULT_WARP, "i"), state.get(Block.FAULT_LANE, "i"), state.get(Block.FAULT_PC, "Q")
    )
    return _explanations[kind](scene, kind)


def set_bits(mask: int) -> list[int]:
    """The numbers of the lanes, or warps, of a mask."""
    return [number for number in range(LANES) if mask >> number & 1]


def index_in(extents: tuple[int, int, int], number: int) -> tuple[int, int, int]:
    """The index in x, y and z of a block in its grid or cluster, or of a thread in its block, from its number."""
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


def ranges(numbers: list[int]) -> str:
    """Numbers in order, for people: ``0-3, 7``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
