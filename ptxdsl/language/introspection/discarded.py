"""Where Python computes something and throws it away: ``acc + 1`` or ``maximum(a, b)`` as a statement.

From the bytecode, so that it holds for regs and values, in every function, with or without source: an operator or a
call that is followed by POP_TOP. Which calls are made for their result alone, the frame of the function called tells:
functions of the language, of ``ptxdsl.math``, ``warp`` and ``block``, methods of a value, and instructions that do
nothing but compute.

What it cannot see: results of the user's own functions, which may have been called for what else they do; elements that
are read (a load can be meant), shuffles and votes (so can the lanes' meeting); calls with ``*arguments``; a list or a
comprehension of results.
"""

from __future__ import annotations

import ast
from opcode import opmap, opname
from types import CodeType, FrameType

from .call_sites import PACKAGE
from .code_objects import PerCode
from .source import tree_of

__all__ = ["discarded"]

_CACHE, _POP = opmap.get("CACHE", -1), opmap["POP_TOP"]
_READS = "BINARY_SUBSCR"
_OPERATORS = frozenset(
    number for number, name in enumerate(opname) if name.startswith(("BINARY_", "COMPARE_OP", "UNARY_"))
) - {opmap.get(_READS)}
_CALLS = frozenset(
    opmap[name] for name in ("CALL", "CALL_KW", "CALL_FUNCTION", "CALL_FUNCTION_KW", "CALL_METHOD") if name in opmap
)
_TUPLE = opmap["BUILD_TUPLE"]
_NB_SUBSCR = 26
"""The operator of BINARY_OP that reads an element, from Python 3.14 on."""
_METHODS = frozenset(("to", "bits", "unpack", "copy"))


@PerCode
def _places(code: CodeType) -> dict[int, bool]:
    """The offsets of the operators and calls whose result is thrown away, with their caches; whether it is a call."""
    raw = code.co_code
    found: dict[int, bool] = {}
    at = 0
    while at < len(raw):
        end = at + 2
        while end < len(raw) and raw[end] == _CACHE:
            end += 2
        reads = opname[raw[at]] == "BINARY_OP" and raw[at + 1] == _NB_SUBSCR
        if (raw[at] in _CALLS or (raw[at] in _OPERATORS and not reads)) and _is_popped(raw, end):
            found.update(dict.fromkeys(range(at, end, 2), raw[at] in _CALLS))
        at = end
    return found


def _is_popped(raw: bytes, at: int) -> bool:
    """Whether what is on the stack is thrown away; as the last of a tuple too."""
    if raw[at : at + 1] == bytes((_TUPLE,)):
        at += 2
    return raw[at : at + 1] == bytes((_POP,))


def discarded(frame: FrameType, called: FrameType | None) -> tuple[str, str | None] | None:
    """The expression that is running and whose result is thrown away, and what may be meant; else None.

    ``called`` is the frame of ptxdsl's that ``frame``, the user's, has called.
    """
    is_call = _places(frame.f_code).get(frame.f_lasti)
    if is_call is None or (is_call and not _only_computes(called)):
        return None
    tree = tree_of(frame.f_code)
    for node in ast.walk(tree) if tree is not None else ():
        here = isinstance(node, ast.Expr) and node.lineno <= frame.f_lineno <= (node.end_lineno or node.lineno)
        if isinstance(node, ast.Expr) and here and isinstance(node.value, (ast.Call, ast.Tuple)) >= is_call:
            return f"`{ast.unparse(node.value)}`", _meant(node.value)
    return "this expression", None


def _only_computes(called: FrameType | None) -> bool:
    """Whether a function of ptxdsl's is called for its result alone."""
    if called is None:
        return False
    code = called.f_code
    file, name = code.co_filename.replace("\\", "/"), code.co_name
    if not file.startswith(PACKAGE):
        return False
    home = file[len(PACKAGE) :]
    if home == "language/namespace/ptx.py":
        return name == "__call__" and _is_pure(called)
    if home == "language/values/value.py":
        return name in _METHODS
    return home.startswith("math/") or (home in _FOR_RESULTS and name != "sync")


_FOR_RESULTS = frozenset(("language/values/functions.py", "warp.py", "block.py"))


def _is_pure(called: FrameType) -> bool:
    """Whether the instruction being made does nothing but compute a new value."""
    form = called.f_locals.get("form")
    if form is None or called.f_locals["out"] is not None or not called.f_locals["results"]:
        return False
    nothing = type(form.effects)()
    return bool(form.effects._replace(uniform=False, selects=False) == nothing)


def _meant(node: ast.expr) -> str | None:
    text = ast.unparse(node)
    if isinstance(node, ast.Compare):
        if isinstance(node.ops[0], ast.Eq) and isinstance(node.left, ast.Name):
            return f"`{node.left.id}.set({ast.unparse(node.comparators[0])})` changes it, `with when({text}):` asks"
        return f"`with when({text}):`"
    if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Name):
        return f"`{ast.unparse(ast.AugAssign(ast.Name(node.left.id), node.op, node.right))}`"
    return f"`v = {text}`"
