"""A line on stderr that says how far it is, where a person reads it."""

from __future__ import annotations

import shutil
import sys

from ..text_table import bar

__all__ = ["Progress"]


class Progress:
    """So many steps of ``what``; shown where stderr is a terminal, and gone when it is over."""

    def __init__(self, what: str, steps: int) -> None:
        self._what, self._steps, self._done = what, steps, 0
        self._shown = sys.stderr is not None and sys.stderr.isatty()

    def step(self, doing: str) -> None:
        """The next step begins."""
        if self._shown:
            share = self._done / self._steps
            self._write(f"{self._what} [{bar(share)}] {self._done + 1}/{self._steps} {doing}")
        self._done += 1

    def note(self, doing: str) -> None:
        """Something that belongs to no step."""
        if self._shown:
            self._write(f"{self._what}: {doing}")

    def _write(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r{text[:width].ljust(width)}")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._shown:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()
