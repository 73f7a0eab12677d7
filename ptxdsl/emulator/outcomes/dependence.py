"""Which steps of a run depend on each other, and which other orders of them are worth a run.

Two steps are dependent where they touch one synchronising object and their order can matter: a strong access that
writes and another one to the same bytes, arrivals in different phases of a barrier, the end of a phase and a wait,
a product and a copy to what it reads. Arrivals of one phase commute, and so do reductions of one operation. Runs in
which all dependent steps have the same order are equivalent, and one of them is enough (Mazurkiewicz' traces).

Where two dependent steps of different actors are not ordered by others in between, the order is reversed: a run begins
with what came before the first and does not depend on it, then the second (dynamic partial order reduction; Flanagan
and Godefroid; Abdulla et al.). Of each prefix a number is kept that is the same for equivalent ones, in place of sleep
sets. That a wait comes before what it waits for is impossible, and not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..machine.pending import Kind
from .pending_operations import Span
from .schedule import Actor
from .steps import Step, Touch

__all__ = ["Prefix", "Trace"]

_MASK = (1 << 64) - 1


class Prefix(NamedTuple):
    """How another run begins. ``same``: a number that equivalent prefixes share. ``bytes_``: the steps that are
    reversed, where the bytes of an operation are the reason. ``earlier``: what to try where the last of its actors can
    only wait there.
    """

    actors: tuple[Actor, ...]
    same: int
    bytes_: tuple[Step, Step] | None
    earlier: Callable[[], Prefix | None] = lambda: None


class _Edge(NamedTuple):
    step: int
    reversible: bool
    bytes_: bool = False


class Trace:
    """The steps of a run with their dependences. ``same`` is a number that equivalent runs share."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self._touched: dict[tuple[Any, ...], list[tuple[int, Touch]]] = {}
        self._loose: list[tuple[int, Span]] = []
        self._written: list[tuple[int, Span]] = []
        loose = [span for step in steps if step.completes is not None for span in step.completes.loose]
        self._range = min((low for low, _ in loose), default=0), max((high for _, high in loose), default=0)
        self.edges: list[list[_Edge]] = []
        self.before: list[int] = []
        """Of each step those that come before it in any equivalent run, as bits."""
        self.hashes: list[int] = []
        last: dict[Actor, int] = {}
        completed: dict[Actor, int] = {}
        counts: dict[Actor, int] = {}
        behind_arrivals: dict[tuple[int, int], list[int]] = {}
        for number, step in enumerate(steps):
            edges = list(self._edges(number, step))
            op = step.completes
            if op is not None:
                edges.append(_Edge(op.begun, False))
                completed[step.actor] = number
                behind = behind_arrivals.setdefault((op.actor.block, op.actor.warp), [])
                if op.kind == Kind.ARRIVAL:  # it comes behind what its thread has begun before
                    edges += [_Edge(other, False) for other in behind]
                elif op.kind in (Kind.COPY, Kind.TENSOR):
                    behind.append(number)
            elif step.actor in last:
                edges.append(_Edge(last[step.actor], False))
            edges += [_Edge(completed[op.actor], False) for op in step.waited if op.actor in completed]
            last[step.actor] = number
            counts[step.actor] = counts.get(step.actor, 0) + 1
            edges = [edge for edge in edges if 0 <= edge.step < number]
            before = 0
            for edge in edges:
                before |= self.before[edge.step] | 1 << edge.step
            self.edges.append(edges)
            self.before.append(before)
            self.hashes.append(self._hash(step.actor, counts[step.actor], (edge.step for edge in edges)))
        self.counts = counts
        self.same = sum(self.hashes) & _MASK

    def _hash(self, actor: Actor, count: int, before: Iterator[int]) -> int:
        return hash((actor, count, frozenset(self.hashes[n] for n in before))) & _MASK

    def _edges(self, number: int, step: Step) -> Iterator[_Edge]:
        for touch in step.touches:
            known = self._touched.setdefault(touch.key, [])
            if touch.key[0] == "products":
                known.append((number, touch))
                continue
            yield from _memory(known, touch) if touch.key[0] == "memory" else _phases(known, touch)
            known.append((number, touch))
        if step.resumes is not None:
            key, phase = step.resumes
            resumed = Touch(key, "read", phase + 1)
            yield from _phases(self._touched.get(key, []), resumed)
            self._touched.setdefault(key, []).append((number, resumed))
        if step.completes is not None and step.completes.kind == Kind.PRODUCT:
            key = "products", step.actor.block, step.completes.owner
            yield from _phases(self._touched.get(key, []), Touch(key, "read", step.actor.operation // 2 + 1))
        if self._range[1]:
            yield from self._of_bytes(number, step)

    def _of_bytes(self, number: int, step: Step) -> Iterator[_Edge]:
        op = step.completes
        loose = op.loose if op is not None else []
        written = op.writes if op is not None else [(a.low, a.high) for a in step.weak if a.writes]
        written = [(low, high) for low, high in written if low < self._range[1] and high > self._range[0]]
        for mine, others in ((loose, self._written), (written, self._loose)):
            for low, high in mine:
                yield from (_Edge(n, True, True) for n, (a, b) in others if a < high and low < b)
        self._loose += [(number, span) for span in loose]
        self._written += [(number, span) for span in written]

    def reversals(self) -> Iterator[Prefix]:
        """How other runs begin that are not equivalent to this one."""
        for number, edges in enumerate(self.edges):
            step = self.steps[number]
            for edge in dict.fromkeys(edges):
                other = edge.step
                if not edge.reversible or self.steps[other].actor == step.actor:
                    continue
                if any(self.before[e.step] >> other & 1 for e in edges if e.step != other):
                    continue
                yield self._reversed(other, number, edge.bytes_)

    def _reversed(self, first: int, second: int, bytes_: bool) -> Prefix:
        """The second step before the first one."""
        kept = [n for n in range(first + 1, second) if not self.before[n] >> first & 1]
        chosen = [*range(first), *kept]
        step = self.steps[second]
        count = sum(self.steps[n].actor == step.actor for n in chosen) + 1
        after = {n for n in range(first, second) if n == first or self.before[n] >> first & 1}
        own = self._hash(step.actor, count, (e.step for e in self.edges[second] if e.step not in after))
        same = (sum(self.hashes[n] for n in chosen) + own) & _MASK
        actors = (*(self.steps[n].actor for n in chosen), step.actor)
        pair = (self.steps[first], step) if bytes_ else None
        return Prefix(actors, same, pair, partial(self._earlier, first, second))

    def _earlier(self, first: int, second: int) -> Prefix | None:
        """The second step before one that comes before the first: what takes a lock, before what gives it back."""
        step = self.steps[second]
        keys = {touch.key for touch in step.touches if touch.key[0] == "memory"}
        own = max((edge.step for edge in self.edges[second] if self.steps[edge.step].actor == step.actor), default=-1)
        known = self.before[own] | 1 << own if own >= 0 else 0
        for number in range(first - 1, -1, -1):
            other = self.steps[number]
            touched = any(touch.key in keys and touch.mode != "read" for touch in other.touches)
            if touched and other.actor != step.actor and not known >> number & 1:
                return self._reversed(number, second, False)
        return None


def _memory(known: list[tuple[int, Touch]], touch: Touch) -> Iterator[_Edge]:
    """Strong accesses to four bytes, back to the last write."""
    for number, other in reversed(known):
        if touch.mode == other.mode and touch.mode != "write":
            continue
        yield _Edge(number, True)
        if other.mode == "write":
            return


def _phases(known: list[tuple[int, Touch]], touch: Touch) -> Iterator[_Edge]:
    """What comes before at an mbarrier or a barrier."""
    for number, other in reversed(known):
        if touch.mode == "write" or other.mode == "write":
            yield _Edge(number, True)
            if other.mode == "write":
                return
        elif touch.mode == "update" and other.mode == "update":
            if other.phase < touch.phase:
                yield _Edge(number, True)
            if other.phase < touch.phase - 1:
                return
        elif touch.mode == "update":
            if touch.ends and touch.key[0] == "mbarrier":  # a wait there asks for a parity
                yield _Edge(number, True)
        elif other.mode == "update" and other.phase < touch.phase:
            stale = touch.key[0] == "mbarrier" and other.ends and other.phase == touch.phase - 2
            yield _Edge(number, stale)
