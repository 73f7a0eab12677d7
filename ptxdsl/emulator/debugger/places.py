"""Where the statements of a kernel come from: lines, the helpers that run there, and where a breakpoint stops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from ...errors import Loc
from ...ir import Call, Instruction
from ..tools.variable_names import Held, Names

__all__ = ["Frame", "Places"]


class Frame(NamedTuple):
    """A function that runs: ``loc`` is None where only the PTX has a line."""

    function: str
    loc: Loc | None
    ptx_line: int
    variables: Mapping[str, Held]


class Places:
    """The statements of one kernel by their numbers.

    ``functions`` are the lines of PTX that belong to functions that the kernel calls, with the names of these.
    """

    def __init__(
        self, kernel: str, statements: list[Instruction | Call], names: Names | None, functions: Mapping[int, str]
    ) -> None:
        self.kernel, self.statements, self.names, self._functions = kernel, statements, names, functions
        self._frames: dict[int, list[Frame]] = {}

    def frames(self, place: int) -> list[Frame]:
        """The functions that run at a statement, innermost first; the last is the kernel."""
        if place not in self._frames:
            self._frames[place] = list(self._found(place))
        return self._frames[place]

    def _found(self, place: int) -> Iterable[Frame]:
        statement = self.statements[place]
        called = self._functions.get(statement.line)
        if called is not None:
            yield Frame(called, statement.loc, statement.line, {})
            call = next((n for n in range(place, -1, -1) if self.statements[n].line not in self._functions), 0)
            yield from self.frames(call)
            return
        known = self.names.frames(statement.line) if self.names is not None else ()
        if not known:
            yield Frame(self.kernel, statement.loc, statement.line, {})
        for number, (function, file, line, variables) in enumerate(known):
            loc = statement.loc if number == 0 and statement.loc is not None else Loc(file, line)
            yield Frame(function, loc, statement.line, variables)

    def depth(self, place: int) -> int:
        """How many functions run there."""
        return len(self.frames(place))

    def line(self, place: int) -> Loc | int:
        """The line that a statement comes from: of Python, or of the PTX of a kernel that was loaded."""
        statement = self.statements[place]
        return Loc(*statement.loc) if statement.loc is not None and self.names is not None else statement.line

    @cached_property
    def starts(self) -> list[int]:
        """The statements with which another line begins: there a breakpoint at the line stops."""
        keys = [(self.line(place), self.depth(place)) for place in range(len(self.statements))]
        starts = [n for n, key in enumerate(keys) if n == 0 or keys[n - 1] != key]
        return [n for n in starts if not self._loads_parameters(n) or not self._again(n, starts)]

    def _loads_parameters(self, place: int) -> bool:
        """Whether nothing but the begin of the kernel is there, for a line that comes later."""
        statement = self.statements[place]
        return isinstance(statement, Instruction) and (
            statement.form.space == "param" or (statement.form.opcode == "mov" and place < self._head)
        )

    @cached_property
    def _head(self) -> int:
        """How many statements stand before the kernel's first line, for its parameters and the addresses of arrays."""
        loads = [s.form.space == "param" if isinstance(s, Instruction) else False for s in self.statements]
        return len(loads) - loads[::-1].index(True) if True in loads else 0

    def _again(self, place: int, starts: list[int]) -> bool:
        line = self.line(place)
        return any(other != place and self.line(other) == line and other >= self._head for other in starts)

    def at_line(self, file: str | None, line: int) -> list[int]:
        """Where a breakpoint stops; ``file`` None is the PTX text."""
        if file is None:
            return [n for n, s in enumerate(self.statements) if s.line == line]
        return [place for place in self.starts if self.statements[place].loc == (file, line)]

    def lines(self, file: str | None) -> list[int]:
        """The lines of a file, of the PTX text if that is None, that have instructions."""
        if file is None:
            return sorted({s.line for s in self.statements})
        return sorted({s.loc.line for s in self.statements if s.loc is not None and s.loc.file == file})

    @cached_property
    def files(self) -> set[str]:
        """The files of Python that statements come from."""
        return {s.loc.file for s in self.statements if s.loc is not None}
