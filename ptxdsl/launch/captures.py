"""The graphs that are being captured, by the handles of their streams: launches on these are recorded and not made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from .. import config
from ..errors import LaunchError, caller
from .geometry import Buffer, LaunchConfig

__all__ = ["Capture", "captures", "current_stream", "refuse_host_arrays"]


class Capture(Protocol):
    """A graph that launches are recorded in."""

    def keep(self, arguments: object, /) -> None:
        """Keep what a launch was given for as long as the graph may make it."""

    def record(self, launch: Callable[[], object], /) -> None:
        """Note a launch on the emulator."""


captures: dict[int, Capture] = {}


def current_stream(geometry: LaunchConfig, ordinal: int | None) -> int | None:
    """The stream that a launch names, or the one of the ``with`` block around it; ``ordinal`` is the GPU's."""
    if geometry.stream is not None:
        return geometry.stream
    entered = config.current().stream
    return entered[1] if entered is not None and ordinal in (None, entered[0]) else None


def refuse_host_arrays(entry: str, host: Iterable[Buffer]) -> None:
    """A graph would copy from host memory, and to it, whenever it is launched."""
    for buffer in host:
        raise LaunchError(
            f"kernel `{entry}` is launched with host arrays while its stream is captured into a graph", loc=caller(),
            hint=f"`{buffer.name} = ptxdsl.to_device({buffer.name})` before the capture",
        )
