"""Searches the orders in which the synchronisation of a launch may happen, by running it again and again.

The first run is in the default order; each run says which of its orders could be reversed (:mod:`.dependence`), and
these are run next, those with the fewest reversals first, so that what is found is found with few of them. Where a run
goes wrong, steps are put back into the default order as long as it still goes wrong. The search has ended when no order
is left that is not equivalent to one that was run; else the number of runs, of reversals or the time was its bound.

What is found: faults and failed checks, deadlocks, races, and results that depend on when an asynchronous operation
touches bytes that a product reads. Results that differ by the order of atomics or flags are outcomes, not errors.

What it cannot see: weak behaviour. Accesses happen one after the other here, in every order of what synchronises; what
PTX's memory model allows beyond that is :func:`ptxdsl.outcomes`'s for small launches. A loop that asks a limited number
of times gives up only where nothing else can happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

from ...errors import EmulationError
from ..runtime.block_state import LaunchState
from .causality import Racing, races
from .dependence import Prefix, Trace
from .schedule import Actor, schedule_text
from .steps import Step, Unit
from .stepwise import Impossible, Stepwise
from .stops import Sites, stopped_code

__all__ = ["REVERSALS", "SCHEDULES", "SECONDS", "Result", "ScheduleSearch"]

SCHEDULES, REVERSALS, SECONDS = 1000, 8, 60.0
"""Runs, orders that one run has reversed, and seconds after which a search ends."""
LONGEST = 20_000
"""Steps of a run."""


class Result(NamedTuple):
    """A run: the bytes of the arrays at its end, its steps, what went wrong, the race, and the schedule.

    ``bytes_``: two steps, whose order in the first run was another one, that touch the same bytes of memory; the arrays
    differ from those of the first run.
    """

    arrays: tuple[bytes, ...]
    steps: Sequence[Step]
    error: Exception | None
    race: tuple[Racing, Racing] | None
    schedule: str
    deviations: Mapping[int, Actor]
    bytes_: tuple[Step, Step] | None = None

    @property
    def taken(self) -> range:
        """The numbers of its steps."""
        return range(len(self.steps))

    @property
    def wrong(self) -> str:
        """What kind of mistake it shows, "" for none."""
        if self.race is not None:
            return "race"
        return type(self.error).__name__ if self.error is not None else ""


class ScheduleSearch:
    """The runs of one launch. ``restore`` gives its memory back what it held before; ``final`` reads the arrays."""

    def __init__(
        self, launch: LaunchState, restore: Callable[[], None], final: Callable[[], tuple[bytes, ...]],
        progress: Callable[[int, int], None],
    ) -> None:
        self.launch, self.restore, self.final, self.progress = launch, restore, final, progress
        self.code = stopped_code(launch)
        self.sites = Sites(launch, self.code)
        self.runs, self.exhausted, self.flags = 0, False, False
        """``flags``: warps synchronise by strong accesses, so that weak behaviour is possible that is not explored."""
        self.units: list[Unit] = []
        self.results: list[Result] = []
        """One for each final state and each way to go wrong."""

    # One run

    def run(self, guide: Callable[[int], Actor | None], bytes_: tuple[Step, Step] | None = None) -> Result:
        """Run the launch; ``guide`` names the actor of a step, or None. Raises Impossible."""
        self.restore()
        self.runs += 1
        stepwise = Stepwise(self.launch, self.code, self.sites)
        self.units = stepwise.units
        error: Exception | None = None
        try:
            self._drive(stepwise, guide)
        except EmulationError as raised:
            error = raised
        steps = stepwise.steps
        clusters = {unit.number: unit.which for unit in stepwise.units}
        deviations = {n: step.actor for n, step in enumerate(steps) if step.actor != step.default}
        self.flags = self.flags or any(step.site is not None and step.site.kind == "strong" for step in steps)
        found = races(steps, clusters)
        return Result(self.final(), steps, error, found, schedule_text(deviations), deviations, bytes_)

    def _drive(self, stepwise: Stepwise, guide: Callable[[int], Actor | None]) -> None:
        while not stepwise.ended:
            default = stepwise.default()
            if default is None:
                stepwise.stuck()
                continue
            wanted = guide(len(stepwise.steps))
            if wanted is None:
                stepwise.go(default, default)
            elif not stepwise.go(wanted, default):
                raise Impossible
            if len(stepwise.steps) > LONGEST:
                raise EmulationError(f"the launch takes more than {LONGEST} steps from one synchronisation to the next")

    def replay(self, deviations: Mapping[int, Actor]) -> Result:
        """One run, by a schedule. Raises Impossible where it is none of this launch."""
        return self.run(deviations.get)

    # All runs

    def search(
        self, schedules: int = SCHEDULES, reversals: int = REVERSALS, seconds: float = SECONDS,
        stop: Callable[[Result], bool] = lambda _: False,
    ) -> Result | None:
        """Run all orders within the bounds, until ``stop`` says so of a result, which is returned, made short."""
        end = monotonic() + seconds
        left = deque([(Prefix((), 0, None), 0)])
        tried, seen, bounded = {0}, set[int](), False
        first: tuple[bytes, ...] | None = None
        while left:
            if self.runs >= schedules or monotonic() > end:
                return None
            prefix, depth = left.popleft()
            self.progress(self.runs, len(left))
            try:
                result = self.run(lambda n: prefix.actors[n] if n < len(prefix.actors) else None, prefix.bytes_)  # noqa: B023
            except Impossible:
                earlier = prefix.earlier()
                if earlier is not None and earlier.same not in tried:
                    tried.add(earlier.same)
                    left.append((earlier, depth))
                continue
            trace = Trace(result.steps)
            if trace.same in seen:
                continue
            seen.add(trace.same)
            if first is None:
                first = result.arrays
            result = result._replace(bytes_=prefix.bytes_ if result.arrays != first else None)
            self._keep(result)
            if stop(result):
                return self.shortest(result, first)
            if result.error is not None:
                continue
            for further in trace.reversals():
                if further.same not in tried:
                    tried.add(further.same)
                    if depth < reversals:
                        left.append((further, depth + 1))
                    else:
                        bounded = True
        self.exhausted = not bounded
        return None

    def _keep(self, result: Result) -> None:
        if not any(_alike(result, known) for known in self.results):
            self.results.append(result)

    def shortest(self, result: Result, first: tuple[bytes, ...]) -> Result:
        """A run that shows the same with as few steps out of the default order as can be found by leaving some out."""
        best = result
        for step in sorted(result.deviations, reverse=True):
            fewer = {n: actor for n, actor in best.deviations.items() if n != step}
            if len(fewer) == len(best.deviations):
                continue
            try:
                found = self.replay(fewer)
            except Impossible:
                continue
            found = found._replace(bytes_=best.bytes_ if found.arrays != first else None)
            if found.wrong == best.wrong and found.bytes_ == best.bytes_:
                best = found
        return best


def _alike(one: Result, other: Result) -> bool:
    if (one.error is None) != (other.error is None):
        return False
    if one.error is not None:
        return str(one.error) == str(other.error)
    return one.arrays == other.arrays and (one.race is None) == (other.race is None)
