"""Loops whose bound is an unsigned difference that has wrapped around: ``loop(n - m)`` with n < m.

Such a loop runs some 2**32 times, or not at all where the difference is its start, and no program means that. So where
a bound of a ``loop(...)`` of the language is computed from a subtraction of unsigned numbers, the emulator asks in
front of the loop whether that has wrapped, and stops there: a comparison or two for each instruction that computes the
bound, one guarded `trap` for each bound, none in an iteration. A bound is wrong if the difference was negative, and
what was added to it, subtracted, or multiplied with has left it so: it still lies in the upper half of the type.
``n - m + m`` is right again, ``minimum(n - m, 32)`` is not. What wraps and bounds no loop is left alone: hashes and
distances do so on purpose.

What it cannot see: bounds that a mask or a choice was made of; a bound in a register that other blocks write too; loops
in functions; loops that `break_if` ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...ir import Function, Immediate, Instruction, Label, LabelRef, Register, Statement
from ...types import TYPES
from .builder import instruction

__all__ = ["WrappedBound", "bounded_by_differences", "guard_loops"]


def _unsigned(*names: str) -> frozenset[str]:
    return frozenset(f"{name}.u{bits}" for name in names for bits in (16, 32, 64))


_DIFFERENCES = _unsigned("sub")
_TESTS = _unsigned("setp.ge")
_PASSED_ON = _unsigned("shr", "div", "mov", "min", "max") | {"cvt.u64.u32", "cvt.u32.u16", "cvt.u64.u16"}
"""What makes of a negative difference one that is wrong in any case."""
_COMPUTED = _unsigned("sub", "add", "mul.lo", "mad.lo") | {"shl.b16", "shl.b32", "shl.b64"}
"""What may make it right again."""


class WrappedBound(Instruction):
    """The `trap` in front of a loop; ``difference`` is the subtraction, ``is_start`` says that the start is wrong."""

    difference: Instruction
    is_start: bool


class _Bound(NamedTuple):
    """A bound of a loop: the place of the test in front of it, and those of what computes it, a difference first."""

    test: int
    is_start: bool
    places: tuple[int, ...]


def bounded_by_differences(body: Sequence[Statement]) -> list[_Bound]:
    """The bounds of loops that are computed from a difference."""
    tests = [at for place, s in enumerate(body) if s.__class__ is Label and s.name.startswith("$loop_")
             for at in _test(body, place, s.name)]
    if not tests:
        return []
    written: dict[Register, list[int]] = {}
    for at, statement in enumerate(body):
        if isinstance(statement, Instruction):
            for register in statement.writes():
                written.setdefault(register, []).append(at)
    bounds = (_Bound(at, operand == 1, _computation(body, at, operand, written)) for at in tests for operand in (1, 2))
    return [bound for bound in bounds if bound.places]


def _test(body: Sequence[Statement], place: int, name: str) -> Iterator[int]:
    """Where it is tested whether a loop runs at all."""
    end = LabelRef(f"$endloop_{name[len('$loop_'):]}")
    for at in range(place - 1, 0, -1):
        test, branch = body[at - 1], body[at]
        if branch.__class__ is Label:
            return
        if isinstance(branch, Instruction) and branch.operands == (end,):
            if isinstance(test, Instruction) and test.form.mnemonic in _TESTS:
                yield at - 1
            return


def _computation(
    body: Sequence[Statement], at: int, number: int, written: dict[Register, list[int]]
) -> tuple[int, ...]:
    """The places of a difference and of what computes an operand from it, in this order; none if it comes of none."""
    statement = body[at]
    assert isinstance(statement, Instruction)
    place = _definition(body, at, statement.operands[number], written)
    if place is None:
        return ()
    by = body[place]
    assert isinstance(by, Instruction)
    name = by.form.mnemonic
    if by.guard is None and (name in _PASSED_ON or name in _COMPUTED):
        for source in range(1, len(by.operands)):
            before = _computation(body, place, source, written)
            if before:
                return *before, place
        if name in _DIFFERENCES:
            return (place,)
    return ()


def _definition(
    body: Sequence[Statement], at: int, register: object, written: dict[Register, list[int]]
) -> int | None:
    """The instruction that computed what a register holds at a place, if it is one."""
    if not isinstance(register, Register) or register not in written:
        return None
    writes = written[register]
    before = [place for place in writes if place < at]
    if not before or (len(writes) > 1 and any(body[k].__class__ is Label for k in range(before[-1], at))):
        return None
    return before[-1]


def guard_loops(function: Function) -> Function:
    """The function with a guarded trap in front of each loop that is bounded by a difference."""
    body = function.body or []
    bounds = bounded_by_differences(body)
    if not bounds:
        return function
    before: dict[int, list[Statement]] = {}
    after: dict[int, list[Statement]] = {}
    registers = list(function.registers)
    for number, bound in enumerate(bounds):
        wrapped = Register(f"%wrapped${number}", TYPES["pred"])
        registers.append(wrapped)
        _follow(body, bound, wrapped, before, after)
        before.setdefault(bound.test, []).append(_trap(body, bound, wrapped))
    made = [each for at, s in enumerate(body) for each in (*before.get(at, ()), s, *after.get(at, ()))]
    return replace(function, body=made, registers=registers)


def _follow(
    body: Sequence[Statement], bound: _Bound, wrapped: Register, before: dict[int, list[Statement]],
    after: dict[int, list[Statement]],
) -> None:
    """Have ``wrapped`` hold, at the loop, where the bound is wrong."""
    half = 0
    for at in bound.places:
        statement = body[at]
        assert isinstance(statement, Instruction)
        name = statement.form.mnemonic
        kind = f"u{name[-2:]}"
        half = half or 1 << int(name[-2:]) - 1
        if name in _DIFFERENCES:
            first, second = statement.operands[1:3]
            asked = (instruction(f"setp.lt.{kind}", wrapped, first, second) if at == bound.places[0]
                     else instruction(f"setp.lt.or.{kind}", wrapped, first, second, wrapped))
            before.setdefault(at, []).append(_at(statement, asked))
        if name in _COMPUTED:
            still = instruction(
                f"setp.ge.and.{kind}", wrapped, statement.operands[0], Immediate(half, TYPES[kind]), wrapped
            )
            after.setdefault(at, []).append(_at(statement, still))


def _trap(body: Sequence[Statement], bound: _Bound, wrapped: Register) -> Instruction:
    test, difference = body[bound.test], body[bound.places[0]]
    assert isinstance(test, Instruction) and isinstance(difference, Instruction)
    plain = instruction("trap", guard=wrapped)
    trap = WrappedBound(plain.form, plain.operands, plain.guard, test.loc, test.line)
    trap.difference, trap.is_start = difference, bound.is_start
    return trap


def _at(place: Instruction, made: Instruction) -> Instruction:
    return replace(made, loc=place.loc, line=place.line)
