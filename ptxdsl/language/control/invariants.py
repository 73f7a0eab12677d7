"""What the tracer's address arithmetic in a loop needs only once: it is moved before the loop.

ptxas moves such instructions, too, but gives some of them up again where it counts registers, and the emulator runs
what it is given. What the user has written stays where it stands.
"""

from __future__ import annotations

from ... import ir
from ..builder import Region, Trace
from .unrolling import written

__all__ = ["hoist", "insert"]


def insert(trace: Trace, region: Region, at: int, first: int) -> None:
    """Move the statements from ``first`` on to ``at``, before the body of ``region``."""
    added = trace.body[first:]
    del trace.body[first:]
    trace.body[at:at] = added
    region.start += len(added)


def hoist(trace: Trace, region: Region, at: int, changing: frozenset[str]) -> None:
    """Move to ``at`` the addresses that are the same in each iteration of the loop whose body the trace ends with.

    ``changing`` are registers that the loop itself will write. An address behind a branch of the body stays there.
    """
    body = trace.body[region.start :]
    changed = changing.union(register.name for register, _ in written(body))
    computes = trace.computes_address
    ahead = {statement.name for statement in body if isinstance(statement, ir.Label)}
    skipped: set[str] = set()
    moved: list[ir.Statement] = []
    stay: list[ir.Statement] = []
    for statement in body:
        if isinstance(statement, ir.Label):
            skipped.discard(statement.name)
        elif isinstance(statement, ir.Instruction):
            if id(statement) in computes and not skipped and changed.isdisjoint(r.name for r in statement.reads()):
                changed = changed.difference(r.name for r in statement.writes())
                moved.append(statement)
                continue
            skipped.update(o.label for o in statement.operands if isinstance(o, ir.LabelRef) and o.label in ahead)
        stay.append(statement)
    if moved:
        trace.body[region.start :] = stay
        trace.body[at:at] = moved
        region.start += len(moved)
