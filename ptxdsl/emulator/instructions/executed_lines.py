"""Marks of the lines that lanes execute, and of the sides of branches that they take, for coverage.

Which side of a Python block a branch is follows from its label and its line: blocks put their own line into the names
of their labels (``$endif_27``), and their branches have that line too; `break_if` and the like have another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...errors import Loc
from ...executed_lines import Event, Mark, Recorder
from ...ir import Call, Instruction, Label, LabelRef, Not
from .micro_op import MicroOp
from .operand_classes import OperandClass
from .operands import NOTHING, Field, raw

if TYPE_CHECKING:
    from .lowering import Lowering

__all__ = ["ExecutedLines", "MarkExecuted"]

_OF_BLOCK = re.compile(r"\$(loop|rest|endloop|endif|else)_(\d+)(?:_\d+)*(?:\$\d+)*$")
"""Where a function is called, its labels end in a number more."""


class MarkExecuted(MicroOp, may_fault=False, repeatable=True, inlinable="while coverage is measured"):
    """Sets a byte to 1 where some active lane has the guard hold."""

    guard: OperandClass


class ExecutedLines:
    """Adds the marks to the micro-ops of one function."""

    def __init__(self, low: Lowering, recorder: Recorder) -> None:
        self.low, self.recorder = low, recorder
        self.statements = low.graph.statements
        self.labels = _labels(low)
        self.rests = {m[2] for name in self.labels if (m := _OF_BLOCK.search(name)) and m[1] == "rest"}
        self.hoisted = recorder.hoisted(low.function.name, self.statements)
        self.marks: dict[int, dict[tuple[Mark, bool | None], None]] = {}
        for place, statement in enumerate(self.statements):
            loc = statement.loc
            if loc is not None and place >= self.hoisted:
                self._add(place, loc, "executed", True)
                for at, where, event, holds in self._sides(place, statement, loc):
                    self._add(at, where, event, holds)

    def before(self, place: int, begins: bool) -> None:
        """Emit the marks of a statement; ``begins``: it is the first one of its basic block."""
        statement = self.statements[place]
        before = None if begins or place == self.hoisted else self.statements[place - 1]
        for mark, holds in self.marks.get(place, ()):
            if mark.event == "executed" and before is not None and (before.loc, before.guard) == (statement.loc, None):
                continue  # which has set the same byte
            guard = NOTHING if holds is None else self._guard(statement, holds)
            self.low.emit(MarkExecuted(guard.kind), guard, raw("q", self.recorder.place(mark)))

    def _add(self, place: int, loc: Loc, event: Event, holds: bool | None) -> None:
        self.marks.setdefault(place, {})[Mark.at(loc, event), holds] = None

    def _guard(self, statement: Instruction | Call, holds: bool) -> Field:
        """The lanes for which a statement's guard holds, or does not."""
        if holds or statement.guard is None:
            return self.low.operands.guard(statement)
        guard = statement.guard
        inverse = guard.predicate if isinstance(guard, Not) else Not(guard)
        return self.low.operands.guard(_Guarded(inverse))

    def _sides(
        self, place: int, statement: Instruction | Call, loc: Loc
    ) -> Iterator[tuple[int, Loc, Event, bool | None]]:
        """Where a statement or its target tells of a side: the statement, the line, and for which lanes."""
        if isinstance(statement, Call) or not (statement.form.effects.branches or statement.form.effects.ends):
            return
        target = next((o.label for o in statement.operands if isinstance(o, LabelRef)), "")
        found = _OF_BLOCK.search(target)
        kind, line = (found[1], found[2]) if found else ("", "")
        own = line == str(loc.line)
        if kind == "endif" and not own and statement.guard is None:  # of the `otherwise` at this line
            yield place, loc, "skipped", True
        elif kind in ("endif", "else") and own:
            yield place, loc, "skipped", True
            yield place, loc, "entered", False
            before = self.statements[self.labels[target] - 1]
            if kind == "else" and before.loc is not None:
                yield place, before.loc, "entered", True
        elif kind in ("loop", "rest", "endloop") and own:
            yield from self._of_loop(place, loc, kind, target, line, statement.guard is None)
        elif statement.guard is not None:
            yield place, loc, "taken", True
            yield place, loc, "passed", False

    def _of_loop(
        self, place: int, loc: Loc, kind: str, target: str, line: str, always: bool
    ) -> Iterator[tuple[int, Loc, Event, bool | None]]:
        """A loop's own branch: past it, back to its begin, or to what unrolling leaves over."""
        if kind == "endloop":
            yield place, loc, "skipped", True
            if not always:
                yield place, loc, "entered", False
        elif self.labels[target] > place:
            yield place, loc, "entered", None
        else:
            yield self.labels[target], loc, "entered", None
            if not always and (kind == "rest" or line not in self.rests):
                yield place, loc, "skipped", False


class _Guarded:
    """A guard alone."""

    def __init__(self, guard: object) -> None:
        self.guard = guard


def _labels(low: Lowering) -> dict[str, int]:
    """The number of the statement that follows each label."""
    found, count = {}, 0
    for statement in low.function.body or ():
        if isinstance(statement, Label):
            found[statement.name] = count
        elif isinstance(statement, (Instruction, Call)):
            count += 1
    return found
