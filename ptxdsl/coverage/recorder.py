"""What kernels have executed, told to coverage.py while it measures.

Emulated code sets a byte for each line and side of a branch (:mod:`ptxdsl.executed_lines`). After a launch the bytes
that are set become lines of coverage.py's data, or arcs where it measures branches, and are cleared. A line that
yields no instruction counts when it was traced; a line that does counts for nothing else.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import coverage
from coverage.exceptions import CoverageException
from coverage.files import canonical_filename, relative_filename

from .. import locks
from ..executed_lines import Event, Mark
from .branches import Arc, Branches

__all__ = ["KernelRecorder"]

CHUNK = 1 << 12


class _File:
    """What is known of a file: its covered lines, as statements, and the arcs that lanes or the trace took."""

    def __init__(self, branches: Branches) -> None:
        self.branches = branches
        self.covered: set[int] = set()
        self.sides: set[Arc] = set()
        self.traced: set[Arc] = set()

    def take(self, line: int, event: Event) -> None:
        """Note what lanes did at a line."""
        line = self.branches.first(line)
        if event in ("executed", "entered"):
            self.covered.add(line)
        sides = self.branches.sides.get(line)
        if sides is not None and event in sides:
            self.covered.add(line)
            self.sides.add(sides[event])

    def arcs(self) -> set[Arc]:
        """All that coverage.py is told: (n, n) is a line, with whatever single line follows it."""
        covered, sides = self.covered, self.branches.sides
        python = {(a, b) for a, b in self.traced if a in covered and (b in covered or b < 0) and a not in sides}
        return {(line, line) for line in covered} | python | self.sides


class KernelRecorder:
    """Records what this process's kernels execute. ``files`` are those that coverage.py measures with the plugin
    ``plugin``, ``branches`` reads one."""

    def __init__(self, plugin: str, branches: Callable[[str], Branches]) -> None:
        self.plugin, self.read = plugin, branches
        self.measured: set[str] = set()
        self._lock = locks.rlock()
        self._chunks: list[ctypes.Array[ctypes.c_char]] = []
        self._marks: dict[Mark, int] = {}
        self._order: list[Mark] = []
        self._files: dict[str, _File | None] = {}
        self._names: dict[str, str] = {}
        self._lines: dict[int, tuple[Any, dict[tuple[str, int], None], set[tuple[str, Arc]], dict[int, int]]] = {}
        """Of each trace that has not ended: itself, its lines, the arcs between them, and each frame's last line."""
        self._hoisted: dict[str, list[list[Any]]] = {}
        self._told: dict[tuple[int, Any, str], int] = {}
        self._elsewhere: dict[str, None] = {}

    # -- of the tracer

    def line(self, trace: Any, filename: str, frame: FrameType) -> None:
        """A line of Python that is executed while a kernel is traced."""
        lines = self._lines.get(id(trace))
        if lines is None:
            lines = self._lines[id(trace)] = trace, {}, set(), {}
        _, seen, arcs, last = lines
        before, line = last.get(id(frame)), frame.f_lineno
        seen[filename, line] = None
        if before is not None:
            arcs.add((filename, (before, line)))
        last[id(frame)] = line

    def traced(self, trace: Any) -> None:
        """A trace has ended: the lines that have yielded no instruction are covered."""
        with self._lock:
            _, seen, arcs, _ = self._lines.pop(id(trace), (None, {}, set(), {}))
            self._keep_hoisted(trace)
            yields: dict[str, set[int]] = {}
            for statement in trace.body:
                loc = getattr(statement, "loc", None)
                if loc is not None and (file := self._file(self._named(loc.file))) is not None:
                    yields.setdefault(self._named(loc.file), set()).add(file.branches.first(loc.line))
            for name, line in seen:
                file = self._file(name)
                if file is not None and file.branches.first(line) not in yields.get(name, ()):
                    file.covered.add(file.branches.first(line))
            for name, (a, b) in arcs:
                if (file := self._file(name)) is not None:
                    file.traced.add((file.branches.first(a), file.branches.first(b)))
            self._tell({name for name, _ in seen})

    def _keep_hoisted(self, trace: Any) -> None:
        known = self._hoisted.setdefault(trace.name, [])
        moved = [_alike(statement) for statement in trace.prologue]
        if moved not in known:
            known.append(moved)

    def hoisted(self, kernel: str, statements: list[Any]) -> int:
        """How many statements at the beginning of a kernel the tracer has moved there: they are of no line."""
        matching = [0]
        for moved in self._hoisted.get(kernel, ()):
            if [_alike(statement) for statement in statements[: len(moved)]] == moved:
                matching.append(len(moved))
        return max(matching)

    # -- of the emulator

    def place(self, mark: Mark) -> int:
        """The address of a mark's byte."""
        with self._lock:
            number = self._marks.get(mark)
            if number is None:
                number = self._marks[mark] = len(self._order)
                self._order.append(mark)
                if number == CHUNK * len(self._chunks):
                    self._chunks.append(ctypes.create_string_buffer(CHUNK))
            return ctypes.addressof(self._chunks[number // CHUNK]) + number % CHUNK

    def launched(self) -> None:
        """A launch has ended, or failed: what it has executed is covered."""
        with self._lock:
            files = set()
            for start, chunk in enumerate(self._chunks):
                found = chunk.raw
                at = found.find(b"\1")
                while at >= 0:
                    chunk[at] = b"\0"
                    mark = self._order[start * CHUNK + at]
                    name = self._named(mark.file)
                    if (file := self._file(name)) is not None:
                        file.take(mark.line, mark.event)
                        files.add(name)
                    at = found.find(b"\1", at + 1)
            self._tell(files)

    def not_recorded(self, kernel: str) -> None:
        """A kernel is launched on a GPU; the process's end says so."""
        if not self._elsewhere:
            atexit.register(self._say)
        self._elsewhere[kernel] = None

    def _say(self) -> None:
        print(
            f"ptxdsl.coverage: launches on a GPU are not counted, of kernel{'s' * (len(self._elsewhere) > 1)} "
            f"{', '.join(self._elsewhere)}; PTXDSL_BACKEND=emulator runs them where lines are counted", file=sys.stderr,
        )

    # -- to coverage.py

    def _named(self, filename: str) -> str:
        """A file as coverage.py names it to plugins."""
        found = self._names.get(filename)
        if found is None:
            found = self._names[filename] = canonical_filename(filename)
        return found

    def _file(self, name: str) -> _File | None:
        """A file that is measured; None for others."""
        if name not in self.measured:
            return None
        if name not in self._files:
            try:
                self._files[name] = _File(self.read(name))
            except (CoverageException, OSError):  # a doctest, or what exec runs under a file's name
                self._files[name] = None
        return self._files[name]

    def _tell(self, names: set[str]) -> None:
        """Add what is new of these files to the data of the coverage that is measured."""
        measuring = coverage.Coverage.current()
        if measuring is None:
            return
        data = measuring.get_data()
        context = getattr(data, "_current_context", None)
        relative = measuring.get_option("run:relative_files")
        for name in names:
            file = self._file(name)
            if file is None:
                continue
            key, arcs = (id(measuring), context, name), file.arcs()
            if self._told.get(key) == len(arcs):
                continue
            self._told[key] = len(arcs)
            shown = relative_filename(name) if relative else name
            if measuring.get_option("run:branch"):
                data.add_arcs({shown: arcs})
            else:
                data.add_lines({shown: file.covered})
            data.touch_file(shown, self.plugin)


def _alike(statement: Any) -> Any:
    """What a statement that was printed and read again has in common with the one that was traced."""
    form = getattr(statement, "form", None)
    return statement.loc, form and form.mnemonic, [r.name for r in statement.writes()] if form else None
