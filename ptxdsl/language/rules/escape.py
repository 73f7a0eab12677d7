"""Rule R1: a Value is used only inside the region (`when`, `loop`, kernel) that computed it.

Refused: any use of a Value as an operand after its region has closed, or in the trace of another kernel or thread.
Behind a `when` its register holds nothing in the threads that skipped the block, behind a loop only what the last
iteration computed, if there was one; Python has the object all the same. The repair is a `reg` declared before the
region.

The check is one comparison at each use, ``value.region.owner is trace``: a region that closes loses its owner. So
nothing is overlooked as long as the use is an operand; a Value that is merely held is no use. What may be used and yet
never have been written, a `reg` without a first value, is for the verifier to find (definite assignment).
"""

from __future__ import annotations

from typing import NoReturn

from ... import ir
from ...errors import EscapeError, Loc
from ...types import pred
from ..builder import InRegister, PendingRegion, Region, Trace, fatal
from ..errors import located, named

__all__ = ["escaped", "resolved_region"]


def resolved_region(value: InRegister, trace: Trace) -> Region:
    """The region of a Value that is not there yet; an EscapeError if that is closed."""
    region = value.region.target if isinstance(value.region, PendingRegion) else value.region
    if region.owner is not trace:
        value.region = region
        escaped(value)
    return region


def escaped(value: InRegister) -> NoReturn:
    """Say where a Value was computed, and that its region is closed."""
    region = value.region
    name = named(value, value.register.name)
    made = _made(region.trace, value.register) or region.loc
    if not region.closed or region.parent is None or region.trace.over:
        state = "is over" if region.trace.over else "runs in another thread"
        raise fatal(located(
            EscapeError,
            f"`{name}` was computed at {made.file}:{made.line}, in the trace of `{region.trace.name}`, which {state}",
            "compute it in this kernel, or pass it as a parameter",
        ))
    initial = "" if value.type is pred else ", 0"
    before = "when" if region.kind == "otherwise" else region.kind
    variable = f"{name} = " if name.isidentifier() else "v = "
    raise fatal(located(
        EscapeError,
        f"`{name}` was computed at line {made.line}, inside the `{region.kind}` of line {region.loc.line}, "
        "and is used after it",
        f"declare `{variable}reg({value.type}{initial})` before the `{before}`, "
        f"and write `{variable[:-3]}.set(...)` inside it",
    ))


def _made(trace: Trace, register: ir.Register) -> Loc | None:
    for statement in reversed(trace.body):
        if isinstance(statement, ir.Instruction) and any(found == register for found in statement.writes()):
            return statement.loc
    return None
