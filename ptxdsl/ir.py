"""A PTX module as data: what the tracer builds, the parser reads, the printer writes and the emulator runs.

Everything here compares by value, so that ``parse(print(m)) == m`` can be said in one line. Operands are named
tuples: millions are made while tracing, and these cost least.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Union

from .errors import Loc
from .isa import Form, OperandSpec
from .types import ScalarType

__all__ = [
    "Address", "Call", "Comment", "Function", "Immediate", "Instruction", "Label", "LabelRef", "Module", "Not",
    "Operand", "Parameter", "Register", "Sink", "SpecialRegister", "Statement", "Symbol", "Variable", "Vector",
]


class Register(NamedTuple):
    """A declared register; ``type`` is the type of its ``.reg`` declaration, ``name`` carries its ``%``."""

    name: str
    type: ScalarType


class Immediate(NamedTuple):
    """A number: its bits in the operand's type. ``type`` decides how it prints (``0f3F800000`` or ``1065353216``)."""

    bits: int
    type: ScalarType

    @property
    def value(self) -> int | float:
        """The number as Python has it."""
        if self.type.kind == "s" and self.bits >> (self.type.bits - 1):
            return self.bits - (1 << self.type.bits)
        if self.type.kind == "f" and self.type.bits == 32:
            return float(struct.unpack("<f", self.bits.to_bytes(4, "little"))[0])
        if self.type.kind == "f" and self.type.bits == 64:
            return float(struct.unpack("<d", self.bits.to_bytes(8, "little"))[0])
        return self.bits


class Symbol(NamedTuple):
    """The address of a variable, parameter or function, plus ``offset`` bytes."""

    symbol: str
    offset: int = 0


class SpecialRegister(NamedTuple):
    """A predefined read-only register: ``%tid.x``."""

    special: str


class LabelRef(NamedTuple):
    """The target of a branch."""

    label: str


class Not(NamedTuple):
    """A negated predicate, ``!%p1``."""

    predicate: Register


class Sink(NamedTuple):
    """``_``: the result is not wanted."""

    sink: str = "_"


class Vector(NamedTuple):
    """Operands in braces."""

    items: tuple[Operand, ...]


class Address(NamedTuple):
    """``[base+offset, parts]``; ``base`` is a register, a symbol or an absolute number."""

    base: Register | Symbol | Immediate
    offset: int = 0
    parts: tuple[Operand, ...] = ()


Operand = Union[Register, Immediate, Symbol, SpecialRegister, LabelRef, Not, Sink, Vector, Address]


@dataclass(slots=True)
class Instruction:
    """One instruction: the form of the table it is, its operands in the form's order, its guard and its origin.

    ``loc`` is the Python line, ``line`` the line of the PTX text it was parsed from (0 if it was not).
    """

    form: Form
    operands: tuple[Operand, ...]
    guard: Register | Not | None = None
    loc: Loc | None = None
    line: int = field(default=0, compare=False)

    def reads(self) -> Iterator[Register]:
        """The registers it reads, the guard's among them."""
        if self.guard is not None:
            yield self.guard.predicate if isinstance(self.guard, Not) else self.guard
        for spec, operand in zip(self.form.operands, self.operands):
            if not (spec.written and spec.role == "w"):
                yield from registers(operand)

    def writes(self) -> Iterator[Register]:
        """The registers it writes (only where the guard holds)."""
        for spec, operand in zip(self.form.operands, self.operands):
            if spec.written:
                yield from registers(operand)


@dataclass(slots=True)
class Call:
    """``call (results), callee, (arguments)``; ``prototype`` names the ``.callprototype`` of an indirect call."""

    callee: Symbol | Register
    results: tuple[Operand, ...] = ()
    arguments: tuple[Operand, ...] = ()
    prototype: str | None = None
    uniform: bool = False
    guard: Register | Not | None = None
    loc: Loc | None = None
    line: int = field(default=0, compare=False)


@dataclass(slots=True)
class Label:
    """A place to branch to."""

    name: str


@dataclass(slots=True)
class Comment:
    """A line for people; no part of what the module means."""

    text: str


def registers(operand: Operand) -> Iterator[Register]:
    """The registers in an operand."""
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from registers(item)
    elif isinstance(operand, Not):
        yield operand.predicate
    elif isinstance(operand, Address):
        if isinstance(operand.base, Register):
            yield operand.base
        for part in operand.parts:
            yield from registers(part)


@dataclass(slots=True)
class Variable:
    """A variable in memory: ``.shared .align 16 .b8 tile[4096]``.

    ``shape`` is () for a scalar; a dimension of None is one without a bound (``[]``). ``values`` are the initial
    values, row-major, as the bits of each element, or symbols. ``linkage`` is ``""``, ``visible``, ``extern``,
    ``weak`` or ``common``.
    """

    name: str
    space: str
    type: ScalarType
    shape: tuple[int | None, ...] = ()
    align: int | None = None
    values: tuple[int | Symbol, ...] | None = None
    linkage: str = ""

    @property
    def nbytes(self) -> int:
        """Size in bytes; an unbounded array has 0."""
        count = 1
        for extent in self.shape:
            count *= extent or 0
        return count * self.type.bytes


@dataclass(slots=True)
class Parameter:
    """A kernel or function parameter. ``shape`` as in Variable; ``pointer`` is the ``.ptr`` space and alignment."""

    name: str
    type: ScalarType
    shape: tuple[int | None, ...] = ()
    align: int | None = None
    pointer: tuple[str, int] | None = None

    @property
    def nbytes(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent or 0
        return count * self.type.bytes


Statement = Union[Instruction, Call, Label, Comment]


@dataclass(slots=True)
class Function:
    """An ``.entry`` (kernel) or ``.func``.

    ``registers`` are its declarations in order of appearance, ``variables`` those declared in its body (shared,
    local). ``directives`` are the performance directives in order, each with its numbers: ``("maxntid", (256, 1, 1))``.
    A function without a body (``body is None``) is a declaration.
    """

    name: str
    kind: str = "entry"
    parameters: list[Parameter] = field(default_factory=list)
    results: list[Parameter] = field(default_factory=list)
    directives: list[tuple[str, tuple[int | str, ...]]] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    body: list[Statement] | None = field(default_factory=list)
    linkage: str = "visible"
    prototypes: dict[str, Function] = field(default_factory=dict)
    branch_tables: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def instructions(self) -> Iterator[Instruction]:
        """The instructions of the body, without labels, calls and comments."""
        return (s for s in self.body or () if isinstance(s, Instruction))


@dataclass(slots=True)
class Module:
    """A PTX module."""

    version: tuple[int, int] = (7, 0)
    target: str = "sm_75"
    address_size: int = 64
    target_options: tuple[str, ...] = ()
    variables: list[Variable] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)

    def function(self, name: str) -> Function:
        """The function called ``name``; KeyError if there is none."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)


def spec_pairs(instruction: Instruction) -> Iterator[tuple[OperandSpec, Operand]]:
    """Each operand with what the table says of it."""
    return zip(instruction.form.operands, instruction.operands)
