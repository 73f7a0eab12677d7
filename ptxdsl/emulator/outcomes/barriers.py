"""When threads pass barriers: bar and barrier of a block, with counts, of a warp, and of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..machine.layout import LANES
from .events import Threads

__all__ = ["Barriers", "Phase"]


class Phase(NamedTuple):
    """How many phases of a barrier are complete, and the threads that have arrived in this one and gone on."""

    barrier: tuple[Any, ...]
    number: int
    arrived: tuple[int, ...] = ()


Move = tuple[tuple[Any, ...], tuple[bytes, ...]]
"""The barrier and its phase, and what the thread is given."""


class Barriers:
    """The barriers of a launch."""

    def __init__(self, threads: Threads, per_block: int) -> None:
        self.threads, self.per_block = threads, per_block

    def advance(
        self, paths: Sequence[Any], phases: tuple[Phase, ...]
    ) -> tuple[dict[int, Move], tuple[Phase, ...]] | None:
        """The threads that pass a barrier, and the phases afterwards; None where none can."""
        for thread, path in enumerate(paths):
            if path.kind == "barrier":
                barrier = self._barrier(thread, path.step)
                phase = next((p for p in phases if p.barrier == barrier), Phase(barrier, 0))
                others = tuple(p for p in phases if p.barrier != barrier)
                if path.step.effects.arrives and not path.step.effects.waits:
                    after = phase._replace(arrived=(*phase.arrived, thread))
                    return {thread: ((*barrier, self._arriving(phase, thread)), ())}, tuple(sorted((*others, after)))
                moved = self._pass(paths, thread, phase)
                if moved is not None:
                    return moved[0], tuple(sorted((*others, moved[1])))
        return None

    def _barrier(self, thread: int, step: Any) -> tuple[Any, ...]:
        kind = step.effects.barrier
        if kind == "cluster":
            return "cluster", self.threads.clusters[thread], 0
        block = self.threads.blocks[thread]
        if kind == "warp":
            return "warp", block, thread % self.per_block // LANES, step.bar[0]
        return "block", block, step.bar[0]

    def _arriving(self, phase: Phase, thread: int) -> int:
        if phase.barrier[0] == "cluster":
            return phase.arrived.count(thread)
        return phase.number

    def _pass(self, paths: Sequence[Any], thread: int, phase: Phase) -> tuple[dict[int, Move], Phase] | None:
        barrier, living = phase.barrier, [n for n, path in enumerate(paths) if not path.ended]
        if barrier[0] == "cluster":
            waited = sum(taken[:2] == barrier[:2] for taken in paths[thread].taken if taken and taken[0] == "cluster")
            turn = phase.arrived.count(thread) - 1
            members = [n for n in living if self.threads.clusters[n] == barrier[1]]
            if turn < 0 or not waited or any(phase.arrived.count(n) <= turn for n in members):
                return None
            return {thread: ((*barrier, turn), ())}, phase
        waiting = [
            n for n in living
            if paths[n].kind == "barrier" and paths[n].step.effects.waits and self._barrier(n, paths[n].step) == barrier
        ]
        there = {*waiting, *phase.arrived}
        count = paths[thread].step.bar[1]
        if barrier[0] == "warp":
            first = barrier[1] * self.per_block + barrier[2] * LANES
            wanted = [n for n in living if first <= n < first + LANES and barrier[3] >> (n - first) & 1]
            complete = there.issuperset(wanted)
        elif count:
            complete = self._counted(living, there, barrier[1]) >= count
        else:
            complete = there.issuperset(n for n in living if self.threads.blocks[n] == barrier[1])
        if not complete:
            return None
        result = self._result(paths, waiting)
        move = (*barrier, phase.number)
        return dict.fromkeys(waiting, (move, result)), Phase(barrier, phase.number + 1)

    def _counted(self, living: list[int], there: set[int], block: int) -> int:
        """The threads that have arrived: a warp counts as a whole once all of its threads have."""
        warps: dict[int, bool] = {}
        for n in there | {n for n in living if self.threads.blocks[n] == block}:
            warp = n % self.per_block // LANES
            warps[warp] = warps.get(warp, True) and n in there
        return LANES * sum(warps.values())

    def _result(self, paths: Sequence[Any], waiting: list[int]) -> tuple[bytes, ...]:
        """What a bar.red gives."""
        step = paths[waiting[0]].step
        if step.compare is None:
            return ()
        votes = [paths[n].step.compare[0] for n in waiting]
        tokens = step.statement.form.tokens
        number = sum(votes) if "popc" in tokens else int(all(votes) if "and" in tokens else any(votes))
        return (number.to_bytes(4, "little"),)
