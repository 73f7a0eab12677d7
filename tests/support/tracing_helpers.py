"""What the tests of the language share: the PTX of a function as bare lines, and the error that a wrong one gets."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from typing import Any

import pytest

from ptxdsl.errors import PtxError
from ptxdsl.text import to_text
from ptxdsl.language import trace
from ptxdsl.language.tracing import check_source

_NOISE = re.compile(r"\s*(\.(loc|reg|file|version|target|address_size)|ld\.param|$)")


def ptx(function: Callable[..., Any], **constants: Any) -> list[str]:
    """The labels and instructions of a kernel function, parameters loaded and declarations left out.

    Lines in labels are counted from the function's ``def``: what stands on its next line is line 1.
    """
    code = function.__code__
    text = to_text(trace(function, constants=constants))
    lines = text[text.index("\n{") + 2 : text.rindex("\n}")].splitlines()
    first = code.co_firstlineno
    return [
        re.sub(r"(\$[a-z]+_)(\d+)", lambda match: f"{match[1]}{int(match[2]) - first}", line.strip().rstrip(";"))
        for line in lines if not _NOISE.match(line)
    ]


def refused(function: Callable[..., Any], **constants: Any) -> PtxError:
    """The error of a kernel function, at decoration or while it is traced."""
    try:
        check_source(function)
        trace(function, constants=constants)
    except PtxError as error:
        return error
    pytest.fail(f"{function.__name__} was accepted")


def said(error: PtxError, function: Callable[..., Any]) -> tuple[str, ...]:
    """An error as the user reads it: its kind, message, source line and hint, lines counted from the ``def``."""
    first = function.__code__.co_firstlineno
    message = re.sub(r"\bline (\d+)", lambda match: f"line {int(match[1]) - first}", error.message)
    assert error.loc is not None
    assert error.loc.file == function.__code__.co_filename
    return type(error).__name__, message, error.loc.source, error.hint or ""


def marked(function: Callable[..., Any]) -> tuple[int, str]:
    """The line of a program that is marked ``# wrong: name``, or of the helper that it names with ``# in: helper``."""
    lines = linecache.getlines(function.__code__.co_filename)
    number = function.__code__.co_firstlineno
    while "# wrong: " not in lines[number - 1]:
        if "# in: " in lines[number - 1]:
            helper = lines[number - 1].split("# in: ")[1].strip()
            number = next(k for k, text in enumerate(lines, 1) if text.lstrip().startswith(f"def {helper}("))
        number += 1
    return number, lines[number - 1].split("# wrong: ")[1].split("  #")[0].strip()
