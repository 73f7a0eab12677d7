"""Runs as text: which warp ran and which operation completed when, and at which lines; races, with both lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import PtxWarning, RaceError
from ...launch import LaunchConfig
from ..machine.layout import SHARED_START
from ..runtime.faults import index_in
from .causality import Racing
from .events import SHARED_PLACE
from .schedule import Actor
from .schedule_search import Result, ScheduleSearch
from .steps import Step
from .wording import Names, place_of

__all__ = ["differs", "race_error", "race_line", "stopped_early", "told", "warn_differs"]

GROUPS, LINES = 24, 8
"""Parts of a run that are told, the last ones, and the places of each."""


def _block(config: LaunchConfig, number: int) -> str:
    return str(number) if config.grid[1:] == (1, 1) else str(index_in(config.grid, number))


def actor_text(config: LaunchConfig, actor: Actor) -> str:
    """``warp 1 of block 0``."""
    return f"warp {actor.warp} of block {_block(config, actor.block)}"


def _doer(config: LaunchConfig, actor: Actor) -> str:
    who = actor_text(config, actor)
    return f"an operation of {who}" if actor.operation >= 0 else who


def told(search: ScheduleSearch, result: Result) -> str:
    """What a run did, and how it is made again."""
    lines = list(_groups(search.launch.config, result.steps))
    if len(lines) > GROUPS:  # those at the end, or around what is out of order if that is all
        starred = [n for n, line in enumerate(lines) if line.startswith("*")]
        at = max(0, starred[0] - 4) if result.bytes_ and starred else len(lines) - GROUPS
        behind = ["  ..."] * (at + GROUPS < len(lines))
        lines = [*["  ..."] * (at > 0), *lines[at : at + GROUPS], *behind]
    then = f"and then: {result.error}\n" if result.race is not None and result.error is not None else ""
    runs = f"{search.runs} schedule{'s' * (search.runs != 1)}"
    head = f'in this schedule, which `schedule="{result.schedule}"` makes again (found in {runs}):'
    return f"{then}{head}\n" + "\n".join(lines)


def _groups(config: LaunchConfig, steps: Sequence[Step]) -> Iterator[str]:
    """Neighbouring steps of one warp are one line."""
    at = 0
    while at < len(steps):
        step, first = steps[at], at
        while at < len(steps) and steps[at].actor == step.actor:
            at += 1
        star = "*" if any(each.actor != each.default for each in steps[first:at]) else " "
        if step.completes is not None:
            yield f"{star} {first}: what {actor_text(config, step.actor)} began at {place_of(step.statement)} completes"
            continue
        places = [place_of(each.statement) for each in steps[first:at] if each.statement is not None]
        places = [place for n, place in enumerate(places) if not n or places[n - 1] != place]
        if len(places) > LINES:
            places = [*places[: LINES // 2], "...", *places[-LINES // 2 :]]
        yield f"{star} {first}: {actor_text(config, step.actor)}: {', '.join(places) or 'its begin'}"


def _name(search: ScheduleSearch, host: int) -> str:
    names = Names(search.launch)
    for unit in search.units:
        offset = host - unit.state.shared
        if 0 <= offset < search.launch.shared_bytes:
            return names.element(SHARED_PLACE + SHARED_START + offset)[0]
    return names.element(host)[0]


def _said(search: ScheduleSearch, access: Racing) -> str:
    verb = "writes" if access.writes else "reads"
    return f"{_doer(search.launch.config, access.actor)} {verb} it at {place_of(access.statement)}"


def race_line(search: ScheduleSearch, race: tuple[Racing, Racing]) -> str:
    """Both accesses of a race."""
    one, other = race
    name = _name(search, max(one.low, other.low))
    return f"nothing orders two accesses to {name}: {_said(search, one)}, {_said(search, other)}"


def race_error(search: ScheduleSearch, race: tuple[Racing, Racing]) -> RaceError:
    """The error of a race."""
    one, other = race
    hint = 'a barrier between them, or a release and an acquire of one flag; `sanitize="race"` says more'
    if one.actor.operation >= 0 or other.actor.operation >= 0:
        hint = "wait for an operation before its bytes are used, and give a stage back behind its last use"
    return RaceError(
        race_line(search, race), loc=other.statement.loc, hint=hint, ptx_line=other.statement.line or None,
        block=index_in(search.launch.config.grid, other.actor.block),
    )


def differs(search: ScheduleSearch, one: Result, other: Result, names: Sequence[str]) -> RaceError:
    """The error of results that depend on when an operation touches bytes."""
    assert other.bytes_ is not None
    late, early = other.bytes_
    config = search.launch.config
    said = [f"{_doer(config, step.actor)} at {place_of(step.statement)}" for step in (early, late)]
    return RaceError(
        f"{_which(search, one, other, names)} depends on whether {said[0]} touches shared memory before {said[1]} "
        "does, and nothing orders them", loc=late.statement.loc, ptx_line=late.statement.line or None,
        hint="wait for an operation before its bytes are used, and give a stage back behind its last use",
    )


def _which(search: ScheduleSearch, one: Result, other: Result, names: Sequence[str]) -> str:
    """The first element that differs."""
    for name, a, b in zip(names, one.arrays, other.arrays):
        if a != b:
            at = next(n for n in range(len(a)) if a[n] != b[n])
            buffer = next(buffer for buffer in Names(search.launch).buffers if buffer.name == name)
            element = Names(search.launch).element(buffer.address + at)[0]
            return element.partition(" of ")[2] if element.startswith("byte ") else element
    return "the result"


def warn_differs(search: ScheduleSearch, one: Result, other: Result, names: Sequence[str]) -> PtxWarning:
    """The warning of results that differ by the order of atomics and flags."""
    return PtxWarning(
        f'{_which(search, one, other, names)} differs between schedules: compare `schedule="{one.schedule}"` and '
        f'`schedule="{other.schedule}"`'
    )


def stopped_early(search: ScheduleSearch) -> PtxWarning:
    """The warning of a search that has ended at a bound."""
    return PtxWarning(
        f'schedule="explore" ended at a bound, after {search.runs} schedules without an error: there are more orders '
        "of the launch's synchronisation; fewer blocks, turns or warps have fewer"
    )
