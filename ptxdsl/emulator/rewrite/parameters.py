"""Parameters of inlined calls: memory of the thread, and registers where every access to one is of the whole."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...ir import Address, Function, Immediate, Instruction, Operand, Parameter, Register, Symbol, Variable
from ...types import TYPES, ScalarType
from .builder import PtxBuilder, instruction
from .scope import Scope

__all__ = ["CallBuilder"]


class CallBuilder(PtxBuilder):
    """A function that calls are inlined into; ``cells`` are the variables that hold parameters."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.variables = []
        self.tables: dict[str, tuple[str, ...]] = {}
        self.cells: dict[str, Variable] = {}

    def cell(self, parameter: Parameter | Variable) -> str:
        """A new variable for a parameter; its name."""
        name = f"{parameter.name}${self.number()}"
        self.cells[name] = Variable(name, "local", parameter.type, parameter.shape, parameter.align)
        return name

    def value(self, operand: Operand) -> Operand:
        """An operand of a call; where it is a parameter, a register with its value."""
        if isinstance(operand, Symbol) and operand.symbol in self.cells:
            return self.loaded(operand)
        return operand

    def loaded(self, operand: Symbol) -> Register:
        register = self.fresh("%value", f"b{self.cells[operand.symbol].type.bits}")
        self.load_local(register, Address(operand))
        return register

    def own(self, operand: Any) -> Register:
        """The value of an operand of a call in a register that nothing else uses."""
        if isinstance(operand, Symbol) and operand.symbol in self.cells:
            return self.loaded(operand)
        kind = operand.type if isinstance(operand, (Register, Immediate)) else TYPES["b64"]
        register = self.fresh("%value", kind if kind.kind == "p" else f"b{kind.bits}")
        self.move(register, operand)
        return register

    def pass_in(self, scope: Scope, parameter: Parameter, operand: Operand) -> None:
        """Set a parameter of the callee."""
        if parameter.space == "reg":
            self.move(scope.register(Register(parameter.name, parameter.type)), operand)
        else:
            self.store_local(Address(Symbol(scope.cells[parameter.name])), parameter.type, operand)

    def take_out(self, scope: Scope, parameter: Parameter, result: Register) -> None:
        """Get a result of the callee."""
        if parameter.space == "reg":
            self.move(result, scope.register(Register(parameter.name, parameter.type)))
        else:
            self.load_local(result, Address(Symbol(scope.cells[parameter.name])))

    def finished(self) -> Function:
        """The function, with the parameters that registers cannot hold as local variables."""
        self._promote()
        used = {name for statement in self.body for name in _symbols(statement)}
        self.variables += [cell for name, cell in self.cells.items() if name in used]
        return self.result(branch_tables=self.tables)

    def _promote(self) -> None:
        """Turn cells into registers where each access to them is of one size at one place, and none overlap."""
        kept = _in_memory(self.body, self.cells)
        for number, statement in enumerate(self.body):
            names = [name for name in _symbols(statement) if name in self.cells and name not in kept]
            access = _whole(statement) if names else None
            if access is not None and isinstance(statement, Instruction):
                register = self.register(f"%{names[0]}.{access.offset}", f"b{access.kind.bits}")
                result, source = (access.other, register) if access.loads else (register, access.other)
                moved = instruction(f"mov.b{access.kind.bits}", result, source, guard=statement.guard)
                moved.loc, moved.line = statement.loc, statement.line
                self.body[number] = moved


class _Access(NamedTuple):
    offset: int
    kind: ScalarType
    other: Operand
    loads: bool


def _in_memory(body: list[Any], cells: dict[str, Variable]) -> set[str]:
    """The cells that have to stay in memory."""
    kept: set[str] = set()
    sizes: dict[str, dict[int, int]] = {}
    for statement in body:
        for name in _symbols(statement):
            if name not in cells:
                continue
            access = _whole(statement)
            known = sizes.setdefault(name, {})
            if access is None or known.setdefault(access.offset, access.kind.bits) != access.kind.bits:
                kept.add(name)
    for name, known in sizes.items():
        ends = sorted(known.items())
        if any(offset + bits // 8 > after for (offset, bits), (after, _) in itertools.pairwise(ends)):
            kept.add(name)
    return kept


def _symbols(statement: Any) -> Iterator[str]:
    for operand in getattr(statement, "operands", ()):
        base = operand.base if isinstance(operand, Address) else operand
        if isinstance(base, Symbol):
            yield base.symbol


def _whole(statement: Any) -> _Access | None:
    """The access of a plain ld or st of a number at a fixed place; None for anything else."""
    if not isinstance(statement, Instruction) or statement.form.effects.access is None or statement.form.effects.atomic:
        return None
    kind = statement.form.type
    if kind is None or len(statement.operands) != 2:
        return None
    loads = statement.form.effects.reads
    other, address = statement.operands if loads else reversed(statement.operands)
    if not isinstance(address, Address) or not isinstance(other, (Register, Immediate)):
        return None
    if kind.bits not in (16, 32, 64) or other.type.bits != kind.bits or not isinstance(address.base, Symbol):
        return None
    return _Access(address.offset + address.base.offset, TYPES[f"b{kind.bits}"], other, loads)
