"""Which functions a call through a register may reach: those of its ``.calltargets``, or all whose address is taken."""

from __future__ import annotations

from ...ir import Address, Call, Function, Instruction, Module, Reference, Symbol, Vector

__all__ = ["targets"]

def targets(module: Module, function: Function, call: Call) -> tuple[str, ...]:
    """The functions that a call through a register may reach; ``function`` is the one whose text it stands in."""
    named = function.call_targets.get(call.prototype or "")
    if named is not None:
        return named
    taken = _taken(module)
    return tuple(
        other.name for other in module.functions
        if other.body is not None and other.kind == "func" and other.name in taken
        and len(other.parameters) == len(call.arguments) and len(other.results) == len(call.results)
    )


def _taken(module: Module) -> set[str]:
    """The names whose addresses are taken: by instructions, by initial values, by lists of targets."""
    found: set[str] = set()
    for variable in module.variables:
        found.update(value.symbol for value in variable.values or () if isinstance(value, (Symbol, Reference)))
    for function in module.functions:
        for names in function.call_targets.values():
            found.update(names)
        for statement in function.body or ():
            if isinstance(statement, Instruction):
                found.update(_symbols(statement.operands))
            elif isinstance(statement, Call):
                found.update(_symbols(statement.arguments))
    found.update([name for alias, name in module.aliases.items() if alias in found])
    return found


def _symbols(operands: tuple[object, ...]) -> set[str]:
    found: set[str] = set()
    for operand in operands:
        base = operand.base if isinstance(operand, Address) else operand
        if isinstance(base, Symbol):
            found.add(base.symbol)
        elif isinstance(base, Vector):
            found |= _symbols(base.items)
    return found
