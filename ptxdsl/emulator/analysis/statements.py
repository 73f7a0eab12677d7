"""The statements of a function as the engine looks at them: what is read, what is written, how lane vectors pass.

Analysis, slots and lowering ask the same questions of every statement. What depends on the form alone is worked out
once a form, the rest once a statement.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ...ir import Call, Immediate, Instruction, Not, Operand, Register, registers
from ...isa import Form, OperandSpec, lookup
from .. import semantics

__all__ = ["Op", "Plan", "plan_of"]


class Plan(NamedTuple):
    """Which operands of a form are read and written, its rule, whether it only computes, its semantics."""

    reads: slice | tuple[int, ...]
    writes: slice | tuple[int, ...]
    rule: str
    pure: bool
    covered: bool = False
    carry: semantics.Carry = semantics.Carry(False, False)
    number: int = 0
    """Its place among the forms that its mnemonic spells."""
    steps: tuple[tuple[OperandSpec, bool, int], ...] = ()
    """The operands: whether they are written, and the bits of a number, 0 where its value shapes the code."""
    parts: bool = False
    """Whether it may take parts of registers, or their negatives, as operands."""


@dataclass(slots=True, eq=False, repr=False)
class Op:
    """A statement. ``uses`` are the registers that it needs, ``writes`` those that it changes.

    The rule says how it treats lane vectors: ``pure`` lane by lane; ``add`` and the like exactly; ``load`` by its
    address; ``uniform`` gives all lanes of a group the same; ``varying`` is never uniform.
    """

    statement: Instruction | Call
    rule: str
    pure: bool
    reads: tuple[Operand, ...]
    writes: tuple[Register, ...]
    uses: tuple[Register, ...]

    @classmethod
    def of(cls, statement: Instruction | Call) -> Op:
        guard = statement.guard
        if isinstance(statement, Call):
            reads = (*statement.arguments, *((statement.callee,) if isinstance(statement.callee, Register) else ()))
            writes = tuple(r for operand in statement.results for r in registers(operand))
            plan = _CALL
        else:
            plan = plan_of(statement.form)
            reads = _chosen(statement.operands, plan.reads)
            writes = _registers(_chosen(statement.operands, plan.writes))
        uses = _registers(reads)
        if guard is not None:
            uses = (*uses, guard.predicate if isinstance(guard, Not) else guard)
        return cls(statement, plan.rule, plan.pure and guard is None, reads, writes, uses)


def _chosen(operands: tuple[Operand, ...], which: slice | tuple[int, ...]) -> tuple[Operand, ...]:
    return operands[which] if isinstance(which, slice) else tuple([operands[n] for n in which])


def _registers(operands: tuple[Operand, ...]) -> tuple[Register, ...]:
    for operand in operands:
        if operand.__class__ is not Register:
            break
    else:
        return operands  # type: ignore[return-value]
    found: list[Register] = []
    for operand in operands:
        if operand.__class__ is Register:
            found.append(operand)
        elif operand.__class__ is not Immediate:
            found.extend(registers(operand))
    return tuple(found)


_CALL = Plan(slice(0), slice(0), "varying", False)


@cache
def plan_of(form: Form) -> Plan:
    """What is known of a form."""
    reads = _places(n for n, spec in enumerate(form.operands) if not (spec.written and spec.role == "w"))
    writes = _places(n for n, spec in enumerate(form.operands) if spec.written)
    rule = _rule(form)
    pure = form.space == "param" if form.opcode == "ld" else rule not in ("varying", "uniform", "load")
    index = next(number for number, other in enumerate(lookup(form.mnemonic)) if other is form)
    parts = any(spec.selector or spec.selected or spec.negatable for spec in form.operands)
    steps = tuple((s, s.written, s.type.bits if s.type and s.register else 0) for s in form.operands)
    return Plan(reads, writes, rule, pure, semantics.covered(form), semantics.carry(form), index, steps, parts)


def _places(numbers: Iterable[int]) -> slice | tuple[int, ...]:
    """Places in a tuple, as a slice where they are side by side, since nothing is quicker."""
    places = tuple(numbers)
    first, last = (places[0], places[-1] + 1) if places else (0, 0)
    return slice(first, last) if last - first == len(places) else places


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
