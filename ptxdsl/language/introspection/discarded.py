"""Where Python computes something by an operator and throws it away: ``acc + 1`` as a statement.

From the bytecode, so that it holds for regs and values, in every function, with or without source: an operator that is
followed by POP_TOP. The result of a call may be thrown away, and so may an element that is read (a load can be meant).
"""

from __future__ import annotations

import ast
from opcode import opmap, opname
from types import CodeType, FrameType

from .code_objects import PerCode
from .source import tree_of

__all__ = ["discarded"]

_CACHE, _POP = opmap.get("CACHE", -1), opmap["POP_TOP"]
_READS = "BINARY_SUBSCR"
_OPERATORS = frozenset(
    number for number, name in enumerate(opname) if name.startswith(("BINARY_", "COMPARE_OP", "UNARY_"))
) - {opmap.get(_READS)}
_NB_SUBSCR = 26
"""The operator of BINARY_OP that reads an element, from Python 3.14 on."""


@PerCode
def _places(code: CodeType) -> frozenset[int]:
    """The offsets of the operators whose result is thrown away, and of their caches."""
    raw = code.co_code
    found: set[int] = set()
    at = 0
    while at < len(raw):
        end = at + 2
        while end < len(raw) and raw[end] == _CACHE:
            end += 2
        reads = opname[raw[at]] == "BINARY_OP" and raw[at + 1] == _NB_SUBSCR
        if raw[at] in _OPERATORS and not reads and end < len(raw) and raw[end] == _POP:
            found.update(range(at, end, 2))
        at = end
    return frozenset(found)


def discarded(frame: FrameType) -> tuple[str, str | None] | None:
    """The expression whose operator is running and whose result is thrown away, and what may be meant; else None."""
    if frame.f_lasti not in _places(frame.f_code):
        return None
    tree = tree_of(frame.f_code)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Expr) and node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno):
            return f"`{ast.unparse(node.value)}`", _meant(node.value)
    return "this expression", None


def _meant(node: ast.expr) -> str | None:
    text = ast.unparse(node)
    if isinstance(node, ast.Compare):
        if isinstance(node.ops[0], ast.Eq) and isinstance(node.left, ast.Name):
            return f"`{node.left.id}.set({ast.unparse(node.comparators[0])})` changes it, `with when({text}):` asks"
        return f"`with when({text}):`"
    if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Name):
        return f"`{ast.unparse(ast.AugAssign(ast.Name(node.left.id), node.op, node.right))}`"
    return f"`v = {text}`"
