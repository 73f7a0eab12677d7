"""The second operand of Python's operators: what it may be, and what it becomes.

`operators` finds the instruction of an operator and a type; here its second operand is checked, and a Python number
becomes an operand. Every error says which conversion the author may have meant.
"""

from __future__ import annotations

from typing import Any

from ... import ir
from ...errors import PtxTypeError
from ...isa import Form
from ...types import ScalarType, bf16, encode, pred, u32
from ..builder import InRegister, Trace
from ..errors import conversions, described, located, mismatch, relocated
from ..rules.decided_comparisons import check_decided
from .literals import is_number, known_integer, literal, plain
from .moves import constant
from .operators import COMPARISONS, Operation, binary

__all__ = [
    "DIVISIONS", "by_power_of_two", "check_types", "fused_operands", "number_operand", "operation_of", "swapped_shift",
]


def operation_of(op: str, type: ScalarType) -> Operation:
    """The instruction of an operator, with the user's line in the error where there is none."""
    try:
        return binary(op, type)
    except PtxTypeError as error:
        raise relocated(error) from None


def check_types(op: str, wanted: ScalarType, a: InRegister, b: InRegister) -> None:
    """A PtxTypeError where the second operand has not the type wanted; untyped bits go with all of their size."""
    if b.type is wanted:
        return
    if op in ("&", "|", "^", "==", "!=") and b.type.bits == wanted.bits and "b" in (b.type.kind, wanted.kind):
        return
    if wanted is a.type and op not in ("<<", ">>"):
        raise mismatch(op, a, b)
    raise _miscounted(op, wanted, b)


def _miscounted(op: str, wanted: ScalarType, count: InRegister) -> PtxTypeError:
    return located(
        PtxTypeError, f"the right side of `{op}` is a count in {wanted}, not {count.type}",
        conversions(count, wanted),
    )


DIVISIONS = frozenset({"//", "%"})


def by_power_of_two(op: str, type: ScalarType, divisor: Any) -> tuple[str, int] | None:
    """A division of an unsigned by a power of two as a shift or an ``and``; None for all others.

    ptxas makes 13 instructions of any ``div``, whatever the divisor.
    """
    number = known_integer(divisor)
    if type.kind != "u" or type.lanes > 1 or number is None or number < 1 or number & number - 1 or number >> type.bits:
        return None
    return (">>", number.bit_length() - 1) if op == "//" else ("&", number - 1)


def number_operand(
    trace: Trace, operation: Operation, op: str, a: InRegister, b: Any, swapped: bool
) -> ir.Operand:
    """A Python number as the second operand; a PtxTypeError for what is no number."""
    wanted = operation.second
    if b.__class__ is int and b == 0 and not swapped and op in ("//", "%"):
        raise located(PtxTypeError, f"`{op}` by the number 0", "PTX leaves the result open; a divisor is not 0")
    if not is_number(b) or wanted is pred:
        hint = "operands are Values, regs and Python numbers"
        if isinstance(b, bool):
            hint = "decide it in Python: `if flag:`"
        left = "predicate" if a.type is pred else a.type
        raise located(PtxTypeError, f"`{op}` of {left} and {described(b)}", hint)
    if op in COMPARISONS:
        check_decided(trace, op, a, plain(b))
    if wanted.register is not wanted:
        return constant(trace, b, wanted)
    return literal(b, wanted, operation.form.operands[1 if swapped else 2].type)


def swapped_shift(op: str, amount: InRegister, number: Any) -> tuple[Form, ScalarType, ir.Operand]:
    """The instruction of ``1 << v``, its type, and the number, which takes the type of v."""
    form, result, second, _ = binary(op, amount.type)
    if not is_number(number):
        raise located(
            PtxTypeError, f"`{op}` of {described(number)} and {amount.type}", "operands are Values and numbers"
        )
    if amount.type is not second:
        raise _miscounted(op, second, amount)
    return form, result, literal(number, amount.type, form.operands[1].type)


def fused_operands(trace: Trace, operation: Operation, a: ir.Operand, b: ir.Operand) -> tuple[ir.Operand, ...]:
    """The operands of the fused multiply-add that rounds as bf16 arithmetic does, which has instructions from sm_90."""
    places = {"a": a, "b": b}
    return tuple(
        places[p] if isinstance(p, str) else _both_halves(trace, p, operation.result) for p in operation.fma
    )


def _both_halves(trace: Trace, value: float, type: ScalarType) -> ir.Register:
    """A constant of a bf16, or of a bf16x2 in both its halves."""
    if type.lanes == 1:
        return constant(trace, value, type)
    return constant(trace, encode(value, bf16) * 0x10001, u32)
