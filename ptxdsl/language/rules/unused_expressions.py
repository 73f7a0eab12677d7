"""Unused expressions: `ptx.bar.sync` without its parentheses, `x[i] == v` where a store was meant.

Python computes such an expression and discards it, so that a barrier or a store is missing in silence. Refused, when a
kernel is decorated: a statement that only names an instruction, a method or a function of the language, or only
compares an element. In the helpers that it calls by name, when it is traced: names of instructions only, since the rest
may be meant for Python. The bytecode shows cheaply that there is no such statement; else the source is read.

What it cannot see: functions without source, and helpers reached through an attribute or a container. Comparisons of
values are found when they are traced, by `introspection.discarded`. Other expressions are merely useless.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from opcode import opmap, opname
from types import CodeType, FunctionType

from ...errors import Loc, PtxError, StructureError
from ..instruction_names import InstructionName, Name
from ..introspection.call_sites import is_user_file
from ..introspection.code_objects import PerCode
from ..introspection.source import Names, tree_of

__all__ = ["check", "check_helpers"]

_METHODS = frozenset(("load", "store", "set", "copy", "to", "bits", "unpack", "part", "cast", "generic", "here"))
_CACHE, _POP = opmap.get("CACHE", -1), opmap["POP_TOP"]
_VALUES = frozenset(
    number for number, name in enumerate(opname) if name.startswith(("LOAD_", "BINARY_", "COMPARE_OP", "IS_OP"))
)

_checked: dict[int, CodeType] = {}
"""The helpers without an unused expression, in themselves and in their own helpers, by their ids."""


def check(function: Callable[..., object]) -> None:
    """A StructureError for the first unused expression of a kernel function."""
    _check_function(function, strictly=True)


def check_helpers(function: Callable[..., object]) -> None:
    """The same for the functions that one calls by name, but there only for what can be meant for a kernel alone."""
    found: dict[int, CodeType] = {}
    waiting = [function]
    while waiting:
        scope, code = waiting[-1].__globals__, waiting.pop().__code__
        for name in code.co_names:
            helper = scope.get(name)
            if helper.__class__ is not FunctionType:
                continue
            inner = helper.__code__
            if id(inner) not in _checked and id(inner) not in found:
                found[id(inner)] = inner
                if is_user_file(inner.co_filename):
                    _check_function(helper, strictly=False)
                    waiting.append(helper)
    _checked.update(found)


def _check_function(function: Callable[..., object], *, strictly: bool) -> None:
    code = function.__code__
    tree = tree_of(code) if _suspicious(code) else None
    if tree is None:
        return
    names = Names(function)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            _check(node.value, names, code.co_filename, strictly=strictly)


@PerCode
def _suspicious(code: CodeType) -> bool:
    """Whether a value is thrown away that is not the result of a call, here or in a function within."""
    before = _CACHE
    for opcode in code.co_code[::2]:
        if opcode == _POP and before in _VALUES:
            return True
        if opcode != _CACHE:
            before = opcode
    return any(_suspicious(inner) for inner in code.co_consts if isinstance(inner, CodeType))


def _check(node: ast.expr, names: Names, filename: str, *, strictly: bool) -> None:
    text = ast.unparse(node)
    if _is_instruction(node, names):
        raise _unused(f"`{text}` names an instruction and does not call it", f"`{text}(..)`", node, filename)
    if not strictly:
        return
    if isinstance(node, ast.Attribute) and node.attr in _METHODS:
        raise _unused(f"`{text}` names a method and does not call it", f"`{text}(..)`", node, filename)
    if isinstance(node, ast.Name) and _is_ours(names.value(node)):
        raise _unused(f"`{text}` is named and not called", f"`{text}(..)`", node, filename)
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq) and isinstance(node.left, ast.Subscript):
        hint = f"`{ast.unparse(node.left)} = {ast.unparse(node.comparators[0])}`"
        raise _unused(f"`{text}` compares, and the result is not used", hint, node, filename)


def _is_instruction(node: ast.expr, names: Names) -> bool:
    """Whether an expression is `ptx.` and the name of an instruction; one that PTX has not is found when it runs."""
    try:
        return isinstance(_resolved(node, names), InstructionName)
    except PtxError:
        return False


def _resolved(node: ast.expr, names: Names) -> object:
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        found = _resolved(node.value, names)
        if not isinstance(found, Name):
            return None
        if isinstance(node, ast.Attribute):
            return getattr(found, node.attr, None)
        word = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return found[word] if isinstance(word, str) else None
    return names.value(node)


def _is_ours(value: object) -> bool:
    module = getattr(value, "__module__", None) or ""
    return callable(value) and module.startswith("ptxdsl.language.")


def _unused(message: str, hint: str, node: ast.expr, filename: str) -> StructureError:
    return StructureError(f"{message}: the statement does nothing", loc=Loc(filename, node.lineno), hint=hint)
