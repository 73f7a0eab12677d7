"""What the emulator knows of a form: how it treats lane offsets, whether it only computes, how its operands are read.

Worked out once a form, whatever its operands.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ...analysis.provenance import carriers
from ...isa import Form, OperandSpec, lookup
from .. import semantics
from ..semantics.affine import affine

__all__ = ["CALL", "Plan", "plan_of"]


class Plan(NamedTuple):
    """What is known of a form.

    The rule says how it treats lane offsets: ``pure`` lane by lane; that of an affine combination exactly; ``load`` by
    its address; ``uniform`` gives all lanes of a group the same; ``varying`` is never uniform.
    """

    rule: str
    pure: bool
    """Whether it only computes."""
    widens: bool = False
    """Whether its result may be wider than what it reads, so that offsets must not wrap there."""
    covered: bool = False
    carriers: tuple[int, ...] | None = None
    """The operands whose addresses its result may be computed from, factors not; None for all that it reads."""
    selects: bool = False
    """Whether its result is one of the first two that it reads."""
    exposes_local: bool = False
    """Whether it makes a generic address of one in local memory."""
    carry: tuple[bool, bool] = (False, False)
    """Whether it reads the carry flag, and whether it writes it."""
    number: int = 0
    """Its place among the forms that its mnemonic spells."""
    steps: tuple[tuple[OperandSpec, bool, int], ...] = ()
    """The operands: whether they are written, and the bits of a number, 0 where its value shapes the code."""
    parts: bool = False
    """Whether it may take parts of registers, or their negatives, as operands."""


CALL = Plan("varying", False)
"""That of a call."""


@cache
def plan_of(form: Form) -> Plan:
    """What is known of a form."""
    rule, widens = _rule(form)
    pure = form.space == "param" if rule == "load" else rule not in ("varying", "uniform")
    index = next(number for number, other in enumerate(lookup(form.mnemonic)) if other is form)
    parts = any(spec.selector or spec.selected or spec.negatable for spec in form.operands)
    steps = tuple((s, s.written, s.type.bits if s.type and s.register else 0) for s in form.operands)
    carrying = () if rule in ("product", "shift") else carriers(form)
    if rule == "product_sum":
        carrying = carrying[-1:]
    every = carrying == tuple(n for n, spec in enumerate(form.operands) if spec.role != "w" or not spec.written)
    exposes = form.opcode == "cvta" and form.space == "local"
    return Plan(
        rule, pure, widens, semantics.covered(form), None if every else carrying,
        form.effects.selects, exposes, (form.effects.reads_carry, form.effects.writes_carry), index, steps, parts,
    )


def _rule(form: Form) -> tuple[str, bool]:
    """How a form treats lane offsets, and whether it widens them."""
    if form.effects.carries:
        return "varying", False  # the carry flag is kept for each lane
    combination = affine(form)
    if combination is not None:
        return combination
    effects = form.effects
    if effects.access is not None and effects.access.reads and not effects.access.writes:
        return "load" if form.space != "local" else "varying", False
    if semantics.covered(form) or form.opcode == "isspacep":
        return "pure", False
    return "uniform" if effects.uniform else "varying", False
