"""Lane offsets through and, or, xor and right shifts: where the bits of the offsets and those of the base are apart.

Compilers number the elements of a tile by bits: ``(tid * 4 & 508) | ctaid << 10 | 3``. An affine register is a base,
the same for the warp, plus an offset for each lane. Where no offset is negative, and the base has zeros in all bits
that some offset has, the sum is the two side by side, and what works bit by bit works on each of them: the lanes'
results are that of the base plus offsets that are known again.

Which bits of a base may be one follows from how it was computed, in registers that one statement writes: by shifts,
products with a number, masks, and from the thread's index, whose base in each warp is known with the shape of the
block. Not seen are registers that several statements write, and what is loaded, though a launch passes multiples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ...analysis.def_use import DefUse
from ...ir import Immediate, Instruction, Operand, Register, SpecialRegister
from ..machine.warp_rows import lanes_of_warps

__all__ = ["BITWISE", "KnownBits", "bitwise"]

Shape3 = tuple[int, int, int]
DEPTH = 12
"""Statements that are looked at behind an operand."""
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "shr": lambda a, b: a >> b,
}
BITWISE = frozenset(_OPERATIONS)
"""The instructions."""


class KnownBits:
    """The bits that may be one in the bases of registers: of what all lanes share of an affine register."""

    def __init__(self, ops: Sequence[DefUse], block: Shape3) -> None:
        self._block = block
        self._writers: dict[str, DefUse | None] = {}
        for op in ops:
            for register in op.writes:
                self._writers[register.name] = None if register.name in self._writers else op
        self._known: dict[str, int] = {}

    def of(self, operand: Operand, bits: int, depth: int = DEPTH) -> int:
        """A mask of the bits that may be one, of so many."""
        every = (1 << bits) - 1
        if isinstance(operand, Immediate):
            return operand.bits & every
        if isinstance(operand, SpecialRegister):
            return _of_special(operand.special, self._block) & every
        if not isinstance(operand, Register) or operand.type.bits != bits:
            return every
        found = self._known.get(operand.name)
        if found is None:
            op = self._writers.get(operand.name)
            if depth == 0:
                return every
            self._known[operand.name] = every  # until it is known: where it depends on itself
            found = self._known[operand.name] = self._computed(op, bits, depth - 1) & every if op is not None else every
        return found

    def _computed(self, op: DefUse, bits: int, depth: int) -> int:
        """Of a statement's only result."""
        every, statement = (1 << bits) - 1, op.statement
        if not isinstance(statement, Instruction) or statement.guard is not None or len(op.writes) != 1:
            return every
        form, reads = statement.form, op.reads
        kind = form.type
        if kind is None or kind.kind not in "usb" or kind.lanes != 1 or {"sat", "hi"} & {*form.tokens}:
            return every
        if form.opcode == "cvt":
            source, whole = form.tokens[-1], all(token[1:] in ("32", "64") for token in form.tokens)
            known = len(form.tokens) == 2 and whole
            return _extended(self.of(reads[0], int(source[1:]), depth), source, every) if known else every
        parts = [self.of(operand, kind.bits, depth) for operand in reads[:2]]
        if form.opcode in ("shl", "shr"):
            return _shifted(form.opcode, parts[0], reads[1], kind) if isinstance(reads[1], Immediate) else every
        if form.opcode == "mad":
            return _sum(_product(*parts), self.of(reads[2], bits, depth))
        found = _RULES.get(form.opcode)
        return every if found is None else found(parts[0], parts[-1])


def _extended(ones: int, kind: str, every: int) -> int:
    """Of a number that is widened to the bits of ``every``, or cut to them."""
    top = 1 << (int(kind[1:]) - 1)
    return ones | every & -top if kind[0] == "s" and ones & top else ones


def _lowest(ones: int) -> int:
    """The lowest bit of a mask; 0 of none."""
    return ones & -ones


def _product(a: int, b: int) -> int:
    """Of a product: it ends in as many zeros as its factors together."""
    return -(_lowest(a) * _lowest(b))


def _sum(a: int, b: int) -> int:
    """Of a sum: both side by side, or anything from the lowest bit on."""
    return -_lowest(a | b) if a & b else a | b


def _shifted(opcode: str, ones: int, count: Immediate, kind: Any) -> int:
    """Of a number that is shifted by one that is known."""
    if opcode == "shl":
        return ones << min(count.bits, kind.bits)
    return -1 if kind.is_signed and ones >> (kind.bits - 1) else ones >> count.bits


_RULES: dict[str, Callable[[int, int], int]] = {
    "mov": lambda a, _: a, "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a | b,
    "mul": _product, "add": _sum, "sub": lambda a, b: -_lowest(a | b),
}
"""The bits of a result that may be one, from those of both operands."""


@cache
def _of_special(name: str, block: Shape3) -> int:
    """Of a special register's base: for the thread's index that of the first thread of each warp."""
    x, y, z = block
    if name.startswith("%ntid."):
        return block["xyz".index(name[-1])]
    if name == "%laneid":
        return 0
    if not name.startswith("%tid."):
        return -1
    ones = 0
    for first in range(0, x * y * z, lanes_of_warps(block)):
        ones |= (first % x, first // x % y, first // x // y)["xyz".index(name[-1])]
    return ones


def bitwise(op: DefUse, inputs: Sequence[tuple[int, ...]], known: KnownBits) -> tuple[int, ...] | None:
    """The offsets of the result of a statement, from those of what it reads; None where they are not known."""
    statement = op.statement
    if not isinstance(statement, Instruction) or statement.form.opcode not in BITWISE or len(op.reads) != 2:
        return None
    form, kind = statement.form, statement.form.type
    if kind is None or kind.kind not in "usb" or kind.lanes != 1:
        return None
    bits, operation = kind.bits, _OPERATIONS[form.opcode]
    apart = 0
    for offsets in inputs:
        if min(offsets) < 0:
            return None
        apart |= (1 << max(offsets).bit_length()) - 1
    if apart >> (bits - 1):
        return None
    if form.opcode == "shr":
        count = op.reads[1]
        if not isinstance(count, Immediate) or known.of(op.reads[0], bits) & apart:
            return None
        return tuple(offset >> count.bits for offset in inputs[0])
    low = [operand.bits & apart if isinstance(operand, Immediate) else 0 for operand in op.reads]
    for operand in op.reads:
        if not isinstance(operand, Immediate) and known.of(operand, bits) & apart:
            return None
    base = operation(*low)
    return tuple(operation(a | low[0], b | low[1]) - base for a, b in zip(*inputs))
