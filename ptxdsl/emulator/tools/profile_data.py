"""What a profile holds: counters by instruction and by line, summed over the launches of each kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...errors import Loc
from ...ir import Call, Function, Instruction, Label
from ..machine.status import Count
from ..machine.unsupported import render
from .counters import Counters, counters_of

if TYPE_CHECKING:
    import numpy as np

__all__ = ["InstructionProfile", "KernelProfile", "LineProfile", "ProfileData", "total"]


@dataclass(frozen=True)
class InstructionProfile:
    """An instruction of a kernel: its place in the PTX text, its Python line, its share of all executions."""

    kernel: str
    ptx_line: int
    loc: Loc | None
    text: str
    share: float
    counters: Counters


@dataclass(frozen=True)
class LineProfile:
    """A Python line of a kernel (a line of the PTX where that is all there is), its share of all executions."""

    kernel: str
    loc: Loc
    source: str
    share: float
    counters: Counters
    instructions: tuple[InstructionProfile, ...] = field(repr=False)


class KernelProfile:
    """The counts of one kernel by statement; launches with blocks of any shape are added up."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.statements: list[Instruction | Call] = []
        self.counts: np.ndarray[Any, Any] | None = None
        self.launches = 0

    def allocate(self, statements: list[Instruction | Call]) -> np.ndarray[Any, Any]:
        """The counts, a row for each statement."""
        if self.counts is None:
            import numpy as np

            self.statements = statements
            self.counts = np.zeros((len(statements), Count.COLUMNS), np.int64)
        return self.counts

    def counters(self) -> Iterator[tuple[Instruction | Call, Counters]]:
        if self.counts is not None:
            for statement, row in zip(self.statements, self.counts.tolist()):
                yield statement, counters_of(statement, row)


class ProfileData:
    """Counters of kernels."""

    def __init__(self) -> None:
        self._kernels: dict[int, KernelProfile] = {}

    @property
    def launches(self) -> dict[str, int]:
        """How often each kernel was launched."""
        found: dict[str, int] = {}
        for kernel in self._kernels.values():
            found[kernel.function.name] = found.get(kernel.function.name, 0) + kernel.launches
        return found

    @property
    def instructions(self) -> list[InstructionProfile]:
        """The instructions of each kernel, in the order of the text."""
        rows = [
            (kernel.function.name, statement, counters)
            for kernel in self._kernels.values() for statement, counters in kernel.counters()
        ]
        executions = sum(counters.executions for _, _, counters in rows) or 1
        return [
            InstructionProfile(name, s.line, s.loc, render(s), counters.executions / executions, counters)
            for name, s, counters in rows
        ]

    @property
    def lines(self) -> list[LineProfile]:
        """The lines of each kernel, in the order of the source."""
        groups: dict[tuple[str, Loc], list[InstructionProfile]] = {}
        for row in self.instructions:
            groups.setdefault((row.kernel, row.loc or Loc("<ptx>", row.ptx_line)), []).append(row)
        found = [
            LineProfile(
                kernel, loc, loc.source or rows[0].text, sum(row.share for row in rows), total(rows), tuple(rows)
            )
            for (kernel, loc), rows in groups.items()
        ]
        order = {name: number for number, name in enumerate(self.launches)}
        return sorted(found, key=lambda line: (order[line.kernel], line.loc))

    def listing(self, kernel: str) -> Iterator[tuple[str, InstructionProfile | None]]:
        """The text of a kernel: its labels, and its instructions with their counters."""
        rows = iter([row for row in self.instructions if row.kernel == kernel])
        for one in self._kernels.values():
            if one.function.name != kernel or one.counts is None:
                continue
            for statement in one.function.body or ():
                if isinstance(statement, Label):
                    yield f"{statement.name}:", None
                elif isinstance(statement, (Instruction, Call)):
                    row = next(rows)
                    yield row.text, row

    @property
    def totals(self) -> Counters:
        """All that was counted."""
        return total(self.instructions)


def total(rows: Iterable[Any]) -> Counters:
    """The sum of rows' counters."""
    return sum((row.counters for row in rows), Counters())
