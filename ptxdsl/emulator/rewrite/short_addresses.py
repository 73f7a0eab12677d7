"""Addresses of parameters and constants in registers of 32 bits, as LLVM takes them (``mov.b32 %r0, parameter``).

On a GPU both spaces begin at 0, so that a short address, widened, is an address of the space; here their addresses are
those of the host. A kernel that takes a short one gets the distance from the first variable of the space, whatever it
computes with that, and the start of the space is added where such an address is used: by an access of the space, and
by ``cvta``. Long addresses, which may come to the same places, are told by their size. Not seen: a short address that
is used as a generic one without ``cvta``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...ir import Address, Function, Instruction, Module, Operand, Register, Symbol
from .builder import PtxBuilder
from .expansions import short_address, short_addresses

__all__ = ["lengthen_addresses"]


def lengthen_addresses(module: Module, function: Function) -> Function:
    """The function with addresses of 64 bits wherever short ones of parameters and constants are used."""
    starts = short_addresses(module, function)
    if not starts:
        return function
    spaces = {variable.name: variable.space for variable in module.variables}
    spaces |= {parameter.name: "param" for parameter in function.parameters}
    return _Lengthener(function, spaces, starts).run()


class _Lengthener(PtxBuilder):
    """Emits the function; ``starts`` has the first variable of each space of which short addresses are taken."""

    def __init__(self, function: Function, spaces: Mapping[str, str], starts: Mapping[str, str]) -> None:
        super().__init__(function)
        self.spaces = spaces
        self.starts = {space: self.register(f"%{space}.start", "u64") for space in starts}
        for space, register in self.starts.items():
            self.emit("mov.u64", register, Symbol(starts[space]))

    def run(self) -> Function:
        for statement in self.function.body or ():
            if isinstance(statement, Instruction):
                self.statement = statement
                self._instruction(statement)
            else:
                self.body.append(statement)
        return self.result()

    def _instruction(self, statement: Instruction) -> None:
        form, operands = statement.form, statement.operands
        space = self.spaces.get(short_address(statement) or "")
        if space in self.starts:
            self._distance(space, operands)
            return
        if form.space in self.starts:
            if form.opcode != "cvta":
                operands = tuple(self._accessed(operand) for operand in operands)
            elif isinstance(operands[1], Register) and "to" not in form.tokens:
                operands = (operands[0], self._long(operands[1]))
            statement = replace(statement, operands=operands)
        self.body.append(statement)

    def _distance(self, space: str, operands: tuple[Operand, ...]) -> None:
        held = self.register("%short.held", "u64")
        self.emit("mov.u64", held, operands[1])
        self.emit("sub.u64", held, held, self.starts[space])
        self.guarded("cvt.u32.u64", operands[0], held)

    def _accessed(self, operand: Operand) -> Operand:
        if isinstance(operand, Address) and isinstance(operand.base, Register):
            return operand._replace(base=self._long(operand.base))
        return operand

    def _long(self, short: Register) -> Register:
        """An address of the space of the instruction as one of the host."""
        assert self.statement is not None
        start = self.starts[self.statement.form.space]  # type: ignore[union-attr]
        held = self.fresh("%short.long", "u64")
        if short.type.bits == 32:
            self.emit("cvt.u64.u32", held, short)
        else:
            is_long, high = self.register("%short.is_long", "pred"), self.register("%short.high", "u64")
            self.emit("shr.u64", high, short, 32)
            self.emit("setp.ne.u64", is_long, high, 0)
            self.emit("mov.u64", held, short)
            self.emit("sub.u64", held, held, start, guard=is_long)
        self.emit("add.u64", held, held, start)
        return held
