"""``configure(..., schedule="explore")``: a launch in every execution that the memory model, or its schedule, allows.

What goes wrong in one of them is raised: a fault, a check that fails, threads that wait forever, a race, a result that
depends on when an asynchronous operation completes. Where nothing does, the arrays are those of one of the outcomes;
the others are :func:`ptxdsl.outcomes`'s to show. With a schedule that was told by such an error it is that one run.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence

from ...errors import DeadlockError, EmulationError, LaunchError, PtxWarning, RaceError, caller
from ..runtime.block_state import LaunchState
from .api import Explorer, Memory
from .outcome import Outcome
from .schedule import parse_schedule
from .schedule_outcomes import bounds, contents
from .schedule_search import Result, ScheduleSearch
from .schedule_wording import differs, race_error, stopped_early, told, warn_differs
from .stepwise import Impossible
from .wording import Names

__all__ = ["ExploredLaunch"]


class ExploredLaunch(Explorer):
    """Explores the launch of its ``with`` block, and leaves an outcome in its arrays."""

    what = 'schedule="explore"'

    def __init__(self, schedule: str = "explore") -> None:
        super().__init__()
        self.schedule = schedule

    def run(self, launch: LaunchState) -> None:
        """Explore a launch; raises what goes wrong in some execution."""
        self.left: Sequence[bytes] | None = None
        super().run(launch)
        buffers = [buffer for buffer in Names(launch).buffers if buffer.writable]
        if self.left is None:
            self._judge()
            assert self.found is not None
            self.left = [self.found[0].arrays[buffer.name].tobytes() for buffer in buffers]
        for buffer, data in zip(buffers, self.left):
            ctypes.memmove(buffer.address, data, len(data))

    # By the axioms

    def explores_by_axioms(self, launch: LaunchState) -> bool:
        """A schedule that is given is run, whatever the launch."""
        return self.schedule == "explore" and super().explores_by_axioms(launch)

    def _judge(self) -> None:
        """Raise what is wrong in some outcome."""
        assert self.found is not None
        for outcome in self.found:
            if outcome.raised is not None:
                raise outcome.raised from EmulationError(f"in this execution:\n{outcome.execution}")
            if outcome.waiting:
                raise self._waiting(outcome)
        if not self.found.complete:
            raise LaunchError(
                "a thread makes more than 100 memory operations, so that not every execution was explored",
                loc=caller(), hint="`ptxdsl.outcomes(launch, ..., bound=1000)`",
            )
        if self.found.races:
            raise RaceError(
                "threads race: conflicting accesses, not both strong, that nothing orders\n"
                + "\n".join(f"  {race}" for race in self.found.races), loc=caller(),
                hint="`ptxdsl.outcomes(launch, ...)` gives the outcomes of such code",
            )

    def _waiting(self, outcome: Outcome) -> DeadlockError:
        threads = "\n".join(outcome.waiting)
        return DeadlockError(
            f"the memory model allows an execution in which threads wait forever:\n{threads}\n"
            f"in this execution:\n{outcome.execution}", loc=caller(),
        )

    # By schedules

    def by_schedules(self, launch: LaunchState, memory: Memory) -> None:
        """Search the schedules of a launch, or run the one that is given."""
        self._buffers = [buffer for buffer in Names(launch).buffers if buffer.writable]
        search = ScheduleSearch(launch, memory.restore, lambda: contents(self._buffers), self._schedules)
        if self.schedule != "explore":
            self._replay(search)
            return
        shown = search.search(*bounds(None, None), stop=lambda result: bool(result.wrong or result.bytes_))
        if shown is not None:
            self._raise(search, shown)
        self.left = search.results[0].arrays
        self._warn(search)

    def _replay(self, search: ScheduleSearch) -> None:
        deviations = parse_schedule(self.schedule)
        try:
            result = search.replay(deviations)
        except Impossible:
            result = None
        if result is None or (set(deviations) - set(result.taken)):
            raise LaunchError(
                f"{self.schedule!r} is no schedule of this launch: some step cannot be made there", loc=caller(),
                hint='explore it again: `schedule="explore"`',
            )
        if result.wrong:
            self._raise(search, result)
        self.left = result.arrays

    def _raise(self, search: ScheduleSearch, result: Result) -> None:
        names = [buffer.name for buffer in self._buffers]
        error: Exception
        if result.race is not None:  # what else goes wrong may follow from it
            error = race_error(search, result.race)
        elif result.error is not None:
            error = result.error
        else:
            error = differs(search, search.results[0], result, names)
        raise error from EmulationError(told(search, result))

    def _warn(self, search: ScheduleSearch) -> None:
        """Say what is no error: that results differ, and that a bound was reached."""
        said: list[PtxWarning] = []
        if len(search.results) > 1:
            names = [buffer.name for buffer in self._buffers]
            said.append(warn_differs(search, search.results[0], search.results[1], names))
        if not search.exhausted:
            said.append(stopped_early(search))
        loc = caller()
        for warning in said:
            warnings.warn_explicit(warning, None, loc.file if loc else "<unknown>", loc.line if loc else 0)
