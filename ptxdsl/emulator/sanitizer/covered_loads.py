"""Loads that need no check of their own: a store of the same thread to the same place follows, which is checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...ir import Address, Instruction
from ..instructions.lowering import Lowering
from ..rewrite.definedness import checks_definedness
from .accesses import checked_access, strength

__all__ = ["covered"]


def covered(low: Lowering, block: Any) -> Iterator[tuple[int, int]]:
    """Loads of a basic block that a store of the same thread to the same place follows: a race with one is with both.

    What orders threads between the two ends the search.
    """
    statements, ops = low.graph.statements, low.graph.def_use
    open_loads: dict[Any, int] = {}
    for place in range(block.start, block.stop):
        statement = statements[place]
        if not isinstance(statement, Instruction):
            if not checks_definedness(statement):
                open_loads.clear()
            continue
        form, effects = statement.form, statement.form.effects
        access = checked_access(form)
        if access is not None and not strength(form) and access.space != "local":
            address = statement.operands[access.operand]
            value = next(operand for operand in statement.operands if not isinstance(operand, Address))
            key = (address, statement.guard, access.space, form.type, len(getattr(value, "items", (0,))))
            if not access.writes:
                open_loads[key] = place
            elif key in open_loads:
                yield open_loads.pop(key), place
        elif effects.access is not None or effects.arrives or effects.waits or effects.fence:
            open_loads.clear()
        changed = {register.name for register in ops[place].writes}
        if changed:
            open_loads = {key: n for key, n in open_loads.items() if not _mentions(key, changed)}


def _mentions(key: Any, names: set[str]) -> bool:
    address, guard = key[:2]
    guard = getattr(guard, "predicate", guard)
    return getattr(address.base, "name", None) in names or getattr(guard, "name", None) in names
