"""Objects of ptxdsl that are called or indexed and cannot be: `ptx.laneid()`, `x(0)`, `shared[f32, 16]`.

Python's TypeError names a class of ours and carries no line of the user's. It is caught when the kernel function ends,
and raised again with the expression as the user has written it, and with what to write instead. Where the source
cannot be read, Python's words stay.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ...errors import Loc, PtxTypeError
from ...ir.signature import ArrayType, PtrType
from ...types import pred
from ..instruction_names import Name
from ..introspection.source import tree_of
from .call_errors import kinds
from .python_protocol import RunTime

__all__ = ["wrong_brackets"]

_REFUSED = re.compile(
    r"'(?P<kind>\w+)' object is not (?P<use>callable|subscriptable)|type '\w+' is not subscriptable"
)
_VALUES = ("Result", "Reg", "Parameter", "Negated")


def wrong_brackets(
    error: TypeError, place: tuple[FrameType, Loc] | None, innermost: FrameType | None
) -> PtxTypeError | None:
    """The error for such an expression in the user's line at ``place``; None if Python's error is of another kind."""
    found = _REFUSED.match(str(error))
    if place is None or found is None or place[0] is not innermost:
        return None
    frame, loc = place
    said = (_called if found["use"] == "callable" else _indexed)(found["kind"], frame, loc.line)
    return None if said is None else PtxTypeError(said[0], loc=loc, hint=said[1])


def _called(kind: str, frame: FrameType, line: int) -> tuple[str, str] | None:
    for node in _nodes(frame, line):
        if not isinstance(node, ast.Call):
            continue
        known, value = _value(node.func, frame)
        if known and type(value).__name__ != kind:
            continue
        arguments = ", ".join(map(ast.unparse, node.args))
        said = _of_call(kind, value, node.func, frame, arguments)
        if said is not None:
            return said
    return None


def _of_call(kind: str, value: Any, func: ast.expr, frame: FrameType, arguments: str) -> tuple[str, str] | None:
    """What an object is that was called, and how it is written."""
    text, first = ast.unparse(func), arguments or "i"
    if isinstance(_value(_root(func), frame)[1], Name):
        if kind == "Namespace":
            return f"`{text}` is called, and names the instructions", '`ptx.add.u32(a, b)`, `ptx["add.u32"](a, b)`'
        return f"`{text}` is a special register, not a function", f"`{text}`, without `()`"
    if kind == "Vec":
        return f"`{text}`, a Vec, is not called", f"`{text}[{arguments or 0}]` is one of its values"
    if kind in _VALUES:
        shown = f"`{text}`, a run-time {value._kind() if isinstance(value, RunTime) else 'value'},"
        if getattr(value, "type", None) is pred:
            return f"{shown} is not called", f"`with when({text}):`, `select({text}, a, b)`"
        factor = text if isinstance(func, (ast.Name, ast.Attribute, ast.Subscript)) else f"({text})"
        product = f"; a product is `{factor} * ({arguments})`" if arguments else ""
        return f"{shown} is not called", f"`{text}`, without `({arguments})`{product}"
    if isinstance(value, RunTime) and hasattr(value, "at"):
        return f"`{text}`, a run-time {value._kind()}, is not called", (
            f"`{text}[{first}]` is an element, `{text}.at({first})` its address"
        )
    if kind == "TensorMapValue":
        return f"`{text}`, a run-time TensorMap, is not called", (
            f"`ptxdsl.tma.load(tile, {text}, (row, column), bar)` copies a box of it"
        )
    if kind == "label":
        return f"`{text}`, a label, is not called", f"`{text}.here()` places it, `ptx.bra({text})` goes there"
    if kind in (PtrType.__name__, ArrayType.__name__):
        return f"`{text}` is the type of a parameter, not a conversion", "`p.cast(u32)` makes another pointer of one"
    if kind == "tuple" and text.endswith(".shape"):
        return f"`{text}`, a tuple, is not called", f"`{text}[{arguments or 0}]`"
    if kind == "module" and getattr(value, "__name__", "").startswith("ptxdsl"):
        names = [f"`{text}.{name}`" for name in value.__all__ if name[0].islower()]
        return f"`{text}` is a module, not a function", "it has " + ", ".join([*names[:4], ".."])
    return None


def _indexed(kind: str | None, frame: FrameType, line: int) -> tuple[str, str] | None:
    for node in _nodes(frame, line):
        if isinstance(node, ast.Subscript):
            text, (known, value) = ast.unparse(node.value), _value(node.value, frame)
            given = ast.unparse(node.slice)
            given = given[1:-1] if isinstance(node.slice, ast.Tuple) and given.startswith("(") else given
            method = node.value.attr if not known and isinstance(node.value, ast.Attribute) else ""
            if _is_ours(value) or (kind == "method" and any(method in vars(each) for each in kinds(RunTime))):
                return f"`{text}` is called, not indexed", f"`{text}({given})`"
    return None


def _is_ours(value: object) -> bool:
    """Whether it is a function, class or method of ptxdsl."""
    if isinstance(getattr(value, "__self__", None), RunTime):
        return True
    return callable(value) and (getattr(value, "__module__", None) or "").startswith("ptxdsl.")


def _nodes(frame: FrameType, line: int) -> Iterator[ast.Call | ast.Subscript]:
    """The calls and elements of a line."""
    tree = tree_of(frame.f_code)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.Call, ast.Subscript)) and node.lineno <= line <= (node.end_lineno or line):
            yield node


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _value(node: ast.expr, frame: FrameType) -> tuple[bool, Any]:
    """Whether it is known what an expression is, and what; of names and what they have only, for which nothing runs."""
    if isinstance(node, ast.Name):
        for scope in (frame.f_locals, frame.f_globals, vars(builtins)):
            if node.id in scope:
                return True, scope[node.id]
    if isinstance(node, ast.Attribute):
        known, owner = _value(node.value, frame)
        if known and not isinstance(owner, Name) and hasattr(owner, node.attr):
            return True, getattr(owner, node.attr)
    return False, None
