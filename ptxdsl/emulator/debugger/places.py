"""Where the statements of a kernel come from: lines, the helpers that run there, and where a breakpoint stops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from ...errors import Loc
from ...ir import Function, Instruction, Register, Symbol
from ...types import ScalarType
from ..codegen.code import Code
from ..tools.observed_thread import typed_registers
from ..tools.variable_names import Constant, Held, Names

__all__ = ["Frame", "Places", "Registers"]


class Frame(NamedTuple):
    """A function that runs: ``loc`` is None where only the PTX has a line."""

    function: str
    loc: Loc | None
    ptx_line: int
    variables: Mapping[str, Held]
    constants: Mapping[str, Constant]


class Registers:
    """The registers of a kernel: their declared types, the statements that write each, the types of their numbers."""

    def __init__(self, code: Code, declared: Iterable[Register]) -> None:
        self.declared: dict[str, ScalarType] = {register.name: register.type for register in declared}
        self.writers: dict[str, list[int]] = {}
        for place, op in enumerate(code.graph.def_use):
            for register in op.writes:
                self.writers.setdefault(register.name, []).append(place)
        self.types: dict[str, ScalarType] = {}
        """Of registers of bits: by the instructions that write them, or else read them."""
        for written in (True, False):
            for statement in code.graph.statements:
                for name, kind in typed_registers(statement, written):
                    if kind.kind != "b":
                        self.types.setdefault(name, kind)


class Places:
    """The statements of one kernel by their numbers.

    ``functions`` are the lines of PTX that belong to functions that the kernel calls, with the names of these.
    """

    def __init__(
        self, function: Function, code: Code, names: Names | None, functions: Mapping[int, str]
    ) -> None:
        self.kernel, self.statements = function.name, list(code.graph.statements)
        self.names, self._functions = names, functions
        self.registers = Registers(code, function.registers)
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
            yield Frame(called, statement.loc, statement.line, {}, {})
            yield from self.frames(self._call(place))
            return
        known = self.names.frames(statement.line) if self.names is not None else ()
        if not known:
            yield Frame(self.kernel, statement.loc, statement.line, {}, {})
        for number, frame in enumerate(known):
            loc = statement.loc if number == 0 and statement.loc is not None else Loc(frame.file, frame.line)
            yield Frame(frame.function, loc, statement.line, frame.variables, frame.constants)

    def _call(self, place: int) -> int:
        """The statement of the kernel before what it has called: functions stand where they are called."""
        lines = ((number, self.statements[number].line) for number in range(place, -1, -1))
        return next((number for number, line in lines if line and line not in self._functions), 0)

    def depth(self, place: int) -> int:
        """How many functions run there."""
        return len(self.frames(place))

    def line(self, place: int) -> Loc | int:
        """The line that a statement comes from: of Python, or of the PTX of a kernel that was loaded."""
        statement = self.statements[place]
        return Loc(*statement.loc) if statement.loc is not None and self.names is not None else statement.line

    @cached_property
    def hoisted(self) -> frozenset[int]:
        """The statements at the begin that load parameters and addresses of arrays for lines that come later."""
        head = 0
        for statement in self.statements:
            if not isinstance(statement, Instruction) or not _loads(statement):
                break
            head += 1
        return frozenset(range(head)) if head < len(self.statements) else frozenset()

    @cached_property
    def _lines(self) -> list[frozenset[Loc | None]]:
        """The lines of each statement: its own, and those of the calls of helpers that have led to it."""
        return [
            frozenset([self.statements[place].loc, *(frame.loc for frame in self.frames(place)[1:])])
            for place in range(len(self.statements))
        ]

    def at_line(self, file: str | None, line: int) -> list[int]:
        """Where a breakpoint stops; ``file`` None is the PTX text."""
        if file is None:
            return [n for n, s in enumerate(self.statements) if s.line == line]
        wanted = Loc(file, line)
        here = [n for n, lines in enumerate(self._lines) if wanted in lines]
        later = [n for n in here if n not in self.hoisted] or here
        return [n for n in later if n == 0 or wanted not in self._lines[n - 1] or n - 1 not in later]

    def lines(self, file: str | None) -> list[int]:
        """The lines of a file, of the PTX text if that is None, that have instructions, or call what has."""
        if file is None:
            return sorted({s.line for s in self.statements})
        found = {loc for lines in self._lines for loc in lines if loc is not None}
        return sorted(loc.line for loc in found if loc.file == file)

    @cached_property
    def files(self) -> set[str]:
        """The files of Python that statements come from."""
        return {loc.file for lines in self._lines for loc in lines if loc is not None}


def _loads(statement: Instruction) -> bool:
    """Whether it loads a parameter, or the address of a variable."""
    symbols = statement.form.opcode == "mov" and isinstance(statement.operands[-1], Symbol)
    return statement.form.space == "param" or symbols
