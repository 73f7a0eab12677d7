"""What the functions of a module share while it is read: the text, its files and lines, the names and heads."""

from __future__ import annotations

import re

from .. import ir
from ..errors import InlinedLoc, Loc
from .escape import unescape
from .source import Source, Token

__all__ = ["LOC", "Context"]

_FILE = re.compile(r'\.file\s+([0-9]{1,9})\s+"((?:\\.|[^"\\])*)"(?:\s*,\s*\d+\s*,\s*\d+)?')
_SECTION = re.compile(r"\s*([\w.$]+)\s*\{([^}]*)\}")
LOC = re.compile(
    r"\s*\.loc\s+([0-9]{1,9})\s+([0-9]{1,9})(?:[ \t]+(\d+))?(?:\s*,\s*function_name\s+[\w$.]+(?:\s*\+\s*\d+)?"
    r"\s*,\s*inlined_at\s+([0-9]{1,9})\s+([0-9]{1,9})\s+(\d+))?"
)
_MOST_CALLS = 16
"""Calls of inlined functions within each other that a place is given with."""


class Context:
    """What a module gives to its functions: the text, the files that lines are in, names and heads of functions."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.result = ir.Module()
        self.symbols: dict[str, ir.Symbol] = {}
        self.heads: dict[str, ir.Function] = {}
        self.registers: dict[str, ir.Register] = {}
        self.locals: list[ir.Variable] = []
        """What every function has: PTX before 3.0 can declare registers and local variables outside."""
        self._files = {int(m[1]): unescape(m[2]) for m in _FILE.finditer(source.text)}
        self._locs: dict[tuple[str, str], Loc | None] = {}
        self._calls: dict[tuple[str, ...], tuple[str, ...]] = {}
        """Where a place, its file, line and column, has been inlined last."""

    def location(self, match: re.Match[str]) -> Loc | None:
        """What a ``.loc`` means; None for line 0, and where no ``.file`` has the number."""
        file, line, column, *call = match.groups()
        loc = self._line(file, line)
        place = (file, line, column)
        if call[0] is None:
            self._calls.pop(place, None)
            return loc
        at = self._calls[place] = tuple(call)
        callers: list[Loc] = []
        while at and len(callers) < _MOST_CALLS:
            caller = self._line(*at[:2])
            callers += [caller] if caller is not None else []
            at = self._calls.get(at, ())
        return InlinedLoc.of(loc, tuple(callers)) if loc is not None and callers else loc

    def _line(self, file: str, line: str) -> Loc | None:
        key = (file, line)
        if key not in self._locs:
            name = self._files.get(int(file))
            self._locs[key] = Loc(name, int(line)) if int(line) and name is not None else None
        return self._locs[key]

    def file(self, token: Token) -> None:
        """``.file``, all of which have been read before: lines may name files that come after them."""
        match = _FILE.match(self.source.text, token.start)
        if match is None:
            self.source.fail('expected `.file number "name"`', token.start)
        self.source.at = match.end()

    def section(self, token: Token) -> None:
        """``.section name { ... }``, kept as it is."""
        match = _SECTION.match(self.source.text, self.source.at)
        if match is None:
            self.source.fail("expected `.section name { ... }`", token.start)
        self.source.at = match.end()
        lines = (line.strip() for line in match[2].splitlines())
        self.result.sections.append((match[1], "\n".join(line for line in lines if line)))
