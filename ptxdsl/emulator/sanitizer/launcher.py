"""Sanitized launches of one kernel in one geometry, with their shadow memory.

Where a launch is given the same arrays as the last one, and as much is proven of it, its block states and their shadow
states are as they were but for the numbers of epochs. Then they serve it, with the shadow words of the last launch: old
words need no clearing. Words are no launch's own: if another one has taken some since, all is made anew. Nothing is
kept of a launch that has found anything, nor of one whose words say more than who has accessed what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import EmulationError
from ...launch import Buffer, LaunchConfig, Scalar, TracksWrites
from ..codegen.code import Code
from ..machine.address_spaces import AddressSpaces
from ..machine.array_history import note
from ..runtime.block_state import LaunchState
from ..runtime.tool import NO_TOOL
from ..runtime.launch import run
from ..runtime.launcher import Launcher
from .overruns import BoundsOnly
from .sanitizer import Sanitizer, checks_of, checks_with
from .shadow_memory import ShadowMemory
from .spread import spread

__all__ = ["SanitizedLauncher"]


class SanitizedLauncher(Launcher):
    """``codes`` gives the code with some checks, or with those of bounds only for ``bounds``."""

    def __init__(
        self, entry: str, spaces: AddressSpaces, config: LaunchConfig, codes: Callable[[bool, Any], Code],
        bounds: object,
    ) -> None:
        super().__init__(entry, spaces, config, lambda slow: codes(slow, bounds))
        self.checked, self.bounds = codes, bounds

    def __call__(self, arguments: Sequence[Scalar | Buffer]) -> None:
        """Run the kernel to its end, in the memory of its arguments; raises what was found."""
        launch, given = self._launch(arguments)
        note(self._name, arguments)
        if launch.shadow is not None and not self._serves(launch):
            launch, given = self._anew(launch)
        asked = launch.shadow or checks_of(launch)
        kept = False
        try:
            if asked is None or not self.checked(False, asked[1]).instrumented:  # there is nothing to check but bounds
                self._run(launch, BoundsOnly(launch), self.bounds)
                return
            memory, checks = asked
            if spread(launch, checks, lambda slow: self.checked(slow, checks)):
                return
            if launch.shadow is not None and not memory.take_again():
                launch, given = self._anew(launch)
                memory = ShadowMemory(launch, checks.init)
            tool = Sanitizer(launch, memory, checks)
            self._run(launch, tool, checks)
            launch.shadow = memory, checks
            kept = self._keeps and tool.leaves_nothing() and self._keep(launch, given)
        finally:
            if not kept:
                launch.forget()

    def _anew(self, launch: LaunchState) -> tuple[LaunchState, list[Any]]:
        """A launch of the same arguments that has nothing of this one."""
        launch.forget()
        return LaunchState(self.spaces, self.config, launch.arguments), []

    def _run(self, launch: LaunchState, tool: Sanitizer | BoundsOnly, checks: Any) -> None:
        launch.tool, fault = tool, None
        codes = self.checked
        try:
            run(launch, codes(False, checks), lambda slow: codes(slow, checks), alone=checks != self.bounds)
        except EmulationError as error:
            fault = error
        finally:
            tool.release()
            launch.tool = NO_TOOL  # which kept the launch
        try:
            tool.finish(fault)
        finally:
            fault = None  # it holds this frame

    @staticmethod
    def _serves(launch: LaunchState) -> bool:
        """Whether the shadow memory and the checks of a launch that was kept are those that it needs."""
        memory, checks = launch.shadow
        memory.launch = launch
        owners = (argument.owner for argument in launch.arguments if type(argument) is Buffer)
        if memory.init and any(isinstance(owner, TracksWrites) and owner.unwritten is not None for owner in owners):
            return False
        return bool(checks_with(memory) == checks)

    def _write(self, launch: LaunchState, number: int, argument: Scalar | Buffer) -> bool:
        return type(argument) is Scalar and super()._write(launch, number, argument)

    def _keep(self, launch: LaunchState, given: list[Any]) -> bool:
        del launch.shadow[0].launch
        return super()._keep(launch, given)
