"""Where Python compares and throws the result away: ``acc == 3`` as a statement, where a change or a `when` was meant.

From the bytecode, so that it holds for regs and values, in every function, with or without source: a comparison that is
followed by POP_TOP. Other operators and calls whose result is thrown away compute what was asked for, in vain, and are
no error: ``ptx.add.u32(a, b)`` is how one looks at an instruction.
"""

from __future__ import annotations

import ast
from opcode import opmap
from types import CodeType, FrameType

from .code_objects import PerCode
from .source import tree_of

__all__ = ["discarded"]

_CACHE, _POP, _TUPLE = opmap.get("CACHE", -1), opmap["POP_TOP"], opmap["BUILD_TUPLE"]
_COMPARE = opmap["COMPARE_OP"]


@PerCode
def _places(code: CodeType) -> frozenset[int]:
    """The offsets of the comparisons whose result is thrown away, with their caches."""
    raw = code.co_code
    found: set[int] = set()
    at = 0
    while at < len(raw):
        end = at + 2
        while end < len(raw) and raw[end] == _CACHE:
            end += 2
        if raw[at] == _COMPARE and _is_popped(raw, end):
            found.update(range(at, end, 2))
        at = end
    return frozenset(found)


def _is_popped(raw: bytes, at: int) -> bool:
    """Whether what is on the stack is thrown away; as the last of a tuple too."""
    if raw[at : at + 1] == bytes((_TUPLE,)):
        at += 2
    return raw[at : at + 1] == bytes((_POP,))


def discarded(frame: FrameType) -> tuple[str, str | None] | None:
    """The comparison that is running and whose result is thrown away, and what may be meant; else None."""
    if frame.f_lasti not in _places(frame.f_code):
        return None
    tree = tree_of(frame.f_code)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Expr) and node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno):
            return f"`{ast.unparse(node.value)}`", _meant(node.value)
    return "this expression", None


def _meant(node: ast.expr) -> str | None:
    text = ast.unparse(node)
    if not isinstance(node, ast.Compare):
        return None
    if isinstance(node.ops[0], ast.Eq) and isinstance(node.left, ast.Name):
        return f"`{node.left.id}.set({ast.unparse(node.comparators[0])})` changes it, `with when({text}):` asks"
    return f"`with when({text}):`"
