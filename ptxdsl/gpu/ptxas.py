"""A run of ptxas, and its diagnostics in terms of Python lines.

ptxas knows only lines of the PTX. The ``.loc`` directives in the text lead from there to the Python line, so nothing
but the text is needed: PTX of nvcc or Triton is reported in terms of its source in the same way. Text goes in and
machine code comes out through pipes.
"""

from __future__ import annotations

import re
import signal
import subprocess
import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

from .. import config
from ..errors import AssembleError, Loc, PerformanceWarning, PtxWarning, caller
from .tools import Assembler

__all__ = ["run", "version_and_target", "warn"]

_VERSION = re.compile(r"(?<!\S)\.version\s+(\d+)\.(\d+)")
_TARGET = re.compile(r"(?<!\S)\.target\s+(sm_\w+)")


def version_and_target(text: str) -> tuple[tuple[int, int], str]:
    """What the head of a PTX text says; AssembleError where it says nothing."""
    version, target = _VERSION.search(text), _TARGET.search(text)
    if version is None or target is None:
        raise AssembleError("this is no PTX module: it has no .version or no .target", loc=caller())
    return (int(version[1]), int(version[2])), target[1]


def run(assembler: Assembler, text: str, arch: str, options: Sequence[str]) -> tuple[bytes, str]:
    """The cubin and the log; AssembleError, located at the Python line, where the assembler refuses the text."""
    lineinfo = ["-lineinfo"] if re.search(r"^\s*\.loc\s", text, re.MULTILINE) and "-g" not in options else []
    command = [assembler.path, f"-arch={arch}", "-v", *lineinfo, *options, "/dev/stdin", "-o", "/dev/stdout"]
    start = perf_counter()
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    config.report("info", f"ptxas {assembler.version} for {arch} took {(perf_counter() - start) * 1e3:.1f} ms")
    log = done.stderr.decode(errors="replace")
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise AssembleError(f"ptxas {assembler.version} crashed ({name}) on this PTX for {arch}", loc=caller(), log=log)
    if done.returncode or not done.stdout.startswith(b"\x7fELF"):
        raise _refusal(assembler, text, arch, log + done.stdout.decode(errors="replace"))
    return done.stdout, log


# ---------------------------------------------------------------------------------------------------------------------
# Diagnostics


class _Diagnostic(NamedTuple):
    line: int
    severity: str
    message: str


_LINE = re.compile(r"^ptxas (?:\S+, line (\d+); )?(error|fatal|warning|info)\s*: (.*)$", re.MULTILINE)
_CODE = re.compile(r"\(C\d+\) ")


def _diagnostics(log: str) -> list[_Diagnostic]:
    return [_Diagnostic(int(line or 0), severity, message) for line, severity, message in _LINE.findall(log)]


def _python_line(lines: Sequence[str], ptx_line: int) -> Loc | None:
    """The ``.loc`` in force at a line of the text."""
    for text in reversed(lines[:ptx_line]):
        found = re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", text)
        if found:
            file = re.search(rf'^\s*\.file\s+{found[1]}\s+"((?:[^"\\]|\\.)*)"', "\n".join(lines), re.MULTILINE)
            return Loc(re.sub(r"\\(.)", r"\1", file[1]), int(found[2])) if file else None
        if re.match(r"\s*(\.visible\s+|\.weak\s+)*\.(entry|func)\b", text):
            return None
    return None


def _refusal(assembler: Assembler, text: str, arch: str, log: str) -> AssembleError:
    lines = text.splitlines()
    errors = [d for d in _diagnostics(log) if d.severity in ("error", "fatal") and "aborted due to" not in d.message]
    head = f"ptxas {assembler.version} does not assemble this for {arch}"
    if not errors:
        return AssembleError(f"{head}: {log.strip() or 'it says nothing'}", loc=caller(), log=log)
    loc = _python_line(lines, errors[0].line) if errors[0].line else caller()
    higher = "SM version specified by .target is higher" in errors[0].message
    target = _TARGET.search(text)
    hint = f'the PTX is for {target[1]}: `arch="{target[1]}"`' if higher and target else None
    parts = [head]
    for line, _, message in errors:
        parts.append(f"  {message}")
        if line:
            source = lines[line - 1].strip() if line <= len(lines) else ""
            place = _python_line(lines, line)
            parts.append(f"    PTX line {line}: {source}" + (f"  ({place.file}:{place.line})" if place else ""))
    return AssembleError("\n".join(parts), loc=loc, hint=hint, log=log)


_registry: dict[Any, Any] = {}
_STACK = "; a launch says how many bytes a thread may take: `.configure(grid, block, stack=16384)`"


def warn(text: str, log: str, *, stacks: bool) -> None:
    """Performance advice and warnings as Python warnings, at the Python line of the instruction that they are about."""
    lines: list[str] = []
    for line, severity, message in _diagnostics(log):
        if severity != "warning" and not _CODE.match(message):
            continue
        unknown_stack = message.startswith("Stack size")
        if unknown_stack and not stacks:
            continue
        lines = lines or text.splitlines()
        loc = _python_line(lines, line or _mentioned(lines, message)) or Loc("<ptx>", line or 1)
        kind = PerformanceWarning if "Performance" in message else PtxWarning
        advice = _STACK if unknown_stack else ""
        warnings.warn_explicit(f"ptxas: {message}{advice}", kind, loc.file, loc.line, registry=_registry)


def _mentioned(lines: Sequence[str], message: str) -> int:
    """The line of the first instruction that a message without a line names, 0 if it names none."""
    words = set(re.findall(r"[a-z]\w+(?:\.\w+)*", message))
    for number, text in enumerate(lines, 1):
        opcode = re.match(r"\s*(?:@!?%?\w+\s+)?([a-z]\w*)((?:\.[\w:]+)*)", text)
        if opcode and (opcode[1] in words or any((opcode[1] + opcode[2]).startswith(f"{word}.") for word in words)):
            return number
    return 0
