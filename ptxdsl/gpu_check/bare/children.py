"""Recorded launches repeated in child processes: one that faults or hangs takes its process along, and no other launch.

A child says on its standard output, a line of JSON each, which launch it begins, what it does of it, and what came of
it. So the parent knows which launch was the last one of a child that is gone.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .driver import Driver
from .playing import Faulted, Result, play
from .tape import Tape

__all__ = ["About", "NoGpu", "child", "replay"]

STARTUP = 120.0
"""Seconds within which a child must have made a context."""
_TRIES = 3
"""Children that find no GPU any more before that is believed."""


class About(NamedTuple):
    """The GPU, as its driver tells."""

    name: str
    capability: int
    driver: int


class NoGpu(Exception):
    """No child came as far as a launch."""


def child(folder: Path, first: int) -> None:
    """Repeat the launches from number ``first`` on, until one faults."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what kernels print is no part of what is said

    def say(*words: Any) -> None:
        print(json.dumps(words), file=channel, flush=True)

    tape, driver = Tape.load(folder), Driver()
    say("about", driver.name, driver.capability, driver.version)
    for number in range(first, len(tape.cases)):
        try:
            result = play(driver, tape, tape.cases[number], lambda what: say("step", number, what))  # noqa: B023
        except Faulted as fault:
            say("result", number, "faults", str(fault))
            os._exit(0)  # the context is lost, and what would give it back hangs or fails
        say("result", number, *result)
    say("end")


class _Child:
    """A running child, and the last that it said."""

    def __init__(self, command: Sequence[str], folder: Path, first: int) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed in close
        self.process = subprocess.Popen(
            [*command, "--child", str(folder), str(first)], stdout=subprocess.PIPE, stderr=self.errors
        )
        self.about: About | None = None
        self.number, self.step = first, "start"
        self.ended = False

    def results(self, limit: float, startup: float) -> Any:
        """What comes of each launch; the last one "hangs" where nothing was said for ``limit`` seconds."""
        assert self.process.stdout is not None
        rest, pipe = b"", self.process.stdout.fileno()
        while not self.ended:
            ready, _, _ = select.select([pipe], [], [], limit if self.about else startup)
            if not ready:
                yield self.number, Result("hangs", f"{self.step}: nothing came of it in {limit:g} s")
                return
            chunk = os.read(pipe, 1 << 16)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield from self._heard(json.loads(line))

    def _heard(self, words: list[Any]) -> Any:
        if words[0] == "about":
            self.about = About(*words[1:])
        elif words[0] == "step":
            self.number, self.step = words[1:]
        elif words[0] == "result":
            self.number, self.step = words[1] + 1, "start"
            yield words[1], Result(*words[2:])
        else:
            self.ended = True

    def close(self) -> str:
        """End the process; the last that it wrote to standard error."""
        self.process.kill()
        self.process.communicate()
        with self.errors as file:
            file.seek(0)
            lines = file.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def replay(
    folder: Path, command: Sequence[str], *, limit: float = 20.0, startup: float = STARTUP,
    progress: Callable[[int, int, Result], None] = lambda *_: None,
) -> tuple[About, dict[int, Result]]:
    """Repeat all launches of a folder; ``command`` starts a child. Gives the GPU, and the results by number.

    Raises NoGpu where no child finds one.
    """
    total, results = len(Tape.load(folder).cases), dict[int, Result]()
    about, refused = None, 0

    def take(number: int, result: Result) -> None:
        results[number] = result
        progress(number, total, result)

    while len(results) < total:
        first = len(results)
        running = _Child(command, folder, first)
        for number, result in running.results(limit, startup):
            take(number, result)
        said = running.close()
        about = about or running.about
        if about is None:
            raise NoGpu(said or "the child process ended without a word")
        refused = refused + 1 if running.about is None else 0
        if refused == _TRIES:
            for number in range(len(results), total):
                take(number, Result("not replayable", f"the GPU is gone: {said}"))
        elif running.about is not None and len(results) < total and not _lost(results, first):
            code = running.process.returncode
            take(running.number, Result("faults", f"{running.step}: the process ended ({code}): {said}"))
    return about or About("none", 0, 0), results


def _lost(results: dict[int, Result], first: int) -> bool:
    """Whether what ended a child is told by the last of its launches."""
    last = results.get(len(results) - 1)
    return len(results) > first and last is not None and last.verdict in ("faults", "hangs")
