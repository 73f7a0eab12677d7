"""Launches as NVTX ranges, which Nsight Systems and other profilers show on a timeline.

A range is the call in Python, with the kernel's name and its geometry; what the GPU does then is correlated by the
profiler. Where ranges are off nothing of this is imported, and a launch takes no step more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from .. import config
from ..errors import ConfigError, caller
from ..launch import Argument, FastPath, LaunchConfig, Launched
from .run import Run

__all__ = ["NvtxRun"]


class NvtxRun:
    """A kernel loaded on a backend whose launches are ranges of NVTX's domain ``ptxdsl``."""

    def __init__(self, run: Run, entry: str) -> None:
        self._run, self._entry, self._domain = run, entry, _domain()

    def __call__(self, geometry: LaunchConfig, arguments: Sequence[Argument]) -> None:
        self._domain.push_range(self._attributes(geometry))
        try:
            self._run(geometry, arguments)
        finally:
            self._domain.pop_range()

    def warm(self, geometry: LaunchConfig, arguments: Sequence[Argument]) -> None:
        self._run.warm(geometry, arguments)

    def plan(self, geometry: LaunchConfig, launched: Launched) -> None:
        """There is none: machine code opens no ranges."""

    def fast_path(self, geometry: LaunchConfig) -> FastPath | None:
        """The fast path of the launch within a range; where it declines, the range of the long way follows it."""
        fast = self._run.fast_path(geometry)
        if fast is None:
            return None
        push, pop, attributes = self._domain.push_range, self._domain.pop_range, self._attributes(geometry)
        settings = config.current()

        def launch(args: Sequence[object]) -> bool:
            if config.current() is not settings:  # ranges may be off now
                return False
            push(attributes)
            try:
                return fast(args)
            finally:
                pop()

        return launch

    def _attributes(self, geometry: LaunchConfig) -> Any:
        shape = f"{_shown(geometry.grid)}, {_shown(geometry.block)}"
        return self._domain.get_event_attributes(message=f"{self._entry}[{shape}]")


@cache
def _domain() -> Any:
    try:
        import nvtx
    except ImportError:
        raise ConfigError(
            "launches are to be NVTX ranges, and the package nvtx is not installed", loc=caller(),
            hint="pip install 'ptxdsl[nvtx]'",
        ) from None
    return nvtx.get_domain("ptxdsl")


def _shown(sizes: tuple[int, int, int]) -> str:
    """A grid or a block as it would be written.

    >>> _shown((4, 1, 1)), _shown((4, 1, 2))
    ('4', '(4, 1, 2)')
    """
    x, y, z = sizes
    return str(x) if y == z == 1 else f"({x}, {y})" if z == 1 else str(sizes)
