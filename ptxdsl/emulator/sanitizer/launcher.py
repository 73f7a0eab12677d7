"""Sanitized launches of one kernel in one geometry, with their shadow memory.

Where a launch is given the same arrays as the last one, and as much is proven of it, its block states and their shadow
states are as they were but for the numbers of epochs. Then they serve it, with the shadow words of the last launch: old
words need no clearing. Words are no launch's own: if another one has taken some since, all is made anew. What follows
the launch serves the next one too, if it was told of nothing. Nothing is kept of a launch that has found anything, nor
of one whose words say more than who has accessed what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...errors import EmulationError
from ...launch import Buffer, LaunchConfig, Scalar, TracksWrites
from ..codegen.code import Code
from ..machine.address_spaces import AddressSpaces
from ..machine.array_history import note
from ..runtime.block_state import LaunchState
from ..runtime.tool import NO_TOOL
from ..runtime.launch import run
from ..runtime.launcher import Launcher
from .needs import Checks
from .overruns import BoundsOnly
from .proofs import is_final
from .sanitizer import Sanitizer, checks_of, checks_with
from .shadow_memory import ShadowMemory
from .spread import spread

__all__ = ["SanitizedLauncher"]


class _Kept(NamedTuple):
    """What a launch has for its checks; without memory if it asks for bounds alone."""

    memory: ShadowMemory | None
    checks: Checks | None
    tool: Sanitizer | BoundsOnly | None = None
    """What follows the launch, where that was made for an earlier one."""
    code: Code | None = None
    """The code with these checks, or with those of bounds if there are no others."""
    lasting: bool = False
    """Whether a launch with the same arguments has the same checks."""


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
        memory, checks, tool, code, lasting = launch.shadow or _Kept(*checks_of(launch) or (None, None))
        kept = False
        try:
            if code is None:
                code = self.checked(False, self.bounds if checks is None else checks)
            if memory is None or not code.instrumented:  # there is nothing to check but bounds
                tool = tool or BoundsOnly(launch)
                self._run(launch, tool, code, self.bounds)
            else:
                assert checks is not None
                if spread(launch, checks, code, lambda slow: self.checked(slow, checks)):
                    return
                if launch.shadow is not None and not memory.take_again():
                    launch, given = self._anew(launch)
                    memory, tool = ShadowMemory(launch, checks.init), None
                tool = tool or Sanitizer(launch, memory, checks)
                self._run(launch, tool, code, checks)
            as_new = tool.is_as_new()
            lasting = lasting or memory is None or is_final(launch, memory.overlap)
            launch.shadow = _Kept(memory, checks, tool if as_new else None, code, lasting)
            kept = self._keeps and (as_new or tool.leaves_nothing()) and self._keep(launch, given)
        finally:
            if not kept:
                launch.forget()
                launch.shadow = None  # which holds the launch

    def _anew(self, launch: LaunchState) -> tuple[LaunchState, list[Any]]:
        """A launch of the same arguments that has nothing of this one."""
        launch.forget()
        return LaunchState(self.spaces, self.config, launch.arguments), []

    def _run(self, launch: LaunchState, tool: Sanitizer | BoundsOnly, code: Code, checks: Any) -> None:
        launch.tool, fault = tool, None
        codes = self.checked
        try:
            run(launch, code, lambda slow: codes(slow, checks), alone=checks != self.bounds)
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
        memory, checks, tool, code, lasting = launch.shadow
        if code.outdated:
            return False
        if tool is not None:
            tool.reporter.launch = launch
        if memory is None:
            return True
        memory.launch = launch
        owners = (argument.owner for argument in launch.arguments if type(argument) is Buffer)
        if memory.init and any(isinstance(owner, TracksWrites) and owner.unwritten is not None for owner in owners):
            return False
        return lasting or bool(checks_with(memory) == checks)

    def _write(self, launch: LaunchState, number: int, argument: Scalar | Buffer) -> bool:
        launch.shadow = launch.shadow._replace(lasting=launch.shadow.memory is None)
        return type(argument) is Scalar and super()._write(launch, number, argument)

    def _keep(self, launch: LaunchState, given: list[Any]) -> bool:
        memory, tool = launch.shadow.memory, launch.shadow.tool  # what is kept is in no circle
        if memory is not None:
            del memory.launch
        if tool is not None:
            del tool.reporter.launch
        return super()._keep(launch, given)
