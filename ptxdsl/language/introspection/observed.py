"""Places that a trace has read, with what they held: whether they still hold it is asked before each launch.

Objects are compared by identity, so that no `__eq__` runs. The interpreter specialises plain loops, which makes them
faster than the same by `map` and `operator`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import CellType, FunctionType
from typing import Any

__all__ = ["MISSING", "Observed"]

MISSING: Any = object()
"""In place of what is nowhere."""


class Observed:
    """What was found, by kinds of places; ``lasted``: it was found unchanged at least once."""

    lasted = False

    def __init__(self) -> None:
        self.present: list[tuple[Any, list[tuple[str, Any]]]] = []
        """Tables of names, with some of their values."""
        self.absent: list[tuple[Any, list[str]]] = []
        """Tables, with names that they do not have."""
        self.cells: list[tuple[CellType, Any]] = []
        self.functions: list[tuple[FunctionType, Any, Any, Any]] = []
        """Functions, with their code and defaults."""
        self.attributes: list[tuple[Callable[[Any], Any], Any, Any]] = []
        """What finds an object, what in, and the object."""
        self.sizes: list[tuple[Any, int]] = []
        self.data: list[tuple[Callable[[Any], Hashable], Any, Hashable]] = []
        """What reads data that can be changed in place, the data, and what was read."""

    def __add__(self, other: Observed) -> Observed:
        both = Observed()
        for name in vars(both):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both

    def by_identity(self) -> tuple[list[tuple[str, Any, Any, Any]], Observed | None]:
        """What functions of Python's C API can compare, as their names, owner, key and object; and the rest, if any.

        Of a key that must not be there the object is `MISSING`.
        """
        rest = Observed()
        found: list[tuple[str, Any, Any, Any]] = []
        for table, named in self.present:
            if type(table) is dict:
                found += [("PyDict_GetItem", table, name, value) for name, value in named]
            else:
                rest.present.append((table, named))
        for table, names in self.absent:
            if type(table) is dict:
                found += [("PyDict_GetItem", table, name, MISSING) for name in names]
            else:
                rest.absent.append((table, names))
        found += [("PyCell_Get", cell, None, value) for cell, value in self.cells]
        for function, *parts in self.functions:
            code, defaults, named_defaults = (MISSING if part is None else part for part in parts)
            found += [
                ("PyFunction_GetCode", function, None, code), ("PyFunction_GetDefaults", function, None, defaults),
                ("PyFunction_GetKwDefaults", function, None, named_defaults),
            ]
        rest.attributes, rest.sizes, rest.data = self.attributes, self.sizes, self.data
        return found, rest if any(vars(rest).values()) else None

    def unchanged(self) -> bool:
        """Whether all places hold what they held."""
        try:
            if not (self._names_hold() and self._objects_hold() and (not self.data or self._data_hold())):
                return False
        except Exception:  # noqa: BLE001 -- a name that is gone; an object that cannot be read any more
            return False
        self.lasted = True
        return True

    def _names_hold(self) -> bool:
        for table, named in self.present:
            for name, value in named:
                if table[name] is not value:
                    return False
        for table, names in self.absent:
            for name in names:
                if name in table:
                    return False
        for cell, value in self.cells:  # noqa: SIM110 -- faster than `all`
            if cell.cell_contents is not value:
                return False
        return True

    def _objects_hold(self) -> bool:
        for function, code, defaults, named in self.functions:
            if (
                function.__code__ is not code or function.__defaults__ is not defaults
                or function.__kwdefaults__ is not named
            ):
                return False
        for get, owner, value in self.attributes:
            if get(owner) is not value:
                return False
        return all(len(table) == size for table, size in self.sizes) if self.sizes else True

    def _data_hold(self) -> bool:
        return all(read(value) == key for read, value, key in self.data)
