"""What the emulator knows of a form: how it treats lane offsets, whether it only computes, how its operands are read.

Worked out once a form, whatever its operands.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ...isa import Form, OperandSpec, lookup
from .. import semantics

__all__ = ["Plan", "plan_of"]


class Plan(NamedTuple):
    """What is known of a form.

    The rule says how it treats lane offsets: ``pure`` lane by lane; ``add`` and the like exactly; ``load`` by its
    address; ``uniform`` gives all lanes of a group the same; ``varying`` is never uniform.
    """

    rule: str
    pure: bool
    """Whether it only computes."""
    covered: bool = False
    carry: semantics.Carry = semantics.Carry(False, False)
    number: int = 0
    """Its place among the forms that its mnemonic spells."""
    steps: tuple[tuple[OperandSpec, bool, int], ...] = ()
    """The operands: whether they are written, and the bits of a number, 0 where its value shapes the code."""
    parts: bool = False
    """Whether it may take parts of registers, or their negatives, as operands."""

    @property
    def widens(self) -> bool:
        """Whether its result may be wider than what it reads, so that offsets must not wrap there."""
        return self.rule in _WIDENING


_WIDENING = ("mul.wide", "mad.wide", "cvt")

CALL = Plan("varying", False)
"""That of a call."""


@cache
def plan_of(form: Form) -> Plan:
    """What is known of a form."""
    rule = _rule(form)
    access = form.effects.access
    loads = access is not None and access.reads and not access.writes
    pure = form.space == "param" if loads else rule not in ("varying", "uniform")
    index = next(number for number, other in enumerate(lookup(form.mnemonic)) if other is form)
    parts = any(spec.selector or spec.selected or spec.negatable for spec in form.operands)
    steps = tuple((s, s.written, s.type.bits if s.type and s.register else 0) for s in form.operands)
    return Plan(rule, pure, semantics.covered(form), semantics.carry(form), index, steps, parts)


_UNIFORM_RESULTS = ("vote", "activemask", "redux", "bar_red")


def _rule(form: Form) -> str:
    opcode, tokens, kind = form.opcode, form.tokens, form.type
    if any(semantics.carry(form)):
        return "varying"  # the carry flag is kept for each lane
    plain = kind is not None and kind.kind in "usb" and kind.lanes == 1 and "sat" not in tokens
    if opcode in ("add", "sub") and plain:
        return opcode
    if opcode in ("mul", "mad") and plain and "lo" in tokens:
        return opcode
    if opcode in ("mul", "mad") and plain and "wide" in tokens:
        return f"{opcode}.wide"
    if opcode == "shl":
        return "shl"
    if opcode == "mov" and kind is not None and kind.kind != "p" and not any(spec.count for spec in form.operands):
        return "copy"
    if opcode == "cvta":
        return "copy"
    if opcode == "cvt" and plain and len(tokens) == 2:
        return "cvt" if all(token[0] in "us" and token[1:] in ("32", "64") for token in tokens) else "pure"
    if opcode in ("ld", "ldu"):
        return "load" if form.space != "local" else "varying"
    if semantics.covered(form) or opcode == "isspacep":
        return "pure"
    return "uniform" if form.semantics in _UNIFORM_RESULTS else "varying"
