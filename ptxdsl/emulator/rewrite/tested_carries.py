"""Carries that are only tested, as at the end of a loop with a step in a register, become comparisons.

The assembler tests such a carry in one instruction. Here the carry flag is one for each lane, of which no analysis says
more: whether all lanes branch alike, or how much a turn adds. The sum of ``a`` and ``b`` has no carry where ``b`` is at
most what ``a`` lacks of the largest number; so ``add.cc``, ``addc`` and ``setp`` become as many other instructions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...ir import Call, Function, Immediate, Instruction, Register, Statement, registers
from ..semantics import carry
from .builder import instruction

__all__ = ["carry_tests", "compared_carries"]


def carry_tests(body: Sequence[Statement]) -> list[int]:
    """The places of additions whose carry the next two instructions test, and nothing else reads."""
    found = [at for at in range(len(body) - 2) if _tests(*body[at : at + 3])]
    if not found:
        return []
    readers = (at for at, s in enumerate(body) if isinstance(s, Instruction) and carry(s.form).reads)
    if not all(_writes_carry(body[at - 1]) for at in readers):  # one may read that of an addition further up
        return []
    reads = Counter(register for statement in body for register in _reads(statement))
    return [at for at in found if all(reads[register] == 1 for register in body[at + 1].writes())]  # type: ignore[union-attr]


def compared_carries(function: Function) -> Function:
    """The function with comparisons instead."""
    body = list(function.body or ())
    for at in carry_tests(body):
        summed, carried, tested = body[at : at + 3]
        assert isinstance(summed, Instruction) and isinstance(carried, Instruction) and isinstance(tested, Instruction)
        kind = summed.form.mnemonic[-3:]
        result, one, other = summed.operands
        lacking, predicate = carried.operands[0], tested.operands[0]
        body[at : at + 3] = [
            replace(instruction(mnemonic, *operands), loc=place.loc, line=place.line)
            for place, mnemonic, *operands in (
                (summed, f"not.b{kind[1:]}", lacking, one),
                (carried, f"setp.ge.{kind}", predicate, lacking, other),
                (tested, f"add.{kind}", result, one, other),
            )
        ]
    return replace(function, body=body)


def _tests(*statements: Statement) -> bool:
    if not all(isinstance(s, Instruction) and s.guard is None for s in statements):
        return False
    summed, carried, tested = statements
    assert isinstance(summed, Instruction) and isinstance(carried, Instruction) and isinstance(tested, Instruction)
    kind = summed.form.mnemonic[-3:]
    names = [summed.form.mnemonic, carried.form.mnemonic, tested.form.mnemonic]
    if kind not in ("u32", "u64") or names != [f"add.cc.{kind}", f"addc.{kind}", f"setp.eq.{kind}"]:
        return False
    zeros = *carried.operands[1:], tested.operands[2]
    return tested.operands[1] == carried.operands[0] and all(map(_is_zero, zeros))


def _is_zero(operand: object) -> bool:
    return isinstance(operand, Immediate) and operand.bits == 0


def _writes_carry(statement: Statement) -> bool:
    return isinstance(statement, Instruction) and statement.guard is None and carry(statement.form).writes


def _reads(statement: Statement) -> Iterable[Register]:
    if isinstance(statement, Instruction):
        return statement.reads()
    operands = statement.arguments if isinstance(statement, Call) else ()
    return (register for operand in operands for register in registers(operand))
