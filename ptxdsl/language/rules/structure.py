"""Rule R6: blocks are entered, closed and paired as the program text shows them.

Refused: an ``otherwise()`` that does not directly follow its ``when()``, or follows a `with` of several conditions; a
block that is made and never entered, entered twice, entered in another kernel, never closed, or used as a condition or
an iterator; a ``with loop():`` that nothing leaves; a bound of a loop that is a `reg` and changed inside; a label that
is placed nowhere. Each would become PTX that does something else than the text says, or nothing.

What it cannot see: whether a loop that has a way out ever takes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple, NoReturn

from ... import ir
from ...errors import StructureError, TruthError
from ..builder import InRegister, Region, Trace, current, thread
from ..errors import located, named
from ..introspection.bytecode import flow_of
from ..introspection.call_sites import user_frame
from ..introspection.source import tree_of

__all__ = [
    "BlockStatement", "Closing", "check_entered_once", "check_loop_ends", "check_unchanged", "closing", "finish",
    "misused", "preceding_when",
]


class BlockStatement(type):
    """The class of `when`, `otherwise` and `loop`: catches ``with loop:`` without parentheses."""

    def __enter__(cls) -> NoReturn:
        raise located(StructureError, f"`with {cls.__name__}:` lacks its parentheses", f"`with {cls.__name__}():`")

    def __exit__(cls, *error: object) -> None: ...


def misused(block: Any, what: str) -> NoReturn:
    """The error for a block that is asked for its truth or iterated over."""
    raise located(TruthError, f"`{what}` does not work: `{block.kind}` is a block", f"`{block.usage}`")


def check_entered_once(block: Any) -> None:
    """A StructureError where a block is entered again, or in another kernel than it was made in."""
    if block.region is not None:
        hint = f"write `{block.usage}` anew for each block"
        raise located(StructureError, f"this `{block.kind}` was entered before", hint)
    if thread.trace is not block.trace:
        current()
        hint = f"write `{block.usage}` in this kernel"
        raise located(StructureError, f"this `{block.kind}` belongs to another kernel", hint)


def preceding_when(trace: Trace) -> Any:
    """The `when` that closed last in the open region, with nothing after it; a StructureError if there is none."""
    last, end = trace.region.last or (None, 0)
    if last is None or last.kind != "when":
        raise located(
            StructureError, "this `otherwise()` has no `when()` before it",
            "`with when(p): ...`, then `with otherwise(): ...`",
        )
    if end != len(trace.body):
        between = next((s.loc for s in trace.body[end:] if isinstance(s, ir.Instruction) and s.loc), None)
        what = f"line {between.line} (`{between.source}`)" if between else "a label"
        raise located(
            StructureError,
            f"`otherwise()` must directly follow its `when()` of line {last.loc.line}; {what} stands between",
            "move what stands between before the `when()`, or into both blocks",
        )
    _check_one_condition(trace, last)
    return last


class Closing(NamedTuple):
    """How a block closed: the blocks that closed last inside it, and where each of the frames was then."""

    inner: tuple[Any, ...] = ()
    places: tuple[_Place, ...] = ()


class _Place(NamedTuple):
    """Where a frame was."""

    id: int
    code: CodeType
    at: int
    line: int


def closing(region: Region) -> Closing:
    """How a block closes now; of those that are in no other and have none in them nobody asks."""
    last, _ = region.last or (None, 0)
    inner = (last, *last.closing.inner) if last is not None else ()
    if not inner and (region.parent is None or region.parent.parent is None):
        return Closing()
    return Closing(inner, tuple(_places(region.trace)))


def _places(trace: Trace) -> Iterator[_Place]:
    frame: FrameType | None = user_frame(3, trace.code)
    while frame is not None:
        yield _Place(id(frame), frame.f_code, frame.f_lasti, frame.f_lineno)
        frame = None if frame.f_code is trace.code else frame.f_back


def _check_one_condition(trace: Trace, first: Any) -> None:
    """A StructureError for the `otherwise` of a statement that closed several conditions at once."""
    here = {place[:2] for place in _places(trace)}
    for inner in first.closing.inner:
        there = {place[:2]: place for place in inner.closing.places} if inner.kind == "when" else {}
        common = (place for place in first.closing.places if place[:2] in here and place[:2] in there)
        place = next(common, None)
        if place is not None and _one_statement(place, there[place[:2]]):
            raise located(
                StructureError,
                "this `otherwise()` follows a `with` of several conditions, and would be the else of the first alone: "
                f"line {first.loc.line}",
                "one condition: `with when(a & b):`; or one `with` inside the other, each with its `otherwise()`",
            )


def _one_statement(outer: _Place, inner: _Place) -> bool:
    """Whether two blocks that closed here were opened by one `with`, which may have several lines."""
    if outer.at == inner.at:
        return True
    if not flow_of(inner.code).closes(inner.at):
        return False  # a call in the body
    if outer.line == inner.line:
        return True
    for node in ast.walk(tree_of(outer.code) or ast.Module([], [])):
        if isinstance(node, ast.With) and len(node.items) > 1:
            lines = {node.lineno, *(item.context_expr.lineno for item in node.items)}
            if {outer.line, inner.line} <= lines:
                return True
    return False


def check_loop_ends(loop: Region) -> None:
    """A StructureError for a loop without bounds that nothing in its body leaves."""
    if not any(map(_leaves, loop.trace.body[loop.start :])):
        raise StructureError(
            "this `with loop():` never ends: nothing in it leaves it", loc=loop.loc,
            hint="`break_if(p)` leaves the loop, `ptx.ret(pred=p)` ends the thread; `with loop(n) as i:` counts",
        )


def _leaves(statement: ir.Statement) -> bool:
    """Whether a statement may end the thread, or branch to a label of the user's."""
    if isinstance(statement, ir.Call):
        return statement.callee != ir.Symbol("vprintf")
    if not isinstance(statement, ir.Instruction):
        return False
    effects = statement.form.effects
    if effects.control == "branch":
        return not str(statement.operands[0][0]).startswith(("$endif_", "$else_", "$loop_", "$next_", "$endloop_"))
    return effects.ends or effects.branches


def check_unchanged(loop: Region, bounds: Sequence[InRegister]) -> None:
    """A StructureError where the body of a loop writes one of its bounds."""
    for bound in bounds:
        for statement in loop.trace.body[loop.start :]:
            if isinstance(statement, ir.Instruction) and bound.register in statement.writes():
                name = named(bound, bound.register.name)
                raise StructureError(
                    f"`{name}` is changed inside the loop of line {loop.loc.line} that it bounds",
                    loc=statement.loc,
                    hint=f"bound the loop by `{name}.copy()`, or write `with loop():` and `break_if(...)`",
                )


def finish(trace: Trace) -> None:
    """At the end of a kernel: errors caught, blocks that no `with` opened or closed, labels that stand nowhere."""
    if trace.fatal_error is not None:
        raise trace.fatal_error
    if trace.region is not trace.kernel:
        raise StructureError(
            f"the `{trace.region.kind}` of this line never ends", loc=trace.region.loc,
            hint="a generator must run to its end: `for _ in g: ...`; `with` closes a block",
        )
    for block in trace.not_entered.values():
        raise StructureError(
            f"this `{block.kind}(...)` is never entered, so it does nothing", loc=block.loc, hint=f"`{block.usage}`",
        )
    for placed in trace.labels.values():
        placed.region.before = []
    for name, loc in trace.branches.items():
        if name not in trace.labels:
            raise StructureError(
                f"no label `{name}` stands anywhere in the kernel", loc=loc, hint=f'place it: `label("{name}")`'
            )
