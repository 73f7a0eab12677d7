"""What is to be compiled as one function, for the modules that do it: records, basic blocks, registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from ..codegen.library import Shape
from ..codegen.handler import lanes_of

__all__ = ["END", "Plan", "Register", "Spot", "Step", "Sync", "TooLong", "price"]

END = -1
"""In the place of a barrier's step: where warps end. Also where they begin."""
LOOK = 64
"""How much dearer than a statement a look at what a loop waits for is."""


class TooLong(Exception):
    """A kernel whose function would take too long to compile."""


class Spot(NamedTuple):
    """A record: ``offset`` is that of its statement in the kernel's records, ``access`` of the record of its access.

    The access is given only where its entry is to be read there, since it is learned while the kernel runs.
    """

    shape: Shape
    values: Sequence[int]
    statement: int
    offset: int
    access: int = -1
    together: tuple[int, int] | None = None
    merged: tuple[int, ...] | None = None
    """Of a look at memory: the statements of the pieces that it looks at, none where another one does."""


class Sync(NamedTuple):
    """A barrier of the whole block: its number and count, its record and the one behind it, its statement."""

    barrier: int
    expected: int
    wait: int
    after: int
    place: int
    at: int
    """Which of its step's records it is: others may come before."""


class Step(NamedTuple):
    """A basic block. ``meeting``: it begins with an instruction of the whole warp."""

    number: int
    rank: int
    offset: int
    place: int
    spots: tuple[Spot, ...]
    ending: Spot | None
    fall: int
    targets: tuple[int, ...]
    parted: bool
    meeting: bool
    sync: Sync | None


def price(ending: Spot, target: Step) -> int:
    """What a branch back to a step takes of the block's budget: the length of the loop, more where it waits."""
    cost = ending.values[-1]
    return max(1, ending.statement - target.place) + (LOOK * cost if cost > 1 else 0)


class Register(NamedTuple):
    """Where a register is: its slot here, and in the warp.

    ``letter`` is p for a predicate, s where it has one number, h for one a part of the warp, v for one a lane.
    ``known`` is the vector to add where this function has one number and the warp's memory one a lane.
    """

    slot: int
    letter: str
    bits: int
    offset: int
    known: tuple[int, ...] | None

    @property
    def kind(self) -> ir.Type:
        """Its type here."""
        element = ir.IntType(32 if self.letter == "p" else self.bits)
        return lanes_of(element) if self.letter in "hv" else element


class Plan(NamedTuple):
    """What to compile. ``needed(place, skip)`` are the registers needed at a statement, ``always`` those set before."""

    steps: tuple[Step, ...]
    warps: int
    stride: int
    registers: dict[str, Register]
    needed: Callable[[int, int], set[str]]
    reads: tuple[frozenset[str], ...]
    writes: tuple[frozenset[str], ...]
    always: frozenset[str]
    raw: frozenset[int]
    vectors: dict[int, tuple[int, ...]]
    parts: dict[int, Any]
    width: int
    shared: frozenset[int]
    begin: int
    opening: tuple[Spot, ...]
    key: str
