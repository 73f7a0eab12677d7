"""What was found in files, as text for people, as JSON, and as SARIF 2.1.0 for editors and code review."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .diagnostics import Diagnostic, kinds
from .files import CheckedFile

__all__ = ["as_json", "as_sarif", "as_text"]

FORMAT = 1
"""Of the JSON: raised where a field changes its meaning or goes."""


def as_text(checked: Sequence[CheckedFile]) -> str:
    """The diagnostics, and a line for each file."""
    lines: list[str] = []
    for file in checked:
        lines += [str(found) for found in file.diagnostics]
        lines += [f"{file.file}: note: {reason}" for reason in file.skipped]
        lines.append(f"{file.file}: {_summary(file)}")
    return "\n".join(lines)


def _summary(file: CheckedFile) -> str:
    kernels = "; ".join(f"{k['name']}, {k['instructions']} instructions, for {k['target']}" for k in file.kernels)
    errors = sum(found.level == "error" for found in file.diagnostics)
    warnings = len(file.diagnostics) - errors
    counts = [f"{n} {word}{'s' * (n != 1)}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
    return f"{kernels or 'no kernel'}: {', '.join(counts) or 'no errors'}"


def as_json(checked: Sequence[CheckedFile]) -> str:
    """One object: ``format``, ``ptxdsl``, ``ok`` and ``files``."""
    return json.dumps({
        "format": FORMAT, "ptxdsl": version("ptxdsl"), "ok": all(file.ok for file in checked),
        "files": [file.record() for file in checked],
    }, indent=2)


def as_sarif(checked: Sequence[CheckedFile]) -> str:
    """A SARIF 2.1.0 log with one run."""
    known = kinds()
    rules = [{"id": code, "name": name, "shortDescription": {"text": text}} for code, (name, text) in known.items()]
    driver = {"name": "ptxdsl", "version": version("ptxdsl"), "rules": rules}
    numbers = {code: number for number, code in enumerate(known)}
    return json.dumps({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
        "runs": [{
            "tool": {"driver": driver}, "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": reason}} for file in checked for reason in file.skipped
                ],
            }],
            "results": [_result(found, file.file, numbers) for file in checked for found in file.diagnostics],
        }],
    }, indent=2)


def _result(found: Diagnostic, file: str, numbers: dict[str, int]) -> dict[str, Any]:
    text = found.message if found.hint is None else f"{found.message}\nhint: {found.hint}"
    result: dict[str, Any] = {
        "ruleId": found.code, "ruleIndex": numbers[found.code], "level": found.level, "message": {"text": text},
        "locations": [_location(found.file or file, found.line, found.column)],
    }
    if found.related:
        result["relatedLocations"] = [
            {**_location(access["file"], access["line"], None), "message": {"text": f"{name}: {access['instruction']}"}}
            for name, access in found.related
        ]
    return result


def _location(file: str, line: int | None, column: int | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    if line:
        physical["region"] = {"startLine": line, **({"startColumn": column} if column else {})}
    return {"physicalLocation": physical}


def _uri(file: str) -> str:
    """A relative path as it is, so that it is of the repository; an absolute one as a file URI."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
