"""Functions whose state their callers cannot tell, or need not: tables of results, and counters of names.

``if k not in table: table[k] = ...`` and then ``return table[k]``: whether the table had the key, the caller cannot
tell. So a table that only such functions read may be filled in a region. ``self.count += 1`` and then
``return f"{stem}_{self.count}"``: what is returned is a name, no number that could become an operand.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from .code_objects import PerCode
from .effects import Expression, Site, chain, effects_of

__all__ = ["keeps_results", "makes_names"]


@PerCode
def keeps_results(code: CodeType) -> bool:
    """Whether all that a function stores into is one table by its keys, and all it returns is what the table holds."""
    effects = effects_of(code)
    stores = [site for site in effects.sites if site.kind != "call" and site.kind != "iterate"]
    if not stores or any(site.kind != "item" for site in stores) or effects.made or not effects.returned:
        return False
    tables = {_written(site.target) for site in stores}
    if len(tables) != 1 or None in tables:
        return False
    (table,) = tables
    return all(_is_held(value, table, stores, effects.assigned) for value in effects.returned)


_OF_TEXT = ("next", "str", "len", "format", "repr")
_OF_COUNTERS = ("get", "setdefault", "append", "add", "update", "format", "join", "replace", "lower", "upper")


@PerCode
def makes_names(code: CodeType) -> bool:
    """Whether a function returns nothing but text, and calls nothing that could make anything else of its state."""
    effects = effects_of(code)
    if effects.made or not effects.returned:
        return False
    for site in effects.sites:
        known = _OF_TEXT if site.target.kind == "name" else _OF_COUNTERS if site.target.kind == "attr" else ()
        if site.kind in ("yield", "import") or (site.kind == "call" and site.target.key not in known):
            return False
    return all(_is_text(value, effects.assigned) for value in effects.returned)


def _is_text(value: Expression, assigned: dict[str, list[tuple[int, Expression]]]) -> bool:
    given = [each for _, each in assigned.get(value.key, ())] if value.kind == "name" else [value]
    return bool(given) and all(each.kind == "text" for each in given)


def _is_held(
    value: Expression, table: Any, stores: list[Site], assigned: dict[str, list[tuple[int, Expression]]]
) -> bool:
    """Whether a value is an element of the table, or a variable that is one or is stored there."""
    if _is_element(value, table):
        return True
    if value.kind != "name":
        return False
    given = [each for _, each in assigned.get(value.key, ())]
    kept = [site.arguments[0] for site in stores]
    stored = any(each.kind == "name" and each.key == value.key for each in kept)
    return bool(given) and all(_is_element(each, table) or stored or any(each is k for k in kept) for each in given)


def _is_element(value: Expression, table: Any) -> bool:
    of = value.of
    if value.kind == "call" and of is not None and of.kind == "attr" and of.key in ("get", "setdefault"):
        return of.of is not None and _written(of.of) == table
    return value.kind == "item" and of is not None and _written(of) == table


def _written(expression: Expression) -> Any:
    """An expression without the places of its loads; None where it is no variable or attribute of one."""
    first, steps = chain(expression)
    if first.kind != "name" or any(kind != "attr" for kind, _ in steps):
        return None
    return first.key, *steps
