"""What a statement makes of its operands: the registers, variables, parameters and labels that it names, its calls.

The path that every operand takes is in `verify`; here is what only some need, and the errors.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NoReturn, Union

from .. import ir
from ..errors import Loc, UnknownInstruction, with_article
from ..analysis.definite_assignment import Block
from ..isa import Form, special
from ..ir.operand_matching import described, mismatch, wanted
from ..text.printer import instruction_text, shape_text
from ..types import TYPES, ScalarType, compatible, pred
from .declarations import ModuleContext, fail, near
from .form_plans import READ, WRITE

__all__ = ["ADDRESSES", "StatementChecker", "number"]

Statement = Union[ir.Instruction, ir.Call]
Named = Union[ir.Variable, ir.Parameter, ir.Function]
ADDRESSES = {kind: f"address.{name}" for name, kind in TYPES.items()}


@lru_cache(4096)
def number(operand: ir.Immediate) -> object:
    """What matters of a number to a form that takes any: its type, if its bits fit that."""
    return operand if operand.bits >> operand.type.bits else f"number.{operand.type}"


class StatementChecker:
    """The names of one function, and the checks of the statements that use them."""

    def __init__(self, module: ModuleContext, function: ir.Function) -> None:
        self.module, self.function = module, function
        self.local = {v.name: v for v in function.variables}
        self.parameters = {p.name: p for p in (*function.parameters, *function.results) if p.space == "param"}
        self.declared = set(function.registers)
        self.labels: set[str] = set()
        self.spaces: dict[tuple[Form, str], str] = {}
        self.block = Block()

    def use(self, statement: Statement, register: ir.Register, role: int) -> ScalarType:
        """Note that a statement reads or writes a register, which has to be declared."""
        block = self.block
        if register not in block.defined:
            if register not in self.declared:
                self.undeclared(statement, register)
            if role != WRITE:
                block.exposed.setdefault(register, statement)
            if role != READ:
                block.defined.add(register)
        return register.type

    def shape(self, statement: ir.Instruction, operand: ir.Operand, role: int) -> object:
        """What matters of an operand to whether it fits; its names are checked on the way."""
        if isinstance(operand, ir.Register):
            return self.use(statement, operand, role)
        if isinstance(operand, ir.Vector):
            use, shape = self.use, self.shape
            return tuple([
                use(statement, o, role) if o.__class__ is ir.Register else shape(statement, o, role) for o in operand[0]
            ])
        if isinstance(operand, ir.Address):
            if isinstance(operand.base, ir.Register):
                base: object = ADDRESSES[self.use(statement, operand.base, READ)]
            else:
                base = self.symbol_space(statement, operand)
            if self.module.foreign and isinstance(statement, ir.Instruction):
                self._sampler(statement, len(operand.parts) > 1)
            return (base, *[self.shape(statement, part, READ) for part in operand.parts])
        if isinstance(operand, ir.Symbol):
            self._symbol(statement, operand.symbol)
            return ir.Symbol
        if isinstance(operand, ir.LabelRef):
            self._label(statement, operand.label)
            return ir.LabelRef
        if isinstance(operand, ir.SpecialRegister):
            return self._special(statement, operand)
        if isinstance(operand, ir.Not):
            return (ir.Not, self.use(statement, operand.predicate, READ))
        if isinstance(operand, ir.Selected):
            self.use(statement, operand.register, role)
        return operand

    def operands(self, statement: ir.Instruction) -> None:
        """Check each operand against what the form wants."""
        form, operands = statement.form, statement.operands
        if len(form.operands) != len(operands):
            count = f"{len(form.operands)} operands, not {len(operands)}"
            self.fail(statement, f"`{form.mnemonic}` takes {count}", form.row.syntax)
        for spec, operand in zip(form.operands, operands):
            why = mismatch(spec, operand, form.row.relaxed)
            if why is None and spec.kind == "address" and self.module.module.address_size == 64:
                why = _width(form, spec.space, operand)
            if why is not None:
                message = f"`{form.mnemonic}` wants {wanted(spec)} for {spec.name}, and {why}"
                self.fail(statement, message, None if spec.written else _repair(spec.type, operand))

    def _sampler(self, statement: ir.Instruction, named: bool) -> None:
        """In one mode textures have samplers, in the other each instruction names one."""
        module, access = self.module.module, statement.form.effects.accesses[0]
        samples = access.kind == "texel" and access.space == "texture"
        if not samples or named == ("texmode_independent" in module.target_options):
            return
        if named:
            hint = f"write `.target {module.target}, texmode_independent`, or leave the sampler out"
            self.fail(statement, "a sampler of its own, and textures have theirs in `texmode_unified`", hint)
        self.fail(
            statement, "no sampler, and each texture instruction names one in `texmode_independent`",
            f"name it: `[a, sampler, {{..}}]`, or write `.target {module.target}`",
        )

    def guard(self, statement: Statement) -> None:
        """Check that the guard is a predicate."""
        guard = statement.guard
        register = guard.predicate if isinstance(guard, ir.Not) else guard
        assert register is not None
        if self.use(statement, register, READ) is not pred:
            message = f"the guard is {described(register)}, and must be a predicate"
            self.fail(statement, message, "compare it: `setp.ne`")

    def _special(self, statement: ir.Instruction, operand: ir.SpecialRegister) -> object:
        if operand in self.module.specials:
            return operand
        try:
            found = special(operand.special)
        except UnknownInstruction as error:
            self.fail(statement, error.message, error.hint)
        self.module.needs(found.needs, operand.special, self.loc(statement))
        if found.components and "." not in operand.special:
            if not statement.form.operands[0].count:
                message = f"{operand.special} is a vector, and `{statement.form.mnemonic}` wants one number"
                self.fail(statement, message, f"name a component: `{operand.special}.{found.components[0]}`")
            return operand
        self.module.specials.add(operand)
        return operand

    def undeclared(self, statement: Statement, register: ir.Register) -> NoReturn:
        """The error for a register that is not declared, or not so."""
        for name, declared in self.declared:
            if name == register.name:
                self.fail(statement, f"{name} is used as a .{register.type}, and declared a .{declared}", None)
        self.fail(
            statement, f"the register {register.name} is not declared in {self.function.name}",
            f"declare it: `.reg .{register.type} {register.name};`",
        )

    def _label(self, statement: ir.Instruction, name: str) -> None:
        if name not in self.labels and name not in self.function.branch_tables:
            hint = near(name, self.labels) or f"place it: `{name}:`"
            self.fail(statement, f"no label in {self.function.name} is called {name}", hint)

    def _symbol(self, statement: Statement, name: str) -> Named | None:
        found = (
            self.local.get(name) or self.parameters.get(name) or self.module.variables.get(name)
            or self.module.functions.get(name)
        )
        if found is None and name not in self.function.branch_tables and name not in self.function.call_targets:
            known = [*self.local, *self.parameters, *self.module.variables, *self.module.functions]
            message = f"nothing is called {name}: no variable, parameter or function"
            self.fail(statement, message, near(name, known))
        return found

    def symbol_space(self, statement: ir.Instruction, address: ir.Address) -> str:
        """The state space of the variable that an address names; of a parameter, what is read of it is checked."""
        if not isinstance(address.base, ir.Symbol):
            return "number"
        name = address.base.symbol
        known = self.spaces.get((statement.form, name))
        if known is not None:
            return known
        found = self._symbol(statement, name)
        space = found.space if isinstance(found, (ir.Variable, ir.Parameter)) else "function"
        for spec, operand in zip(statement.form.operands, statement.operands):
            if operand is address:
                asked = _asked(statement.form, spec.space)
                wrong = asked not in ("generic", "", space) and not (space == "reg" and asked == "param")
                opaque = isinstance(found, (ir.Variable, ir.Parameter)) and found.type.kind == "o"
                if wrong or (asked == "generic" and space in ("const", "param") and not opaque):
                    wants = f"wants an address in .{asked}" if wrong else "names no state space"
                    self.fail(
                        statement,
                        f"{name} lies in .{space}, and `{statement.form.mnemonic}` {wants}",
                        f"write `.{space}`" if space in ("global", "shared", "local", "const", "param") else None,
                    )
                if asked == "param" and isinstance(found, (ir.Parameter, ir.Variable)):
                    self._parameter(statement, address, found, spec.role)
        # Every access to a parameter is checked against its size, and two addresses may lie in different spaces.
        if space != "param" and sum(spec.kind == "address" for spec in statement.form.operands) == 1:
            self.spaces[statement.form, name] = space
        return space

    def _parameter(
        self, statement: ir.Instruction, address: ir.Address, parameter: ir.Parameter | ir.Variable, role: str
    ) -> None:
        form = statement.form
        if form.effects.access is None:
            return
        kernel = self.function.kind == "entry"
        if role == "w" and (parameter in self.function.parameters or (kernel and isinstance(parameter, ir.Parameter))):
            self.fail(statement, f"{parameter.name} is a parameter, which cannot be written", None)
        spec = next(spec for spec in form.operands if spec.kind == "value")
        assert spec.type is not None
        size = spec.type.bytes * max(1, spec.count)
        if None in parameter.shape or (self.module.foreign and role == "r" and kernel):
            return  # where nothing comes of what lies behind a parameter, text may load it
        if address.offset < 0 or address.offset + size > parameter.nbytes:
            self.fail(
                statement,
                f"bytes {address.offset} to {address.offset + size} of the parameter {parameter.name}, "
                f"which has {parameter.nbytes}",
                None,
            )

    # -- calls

    def call(self, call: ir.Call) -> None:
        """Everything about a call."""
        if call.guard is not None:
            self.guard(call)
        reads: list[tuple[ir.Operand, int]] = [(operand, READ) for operand in (call.callee, *call.arguments)]
        for operand, role in (*reads, *((operand, WRITE) for operand in call.results)):
            for register in ir.registers(operand):
                self.use(call, register, role)
            if isinstance(operand, ir.Symbol):
                self._symbol(call, operand.symbol)
        callee = self._callee(call)
        if callee is None:
            return
        for given, asked, what in (
            (call.results, callee.results, "result"), (call.arguments, callee.parameters, "argument"),
        ):
            if len(asked) == len(given) + 1 and None in asked[-1].shape:
                asked = asked[:-1]  # an array without a size takes any number of further arguments, and none
            if len(given) != len(asked):
                count = f"{len(asked)} {what}{'' if len(asked) == 1 else 's'}"
                self.fail(call, f"{callee.name} has {count}, and the call gives {len(given)}", None)
            for operand, parameter in zip(given, asked):
                if not self._passes(operand, parameter):
                    kind = f".{parameter.type}{shape_text(parameter.shape)}"
                    wants = f"the {what} {parameter.name} of {callee.name} is {with_article(kind)}"
                    self.fail(call, f"{wants}, and {described(operand)} is given", _repair(parameter.type, operand))

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
                self.fail(call, "a call through a register without a prototype", "give it a .callprototype")
            if call.prototype in self.function.call_targets:
                return self._targets_of(call, self.function.call_targets[call.prototype])
            if call.prototype not in self.function.prototypes:
                self.fail(call, f"no .callprototype is called {call.prototype}", None)
            return self.function.prototypes[call.prototype]
        if call.prototype is not None:
            self.fail(call, "a call of a function by its name, and a prototype", f"leave out `, {call.prototype}`")
        callee = self.module.functions.get(call.callee.symbol)
        if callee is None or callee.kind != "func":
            self.fail(call, f"{call.callee.symbol} is no function that can be called", "declare it: `.func`")
        return callee

    def _targets_of(self, call: ir.Call, names: tuple[str, ...]) -> ir.Function | None:
        """One of the functions that a call may reach, all of which have the same parameters and results."""
        first, *others = [self.module.functions.get(name) for name in names]
        for other in others:
            if first is not None and other is not None and _passed(first) != _passed(other):
                message = f"{first.name} and {other.name} are called here, and their parameters differ"
                self.fail(call, message, f"give {call.prototype} functions of one prototype only")
        return first

    # -- errors

    def loc(self, statement: Statement) -> Loc | None:
        """The Python line of a statement, or else its line in the text."""
        return statement.loc or (Loc(self.module.filename, statement.line) if statement.line else None)

    def fail(self, statement: Statement, message: str, hint: str | None) -> NoReturn:
        """Raise the VerifyError for a statement."""
        fail(f"{message}\n    {instruction_text(statement)};", loc=self.loc(statement), hint=hint)


def _width(form: Form, space: str | None, operand: ir.Operand) -> str | None:
    """Why a register is too wide or too narrow for an address."""
    base = operand.base if isinstance(operand, ir.Address) else None
    asked = _asked(form, space)
    if isinstance(base, ir.Immediate) and asked != "local":
        return "its base is a number, which only an address in .local may be"
    bits = {"tmem": 32, "fabric": 32, "global": 64, "generic": 64}.get(asked)
    if isinstance(base, ir.Register) and bits and base.type.bits != bits:
        return f"its base is {described(base)}: {with_article(asked)} address has {bits} bits"
    return None


def _passed(function: ir.Function) -> list[tuple[int, bool]]:
    """What a call of a function passes: the sizes of parameters and results, in order, and which are results."""
    return [(p.nbytes, False) for p in function.parameters] + [(p.nbytes, True) for p in function.results]


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
    return _conversion(operand.type, kind)


def _conversion(source: ScalarType, target: ScalarType) -> str | None:
    """The cvt from one type to another of another size, and what it does to a number that the target does not hold."""
    if source.lanes > 1 or target.lanes > 1:
        return None
    (given, signed), (wanted, _) = [
        (kind, kind) if kind.is_float else (f"u{kind.bits}", f"s{kind.bits}") for kind in (source, target)
    ]
    narrower = target.bits < source.bits
    if target.is_float:
        rounds = not source.is_float or narrower
        return f"convert it: `cvt{'.rn' * rounds}.{wanted}.{given}`" + ", which rounds" * rounds
    if source.is_float:
        return f"convert it: `cvt.rzi.{wanted}.{given}`, which rounds towards zero"
    if narrower:
        return f"convert it: `cvt.{wanted}.{given}`, which keeps the low {target.bits} bits"
    return f"convert it: `cvt.{wanted}.{given}`, of signed numbers `cvt.s{target.bits}.{signed}`"
