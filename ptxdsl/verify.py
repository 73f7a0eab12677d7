"""What no assembler should see: the rules of PTX that a module can break although every statement of it is well formed.

ptxas is laxer than the manual (it takes numbers that do not fit, and addresses of 32 bits that it then fails on), and
what it does refuse it refuses in terms of the PTX. Here each offence is told with the Python line that made it. The
check runs after tracing and after parsing, so it has to cost little: what depends only on the form and the types of
the operands is looked up from the second time on.
"""

from __future__ import annotations

import difflib
import re
from functools import cache
from typing import NoReturn

from . import ir
from .errors import Loc, UnknownInstruction, VerifyError
from .flow import assigned, unassigned
from .isa import Form, Need, special, targets
from .operands import described, mismatch, wanted
from .text.printer import instruction_text
from .types import ScalarType, pred

__all__ = ["verify"]

_seen: dict[Form, set[tuple[object, ...]]] = {}
"""The operand types that fit each form: a cache."""

_DIRECTIVES = {
    "reqnctapercluster": Need((7, 8), ("sm_90",)), "explicitcluster": Need((7, 8), ("sm_90",)),
    "maxclusterrank": Need((7, 8), ("sm_90",)), "blocksareclusters": Need((9, 0), ("sm_90",)),
    "abi_preserve": Need((9, 0), ("sm_80",)), "abi_preserve_control": Need((9, 0), ("sm_80",)),
    "minperctamemory": Need((9, 4), ("sm_80",)), "noreturn": Need((6, 4), ()), "unified": Need((8, 0), ("sm_90",)),
}
_OPTIONS = ("texmode_unified", "texmode_independent", "debug")
"""Options of `.target`; map_f64_to_f32 is for targets older than any here."""
_C = (".cu", ".cuh", ".h", ".hpp", ".hxx", ".cpp", ".cc", ".c", ".inl")
_WIDE = ("ld", "ldu", "st", "atom", "red", "prefetch", "prefetchu")


def verify(module: ir.Module, *, foreign: bool = False, filename: str = "<ptx>") -> None:
    """Raise VerifyError at the first offence of a module; return if there is none.

    A register that is read on a path on which nothing wrote it is an offence where the statement carries its Python
    line. Text without such lines may also read registers that nothing writes at all, and in a ``foreign`` module, a
    compiler's, anything goes: C++ allows a variable without a value that is never looked at.
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
        self.admitted: dict[Form, set[tuple[object, ...]]] = {}

    def head(self) -> None:
        """Version, target, and what is declared at the level of the module."""
        module = self.module
        if module.target not in targets.TARGETS:
            near = difflib.get_close_matches(module.target, targets.TARGETS, n=3)
            fail(f"the target {module.target} is not known", hint=f"did you mean {' or '.join(near)}?" if near else None)
        since = targets.introduced(module.target)
        if module.version < since:
            fail(
                f".target {module.target} came with PTX {_version(since)}, and this module is PTX {_version(module.version)}",
                hint=f"write `.version {_version(since)}`",
            )
        for option in module.target_options:
            if option not in _OPTIONS:
                fail(f"`.target` has no option {option}", hint=f"there are {', '.join(_OPTIONS)}")
        self._names()
        for variable in module.variables:
            self.variable(variable)

    def _names(self) -> None:
        defined: set[str] = set()
        for thing in (*self.module.variables, *(f for f in self.module.functions if f.body is not None)):
            if thing.name in defined:
                fail(f"{thing.name} is defined twice", hint="give one of the two another name")
            defined.add(thing.name)

    def variable(self, variable: ir.Variable) -> None:
        """A variable, its type, and the symbols of its initial values."""
        self.type(variable.type, f"the variable {variable.name}")
        for name, _ in variable.attributes:
            if name in _DIRECTIVES:
                self.needs((_DIRECTIVES[name],), f"`.attribute(.{name})`", None)
        for value in variable.values or ():
            if not isinstance(value, int) and value.symbol not in self.variables and value.symbol not in self.functions:
                fail(
                    f"the initial value of {variable.name} is the address of {value.symbol}, which is not declared",
                    hint=f"declare {value.symbol} before it",
                )

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


class _Function:
    def __init__(self, module: _Module, function: ir.Function) -> None:
        self.module, self.function = module, function
        self.local = {v.name: v for v in function.variables}
        self.parameters = {p.name: p for p in (*function.parameters, *function.results) if p.space == "param"}
        self.declared: set[ir.Register] = set()
        self.labels: set[str] = set()

    def check(self) -> None:
        """Everything about a function."""
        module, function = self.module, self.function
        marks = (*function.directives, *function.attributes)
        for directive, _ in (*marks, *(d for p in function.prototypes.values() for d in p.directives)):
            if directive in _DIRECTIVES:
                module.needs((_DIRECTIVES[directive],), f"`.{directive}`", None)
        if function.body is None:
            return
        self._declarations()
        for statement in function.body:
            if statement.__class__ is ir.Instruction:
                self._instruction(statement)  # type: ignore[arg-type]
            elif statement.__class__ is ir.Call:
                self._call(statement)  # type: ignore[arg-type]
        for table, names in function.branch_tables.items():
            for name in names:
                if name not in self.labels:
                    fail(f"the list {table} names the label {name}, which is nowhere in {function.name}")
        if not self.module.foreign:
            self._assigned()

    # -- what is declared

    def _declarations(self) -> None:
        function = self.function
        self.declared = set(function.registers)
        if len({register.name for register in function.registers}) != len(function.registers):
            self._twice([register.name for register in function.registers])
        self._twice([*self.local, *self.parameters] if self.local.keys() & self.parameters.keys() else [])
        labels = [s.name for s in function.body or () if s.__class__ is ir.Label]  # type: ignore[union-attr]
        self.labels = set(labels)
        if len(labels) != len(self.labels):
            self._twice(labels)
        for kind in {register.type for register in function.registers}:
            self.module.type(kind, "a register")
        for variable in function.variables:
            self.module.variable(variable)

    def _twice(self, names: list[str]) -> None:
        for name in names:
            if names.count(name) > 1:
                fail(f"{name} is declared twice in {self.function.name}", hint="give one of the two another name")

    def _assigned(self) -> None:
        for register, statement in unassigned(self.function):
            sourceless = statement.loc is None or statement.loc.file.endswith(_C)
            if sourceless and register not in assigned(self.function):
                continue
            name, kind = register
            if statement.loc is None or re.match(r"%(p|b|h|r|rd|rq|f|fd)\d+$", name):
                zero = {"f32": "0f00000000", "f64": "0d0000000000000000"}.get(str(kind), "0")
                hint = f"give it a value first: `mov.{kind} {name}, {zero};`"
            else:
                hint = f"give it a value first: `{name[1:]}.set(...)`"
            self._fail(statement, f"{name} is read here, and not every path to this line has written it", hint)

    # -- instructions

    def _instruction(self, statement: ir.Instruction) -> None:
        form = statement.form
        admitted = self.module.admitted.get(form)
        if admitted is None:
            admitted = self._admit(statement)
        declared, shape = self.declared, []
        for o in statement.operands:
            kind = o.__class__
            if kind is ir.Register:
                if o not in declared:
                    self._undeclared(statement, o)  # type: ignore[arg-type]
                shape.append(o[1])
            elif kind is ir.Immediate:
                shape.append(o)
            elif kind is ir.Address and o[0].__class__ is ir.Register and not o[2]:  # type: ignore[misc, union-attr]
                if o[0] not in declared:
                    self._undeclared(statement, o[0])  # type: ignore[arg-type]
                shape.append((kind, o[0][1]))  # type: ignore[index]
            else:
                shape.append(self._shape(statement, o))
        if statement.guard is not None:
            self._guard(statement)
        key = tuple(shape)
        if key not in admitted:
            self._operands(statement)
            if len(admitted) < _MANY:
                admitted.add(key)

    def _shape(self, statement: ir.Instruction, operand: ir.Operand) -> object:
        """What matters of an operand to whether it fits; its names are checked on the way."""
        for register in ir.registers(operand):
            if register not in self.declared:
                self._undeclared(statement, register)
        if isinstance(operand, ir.Vector):
            return (ir.Vector, tuple(item.type if isinstance(item, ir.Register) else item for item in operand.items))
        if isinstance(operand, ir.Address):
            base = operand.base.type if isinstance(operand.base, ir.Register) else self._symbol_space(statement, operand)
            return (ir.Address, base, tuple(self._shape(statement, part) for part in operand.parts))
        if isinstance(operand, ir.Symbol):
            self._symbol(statement, operand.symbol)
            return ir.Symbol
        if isinstance(operand, ir.LabelRef):
            self._label(statement, operand.label)
            return ir.LabelRef
        if isinstance(operand, ir.SpecialRegister):
            return self._special(statement, operand)
        return (operand.__class__, tuple(r.type for r in ir.registers(operand)))

    def _admit(self, statement: ir.Instruction) -> set[tuple[object, ...]]:
        """The cache of a form, once the module's version and target have it."""
        form = statement.form
        loc = self._loc(statement)
        self.module.needs(form.needs, f"`{form.mnemonic}`", loc)
        until = form.row.until
        if until is not None and self.module.module.version >= until:
            fail(f"`{form.mnemonic}` is gone since PTX {_version(until)}", loc=loc)
        admitted = self.module.admitted[form] = _seen.setdefault(form, set())
        return admitted

    def _operands(self, statement: ir.Instruction) -> None:
        form, operands = statement.form, statement.operands
        if len(form.operands) != len(operands):
            self._fail(statement, f"`{form.mnemonic}` takes {len(form.operands)} operands, not {len(operands)}", form.row.syntax)
        for spec, operand in zip(form.operands, operands):
            why = mismatch(spec, operand, form.row.relaxed)
            if why is None and spec.kind == "address":
                why = _narrow(form, spec.space, operand)
            if why is not None:
                self._fail(
                    statement, f"`{form.mnemonic}` wants {wanted(spec)} for {spec.name}, and {why}", _repair(spec.type, operand)
                )

    def _guard(self, statement: ir.Instruction | ir.Call) -> None:
        guard = statement.guard
        register = guard.predicate if isinstance(guard, ir.Not) else guard
        assert register is not None
        if register not in self.declared:
            self._undeclared(statement, register)
        if register.type is not pred:
            self._fail(statement, f"the guard is {described(register)}, and must be a predicate", "compare it: `setp.ne`")

    def _special(self, statement: ir.Instruction, operand: ir.SpecialRegister) -> object:
        try:
            found = special(operand.special)
        except UnknownInstruction as error:
            self._fail(statement, error.message, error.hint)
        if operand not in self.module.admitted:
            self.module.needs(found.needs, operand.special, self._loc(statement))
        return operand

    def _undeclared(self, statement: ir.Instruction | ir.Call, register: ir.Register) -> NoReturn:
        same = next((r for r in self.declared if r.name == register.name), None)
        if same is not None:
            self._fail(statement, f"{register.name} is used as a .{register.type}, and declared a .{same.type}", None)
        self._fail(
            statement, f"the register {register.name} is not declared in {self.function.name}",
            f"declare it: `.reg .{register.type} {register.name};`",
        )

    def _label(self, statement: ir.Instruction, name: str) -> None:
        if name not in self.labels and name not in self.function.branch_tables:
            near = difflib.get_close_matches(name, self.labels, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"place it: `{name}:`"
            self._fail(statement, f"no label in {self.function.name} is called {name}", hint)

    def _symbol(self, statement: ir.Instruction | ir.Call, name: str) -> ir.Variable | ir.Parameter | ir.Function | None:
        found = (
            self.local.get(name) or self.parameters.get(name) or self.module.variables.get(name)
            or self.module.functions.get(name)
        )
        if found is None and name not in self.function.branch_tables and name not in self.function.call_targets:
            known = [*self.local, *self.parameters, *self.module.variables, *self.module.functions]
            near = difflib.get_close_matches(name, known, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else None
            self._fail(statement, f"nothing is called {name}: no variable, parameter or function", hint)
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
                        statement, f"{name} lies in .{space}, and `{statement.form.mnemonic}` wants an address in .{asked}",
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
        for operand in (call.callee, *call.results, *call.arguments):
            for register in ir.registers(operand):
                if register not in self.declared:
                    self._undeclared(call, register)
            if isinstance(operand, ir.Symbol):
                self._symbol(call, operand.symbol)
        callee = self._callee(call)
        if callee is None:
            return
        for given, asked, what in (
            (call.results, callee.results, "result"), (call.arguments, callee.parameters, "argument"),
        ):
            if len(given) != len(asked):
                plural = "" if len(asked) == 1 else "s"
                self._fail(call, f"{callee.name} has {len(asked)} {what}{plural}, and the call gives {len(given)}", None)
            for operand, parameter in zip(given, asked):
                if isinstance(operand, ir.Register) and not (
                    operand.type.bits == parameter.nbytes * 8 and (operand.type.kind == "f") <= (parameter.type.kind in "fb")
                ):
                    self._fail(
                        call, f"the {what} {parameter.name} of {callee.name} is a .{parameter.type}, and {described(operand)} is given",
                        None,
                    )

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


def _narrow(form: Form, space: str | None, operand: ir.Operand) -> str | None:
    """Why a register of 32 bits is no address here: the global and the generic space have 64."""
    base = operand.base if isinstance(operand, ir.Address) else None
    if isinstance(base, ir.Register) and base.type.bits == 32 and form.opcode in _WIDE:
        asked = _asked(form, space)
        if asked in ("generic", "global"):
            return f"{described(base)} is too narrow: a {asked} address has 64 bits"
    return None


@cache
def _asked(form: Form, space: str | None) -> str:
    """The state space of an address operand: its own, or that of the mnemonic if it is the only one, or "" (any)."""
    alone = sum(spec.kind == "address" for spec in form.operands) == 1
    return (space or (form.space if alone else "")).split("::")[0]


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

