"""Which functions a call through a register may reach: those of its ``.calltargets``, or all whose address is taken.

A function is reached through its own prototype only: parameters and results have the sizes that the call passes. What
the text calls an address that leads elsewhere is an error at the call.
"""

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
        if other.body is not None and other.kind == "func" and other.name in taken and _fits(function, call, other)
    )


def _fits(function: Function, call: Call, other: Function) -> bool:
    """Whether a function has the parameters and results that a call passes, by their number and sizes."""
    if len(other.parameters) != len(call.arguments) or len(other.results) != len(call.results):
        return False
    prototype = function.prototypes.get(call.prototype or "")
    return prototype is None or all(
        mine.nbytes == its.nbytes or None in (*mine.shape, *its.shape)
        for mine, its in zip((*prototype.parameters, *prototype.results), (*other.parameters, *other.results))
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
