"""Which accesses of a run happen before each other by the launch's synchronisation, and which race.

Happens-before is as PTX's memory model has it, a warp being one thread: releases and acquires, fences around relaxed
accesses, barriers, mbarriers by phase, and the waits for asynchronous operations. What an operation reads and writes
comes after all before its begin, and before what waits for it; with ``.read`` only what it reads.

What it cannot see: races between the lanes of a warp, missing proxy fences (the sanitizer has both), and accesses of
which :mod:`.stops` and :mod:`.pending_operations` do not know the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..machine.pending import Kind
from .pending_operations import Operation
from .schedule import Actor
from .steps import Step

__all__ = ["Racing", "races"]


class Racing(NamedTuple):
    """An access that races: of a step, at a statement, from a host address on."""

    step: int
    actor: Actor
    statement: Any
    low: int
    high: int
    writes: bool
    strong: bool
    bit: int
    knows: int


class _Operation:
    """What happens before an operation, and the bits of its reads and its writes."""

    def __init__(self, knows: int, reads: int, writes: int) -> None:
        self.knows, self.reads, self.writes = knows, reads, writes

    @property
    def all(self) -> int:
        return self.knows | 1 << self.reads | 1 << self.writes


class _Causality:
    """Goes through the steps; ``accesses`` are those of all."""

    def __init__(self, clusters: dict[int, int]) -> None:
        self.clusters = clusters
        self.accesses: list[Racing] = []
        self.bits = 0
        self.knows: dict[Actor, int] = {}
        self.operations: dict[Actor, _Operation] = {}
        self.done: dict[Any, int] = {}
        self.words: dict[Any, tuple[int, str, int]] = {}
        self.to_acquire: dict[Actor, int] = {}
        self.released: dict[Actor, int] = {}
        self.fenced: dict[Any, int] = {}
        self.copies: dict[Actor, int] = {}

    def bit(self) -> int:
        self.bits += 1
        return self.bits - 1

    def follow(self, number: int, step: Step) -> None:
        """The next step."""
        if step.completes is not None:
            self._complete(number, step, step.completes)
        else:
            self._warp(number, step)

    def _complete(self, number: int, step: Step, op: Operation) -> None:
        known = self.operations.get(op.actor)
        if known is None:
            return
        issuer = op.actor._replace(operation=-1)
        strong = any(a.reads and a.writes and a.kind != "mbarrier" for a in op.statement.form.effects.accesses)
        for spans, writes, bit in ((op.reads, False, known.reads), (op.writes, True, known.writes)):
            for low, high in spans:
                self.accesses.append(
                    Racing(number, op.actor, op.statement, low, high, writes, strong and writes, bit, known.knows)
                )
        done = known.all
        if op.kind == Kind.COPY:
            self.copies[issuer] = self.copies.get(issuer, 0) | done
        if op.kind == Kind.ARRIVAL:
            done |= self.copies.get(issuer, 0)
        for touch in step.touches:
            place = touch.key, touch.phase
            self.done[place] = self.done.get(place, 0) | done

    def _warp(self, number: int, step: Step) -> None:
        actor = step.actor
        knows = self.knows.get(actor, 0)
        if step.resumes is not None:
            knows |= self.done.get(step.resumes, 0)
            self._pass_on(actor, step.resumes)
        if step.site is not None:
            effects = step.site.statement.form.effects
            if step.site.kind == "strong":
                knows = self._strong(number, step, knows, effects)
            elif step.site.kind == "fence":
                knows |= self.to_acquire.get(actor, 0)
                self.released[actor] = knows
            elif step.site.kind in ("mbarrier", "barrier", "begin"):
                knows = self._barrier(step, knows, effects)
        sources = step.site is not None and "read" in step.site.statement.form.tokens
        for op in step.waited:
            known = self.operations.get(op.actor)
            if known is not None:
                knows |= known.knows | 1 << known.reads | (0 if sources else 1 << known.writes)
        for op in step.read_done:
            known = self.operations.get(op.actor)
            knows |= known.knows | 1 << known.reads if known is not None else 0
        for op in step.begun:
            self.operations[op.actor] = _Operation(knows, self.bit(), self.bit())
        bit = self.bit()
        for access in step.weak:
            self.accesses.append(
                Racing(number, actor, access.statement, access.low, access.high, access.writes, False, bit, knows)
            )
        self.knows[actor] = knows | 1 << bit

    def _barrier(self, step: Step, knows: int, effects: Any) -> int:
        if effects.barrier == "block" and step.actor in self.released:
            # CUDA's guide has a fence before the ticket of the last block and only a barrier behind it
            knows |= self.to_acquire.get(step.actor, 0)
        for touch in step.touches:
            place = touch.key, touch.phase
            if touch.mode == "update" and effects.releases:
                self.done[place] = self.done.get(place, 0) | knows
                self.fenced[place] = self.fenced.get(place, 0) | self.released.get(step.actor, 0)
        for touch in step.touches:
            if touch.mode == "read" and effects.acquires:
                for phase in range(max(0, touch.phase - 2), touch.phase):
                    knows |= self.done.get((touch.key, phase), 0)
                    self._pass_on(step.actor, (touch.key, phase))
        return knows

    def _pass_on(self, actor: Actor, place: tuple[Any, int]) -> None:
        """What others have fenced before a barrier is released by a strong write behind it, as by their own."""
        fenced = self.fenced.get(place, 0)
        if fenced:
            self.released[actor] = self.released.get(actor, 0) | fenced

    def _strong(self, number: int, step: Step, knows: int, effects: Any) -> int:
        actor, bit = step.actor, self.bit()
        seen = knows
        for touch in step.touches:
            found = self.words.get(touch.key)
            if found is None or not effects.reads or not self._covers(found[1], effects.scope, found[2], actor.block):
                continue
            if effects.acquires:
                seen |= found[0]
            self.to_acquire[actor] = self.to_acquire.get(actor, 0) | found[0]
        mine = seen | 1 << bit
        for touch in step.touches:
            if touch.mode == "read":
                continue
            given = mine if effects.releases else self.released.get(actor, 0)
            old = self.words.get(touch.key)
            if old is not None and effects.reads:
                given |= old[0]
            self.words[touch.key] = given, effects.scope, actor.block
        for span in {touch.strong for touch in step.touches if touch.strong is not None}:
            self.accesses.append(
                Racing(number, actor, step.statement, *span, effects.writes, True, bit, knows)
            )
        return mine

    def _covers(self, one: str, other: str, a: int, b: int) -> bool:
        if a == b:
            return True
        narrow = "cta" in (one, other)
        return not narrow and ("cluster" not in (one, other) or self.clusters.get(a) == self.clusters.get(b))


def races(steps: Sequence[Step], clusters: dict[int, int]) -> tuple[Racing, Racing] | None:
    """The first two accesses of a run that race; ``clusters`` is that of each block."""
    causality = _Causality(clusters)
    for number, step in enumerate(steps):
        causality.follow(number, step)
    return min(_racing(causality.accesses), key=lambda pair: max(pair[0].step, pair[1].step), default=None)


def _racing(accesses: list[Racing]) -> Iterator[tuple[Racing, Racing]]:
    """All pairs, of neighbouring ranges; a range that is accessed often is one group."""
    groups: dict[tuple[int, int], dict[tuple[int, bool, bool], Racing]] = {}
    for access in accesses:
        groups.setdefault((access.low, access.high), {}).setdefault((access.bit, access.writes, access.strong), access)
    active: list[tuple[tuple[int, int], list[Racing]]] = []
    for span in sorted(groups):
        members = list(groups[span].values())
        active = [each for each in active if each[0][1] > span[0]]
        for _, others in [*active, (span, members)]:
            for one in members:
                for other in others:
                    if (one.writes or other.writes) and not (one.strong and other.strong) and _unordered(one, other):
                        yield (one, other) if one.step <= other.step else (other, one)
        active.append((span, members))


def _unordered(one: Racing, other: Racing) -> bool:
    if one.actor == other.actor or one.bit == other.bit:
        return False
    return not (other.knows >> one.bit & 1 or one.knows >> other.bit & 1)
