"""Rule R6: blocks are entered, closed and paired as the program text shows them.

Refused: an ``otherwise()`` that does not directly follow its ``when()``; a block that is made and never entered,
entered twice, entered in another kernel, never closed, or used as a condition or an iterator; a ``with loop():`` that
nothing leaves; a bound of a loop that is a `reg` and changed inside; a label that is placed nowhere. Each would become
PTX that does something else than the text says, or nothing.

What it cannot see: whether a loop that has a way out ever takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ... import ir
from ...errors import StructureError, TruthError
from ..builder import InRegister, Region, Trace, current, thread
from ..errors import located, named

__all__ = [
    "BlockStatement", "check_entered_once", "check_loop_ends", "check_unchanged", "finish", "misused", "preceding_when",
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
    return last


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
