"""Parameters of inlined calls: memory of the thread, and registers where every access to one is of the whole."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
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

    def pieces(self, operand: Symbol, registers: Sequence[Register] = ()) -> list[Register]:
        """Load a parameter, an array too, into registers that nothing else uses, or store these in it."""
        given, found = iter(registers), []
        for offset, kind in self.units(self.cells[operand.symbol]):
            place = Address(operand, offset)
            if registers:
                self.store_local(place, kind, next(given))
                continue
            found.append(self.fresh("%value", kind))
            self.load_local(found[-1], place)
        return found

    def units(self, cell: Variable) -> list[tuple[int, ScalarType]]:
        """The pieces that a parameter is copied in: where each is, and its type; as large as it is aligned."""
        unit = cell.type.bytes
        while unit < 8 and cell.nbytes % (2 * unit) == 0 and (cell.align or 1) % (2 * unit) == 0:
            unit *= 2
        return [(offset, TYPES[f"b{8 * unit}"]) for offset in range(0, cell.nbytes, unit)]

    def loaded(self, operand: Symbol) -> Register:
        register = self.fresh("%value", f"b{self.cells[operand.symbol].type.bits}")
        self.load_local(register, Address(operand))
        return register

    def own(self, operand: Any) -> list[Register]:
        """The value of an operand of a call in registers that nothing else uses."""
        if isinstance(operand, Symbol) and operand.symbol in self.cells:
            return self.pieces(operand)
        kind = operand.type if isinstance(operand, (Register, Immediate)) else TYPES["b64"]
        register = self.fresh("%value", kind if kind.kind == "p" else f"b{kind.bits}")
        self.move(register, operand)
        return [register]

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
        kept = self._promote() if self.cells else set()
        self.variables += [cell for name, cell in self.cells.items() if name in kept]
        return self.result(branch_tables=self.tables)

    def _promote(self) -> set[str]:
        """Turn cells into registers; the names of those that stay in memory."""
        cells = self.cells
        accesses = [
            (number, statement, name, _whole(statement))
            for number, statement in enumerate(self.body) if isinstance(statement, Instruction)
            for name in _symbols(statement) if name in cells
        ]
        kept = _in_memory([(name, access) for _, _, name, access in accesses])
        for number, statement, name, access in accesses:
            if name not in kept and access is not None:
                register = self.register(f"%{name}.{access.offset}", f"b{access.bits}")
                result, source = (access.other, register) if access.loads else (register, access.other)
                moved = instruction(f"mov.b{access.bits}", result, source, guard=statement.guard)
                moved.loc, moved.line = statement.loc, statement.line
                self.body[number] = moved
        return kept


class _Access(NamedTuple):
    offset: int
    bits: int
    other: Operand
    loads: bool


def _in_memory(accesses: list[tuple[str, _Access | None]]) -> set[str]:
    """The cells that stay in memory: accesses to them are not each of one size at one place, or some overlap."""
    kept: set[str] = set()
    sizes: dict[str, dict[int, int]] = {}
    for name, access in accesses:
        if access is None or sizes.setdefault(name, {}).setdefault(access.offset, access.bits) != access.bits:
            kept.add(name)
    for name, known in sizes.items():
        if len(known) > 1:
            places = sorted(known.items())
            if any(offset + bits // 8 > after for (offset, bits), (after, _) in itertools.pairwise(places)):
                kept.add(name)
    return kept


def _symbols(statement: Instruction) -> list[str]:
    bases = [o.base if o.__class__ is Address else o for o in statement.operands]
    return [base.symbol for base in bases if base.__class__ is Symbol]


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
    return _Access(address.offset + address.base.offset, kind.bits, other, loads)
