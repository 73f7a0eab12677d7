"""The plugin: which files it takes, which of their lines it leaves to the emulator, and how files are reported."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

from coverage import CoveragePlugin
from coverage.exceptions import ConfigError
from coverage.misc import join_regex
from coverage.phystokens import source_token_lines
from coverage.plugin import CodeRegion, FileReporter, FileTracer
from coverage.regions import code_regions

from ..executed_lines import set_recorder
from ..language.introspection.call_sites import is_user_file
from .branches import Arc, Branches
from .recorder import KernelRecorder

__all__ = ["KernelFile", "KernelPlugin", "KernelReporter"]

_OF_KERNELS = re.compile(rb"\bptxdsl\b|\bptx_kernel\b")


class KernelPlugin(CoveragePlugin):
    """Takes the files that mention ptxdsl."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        given = [name for name in options if not name.startswith("_")]
        if given:
            raise ConfigError(f"the plugin ptxdsl.coverage has no options, and {', '.join(given)} came")
        self.exclude = self.partial = ""
        self._taken: dict[str, bool] = {}
        self._recorder: KernelRecorder | None = None

    def configure(self, config: Any) -> None:
        """Take over what coverage.py excludes, and choose the core that asks plugins; a ConfigError for another."""
        _choose_core(config)
        self.exclude = join_regex(config.get_option("report:exclude_lines"))
        always = config.get_option("report:partial_branches_always")
        self.partial = join_regex([*config.get_option("report:partial_branches"), *always])

    def _takes(self, filename: str) -> bool:
        taken = self._taken.get(filename)
        if taken is None:
            try:
                taken = is_user_file(filename) and bool(_OF_KERNELS.search(Path(filename).read_bytes()))
            except OSError:
                taken = False
            self._taken[filename] = taken
        return taken

    def file_tracer(self, filename: str) -> FileTracer | None:
        """What measures a file; None for those that mention no ptxdsl."""
        if not self._takes(filename):
            return None
        if self._recorder is None:
            name = self._coverage_plugin_name
            self._recorder = KernelRecorder(name, lambda file: Branches(file, self.exclude))
            set_recorder(self._recorder)
        return KernelFile(filename, self._recorder)

    def file_reporter(self, filename: str) -> FileReporter:
        """What reports a file."""
        return KernelReporter(filename, self.exclude, self.partial)

    def find_executable_files(self, src_dir: str) -> Iterable[str]:
        """Yield the files of a folder that the plugin takes: also what was never imported is reported by it."""
        for path in sorted(Path(src_dir).rglob("*.py")):
            if self._takes(str(path)):
                yield str(path)


class KernelFile(FileTracer):
    """Measures a file: Python's lines as ever, and while a kernel is traced none."""

    def __init__(self, filename: str, recorder: KernelRecorder) -> None:
        self._filename, self._recorder = filename, recorder
        self._thread: Any = None

    def source_filename(self) -> str:
        """Return the file itself."""
        return self._filename

    def line_number_range(self, frame: FrameType) -> tuple[int, int]:
        """Give the line that runs; none while a kernel is traced."""
        thread = self._thread
        if thread is None:
            self._recorder.measured.add(self._filename)
            builder = sys.modules.get("ptxdsl.language.builder")
            thread = self._thread = getattr(builder, "thread", None)
        trace = thread and thread.trace
        if trace is None:
            return frame.f_lineno, frame.f_lineno
        self._recorder.line(trace, self._filename, frame)
        return -1, -1


class KernelReporter(FileReporter):
    """Reports a file, its kernels' branches among those of Python."""

    def __init__(self, filename: str, exclude: str, partial: str) -> None:
        super().__init__(filename)
        self.exclude, self.partial = exclude, partial

    @cached_property
    def branches(self) -> Branches:
        """The file as it was read."""
        return Branches(self.filename, self.exclude)

    def source(self) -> str:
        """Return the text of the file."""
        return self.branches.parser.text

    def lines(self) -> set[int]:
        """Return the lines of its statements."""
        return self.branches.parser.statements

    def excluded_lines(self) -> set[int]:
        """Return those that are excluded."""
        return self.branches.parser.excluded

    def translate_lines(self, lines: Iterable[int]) -> set[int]:
        """Return the first lines of the statements that lines belong to."""
        return self.branches.parser.translate_lines(lines)

    def arcs(self) -> set[Arc]:
        """Return the jumps that are possible."""
        return self.branches.arcs

    def translate_arcs(self, arcs: Iterable[Arc]) -> set[Arc]:
        """Return recorded arcs as they are reported."""
        return self.branches.translated(arcs)

    def no_branch_lines(self) -> set[int]:
        """Return the lines of which one side is enough."""
        return self.branches.parser.lines_matching(self.partial)

    def exit_counts(self) -> dict[int, int]:
        """Return how many arcs leave each line."""
        return self.branches.exits()

    def missing_arc_description(self, start: int, end: int, executed_arcs: Iterable[Arc] | None = None) -> str:  # noqa: ARG002
        """Say which side was not taken, for a branch of a kernel in words of lanes."""
        for event, arc in self.branches.sides.get(start, {}).items():
            if arc == (start, end):
                return f"line {start} was not {event} by any lane"
        return self.branches.parser.missing_arc_description(start, end)

    def arc_description(self, start: int, end: int) -> str:
        """Describe a jump."""
        return self.branches.parser.arc_description(start, end)

    def source_token_lines(self) -> Iterator[list[tuple[str, str]]]:
        """Give the file in tokens, for colours."""
        return source_token_lines(self.source())

    def code_regions(self) -> Iterable[CodeRegion]:
        """Return its functions and classes."""
        return code_regions(self.source())

    def code_region_kinds(self) -> Iterable[tuple[str, str]]:
        """Name the kinds of regions."""
        return [("function", "functions"), ("class", "classes")]


def _choose_core(config: Any) -> None:
    """Have coverage.py use its core in C, the only one that asks plugins which lines were executed.

    From Python 3.14 on another one is the usual.
    """
    core = config.get_option("run:core")
    if config.get_option("run:timid") or core not in (None, "ctrace"):
        given = "timid = true" if config.get_option("run:timid") else f"core = {core}"
        raise ConfigError(
            f"the plugin ptxdsl.coverage cannot count what kernels execute with `{given}`: of coverage.py's cores only "
            "ctrace asks plugins; write `core = ctrace`, or leave it out"
        )
    config.set_option("run:core", "ctrace")
