"""A launch that went well, as the backend is told of it that is to make the next ones like it shorter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .geometry import Argument

__all__ = ["Launched"]


class Launched(NamedTuple):
    """``given`` is what came, the values of keywords last, and ``names`` are these keywords.

    ``positions`` says of each value which parameter it was for, None for a compile-time constant, and ``arguments``
    what the parameters became. ``observed`` (`language.introspection.observed`) is what the kernel was traced from,
    None for PTX, which depends on nothing; ``generation`` is a byte, 0 once the kernel is to be traced again.
    """

    given: Sequence[object]
    names: Sequence[str]
    positions: Sequence[int | None]
    arguments: Sequence[Argument]
    observed: Any
    generation: Any

    @property
    def constants(self) -> tuple[object, ...]:
        """The compile-time constants."""
        return tuple(value for value, position in zip(self.given, self.positions) if position is None)
