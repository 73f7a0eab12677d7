"""A kernel is executed for parts of the grid one by one, where comparisons with a block's coordinates differ in these.

``if (i < n)`` holds in all threads but for those of the last blocks. Which way threads go is not known where it is
asked for any block; of the blocks before the last ones, and of each of these, it is. So where an execution for the
whole grid leaves reads that may find memory unwritten, or does not know which barriers threads pass, the grid is cut
where such comparisons change, along one axis at a time, and what holds is what holds in all parts. Comparisons with
what is loaded cut nothing, nor do those in which several coordinates of the block take part. Loops of as many turns as
the number of the block are cut into blocks. All executions together take little more effort than the first may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...analysis.control_flow import ControlFlowGraph
from .block_execution import EFFORT, Execution, Stored, execute
from .static_values import Known
from .thread_accesses import Asked
from .warp_barriers import Ordered

__all__ = ["execute_by_cases"]

MOST_PARTS = 8
MOST_EFFORT = 2
"""That of all executions together, in times of one."""
Part = tuple[tuple[int, int], ...]
"""The first and the last coordinate along each axis."""


def execute_by_cases(
    graph: ControlFlowGraph, known: Known, barriers: set[int], accesses: dict[int, Asked], sizes: Callable[[str], int],
    starts: Callable[[str], int], effort: int = EFFORT,
) -> Execution:
    """Execute a kernel for the threads of any block (:func:`execute`), by cases where that tells more."""
    private = {place for place, asked in accesses.items() if asked.reads and asked.array and sizes(asked.array)}
    every = tuple((0, count - 1) for count in known.grid)
    parts: list[tuple[Part, Part]] = [(every, every)]
    whole: Execution | None = None
    found: list[Execution] = []
    left = MOST_EFFORT * effort
    while parts:
        part, before = parts.pop()
        one = execute(graph, known, barriers, accesses, sizes, starts, min(effort, left), part)
        left -= one.effort
        if whole is None:
            whole = one
        if one.stopped:
            return whole._replace(stopped=True)
        cut = _divided(part, before, one.cuts) if one.early & private or not one.aligned else []
        if len(cut) > 1 and len(found) + len(parts) + len(cut) <= MOST_PARTS:
            parts += [(each, part) for each in cut]
        else:
            found.append(one)
    assert whole is not None
    return whole if len(found) < 2 else _together(whole, found)


def _divided(part: Part, before: Part, cuts: Iterable[tuple[int, int]]) -> list[Part]:
    """A part in several, along the first axis that is to be cut within it; the coordinates of cuts begin a part.

    What was cut there ``before`` is cut into blocks, where these are few.
    """
    for axis, (low, high) in enumerate(part):
        starts = sorted({low, *(at for which, at in cuts if which == axis and low < at <= high)})
        if len(starts) > 1 and before[axis] != (low, high) and high - low < MOST_PARTS:
            starts = list(range(low, high + 1))
        if 1 < len(starts) <= MOST_PARTS:
            ends = [*(at - 1 for at in starts[1:]), high]
            return [(*part[:axis], (a, b), *part[axis + 1 :]) for a, b in zip(starts, ends)]
    return []


def _together(whole: Execution, found: list[Execution]) -> Execution:
    """What holds in all parts of the grid."""
    early = set().union(*(each.early for each in found))
    stored = [
        Stored(barrier, _common([dict(each.stored)[barrier] for each in found]))
        for barrier, _ in whole.stored or found[0].stored if all(barrier in dict(each.stored) for each in found)
    ]
    known = all(each.intervals is not None for each in found)
    aligned = all(each.aligned for each in found)
    warps = [each.warps for each in found]
    both = None if None in warps else Ordered(*(set().union(*each) for each in zip(*filter(None, warps))))
    if whole.aligned or not known or not aligned:  # which says it once
        return whole._replace(early=early, stored=stored, warps=both)
    inside = [interval for each in found for interval in each.intervals or ()]
    phases = [phase for each in found for phase in each.phases]
    return Execution(stored, inside, True, early, phases, warps=both)


def _common(written: list[dict[str, Any]]) -> dict[str, Any]:
    """The bytes that are written in all parts."""
    first, *rest = written
    return {
        name: np.logical_and.reduce([mine, *(other[name] for other in rest)])
        for name, mine in first.items() if all(name in other for other in rest)
    }
