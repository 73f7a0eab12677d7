"""Functions that call themselves: one copy of each, a stack in local memory, and returns by a table of branches.

What the caller still needs is pushed before the call and popped after it, registers and parameters, since the next call
runs in the same ones. Its local variables are a frame on the stack, so that their addresses stay theirs. The return is
an indirect branch, so lanes at different depths diverge and reconverge as at any other branch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...analysis.control_flow import control_flow_graph
from ...analysis.liveness import Liveness
from ...ir import Address, Call, Function, Instruction, LabelRef, Module, Parameter, Register, Symbol, Variable
from ...types import TYPES
from ..analysis.call_stack import FRAME, SLOT, STACK_ALIGN, STACK_POINTER
from ..machine.layout import CALL_STACK
from .alloca import allocates
from .indirect_calls import targets
from .live_parameters import live_parameters
from .parameters import CallBuilder
from .scope import Frame, Scope

__all__ = ["Recursion", "returns"]

STACK_BYTES = 32 << 10
"""Bytes of stack a thread; what goes beyond is a fault in local memory."""
_RETURNS = "$returns$"
"""What the names of the tables begin with that calls return by."""
_U64 = TYPES["u64"]
_POINTER = Register(STACK_POINTER, _U64)


def returns(statement: Instruction | Call) -> bool:
    """Whether a statement is the return of a recursive function."""
    operands = statement.operands[-1:] if isinstance(statement, Instruction) else ()
    return any(isinstance(each, Symbol) and each.symbol.startswith(_RETURNS) for each in operands)


class _Copy(NamedTuple):
    """The one copy of a function: its scope, and the labels that its calls return to."""

    function: Function
    scope: Scope
    returns: list[str]


class Recursion:
    """The recursive functions of a module, as calls of them come up."""

    def __init__(self, builder: CallBuilder, module: Module) -> None:
        self.builder = builder
        self.names = _recursive(module)
        self.allocates = any(allocates(function) for function in module.functions)
        self.copies: dict[str, _Copy] = {}
        self.pending: list[_Copy] = []

    def copy(self, function: Function) -> _Copy:
        """The copy of a function, which is emitted at the end."""
        found = self.copies.get(function.name)
        if found is None:
            scope = Scope(f"${function.name}", LabelRef(f"$leave${function.name}"), (function.name,))
            for parameter in (*function.parameters, *function.results):
                if parameter.space == "param":
                    scope.cells[parameter.name] = self.builder.cell(parameter)
            scope.frame = self._frame(function)
            scope.saved = _saved(function, scope)
            found = self.copies[function.name] = _Copy(function, scope, [])
            self.pending.append(found)
        return found

    def call(self, call: Call, function: Function, scope: Scope, original: Call) -> None:
        """Emit a call: push, pass the arguments, branch, and at the return pop and take the results.

        ``original`` is the call in the text of the function. Where none can come back to the caller nothing is pushed.
        """
        b, copy = self.builder, self.copy(function)
        back, after = b.label("back"), b.label("after")
        b.branch_unless(call.guard, after)
        arguments = [b.own(argument) for argument in call.arguments]
        registers, names = scope.saved.get(id(original), ((), ()))
        cells, saves = [b.cells[scope.cells[name]] for name in names], id(original) in scope.saved
        size = _aligned(self._transfer(registers, cells, saves, True) + SLOT)
        b.emit("st.local.u32", Address(_POINTER, size - SLOT), len(copy.returns))
        b.emit("add.u64", _POINTER, _POINTER, size)
        for parameter, argument in zip(function.parameters, arguments):
            if parameter.space == "reg" or not parameter.shape:
                b.pass_in(copy.scope, parameter, argument[0])
            else:
                b.pieces(Symbol(copy.scope.cells[parameter.name]), argument)
        b.branch(LabelRef(f"$enter${function.name}"))
        copy.returns.append(back.label)
        b.place(back)
        b.emit("sub.u64", _POINTER, _POINTER, size)
        if saves and scope.frame is not None:
            b.emit("add.u64", scope.frame.register, _POINTER, -scope.frame.nbytes)
        results = [self._taken(copy, parameter) for parameter in function.results]
        self._transfer(registers, cells, saves, False)
        for result, found in zip(call.results, results):
            if isinstance(result, Symbol):
                b.pieces(result, found)
            elif isinstance(result, Register):
                b.move(result, found[0])
        b.place(after)

    def _taken(self, copy: _Copy, parameter: Parameter) -> list[Register]:
        """A result of a call, in registers."""
        b = self.builder
        if parameter.space != "reg" and parameter.shape:
            return b.pieces(Symbol(copy.scope.cells[parameter.name]))
        register = b.fresh("%result", f"b{parameter.type.bits}" if parameter.type.kind != "p" else "pred")
        b.take_out(copy.scope, parameter, register)
        return [register]

    # The stack

    def _transfer(self, registers: tuple[Register, ...], cells: list[Variable], top: bool, saves: bool) -> int:
        """Copy registers, parameters and the top of alloca's memory behind the stack pointer, or back; their bytes."""
        b, end = self.builder, 0
        for register in registers:
            self._move(register, end, saves)
            end += SLOT
        for cell in cells:
            for start, kind in b.units(cell):
                word = b.register(f"%word{kind.bits}", kind)
                own, stacked = Address(Symbol(cell.name), start), Address(_POINTER, end + start)
                source, target = (own, stacked) if saves else (stacked, own)
                b.load_local(word, source)
                b.store_local(target, kind, word)
            end += -(-cell.nbytes // SLOT) * SLOT
        if self.allocates and top:
            place = b.register("%top", _U64)
            if saves:
                b.emit("stacksave.u64", place)
            self._move(place, end, saves)
            if not saves:
                b.emit("stackrestore.u64", place)
            end += SLOT
        return end

    def _move(self, register: Register, offset: int, saves: bool) -> None:
        """Store a register behind the stack pointer, or load it from there: predicates as numbers."""
        b, address = self.builder, Address(_POINTER, offset)
        word = b.register("%flag", "u32") if register.type.kind == "p" else register
        if saves:
            if word is not register:
                b.emit("selp.u32", word, 1, 0, register)
            b.store_local(address, word.type, word)
        else:
            b.load_local(word, address)
            if word is not register:
                b.emit("setp.ne.u32", register, word, 0)

    def finish(self, expand: Callable[[Function, Scope], None]) -> None:
        """Emit the copies behind the kernel's own text, and the stack."""
        if not self.pending:
            return
        b, own = self.builder, self.builder.body
        b.statement, b.body = None, []
        b.register(STACK_POINTER, _U64)
        b.variables.append(Variable(CALL_STACK, "local", TYPES["b8"], (STACK_BYTES,), STACK_ALIGN))
        b.emit("mov.u64", _POINTER, Symbol(CALL_STACK))
        b.body += own
        b.emit("ret")
        while self.pending:
            self._emit_copy(self.pending.pop(), expand)
        for name, copy in self.copies.items():
            b.tables[f"{_RETURNS}{name}"] = tuple(copy.returns)

    def _emit_copy(self, copy: _Copy, expand: Callable[[Function, Scope], None]) -> None:
        b, name, frame = self.builder, copy.function.name, copy.scope.frame
        b.place(f"$enter${name}")
        if frame is not None:
            b.emit("mov.u64", frame.register, _POINTER)
            b.emit("add.u64", _POINTER, _POINTER, frame.nbytes)
        expand(copy.function, copy.scope)
        b.statement = None
        b.place(f"$leave${name}")
        if frame is not None:
            b.emit("add.u64", _POINTER, _POINTER, -frame.nbytes)
        back = b.register("%back", "u32")
        b.load_local(back, Address(_POINTER, -SLOT))
        b.emit("brx.idx", back, Symbol(f"{_RETURNS}{name}"))

    def _frame(self, function: Function) -> Frame | None:
        """The frame of a recursive function; None where it has no local variables."""
        offsets, at = {}, 0
        for variable in function.variables:
            if variable.space == "local":
                align = variable.align or variable.type.bytes
                at = offsets[variable.name] = -(-at // align) * align
                at += variable.nbytes
        if not offsets:
            return None
        return Frame(self.builder.register(f"{FRAME}{function.name}", _U64), offsets, _aligned(at))


def _aligned(nbytes: int) -> int:
    """Bytes of the stack that leave its pointer aligned."""
    return -(-nbytes // STACK_ALIGN) * STACK_ALIGN


def _saved(function: Function, scope: Scope) -> dict[int, tuple[tuple[Register, ...], tuple[str, ...]]]:
    """By the id of each call in a function: the registers and the parameters that are needed after it."""
    code = control_flow_graph(function)
    liveness = Liveness(code)
    known = {register.name: register for op in code.def_use for register in (*op.uses, *op.writes)}
    results = {parameter.name for parameter in function.results}
    needed = live_parameters(function, code)
    found = {}
    for place, statement in enumerate(code.statements):
        if isinstance(statement, Call):
            names = liveness.after(place) | results & known.keys()
            kept = tuple(scope.register(known[name]) for name in sorted(names))
            found[id(statement)] = kept, tuple(sorted(needed[id(statement)]))
    return found


def _recursive(module: Module) -> set[str]:
    """The functions that may be entered again before they return."""
    calls: dict[str, set[str]] = {}
    for function in module.functions:
        if function.body is not None:
            made = [statement for statement in function.body if isinstance(statement, Call)]
            calls[function.name] = {
                name for s in made
                for name in ([s.callee.symbol] if isinstance(s.callee, Symbol) else targets(module, function, s))
            }
    calls.update({alias: {name} for alias, name in module.aliases.items()})

    def reached(name: str) -> set[str]:
        seen: set[str] = set()
        todo = [*calls.get(name, ())]
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                todo.extend(calls.get(at, ()))
        return seen

    return {name for name in calls if name in reached(name)}
