"""The branches of kernels as coverage.py shows them: which pairs of lines `when`, `loop` and their like jump between.

What the source of a file says; whether lanes have jumped there is :mod:`.recorder`'s part. ``with when(p):`` has an arc
to its first line and one to what follows it. ``with loop(n):`` is a Python ``for``: its last line goes back to it, and
it has an arc to what follows. `break_if`, `continue_if` and ``ptx.ret(pred=...)`` go there or to the next line.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from coverage.parser import PythonParser

from ..executed_lines import Event
from ..isa import opcodes, rows

__all__ = ["Branches"]

Arc = tuple[int, int]
_BLOCKS = ("when", "otherwise", "loop")
_JUMPS = ("break_if", "continue_if")


class Branches:
    """The lines, arcs and sides of branches of a file; ``exclude`` is what coverage.py excludes, a regular expression.

    ``sides[line][event]`` is the arc that lanes take, ``python`` are the lines where Python branches. CoverageException
    where the file cannot be read as Python.
    """

    def __init__(self, filename: str, exclude: str) -> None:
        self.parser = PythonParser(filename=filename, exclude=exclude)
        tree = ast.parse(self.parser.text)
        self.parser.parse_source()
        self.first = self.parser.first_line
        self.arcs = set(self.parser.arcs())
        self.sides: dict[int, dict[Event, Arc]] = {}
        self._names = _imported(tree)
        self._enter(tree.body, 0, None)
        leaving = Counter(start for start, _ in self.arcs)
        self.python = {line for line, count in leaving.items() if count > 1} - self.sides.keys()
        self.added = {arc for sides in self.sides.values() for arc in sides.values()}
        self.arcs |= self.added

    def exits(self) -> dict[int, int]:
        """How many arcs leave each line."""
        found: dict[int, int] = {}
        excluded = self.parser.excluded
        for start, end in self.arcs:
            if start not in excluded and end not in excluded:
                found[start] = found.get(start, 0) + 1
        return found

    def translated(self, arcs: Iterable[Arc]) -> set[Arc]:
        """Arcs as they are reported: those of Python's own ``with`` end where Python goes on behind it."""
        given = set(arcs)
        kernels = given & self.added
        return kernels | self.parser.translate_arcs(given - kernels)

    # -- from the source

    def _enter(self, body: Iterable[ast.AST], function: int, loop: Arc | None) -> None:
        """Find the branches in statements of a function, within a loop from a line to what follows it."""
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._enter(node.body, min([node.lineno, *(d.lineno for d in node.decorator_list)]), None)
                continue
            inner = loop
            if isinstance(node, ast.With):
                inner = self._with(node, function, loop)
            elif isinstance(node, ast.Expr):
                self._jump(node, function, loop)
            for part in _parts(node):
                self._enter(part, function, inner)

    def _with(self, node: ast.With, function: int, loop: Arc | None) -> Arc | None:
        """The sides of a block; the loop that its body is in."""
        name = self._called(node.items[0].context_expr)
        if len(node.items) != 1 or name not in _BLOCKS:
            return loop
        line, first, last = self.first(node.lineno), self.first(node.body[0].lineno), node.end_lineno or node.lineno
        leaving = {(a, b) for a, b in self.arcs if line < a <= last and not line <= b <= last}
        ends = {b for _, b in leaving}
        ends = ends - {-function} or ends  # where Python raises
        if len(ends) != 1 or first == line:
            return None if name == "loop" else loop
        end = next(iter(ends))
        self.arcs.add((line, first))
        if name == "loop":
            again = {(a, b) for a, b in leaving if b in ends}
            self.arcs -= again
            self.arcs |= {(a, line) for a, _ in again}
            if not self._bounded(node):
                self.sides[line] = {"entered": (line, first)}
                return line, end
        self.sides[line] = {"entered": (line, first), "skipped": (line, end)}
        return (line, end) if name == "loop" else loop

    @staticmethod
    def _bounded(node: ast.With) -> bool:
        call = node.items[0].context_expr
        return isinstance(call, ast.Call) and bool(call.args)

    def _jump(self, node: ast.Expr, function: int, loop: Arc | None) -> None:
        """The sides of a statement that leaves a loop, an iteration or the kernel."""
        name, call = self._called(node.value), node.value
        if not isinstance(call, ast.Call):
            return
        if name in _JUMPS and loop is not None and not any(isinstance(a, ast.Constant) for a in call.args):
            target = loop[name == "break_if"]
        elif _leaves(name) and any(keyword.arg == "pred" for keyword in call.keywords):
            target = -function
        else:
            return
        line = self.first(node.lineno)
        following = {end for start, end in self.arcs if start == line}
        if len(following) == 1 and target not in following:
            self.sides[line] = {"taken": (line, target), "passed": (line, following.pop())}

    def _called(self, node: ast.expr) -> str:
        """The name of ptxdsl's that an expression calls; "" if it calls none."""
        if not isinstance(node, ast.Call):
            return ""
        function = node.func
        if isinstance(function, ast.Name):
            name = self._names.get(function.id, "")
            return name if name in (*_BLOCKS, *_JUMPS) else ""
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            owner = self._names.get(function.value.id, "")
            if owner == "ptx":
                return function.attr if _leaves(function.attr) else ""
            return function.attr if owner == "ptxdsl" and function.attr in (*_BLOCKS, *_JUMPS) else ""
        return ""


def _leaves(name: str) -> bool:
    """Whether the instruction of this name ends the thread."""
    return name in opcodes() and any(
        form.effects.control in ("return", "exit") for row in rows(name) for form in row.forms(())
    )


def _parts(node: ast.AST) -> Iterator[list[ast.AST]]:
    """The lists of statements in a statement."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        part = getattr(node, name, None)
        if isinstance(part, list):
            yield part


def _imported(tree: ast.Module) -> dict[str, str]:
    """What the names of a file stand for: names of ptxdsl's, and ptxdsl itself."""
    found = {name: name for name in (*_BLOCKS, *_JUMPS, "ptx", "ptxdsl")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname: "ptxdsl" for alias in node.names if alias.name == "ptxdsl" and alias.asname}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ptxdsl":
            found |= {alias.asname or alias.name: alias.name for alias in node.names}
    return found
