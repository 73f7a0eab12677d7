"""The source of a function as a syntax tree with the lines of its file, for the checks that only source allows."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
from collections.abc import Callable
from types import CodeType
from typing import Any

from ...ir.signature import closure_of
from .code_objects import PerCode

__all__ = ["Names", "lines_of", "mentions", "text_of", "tree_of"]


def lines_of(code: CodeType, scope: dict[str, Any] | None = None) -> list[str]:
    """The lines of a function's file; ``scope`` are the globals, which may know the loader.

    None of the texts that are all called ``<string>``: Python 3.13.0 keeps that of ``python -c`` by this name.
    """
    return [] if code.co_filename == "<string>" else linecache.getlines(code.co_filename, scope)


def mentions(code: CodeType, words: tuple[str, ...]) -> bool:
    """Whether the lines of a function, or those behind it, have any of the words; False where there is no source.

    A cheap filter: to find where the function ends takes Python's tokens, before 3.12 a millisecond the first time.
    """
    lines = lines_of(code)[code.co_firstlineno - 1 :]
    last = _last_line(code) - code.co_firstlineno
    indented = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    for number, line in enumerate(lines):
        text = line.lstrip()
        if number > last and text and len(line) - len(text) <= indented:
            break  # behind the last instruction there are at most statements that never run
        if any(word in line for word in words):
            return True
    return False


def _last_line(code: CodeType) -> int:
    """The last line that has an instruction of a function or of one within it."""
    lines = [line or 0 for *_, line in code.co_lines()]
    return max([*lines, *(_last_line(inner) for inner in code.co_consts if isinstance(inner, CodeType))], default=0)


@PerCode
def text_of(code: CodeType) -> str:
    """The source of a function; "" where there is none."""
    return _block(lines_of(code)[code.co_firstlineno - 1 :])


@PerCode
def tree_of(code: CodeType) -> ast.AST | None:
    """The syntax tree of a function; None where there is no source."""
    return _parse(text_of(code), code.co_firstlineno - 1)


def _parse(text: str, first: int) -> ast.AST | None:
    try:
        if text[:1].isspace():
            return ast.increment_lineno(ast.parse("if 1:\n" + text), first - 1)
        return ast.increment_lineno(ast.parse(text), first) if text else None
    except SyntaxError:
        return None


def _block(lines: list[str]) -> str:
    """The lines of the function that begins with the first one."""
    try:
        return "".join(inspect.getblock(lines)) if lines else ""
    except (SyntaxError, IndentationError):
        return ""


class Names:
    """The objects that the names in a function's source refer to, as far as that is known before it runs."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.scopes: list[dict[str, Any]] = [closure_of(function), function.__globals__, vars(builtins)]

    def value(self, node: ast.expr) -> object:
        """The object that a name or an attribute of one refers to; None where that is not known."""
        if isinstance(node, ast.Name):
            return next((scope[node.id] for scope in self.scopes if node.id in scope), None)
        if isinstance(node, ast.Attribute):
            return getattr(self.value(node.value), node.attr, None)
        return None
