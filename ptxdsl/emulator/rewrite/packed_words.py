"""Words packed of several registers of which some have no value: which part of a word an instruction reads.

Compilers pack a register with one that was never written, where LLVM builds a vector of which it uses one element, and
take that out again by unpacking, by a shift, a narrower type, a mask or a selection of bytes. So the parts of a packed
word are defined or not each for itself, through copies too; what else computes with the word needs all of it. Not seen:
parts that pass through ``selp``, memory or a shuffle, and shifts by a register.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.def_use import DefUse
from ...ir import Immediate, Instruction, Register, Vector

__all__ = ["packed_words", "parts_read"]


def packed_words(def_use: Sequence[DefUse], exposed: set[Register], passing: set[int]) -> dict[Register, int]:
    """The registers that are packed of such that may have no value, or copied from these; and of how many parts.

    ``passing``: the identities of statements that only compute.
    """
    others = {register for op in def_use if id(op.statement) not in passing for register in op.writes}
    moves = [op for op in def_use if id(op.statement) in passing and _moves(op.statement)]
    found: dict[Register, int] = {}
    for op in moves:
        assert isinstance(op.statement, Instruction)
        source = op.statement.operands[1]
        if isinstance(source, Vector) and not exposed.isdisjoint(op.uses):
            found.update((register, max(len(source.items), found.get(register, 0))) for register in op.writes)
    while more := {
        register: found[op.uses[0]] for op in moves for register in op.writes
        if register not in found and op.uses and op.uses[0] in found and register.type.bits == op.uses[0].type.bits
    }:
        found.update(more)
    return {register: count for register, count in found.items() if register not in others}


def _moves(statement: object) -> bool:
    return isinstance(statement, Instruction) and statement.form.opcode == "mov"


def parts_read(statement: Instruction, source: Register, result: Register, count: int) -> range | None:
    """The parts of a source that a result is computed from, of so many; None where that is the whole."""
    bits = source.type.bits
    low, high = _bits_read(statement, source, result)
    if high - low >= bits:
        return None
    width = bits // count
    return range(low // width, -(-high // width))


def _bits_read(statement: Instruction, source: Register, result: Register) -> tuple[int, int]:
    """The first of a source's bits that a result is computed from, and the one behind the last."""
    form, operands, bits = statement.form, statement.operands, source.type.bits
    first, numbers = operands[0], [each.bits for each in operands[2:] if isinstance(each, Immediate)]
    if form.opcode == "mov" and isinstance(first, Vector):
        width = bits // len(first.items)
        places = [place for place, item in enumerate(first.items) if item == result]
        return places[0] * width, (places[-1] + 1) * width
    if operands[1] != source or len(numbers) < len(operands) - 2:
        return 0, bits
    if form.opcode == "shr":
        return min(numbers[0], bits - 1), bits
    if form.opcode == "shl":
        return 0, max(bits - numbers[0], 0)
    if form.opcode == "bfe" and numbers[1]:
        return min(numbers[0], bits - 1), min(numbers[0] + numbers[1], bits)
    if form.opcode == "and":
        return (numbers[0] & -numbers[0]).bit_length() - 1 if numbers[0] else 0, numbers[0].bit_length()
    kinds = [spec.type for spec in form.operands]
    if form.opcode == "cvt" and "sat" not in form.tokens and all(kind and not kind.is_float for kind in kinds):
        return 0, min(kinds[0].bits if kinds[0] else bits, bits)
    return 0, bits
