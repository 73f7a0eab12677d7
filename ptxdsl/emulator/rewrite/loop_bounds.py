"""Loops whose bound is an unsigned difference that has wrapped around: ``loop(n - m)`` with n < m.

Such a loop runs some 2**32 times, and no program means that. So where the bound of a ``loop(...)`` of the language is
computed by a subtraction of unsigned numbers, perhaps divided or shifted after it, the emulator asks in front of the
loop whether that has wrapped, and stops there: one comparison for each subtraction, one guarded `trap` for each loop,
none in an iteration. What wraps and bounds no loop is left alone: hashes and distances do so on purpose.

What it cannot see: bounds that a sum, a product or a choice was made of, since what has wrapped may be right again
there; a bound in a register that is written twice; loops in functions; loops that `break_if` ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...ir import Function, Instruction, Label, LabelRef, Register, Statement
from ...types import TYPES
from .builder import instruction

__all__ = ["WrappedBound", "bounded_by_differences", "guard_loops"]

_PASSED_ON = frozenset(f"{name}.u{bits}" for name in ("shr", "div", "mov") for bits in (16, 32, 64)) | {
    "cvt.u64.u32", "cvt.u32.u16", "cvt.u64.u16"
}
_DIFFERENCES = frozenset(f"sub.u{bits}" for bits in (16, 32, 64))
_TESTS = frozenset(f"setp.ge.u{bits}" for bits in (16, 32, 64))


class WrappedBound(Instruction):
    """The `trap` in front of a loop; ``difference`` is the subtraction."""

    difference: Instruction


def bounded_by_differences(body: Sequence[Statement]) -> list[tuple[int, Instruction]]:
    """The loops that are bounded by a difference: the place of the test in front of each, and the subtraction."""
    tests = [at for place, s in enumerate(body) if s.__class__ is Label and s.name.startswith("$loop_")
             for at in _test(body, place, s.name)]
    if not tests:
        return []
    written: dict[Register, list[Instruction]] = {}
    for statement in body:
        if isinstance(statement, Instruction):
            for register in statement.writes():
                written.setdefault(register, []).append(statement)
    found = ((at, _difference(body[at], written)) for at in tests)
    return [(at, difference) for at, difference in found if difference is not None]


def _test(body: Sequence[Statement], place: int, name: str) -> Iterator[int]:
    """Where it is tested whether a loop runs at all."""
    end = LabelRef(f"$endloop_{name[len('$loop_'):]}")
    for at in range(max(1, place - 6), place):
        test, branch = body[at - 1], body[at]
        leaves = isinstance(branch, Instruction) and branch.operands == (end,)
        if leaves and isinstance(test, Instruction) and test.form.mnemonic in _TESTS:
            yield at - 1


def _difference(test: Statement, written: dict[Register, list[Instruction]]) -> Instruction | None:
    assert isinstance(test, Instruction)
    bound = test.operands[2]
    while isinstance(bound, Register) and len(written.get(bound, ())) == 1:
        by = written[bound][0]
        if by.guard is not None:
            return None
        if by.form.mnemonic in _DIFFERENCES:
            return by
        if by.form.mnemonic not in _PASSED_ON:
            return None
        bound = by.operands[1]
    return None


def guard_loops(function: Function) -> Function:
    """The function with a guarded trap in front of each loop that is bounded by a difference."""
    body = function.body or []
    loops = bounded_by_differences(body)
    if not loops:
        return function
    registers = list(function.registers)
    wrapped: dict[int, Register] = {}
    for _, difference in loops:
        if id(difference) not in wrapped:
            wrapped[id(difference)] = Register(f"%wrapped${len(wrapped)}", TYPES["pred"])
    registers += wrapped.values()
    tests = dict(loops)
    made: list[Statement] = []
    for at, statement in enumerate(body):
        if at in tests:
            made.append(_trap(statement, tests[at], wrapped[id(tests[at])]))
        made.append(statement)
        if id(statement) in wrapped:
            assert isinstance(statement, Instruction)
            kind = statement.form.mnemonic.rpartition(".")[2]
            made.append(_at(statement, instruction(f"setp.lt.{kind}", wrapped[id(statement)], *statement.operands[1:])))
    return replace(function, body=made, registers=registers)


def _trap(test: Statement, difference: Instruction, wrapped: Register) -> Instruction:
    assert isinstance(test, Instruction)
    plain = instruction("trap", guard=wrapped)
    trap = WrappedBound(plain.form, plain.operands, plain.guard, test.loc, test.line)
    trap.difference = difference
    return trap


def _at(place: Instruction, made: Instruction) -> Instruction:
    return replace(made, loc=place.loc, line=place.line)
