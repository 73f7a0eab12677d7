"""What PTX has no instruction for in 8 bits, or on predicates, by way of those that it has: ``==``, selp, mov.

Registers of 8 bits are loaded, stored and converted, and nothing else; a comparison converts both sides to 16 bits
first, as every compiler does. Two predicates agree where their exclusive or is false. Arithmetic stays refused: what
it gives depends on the width.
"""

from __future__ import annotations

from typing import Any

from ... import ir
from ...types import ScalarType, encode, pred, s16, u16
from ..builder import InRegister, Trace
from ..rules.decided_comparisons import check_decided
from .arithmetic import check_types
from .literals import is_number, literal, plain
from .moves import known_form
from .operators import COMPARISONS

__all__ = ["compares_narrow", "comparison", "narrowed", "widened"]


def compares_narrow(op: str, a: InRegister, b: Any) -> bool:
    """Whether `comparison` is what compares the two; it is not where an error is to say what is wrong with them."""
    type = a.type
    if type is pred:
        agrees = b.type is pred if hasattr(b, "region") else isinstance(plain(b), bool)
        return agrees and op in ("==", "!=")
    if type.bits != 8 or type.is_float or (type.kind == "b" and op not in ("==", "!=")):
        return False
    if hasattr(b, "region"):
        check_types(op, type, a, b)
        return not b.type.is_float
    return is_number(b)


def widened(trace: Trace, register: ir.Register, wide: ScalarType = u16) -> ir.Register:
    """8 bits in a register of 16: with their sign where ``wide`` is s16, else with zeros."""
    target = trace.fresh(wide)
    trace.emit(known_form(f"cvt.{wide}.{'s8' if wide is s16 else 'u8'}"), (target, register))
    return target


def narrowed(trace: Trace, register: ir.Register, type: ScalarType) -> ir.Register:
    """The low 8 bits of a register of 16."""
    target = trace.fresh(type)
    trace.emit(known_form("cvt.u8.u16"), (target, register))
    return target


def comparison(trace: Trace, op: str, a: Any, b: Any) -> ir.Register:
    """``a op b`` of 8-bit integers or bits, or ``==`` and ``!=`` of predicates; the types have been checked."""
    if a.type is pred:
        return _agreement(trace, op == "==", a, b)
    wide = s16 if a.type.is_signed and (not hasattr(b, "region") or b.type.is_signed) else u16
    left = widened(trace, a.use(trace), wide)
    right: ir.Operand
    if hasattr(b, "region"):
        right = widened(trace, b.use(trace), wide)
    else:
        number = literal(b, a.type).bits
        check_decided(trace, op, a, plain(b))
        right = ir.Immediate(encode(number - 256 if wide is s16 and number > 127 else number, wide), wide)
    target = trace.fresh(pred)
    trace.emit(known_form(f"setp.{COMPARISONS[op]}.{wide}"), (target, left, right))
    return target


def _agreement(trace: Trace, equal: bool, p: Any, q: Any) -> ir.Register:
    if not hasattr(q, "region"):
        same = bool(plain(q)) is equal
        target = trace.fresh(pred)
        trace.emit(known_form("mov.pred" if same else "not.pred"), (target, p.use(trace)))
        return target
    differ, agree = trace.fresh(pred), trace.fresh(pred)
    trace.emit(known_form("xor.pred"), (differ, p.use(trace), q.use(trace)))
    if not equal:
        return differ
    trace.emit(known_form("not.pred"), (agree, differ))
    return agree
