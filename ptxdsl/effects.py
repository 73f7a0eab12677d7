"""What a kernel does, read off its instructions: the arrays that it writes, the shared memory that it uses.

A launch asks twice: an array that may not be written is refused before anything runs, and a numpy array is copied back
from a GPU only if there is something to copy. The table says which operands are addresses that are stored through;
what is left is to follow each parameter through the registers that its pointer passes. The answer errs on the side of
"written": a pointer that is itself put into memory or handed to an unknown function may be stored through there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import ir

__all__ = ["shared_memory", "written_parameters"]

_Origins = frozenset[str]
_NOTHING: _Origins = frozenset()


def written_parameters(module: ir.Module, entry: str) -> frozenset[str]:
    """The names of the parameters of ``entry`` whose memory it may write."""
    return _Flow(module, module.function(entry), (entry,)).written()


class _Flow:
    """From which parameters each register's address may come: grown, without regard to order, until nothing changes."""

    def __init__(self, module: ir.Module, function: ir.Function, stack: tuple[str, ...]) -> None:
        self.module, self.function, self.stack = module, function, stack
        pointers = [p.name for p in function.parameters if p.type.bits == 64 and p.type.kind != "f"]
        self.origins: dict[str, _Origins] = {name: frozenset((name,)) for name in pointers}

    def written(self) -> frozenset[str]:
        body = self.function.body or []
        size = -1
        while size != (size := sum(map(len, self.origins.values()))):
            for statement in body:
                if isinstance(statement, ir.Instruction):
                    self._flow(statement)
        found = set[str]()
        for statement in body:
            if isinstance(statement, ir.Instruction):
                found |= self._stored_through(statement)
            elif isinstance(statement, ir.Call):
                found |= self._called(statement)
        return frozenset(found)

    def _of(self, operand: ir.Operand) -> _Origins:
        if isinstance(operand, ir.Symbol):
            return self.origins.get(operand.symbol, _NOTHING)
        return frozenset().union(*(self.origins.get(r.name, _NOTHING) for r in ir.registers(operand)))

    def _flow(self, instruction: ir.Instruction) -> None:
        loads = any(spec.kind == "address" for spec in instruction.form.operands)
        source = _NOTHING
        for spec, operand in ir.spec_pairs(instruction):
            if spec.kind == "address":
                if instruction.form.space == "param" and isinstance(operand, ir.Address):
                    source |= self._of(operand.base)
            elif not loads and spec.role != "w":
                source |= self._of(operand)
        if source:
            for register in instruction.writes():
                if register.type.bits >= 32:
                    self.origins[register.name] = self.origins.get(register.name, _NOTHING) | source

    def _stored_through(self, instruction: ir.Instruction) -> _Origins:
        pairs = list(ir.spec_pairs(instruction))
        stores = [o for spec, o in pairs if spec.kind == "address" and spec.role != "r"]
        if not stores:
            return _NOTHING
        through = [self._of(o.base) for o in stores if isinstance(o, ir.Address) and isinstance(o.base, ir.Register)]
        values = [self._of(o) for spec, o in pairs if spec.kind == "value" and spec.role == "r"]
        return frozenset().union(*through, *values)

    def _called(self, call: ir.Call) -> _Origins:
        passed = [self._of(argument) for argument in call.arguments]
        name = call.callee.symbol if isinstance(call.callee, ir.Symbol) else None
        callee = next((f for f in self.module.functions if f.name == name and f.body is not None), None)
        if callee is None or callee.name in self.stack:
            return frozenset().union(*passed)
        written = _Flow(self.module, callee, (*self.stack, callee.name)).written()
        return frozenset().union(*(o for o, p in zip(passed, callee.parameters) if p.name in written))


def shared_memory(module: ir.Module, entry: str) -> tuple[int, bool]:
    """How many bytes of shared memory an entry and what it calls declare, and whether they use dynamic shared memory.

    A module may hold variables of other entries, and compilers declare dynamic shared memory that nothing uses.
    """
    known = {function.name: function for function in module.functions}
    symbols, waiting = {entry}, [entry]
    while waiting:
        for statement in known[waiting.pop()].body or ():
            new = set(_symbols(statement)) - symbols
            symbols |= new
            waiting += new.intersection(known)
    variables = [v for v in module.variables if v.name in symbols]
    variables += [v for name, function in known.items() if name in symbols for v in function.variables]
    size, dynamic = 0, False
    for variable in variables:
        if variable.space == "shared":
            align = variable.align or variable.type.bytes
            size = -(-size // align) * align + variable.nbytes
            dynamic = dynamic or None in variable.shape
    return size, dynamic


def _symbols(statement: ir.Statement) -> Iterator[str]:
    """The names of variables and functions that a statement mentions; whose address is taken is mentioned, too."""
    operands: list[Any] = []
    if isinstance(statement, ir.Instruction):
        operands = list(statement.operands)
    elif isinstance(statement, ir.Call):
        operands = [statement.callee, *statement.results, *statement.arguments]
    while operands:
        operand = operands.pop()
        if isinstance(operand, ir.Symbol):
            yield operand.symbol
        elif isinstance(operand, ir.Address):
            operands += [operand.base, *operand.parts]
        elif isinstance(operand, ir.Vector):
            operands += operand.items
