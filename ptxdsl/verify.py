"""What no assembler should see: the rules of PTX that a module can break although every statement of it is well formed.

ptxas is laxer than the manual (it takes numbers that do not fit, and addresses of 32 bits that it then fails on), and
what it does refuse it refuses in terms of the PTX. Here each offence is told with the Python line that made it. The
check runs after tracing and after parsing, so it has to cost little: what depends only on the form and the types of
the operands is looked up from the second time on.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple, NoReturn, Union

from . import ir
from .errors import Loc, UnknownInstruction, VerifyError
from .flow import Block, assigned, early_reads
from .isa import Form, Need, special, targets
from .isa.directives import DIRECTIVES, TARGET_OPTIONS, VARIABLE_ATTRIBUTES
from .operands import described, mismatch, wanted
from .text.printer import instruction_text
from .types import TYPES, ScalarType, compatible, pred

__all__ = ["verify"]

_C = (".cu", ".cuh", ".h", ".hpp", ".hxx", ".cpp", ".cc", ".c", ".inl")
_Named = Union[ir.Variable, ir.Parameter, ir.Function]
_READ, _WRITE, _BOTH = 0, 1, 2
_NUMBERS = {kind: f"number.{name}" for name, kind in TYPES.items()}
_ADDRESSES = {kind: f"address.{name}" for name, kind in TYPES.items()}


def verify(module: ir.Module, *, foreign: bool = False, filename: str = "<ptx>") -> None:
    """Raise VerifyError at the first offence of a module; return if there is none.

    A register that is read on a path on which nothing wrote it is an offence where the statement carries its Python
    line. Text without lines may also read registers that nothing writes at all, and with the lines of C++, or in a
    ``foreign`` module, anything goes: C++ allows a variable without a value that is never looked at.
    ``filename`` names the text in errors about statements that carry no Python line.

    >>> from .text import parse
    >>> verify(parse(".version 8.0\\n.target sm_90\\n.entry k() { .reg .b32 %r<2>; mov.u32 %r1, %tid.x; ret; }"))
    """
    checker = _Module(module, foreign, filename)
    checker.head()
    for function in module.functions:
        _Function(checker, function).check()


class _Module:
    """What the functions share: names, version and target."""

    def __init__(self, module: ir.Module, foreign: bool, filename: str) -> None:
        self.module, self.foreign, self.filename = module, foreign, filename
        self.variables = {v.name: v for v in module.variables}
        self.functions = {f.name: f for f in module.functions}
        self.plans: dict[Form, _Plan] = {}

    def head(self) -> None:
        """Version, target, and what is declared at the level of the module."""
        module = self.module
        if module.target not in targets.TARGETS:
            fail(f"the target {module.target} is not known", hint=_near(module.target, targets.TARGETS))
        since = targets.introduced(module.target)
        if module.version < since:
            has = _version(module.version)
            fail(
                f".target {module.target} came with PTX {_version(since)}, and this module is PTX {has}",
                hint=f"write `.version {_version(since)}`",
            )
        for option in module.target_options:
            if option not in TARGET_OPTIONS:
                fail(f"`.target` has no option {option}", hint=f"there are {', '.join(TARGET_OPTIONS)}")
        self._names()
        for variable in module.variables:
            self.variable(variable)

    def _names(self) -> None:
        defined: set[str] = set()
        for name in (*self.variables, *(f.name for f in self.module.functions if f.body is not None)):
            if name in defined:
                fail(f"{name} is defined twice", hint="give one of the two another name")
            defined.add(name)

    def variable(self, variable: ir.Variable) -> None:
        """A variable, its type, and the symbols of its initial values."""
        self.type(variable.type, f"the variable {variable.name}")
        self.attributes(variable.attributes)
        for value in variable.values or ():
            if not isinstance(value, int) and value.symbol not in self.variables and value.symbol not in self.functions:
                fail(
                    f"the initial value of {variable.name} is the address of {value.symbol}, which is not declared",
                    hint=f"declare {value.symbol} before it",
                )

    def attributes(self, attributes: tuple[ir.Directive, ...]) -> None:
        """Whether the version and target have what stands in ``.attribute(...)``."""
        for name, _ in attributes:
            self.needs(VARIABLE_ATTRIBUTES[name].needs, f"`.attribute(.{name})`", None)

    def type(self, kind: ScalarType, what: str) -> None:
        """Whether variables and registers of a type exist in this version."""
        if kind.bits == 128 and self.module.version < (8, 3):
            fail(f"{what} is a .b128, which needs PTX 8.3; this module is PTX {_version(self.module.version)}")

    def needs(self, needs: tuple[Need, ...], what: str, loc: Loc | None) -> None:
        """Whether the version and target of the module have something."""
        module = self.module
        unmet = targets.unmet(needs, module.version, module.target) if needs else None
        if unmet is None:
            return
        wants = " or ".join(unmet.targets)
        if unmet.version > module.version:
            fail(
                f"{what} needs PTX {_version(unmet.version)}, and this module is PTX {_version(module.version)}",
                loc=loc, hint=f"write `.version {_version(unmet.version)}`",
            )
        fail(
            f"{what} needs {wants}, and this module is for {module.target}", loc=loc,
            hint=f"write `.target {unmet.targets[0]}`" if unmet.targets else None,
        )


class _Plan(NamedTuple):
    """What is known of a form: what it does to each operand and to control, and the shapes of operands that fit it.

    ``roles`` has the last operand first, so that what an instruction reads is seen before what it writes.
    """

    roles: tuple[int, ...]
    branches: bool
    ends: bool
    bounded: bool
    shapes: set[tuple[object, ...]]


@cache
def _plan(form: Form) -> _Plan:
    roles = tuple((_BOTH if s.role == "rw" else _WRITE) if s.written else _READ for s in reversed(form.operands))
    bounded = any(s.bounds or s.choices for s in form.operands)
    return _Plan(roles, form.opcode in ("bra", "brx"), form.opcode in ("ret", "exit", "trap"), bounded, set())


class _Function:
    def __init__(self, module: _Module, function: ir.Function) -> None:
        self.module, self.function = module, function
        self.local = {v.name: v for v in function.variables}
        self.parameters = {p.name: p for p in (*function.parameters, *function.results) if p.space == "param"}
        self.declared: dict[str, ScalarType] = {}
        self.labels: set[str] = set()
        self.block = Block()

    def check(self) -> None:
        """Everything about a function."""
        module, function = self.module, self.function
        module.attributes(function.attributes)
        for prototype in (function, *function.prototypes.values()):
            for name, _ in prototype.directives:
                if name in DIRECTIVES:
                    module.needs(DIRECTIVES[name].needs, f"`.{name}`", None)
        if function.body is None:
            return
        self._declarations()
        blocks, places = self._statements()
        for table, names in function.branch_tables.items():
            for name in names:
                if name not in self.labels:
                    fail(f"the list {table} names the label {name}, which is nowhere in {function.name}")
        if not module.foreign:
            self._assigned(blocks, places)

    # -- what is declared

    def _declarations(self) -> None:
        function = self.function
        self.declared = {register.name: register.type for register in function.registers}
        if len(self.declared) != len(function.registers):
            self._twice([register.name for register in function.registers])
        self._twice([*self.local, *self.parameters] if self.local.keys() & self.parameters.keys() else [])
        labels = [s.name for s in function.body or () if isinstance(s, ir.Label)]
        self.labels = set(labels)
        if len(labels) != len(self.labels):
            self._twice(labels)
        for kind in set(self.declared.values()):
            self.module.type(kind, "a register")
        for variable in function.variables:
            self.module.variable(variable)

    def _twice(self, names: list[str]) -> None:
        for name in names:
            if names.count(name) > 1:
                fail(f"{name} is declared twice in {self.function.name}", hint="give one of the two another name")

    def _assigned(self, blocks: list[Block], places: dict[str, int]) -> None:
        given = [p.name for p in (*self.function.parameters, *self.function.results) if p.space == "reg"]
        for name, statement in early_reads(blocks, places, given):
            if statement.loc is None and name not in assigned(self.function):
                continue
            if statement.loc is not None and statement.loc.file.endswith(_C):
                continue
            kind = self.declared[name]
            if statement.loc is None or re.match(r"%[a-z]+\d+$", name):
                zero = {"f32": "0f00000000", "f64": "0d0000000000000000"}.get(str(kind), "0")
                hint = f"give it a value first: `mov.{kind} {name}, {zero};`"
            else:
                hint = f"give it a value first: `{name[1:]}.set(...)`"
            self._fail(statement, f"{name} is read here, and not every path to this line has written it", hint)

    # -- instructions

    def _statements(self) -> tuple[list[Block], dict[str, int]]:  # noqa: C901 - one loop: it runs for every operand
        """Check every statement; the basic blocks, and the number of the one that each label begins."""
        declared, plans = self.declared, self.module.plans
        register, immediate, address, instruction = ir.Register, ir.Immediate, ir.Address, ir.Instruction
        blocks, places = [self.block], {}
        defined, exposed = self.block.defined, self.block.exposed
        for s in self.function.body or ():
            if isinstance(s, instruction):
                plan = plans.get(s.form) or self._admit(s)
                shape: list[object] = []
                if s.guard is not None:
                    self._guard(s)
                for role, o in zip(plan.roles, reversed(s.operands)):
                    if o.__class__ is register:
                        name, kind = o
                        if declared.get(name) is not kind:
                            self._undeclared(s, o)
                        if role != _WRITE and name not in defined and name not in exposed:
                            exposed[name] = s
                        if role:
                            defined.add(name)
                        shape.append(kind)
                    elif o.__class__ is immediate:
                        shape.append(o if plan.bounded or o[0] >> o[1].bits else _NUMBERS[o[1]])
                    elif o.__class__ is address and o[0].__class__ is register and not o[2]:
                        name, kind = o[0]
                        if declared.get(name) is not kind:
                            self._undeclared(s, o[0])
                        if name not in defined and name not in exposed:
                            exposed[name] = s
                        shape.append(_ADDRESSES[kind])
                    else:
                        shape.append(self._shape(s, o, role))
                key = tuple(shape)
                if key not in plan.shapes or len(shape) != len(s.operands):
                    self._operands(s)
                    if len(plan.shapes) < _MANY:
                        plan.shapes.add(key)
                if not plan.branches and not plan.ends:
                    continue
                self.block.targets = self._targets(s) if plan.branches else []
                self.block.falls = s.guard is not None
            elif isinstance(s, ir.Label):
                places[s.name] = len(blocks)
            else:
                if isinstance(s, ir.Call):
                    self._call(s)
                continue
            self.block = Block()
            blocks.append(self.block)
            defined, exposed = self.block.defined, self.block.exposed
        return blocks, places

    def _use(self, statement: ir.Instruction | ir.Call, register: ir.Register, role: int) -> ScalarType:
        """Note that a statement reads or writes a register, which has to be declared."""
        name, kind = register
        if self.declared.get(name) is not kind:
            self._undeclared(statement, register)
        if role != _WRITE and name not in self.block.defined:
            self.block.exposed.setdefault(name, statement)
        if role != _READ:
            self.block.defined.add(name)
        return kind

    def _shape(self, statement: ir.Instruction, operand: ir.Operand, role: int) -> object:
        """What matters of an operand to whether it fits; its names are checked on the way."""
        if isinstance(operand, ir.Register):
            return self._use(statement, operand, role)
        if isinstance(operand, ir.Vector):
            return (ir.Vector, *[self._shape(statement, item, role) for item in operand.items])
        if isinstance(operand, ir.Address):
            if isinstance(operand.base, ir.Register):
                base: object = _ADDRESSES[self._use(statement, operand.base, _READ)]
            else:
                base = self._symbol_space(statement, operand)
            return (base, *[self._shape(statement, part, _READ) for part in operand.parts])
        if isinstance(operand, ir.Symbol):
            self._symbol(statement, operand.symbol)
            return ir.Symbol
        if isinstance(operand, ir.LabelRef):
            self._label(statement, operand.label)
            return ir.LabelRef
        if isinstance(operand, ir.SpecialRegister):
            return self._special(statement, operand)
        if isinstance(operand, ir.Not):
            return (ir.Not, self._use(statement, operand.predicate, _READ))
        if isinstance(operand, ir.Selected):
            self._use(statement, operand.register, role)
        return operand

    def _targets(self, branch: ir.Instruction) -> list[str]:
        """The labels that a branch may go to."""
        tables = self.function.branch_tables
        names = [o[0] for o in branch.operands if isinstance(o, (ir.LabelRef, ir.Symbol))]
        return [target for name in names for target in tables.get(name, (name,))]

    def _admit(self, statement: ir.Instruction) -> _Plan:
        """The plan of a form, once the module's version and target have it."""
        form = statement.form
        loc = self._loc(statement)
        self.module.needs(form.needs, f"`{form.mnemonic}`", loc)
        until = form.row.until
        if until is not None and self.module.module.version >= until:
            fail(f"`{form.mnemonic}` is gone since PTX {_version(until)}", loc=loc)
        plan = self.module.plans[form] = _plan(form)
        return plan

    def _operands(self, statement: ir.Instruction) -> None:
        form, operands = statement.form, statement.operands
        if len(form.operands) != len(operands):
            count = f"{len(form.operands)} operands, not {len(operands)}"
            self._fail(statement, f"`{form.mnemonic}` takes {count}", form.row.syntax)
        for spec, operand in zip(form.operands, operands):
            why = mismatch(spec, operand, form.row.relaxed)
            if why is None and spec.kind == "address":
                why = _width(form, spec.space, operand)
            if why is not None:
                message = f"`{form.mnemonic}` wants {wanted(spec)} for {spec.name}, and {why}"
                self._fail(statement, message, _repair(spec.type, operand))

    def _guard(self, statement: ir.Instruction | ir.Call) -> None:
        guard = statement.guard
        register = guard.predicate if isinstance(guard, ir.Not) else guard
        assert register is not None
        if self._use(statement, register, _READ) is not pred:
            message = f"the guard is {described(register)}, and must be a predicate"
            self._fail(statement, message, "compare it: `setp.ne`")

    def _special(self, statement: ir.Instruction, operand: ir.SpecialRegister) -> object:
        try:
            found = special(operand.special)
        except UnknownInstruction as error:
            self._fail(statement, error.message, error.hint)
        self.module.needs(found.needs, operand.special, self._loc(statement))
        return operand

    def _undeclared(self, statement: ir.Instruction | ir.Call, register: ir.Register) -> NoReturn:
        declared = self.declared.get(register.name)
        if declared is not None:
            self._fail(statement, f"{register.name} is used as a .{register.type}, and declared a .{declared}", None)
        self._fail(
            statement, f"the register {register.name} is not declared in {self.function.name}",
            f"declare it: `.reg .{register.type} {register.name};`",
        )

    def _label(self, statement: ir.Instruction, name: str) -> None:
        if name not in self.labels and name not in self.function.branch_tables:
            hint = _near(name, self.labels) or f"place it: `{name}:`"
            self._fail(statement, f"no label in {self.function.name} is called {name}", hint)

    def _symbol(self, statement: ir.Instruction | ir.Call, name: str) -> _Named | None:
        found = (
            self.local.get(name) or self.parameters.get(name) or self.module.variables.get(name)
            or self.module.functions.get(name)
        )
        if found is None and name not in self.function.branch_tables and name not in self.function.call_targets:
            known = [*self.local, *self.parameters, *self.module.variables, *self.module.functions]
            message = f"nothing is called {name}: no variable, parameter or function"
            self._fail(statement, message, _near(name, known))
        return found

    def _symbol_space(self, statement: ir.Instruction, address: ir.Address) -> str:
        """The state space of the variable that an address names; a parameter is held against what is read of it."""
        if not isinstance(address.base, ir.Symbol):
            return "number"
        name = address.base.symbol
        found = self._symbol(statement, name)
        space = found.space if isinstance(found, (ir.Variable, ir.Parameter)) else "function"
        for spec, operand in zip(statement.form.operands, statement.operands):
            if operand is address:
                asked = _asked(statement.form, spec.space)
                if asked not in ("generic", "", space) and not (space == "reg" and asked == "param"):
                    self._fail(
                        statement,
                        f"{name} lies in .{space}, and `{statement.form.mnemonic}` wants an address in .{asked}",
                        f"write `.{space}`" if space in ("global", "shared", "local", "const", "param") else None,
                    )
                if asked == "param" and isinstance(found, (ir.Parameter, ir.Variable)):
                    self._parameter(statement, address, found, spec.role)
        return space

    def _parameter(
        self, statement: ir.Instruction, address: ir.Address, parameter: ir.Parameter | ir.Variable, role: str
    ) -> None:
        form = statement.form
        if form.opcode not in ("ld", "st"):
            return
        kernel = self.function.kind == "entry"
        if role == "w" and (parameter in self.function.parameters or (kernel and isinstance(parameter, ir.Parameter))):
            self._fail(statement, f"{parameter.name} is a parameter, which cannot be written", None)
        spec = next(spec for spec in form.operands if spec.kind == "value")
        assert spec.type is not None
        size = spec.type.bytes * max(1, spec.count)
        if None in parameter.shape:
            return
        if address.offset < 0 or address.offset + size > parameter.nbytes:
            self._fail(
                statement,
                f"bytes {address.offset} to {address.offset + size} of the parameter {parameter.name}, "
                f"which has {parameter.nbytes}",
                None,
            )

    # -- calls

    def _call(self, call: ir.Call) -> None:
        if call.guard is not None:
            self._guard(call)
        reads: list[tuple[ir.Operand, int]] = [(operand, _READ) for operand in (call.callee, *call.arguments)]
        for operand, role in (*reads, *((operand, _WRITE) for operand in call.results)):
            for register in ir.registers(operand):
                self._use(call, register, role)
            if isinstance(operand, ir.Symbol):
                self._symbol(call, operand.symbol)
        callee = self._callee(call)
        if callee is None:
            return
        for given, asked, what in (
            (call.results, callee.results, "result"), (call.arguments, callee.parameters, "argument"),
        ):
            if len(given) != len(asked):
                count = f"{len(asked)} {what}{'' if len(asked) == 1 else 's'}"
                self._fail(call, f"{callee.name} has {count}, and the call gives {len(given)}", None)
            for operand, parameter in zip(given, asked):
                if not self._passes(operand, parameter):
                    wants = f"the {what} {parameter.name} of {callee.name} is a .{parameter.type}{_shown(parameter)}"
                    self._fail(call, f"{wants}, and {described(operand)} is given", _repair(parameter.type, operand))

    def _passes(self, operand: ir.Operand, parameter: ir.Parameter) -> bool:
        """Whether a call may pass an operand for a parameter: of its type, or a .param variable of its size."""
        if isinstance(operand, ir.Register):
            return not parameter.shape and compatible(parameter.type, operand.type)
        if isinstance(operand, ir.Immediate):
            return not parameter.shape and operand.type is parameter.type
        variable = self.local.get(operand.symbol) if isinstance(operand, ir.Symbol) else None
        return variable is None or None in parameter.shape or variable.nbytes == parameter.nbytes

    def _callee(self, call: ir.Call) -> ir.Function | None:
        """The function that is called, or the prototype of it; None where a list of targets says nothing more."""
        if isinstance(call.callee, ir.Register):
            if call.prototype is None:
                self._fail(call, "a call through a register without a prototype", "give it a .callprototype")
            if call.prototype in self.function.call_targets:
                return self.module.functions.get(self.function.call_targets[call.prototype][0])
            if call.prototype not in self.function.prototypes:
                self._fail(call, f"no .callprototype is called {call.prototype}", None)
            return self.function.prototypes[call.prototype]
        callee = self.module.functions.get(call.callee.symbol)
        if callee is None or callee.kind != "func":
            self._fail(call, f"{call.callee.symbol} is no function that can be called", "declare it: `.func`")
        return callee

    # -- errors

    def _loc(self, statement: ir.Instruction | ir.Call) -> Loc | None:
        return statement.loc or (Loc(self.module.filename, statement.line) if statement.line else None)

    def _fail(self, statement: ir.Instruction | ir.Call, message: str, hint: str | None) -> NoReturn:
        fail(f"{message}\n    {instruction_text(statement)};", loc=self._loc(statement), hint=hint)


_MANY = 4096
"""Shapes kept for a form: numbers are part of a shape, so that there could be any number of them."""


def _width(form: Form, space: str | None, operand: ir.Operand) -> str | None:
    """Why a register is too wide or too narrow for an address."""
    base = operand.base if isinstance(operand, ir.Address) else None
    asked = _asked(form, space)
    bits = {"tmem": 32, "global": 64, "generic": 64}.get(asked)
    if isinstance(base, ir.Register) and bits and base.type.bits != bits:
        return f"its base is {described(base)}: a {asked} address has {bits} bits"
    return None


@cache
def _asked(form: Form, space: str | None) -> str:
    """The state space of an address operand: its own, or that of the mnemonic if it is the only one, or "" (any)."""
    alone = sum(spec.kind == "address" for spec in form.operands) == 1
    return (space or (form.space if alone else "")).split("::")[0]


def _shown(parameter: ir.Parameter) -> str:
    return "".join(f"[{'' if extent is None else extent}]" for extent in parameter.shape)


def _near(name: str, known: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(name, list(known), n=3)
    return f"did you mean {' or '.join(near)}?" if near else None


def _repair(kind: ScalarType | None, operand: ir.Operand) -> str | None:
    if kind is None or not isinstance(operand, ir.Register) or operand.type.kind == "p" or kind.kind == "p":
        return None
    if kind.bits == operand.type.bits:
        return f"its bits: `mov.b{kind.bits}`; its value: `cvt`"
    return f"convert it: `cvt.{kind}.{operand.type}`"


def _version(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def fail(message: str, *, loc: Loc | None = None, hint: str | None = None) -> NoReturn:
    """Raise a VerifyError."""
    raise VerifyError(message, loc=loc, hint=hint)

