"""Which Python lines of kernels lanes have executed: what tracer, emulator and launches tell whoever records it.

Nothing is told unless a :class:`Recorder` is there, which `ptxdsl.coverage` sets: these parts know nothing of it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

from .errors import Loc

__all__ = ["Event", "Mark", "Recorder", "recorder", "set_recorder"]

Event = Literal["executed", "entered", "skipped", "taken", "passed"]
"""What lanes did at a line: executed an instruction of it, entered or skipped its block, took its branch or went past
it."""


class Mark(NamedTuple):
    """An event at a line of Python."""

    file: str
    line: int
    event: Event

    @classmethod
    def at(cls, loc: Loc, event: Event) -> Mark:
        """The mark of a line."""
        return cls(loc.file, loc.line, event)


class Recorder(Protocol):
    """Records what kernels execute, for as long as the process lasts."""

    def place(self, mark: Mark) -> int:
        """The address of the byte that emulated code sets to 1 where lanes do this."""

    def traced(self, trace: Any) -> None:
        """A trace has ended, or failed; its statements are there."""

    def hoisted(self, kernel: str, statements: list[Any]) -> int:
        """How many statements at the beginning of a kernel the tracer has moved there."""

    def launched(self) -> None:
        """A launch on the emulator has ended, or failed."""

    def not_recorded(self, kernel: str) -> None:
        """A kernel is launched on a GPU, where nothing is recorded."""


_recorder: Recorder | None = None


def recorder() -> Recorder | None:
    """Who records; None where nobody does."""
    return _recorder


def set_recorder(new: Recorder) -> None:
    """Have all kernels recorded that are launched for the first time from now on."""
    global _recorder  # noqa: PLW0603
    _recorder = new
