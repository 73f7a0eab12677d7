"""Functions that call themselves: one copy of each, a stack in local memory, and returns by a table of branches.

What the caller still needs is pushed before the call and popped after it, registers and parameters, since the next call
runs in the same ones. Its local variables are a frame on the stack, so that their addresses stay theirs. The return is
an indirect branch, so lanes at different depths part and meet again as at any other branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...ir import Address, Call, Function, Immediate, Instruction, Label, LabelRef, Module, Register, Symbol, Variable
from ...isa import lookup
from ...types import TYPES, ScalarType
from ..analysis.divergence import Facts
from ...analysis.control_flow import graph
from .indirect_calls import targets
from ..analysis.registers import Slots
from .alloca import allocates

if TYPE_CHECKING:
    from .inline import Frame, Inliner, Scope

__all__ = ["STACK_POINTER", "Recursion", "moves"]

STACK = 32 << 10
"""Bytes of stack a thread; what goes beyond is a fault in local memory."""
STACK_POINTER = "%stack"
_POINTER = Register(STACK_POINTER, TYPES["u64"])
_U32, _U64 = TYPES["u32"], TYPES["u64"]
_ALIGN = 16
"""Of a frame: what the largest vector access asks for."""


def moves(kind: ScalarType) -> str:
    """The mov of a type."""
    return "mov.pred" if kind.kind == "p" else f"mov.b{kind.bits}"


class _Copy(NamedTuple):
    """The one copy of a function: its scope, and the labels that its calls return to."""

    function: Function
    scope: Scope
    returns: list[str]


class Recursion:
    """The recursive functions of a module, as calls of them come up."""

    def __init__(self, inliner: Inliner, module: Module) -> None:
        self.inliner = inliner
        self.names = _recursive(module)
        self.allocates = any(allocates(function) for function in module.functions)
        self.copies: dict[str, _Copy] = {}
        self.waiting: list[_Copy] = []

    def copy(self, function: Function) -> _Copy:
        found = self.copies.get(function.name)
        if found is None:
            from .inline import Scope

            scope = Scope(f"${function.name}", f"$leave${function.name}", (function.name,))
            for parameter in (*function.parameters, *function.results):
                if parameter.space == "param":
                    cell = self.inliner.cell(parameter.name, parameter.type, parameter.shape, parameter.align)
                    scope.cells[parameter.name] = cell
            scope.frame = _frame(function)
            scope.saved = _saved(function, scope)
            found = self.copies[function.name] = _Copy(function, scope, [])
            self.waiting.append(found)
        return found

    def call(
        self, call: Call, function: Function, scope: Scope, registers: tuple[Register, ...] | None
    ) -> None:
        """Emit a call: push, pass the arguments, go, and where it comes back pop and take the results.

        ``registers`` are those to push; None where no call can come back to the caller.
        """
        emit, number = self.inliner.emit, next(self.inliner.numbers)
        copy = self.copy(function)
        back, after = f"$back{number}", f"$after{number}"
        self.inliner.skip(call, after)
        given = [self._fetch(call, argument, f"%given{number}.{n}") for n, argument in enumerate(call.arguments)]
        saved = [(register, 8 * n) for n, register in enumerate(registers or ())]
        names = dict.fromkeys(scope.cells.values()) if registers is not None else ()
        cells = [self.inliner.cells[name] for name in names]
        size = 8 * len(saved)
        for register, offset in saved:
            self._push(call, register, offset)
        for cell in cells:
            size = self._cell(call, cell, size, True)
        size = self._top(call, size, True)
        emit(call, "st.local.u32", Address(_POINTER, size), Immediate(len(copy.returns), _U32))
        emit(call, "add.u64", _POINTER, _POINTER, Immediate(size + 8, TYPES["u64"]))
        for parameter, register in zip(function.parameters, given):
            self._assign(call, copy, parameter, register)
        emit(call, "bra", LabelRef(f"$enter${function.name}"))
        copy.returns.append(back)
        self.inliner.body.append(Label(back))
        emit(call, "sub.u64", _POINTER, _POINTER, Immediate(size + 8, TYPES["u64"]))
        results = []
        for n, parameter in enumerate(function.results):
            inner: Any = copy.scope.register(Register(parameter.name, parameter.type))
            if parameter.space == "param":
                inner = Symbol(copy.scope.cells[parameter.name])
            results.append(self._fetch(call, inner, f"%result{number}.{n}"))
        for register, offset in saved:
            self._pop(call, register, offset)
        size = 8 * len(saved)
        for cell in cells:
            size = self._cell(call, cell, size, False)
        self._top(call, size, False)
        for result, register in zip(call.results, results):
            if isinstance(result, Symbol):
                emit(call, f"st.local.b{register.type.bits}", Address(result), register)
            elif isinstance(result, Register):
                emit(call, moves(register.type), result, register)
        self.inliner.body.append(Label(after))

    def _fetch(self, call: Call, operand: Any, name: str) -> Register:
        """A value in a register of its own: an argument, or a result."""
        if isinstance(operand, Symbol) and operand.symbol in self.inliner.cells:
            bits = self.inliner.cells[operand.symbol].type.bits
            register = Register(name, TYPES[f"b{bits}"])
            self.inliner.emit(call, f"ld.local.b{bits}", register, Address(operand))
            return register
        kind = operand.type if isinstance(operand, (Register, Immediate)) else TYPES["b64"]
        register = Register(name, kind if kind.kind == "p" else TYPES[f"b{kind.bits}"])
        self.inliner.emit(call, moves(register.type), register, operand)
        return register

    def _assign(self, call: Call, copy: _Copy, parameter: Any, register: Register) -> None:
        if parameter.space == "param":
            place = Address(Symbol(copy.scope.cells[parameter.name]))
            self.inliner.emit(call, f"st.local.b{parameter.type.bits}", place, register)
        else:
            own = copy.scope.register(Register(parameter.name, parameter.type))
            self.inliner.emit(call, moves(parameter.type), own, register)

    def _push(self, call: Call, register: Register, offset: int) -> None:
        if register.type.kind == "p":
            word = Register("%flag", _U32)
            self.inliner.emit(call, "selp.u32", word, Immediate(1, _U32), Immediate(0, _U32), register)
            register = word
        self.inliner.emit(call, f"st.local.b{register.type.bits}", Address(_POINTER, offset), register)

    def _pop(self, call: Call, register: Register, offset: int) -> None:
        if register.type.kind == "p":
            word = Register("%flag", _U32)
            self.inliner.emit(call, "ld.local.b32", word, Address(_POINTER, offset))
            self.inliner.emit(call, "setp.ne.u32", register, word, Immediate(0, _U32))
        else:
            self.inliner.emit(call, f"ld.local.b{register.type.bits}", register, Address(_POINTER, offset))

    def _cell(self, call: Call, cell: Variable, offset: int, push: bool) -> int:
        """Copy a parameter to the stack or back; the offset behind it."""
        size = cell.type.bytes
        word = Register(f"%word{cell.type.bits}", TYPES[f"b{cell.type.bits}"])
        for start in range(0, cell.nbytes, size):
            own, stacked = Address(Symbol(cell.name), start), Address(_POINTER, offset + start)
            source, target = (own, stacked) if push else (stacked, own)
            self.inliner.emit(call, f"ld.local.b{cell.type.bits}", word, source)
            self.inliner.emit(call, f"st.local.b{cell.type.bits}", target, word)
        return offset + (cell.nbytes + 7) // 8 * 8

    def _top(self, call: Call, offset: int, push: bool) -> int:
        """Keep what alloca has given out so far, in a module that uses it; the offset behind it."""
        if not self.allocates:
            return offset
        top, place = Register("%top", TYPES["u64"]), Address(_POINTER, offset)
        if push:
            self.inliner.emit(call, "stacksave.u64", top)
            self.inliner.emit(call, "st.local.u64", place, top)
        else:
            self.inliner.emit(call, "ld.local.u64", top, place)
            self.inliner.emit(call, "stackrestore.u64", top)
        return offset + 8

    def finish(self) -> None:
        """Emit the copies, after the kernel's own text, and the stack."""
        if not self.waiting:
            return
        body = self.inliner.body
        body.insert(0, Instruction(lookup("mov.u64")[0], (_POINTER, Symbol("$stack"))))
        self.inliner.variables.append(Variable("$stack", "local", TYPES["b8"], (STACK,), 16))
        body.append(Instruction(lookup("ret")[0], ()))
        while self.waiting:
            copy = self.waiting.pop()
            name = copy.function.name
            frame = copy.scope.frame
            body.append(Label(f"$enter${name}"))
            if frame is not None:
                body += [_plus(frame.register, _POINTER, _ALIGN - 1), _aligned(frame.register)]
                body.append(_plus(_POINTER, _POINTER, frame.nbytes + _ALIGN))
            self.inliner.expand(copy.function, copy.scope)
            body.append(Label(f"$leave${name}"))
            if frame is not None:
                body.append(_plus(_POINTER, _POINTER, -frame.nbytes - _ALIGN))
            where = Register("%where", _U32)
            body.append(Instruction(lookup("ld.local.u32")[0], (where, Address(_POINTER, -8))))
            body.append(Instruction(lookup("brx.idx")[0], (where, Symbol(f"$returns${name}"))))
        for name, copy in self.copies.items():
            self.inliner.tables[f"$returns${name}"] = tuple(copy.returns)


def _frame(function: Function) -> Frame | None:
    """The frame of a recursive function; None where it has no local variables."""
    from .inline import Frame

    offsets, at = {}, 0
    for variable in function.variables:
        if variable.space == "local":
            align = variable.align or variable.type.bytes
            at = offsets[variable.name] = -(-at // align) * align
            at += variable.nbytes
    return Frame(Register(f"%frame${function.name}", _U64), offsets, -(-at // 8) * 8) if offsets else None


def _plus(result: Register, base: Register, number: int) -> Instruction:
    return Instruction(lookup("add.u64")[0], (result, base, Immediate(number & (1 << 64) - 1, _U64)))


def _aligned(register: Register) -> Instruction:
    return Instruction(lookup("and.b64")[0], (register, register, Immediate(-_ALIGN & (1 << 64) - 1, _U64)))


def _saved(function: Function, scope: Scope) -> dict[int, tuple[Register, ...]]:
    """By the id of each call in a function: the registers that are needed after it."""
    code = graph(function)
    slots = Slots(code, Facts())
    known = {register.name: register for op in code.ops for register in (*op.uses, *op.writes)}
    results = {parameter.name for parameter in function.results}
    frame = () if scope.frame is None else (scope.frame.register,)
    found = {}
    for place, statement in enumerate(code.statements):
        if isinstance(statement, Call):
            names = slots.needed_after(place) | results & known.keys()
            found[id(statement)] = (*(scope.register(known[name]) for name in sorted(names)), *frame)
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
