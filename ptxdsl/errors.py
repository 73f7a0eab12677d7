"""The errors and warnings of ptxdsl.

An error of ptxdsl has the place (Python file, line and source line), what came and what was wanted, and
offers a repair that can be pasted. The tree, with the stable code of each class::

    PtxError
    ├── TraceError                P100   a kernel function that cannot become PTX
    │   ├── PtxTypeError          P101   operand types or literals (also a TypeError)
    │   ├── UnknownInstruction    P102   no such opcode, modifier or special register (also an AttributeError)
    │   ├── EscapeError           P103   R1: a Value used outside the region that computed it
    │   ├── LostUpdateError       P104   R2: a name rebound inside a region
    │   ├── AliasError            P105   R3: an in-place change of a register that two names hold
    │   ├── TruthError            P106   R4: a run-time value asked for a Python truth or number (also a TypeError)
    │   ├── ControlFlowError      P107   R5: return, break or continue that leaves a region
    │   ├── StructureError        P108   R6: otherwise() without its when(), break_if() outside a loop, ...
    │   └── TargetError           P109   an instruction that the kernel's target or PTX version lacks
    ├── ParseError                P200   PTX text that is not PTX
    ├── VerifyError               P201   PTX that no assembler should see
    ├── AssembleError             P300   NVIDIA's assembler refused, or none was found
    ├── LaunchError               P400   grid, block, argument or backend that cannot be launched (also a ValueError)
    ├── DriverError               P401   the CUDA driver returned an error
    ├── ConfigError               P402   a PTXDSL_* variable with a value that is none (also a ValueError)
    └── EmulationError            P500   the kernel did something wrong while the emulator ran it
        ├── MemoryFault           P501   out of bounds, misaligned, null or use after free
        ├── UninitializedError    P502   a read of what was never written
        ├── RaceError             P503   two threads, one location, no order
        ├── BarrierError          P504   a barrier that not all threads can reach, or misuse of one
        ├── DeadlockError         P505   warps that wait for each other for ever
        ├── TrapError             P506   trap, or a failed check()
        └── NumericalError        P507   a result further from float64 than was allowed

    PtxWarning                    P600   something that may not be what was meant
    └── PerformanceWarning        P601   something that costs time
"""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any, ClassVar, NamedTuple

__all__ = [
    "AliasError", "AssembleError", "BarrierError", "ConfigError", "ControlFlowError", "DeadlockError", "DriverError",
    "EmulationError", "EscapeError", "LaunchError", "Loc", "LostUpdateError", "MemoryFault", "NumericalError",
    "ParseError",
    "PerformanceWarning", "PtxError", "PtxTypeError", "PtxWarning", "RaceError", "StructureError", "TargetError",
    "TraceError", "TrapError", "TruthError", "UninitializedError", "UnknownInstruction", "VerifyError", "caller",
    "did_you_mean", "is_internal", "similar", "with_article",
]


class Loc(NamedTuple):
    """A line of source: the file as Python names it, and the line number from 1."""

    file: str
    line: int

    @property
    def source(self) -> str:
        """The text of the line, stripped; empty where the source cannot be read."""
        return "" if self.file == "<string>" else linecache.getline(self.file, self.line).strip()

    @property
    def shown(self) -> str:
        """The file as people know it: a cell of a notebook by its number."""
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython is not None else None
        cell = shell.compile.format_code_name(self.file) if shell is not None else None
        return " ".join(cell) if cell else self.file

    def __str__(self) -> str:
        text = f"{self.shown}:{self.line}"
        return f"{text}: {self.source}" if self.source else text


class InlinedLoc(Loc):
    """A line of a function that a compiler has inlined: ``callers`` are the lines of the calls, innermost first."""

    callers: tuple[Loc, ...]

    @classmethod
    def of(cls, loc: Loc, callers: tuple[Loc, ...]) -> InlinedLoc:
        self = cls(*loc)
        self.callers = callers
        return self

    def __str__(self) -> str:
        return ", inlined at ".join(map(str, (Loc(*self), *self.callers)))


_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARY = os.path.join(_PACKAGE, "kernels") + os.sep


_FRAMEWORKS = ("torch", "jax", "jaxlib")
"""What calls a kernel in place of the user, who has called an op made of it."""


def caller() -> Loc | None:
    """The innermost line of Python outside this package (its kernel library is outside): the user's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_internal(frame):
            return Loc(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def is_internal(frame: FrameType) -> bool:
    """Whether a frame is of this package, or of what calls it in place of the user."""
    file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
    generated = (file == "<string>" and module.startswith("ptxdsl.")) or file.startswith(("<frozen ", "<eval_with"))
    plumbing = generated or module in ("functools", "contextlib") or module.partition(".")[0] in _FRAMEWORKS
    return plumbing or (file.startswith(_PACKAGE) and not file.startswith(_LIBRARY))


def similar(word: str, known: Iterable[str], most: int = 1, cutoff: float = 0.5) -> list[str]:
    """The known names that ``word`` may be a misspelling of, the likeliest first.

    >>> similar("emulater", ["gpu", "emulator"])
    ['emulator']
    """
    import difflib  # takes longer to import than ptxdsl.errors, and is only wanted when something is wrong

    return difflib.get_close_matches(word, list(known), n=most, cutoff=cutoff)


def did_you_mean(near: Iterable[str], shown: str = "`{}`", otherwise: str | None = None) -> str | None:
    """The hint that a `similar` name was meant; ``otherwise`` where there is none.

    >>> did_you_mean(similar("gdu", ["gpu", "emulator"]), "`backend={!r}`")
    "did you mean `backend='gpu'`?"
    """
    names = " or ".join(map(shown.format, near))
    return f"did you mean {names}?" if names else otherwise


_AN = re.compile(r"[aeio8]|1[18]\b|[fhlmnrsx]\d|nd|un(?!i[foqtv])|up|us(?!e)", re.IGNORECASE)
"""How a word begins that is spoken with a vowel: an f32, an int, an 8-bit number; but a u32, a uint8, a unit."""


def with_article(name: object) -> str:
    """A name with its indefinite article, as it is spoken.

    >>> [with_article(name) for name in ("u32", "f16", "bf16", "e4m3", "ndarray", "8-bit number")]
    ['a u32', 'an f16', 'a bf16', 'an e4m3', 'an ndarray', 'an 8-bit number']
    """
    return f"{'an' if _AN.match(str(name).lstrip('`')) else 'a'} {name}"


class PtxError(Exception):
    """Base of all errors of ptxdsl.

    ``loc`` is where (None if unknown), ``hint`` a repair that can be pasted, ``code`` the stable name of the kind.
    """

    code: ClassVar[str] = "P000"

    def __init__(self, message: str, *, loc: Loc | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.loc, self.hint = message, loc, hint

    def __str__(self) -> str:
        lines = [self.message, *self._places()]
        if self.hint is not None:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def _places(self) -> list[str]:
        return [] if self.loc is None else [f"  at {self.loc}"]

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.__dict__))


def _rebuild(kind: type[PtxError], state: dict[str, object]) -> PtxError:
    error = kind.__new__(kind, state["message"])
    error.__dict__.update(state)
    return error


class TraceError(PtxError):
    """A kernel function that cannot become PTX."""

    code = "P100"


class PtxTypeError(TraceError, TypeError):
    """Operands of the wrong type, or a literal that does not fit."""

    code = "P101"


class UnknownInstruction(TraceError, AttributeError):
    """An opcode, modifier or special register that PTX does not have."""

    code = "P102"


class EscapeError(TraceError):
    """A Value used outside the ``when``, ``loop`` or kernel that computed it (rule R1)."""

    code = "P103"


class LostUpdateError(TraceError):
    """A name rebound inside a region that is traced once (rule R2)."""

    code = "P104"


class AliasError(TraceError):
    """An in-place change of a register that two names hold (rule R3)."""

    code = "P105"


class TruthError(TraceError, TypeError):
    """A run-time value asked for a Python bool, int, length or iterator (rule R4)."""

    code = "P106"


class ControlFlowError(TraceError):
    """``return``, ``break`` or ``continue`` that leaves a region (rule R5)."""

    code = "P107"


class StructureError(TraceError):
    """``otherwise()`` without its ``when()``, ``break_if`` outside a loop and the like (rule R6)."""

    code = "P108"


class TargetError(TraceError):
    """An instruction that the kernel's target or PTX version does not have."""

    code = "P109"


class ParseError(PtxError):
    """PTX text that is not PTX; ``loc`` is the line of the text, ``column`` counts from 1."""

    code = "P200"

    def __init__(self, message: str, *, loc: Loc | None = None, hint: str | None = None, column: int = 0) -> None:
        super().__init__(message, loc=loc, hint=hint)
        self.column = column


class VerifyError(PtxError):
    """A PTX module that breaks a rule of the language."""

    code = "P201"


class AssembleError(PtxError):
    """NVIDIA's assembler refused the module, or no assembler was found; ``log`` holds what it printed."""

    code = "P300"

    def __init__(self, message: str, *, loc: Loc | None = None, hint: str | None = None, log: str = "") -> None:
        super().__init__(message, loc=loc, hint=hint)
        self.log = log


class LaunchError(PtxError, ValueError):
    """A grid, block, argument or backend that cannot be launched. Nothing ran."""

    code = "P400"


class DriverError(PtxError):
    """The CUDA driver returned an error; ``name`` is its name there (``CUDA_ERROR_...``)."""

    code = "P401"

    def __init__(self, message: str, *, loc: Loc | None = None, hint: str | None = None, name: str = "") -> None:
        super().__init__(message, loc=loc, hint=hint)
        self.name = name


class ConfigError(PtxError, ValueError):
    """An environment variable or setting with a value that is none."""

    code = "P402"


class EmulationError(PtxError):
    """The kernel did something wrong while the emulator ran it.

    ``block`` and ``thread`` are the (x, y, z) indices of the first thread concerned, ``ptx_line`` is the line of the
    PTX text and ``instruction`` its text; ``loc`` is the Python line. ``findings`` are all that the sanitizer found.
    """

    code = "P500"
    findings: tuple[object, ...] = ()

    def __init__(
        self, message: str, *, loc: Loc | None = None, hint: str | None = None,
        block: tuple[int, int, int] | None = None, thread: tuple[int, int, int] | None = None,
        ptx_line: int | None = None, instruction: str = "",
    ) -> None:
        super().__init__(message, loc=loc, hint=hint)
        self.block, self.thread = block, thread
        self.ptx_line, self.instruction = ptx_line, instruction

    def to_json(self) -> str:
        """The findings, or this error alone, as JSON: a list of objects with kind, message, place and thread."""
        import json

        return json.dumps(self._records(), indent=2)

    def _records(self) -> list[dict[str, object]]:
        file, line = self.loc or (None, None)
        own: dict[str, object] = {
            "kind": type(self).__name__, "message": self.message, "file": file, "line": line,
            "ptx_line": self.ptx_line, "instruction": self.instruction,
            "block": self.block and list(self.block), "thread": self.thread and list(self.thread), "hint": self.hint,
        }
        return [finding.record() for finding in self.findings] or [own]  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        from html import escape

        from .html_page import fragment, grid

        rows = []
        for record in self._records():
            rows.append([record["kind"], record["message"], *_access(record), record["hint"] or ""])
            rows += [["", name, *_access(record[name]), ""] for name in ("earlier", "use") if name in record]
        heads = ("kind", "what", "thread", "block", "place", "instruction", "hint")
        return fragment(f"<h3>{escape(type(self).__name__)}</h3>\n{grid(heads, rows)}")

    def _places(self) -> list[str]:
        lines = super()._places()
        if self.block is not None and self.thread is not None:
            lines.insert(0, f"  in block {self.block}, thread {self.thread}")
        if self.ptx_line is not None:
            lines.append(f"  PTX line {self.ptx_line}: {self.instruction}")
        return lines


def _access(record: Any) -> list[object]:
    """The thread, the block, the line with its source, and the instruction of a record."""
    loc = Loc(record["file"], record["line"]) if record["file"] else None
    place = f"{os.path.basename(loc.shown)}:{loc.line}\n{loc.source}" if loc else f"PTX line {record['ptx_line']}"
    who = (tuple(record[name]) if record[name] else "" for name in ("thread", "block"))
    return [*who, place, record["instruction"]]


class MemoryFault(EmulationError):
    """An access out of bounds, misaligned, through a null pointer or to freed memory."""

    code = "P501"


class UninitializedError(EmulationError):
    """A read of memory or a register that was never written."""

    code = "P502"


class RaceError(EmulationError):
    """Two threads touch one location, at least one writes, and nothing orders them."""

    code = "P503"


class BarrierError(EmulationError):
    """A barrier that not all threads can reach, or misuse of one."""

    code = "P504"


class DeadlockError(EmulationError):
    """Warps that wait for each other for ever."""

    code = "P505"


class TrapError(EmulationError):
    """The kernel executed ``trap``, or a ``check()`` failed."""

    code = "P506"


class NumericalError(EmulationError):
    """A result that is further from what it is in float64 than was allowed; nothing else is wrong with the launch."""

    code = "P507"


class PtxWarning(UserWarning):
    """Something that NVIDIA's tools warn about, or that may not be what was meant."""

    code: ClassVar[str] = "P600"


class PerformanceWarning(PtxWarning):
    """Something works, but costs time that a small change would save."""

    code = "P601"
