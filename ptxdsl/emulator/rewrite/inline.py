"""Calls of functions, expanded in place.

A recursive function is there once, with a stack in the thread's local memory (:mod:`.recursion`). What remains are
calls of functions of the CUDA system, which the host answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...ir import Address, Call, Function, Instruction, Label, Module, Operand, Parameter, Register, Symbol
from ..machine.address_spaces import function_addresses
from .alloca import allocates
from .index_checks import OUTSIDE
from .indirect_calls import targets
from .parameters import CallBuilder
from .recursion import Recursion
from .scope import Frame, Scope

__all__ = ["RETURNED", "SYSTEM_CALLS", "Inliner", "calls"]

SYSTEM_CALLS = ("vprintf", "__assertfail", "malloc", "free")
"""Functions of the CUDA system that the emulator provides."""
RETURNED = ".noreturn"
"""The prototype of a call that stands where a function that never returns has returned."""


def calls(function: Function) -> bool:
    """Whether a function calls anything, or could: it has variables for parameters."""
    passes = any(variable.space == "param" for variable in function.variables)
    return passes or any(statement.__class__ is Call for statement in function.body or ())


class Inliner(CallBuilder):
    """Expands all calls of a function."""

    def __init__(self, module: Module, function: Function) -> None:
        super().__init__(function)
        self.module = module
        self.functions = {f.name: f for f in module.functions if f.body is not None}
        self.functions.update({a: self.functions[f] for a, f in module.aliases.items() if f in self.functions})
        self.addresses = function_addresses(module)
        self.recursion = Recursion(self, module)

    def run(self) -> Function:
        self.expand(self.function, Scope("", None, (self.function.name,)))
        self.recursion.finish(self.expand)
        return self.finished()

    def expand(self, function: Function, scope: Scope) -> None:
        """Emit a copy of a function's body."""
        self._variables(function, scope)
        if scope.suffix:
            self.declare([Register(name + scope.suffix, kind) for name, kind in function.registers])
        scope.local.update(function.branch_tables)
        for name, labels in function.branch_tables.items():
            self.tables[name + scope.suffix] = tuple(label + scope.suffix for label in labels)
        for statement in function.body or ():
            if isinstance(statement, Label):
                self.place(statement.name + scope.suffix)
            elif isinstance(statement, Instruction):
                self.copy(statement, scope)
            elif isinstance(statement, Call):
                self.inline(statement, scope)

    def _variables(self, function: Function, scope: Scope) -> None:
        for variable in function.variables:
            if variable.space == "param":
                scope.cells[variable.name] = self.cell(variable)
            elif scope.frame is not None and variable.name in scope.frame.offsets:
                continue
            elif variable.space == "local":
                scope.local.add(variable.name)
                self.variables.append(replace(variable, name=variable.name + scope.suffix))
            elif variable.name not in {v.name for v in self.variables}:
                self.variables.append(variable)

    def copy(self, statement: Instruction, scope: Scope) -> None:
        """Emit an instruction of a copy."""
        self.statement = statement
        operands = tuple(scope.operand(operand) for operand in statement.operands)
        if scope.frame is not None:
            operands = tuple(self._in_frame(operand, scope.frame) for operand in operands)
        form, guard = statement.form, scope.operand(statement.guard)
        if form.opcode == "ret" and scope.end is not None:
            self.branch(scope.end, guard)
        elif form.effects.access is not None and form.space == "param" and self._accesses_cell(operands):
            tokens = ["local" if token.split("::")[0] == "param" else token for token in form.tokens]
            self.emit(".".join((form.opcode, *tokens)), *operands, guard=guard)
        else:
            self.body.append(Instruction(form, operands, guard, statement.loc, statement.line))

    def _in_frame(self, operand: Any, frame: Frame) -> Any:
        """An operand with local variables as places in the frame."""
        base = operand.base if isinstance(operand, Address) else operand
        if not isinstance(base, Symbol) or base.symbol not in frame.offsets:
            return operand
        offset = frame.offsets[base.symbol] + base.offset
        if isinstance(operand, Address):
            return operand._replace(base=frame.register, offset=operand.offset + offset)
        place = self.register(f"{frame.register.name}.{offset}", frame.register.type)
        self.emit("add.u64", place, frame.register, offset)
        return place

    def _accesses_cell(self, operands: tuple[Operand, ...]) -> bool:
        bases = (operand.base for operand in operands if isinstance(operand, Address))
        return any(isinstance(base, Symbol) and base.symbol in self.cells for base in bases)

    # Calls

    def inline(self, call: Call, scope: Scope, original: Call | None = None) -> None:
        """Emit what a call becomes; ``original`` is the call through a register that it is one way of."""
        self.statement = call
        if not isinstance(call.callee, Symbol):
            self._indirect(call, call.callee, scope)
            return
        name = call.callee.symbol
        renamed = replace(
            call, guard=scope.operand(call.guard), results=tuple(map(scope.operand, call.results)),
            arguments=tuple(map(scope.operand, call.arguments)),
        )
        if name in self.recursion.names and name in self.functions:
            self.recursion.call(renamed, self.functions[name], scope, original or call)
        elif name in self.functions:
            self._body(renamed, self.functions[name], scope)
        elif name in SYSTEM_CALLS or name == OUTSIDE:
            self._system_call(renamed)
        else:  # an error where a thread comes here
            self.body.append(replace(renamed, results=(), arguments=()))

    def _indirect(self, call: Call, callee: Register, scope: Scope) -> None:
        """A call through a register: one of each function that it may reach, behind a comparison."""
        function = self.functions.get(scope.stack[-1], self.function)
        after, other = self.label("called"), self.fresh("%other", "pred")
        address = scope.register(callee)
        kind = f"u{address.type.bits}"
        self.branch_unless(scope.operand(call.guard), after)
        for name in targets(self.module, function, call):
            following = self.label("other")
            self.emit(f"setp.ne.{kind}", other, address, self.addresses[name])
            self.branch(following, other)
            self.inline(replace(call, callee=Symbol(name), guard=None), scope, call)
            self.statement = call
            self.branch(after)
            self.place(following)
        self.body.append(replace(call, callee=address, guard=None, results=(), arguments=()))
        self.place(after)

    def _body(self, call: Call, function: Function, scope: Scope) -> None:
        number, end, after = self.number(), self.label("end"), self.label("after")
        inner = Scope(f"${number}", end, (*scope.stack, function.name))
        self.branch_unless(call.guard, after)
        for parameter, argument in zip(function.parameters, call.arguments):
            if not self._bind(inner, parameter, argument):
                self.pass_in(inner, parameter, argument)
        for parameter, result in zip(function.results, call.results):
            self._bind(inner, parameter, result)
        restores = allocates(function)
        top = self.fresh("%top", "u64") if restores else None
        if top is not None:
            self.emit("stacksave.u64", top)
        self.expand(function, inner)
        self.statement = call
        self.place(end)
        if ("noreturn", ()) in function.directives:
            self.body.append(replace(call, guard=None, results=(), arguments=(), prototype=RETURNED))
        if top is not None:
            self.emit("stackrestore.u64", top)
        for parameter, result in zip(function.results, call.results):
            if isinstance(result, Register):
                self.take_out(inner, parameter, result)
        self.place(after)

    def _bind(self, inner: Scope, parameter: Parameter, operand: Operand) -> bool:
        """Give a parameter of the callee its memory; whether that is the caller's own variable."""
        if isinstance(operand, Symbol) and operand.symbol in self.cells:
            inner.cells[parameter.name] = operand.symbol
            return True
        if parameter.space != "reg":
            inner.cells[parameter.name] = self.cell(parameter)
        return False

    def _system_call(self, call: Call) -> None:
        """A call that the host answers: its operands become registers and numbers."""
        arguments = tuple(self.value(argument) for argument in call.arguments)
        results, stores = [], []
        for result in call.results:
            if isinstance(result, Symbol):
                kind = self.cells[result.symbol].type
                register = self.fresh("%value", f"b{kind.bits}")
                stores.append((result, register))
                result = register
            results.append(result)
        self.body.append(replace(call, results=tuple(results), arguments=arguments))
        for symbol, register in stores:
            self.emit(f"st.local.b{register.type.bits}", Address(symbol), register, guard=call.guard)
