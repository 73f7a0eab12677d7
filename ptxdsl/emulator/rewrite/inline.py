"""Calls of functions, expanded in place.

A call's parameters become memory of the thread, and registers where every access to one is whole, so that most of them
cost a move. A function that calls itself, at however many removes, is there once, with a stack in the thread's local
memory (:mod:`.recursion`). What remains of calls are those to functions of the CUDA system, which the host answers.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, NamedTuple

from ...ir import (
    Address, Call, Function, Immediate, Instruction, Label, LabelRef, Module, Not, Operand, Parameter, Register,
    Selected, Symbol, Variable, Vector,
)
from ...isa import Form, lookup
from ...types import TYPES, ScalarType
from .async_copies import asynchronous, synchronous
from ..machine.address_spaces import function_addresses
from .indirect_calls import targets
from .recursion import Recursion, moves
from .alloca import OPCODES as STACK_OPCODES
from .alloca import allocates, stacked

__all__ = ["SERVICES", "Frame", "Inliner", "Scope", "inline"]

SERVICES = ("vprintf", "__assertfail", "malloc", "free")
"""Functions of the CUDA system that the emulator provides."""


def inline(module: Module, function: Function) -> Function:
    """The function with all calls expanded, and instructions that come down to others; itself where there are none."""
    forms, calls = _used(function)
    if calls or any(variable.space == "param" for variable in function.variables):
        function = Inliner(module, function).result()
        forms, _ = _used(function)
    if any(form.opcode in STACK_OPCODES for form in forms):
        function = stacked(function)
    return synchronous(function) if any(map(asynchronous, forms)) else function


def _used(function: Function) -> tuple[set[Form], bool]:
    """The forms of a function's instructions, and whether it calls anything."""
    forms: set[Form] = set()
    calls = False
    for statement in function.body or ():
        if statement.__class__ is Instruction:
            forms.add(statement.form)
        elif statement.__class__ is Call:
            calls = True
    return forms, calls


def form_for(mnemonic: str, arity: int) -> Form:
    return next(form for form in lookup(mnemonic) if len(form.operands) == arity)


class Frame(NamedTuple):
    """The local variables of a recursive function: the register that their offsets count from, and their size."""

    register: Register
    offsets: dict[str, int]
    nbytes: int


class Scope:
    """What names mean inside one expanded call: registers and labels get a suffix, parameters are cells."""

    def __init__(self, suffix: str, end: str | None, stack: tuple[str, ...]) -> None:
        self.suffix, self.end, self.stack = suffix, end, stack
        self.cells: dict[str, str] = {}
        self.own: set[str] = set()
        self.saved: dict[int, tuple[Register, ...]] = {}
        """Of a recursive function, by the id of each call: the registers to be saved, since it may come back here."""
        self.frame: Frame | None = None
        """Where the local variables of a recursive function are, each time that it is entered anew."""

    def register(self, register: Register) -> Register:
        return Register(register.name + self.suffix, register.type) if self.suffix else register

    def operand(self, operand: Any) -> Any:
        """An operand with the names of the caller's text."""
        if isinstance(operand, Register):
            return self.register(operand)
        if isinstance(operand, Not):
            return Not(self.register(operand.predicate))
        if isinstance(operand, Vector):
            return Vector(tuple(self.operand(item) for item in operand.items))
        if isinstance(operand, Address):
            parts = tuple(self.operand(part) for part in operand.parts)
            return operand._replace(base=self.operand(operand.base), parts=parts)
        if isinstance(operand, Symbol):
            return operand._replace(symbol=self.symbol(operand.symbol))
        if isinstance(operand, LabelRef):
            return LabelRef(operand.label + self.suffix)
        if isinstance(operand, Selected):
            return operand._replace(register=self.register(operand.register))
        return operand

    def symbol(self, name: str) -> str:
        return self.cells.get(name, name + self.suffix if name in self.own else name)


class Inliner:
    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.functions = {f.name: f for f in module.functions if f.body is not None}
        self.functions.update({a: self.functions[f] for a, f in module.aliases.items() if f in self.functions})
        self.addresses = function_addresses(module)
        self.function = function
        self.body: list[Any] = []
        self.variables: list[Variable] = []
        self.tables: dict[str, tuple[str, ...]] = {}
        self.cells: dict[str, Variable] = {}
        self.numbers = itertools.count(1)
        self.recursion = Recursion(self, module)

    def result(self) -> Function:
        scope = Scope("", None, (self.function.name,))
        self.expand(self.function, scope)
        self.recursion.finish()
        _promote(self.body, self.cells)
        used = {name for statement in self.body for name in _symbols(statement)}
        variables = self.variables + [cell for name, cell in self.cells.items() if name in used]
        return replace(self.function, body=self.body, variables=variables, branch_tables=self.tables)

    def expand(self, function: Function, scope: Scope) -> None:
        for variable in function.variables:
            if variable.space == "param":
                scope.cells[variable.name] = self.cell(variable.name, variable.type, variable.shape, variable.align)
            elif scope.frame is not None and variable.name in scope.frame.offsets:
                continue
            elif variable.space == "local":
                scope.own.add(variable.name)
                self.variables.append(replace(variable, name=variable.name + scope.suffix))
            elif variable.name not in {v.name for v in self.variables}:
                self.variables.append(variable)
        scope.own.update(function.branch_tables)
        for name, labels in function.branch_tables.items():
            self.tables[name + scope.suffix] = tuple(label + scope.suffix for label in labels)
        for statement in function.body or ():
            if isinstance(statement, Label):
                self.body.append(Label(statement.name + scope.suffix))
            elif isinstance(statement, Instruction):
                self.instruction(statement, scope)
            elif isinstance(statement, Call):
                self.call(statement, scope)

    def cell(self, name: str, kind: ScalarType, shape: Any, align: int | None) -> str:
        """Memory of the thread for a parameter of a call."""
        fresh = f"{name}${next(self.numbers)}"
        self.cells[fresh] = Variable(fresh, "local", kind, shape, align)
        return fresh

    def instruction(self, statement: Instruction, scope: Scope) -> None:
        operands = tuple(scope.operand(operand) for operand in statement.operands)
        if scope.frame is not None:
            operands = tuple(self.framed(statement, operand, scope.frame) for operand in operands)
        form, guard = statement.form, scope.operand(statement.guard)
        if form.opcode == "ret" and scope.end is not None:
            form, operands = lookup("bra")[0], (LabelRef(scope.end),)
        elif form.opcode in ("ld", "st") and form.space == "param" and self._base(operands) in self.cells:
            tokens = ["local" if token.split("::")[0] == "param" else token for token in form.tokens]
            form = form_for(".".join((form.opcode, *tokens)), len(operands))
        self.body.append(replace(statement, form=form, operands=operands, guard=guard))

    def framed(self, statement: Instruction, operand: Any, frame: Frame) -> Any:
        """An operand with local variables as places in the frame."""
        base = operand.base if isinstance(operand, Address) else operand
        if not isinstance(base, Symbol) or base.symbol not in frame.offsets:
            return operand
        offset = frame.offsets[base.symbol] + base.offset
        if isinstance(operand, Address):
            return operand._replace(base=frame.register, offset=operand.offset + offset)
        place = Register(f"{frame.register.name}.{offset}", frame.register.type)
        self.emit(statement, "add.u64", place, frame.register, Immediate(offset & (1 << 64) - 1, TYPES["u64"]))
        return place

    @staticmethod
    def _base(operands: tuple[Operand, ...]) -> str:
        for operand in operands:
            if isinstance(operand, Address) and isinstance(operand.base, Symbol):
                return operand.base.symbol
        return ""

    # Calls

    def emit(self, like: Call | Instruction, mnemonic: str, *operands: Operand, guard: Any = None) -> None:
        self.body.append(Instruction(form_for(mnemonic, len(operands)), operands, guard, like.loc, like.line))

    def call(self, call: Call, scope: Scope, original: Call | None = None) -> None:
        if not isinstance(call.callee, Symbol):
            self.indirect(call, call.callee, scope)
            return
        name = call.callee.symbol
        guard = scope.operand(call.guard)
        results = tuple(scope.operand(operand) for operand in call.results)
        arguments = tuple(scope.operand(operand) for operand in call.arguments)
        if name in self.functions:
            renamed = replace(call, guard=guard, results=results, arguments=arguments)
            if name in self.recursion.names:
                self.recursion.call(renamed, self.functions[name], scope, scope.saved.get(id(original or call)))
            else:
                self.body_of(renamed, self.functions[name], scope)
        elif name in SERVICES:
            self.service(replace(call, guard=guard), results, arguments)
        else:  # an error where a thread comes here
            self.body.append(replace(call, guard=guard, results=(), arguments=()))

    def indirect(self, call: Call, callee: Register, scope: Scope) -> None:
        """A call through a register: one of each function that it may reach, behind a comparison."""
        function = self.functions.get(scope.stack[-1], self.function)
        number, after = next(self.numbers), f"$called{next(self.numbers)}"
        address, hit = scope.register(callee), Register(f"%reached{number}", TYPES["pred"])
        plain = replace(call, guard=scope.operand(call.guard))
        self.skip(plain, after)
        for name in targets(self.module, function, call):
            other = f"$other{next(self.numbers)}"
            place = Immediate(self.addresses[name] & (1 << address.type.bits) - 1, TYPES[f"u{address.type.bits}"])
            self.emit(call, f"setp.ne.u{address.type.bits}", hit, address, place)
            self.emit(call, "bra", LabelRef(other), guard=hit)
            self.call(replace(call, callee=Symbol(name), guard=None), scope, call)
            self.emit(call, "bra", LabelRef(after))
            self.body.append(Label(other))
        self.body.append(replace(call, callee=address, guard=None, results=(), arguments=()))
        self.body.append(Label(after))

    def body_of(self, call: Call, function: Function, scope: Scope) -> None:
        number = next(self.numbers)
        end = f"$end{number}"
        inner = Scope(f"${number}", end, (*scope.stack, function.name))
        self.skip(call, f"$after{number}")
        for parameter, argument in zip(function.parameters, call.arguments):
            self.bind(call, inner, parameter, argument, True)
        for parameter, result in zip(function.results, call.results):
            self.bind(call, inner, parameter, result, False)
        top = Register(f"%top{number}", TYPES["u64"])
        if allocates(function):
            self.emit(call, "stacksave.u64", top)
        self.expand(function, inner)
        self.body.append(Label(end))
        if allocates(function):
            self.emit(call, "stackrestore.u64", top)
        for parameter, result in zip(function.results, call.results):
            if isinstance(result, Register):
                self.fetch(call, inner, parameter, result)
        self.body.append(Label(f"$after{number}"))

    def skip(self, call: Call, label: str) -> None:
        """Pass a guarded call by where its guard does not hold."""
        if call.guard is not None:
            flipped = call.guard.predicate if isinstance(call.guard, Not) else Not(call.guard)
            self.emit(call, "bra", LabelRef(label), guard=flipped)

    def bind(self, call: Call, inner: Scope, parameter: Parameter, operand: Operand, passed: bool) -> None:
        """Make a parameter of the callee stand for what the caller gave or wants."""
        if isinstance(operand, Symbol) and operand.symbol in self.cells:
            inner.cells[parameter.name] = operand.symbol
            return
        kind = f"b{parameter.type.bits}"
        if parameter.space == "reg":
            if passed:
                own = inner.register(Register(parameter.name, parameter.type))
                self.emit(call, moves(parameter.type), own, operand)
            return
        cell = self.cell(parameter.name, parameter.type, parameter.shape, parameter.align)
        inner.cells[parameter.name] = cell
        if passed:
            self.emit(call, f"st.local.{kind}", Address(Symbol(cell)), operand)

    def fetch(self, call: Call, inner: Scope, parameter: Parameter, result: Register) -> None:
        kind = f"b{parameter.type.bits}"
        if parameter.space == "reg":
            self.emit(call, moves(parameter.type), result, inner.register(Register(parameter.name, parameter.type)))
        else:
            self.emit(call, f"ld.local.{kind}", result, Address(Symbol(inner.cells[parameter.name])))

    def service(self, call: Call, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> None:
        """A call that the host answers: its operands become registers and numbers."""
        given = []
        for argument in arguments:
            if isinstance(argument, Symbol) and argument.symbol in self.cells:
                kind = self.cells[argument.symbol].type
                register = Register(f"%service{next(self.numbers)}", TYPES[f"b{kind.bits}"])
                self.emit(call, f"ld.local.b{kind.bits}", register, Address(argument))
                argument = register
            given.append(argument)
        wanted, stores = [], []
        for result in results:
            if isinstance(result, Symbol):
                kind = self.cells[result.symbol].type
                register = Register(f"%service{next(self.numbers)}", TYPES[f"b{kind.bits}"])
                stores.append((f"st.local.b{kind.bits}", Address(result), register))
                result = register
            wanted.append(result)
        self.body.append(replace(call, results=tuple(wanted), arguments=tuple(given)))
        for mnemonic, address, register in stores:
            self.emit(call, mnemonic, address, register, guard=call.guard)


def _symbols(statement: Any) -> list[str]:
    found = []
    for operand in getattr(statement, "operands", ()):
        base = operand.base if isinstance(operand, Address) else operand
        if isinstance(base, Symbol):
            found.append(base.symbol)
    return found


def _promote(body: list[Any], cells: dict[str, Variable]) -> None:
    """Turn cells into registers where every access to them is a whole number of one size at one place."""
    places: dict[str, dict[int, int]] = {}
    barred: set[str] = set()
    for statement in body:
        for name in _symbols(statement):
            if name not in cells:
                continue
            access = _whole(statement)
            if access is None or places.setdefault(name, {}).setdefault(access[0], access[1]) != access[1]:
                barred.add(name)
    for name, sizes in places.items():
        ends = sorted(sizes.items())
        if any(offset + bits // 8 > after for (offset, bits), (after, _) in itertools.pairwise(ends)):
            barred.add(name)
    for number, statement in enumerate(body):
        names = [name for name in _symbols(statement) if name in cells and name not in barred]
        if names:
            offset, bits, other, loads = _whole(statement)  # type: ignore[misc]
            register = Register(f"%{names[0]}.{offset}", TYPES[f"b{bits}"])
            operands = (other, register) if loads else (register, other)
            body[number] = replace(statement, form=lookup(f"mov.b{bits}")[0], operands=operands)


def _whole(statement: Any) -> tuple[int, int, Operand, bool] | None:
    """Offset, bits, other operand and direction of a plain ld or st at a fixed place; None for anything else."""
    form = getattr(statement, "form", None)
    if form is None or form.opcode not in ("ld", "st") or len(statement.operands) != 2 or form.type is None:
        return None
    loads = form.opcode == "ld"
    other, address = statement.operands if loads else reversed(statement.operands)
    if not isinstance(address, Address) or not isinstance(other, (Register, Immediate)):
        return None
    if form.type.bits not in (16, 32, 64) or other.type.bits != form.type.bits:
        return None
    return address.offset + address.base.offset, form.type.bits, other, loads  # type: ignore[union-attr]
