"""A PTX module as data: what the tracer builds, the parser reads, the printer writes and the emulator runs.

Everything here compares by value, so that ``parse(print(m)) == m`` can be said in one line. Operands are named
tuples: millions are made while tracing, and these cost least.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Union

from ..errors import Loc
from ..isa import Form
from ..isa.reprs import LazyRepr
from ..types import ScalarType

__all__ = [
    "Address", "Call", "Comment", "Function", "Immediate", "Indexed", "Instruction", "Label", "LabelRef", "Module",
    "Not", "Operand", "Parameter", "Pragma", "Reference", "Register", "Selected", "Sink", "SpecialRegister",
    "Statement", "Symbol", "Variable", "Vector",
]

Directive = tuple[str, tuple["int | str", ...]]


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


class Reference(NamedTuple):
    """An initial value made from an address: of ``symbol`` plus ``offset``, as a generic address, one byte of it."""

    symbol: str
    offset: int = 0
    generic: bool = False
    mask: int | None = None


class LabelRef(NamedTuple):
    """The target of a branch, or the ``.branchtargets`` list of one."""

    label: str


class Not(NamedTuple):
    """A negated predicate, ``!%p1``."""

    predicate: Register


class Selected(NamedTuple):
    """Part of a register, as the video instructions take it: ``%r1.b0``, ``-%r1.h1``, ``%r1.b3210``."""

    register: Register
    selector: str = ""
    negated: bool = False


class Sink(NamedTuple):
    """``_``: the result is not wanted."""

    sink: str = "_"


class Vector(NamedTuple):
    """Operands in braces."""

    items: tuple[Operand, ...]


class Address(NamedTuple):
    """``[base+offset, parts]``; ``base`` is a register, a symbol (without an offset) or an absolute number.

    ``unified`` is the suffix of that name.
    """

    base: Register | Symbol | Immediate
    offset: int = 0
    parts: tuple[Operand, ...] = ()
    unified: bool = False


class Indexed(NamedTuple):
    """What an address was computed from: the element at ``indices`` of an array, one for each dimension.

    Extents that the launch brings are named by their parameters. ``type`` is that of an element.
    """

    array: str
    type: ScalarType
    shape: tuple[int | Symbol, ...]
    indices: tuple[int | Register, ...]


Operand = Union[Register, Immediate, Symbol, SpecialRegister, LabelRef, Not, Selected, Sink, Vector, Address]


@dataclass(slots=True, repr=False)
class Instruction(LazyRepr):
    """One instruction: the form of the table it is, its operands in the form's order, its guard and its origin.

    ``loc`` is the Python line, ``line`` the line of the PTX text it was parsed from (0 if it was not). Where it is
    part of another one, in one of several blocks, ``original`` is that, which errors show.
    """

    form: Form
    operands: tuple[Operand, ...]
    guard: Register | Not | None = None
    loc: Loc | None = None
    line: int = field(default=0, compare=False)
    original: Instruction | None = field(default=None, compare=False)

    def operand(self, name: str) -> Any:
        """The operand of this name in the instruction table; None where the instruction has none."""
        return next((o for spec, o in zip(self.form.operands, self.operands) if spec.name == name), None)

    def reads(self) -> Iterator[Register]:
        """The registers it reads, the guard's among them."""
        if self.guard is not None:
            yield self.guard.predicate if isinstance(self.guard, Not) else self.guard
        for spec, operand in zip(self.form.operands, self.operands):
            if not spec.result:
                yield from registers(operand)

    def writes(self) -> Iterator[Register]:
        """The registers it writes (only where the guard holds)."""
        for spec, operand in zip(self.form.operands, self.operands):
            if spec.written:
                yield from registers(operand)


@dataclass(slots=True, repr=False)
class Call(LazyRepr):
    """``call (results), callee, (arguments)``; ``prototype`` names the ``.callprototype`` of an indirect call."""

    callee: Symbol | Register
    results: tuple[Operand, ...] = ()
    arguments: tuple[Operand, ...] = ()
    prototype: str | None = None
    uniform: bool = False
    guard: Register | Not | None = None
    loc: Loc | None = None
    line: int = field(default=0, compare=False)


@dataclass(slots=True, repr=False)
class Label(LazyRepr):
    """A place to branch to."""

    name: str


@dataclass(slots=True, repr=False)
class Comment(LazyRepr):
    """A line for readers, without effect."""

    text: str


@dataclass(slots=True, repr=False)
class Pragma(Comment):
    """A ``.pragma`` among the instructions: a remark to the assembler, which changes no result."""


def elements(operand: Operand) -> tuple[Operand, ...]:
    """What stands in the braces of a vector; of anything else itself."""
    return operand.items if isinstance(operand, Vector) else (operand,)


def registers(operand: Operand) -> Iterator[Register]:
    """The registers in an operand."""
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from registers(item)
    elif isinstance(operand, Not):
        yield operand.predicate
    elif isinstance(operand, Selected):
        yield operand.register
    elif isinstance(operand, Address):
        if isinstance(operand.base, Register):
            yield operand.base
        for part in operand.parts:
            yield from registers(part)


def _nbytes(type: ScalarType, shape: tuple[int | None, ...]) -> int:
    return math.prod([extent or 0 for extent in shape]) * type.bytes


@dataclass(slots=True, repr=False)
class Variable(LazyRepr):
    """A variable in memory: ``.shared .align 16 .b8 tile[4096]``.

    ``shape`` is () for a scalar; a dimension of None is one without a bound (``[]``). ``values`` are the initial
    values, row-major, as the bits of each element, or addresses; elements without one are 0. ``linkage`` is ``""``,
    ``visible``, ``extern``, ``weak`` or ``common``. ``attributes`` stand in ``.attribute(...)``, ``properties`` are
    the initial fields of a ``.samplerref`` or ``.texref``.
    """

    name: str
    space: str
    type: ScalarType
    shape: tuple[int | None, ...] = ()
    align: int | None = None
    values: tuple[int | Symbol | Reference, ...] | None = None
    linkage: str = ""
    attributes: tuple[Directive, ...] = ()
    properties: tuple[tuple[str, int | str], ...] = ()

    @property
    def nbytes(self) -> int:
        """Size in bytes; an unbounded array has 0."""
        return _nbytes(self.type, self.shape)


@dataclass(slots=True, repr=False)
class Parameter(LazyRepr):
    """A kernel or function parameter. ``shape`` as in Variable; ``pointer`` is the ``.ptr`` space and alignment.

    The space of a pointer is ``generic`` where none is named, its alignment 0. ``space`` is ``param``, or ``reg`` for
    a function's parameter that is the register of that name.
    """

    name: str
    type: ScalarType
    shape: tuple[int | None, ...] = ()
    align: int | None = None
    pointer: tuple[str, int] | None = None
    space: str = "param"

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return _nbytes(self.type, self.shape) if self.shape else self.type.bytes


Statement = Union[Instruction, Call, Label, Comment]


@dataclass(slots=True, eq=False, repr=False)
class Function(LazyRepr):
    """An ``.entry`` (kernel) or ``.func``.

    ``registers`` are its declarations; two functions are equal whatever their order. ``variables`` are those declared
    in its body (shared, local, and the ``.param`` ones that calls pass). ``directives`` are the performance directives
    in order, each with its numbers: ``("maxntid", (256, 1, 1))``. ``prototypes``, ``branch_tables`` and
    ``call_targets`` are the ``.callprototype``, ``.branchtargets`` and ``.calltargets`` by label. A function without a
    body (``body is None``) is a declaration.

    ``indexed`` says of addresses in the body, the same objects, what they were computed from, and which indices come
    behind those, as numbers, registers, or pairs of register and type; ``kept`` names, before an
    instruction, registers that keep what others hold then, which only ``indexed`` reads. Both are for tools: the text
    has none of it.
    """

    name: str
    kind: str = "entry"
    parameters: list[Parameter] = field(default_factory=list)
    results: list[Parameter] = field(default_factory=list)
    directives: list[Directive] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    body: list[Statement] | None = field(default_factory=list)
    linkage: str = "visible"
    prototypes: dict[str, Function] = field(default_factory=dict)
    branch_tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    call_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    attributes: tuple[Directive, ...] = ()
    indexed: list[tuple[Address, Indexed, tuple[Any, ...]]] = field(default_factory=list)
    kept: list[tuple[Instruction, Register, Register]] = field(default_factory=list)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Function):
            return NotImplemented
        names = set(self.__slots__) - {"registers", "indexed", "kept"}
        return set(self.registers) == set(other.registers) and all(
            getattr(self, name) == getattr(other, name) for name in names
        )

    __hash__ = None  # type: ignore[assignment]

    def instructions(self) -> Iterator[Instruction]:
        """The instructions of the body, without labels, calls and comments."""
        return (s for s in self.body or () if isinstance(s, Instruction))


@dataclass(slots=True, repr=False)
class Module(LazyRepr):
    """A PTX module.

    ``directives`` are those of the whole module (``pragma``, ``alias``), ``sections`` the debugging sections by name,
    their text as it was.
    """

    version: tuple[int, int] = (7, 0)
    target: str = "sm_75"
    address_size: int = 64
    target_options: tuple[str, ...] = ()
    variables: list[Variable] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    directives: list[Directive] = field(default_factory=list)
    sections: list[tuple[str, str]] = field(default_factory=list)

    @property
    def aliases(self) -> dict[str, str]:
        """What the second names of functions stand for (``.alias``)."""
        pairs = [marks for name, marks in self.directives if name == "alias"]
        return {str(alias): str(name) for alias, name in pairs}

    def function(self, name: str) -> Function:
        """The function called ``name``, its definition rather than a declaration; KeyError if there is none."""
        found = [function for function in self.functions if function.name == name]
        if not found:
            raise KeyError(name)
        return next((function for function in found if function.body is not None), found[0])
