"""Executions that grow: how far each thread has come, with what its reads were given, and the events that these are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from .axioms import Execution, Race
from .barriers import Phase
from .events import Event, Identity, Source
from .thread_steps import Step

__all__ = ["PENDING", "Complete", "Path", "Sources", "State", "agree", "events_of", "events_of_step", "steps_of"]

PENDING = "pending"
"""In place of the sources of a read: what it reads is yet to be written."""
Sources = tuple[tuple[Source, ...], ...]
"""Of each element that is read."""


class Path:
    """How far a thread has come, with the sources of its reads and the phases of its barriers, statement by statement.

    Where reads are pending, ``others`` are the same place for other values of them. ``kind``: what the thread is about
    to do, "stuck" where that depends on a read that is pending. ``events`` are its events, but for those that are
    pending or depend on such.
    """

    __slots__ = ("_hash", "events", "kind", "others", "step", "taken")

    def __init__(self, step: Step, taken: tuple[Any, ...] = (), others: tuple[Step, ...] = ()) -> None:
        self.step, self.taken, self.others = step, taken, others
        self.kind = step.kind if all(_alike(step, other) for other in others) else "stuck"
        self.events: list[Event] = []
        self._hash = hash((id(step), taken, len(others)))

    @classmethod
    def of(cls, step: Step, taken: tuple[Any, ...], others: tuple[Step, ...]) -> Path:
        """A path with the events of all of its steps."""
        path = cls(step, taken, others)
        path.events = events_of(path)
        return path

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and (
            self.step is other.step and self.taken == other.taken and self.others == other.others
        )

    @property
    def ended(self) -> bool:
        """Whether the thread does nothing more."""
        return self.kind in ("end", "fault")

    @property
    def pending(self) -> list[int]:
        """The places of the reads that are."""
        return [place for place, taken in enumerate(self.taken) if taken == PENDING] if self.others else []

    def grown(self, step: Step, taken: Any, others: tuple[Step, ...]) -> Path:
        """The path one step further."""
        if self.others:
            return Path.of(step, (*self.taken, taken), others)
        path = Path(step, (*self.taken, taken))
        path.events = [*self.events, *events_of_step(self.step, step, taken)]
        return path


def _alike(one: Step, other: Step) -> bool:
    """Whether two steps are the same place, and read the same."""
    if (other.kind, other.place, other.bar, other.begins) != (one.kind, one.place, one.bar, one.begins):
        return False
    return not one.reads or other.elements == one.elements


class State(NamedTuple):
    """An execution that grows: the threads, then the copies by their numbers, and the phase of each barrier."""

    paths: tuple[Path, ...]
    phases: tuple[Phase, ...] = ()

    def with_path(self, at: int, path: Path) -> State:
        """The same with the thread or copy at a place further on."""
        return self._replace(paths=(*self.paths[:at], path, *self.paths[at + 1 :]))

    def with_copy(self, path: Path) -> State:
        """The same with a copy that has begun."""
        return self._replace(paths=tuple(sorted((*self.paths, path), key=lambda each: each.step.thread)))

    def find(self, number: int) -> Path | None:
        """How far a thread or a copy has come, by its number; None where the copy has not begun."""
        if number < len(self.paths) and self.paths[number].step.thread == number:
            return self.paths[number]
        return next((path for path in self.paths if path.step.thread == number), None)

    def events(self) -> list[Event]:
        """The events of all threads."""
        return [event for path in self.paths for event in path.events]


class Complete(NamedTuple):
    """An execution at its end: ``waiting`` are the threads that never come to theirs, ``errors`` those that failed."""

    execution: Execution
    waiting: list[Step]
    errors: list[Step]
    races: list[Race]


def steps_of(last: Step) -> list[Step]:
    """The steps of a thread, the one that it is about to execute last."""
    steps: list[Step] = []
    step: Step | None = last
    while step is not None:
        steps.append(step)
        step = step.parent
    return steps[::-1]


def events_of(path: Path) -> list[Event]:
    """The events of a thread, but for those that are pending or depend on such."""
    events: list[Event] = []
    others = [steps_of(other) for other in path.others]
    for place, (step, after) in enumerate(pairwise(steps_of(path.step))):
        same = all(o[place].elements == step.elements and o[place + 1].wrote == after.wrote for o in others)
        if same and path.taken[place] != PENDING:
            events += events_of_step(step, after, path.taken[place])
    return events


def events_of_step(step: Step, after: Step, taken: Any) -> Iterator[Event]:
    """The events of a statement: a barrier arrives and then waits, an access has an event an element."""
    effects, who = step.effects, Identity(step.thread, 2 * step.depth, 0)
    event = Event(who, strong=True, scope=effects.scope, statement=step.statement)
    acquires, releases = effects.acquires, effects.releases
    if step.kind == "copy":
        yield event._replace(begins=taken[0])
    elif step.kind == "wait":
        yield event._replace(awaits=taken, awaits_reads="read" in step.statement.form.tokens)
    elif step.kind == "fence":
        if step.fences:
            yield event._replace(fences=step.fences)
        if effects.fence == "threads" and not any("sync_restrict" in token for token in step.statement.form.tokens):
            yield event._replace(fence=True, acquire=acquires, release=releases, sc=effects.order == "sc")
    elif step.kind == "barrier":
        if effects.arrives:
            yield event._replace(barrier=taken, arrives=True, release=releases)
        if effects.waits:
            yield event._replace(who=who._replace(place=who.place + 1), barrier=taken, waits=True, acquire=acquires)
    else:
        for n, element in enumerate(step.elements):
            given, wrote = after.given[n] if after.given else b"", after.wrote[n] if after.wrote else b""
            if step.compare is not None and given != step.compare:
                wrote = b""  # a compare-and-swap that fails has only read
            yield event._replace(
                who=who._replace(element=n), reads=step.reads, writes=bool(wrote), address=element.address,
                nbytes=element.nbytes, strong=effects.strong, acquire=step.reads and acquires,
                release=bool(wrote) and releases, proxy=step.proxy, sources=taken[n] if step.reads else (),
                read=given, written=wrote,
            )
        if step.fences:
            yield Event(who._replace(place=who.place + 1), fences=step.fences)


def agree(events: list[Event]) -> bool:
    """Whether all reads read what has been written."""
    by_name = {event.who: event for event in events}
    return all(
        _taken(by_name.get(source.event), event, source)
        for event in events for source in event.sources if source.event is not None
    )


def _taken(write: Event | None, read: Event, source: Source) -> bool:
    if write is None or not write.writes:
        return False
    start = read.address + source.first - write.address
    return start >= 0 and write.written[start:][: source.size] == read.read[source.first :][: source.size]
