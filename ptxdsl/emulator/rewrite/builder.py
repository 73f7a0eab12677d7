"""Emits PTX that takes the place of other PTX: the builder of all rewriting passes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Union

from ...ir import (
    Address, Call, Function, Immediate, Instruction, Label, LabelRef, Not, Operand, Register, Statement, Symbol,
    Vector,
)
from ...isa import Form, OperandSpec, lookup
from ...types import TYPES, ScalarType
from .expansions import expansion

__all__ = ["CommitArrival", "CountedStore", "Expander", "PtxBuilder", "WholeWarp", "instruction", "integer"]

Source = Union[Operand, int]
Guard = Union[Register, Not, None]
_PRED = TYPES["pred"]


@lru_cache(maxsize=1024)
def _form(mnemonic: str, shape: tuple[int, ...]) -> Form:
    """The form of a mnemonic for operands of this shape: the width of a vector, -1 for a number, 0 for the others."""
    for form in lookup(mnemonic):
        if len(form.operands) == len(shape) and all(map(_takes, form.operands, shape)):
            return form
    raise AssertionError(f"`{mnemonic}` takes no operands of the shape {shape}")


def _takes(spec: OperandSpec, width: int) -> bool:
    if width < 0:
        return spec.immediate and spec.count == 0
    only_numbers = spec.kind == "value" and spec.immediate and not spec.register
    return spec.kind == "address" or (spec.count == width and not only_numbers)


def _width(operand: Source) -> int:
    if operand.__class__ is Register:
        return 0
    return len(operand.items) if isinstance(operand, Vector) else -isinstance(operand, (int, Immediate))


def integer(value: int, kind: ScalarType) -> Immediate:
    """A number, negative ones as their two's complement."""
    return Immediate(value & (1 << kind.bits) - 1, kind)


def _typed(operand: Source, kind: ScalarType | None) -> Operand:
    """A number with the type that its place asks for."""
    if kind is not None and isinstance(operand, int):
        return integer(operand, kind)
    if kind is not None and isinstance(operand, Immediate) and operand.type.bits == kind.bits:
        return Immediate(operand.bits, kind)
    assert not isinstance(operand, int)
    return operand


def instruction(mnemonic: str, *operands: Source, guard: Guard = None) -> Instruction:
    """An instruction; a Python integer becomes an immediate of the operand's type."""
    form = _form(mnemonic, tuple([_width(operand) for operand in operands]))
    typed = tuple([
        operand if operand.__class__ is Register else _typed(operand, spec.type)
        for spec, operand in zip(form.operands, operands)
    ])
    return Instruction(form, typed, guard)


@dataclass(slots=True, repr=False)
class WholeWarp(Instruction):
    """A ``bar.warp.sync`` that all 32 lanes must reach, before what stands for ``original``."""


class CommitArrival(Instruction):
    """The arrival at an mbarrier of what ``tcgen05.commit`` tracks."""


class CountedStore(Instruction):
    """What stands for ``st.async`` or ``red.async``, of which the next instruction counts the bytes."""


class PtxBuilder:
    """The new body of a function, with the registers, variables and labels that it needs beside the old ones.

    What is emitted has the source location of ``statement``, the one that is being replaced.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.body: list[Statement] = []
        self.variables = list(function.variables)
        self.statement: Instruction | Call | None = None
        self._registers = {register.name: register for register in function.registers}
        self._labels = {statement.name for statement in function.body or () if isinstance(statement, Label)}
        self._numbers = itertools.count(1)

    def result(self, **changes: Any) -> Function:
        """The function with what has been built."""
        registers = list(self._registers.values())
        return replace(self.function, body=self.body, variables=self.variables, registers=registers, **changes)

    # Names

    def number(self) -> int:
        """A number that is given once."""
        return next(self._numbers)

    def register(self, name: str, kind: ScalarType | str) -> Register:
        """The register of that name, declared where it is asked for first."""
        found = self._registers.get(name)
        if found is None:
            found = self._registers[name] = Register(name, TYPES[kind] if isinstance(kind, str) else kind)
        return found

    def declare(self, registers: Iterable[Register]) -> None:
        """Declare registers whose names nothing else has."""
        self._registers.update([(register.name, register) for register in registers])

    def fresh(self, name: str, kind: ScalarType | str) -> Register:
        """A register that nothing else uses."""
        return self.register(f"{name}.{self.number()}", kind)

    def label(self, name: str) -> LabelRef:
        """A label that nothing else has."""
        while (full := f"${name}{self.number()}") in self._labels:
            pass
        return LabelRef(full)

    # Statements

    def place(self, label: LabelRef | str) -> None:
        """Put a label here."""
        self.body.append(Label(label.label if isinstance(label, LabelRef) else label))

    def emit(self, mnemonic: str, *operands: Source, guard: Guard = None) -> None:
        """Append an instruction."""
        self.body.append(self.located(instruction(mnemonic, *operands, guard=guard)))

    def located(self, statement: Any) -> Any:
        """A statement at the source location of the one that is replaced."""
        if self.statement is not None:
            statement.loc, statement.line = self.statement.loc, self.statement.line
        return statement

    @property
    def guard(self) -> Guard:
        """The guard of the instruction that is replaced."""
        assert self.statement is not None
        return self.statement.guard

    def guarded(self, mnemonic: str, *operands: Source) -> None:
        """Append an instruction under that guard."""
        self.emit(mnemonic, *operands, guard=self.guard)

    def put(self, mnemonic: str, result: Register, *sources: Source) -> Register:
        """The same, and return its result."""
        self.guarded(mnemonic, result, *sources)
        return result

    def call(self, name: str, *arguments: Operand, guard: Guard = None) -> None:
        """Append a call of a function that the host answers."""
        self.body.append(self.located(Call(Symbol(name), (), arguments, guard=guard)))

    def move(self, result: Register, source: Operand, guard: Guard = None) -> None:
        """Append a mov of the register's size."""
        kind = result.type
        self.emit("mov.pred" if kind is _PRED else f"mov.b{kind.bits}", result, source, guard=guard)

    def load_local(self, result: Register, address: Address) -> None:
        self.emit(f"ld.local.b{result.type.bits}", result, address)

    def store_local(self, address: Address, kind: ScalarType, value: Operand) -> None:
        self.emit(f"st.local.b{kind.bits}", address, value)

    def branch(self, label: LabelRef, guard: Guard = None) -> None:
        self.emit("bra", label, guard=guard)

    def branch_unless(self, guard: Guard, label: LabelRef) -> None:
        """Branch where a guard does not hold; nothing for no guard."""
        if guard is not None:
            self.branch(label, guard.predicate if isinstance(guard, Not) else Not(guard))

    def both(self, condition: Register, guard: Guard) -> Register:
        """Make a predicate hold only where a guard does too."""
        if isinstance(guard, Not):
            inverse = self.register(f"{condition.name}.guard", _PRED)
            self.emit("not.pred", inverse, guard.predicate)
            guard = inverse
        if guard is not None:
            self.emit("and.pred", condition, condition, guard)
        return condition


class Expander(PtxBuilder):
    """A pass that puts several instructions in the place of some, each by itself."""

    form: Form

    @classmethod
    def expansion(cls, form: Form) -> Callable[[Any], None] | None:
        """The method that emits what stands for an instruction of a form; None where this pass leaves it as it is."""
        name, method = expansion(form) or ("", "")
        return getattr(cls, method) if name == cls.__name__ else None

    @classmethod
    def run(cls, function: Function) -> Function:
        self = cls(function)
        self.begin()
        for statement in function.body or ():
            method = cls.expansion(statement.form) if isinstance(statement, Instruction) else None
            if method is None:
                self.body.append(statement)
                continue
            assert isinstance(statement, Instruction)
            self.statement, self.form = statement, statement.form
            method(self)
        return self.result()

    def begin(self) -> None:
        """Emit what the function needs at its start."""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands of the instruction that is replaced."""
        assert isinstance(self.statement, Instruction)
        return self.statement.operands
