"""A compiled kernel loaded on a backend, ready to be launched, and how the emulator's is.

Nothing here or above knows more of a backend than :class:`Run` says; the GPU's is :class:`ptxdsl.gpu.launch.GpuRun`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from .. import config
from ..collector import paused
from ..errors import LaunchError, caller
from ..launch import Argument, Buffer, FastPath, Handle, LaunchConfig, Launched, Scalar, TracksWrites, buffers_of
from ..launch.captures import captures, current_stream, refuse_host_arrays
from ..launch.directions import copied

if TYPE_CHECKING:
    from ..emulator.program import Program
    from ..ir import Module

__all__ = ["Bind", "EmulatorRun", "Run"]

Bind = Callable[[Sequence[object]], "list[Argument]"]
"""Turns the user's arguments into the kernel's; LaunchError for those that do not fit."""


class Run(Protocol):
    """A kernel loaded on a backend: called, it runs to its end or is started on a stream."""

    def __call__(self, geometry: LaunchConfig, arguments: Sequence[Argument], /) -> None:
        """Launch."""

    def warm(self, geometry: LaunchConfig, arguments: Sequence[Argument], /) -> None:
        """Make ready for such a launch: what only the first one has to do."""

    def fast_path(self, geometry: LaunchConfig, /) -> FastPath | None:
        """What makes such launches again, as a function of Python; None if nothing can be left out."""

    def plan(self, geometry: LaunchConfig, launched: Launched, /) -> Any:
        """The same for machine code, a :class:`ptxdsl.gpu.launch_code.Plan`."""


class EmulatorRun:
    """A kernel on the emulator. ``references`` is what textures, samplers and surfaces of the module are bound to,
    ``traced`` the module that the program's text was printed from, with what only a sanitizer asks.

    ``foreign`` PTX may find addresses in structs and other arrays, as on a GPU, so it may reach every device array.
    """

    def __init__(
        self, entry: str, program: Program, bind: Bind, references: Mapping[str, Any], *, foreign: bool,
        traced: Module | None = None,
    ) -> None:
        self.entry, self.program, self.bind = entry, program, bind
        self.references, self.foreign, self.traced = references, foreign, traced

    def __call__(self, geometry: LaunchConfig, arguments: Sequence[Argument]) -> None:
        capture = captures.get(current_stream(geometry, None) or 0)
        if capture is None:
            self._run(geometry, arguments)
            return
        if geometry.twin is not None:
            raise LaunchError(
                f"kernel `{self.entry}` is followed in float64, and cannot be captured in a graph", loc=caller(),
                hint="launch it outside of the capture",
            )
        refuse_host_arrays(self.entry, (b for b in buffers_of(arguments) if not isinstance(b.owner, TracksWrites)))
        capture.record(partial(self._run, geometry, arguments))

    def _run(self, geometry: LaunchConfig, arguments: Sequence[Argument]) -> None:
        if geometry.schedule is None or config.observer.get() is not None:
            self._launcher(geometry)(arguments)
            return
        from ..emulator.outcomes.explored_launch import ExploredLaunch

        with ExploredLaunch(geometry.schedule):
            self._launcher(geometry)(arguments)

    def warm(self, geometry: LaunchConfig, arguments: Sequence[Argument]) -> None:
        self._given(arguments, tracks=True)
        self._launcher(geometry)

    def _launcher(self, geometry: LaunchConfig) -> Callable[[Sequence[Argument]], None]:
        """What runs launches in a geometry, one after the other, as long as the settings are the same."""
        if self.traced is not None and geometry.sanitize and "memory" in geometry.sanitize:
            geometry = replace(geometry, traced=self.traced)
        tracks = bool(geometry.sanitize and "init" in geometry.sanitize)
        program, references = self.program, self.references
        with paused():
            launches = program.launcher(self.entry, geometry)

        def launch(arguments: Sequence[Argument]) -> None:
            given = self._given(arguments, tracks)
            directed = [at for at, each in enumerate(given) if type(each) is Buffer and each.direction is not None]
            if references:
                program.bind(references)
            if directed:
                launch_with_copies(given, directed, launches)
            else:
                launches(given)

        return launch

    def _given(self, arguments: Sequence[Argument], tracks: bool) -> list[Scalar | Buffer]:
        """The arguments as the emulator has them; ``tracks``: what the kernel writes to device arrays is noted."""
        given: list[Scalar | Buffer] = []
        for argument in arguments:
            if type(argument) is Buffer:
                if argument.device is not None:
                    raise LaunchError(
                        f"argument `{argument.name}` of kernel `{self.entry}` is on GPU {argument.device}; "
                        "the emulator works in host memory", loc=caller(),
                        hint='pass a numpy array, or `backend="gpu"`',
                    )
                if not tracks and isinstance(argument.owner, TracksWrites):
                    argument.owner.unwritten = None
                given.append(argument)
            else:
                given.append(argument if type(argument) is Scalar else _numbered(argument))  # type: ignore[arg-type]
                if type(argument) is Scalar and argument.targets:
                    self._take_targets(argument, tracks)
        if self.foreign:
            for buffer in _reachable(given):
                if not tracks:
                    buffer.owner.unwritten = None  # type: ignore[attr-defined]
                given.append(buffer)
        return given

    def _take_targets(self, argument: Scalar, tracks: bool) -> None:
        """Refuse a tensor map of memory that is not here."""
        for target in argument.targets:
            if not tracks and isinstance(target.owner, TracksWrites):
                target.owner.unwritten = None
            if target.device is not None:
                raise LaunchError(
                    f"argument `{argument.name}` of kernel `{self.entry}` is a tensor map of an array on GPU "
                    f"{target.device}; the emulator works in host memory", loc=caller(),
                    hint='make it of a numpy array, or `backend="gpu"`',
                )

    def plan(self, geometry: LaunchConfig, launched: Launched) -> None:
        """There is none: a launch on the emulator is more than a call."""

    def fast_path(self, geometry: LaunchConfig) -> FastPath | None:
        """The same launch as long as the settings are the same: what is left is to bind the arguments and to run."""
        settings, bind = config.current(), self.bind
        if settings.log == "debug" or geometry.schedule is not None or geometry.twin is not None:
            # each launch is reported, explored or followed
            return None
        if current_stream(geometry, None) in captures:
            return None
        run = self._launcher(geometry)

        def launch(args: Sequence[object]) -> bool:
            if config.current() is not settings or config.observer.get() is not None:
                return False
            run(bind(args))
            return True

        return launch


def launch_with_copies(
    given: list[Scalar | Buffer], directed: Sequence[int], launches: Callable[[list[Scalar | Buffer]], None]
) -> None:
    """A launch with host arrays of which the caller says that they are copied one way only."""
    back = []
    for at in directed:
        buffer = given[at]
        assert type(buffer) is Buffer
        if buffer.direction != "inout" and not isinstance(buffer.owner, TracksWrites):
            given[at] = made = copied(buffer)
            if buffer.direction == "out":
                back.append((buffer, made))
    launches(given)
    for buffer, made in back:
        ctypes.memmove(buffer.address, made.address, buffer.nbytes)


def _reachable(given: Sequence[Scalar | Buffer]) -> list[Buffer]:
    """The device arrays that are not arguments."""
    from ..launch.device_array import in_host_memory

    found = in_host_memory()
    if found:
        passed = {argument.address for argument in given if type(argument) is Buffer}
        found = [buffer for buffer in found if buffer.address not in passed]
    return found


def _numbered(argument: Handle) -> Scalar:
    """A handle as its number on the emulator."""
    return Scalar(argument.name, argument.owner.emulated.to_bytes(8, "little"))
