"""The launches of one kernel in one geometry: what they share is found once, and their memory is kept.

A launch has memory for its parameters and block states, whose buffer table, warps and first fields are the same each
time, but for the arrays and the numbers that are given. Making them takes longer than a small launch runs. So they are
kept; the next launch writes what it is given otherwise than the last one, and clears what that has left. Nothing is
kept of a launch that has failed or that has arrays at addresses of their own, and what is kept holds no argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

from ...launch import Buffer, LaunchConfig, Scalar
from ..codegen.code import Code
from ..machine.address_spaces import AddressSpaces
from ..machine.allocation import copy_bytes
from ..machine.array_history import note
from .arguments import buffer_range
from .block_state import MOST_KEPT, LaunchState
from .launch import run

__all__ = ["Launcher"]

_Given = Union[bytes, "tuple[int, int, bool]"]
"""The bytes of a number, or where an array lies, its bytes, and whether it may be written."""
_Kept = tuple[LaunchState, list[_Given]]
MOST = 2
"""Launches that are kept: of host threads that launch the kernel at a time."""


class Launcher:
    """The launches of one kernel in one geometry. ``codes`` gives its code as :func:`.launch.run` wants it."""

    def __init__(self, name: str, spaces: AddressSpaces, config: LaunchConfig, codes: Callable[[bool], Code]) -> None:
        self._name, self.spaces, self.config, self.codes = name, spaces, config, codes
        apart = spaces.memory.narrow or spaces.alignment > 1 or config.seed is not None
        self._keeps = not apart and not any(area is not None and area.heap for area in spaces.ranges)
        self._code: Code | None = None
        self._kept: list[_Kept] = []
        """Launches that have ended, and what they were given."""

    def __call__(self, arguments: Sequence[Scalar | Buffer]) -> None:
        """Run the kernel to its end, in the memory of its arguments."""
        code = self._code
        if code is None or code.outdated:
            code = self._code = self.codes(False)
        launch, given = self._launch(arguments)
        note(self._name, arguments)
        kept = False
        try:
            run(launch, code, self.codes, alone=False)
            kept = self._keeps and self._keep(launch, given)
        finally:
            if not kept:
                launch.forget()

    def _launch(self, arguments: Sequence[Scalar | Buffer]) -> _Kept:
        try:
            launch, given = self._kept.pop()
        except IndexError:
            pass
        else:
            launch.arguments = arguments
            for state in launch.states():
                state.launch = launch
            if self._give(launch, arguments, given):
                launch.begin()
                return launch, given
            launch.forget()
        return LaunchState(self.spaces, self.config, arguments), []

    def _give(self, launch: LaunchState, arguments: Sequence[Scalar | Buffer], given: list[_Given]) -> bool:
        """Write what is not as it was given before; False where that takes more."""
        if len(arguments) != len(given):
            return False
        for number, argument in enumerate(arguments):
            now, before = _seen(argument), given[number]
            if now == before and not argument[-1]:  # its targets
                continue
            if type(now) is not type(before) or not self._write(launch, number, argument):
                return False
            given[number] = now
        return True

    def _write(self, launch: LaunchState, number: int, argument: Scalar | Buffer) -> bool:
        """Write the bytes of a parameter, and of an array its entry of the buffer tables."""
        if argument.targets:
            return False
        entry, parameters = 1 + number, self.spaces.parameters
        if number < len(parameters):
            _, offset, nbytes = parameters[number]
            data = argument[1]
            if not isinstance(data, bytes):
                data = data.to_bytes(nbytes, "little")
            if len(data) != nbytes:
                return False
            copy_bytes(launch.parameters + offset, data, nbytes)
        else:  # memory that the kernel comes to by addresses in other memory
            entry = len(self.spaces.ranges) + number - len(parameters)
        if type(argument) is Buffer:
            area = launch.ranges[entry] = buffer_range(argument)
            for state in launch.states():
                state.fill_entry(entry, area)
        return True

    def _keep(self, launch: LaunchState, given: list[_Given]) -> bool:
        """Keep a launch that has ended, but for its arguments and what would keep it alive; False where it is not."""
        if not given:
            if any(argument.targets for argument in launch.arguments):
                return False
            given += map(_seen, launch.arguments)
        launch.arguments = ()
        if len(launch.free) > 1:
            del launch.free[max(1, MOST_KEPT // launch.free[0].nbytes) :]
        for state in launch.states():
            del state.launch
        if len(self._kept) < MOST:
            self._kept.append((launch, given))
        return True


def _seen(argument: Scalar | Buffer) -> _Given:
    return argument.data if type(argument) is Scalar else (argument.address, argument.nbytes, argument.writable)  # type: ignore[union-attr]
