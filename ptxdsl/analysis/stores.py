"""What a kernel does, read off its instructions: the arrays that it writes, the shared memory that it uses.

A launch needs this twice: an array that may not be written is refused before anything runs, and a numpy array is copied
back from a GPU only if there is something to copy. The table says which operands are addresses that are stored through;
what is left is to follow each parameter through the registers that its pointer passes. The answer errs on the side of
"written": a pointer that is itself put into memory or handed to an unknown function may be stored through there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from .. import ir
from ..isa import Form
from .provenance import carriers

__all__ = ["shared_memory", "stores_through", "written_parameters"]

_Names = frozenset[str]
_NOTHING: _Names = frozenset()


def written_parameters(module: ir.Module, entry: str, tables: frozenset[str] = _NOTHING) -> frozenset[str]:
    """The names of the parameters of ``entry`` whose memory it may write.

    Of ``tables``, which are parameters that point to pointers, `x[]` says that it may write what these point to.
    """
    return _Pointers(module, module.function(entry), (entry,), tables).written()


def stores_through(module: ir.Module, entry: str) -> dict[str, list[ir.Instruction]]:
    """The instructions of ``entry`` itself that may write the memory of each parameter."""
    pointers = _Pointers(module, module.function(entry), (entry,))
    found: dict[str, list[ir.Instruction]] = {}
    for instruction, names in pointers.stores():
        for name in names:
            found.setdefault(name, []).append(instruction)
    return found


class _Plan(NamedTuple):
    """Which operands of a form pass an address on to its results; through which it loads and stores, and what."""

    sources: tuple[int, ...]
    results: tuple[int, ...]
    through: tuple[int, ...]
    stored: tuple[int, ...]
    loaded: tuple[int, ...]


_ADDRESSES = (8, 128)
"""The sizes of parameters that lead to memory: pointers and handles, tensor maps."""


@cache
def _plan(form: Form) -> _Plan:
    specs = list(enumerate(form.operands))
    through = tuple(
        access.operand for access in form.effects.accesses
        # of a tensor map or a surface the operand is only read, and the array behind it is written
        if form.operands[access.operand].role != "r" or (access.writes and access.kind in ("tensor", "texel"))
    )
    stored = tuple(n for n, spec in specs if through and spec.kind == "value" and spec.role == "r")
    loaded = tuple(n for n, spec in specs if spec.kind == "address" and form.space in ("global", "generic"))
    return _Plan(carriers(form), tuple(n for n, spec in specs if spec.written), through, stored, loaded)


class _Pointers:
    """From which parameters each register's address may come: grown, without regard to order, until nothing changes."""

    def __init__(
        self, module: ir.Module, function: ir.Function, stack: tuple[str, ...], tables: _Names = _NOTHING
    ) -> None:
        self.module, self.function, self.stack, self.tables = module, function, stack, tables
        pointers = [p.name for p in function.parameters if p.nbytes in _ADDRESSES and p.type.kind != "f"]
        self.provenance: dict[str, _Names] = {name: frozenset((name,)) for name in pointers}

    def written(self) -> frozenset[str]:
        found = set[str]().union(*(names for _, names in self.stores()))
        for statement in self.function.body or ():
            if isinstance(statement, ir.Call):
                found |= self._called(statement)
        return frozenset(found)

    def stores(self) -> Iterator[tuple[ir.Instruction, _Names]]:
        """The instructions that store, each with the parameters that it may store through, or whose address it stores.

        Where registers come from is known from then on.
        """
        while self._again():
            pass
        for statement in self.function.body or ():
            if statement.__class__ is ir.Instruction:
                plan = _plan(statement.form)
                if plan.through:
                    yield statement, self._stored(plan, statement.operands)

    def _again(self) -> bool:
        """Go through the body once; whether the provenance of a register grew that something before it reads."""
        provenance, register, address = self.provenance, ir.Register, ir.Address
        early: set[str] = set()
        again = False
        for statement in self.function.body or ():
            if statement.__class__ is ir.Instruction:
                sources, results, _, _, loaded = _plan(statement.form)
                operands = statement.operands
            elif isinstance(statement, ir.Call):
                operands, count = (*statement.arguments, *statement.results), len(statement.arguments)
                sources, results, loaded = tuple(range(count)), tuple(range(count, len(operands))), ()
            else:
                continue
            source = self._pointees(operands, loaded) if self.tables and loaded and results else _NOTHING
            for n in sources:
                operand = operands[n]
                if operand.__class__ is address:
                    operand = operand.base
                if operand.__class__ is register:
                    found = provenance.get(operand[0])
                    if found:
                        source = source | found
                    early.add(operand[0])
                else:
                    early.update([r.name for r in ir.registers(operand)])
                    source |= self._of(operand)
            if source:
                for name, kind in [r for n in results for r in ir.registers(operands[n])]:
                    before = provenance.get(name, _NOTHING)
                    if kind.bits >= 32 and not source <= before:
                        provenance[name] = before | source
                        again = again or name in early
        return again

    def _pointees(self, operands: tuple[ir.Operand, ...], loaded: tuple[int, ...]) -> _Names:
        """What the pointers that are loaded from tables point to."""
        bases = [o.base for n in loaded if isinstance(o := operands[n], ir.Address)]
        tables = frozenset().union(*[self._of(base) for base in bases if isinstance(base, ir.Register)]) & self.tables
        return frozenset([f"{name}[]" for name in tables])

    def _of(self, operand: ir.Operand) -> _Names:
        if isinstance(operand, ir.Symbol):
            return self.provenance.get(operand.symbol, _NOTHING)
        return frozenset().union(*[self.provenance.get(r.name, _NOTHING) for r in ir.registers(operand)])

    def _stored(self, plan: _Plan, operands: tuple[ir.Operand, ...]) -> _Names:
        """The parameters through which an instruction stores, and those whose address it stores."""
        bases = [o.base for n in plan.through if isinstance(o := operands[n], ir.Address)]
        through = [self._of(base) for base in bases if isinstance(base, ir.Register)]
        return frozenset().union(*through, *[self._of(operands[n]) for n in plan.stored])

    def _called(self, call: ir.Call) -> _Names:
        passed = [self._of(argument) for argument in call.arguments]
        name = call.callee.symbol if isinstance(call.callee, ir.Symbol) else None
        callee = next((f for f in self.module.functions if f.name == name and f.body is not None), None)
        if callee is None or callee.name in self.stack:
            return frozenset().union(*passed)
        written = _Pointers(self.module, callee, (*self.stack, callee.name)).written()
        return frozenset().union(*(o for o, p in zip(passed, callee.parameters) if p.name in written))


def shared_memory(module: ir.Module, entry: str) -> tuple[int, bool]:
    """How many bytes of shared memory an entry and what it calls declare, and whether they use dynamic shared memory.

    A module may hold variables of other entries, and compilers declare dynamic shared memory that nothing uses.
    """
    known = {function.name: function for function in module.functions}
    symbols, waiting = {entry}, [entry]
    while waiting:
        mentioned = {name for statement in known[waiting.pop()].body or () for name in _symbols(statement)}
        waiting += (mentioned - symbols).intersection(known)
        symbols |= mentioned
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
        operands = [o for o in statement.operands if o.__class__ not in _NAMELESS]
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


_NAMELESS = (ir.Register, ir.Immediate)
