"""Barriers of the whole block that need not be followed, since others order all that is followed.

A barrier orders what comes before it with what comes behind it. It says nothing where nothing that is followed comes
before it; nor where each way from it comes to another barrier, or to the end, before anything that is followed: what
lies behind that other barrier is ordered by it just as well. That holds where all threads pass the same barriers: where
none lies between a branch that threads may take differently and where their ways meet again
(:mod:`..analysis.barrier_intervals`).
"""

from __future__ import annotations

from collections.abc import Callable

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Instruction
from ..analysis.barrier_intervals import varying_registers

__all__ = ["unneeded_barriers"]


def unneeded_barriers(graph: ControlFlowGraph, barriers: set[int], followed: Callable[[int], bool]) -> set[int]:
    """Those of the barriers, which are all that the block has, that need not be followed."""
    found = _Blocks(graph, barriers, followed)
    barriers = barriers.intersection(found.number)  # no way leads to the others
    unneeded = {place for place in barriers if not found.comes_before(place) or not found.comes_behind(place)}
    if not unneeded:
        return set()
    _, apart = varying_registers(graph, _is_steady)
    return set() if any(found.number[place] in apart for place in barriers) else unneeded


def _is_steady(statement: Instruction) -> bool:
    """Whether a load gives all threads the same."""
    return statement.form.space in ("param", "const") and not statement.form.effects.writes


class _Blocks:
    """Where something that is followed comes before or behind a place."""

    def __init__(self, graph: ControlFlowGraph, barriers: set[int], followed: Callable[[int], bool]) -> None:
        self.graph, self.barriers = graph, barriers
        blocks = list(enumerate(graph.blocks))
        self.number = {place: number for number, block in blocks for place in range(block.start, block.stop)}
        self.followed = {place for place in self.number if followed(place)}
        self.entered: set[int] = set()
        """The basic blocks before which something may have been done that is followed."""
        todo = [number for number, block in blocks if not self.followed.isdisjoint(range(block.start, block.stop))]
        while todo:
            for successor in graph.blocks[todo.pop()].successors:
                if successor not in self.entered:
                    self.entered.add(successor)
                    todo.append(successor)
        self.leads: set[int] = set()
        """The basic blocks from whose start something that is followed may be reached before a barrier."""
        before = -1
        while before != len(self.leads):
            before = len(self.leads)
            self.leads.update(number for number, block in blocks[::-1] if self._leads(number, block.start))

    def _leads(self, number: int, start: int) -> bool:
        block = self.graph.blocks[number]
        for place in range(start, block.stop):
            if place in self.barriers:
                return False
            if place in self.followed:
                return True
        return any(successor in self.leads for successor in block.successors)

    def comes_behind(self, barrier: int) -> bool:
        """Whether anything that is followed may come behind a barrier, before the next one."""
        return self._leads(self.number[barrier], barrier + 1)

    def comes_before(self, barrier: int) -> bool:
        """Whether anything that is followed may come before a barrier."""
        number = self.number[barrier]
        here = range(self.graph.blocks[number].start, barrier)
        return number in self.entered or not self.followed.isdisjoint(here)
