"""Comparisons that the type decides: an unsigned number is never below zero.

``when(i - 1 >= 0)`` asks whether `i` is at least 1, and of a u32 it is always true, since ``i - 1`` wraps around. So a
comparison with the end of the type's range that can only come out one way is refused where it is written with a number:
nobody writes one that asks nothing. A bound that has a name, ``i >= lower`` with ``lower = 0``, is right code for one
value of many, and refused only where what is compared was computed by a subtraction.

What it cannot see: a bound in a register, an instruction called by its name (``ptx.setp.ge.u32``), and other
comparisons of what has wrapped around, such as ``i - 1 < n``, which right programs use.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

from ... import ir
from ...errors import PtxTypeError, with_article
from ...types import ScalarType
from ..builder import InRegister, Trace
from ..errors import located, named
from ..introspection.bytecode import flow_of
from ..introspection.call_sites import user_frame

__all__ = ["check_decided", "check_extreme", "is_decided"]


def is_decided(op: str, kind: ScalarType, number: Any) -> bool | None:
    """What ``v op number`` is for every ``v`` of an integer type; None where that depends."""
    if number.__class__ is not int or not kind.is_integer or kind.lanes > 1:
        return None
    low, high = kind.bounds
    if op in (">=", "<") and number <= low:
        return op == ">="
    if op in ("<=", ">") and number >= high:
        return op == "<="
    return None


def check_decided(trace: Trace, op: str, value: InRegister, number: int) -> None:
    """A PtxTypeError for a comparison that the type decides, where it was meant to ask something."""
    answer = is_decided(op, value.type, number)
    if answer is None:
        return
    kind, subtraction = value.type, _subtraction(trace, value)
    if subtraction is None and not _written(user_frame(2, trace.code), number):
        return
    name = named(value, "v")
    end = f"{'unsigned, so at least' if kind.kind == 'u' else 'at least'} {kind.bounds[0]}"
    if op in ("<=", ">"):
        end = f"at most {kind.bounds[1]}"
    why = f": {subtraction}" if subtraction and kind.kind == "u" and number == 0 else ""
    hint = f"decide it in Python: it is {answer}"
    if kind.kind == "u" and number == 0:
        hint = f"compare before subtracting: `{'a >= b' if op == '>=' else 'a < b'}` instead of `a - b {op} 0`"
        hint += f"; or compute with signed numbers: `{name}.bits(s{kind.bits})`"
    raise located(PtxTypeError, f"`{op} {number}` of {with_article(kind)} is always {answer}: it is {end}{why}", hint)


def check_extreme(trace: Trace, name: str, value: InRegister, number: int) -> None:
    """A PtxTypeError for ``maximum(a - b, 0)`` of unsigned numbers, which is ``a - b``."""
    if number != 0 or value.type.kind != "u":
        return
    subtraction = _subtraction(trace, value)
    if subtraction is not None:
        result = "the number itself" if name == "maximum" else "0"
        raise located(
            PtxTypeError, f"`{name}` of {with_article(value.type)} and 0 is {result}: {subtraction}",
            "compare before subtracting: `select(a > b, a - b, 0)`",
        )


def _subtraction(trace: Trace, value: InRegister) -> str | None:
    """Where a value was computed by a subtraction, in words."""
    for statement in reversed(trace.body):
        if isinstance(statement, ir.Instruction) and value.register in statement.writes():
            if statement.form.mnemonic.split(".")[0] != "sub":
                return None
            return f"the difference of line {statement.loc.line} wraps around" if statement.loc else None
    return None


def _written(frame: FrameType, number: int) -> bool:
    """Whether the comparison that is running has the number in its text, as one of its operands."""
    flow = flow_of(frame.f_code)
    at = flow.index(frame.f_lasti)
    if not flow.steps[at].opname.startswith("COMPARE_OP"):
        return False
    return _loads(flow.steps[at - 1], number) or _loads(flow.steps[_first(flow, at)], number)


def _first(flow: Any, at: int) -> int:
    """The first instruction of the operands of the comparison at ``at``."""
    wanted = 2
    while at and wanted > 0:
        at -= 1
        wanted -= flow.steps[at].effect
    return at


def _loads(step: Any, number: int) -> bool:
    return step.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and step.argument == number


