"""What is recorded of a launch: by warp, what it executed, what it signals by that and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Union

from ..ir import Call, Instruction

__all__ = ["BlockRecord", "Item", "LaunchRecord", "Moment", "Run", "Step", "WarpKey"]

WarpKey = tuple[int, int]
"""The number of a block in its grid, and that of a warp in the block."""


class Moment:
    """Something that others may wait for: an arrival, or the end of an asynchronous operation.

    ``time`` is when, once the model knows it; ``by`` the warp that does it, ``place`` its statement.
    """

    __slots__ = ("by", "place", "time")

    def __init__(self, by: WarpKey, place: int) -> None:
        self.by, self.place = by, place
        self.time: float | None = None


class Run(NamedTuple):
    """Statements from ``first`` to before ``end``, executed one after the other."""

    first: int
    end: int


class Step(NamedTuple):
    """A statement by which warps synchronise, or which begins what completes later.

    ``arrives`` are the moments that come when it is issued, ``completes`` those of the end of what it begins, or of
    what it commits. ``waits`` is what it waits for, None where it does not wait; ``on`` the name of what warps meet at.
    ``amount`` are the bytes of a copy, the operations of a matrix product.
    """

    place: int
    arrives: tuple[Moment, ...] = ()
    completes: tuple[Moment, ...] = ()
    waits: list[Moment] | None = None
    on: str = ""
    amount: int = 0


Item = Union[Run, Step]


@dataclass
class BlockRecord:
    """A block: its index, and what each of its warps did."""

    number: int
    index: tuple[int, int, int]
    warps: dict[int, list[Item]] = field(default_factory=dict)


@dataclass
class LaunchRecord:
    """The recorded blocks of a launch. ``left_out`` says in words what is missing, "" where nothing is."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    statements: list[Instruction | Call]
    blocks: dict[int, BlockRecord] = field(default_factory=dict)
    left_out: str = ""
