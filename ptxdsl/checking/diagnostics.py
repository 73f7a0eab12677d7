"""One thing that is wrong with a file, as a record: where, what, and the code that names its kind."""

from __future__ import annotations

import traceback
from dataclasses import asdict, dataclass, field
from typing import Any
from warnings import WarningMessage

from ..errors import AssembleError, EmulationError, PtxError, PtxWarning

__all__ = ["PYTHON", "Diagnostic", "kinds"]

PYTHON = "P001"
"""The code of an exception that is not ptxdsl's."""


@dataclass(frozen=True)
class Diagnostic:
    """An error or a warning at a line of a file; ``details`` is what a finding of the sanitizer has besides.

    >>> Diagnostic("P503", "RaceError", "error", "race on tile[3]", "k.py", 7).place
    'k.py:7'
    """

    code: str
    name: str
    level: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    source: str = ""
    hint: str | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """``file:line:column``, as far as it is known."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)

    @property
    def related(self) -> list[tuple[str, dict[str, Any]]]:
        """The other accesses of a finding that have a line: what each is, and its record."""
        accesses = ((name, self.details.get(name)) for name in ("earlier", "use"))
        return [(name, access) for name, access in accesses if access and access["line"]]

    def record(self) -> dict[str, Any]:
        """It as what JSON has."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.place or '<unknown>'}: {self.level} {self.code} {self.name}: {self.message}"]
        lines += [f"  {self.source}"] * bool(self.source)
        lines += [f"  {name}: {access['file']}:{access['line']}" for name, access in self.related]
        lines += [f"  hint: {self.hint}"] * bool(self.hint)
        return "\n".join(lines)

    @classmethod
    def of_error(cls, error: PtxError) -> list[Diagnostic]:
        """An error of ptxdsl; of the sanitizer's, each finding."""
        loc, kind = error.loc, type(error)
        findings = error.findings if isinstance(error, EmulationError) else ()
        if not findings:
            details: dict[str, Any] = {}
            if isinstance(error, EmulationError):
                details = {name: getattr(error, name) for name in ("block", "thread", "ptx_line", "instruction")}
            elif isinstance(error, AssembleError):
                details = {"log": error.log}
            column = getattr(error, "column", None) or None
            file, line = loc or (None, None)
            return [cls(
                kind.code, kind.__name__, "error", error.message, file, line, column, loc.source if loc else "",
                error.hint, details,
            )]
        return [cls._of_finding(finding) for finding in findings]

    @classmethod
    def _of_finding(cls, finding: Any) -> Diagnostic:
        record, kind, loc = finding.record(), finding.error, finding.access.loc
        message, hint = record.pop("message"), record.pop("hint")
        file, line = record.pop("file"), record.pop("line")
        return cls(
            kind.code, kind.__name__, "error", message, file, line, None, loc.source if loc else "", hint, record
        )

    @classmethod
    def of_exception(cls, error: BaseException, file: str) -> Diagnostic:
        """An exception of Python's, at the innermost line of ``file``."""
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        line, source = (frames[-1].lineno, frames[-1].line or "") if frames else (getattr(error, "lineno", None), "")
        message = traceback.format_exception_only(error)[-1].strip()
        return cls(PYTHON, type(error).__name__, "error", message, file, line, None, source)

    @classmethod
    def of_warning(cls, warning: WarningMessage) -> Diagnostic:
        """A warning of ptxdsl."""
        kind = warning.category
        assert issubclass(kind, PtxWarning)
        return cls(kind.code, kind.__name__, "warning", str(warning.message), warning.filename, warning.lineno)


def kinds() -> dict[str, tuple[str, str]]:
    """The name and the meaning of each code."""
    found = {PYTHON: ("Exception", "An exception that is not ptxdsl's, raised while the file ran.")}
    waiting: list[Any] = [PtxError, PtxWarning]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__ == PtxError.__module__:
            found[kind.code] = kind.__name__, (kind.__doc__ or "").splitlines()[0].replace("``", "`")
    return dict(sorted(found.items()))
