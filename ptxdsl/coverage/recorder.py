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
from types import CodeType, FrameType
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
    """What is known of a file: its covered lines, as statements, and the arcs that traces took."""

    def __init__(self, branches: Branches) -> None:
        self.branches = branches
        self.covered: set[int] = set()
        self.traced: dict[int, set[Arc]] = {}
        """By the line that they lead to; by that which they leave where they end the function."""

    def take(self, line: int, event: Event) -> set[Arc]:
        """Note what lanes did at a line: its arcs."""
        line = self.branches.first(line)
        sides = self.branches.sides.get(line, {})
        if event in sides:
            return {*self.cover(line), sides[event]}
        return self.cover(line) if event in ("executed", "entered") else set()

    def cover(self, line: int) -> set[Arc]:
        """Note that a line is covered. Its arcs: (n, n) is the line, with whatever single line follows it."""
        self.covered.add(line)
        return {(line, line)} | {arc for arc in self.traced.get(line, ()) if arc[0] in self.covered}

    def trace(self, arc: Arc) -> None:
        """Note that a trace took an arc, if that is one side of a branch in Python."""
        start, end = self.branches.first(arc[0]), self.branches.first(arc[1])
        if start in self.branches.python:
            self.traced.setdefault(end if end > 0 else start, set()).add((start, end))


class _Lines:
    """What Python executes while a kernel is traced: lines, and arcs between those of one call."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace  # which keeps its id
        self.seen: set[tuple[str, int]] = set()
        self.arcs: set[tuple[str, Arc]] = set()
        self._last: dict[int, tuple[str, CodeType, int]] = {}
        """Where each call is, by its frame's id, which a later call may have again."""
        self._begins: dict[CodeType, int] = {}

    def add(self, filename: str, frame: FrameType) -> None:
        """Note the line of a frame."""
        line, code = frame.f_lineno, frame.f_code
        self.seen.add((filename, line))
        if frame.f_lasti == self._begins.setdefault(code, frame.f_lasti):
            self._leave(id(frame))
        else:
            self.arcs.add((filename, (self._last[id(frame)][2], line)))
        self._last[id(frame)] = filename, code, line

    def _leave(self, frame: int) -> None:
        filename, code, line = self._last.pop(frame, ("", None, 0))
        if code is not None:
            self.arcs.add((filename, (line, -code.co_firstlineno)))

    def end(self) -> None:
        """All calls have ended."""
        for frame in [*self._last]:
            self._leave(frame)


class KernelRecorder:
    """Records what this process's kernels execute.

    ``measured`` are the files that coverage.py measures with the plugin ``plugin``; ``branches`` reads one.
    """

    def __init__(self, plugin: str, branches: Callable[[str], Branches]) -> None:
        self.plugin, self.read = plugin, branches
        self.measured: set[str] = set()
        self._lock = locks.rlock()
        self._chunks: list[ctypes.Array[ctypes.c_char]] = []
        self._marks: dict[Mark, int] = {}
        self._order: list[Mark] = []
        self._files: dict[str, _File | None] = {}
        self._names: dict[str, str] = {}
        self._traces: dict[int, _Lines] = {}
        """Of each trace that has not ended."""
        self._hoisted: dict[str, list[list[Any]]] = {}
        self._told: dict[str, set[Arc]] = {}
        self._measuring: Any = None
        self._data: Any = None
        self._context: Any = None
        self._elsewhere: dict[str, None] = {}

    # -- of the tracer

    def line(self, trace: Any, filename: str, frame: FrameType) -> None:
        """A line of Python that is executed while a kernel is traced."""
        lines = self._traces.get(id(trace))
        if lines is None:
            lines = self._traces[id(trace)] = _Lines(trace)
        lines.add(filename, frame)

    def traced(self, trace: Any) -> None:
        """A trace has ended: the lines that have yielded no instruction are covered."""
        with self._lock:
            lines = self._traces.pop(id(trace), None) or _Lines(trace)
            lines.end()
            self._keep_hoisted(trace)
            yields: dict[str, set[int]] = {}
            for statement in trace.body:
                loc = getattr(statement, "loc", None)
                if loc is not None and (file := self._file(self._named(loc.file))) is not None:
                    yields.setdefault(self._named(loc.file), set()).add(file.branches.first(loc.line))
            for name, (a, b) in lines.arcs:
                if (file := self._file(name)) is not None:
                    file.trace((a, b))
            silent = []
            for name, line in lines.seen:
                file = self._file(name)
                if file is not None and (first := file.branches.first(line)) not in yields.get(name, ()):
                    silent.append((name, file, first))
                    file.covered.add(first)
            found: dict[str, set[Arc]] = {}
            for name, file, line in silent:
                found.setdefault(name, set()).update(file.cover(line))
            self._tell(found)

    def _keep_hoisted(self, trace: Any) -> None:
        known = self._hoisted.setdefault(trace.name, [])
        moved = [_alike(statement) for statement in trace.prologue]
        if moved not in known:
            known.append(moved)

    def hoisted(self, kernel: str, statements: list[Any]) -> int:
        """How many statements at the beginning of a kernel the tracer has moved there: they are of no line."""
        known = self._hoisted.get(kernel, ())
        return max((len(m) for m in known if [_alike(s) for s in statements[: len(m)]] == m), default=0)

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
            arcs: dict[str, set[Arc]] = {}
            for start, chunk in enumerate(self._chunks):
                found = chunk.raw
                at = found.find(b"\1")
                while at >= 0:
                    chunk[at] = b"\0"
                    mark = self._order[start * CHUNK + at]
                    name = self._named(mark.file)
                    if (file := self._file(name)) is not None:
                        arcs.setdefault(name, set()).update(file.take(mark.line, mark.event))
                    at = found.find(b"\1", at + 1)
            self._tell(arcs)

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

    def _tell(self, arcs: dict[str, set[Arc]]) -> None:
        """Add arcs of files to the data of the coverage that is measured, where that does not have them."""
        measuring = coverage.Coverage.current()
        if measuring is None:
            return
        if measuring is not self._measuring:
            self._measuring, self._data = measuring, measuring.get_data()  # which takes a millisecond
        data = self._data
        context = measuring, getattr(data, "_current_context", None)
        if context != self._context:  # with the name of a test, of which there are many
            self._context, self._told = context, {}
        for name, found in arcs.items():
            new = found - self._told.setdefault(name, set())
            if not new:
                continue
            self._told[name] |= new
            shown = relative_filename(name) if measuring.get_option("run:relative_files") else name
            if measuring.get_option("run:branch"):
                data.add_arcs({shown: new})
            else:
                data.add_lines({shown: {line for line, following in new if line == following}})
            data.touch_file(shown, self.plugin)


def _alike(statement: Any) -> Any:
    """What a statement that was printed and read again has in common with the one that was traced."""
    form = getattr(statement, "form", None)
    return statement.loc, form and form.mnemonic, [r.name for r in statement.writes()] if form else None
