"""The outcomes of a launch whose schedules were searched: one for each final state, and each way to go wrong."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...launch import Buffer
from .outcome import Outcome, Outcomes
from .schedule_search import REVERSALS, SCHEDULES, Result, ScheduleSearch
from .schedule_wording import race_line, told

__all__ = ["arrays_of", "bounds", "contents", "schedule_outcomes"]


def bounds(bound: int | None, limit: int | None) -> tuple[int, int]:
    """The schedules of a search, and the orders that one of them may have reversed."""
    return SCHEDULES if limit is None else limit, REVERSALS if bound is None else bound


def contents(buffers: Sequence[Buffer]) -> tuple[bytes, ...]:
    """What arrays hold."""
    return tuple(ctypes.string_at(buffer.address, buffer.nbytes) for buffer in buffers)


def arrays_of(buffers: Sequence[Buffer], state: Sequence[bytes]) -> dict[str, Any]:
    """Bytes as numpy arrays, by the names of the parameters."""
    arrays: dict[str, Any] = {}
    for buffer, data in zip(buffers, state):
        array = np.frombuffer(data, np.dtype(buffer.dtype) if buffer.dtype else np.uint8)
        arrays[buffer.name] = array.reshape(buffer.shape) if array.size == int(np.prod(buffer.shape)) else array
    return arrays


def schedule_outcomes(search: ScheduleSearch, buffers: Sequence[Buffer]) -> Outcomes:
    """All that a search has found."""
    found: list[Outcome] = []
    races: dict[str, None] = {}
    for result in search.results:
        found.append(_outcome(search, buffers, result))
        if result.race is not None:
            races[race_line(search, result.race)] = None
    incomplete, hint = "", ""
    if not search.exhausted:
        incomplete, hint = f"the search has ended after {search.runs} schedules", "; raise `limit=` or `bound=`"
    elif races:
        incomplete = "warps race, and only what synchronises was reordered"
    elif search.flags:
        incomplete = "warps synchronise by strong accesses, whose weak behaviour only launches of a few threads show"
    made = Outcomes(found, incomplete, list(races), search.runs)
    made.hint = hint
    return made


def _outcome(search: ScheduleSearch, buffers: Sequence[Buffer], result: Result) -> Outcome:
    error = f"{type(result.error).__name__}: {result.error}" if result.error is not None else ""
    outcome = Outcome(arrays_of(buffers, result.arrays), (), error, len(result.steps))
    outcome.raised, outcome.schedule = result.error, result.schedule
    outcome._told = partial(told, search, result)
    return outcome
