"""What the verifier knows of a form before it has seen an operand: computed once a form, used by every operand."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ..isa import Form

__all__ = ["BOTH", "READ", "WRITE", "FormPlan", "form_plan"]

READ, WRITE, BOTH = 0, 1, 2


class FormPlan(NamedTuple):
    """What a form does to each operand and to control, and the shapes of operands that are known to fit it.

    ``roles`` has the last of the ``arity`` operands first, so that what an instruction reads is seen before what it
    writes. ``bounded`` says that the values of numbers matter, ``ends`` that the basic block ends there.
    """

    roles: tuple[int, ...]
    arity: int
    bounded: bool
    ends: bool
    branches: bool
    shapes: set[tuple[object, ...]]


@cache
def form_plan(form: Form, address_size: int) -> FormPlan:  # noqa: ARG001 - what fits depends on it
    """The plan of a form, the same object at every call."""
    roles = tuple((BOTH if s.role == "rw" else WRITE) if s.written else READ for s in reversed(form.operands))
    bounded = any(s.bounds or s.choices for s in form.operands)
    effects = form.effects
    return FormPlan(roles, len(roles), bounded, effects.branches or effects.ends, effects.branches, set())
