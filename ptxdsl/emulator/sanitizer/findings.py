"""What the sanitizer finds: both lines and threads, the element, and how to repair it; and the error that raises it."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import EmulationError, Loc, MemoryFault, RaceError, UninitializedError

__all__ = ["Access", "Finding", "Index", "raised"]

Index = tuple[int, int, int]
SHOWN = 10
"""Findings that a report spells out."""


@dataclass(frozen=True)
class Access:
    """One side of a finding: what a thread did, and where the kernel says so."""

    verb: str
    block: Index
    thread: Index
    loc: Loc | None
    ptx_line: int | None
    instruction: str

    @property
    def line(self) -> Loc | int | None:
        """The Python line, where there is one, else the line of the PTX."""
        return self.loc or self.ptx_line

    def record(self) -> dict[str, object]:
        """It as what JSON has."""
        file, line = self.loc or (None, None)
        return {
            "file": file, "line": line, "ptx_line": self.ptx_line, "instruction": self.instruction,
            "block": list(self.block), "thread": list(self.thread),
        }

    def __str__(self) -> str:
        where = f" at {self.loc}" if self.loc is not None else ""
        line = f" (PTX line {self.ptx_line}: {self.instruction})" if self.ptx_line else ""
        return f"{self.verb} by thread {self.thread} of block {self.block}{where}{line}"


@dataclass(frozen=True)
class Finding:
    """One bug. ``kind`` is race, init or incomplete; ``earlier`` is the access before ``access``, where there is one.

    ``use`` is what decides with the value of ``access``, where that is at another line. ``array`` and ``element`` name
    the memory (``x`` and ``x[3, 70]``), ``space`` is its state space. ``count`` are the instructions of the line that
    do the same: a Python ``for`` makes many of one.
    """

    kind: str
    message: str
    access: Access
    earlier: Access | None = None
    array: str = ""
    element: str = ""
    space: str = ""
    hint: str | None = None
    use: Access | None = None
    count: int = 1

    @property
    def error(self) -> type[EmulationError]:
        """The error that it raises."""
        return _KINDS[self.kind]

    def record(self) -> dict[str, object]:
        """It as what JSON has."""
        first = self.access.record()
        others = {"earlier": self.earlier, "use": self.use}
        return {
            "kind": self.kind, "message": self.message, **first, "array": self.array, "element": self.element,
            "space": self.space, "hint": self.hint, "count": self.count,
            **{name: access.record() for name, access in others.items() if access is not None},
        }

    @property
    def others(self) -> str:
        """The other instructions of the line, behind the message."""
        more = self.count - 1
        return f"; {more} more instruction{'s do' if more > 1 else ' does'} the same at this line" if more else ""

    def __str__(self) -> str:
        lines = [f"{self.message}{self.others}", f"  {self.access}"]
        if self.earlier is not None:
            lines.append(f"  {self.earlier}")
        if self.use is not None:
            lines.append(f"  used by the {self.use}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


_KINDS: dict[str, type[EmulationError]] = {
    "race": RaceError, "order": RaceError, "cas": RaceError, "init": UninitializedError,
    "memory": MemoryFault,
}


def raised(findings: list[Finding]) -> EmulationError:
    """The error of the first finding, which lists the others; ``error.findings`` has them all."""
    first = findings[0]
    access = first.access
    lines = [f"{first.message}{first.others}"]
    if first.earlier is not None:
        lines.append(f"  after the {first.earlier}")
    if first.use is not None:
        lines.append(f"  used by the {first.use}")
    rest = findings[1:]
    if rest:
        lines.append(f"and {len(rest)} more finding{'s' if len(rest) > 1 else ''}:")
        lines += ["  " + str(finding).replace("\n", "\n  ") for finding in rest[:SHOWN]]
        if len(rest) > SHOWN:
            lines.append(f"  ... and {len(rest) - SHOWN} more")
    error = first.error(
        "\n".join(lines), loc=access.loc, hint=first.hint, block=access.block, thread=access.thread,
        ptx_line=access.ptx_line, instruction=access.instruction,
    )
    error.findings = tuple(findings)
    return error
