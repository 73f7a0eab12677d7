"""Rule R5: `return`, `break` and `continue` do not leave a block of the kernel.

Python would obey them while tracing: the rest of the body would silently never become PTX. No ``__exit__`` can tell
such an exit from the end of the body, so the source is read: the kernel's when it is decorated, and that of any
function whose `with` opens a block when it first does. Where there is no source there is nothing to read; then the
bytecode after the block's exit is compared with what follows the end of the block; and so it is for a block that no
`with` opened, but a `with` closes: ``stack.enter_context(when(p))``. The repair is ``ptx.ret(pred=p)``, ``break_if(p)``
or ``continue_if(p)``.

What it cannot see: an exit past a block that is entered and left by calls of its ``__enter__`` and ``__exit__``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import CodeType, FrameType

from ...errors import ControlFlowError, Loc
from ..builder import Region, Trace
from ..introspection.bytecode import flow_of
from ..introspection.call_sites import is_user_file, user_frame
from ..introspection.code_objects import PerCode
from ..introspection.source import Names, lines_of, mentions, tree_of
from .structure import BlockStatement

__all__ = ["check", "check_closed", "check_with"]

_LEAVING = ("return", "break", "continue")
_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_With = (ast.With, ast.AsyncWith)


@PerCode
def _checked(code: CodeType) -> set[int]:  # noqa: ARG001
    """The lines of a function whose `with` has been checked."""
    return set()


def check(function: Callable[..., object]) -> None:
    """A ControlFlowError for the first statement of a kernel function that leaves a block."""
    code = function.__code__
    tree = _tree(code)
    if tree is None:
        return
    names = Names(function)
    for node in ast.walk(tree):
        if isinstance(node, _With) and any(_is_block(item.context_expr, names) for item in node.items):
            _check(node, code.co_filename)
            _checked(code).add(node.lineno)


def check_with(trace: Trace, frame: FrameType | None) -> None:
    """A `with` of this frame, or of one that called for it by a context manager, opens a block: check its source."""
    while frame is not None:
        code = frame.f_code
        if is_user_file(code.co_filename) or code is trace.code:
            line, checked = frame.f_lineno, _checked(code)
            if line not in checked:
                checked.add(line)
                _check_line(code, line)
            if code is trace.code:
                return
        inner, frame = frame, frame.f_back
        # A `with` of a context manager whose `__enter__` opens the block is a block too; a plain call is not.
        while frame is not None and not is_user_file(frame.f_code.co_filename) and frame.f_code is not trace.code:
            inner, frame = frame, frame.f_back
        if inner.f_code.co_name != "__enter__":
            return


def check_closed(region: Region) -> None:
    """Where the function of a block that closes has no source, decide by the bytecode whether a statement left it."""
    first = region.before[0] if region.before else None
    if first is not None and not flow_of(first.frame.f_code).enters(first.at):
        _check_stack(region.trace)
    for state in region.before:
        code, now = state.frame.f_code, state.frame.f_lasti
        if state.at == now or lines_of(code, state.frame.f_globals):
            continue
        flow = flow_of(code)
        if not flow.exits(flow.index(state.at), flow.index(now)):
            raise ControlFlowError(
                "a `return`, `break` or `continue` leaves the `with` of this line; "
                "the trace would end the block here for all threads",
                loc=Loc(code.co_filename, state.frame.f_lineno),
                hint="`ptx.ret(pred=p)`, `break_if(p)`, `continue_if(p)`",
            )


def _check_stack(trace: Trace) -> None:
    """A block that was opened by a call is closed by the `with` of a stack: has a statement left that?"""
    frame: FrameType | None = user_frame(4, trace.code)
    while frame is not None and not flow_of(frame.f_code).closes(frame.f_lasti):
        frame = None if frame.f_code is trace.code else frame.f_back
    if frame is None:
        return
    code, line, flow = frame.f_code, frame.f_lineno, flow_of(frame.f_code)
    now = flow.index(frame.f_lasti)
    opened = [at for at in flow.handlers if flow.steps[at].line == line and flow.enters(flow.offsets[at])]
    if opened and not any(flow.exits(at, now) for at in opened):
        _check_line(code, line)


def _check_line(code: CodeType, line: int) -> None:
    tree = _tree(code)
    if tree is None:
        return
    for node in ast.walk(tree):
        if isinstance(node, _With) and any(
            item.context_expr.lineno <= line <= (item.context_expr.end_lineno or line) for item in node.items
        ):
            _check(node, code.co_filename)


def _check(block: ast.With | ast.AsyncWith, filename: str) -> None:
    for kind, node in _leaving(block.body, False):
        call = ", ".join(ast.unparse(item.context_expr) for item in block.items)
        raise ControlFlowError(
            f"`{kind}` leaves the `with {call}` of line {block.lineno}; "
            "the trace would end the block here for all threads",
            loc=Loc(filename, node.lineno), hint=_WAYS[kind],
        )


_WAYS = {
    "return": "`ptx.ret(pred=p)` ends the threads for which p holds; a helper returns after its block, "
    "a `reg` carries the result",
    "break": "`break_if(p)` leaves a `with loop():`; a Python `for` unrolls and cannot end when the kernel runs",
    "continue": "`continue_if(p)` goes on with the next iteration of a `with loop():`; "
    "in a Python `for` use `with when(~p):`",
}


def _leaving(body: list[ast.stmt], in_loop: bool) -> Iterator[tuple[str, ast.stmt]]:
    """The statements among these that leave the block; a Python loop within it takes its own breaks."""
    for node in body:
        if isinstance(node, _Function):
            continue
        if isinstance(node, ast.Return):
            yield "return", node
        elif isinstance(node, (ast.Break, ast.Continue)) and not in_loop:
            yield type(node).__name__.lower(), node
        else:
            inside = isinstance(node, (ast.For, ast.AsyncFor, ast.While))
            for name in ("body", "orelse", "finalbody"):
                yield from _leaving(getattr(node, name, []), in_loop or (inside and name == "body"))
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                yield from _leaving(part.body, in_loop)


def _is_block(call: ast.expr, names: Names) -> bool:
    """Whether a `with` item is a call of `when`, `otherwise` or `loop`, by whatever name."""
    return isinstance(call, ast.Call) and isinstance(names.value(call.func), BlockStatement)


@PerCode
def _tree(code: CodeType) -> ast.AST | None:
    """The syntax tree of a function; None where no statement can leave a block."""
    return tree_of(code) if mentions(code, _LEAVING) else None
