"""Which blocks of a launch stand for all of them: a few that lie apart, and those at the edges of the grid.

Blocks at the end of an axis are often short of work, so they are a group of their own; within a group a sequence of
low discrepancy (Roberts' R sequence) chooses. In launches in clusters a unit is a cluster, else a block.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["INTERIOR", "Group", "Reach", "groups", "probes"]

Shape3 = tuple[int, int, int]
INTERIOR, EDGE = 8, 2
"""Units that are taken of the inner group, and of each other one."""


@dataclass(frozen=True)
class Group:
    """Units of which each is as good as the others: their number, and those that are run for all."""

    size: int
    chosen: tuple[int, ...]


def groups(grid: Shape3, interior: int = INTERIOR) -> Iterator[Group]:
    """The groups of a grid, the inner one first; the sizes add up to the grid's.

    >>> list(groups((100, 1, 1), 2))
    [Group(size=99, chosen=(11, 49)), Group(size=1, chosen=(99,))]
    """
    for last in itertools.product(*([False, True] if extent > 1 else [True] for extent in grid)):
        extents = [1 if at_end else extent - 1 for at_end, extent in zip(last, grid)]
        starts = [extent - 1 if at_end else 0 for at_end, extent in zip(last, grid)]
        size = math.prod(extents)
        inner = not any(at and extent > 1 for at, extent in zip(last, grid))
        wanted = min(size, interior if inner else EDGE, interior)
        found: dict[int, None] = {}
        for number in itertools.count():
            x, y, z = (start + at for start, at in zip(starts, _scattered(number, extents)))
            found[x + grid[0] * (y + grid[1] * z)] = None
            if len(found) == wanted or number > 64 * wanted:
                break
        yield Group(size, tuple(sorted(found)))


def _scattered(number: int, extents: list[int]) -> list[int]:
    axes = [n for n, extent in enumerate(extents) if extent > 1]
    root = 2.0
    for _ in range(32):  # the positive root of root**(axes + 1) = root + 1
        root = (1 + root) ** (1 / (len(axes) + 1))
    found = [0, 0, 0]
    for rank, axis in enumerate(axes, 1):
        found[axis] = int((0.5 + number * root**-rank) % 1 * extents[axis])
    return found


def probes(grid: Shape3) -> dict[str, int]:
    """Neighbours by axis: what they touch together says how the memory of a block depends on its place."""
    x, y, z = grid
    found = {"first": 0}
    if x > 1:
        found["x"] = 1
    if y > 1:
        found["y"] = x
    if x > 1 and y > 1:
        found["xy"] = x + 1
    if z > 1:
        found["z"] = x * y
    return found


@dataclass(frozen=True)
class Reach:
    """The sectors that units touch, by what their numbers depend on: how many any part of the grid touches.

    Of the ``own`` sectors of a unit ``common`` are touched by all, ``by_x`` by those of one x, ``by_y`` by those of
    one y, ``private`` by no other; ``along_z`` is the share that is another one for each z. There are ``most``.

    >>> Reach(common=2, by_x=3, by_y=4, private=1, along_z=0, most=1000).distinct(10, 10)
    172
    """

    common: float
    by_x: float
    by_y: float
    private: float
    along_z: float
    most: int

    @classmethod
    def of(cls, own: float, fresh: dict[str, int], most: int) -> Reach:
        """From the sectors of a unit, and the new ones of each probe behind those before it."""
        x, y = fresh.get("x", 0), fresh.get("y", 0)
        private = min(fresh.get("xy", max(x, y)), x or own, y or own)
        by_x, by_y = max(0, x - private), max(0, y - private)
        if "x" not in fresh and "y" not in fresh:
            private = 0
        first = max(fresh.get("first", 0), 1)
        scale = own / first
        known = (by_x + by_y + private) * scale
        along_z = min(1.0, fresh.get("z", 0) / first)
        return cls(max(0.0, own - known), by_x * scale, by_y * scale, private * scale, along_z, most)

    def distinct(self, x: int, y: int = 1, z: int = 1) -> int:
        """How many sectors so many units along each axis touch."""
        plane = self.common + self.by_x * x + self.by_y * y + self.private * x * y
        return round(min(plane * (1 + (z - 1) * self.along_z), self.most))
