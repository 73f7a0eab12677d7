"""Extended precision: additions and subtractions that hand a carry from one instruction to the next.

The flag is a one-bit source after the others where a form reads it, and a result after the other where it writes it.
PTX has subtractions hand a borrow; assemblers make them additions of the complement, so that the flag is set where
nothing was borrowed. That shows where an addition follows on a subtraction or the other way round, and nowhere else.
"""

from __future__ import annotations

from typing import Any

from ...isa import Form
from .lanes import Bits
from . import semantics
from .integer import product


def _result(form: Form, value: Bits, flag: Bits) -> Any:
    return (value, flag) if form.effects.writes_carry else value


@semantics("addc")
def _addc(form: Form, a: Bits, b: Bits, flag: Bits | None = None) -> Any:
    total = a + b
    if flag is None:
        return _result(form, total, total.lt(a))
    after = total + flag.zext(a.bits)
    return _result(form, after, total.lt(a) | after.lt(total))


@semantics("subc")
def _subc(form: Form, a: Bits, b: Bits, flag: Bits | None = None) -> Any:
    rest = a - b
    if flag is None:
        return _result(form, rest, a.ge(b))
    after = rest - (~flag).zext(a.bits)
    return _result(form, after, ~(a.lt(b) | after.gt(rest)))


@semantics("madc")
def _madc(form: Form, a: Bits, b: Bits, c: Bits, flag: Bits | None = None) -> Any:
    return _addc(form, product(form, a, b), c, flag)
