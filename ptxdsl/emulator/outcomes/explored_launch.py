"""``configure(..., schedule="explore")``: a launch in every execution that the memory model allows.

What goes wrong in one of them is raised: a fault, a check that fails, threads that wait forever. Where nothing does,
the arrays are those of one of the outcomes; the others are :func:`ptxdsl.outcomes`'s to show.
"""

from __future__ import annotations

import ctypes

from ...errors import DeadlockError, EmulationError, LaunchError, caller
from ...launch import Buffer
from ..runtime.block_state import LaunchState
from .api import Explorer, Outcome

__all__ = ["ExploredLaunch"]


class ExploredLaunch(Explorer):
    """Explores the launch of its ``with`` block, and leaves an outcome in its arrays."""

    what = 'schedule="explore"'

    def run(self, launch: LaunchState) -> None:
        """Explore a launch; raises what goes wrong in some execution."""
        super().run(launch)
        assert self.found is not None
        for outcome in self.found:
            if outcome.raised is not None:
                raise outcome.raised from EmulationError(f"in this execution:\n{outcome.execution}")
            if outcome.waiting:
                threads = "\n".join(outcome.waiting)
                raise DeadlockError(
                    f"the memory model allows an execution in which threads wait forever:\n{threads}\n"
                    f"in this execution:\n{outcome.execution}", loc=caller(),
                )
        if not self.found.complete:
            raise LaunchError(
                f"a thread makes more than {self.bound} memory operations, so that not every execution was explored",
                loc=caller(), hint="`ptxdsl.outcomes(launch, ..., bound=1000)`",
            )
        for argument in launch.arguments:
            if isinstance(argument, Buffer) and argument.name in self.found[0].arrays:
                _write(argument, self.found[0])


def _write(buffer: Buffer, outcome: Outcome) -> None:
    data = outcome[buffer.name].tobytes()
    ctypes.memmove(buffer.address, data, len(data))
