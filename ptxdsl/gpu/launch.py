"""Launches on the GPU: which GPU, which stream, what to copy there and back."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from .. import config
from ..errors import LaunchError, PerformanceWarning, caller
from ..launch import Argument, Buffer, Handle, LaunchConfig, Launched
from ..launch.captures import captures, current_stream
from .device import Driver, driver
from .function import LoadedFunction, Prepared
from .library_streams import stream_of

if TYPE_CHECKING:
    from ..launch.arrays import View
    from .launch_code import Plan
    from .loadable import Loadable

__all__ = ["GpuRun"]


class GpuRun:
    """A kernel on whichever GPU its arrays are."""

    def __init__(self, kernel: Loadable) -> None:
        self.kernel = kernel
        self.functions: dict[int, LoadedFunction] = {}

    def __call__(self, geometry: LaunchConfig, arguments: Sequence[Argument]) -> None:
        buffers = [argument for argument in arguments if type(argument) is Buffer]
        images = self._images(arguments)
        arrays: list[Buffer | View] = [*buffers, *(array for image in images for array in getattr(image, "arrays", ()))]
        function = self._loaded(geometry, arguments, arrays)
        gpu = function.gpu
        gpu.give_back()
        with gpu.current():
            prepared = function.prepare(geometry)
            stream = _stream(geometry, arrays, gpu.device)
            captured = gpu.captures(stream)
            if stream in captures:
                captures[stream].keep((function, arguments))
            elif captured:
                function.loaded.keep()
            else:
                _wait(gpu, stream, arrays)
            with nullcontext() if captured else self._watched(gpu, geometry, arguments):
                if not images:
                    self._launch(function, prepared, stream, arguments, buffers)
                    return
                from .textures import Images

                with Images(gpu, stream, arguments, function.module, self.kernel.references) as numbered:
                    self._launch(function, prepared, stream, numbered.arguments, buffers)

    def _watched(
        self, gpu: Driver, geometry: LaunchConfig, arguments: Sequence[Argument]
    ) -> AbstractContextManager[None]:
        """Around a launch: with ``PTXDSL_DEBUG=1`` one that faults is made again on the emulator."""
        if not config.current().debug:
            return nullcontext()
        from .faults import repeated_on_fault

        return repeated_on_fault(gpu, self.kernel, geometry, arguments)

    def warm(self, geometry: LaunchConfig, arguments: Sequence[Argument]) -> None:
        """Load the kernel where such a launch would run, and check the geometry there."""
        images = self._images(arguments)
        arrays = [array for image in images for array in getattr(image, "arrays", ())]
        function = self._loaded(geometry, arguments, arrays)
        with function.gpu.current():
            function.prepare(geometry)

    def _images(self, arguments: Sequence[Argument]) -> list[Any]:
        """The textures, samplers and surfaces of a launch."""
        return [*(each.owner for each in arguments if type(each) is Handle), *self.kernel.references.values()]

    def _loaded(
        self, geometry: LaunchConfig, arguments: Sequence[Argument], arrays: Sequence[Buffer | View]
    ) -> LoadedFunction:
        """The kernel on the GPU of the arguments, or else of the ``arrays`` of textures, or of the stream."""
        buffers = [argument for argument in arguments if type(argument) is Buffer]
        targets = [target for each in arguments if type(each) is not Handle for target in each.targets]  # type: ignore[union-attr]
        _refuse_host(self.kernel.entry, targets)
        return self._function(_device(self.kernel.entry, [*buffers, *targets], arrays, geometry.stream))

    def _launch(
        self, function: LoadedFunction, prepared: Prepared, stream: int, arguments: Sequence[Argument],
        buffers: Sequence[Buffer],
    ) -> None:
        host = [buffer for buffer in buffers if buffer.device is None]
        if not host:
            function.launch(prepared, stream, arguments)
            return
        from .copies import HostCopies

        self._warn([buffer for buffer in host if not buffer.targets])
        with HostCopies(function.gpu, stream, host, self.kernel.entry, self.kernel.written) as copies:
            function.launch(prepared, stream, [copies.moved(argument) for argument in arguments])
            copies.fetch()

    def fast_path(self, geometry: LaunchConfig) -> None:
        """There is none in Python: see :meth:`plan`."""

    def plan(self, geometry: LaunchConfig, launched: Launched) -> Plan | None:
        """What makes such launches again; None where all checks are needed each time."""
        from .fast_path import plan_of  # which a first launch does not need
        from .launch_code import supported

        buffers = [argument for argument in launched.arguments if type(argument) is Buffer]
        if not supported() or any(buffer.device is None for buffer in buffers):
            return None
        function = self._loaded(geometry, launched.arguments, ())
        owner = None
        if current_stream(geometry, function.gpu.device) is None:
            owner = _stream_owner(buffers, function.gpu.device)
        return plan_of(function, geometry, launched, owner)

    def _function(self, ordinal: int) -> LoadedFunction:
        found = self.functions.get(ordinal)
        if found is None:
            found = self.functions[ordinal] = LoadedFunction(self.kernel, driver(ordinal))
        return found

    def _warn(self, host: Sequence[Buffer]) -> None:
        if not host or "host arrays" in self.kernel.warned:
            return
        self.kernel.warned.add("host arrays")
        loc, names = caller(), ", ".join(buffer.name for buffer in host)
        first = host[0].name
        warnings.warn_explicit(
            f"kernel `{self.kernel.entry}` has its arrays {names} copied to the GPU at every launch; "
            f"keep them there: `{first} = ptxdsl.to_device({first})`",
            PerformanceWarning, loc.file if loc else "<unknown>", loc.line if loc else 0,
        )


def _device(
    entry: str, buffers: Sequence[Buffer], arrays: Sequence[Buffer | View] = (), stream: int | None = None
) -> int:
    """The GPU of the arguments, or else of the arrays of textures, of the stream, or that of `ptxdsl.device`."""
    placed = [buffer for buffer in buffers if buffer.device is not None]
    for buffer in placed:
        if buffer.device != placed[0].device:
            raise LaunchError(
                f"argument `{placed[0].name}` of kernel `{entry}` is on GPU {placed[0].device}, `{buffer.name}` on GPU "
                f"{buffer.device}; all of a launch have to be on one", loc=caller(),
            )
    for array in (*placed, *arrays):
        if array.device is not None:
            return array.device
    gpu = driver(config.current().launch_device)
    return gpu.device if stream is None else gpu.of_stream(stream).device


def _refuse_host(entry: str, targets: Sequence[Buffer]) -> None:
    """What a table of pointers or a tensor map points to must be on the GPU: they would have to be made anew."""
    for target in targets:
        if target.device is None:
            name, table, _ = target.name.partition("[")
            if not table:
                raise LaunchError(
                    f"argument `{name}` of kernel `{entry}` is a tensor map of an array in host memory", loc=caller(),
                    hint="make it of `ptxdsl.to_device(array)`",
                )
            raise LaunchError(
                f"argument `{target.name}` of kernel `{entry}` is in host memory; "
                "the arrays of a table have to be on the GPU", loc=caller(),
                hint=f"`{name} = [ptxdsl.to_device(array) for array in {name}]`",
            )


def _stream(geometry: LaunchConfig, buffers: Sequence[Buffer | View], ordinal: int) -> int:
    """The stream given, or else the current one of the library that owns an array, or else the default."""
    given = current_stream(geometry, ordinal)
    if given is not None:
        return given
    library = stream_of(_stream_owner(buffers, ordinal), ordinal)
    return library() if library else 0


def _stream_owner(buffers: Sequence[Buffer | View], ordinal: int) -> object:
    """The first array of a library that has current streams; None if there is none."""
    owners = (buffer.owner for buffer in buffers if buffer.device is not None)
    return next((owner for owner in owners if stream_of(owner, ordinal)), None)


def _wait(gpu: Driver, stream: int, buffers: Sequence[Buffer | View]) -> None:
    """Let the launch wait for the streams on which its arrays become valid (1 is the default stream, as 0 is).

    A graph cannot: when it is replayed, what was on these streams at its capture is long done.
    """
    for other in {b.stream for b in buffers if b.stream is not None and (b.stream or 1) != (stream or 1)}:
        event = gpu.call("cuEventCreate", gpu.cu.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        gpu.call("cuEventRecord", event, other)
        gpu.call("cuStreamWaitEvent", stream, event, 0)
        gpu.call("cuEventDestroy", event)
