"""The clusters of a launch: which are left, which run, and what went wrong in the first of them that fails."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from ..codegen.code import Code
from .block_state import LaunchState
from .seeded_schedule import SeededSchedule

__all__ = ["ClusterWork"]


class ClusterWork:
    """What the host threads share that run the clusters of a launch.

    Clusters are independent of each other, but for what they do to global memory. A cluster may wait there for what an
    earlier one does, and for no later one: so only the first of those that run is asked whether it waits for ever.
    """

    def __init__(self, launch: LaunchState, code: Code, codes: Callable[[bool], Code], alone: bool) -> None:
        self.launch, self.code = launch, code
        self.mutex = threading.RLock()
        """For all that is not done by compiled code, and is more than a cluster's own."""
        self.changed = threading.Condition(self.mutex)
        self.codes = codes
        shape = launch.spaces.cluster or (1, 1, 1)
        x, y, z = (whole // part for whole, part in zip(launch.config.grid, shape))
        self.grid: tuple[int, int, int] = (x, y, z)
        self.schedule = SeededSchedule(launch) if launch.config.seed is not None else None
        count = x * y * z
        first, end = launch.only or (0, count)
        self.left = deque(range(first, end) if self.schedule is None else self.schedule.shuffled(count))
        self.plain = self.schedule is None and launch.tool.compiled_turns
        """Whether compiled code may go from block to block."""
        self.pace = code.pace
        """Seconds a cluster takes in compiled code, 0 where that is not known."""
        self.alone = alone or self.schedule is not None or code.prints or count == 1
        """Whether one host thread runs them all."""
        self.running: dict[int, int] = {}
        """The cluster that each worker runs."""
        self.fault: tuple[int, BaseException] | None = None
        self.compiled = 0.0
        """Seconds that compiled code has taken."""

    def fail(self, number: int, error: BaseException) -> None:
        with self.mutex:
            if self.fault is None or number < self.fault[0]:
                self.fault = number, error

    def cancelled(self, number: int) -> bool:
        """Whether a cluster need not go on, since an earlier one has failed."""
        return self.fault is not None and number > self.fault[0]

    def first(self, number: int) -> bool:
        """Whether no earlier cluster runs, for which this one might wait."""
        with self.mutex:
            return self.schedule is not None or number <= min(self.running.values())
