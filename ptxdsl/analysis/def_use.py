"""The registers that a statement reads and writes, its definitions and uses.

What depends on the form alone is worked out once a form, the rest once a statement.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Union

from ..ir import Call, Immediate, Instruction, Not, Operand, Register, registers
from ..isa import Form
from ..types import TYPES

__all__ = ["CARRY", "DefUse"]

CARRY = Register("%CF", TYPES["pred"])
"""The carry flag, ``CC.CF``, which no program names."""

Places = Union[slice, tuple[int, ...]]


class _Roles(NamedTuple):
    """The places of the operands of a form that are read, and of those that are written, and the flag beside them."""

    reads: Places
    writes: Places
    used: tuple[Register, ...]
    written: tuple[Register, ...]


@dataclass(slots=True, eq=False, repr=False)
class DefUse:
    """A statement: the operands that it reads, the registers that it writes, and those that it needs.

    ``uses`` has the registers within ``reads``, that of the guard, and the carry flag, as ``writes`` has.
    """

    statement: Instruction | Call
    reads: tuple[Operand, ...]
    writes: tuple[Register, ...]
    uses: tuple[Register, ...]

    @classmethod
    def of(cls, statement: Instruction | Call) -> DefUse:
        if isinstance(statement, Call):
            reads = (*statement.arguments, *((statement.callee,) if isinstance(statement.callee, Register) else ()))
            writes = tuple(r for operand in statement.results for r in registers(operand))
            uses = _registers(reads)
        else:
            roles = _roles(statement.form)
            reads = _chosen(statement.operands, roles.reads)
            writes = _registers(_chosen(statement.operands, roles.writes)) + roles.written
            uses = _registers(reads) + roles.used
        guard = statement.guard
        if guard is not None:
            uses = (*uses, guard.predicate if isinstance(guard, Not) else guard)
        return cls(statement, reads, writes, uses)


@cache
def _roles(form: Form) -> _Roles:
    specs = list(enumerate(form.operands))
    return _Roles(
        _places(n for n, spec in specs if not spec.result),
        _places(n for n, spec in specs if spec.written),
        (CARRY,) * form.effects.reads_carry, (CARRY,) * form.effects.writes_carry,
    )


def _places(numbers: Iterable[int]) -> Places:
    """Places in a tuple, as a slice where they are side by side, since nothing is quicker."""
    places = tuple(numbers)
    first, last = (places[0], places[-1] + 1) if places else (0, 0)
    return slice(first, last) if last - first == len(places) else places


def _chosen(operands: tuple[Operand, ...], which: Places) -> tuple[Operand, ...]:
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
